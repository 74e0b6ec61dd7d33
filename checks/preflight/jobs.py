"""Preflight fixtures: they run once in a session, before the checks that depend on them.

`EnvProbe` examines all file systems of a partition. It passes even if one is unfit, as checks on
the others must run. `EnvCompiler` and `EnvMpi` fail if they find a fault, which stops all checks
that need the programming environment.
"""

import shlex
from pathlib import Path

import reframe as rfm
from reframe.core.backends import getlauncher
from reframe.core.builtins import fixture, run_after, run_before, sanity_function, variable
from reframe.core.environments import ProgEnvironment
from reframe.core.exceptions import SanityError

from ..base import selections
from ..base.failure import reason_in, why_no_output
from ..base.job import JobMixin
from ..base.package import LIVE, arguments, outcomes_of, read_notes, settle, why_kept
from ..base.run_directory import NotedDirectories
from ..base.stage import copy_scripts, read_output
from . import clocks, mpi, probe, toolchain
from .findings import Findings, Wanted, judge, sections, silent

SOURCES = Path(__file__).parent / "sources"

MIB_PER_GIB = 1024


class SmallJob(rfm.RunOnlyRegressionTest, JobMixin):
    """A short job on few nodes, which may be shared."""

    num_tasks_per_node = num_cpus_per_task = 1
    exclusive_access = False
    time_limit = "5m"

    @run_after("setup")
    def ask(self) -> None:
        self.ask_scheduler()

    # Last, when the commands are written.
    @run_before("run", always_last=True)
    def place(self) -> None:
        self.place_processes()


class WithoutEnvironment(rfm.RegressionTestPlugin):
    """Drops the programming environment from the job.

    ReFrame runs no test without one, but a missing module is no fault of a file system.
    """

    @run_after("setup")
    def leave_environment(self) -> None:
        self._current_environ = ProgEnvironment("none")


class EnvProbe(SmallJob, WithoutEnvironment, NotedDirectories):
    """Examines all file systems of a partition from one of its nodes."""

    descr = "A node examines the file systems"

    #: The subject of a failure.
    examines = variable(str, value="partition", loggable=True)

    #: The type and mount point of each file system by df.
    mounted = variable(dict, value={})

    nodes = tasks = num_tasks = 1
    sourcesdir = None

    @run_before("run")
    def write_command(self) -> None:
        copy_scripts(probe.SCRIPTS, Path(self.stagedir))
        if not self.is_dry_run():
            self.sweep_notes()
            self.leave_orphans_to_node()
        settings = list(self.file_systems.values())
        directories = [self.note_directory(each["path"]) for each in settings]
        words = probe.arguments(settings, directories)
        self.executable, self.executable_opts = "bash", ["probe.sh", shlex.join(words)]
        # One process on the node of the script, as MPI's launcher belongs to the environment.
        self.job.launcher = getlauncher("local")()

    @sanity_function
    def has_looked(self) -> bool:
        """The script ran; other checks judge its findings."""
        require_begun(self)
        try:
            answers = probe.read_answers(Path(self.stagedir), len(self.file_systems))
        except probe.StageError as error:
            # ReFrame would add the cause to the text
            raise SanityError(str(error)) from None
        self.findings = {
            name: self._findings(name, settings, *answer)
            for (name, settings), answer in zip(self.file_systems.items(), answers, strict=True)
        }
        return True

    def leave_orphans_to_node(self) -> None:
        """Ask the job to remove what could not be removed from this node."""
        self.left = {}
        notes = [note for _, note in read_notes(self.notes) if note and note.stays]
        for number, settings in enumerate(self.file_systems.values()):
            root = Path(settings["path"])
            here = [(note, why_kept(note) or "") for note in notes if note.path.parent == root]
            todo = [(note, why) for note, why in here if why != LIVE]
            if todo:
                words = arguments(root, self.roots[root], todo)
                text = "".join(f"{word}\0" for word in words)
                Path(self.stagedir, probe.orphans_file(number)).write_text(text, encoding="utf-8")
                self.left[number] = todo

    @run_before("sanity")
    def sweep_directories(self) -> None:
        if self.is_dry_run():
            return
        # A hanging script is killed with the job, and then no trap removes its directory.
        self.sweep_own()
        for number, todo in self.left.items():
            said = read_output(Path(self.stagedir, probe.removed_file(number)))
            settle(self.notes, [each for each in outcomes_of(said, todo) if each.state == "gone"])

    @property
    def file_systems(self) -> dict[str, dict]:
        """The file systems of the partition."""
        return self.current_partition.extras["filesystems"]

    def _findings(self, name: str, settings: dict, answer: str, in_time: bool) -> Findings:
        wanted = self._wanted(settings)
        if not in_time:
            return silent(answer, wanted)
        mounted = sections(answer).get("mounted", "")
        self.mounted = {**self.mounted, name: " ".join(mounted.split())}
        return judge(answer, wanted)

    def _wanted(self, settings: dict) -> Wanted:
        extras = self.current_partition.extras
        scale = extras["scales"][selections.smallest_scale(extras["scales"])]
        nodes = 1 if isinstance(scale["nodes"], str) else scale["nodes"]
        files = nodes * scale["tasks_per_node"]
        gib = files * scale["mib_per_task"] / MIB_PER_GIB
        return Wanted.of(settings, gib, files, clocks.allowed_skew(extras))


class EnvCompiler(rfm.RunOnlyRegressionTest):
    """Modules load and compilers compile, on the machine where ReFrame builds."""

    descr = "Modules load, and compilers work"

    #: The subject of a failure.
    examines = variable(str, value="environment", loggable=True)

    #: The program that shows whether MPI starts, in the stage directory if it could be built.
    program = variable(str, value="hello")

    local = True
    sourcesdir = str(SOURCES)
    executable = "true"

    @run_before("run")
    def write_commands(self) -> None:
        environ = self.current_environ
        self.prerun_cmds = toolchain.commands(
            {"C": environ.cc, "Fortran": environ.ftn}, self.program
        )

    @sanity_function
    def has_toolchain(self) -> bool:
        """No module is missing, and each compiler of the environment built a program."""
        stage = Path(self.stagedir)
        problems = toolchain.problems(
            read_output(stage / str(self.stdout), stage / str(self.stderr))
        )
        if problems:
            raise SanityError("; ".join(problems))
        return True


class EnvMpi(SmallJob):
    """MPI starts on two nodes; without a compiler, only the launcher is checked."""

    descr = "MPI starts, and spans nodes"

    #: The subject of a failure.
    examines = variable(str, value="environment", loggable=True)

    #: Loads the modules, and builds the program.
    compiler = fixture(EnvCompiler, scope="environment")

    #: What could not be seen, if anything.
    unknown = variable(str, type(None), value=None, loggable=True)

    #: Whether MPI gives all nodes the same name, so that its MPI-IO takes them for one host.
    is_one_host = False

    sourcesdir = str(SOURCES)

    # Before the phase setup, in which ReFrame makes the job.
    @run_after("init")
    def take_nodes(self) -> None:
        self.nodes = self.tasks = self.num_tasks = mpi.number_of_nodes(self.valid_systems)

    @run_before("run")
    def write_commands(self) -> None:
        program = Path(self.compiler.stagedir, self.compiler.program)
        self.has_program = program.exists()
        self.executable = "sh"
        words = ["node.sh", *([str(program)] if self.has_program else [])]
        self.executable_opts = [shlex.join(words)]
        self.prerun_cmds = [mpi.TIME_BEFORE]
        self.postrun_cmds = [mpi.TIME_AFTER, mpi.COMPLAINTS]

    @sanity_function
    def has_started(self) -> bool:
        """A process came up on each node, and they all met."""
        require_begun(self)
        stage = Path(self.stagedir)
        said, complaint = (
            read_output(stage / str(self.stdout)),
            read_output(stage / str(self.stderr)),
        )
        problem = mpi.problem(said, self.nodes, self.has_program)
        if problem:
            if self.job.state == "TIMEOUT":
                problem += f" within {self.time_limit:g} s"
            raise SanityError(": ".join(filter(None, [problem, reason_in(f"{complaint}\n{said}")])))
        if not self.has_program:
            self.unknown = "MPI: no C compiler can build a program with it"
        self.is_one_host = mpi.have_one_name(said)
        self.clock_problems = mpi.clock_problems(
            said, clocks.allowed_skew(self.current_partition.extras)
        )
        return True


def require_begun(check: rfm.RunOnlyRegressionTest) -> None:
    """Raise a SanityError if the job was cancelled before it began, or left no output."""
    stage = Path(check.stagedir)
    if not (stage / str(check.stdout)).exists():
        try:
            probe.require_room(stage)
        except probe.StageError as error:
            raise SanityError(str(error)) from None
        raise SanityError(why_no_output(check.job.state, check.max_pending_time, str(stage)))
