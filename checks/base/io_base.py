"""The base of every check that measures I/O: its place, size, guards and proofs.

A program's own base states its `metrics`, writes the command, and reads the results. The hooks of
`IoBase` call the steps in their order.
"""

import shlex
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import fixture, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError
from reframe.utility.sanity import make_performance_function
from reframe.utility.typecheck import Bool

from ..filesystems import Asked, Layout, StripingError
from ..preflight.jobs import EnvProbe, require_begun
from . import selections, site
from .bands import BandVerdictMixin
from .covariates import CovariatesMixin
from .failure import state_of, why_it_failed
from .file_system import FileSystemMixin
from .hints import HintsMixin
from .package import ATTEMPT, LEFT_OUT, PURPOSE, SESSION, VARIABLE_UNITS, suite_version
from .proof import ResultError
from .run_directory import JOB_SCRIPTS, RunDirectoryMixin
from .scale import ScaleMixin
from .series import SeriesMixin, refused_if_by_hand
from .speed_columns import SpeedsMixin
from .stage import copy_scripts, read_output, seconds_between
from .transport import TransportMixin
from .witnesses import WitnessesMixin

#: The files that the job script writes just before the program and just after it.
AROUND_PROGRAM = ("libraries.txt", "exit_status.txt")


class Switch(Bool):
    """What `reframe -S` sets to yes or no, true or false, 1 or 0."""

    @classmethod
    def __rfm_cast_str__(cls, word: str) -> bool:
        """Read a word; an empty one is no, as `-S fsync=` has always been."""
        return bool(word) and Bool.__rfm_cast_str__(word)


class IoBase(
    rfm.RunOnlyRegressionTest,
    FileSystemMixin,
    ScaleMixin,
    SeriesMixin,
    RunDirectoryMixin,
    CovariatesMixin,
    TransportMixin,
    HintsMixin,
    BandVerdictMixin,
    SpeedsMixin,
    WitnessesMixin,
):
    """Runs a program on one file system, and records a rate only if the run proved it."""

    #: What a node of the partition saw of its file systems.
    probe = fixture(EnvProbe, scope="partition")

    #: The access pattern, in the words of contract 2.
    pattern = variable(str, loggable=True)

    #: The I/O interface, in the words of contract 2.
    interface = variable(str, value="posix", loggable=True)

    #: Distinguishes series if no other field does: a case of a source, or a setting.
    case = variable(str, type(None), value=None, loggable=True)

    #: Whether the time of a write includes bringing the data to the file system.
    fsync = variable(Switch, value=True, loggable=True)

    #: The state of the page cache before the reads, in the words of contract 1.
    cache = variable(str, type(None), value=None, loggable=True)

    #: The program that measures.
    tool = variable(str, loggable=True)

    #: The version of that program, as the run itself reported it.
    tool_version = variable(str, type(None), value=None, loggable=True)

    #: The version of these checks.
    suite_version = variable(str, value=suite_version, loggable=True)

    #: The attempt: 2 if the first failed because of the infrastructure.
    attempt = variable(int, value=ATTEMPT, loggable=True)

    #: The identifier of its session.
    session = variable(str, type(None), value=SESSION, loggable=True)

    #: Why the run is made: a purpose of contract 2.
    purpose = variable(str, value=PURPOSE, loggable=True)

    #: The stripe count in effect, read back from the files.
    stripe_count = variable(int, type(None), value=None, loggable=True)

    #: The stripe size in effect in bytes, read back from the files.
    stripe_size = variable(int, type(None), value=None, loggable=True)

    #: The placement of the files besides stripes, such as the pool, by their layout.
    placement = variable(str, type(None), value=None, loggable=True)

    #: The shell command that gives a directory this striping, without its last word, the directory.
    striping_command = variable(str, type(None), value=None, loggable=True)

    #: The spread of the repeats, (largest - smallest) / median of each variable, as
    #: `write_bw=0.041,read_bw=0.012`; None without repeats.
    spread = variable(str, type(None), value=None, loggable=True)

    #: Percentiles of the times of the calls that moved data in s, as
    #: `write_bw=p50:0.0001,p95:0.0002,p99:0.001,max:0.02`; None if they were not timed.
    call_seconds = variable(str, type(None), value=None, loggable=True)

    #: The interval in days after which the site's schedule measures it again; None if not declared.
    interval_days = variable(float, type(None), value=None, loggable=True)

    #: How long the program ran, including its start by MPI, in s; only in the run report.
    seconds_program = variable(float, type(None), value=None, loggable=True)

    #: The measured time of all phases and repeats together, in s; only in the run report.
    seconds_io = variable(float, type(None), value=None, loggable=True)

    #: Why the check was not run, if its file system is unfit.
    not_run = variable(str, type(None), value=None, loggable=True)

    #: Why the check was skipped, which ReFrame itself prints only on the screen.
    skip_reason = variable(str, type(None), value=None, loggable=True)

    #: The measured variables, by the names of contract 2; the sanity phase fills `samples`.
    metrics: tuple[str, ...] = ()

    #: The rate of each repeat, by metric.
    samples: Mapping[str, Sequence[float]] = {}

    #: The program's report of each phase, in the words of contract 1 where it has them.
    records: Sequence[Mapping] = ()

    leaves = ("exit_status.txt",)

    #: Shell scripts that the job script sources, in addition to the ones of every job.
    scripts: tuple[Path, ...] = ()

    #: Whether the launch becomes a shell function `launch OPTION...`, which `phases` calls.
    launches_often = False

    #: The program: a path, or a name to find on PATH.
    program_path = ""

    #: Shell commands after which the program can be called.
    load_program: Sequence[str] = ()

    num_cpus_per_task = 1
    sourcesdir = None

    # First, as a check's own hooks may change the site's values.
    @run_after("init")
    def take_site(self) -> None:
        self.bind_to_site()
        self.take_scale()

    # Last, when the check has its pattern, its interface and its sizes.
    @run_after("init", always_last=True)
    def settle(self) -> None:
        self.take_volume()
        self.leave_out_points()
        self.bind_to_scale()
        # ReFrame would drop it too, but only after it has looked through all its variables
        self.skip_if(not self.valid_systems, "no partition has this point")
        with refused_if_by_hand(type(self).__name__):
            self.take_settings()
        self.take_tags()
        if not self.metrics or isinstance(self.metrics, str):  # else nothing, or each letter
            raise ValueError(f"metrics is {self.metrics!r}: write a tuple, such as ('write_bw',)")
        if unknown := [name for name in self.metrics if name not in VARIABLE_UNITS]:
            raise ValueError(
                f"metrics has {unknown[0]!r}, which has no unit: add it to VARIABLE_UNITS in "
                "src/iobands/model/fields.py"
            )
        self.perf_variables = {
            name: make_performance_function(self.median_of, VARIABLE_UNITS[name], name)
            for name in self.metrics
        }
        names = {name: f"{name} {self.display_name}" for name in self.valid_systems}
        self.valid_systems = [name for name, check in names.items() if check not in LEFT_OUT]
        with refused_if_by_hand(type(self).__name__):
            self.claim_series()

    @run_after("setup")
    def prepare(self) -> None:
        self.require_known_settings()
        self.find_bands()
        self.ask_scheduler()
        self.count_nodes()
        self.require_own_series()
        self.require_file_system()

    # Last, so that a check's own hooks may still set variables and options.
    @run_before("run", always_last=True)
    def write_job(self) -> None:
        hints = self.set_hints()
        self.ask_for_transport()
        self.ask_for_calls()
        self.write_command()
        self.executable = shlex.quote(self.program_path)
        scripts = [*JOB_SCRIPTS[:1], *filter(None, [self.striping.script]), *self.scripts]
        copy_scripts({*JOB_SCRIPTS, *scripts}, Path(self.stagedir))
        self.prerun_cmds = [
            *(f"source ./{script.name} || exit 1" for script in scripts),
            *hints,
            *self.load_program,
            *self.before_program(),
            *self.prerun_cmds,
        ]
        self.postrun_cmds = [*self.after_program(), *self.postrun_cmds, 'exit "$exit_status"']
        if self.launches_often:
            self.executable_opts = ['"$@"']
            self.prerun_cmds += ["launch() {"]
            self.postrun_cmds = ["}", *self.phases(), *self.postrun_cmds]
        self.place_processes()

    @run_before("sanity")
    def look_back(self) -> None:
        if not self.is_dry_run():
            self.sweep_own()
            self.read_covariates(Path(self.stagedir))
            self.seconds_program = seconds_between(Path(self.stagedir), *AROUND_PROGRAM)

    @sanity_function
    def prove(self) -> bool:
        """The program ran to its end, with the requested results, files, transport and hints."""
        stage = Path(self.stagedir)
        self.skip_if_unable(stage)
        try:
            self.require_success(stage)
            found = self.result_problems(stage)
            if not isinstance(found, list):  # by a mistake in a check of a site's own
                raise SanityError(f"result_problems returned {found!r}: return a list of lines")
            problems = [*found, *self.environment_problems(stage)]
            problems = problems or self.sample_problems()
        except (ResultError, OSError) as error:
            raise SanityError(str(error)) from None  # ReFrame would repeat the text of the cause
        if problems:
            raise SanityError("; ".join(problems))
        self.record_speeds(stage)
        self.record_witnesses(stage, self.records)
        return True

    @run_before("performance")
    def judge_by_bands(self) -> None:
        if not self.is_dry_run():
            self.judge_repeats(self.samples)

    # What a program's base defines

    def write_command(self) -> None:
        """Set `program_path` and `executable_opts`."""

    def phases(self) -> list[str]:
        """The shell commands that call `launch`, up to the first that fails."""
        return []

    def result_problems(self, stage: Path) -> list[str]:
        """What the results do not prove; sets `samples`, `tool_version` and `cache`."""
        raise NotImplementedError(f"define result_problems(stage) in {type(self).__name__}")

    def skip_if_unable(self, stage: Path) -> None:
        """Skip the check if the program reports that it was built without a needed part."""

    def leave_out_points(self) -> None:
        """Empty `valid_systems` if the point makes no sense."""

    def take_tags(self) -> None:
        """Tag the check by the partitions on which it can run."""
        check = {
            "tool": self.tool,
            "pattern": self.pattern,
            "interface": self.interface,
            "file_system": self.file_system,
            "medium": self.medium,
            "stripe_count": self.stripe_count_asked,
            "transport": self.transport,
            "hints": self.hints,
            "scale": self.scale,
        }
        for extras, transport in site.selecting_partitions(self.valid_systems):
            if self.scale in extras["scales"]:
                self.tags = {*self.tags, *self.tags_in(check, extras, transport)}
                if not self.is_own_measurement:  # no schedule waits for it
                    self.interval_days = selections.interval_days(self.tags, extras)

    def tags_in(self, check: Mapping, extras: Mapping, transport: str) -> set[str]:
        """The tags of the check on a partition."""
        return selections.tags_of(check, extras, transport)

    # The job script

    @property
    def striping_of_directory(self) -> Asked:
        """The striping of the run directory: as requested, except what a hint sets."""
        by_hint = site.STRIPE_COUNT_HINT in self.hint_preset.get("hints", {})
        return replace(self.asked_striping, stripe_count=None) if by_hint else self.asked_striping

    @property
    def written_gib(self) -> float:
        """The most data on the file system at one time, in GiB."""
        return self.gib

    def before_program(self) -> list[str]:
        """The shell commands before the program."""
        return [
            *self.make_run_directory(self.written_gib),
            *self.striping.stripe(self.striping_of_directory),
            *self.each_node(),
            self.look_before(),
            self.note_libraries(),
        ]

    def after_program(self) -> list[str]:
        """The shell commands directly after the program."""
        return ["inspect_run_directory $?", *self.look_after(), *self.read_layout()]

    def read_layout(self) -> list[str]:
        """The shell commands that keep the layout of the files."""
        return ["read_layout"] if self.striping.script else []

    # What is proven

    def require_file_system(self) -> None:
        """Skip the check if its file system is unfit."""
        if not self.is_dry_run():
            findings = self.probe.findings[self.file_system]
            self.not_run = findings.blocking(self.stripe_count_asked)
            self.skip_if(bool(self.not_run), f"{self.file_system}: {self.not_run}")

    def skip_because(self, reason: str) -> None:
        """Skip the check, with a reason that the run report keeps."""
        self.skip_reason = reason
        self.skip(reason)

    def require_success(self, stage: Path) -> None:
        """Raise a SanityError if the program failed or never ran, in its own words or MPI's."""
        require_begun(self)
        status = read_output(stage / "exit_status.txt").strip()
        if status != "0":
            said = read_output(stage / str(self.stderr), stage / str(self.stdout))
            state, limit = state_of(self.job.state, self.job.exitcode), self.time_limit
            raise SanityError(why_it_failed(self.tool, status, state, limit, said))

    def environment_problems(self, stage: Path) -> list[str]:
        """What is not proven of layout, transport and hints; sets the ones in effect."""
        return [
            *self.striping_problems(stage),
            *self.transport_problems(stage),
            *self.hint_problems(stage, self.records),
        ]

    def striping_problems(self, stage: Path) -> list[str]:
        """What the layout of the files does not prove; the layout is recorded in any case."""
        try:
            layout, problems = self.striping.in_effect(stage, self.asked_striping), []
        except StripingError as error:
            layout, problems = error.layout, [str(error)]
        self.record_layout(layout, self.asked_striping)
        return problems

    def record_layout(self, layout: Layout | None, asked: Asked) -> None:
        """Set the columns of the layout in effect, if one was read."""
        if layout:
            self.stripe_count, self.stripe_size = layout.stripe_count, layout.stripe_size
            self.placement = layout.placement
            if asked.stripe_count is not None:
                self.striping_command = self.striping.command(asked, layout)

    # The samples

    def sample_problems(self) -> list[str]:
        """The metrics without rates; ReFrame would pass the check without them."""
        try:
            return [
                f"{name}: rates above 0 expected, samples has {self.samples.get(name)}"
                for name in self.metrics
                # NaN is not above 0, either
                if not all(0 < rate < float("inf") for rate in self.samples.get(name) or [0])
            ]
        except (TypeError, AttributeError):  # by a mistake in a check of a site's own
            return [f"samples is {self.samples!r}: map each of metrics to a list of rates"]

    def judge_repeats(self, values: Mapping[str, Sequence[float]]) -> None:
        """Judge the median of each variable by its band, and record the spread of the repeats."""
        if all(len(repeats) > 1 for repeats in values.values()):
            self.spread = ",".join(
                f"{name}={(max(repeats) - min(repeats)) / statistics.median(repeats):.3f}"
                for name, repeats in values.items()
            )
        self.judge({name: statistics.median(repeats) for name, repeats in values.items()})

    def median_of(self, name: str) -> float:
        """The median of the repeats of a variable."""
        return statistics.median(self.samples[name])
