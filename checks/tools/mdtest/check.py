"""mdtest: how many files a second are created, examined by stat, read and removed."""

import shlex
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import fixture, parameter, run_after, variable

from ...base import site
from ...base.failure import failed_calls
from ...base.io_base import IoBase
from ...base.proof import rates
from ...base.stage import read_output
from ..program import ProgramMixin, SpackInstall
from . import result
from .sizes import FILES_PER_TASK, HARD_BYTES

BYTES_PER_GIB = 2**30


@rfm.simple_test
class Mdtest(IoBase, ProgramMixin):
    """Creates, stats, reads and removes small files, each phase in a separate launch."""

    descr = "mdtest: rates of small files"

    #: `easy` is empty files, each process in its own directory; `hard` is files of 3901 bytes, all
    #: in one directory; both as in IO500. `shared` differs from `easy` only in the directory, and
    #: `sized` only in the size.
    difficulty = parameter(["easy", "hard", "shared", "sized"])

    if site.asks_spack_for("mdtest"):
        #: mdtest, installed by Spack once for each programming environment.
        spack = fixture(SpackInstall, scope="environment", variables={"program": "mdtest"})

    #: The files of each process; 0 stands for the number in the site's scale.
    files_per_task = variable(int, value=0)

    tool = program = "mdtest"
    tags = {"io", "mdtest"}
    fsync = False
    metrics = tuple(result.VARIABLES)
    scripts = (Path(__file__).with_name("mdtest.sh"),)
    launches_often = True
    deciding = (*IoBase.deciding, "files_per_task")

    @run_after("init")
    def take_difficulty(self) -> None:
        self.pattern = f"metadata-{self.difficulty}"
        self.files_per_task = self.files_per_task or self.scale_settings.get(
            "files_per_task", FILES_PER_TASK
        )

    def take_volume(self) -> None:
        self.gib = self.files * self.bytes_per_file / BYTES_PER_GIB

    @property
    def measurement(self) -> tuple:
        """Also the number of files, which scales may set, and which is not a series field."""
        return (*super().measurement, self.files_per_task)

    @property
    def files(self) -> int:
        """The files of all processes."""
        return self.tasks * self.files_per_task

    @property
    def bytes_per_file(self) -> int:
        """The bytes that each file gets."""
        return HARD_BYTES if self.difficulty in ("hard", "sized") else 0

    def before_program(self) -> list[str]:
        return [*super().before_program(), f"require_inodes {self.files}"]

    def phases(self) -> list[str]:
        # Each process continues with the files of a process on the next node, if there is one.
        shift = self.num_tasks_per_node if self.nodes > 1 else 1
        size = ["-w", HARD_BYTES, "-e", HARD_BYTES] if self.bytes_per_file else []
        own = ["-u"] if self.difficulty in ("easy", "sized") else []
        options = ["-F", *size, *own, "-n", self.files_per_task, "-N", shift]
        return [
            f"mdtest_options=({shlex.join(map(str, options))})",
            f"last_process={self.tasks - 1}",
            *(["verifies=yes"] if self.bytes_per_file else []),
            f"measure {self.repeats}",
        ]

    def read_layout(self) -> list[str]:
        return []  # measure reads it, before the last removal

    def skip_if_unable(self, stage: Path) -> None:
        if result.is_too_old(read_output(stage / str(self.stdout))):
            self.skip_as_not_installed("mdtest 4.0 or later, as 3.3 does not verify all files")

    def result_problems(self, stage: Path) -> list[str]:
        """Each phase measured, every file found and verified, and none left behind."""
        said = read_output(stage / str(self.stdout))
        phases = result.read_phases(said)
        asked = result.asked(self.nodes, self.tasks, self.files)
        problems = [
            *result.unproven(phases, asked, self.repeats, bool(self.bytes_per_file)),
            *failed_calls(said),
        ]
        if not problems:
            self.tool_version = phases[0].fields["version"]
            self.cache = "shifted" if self.nodes > 1 else "none"
            self.samples = {name: rates(phases, phase) for name, phase in result.VARIABLES.items()}
        return problems
