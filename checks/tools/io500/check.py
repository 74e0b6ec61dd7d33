"""IO500 by the site's own io500.sh: its score, and each of its phases."""

from pathlib import Path

import reframe as rfm
from reframe.core.backends import getlauncher
from reframe.core.builtins import run_after, variable

from ...base import site
from ...base.failure import failed_calls
from ...base.io_base import IoBase
from ...base.proof import ResultError
from ...base.scale import MIB_PER_GIB
from ...base.stage import call, read_output
from ..mdtest.sizes import FILES_PER_TASK, HARD_BYTES
from ..program import ProgramMixin
from . import result

BYTES_PER_MIB = 2**20
HARD_RECORD = 47_008

#: The shortest time of a writing phase in a valid run of IO500, in seconds.
STONEWALL_SECONDS = 300

#: More files than a process makes before the stonewall, as a phase that ends early is invalid.
#: IO500's own million is too few for a process that makes more than 3300 a second.
UNBOUNDED_FILES = 100_000_000

#: The time limit of a run by IO500's rules: four stonewalls, plus reading and deleting.
TIME_LIMIT = "3h"


@rfm.simple_test
class Io500(IoBase, ProgramMixin):
    """Runs the site's io500.sh, which starts MPI and stripes its directories itself.

    `$IOBANDS_TASKS` is the number of processes that it must start. It removes its files before it
    ends, so their layout is not read back.
    """

    descr = "IO500: the site's io500.sh, its score and phases"
    tool = "io500"
    program = "io500.sh"
    tags = {"io", "io500"}
    metrics = tuple(result.VARIABLES)
    scripts = (Path(__file__).with_name("io500.sh"),)
    launches_often = True
    deciding = (*IoBase.deciding, "stonewall_seconds")

    #: The files of a submission, which ReFrame keeps in its output directory.
    keep_files = ["io500-result"]

    #: How many GiB a run by IO500's own sizes and rules may write. 0 limits it to the scale's
    #: volume, which measures the same but gives no valid score.
    most_gib = variable(float, value=0.0)

    #: The shortest time of each writing phase in s, in a run that is not limited.
    stonewall_seconds = variable(int, value=STONEWALL_SECONDS)

    @run_after("init")
    def take_limits(self) -> None:
        self.pattern = "io500-limited" if self.is_limited else "io500"

    def leave_out_points(self) -> None:
        # io500.sh stripes its directories itself, so that one stripe count is enough.
        for extras, _ in site.selecting_partitions(self.valid_systems):
            counts = extras["filesystems"][self.file_system].get("stripe_counts", [None])
            if self.stripe_count_asked != counts[0]:
                self.valid_systems = []

    def take_volume(self) -> None:
        """Set the volume: the sum of IOR's two cases and mdtest's hard one, or `most_gib`."""
        mib = 2 * self.scale_settings["mib_per_task"] + self.files * HARD_BYTES / BYTES_PER_MIB
        self.gib = self.most_gib or self.tasks * mib / MIB_PER_GIB

    @property
    def default_time_limit(self) -> str:
        """The time limit of the scale, unless its sizes are limited."""
        return super().default_time_limit if self.is_limited else TIME_LIMIT

    @property
    def is_limited(self) -> bool:
        """Whether the run is smaller than IO500's rules demand."""
        return not self.most_gib

    @property
    def files(self) -> int:
        """The files of each process in each case of mdtest, in a limited run."""
        return self.scale_settings.get("files_per_task", FILES_PER_TASK)

    @run_after("setup")
    def leave_launching_to_it(self) -> None:
        self.job.launcher = getlauncher("local")()
        self.env_vars["IOBANDS_TASKS"] = self.tasks

    def before_program(self) -> list[str]:
        return [*self.make_run_directory(self.gib), *self.each_node(), self.look_before()]

    def write_command(self) -> None:
        Path(self.stagedir, "io500.ini.in").write_text(self.settings(), encoding="utf-8")

    def phases(self) -> list[str]:
        return [call("measure", self.program_path)]

    def read_layout(self) -> list[str]:
        return []  # the files are gone

    def settings(self) -> str:
        """The text of the ini file, in which the script fills in the directories."""
        directories = "[global]\ndatadir = @RUN_DIRECTORY@\nresultdir = @STAGE@/io500-result\n"
        if not self.is_limited:
            return directories + (
                f"[debug]\nstonewall-time = {self.stonewall_seconds}\n"
                f"[mdtest-easy]\nn = {UNBOUNDED_FILES}\n"
                f"[mdtest-hard]\nn = {UNBOUNDED_FILES}\n"
            )
        mib = self.scale_settings["mib_per_task"]
        return directories + (
            "[debug]\nstonewall-time = 1\n"
            f"[ior-easy]\ntransferSize = 1m\nblockSize = {mib}m\n"
            f"[mdtest-easy]\nn = {self.files}\n"
            f"[ior-hard]\nsegmentCount = {mib * BYTES_PER_MIB // HARD_RECORD}\n"
            f"[mdtest-hard]\nn = {self.files}\n"
        )

    def result_problems(self, stage: Path) -> list[str]:
        """All phases ran, by the rules of IO500, or invalid only because of a limit."""
        paths = sorted((stage / "io500-result").rglob("result.txt"))
        if not paths:
            raise ResultError("no result.txt")
        found = result.read_result(paths[-1].read_text(encoding="utf-8", errors="replace"))
        self.tool_version = found.version
        self.samples = {name: [value] for name, value in found.values.items()}
        said = read_output(*paths[-1].parent.glob("*.txt"), stage / str(self.stdout))
        return [*result.unproven(found, self.tasks, self.is_limited), *failed_calls(said)]

    def environment_problems(self, stage: Path) -> list[str]:
        return self.transport_problems(stage)
