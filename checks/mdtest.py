"""mdtest: how many files a second are created, looked at, read and removed."""

import statistics
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import (
    fixture,
    parameter,
    performance_function,
    run_after,
    run_before,
    sanity_function,
    variable,
)
from reframe.core.exceptions import SanityError

from . import mdtest_result as result
from . import site
from .io_base import IoBase
from .mixins.launches import LaunchesMixin
from .mixins.program import ProgramMixin
from .mixins.run_directory import require_inodes
from .program_output import read_output
from .spack_install import SpackInstall

BYTES_PER_GIB = 2**30

#: The bytes of a file in IO500's hard case.
HARD_BYTES = 3901

#: How many files each process has where the scale does not say.
FILES_PER_TASK = 1000


@rfm.simple_test
class Mdtest(IoBase, ProgramMixin, LaunchesMixin):
    """Creates, looks at, reads and removes small files, each phase in a launch of its own."""

    descr = "mdtest: rates of small files"

    #: `easy` is empty files, each process in its own directory; `hard` is files of 3901 bytes, all
    #: in one directory. Both as in IO500.
    difficulty = parameter(["easy", "hard"])

    if site.asks_spack_for("mdtest"):
        #: mdtest, installed by Spack once for each programming environment.
        spack = fixture(SpackInstall, scope="environment", variables={"program": "mdtest"})

    #: The files of each process; 0 stands for the number of the site's scale.
    files_per_task = variable(int, value=0)

    tool = program = "mdtest"
    tags = {"io", "mdtest"}
    fsync = False

    @run_after("init", always_last=True)
    def take_case(self) -> None:
        self.pattern = f"metadata-{self.difficulty}"
        self.files_per_task = self.files_per_task or self.scale_settings.get(
            "files_per_task", FILES_PER_TASK
        )
        self.take_volume()

    def size_for(self, nodes: int) -> None:
        super().size_for(nodes)
        self.take_volume()

    def take_volume(self) -> None:
        """Set the volume, which is nothing in the easy case."""
        self.gib = self.files * self.bytes_per_file / BYTES_PER_GIB

    @property
    def files(self) -> int:
        """The files of all processes."""
        return self.tasks * self.files_per_task

    @property
    def bytes_per_file(self) -> int:
        """The bytes that each file gets."""
        return HARD_BYTES if self.difficulty == "hard" else 0

    @run_before("run")
    def write_commands(self) -> None:
        self.prerun_cmds = [*self.before_program(self.gib), *require_inodes(self.files)]
        self.postrun_cmds = [*self.phases(), *self.after_program()]

    def phases(self) -> list[str]:
        """The shell commands that call `launch` for each phase, up to the first that fails."""
        # Each process goes on with what one of the next node made, where there is one.
        shift = self.num_tasks_per_node if self.nodes > 1 else 1
        own = "-u" if self.difficulty == "easy" else f"-w {HARD_BYTES} -e {HARD_BYTES}"
        options = f'-F {own} -n {self.files_per_task} -N {shift} $seed -d "$tree"'
        verify = " -X" if self.bytes_per_file else ""

        def phase(name: str, flags: str) -> list[str]:
            launched = f"launch {flags} {options} || return"
            return [result.mark(name, "$1"), launched, result.count("$tree")]

        control = []
        if verify:
            # Of the last process: some versions tell of the first one's alone.
            control = [
                result.mark(result.CONTROL, "$1"),
                f'file=$(find "$tree" -type f -name "file.mdtest.{self.tasks - 1}.*" | head -n 1)',
                'printf spoilt | dd of="$file" conv=notrunc bs=1 seek=8 2> /dev/null',
                f"launch -E -X {options}",
            ]
        prepare = [
            'tree="$run_directory/tree"',
            # What is written is drawn anew by each launch of 4.x, unless it is told. 3.3 knows no
            # such option, and tells of wrong data in the files of the first process alone.
            "launch -h > help.txt 2>&1",
            "seed=",
            "if grep -q '^ *-G=' help.txt; then seed=\"-G $(( RANDOM + 1 ))\"",
            *(
                [f'elif grep -q verify-read help.txt; then echo "{result.TOO_OLD}"; exit 0']
                if verify
                else []
            ),
            "fi",
        ]
        repeat = [
            *phase(result.CREATE, "-C"),
            *phase(result.STAT, "-T"),
            *phase(result.READ, f"-E{verify}"),
            f'if [ "$1" -eq {self.repeats} ]; then',
            *self.read_layout_back(),
            *control,
            ":",
            "fi",
            *phase(result.REMOVE, "-r"),
        ]
        end_of_launch, *repeats = self.repeated(repeat)
        return [end_of_launch, *prepare, *repeats]

    def read_layout_back(self) -> list[str]:
        """Shell commands that read the layout of one of the files; that of all would take long."""
        commands = self.striping.read_back_commands()
        if not commands:
            return []
        return [
            'file=$(find "$tree" -type f | head -n 1)',
            'mkdir "$run_directory/sample" && mv "$file" "$run_directory/sample"',
            "(",
            'run_directory="$run_directory/sample"',
            *commands,
            ")",
            'mv "$run_directory/sample/${file##*/}" "$file" && rmdir "$run_directory/sample"',
        ]

    def after_program(self) -> list[str]:
        return [
            *self.inspect_run_directory(),
            *self.look_around_after(),
            *self.leave_run_directory(),
        ]

    @sanity_function
    def prove(self) -> bool:
        """Every phase measured, every file there and verified, and none left behind."""
        stage = Path(self.stagedir)
        if result.is_too_old(read_output(stage / str(self.stdout))):
            self.skip_as_not_installed("mdtest 4.0 or later, as 3.3 does not verify all files")
        self.require_success(stage)
        phases = self.measured()
        expected = result.Expectation(
            nodes=self.nodes,
            tasks=self.tasks,
            files=self.files,
            repeats=self.repeats,
            verified=bool(self.bytes_per_file),
        )
        problems = [*result.unproven(phases, expected), *self.environment_problems(stage)]
        if problems:
            raise SanityError("; ".join(problems))
        self.tool_version = phases[result.CREATE, 1].version
        self.cache = "shifted" if self.nodes > 1 else "none"
        return True

    def measured(self) -> result.Phases:
        """The phases in the output of the job."""
        return result.phases_in(read_output(Path(self.stagedir, str(self.stdout))))

    def rate(self, phase: str) -> float:
        """The median rate of the repeats of a phase."""
        return statistics.median(result.rates(self.measured(), phase))

    @run_before("performance")
    def judge_by_bands(self) -> None:
        if not self.is_dry_run():
            phases = self.measured()
            self.judge_repeats(
                {name: result.rates(phases, phase) for name, phase in result.VARIABLES.items()}
            )

    @performance_function("1/s")
    def create_rate(self) -> float:
        """The median rate of creating files, with what is written into them."""
        return self.rate(result.CREATE)

    @performance_function("1/s")
    def stat_rate(self) -> float:
        """The median rate of looking at files."""
        return self.rate(result.STAT)

    @performance_function("1/s")
    def read_rate(self) -> float:
        """The median rate of opening and reading files."""
        return self.rate(result.READ)

    @performance_function("1/s")
    def remove_rate(self) -> float:
        """The median rate of removing files."""
        return self.rate(result.REMOVE)
