"""The base of the benchio checks: one layer, written, read back and verified, in one job.

A check states its layer; this works out sizes from the site's scale, writes the job script's
commands, and lets no rate count that the run did not prove.
"""

from pathlib import Path

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import (
    fixture,
    performance_function,
    run_before,
    sanity_function,
    variable,
)
from reframe.core.exceptions import SanityError

from iobands import __version__ as iobands_version

from . import benchio_result as result
from .benchio_build import BuildBenchio
from .failure_reason import reason_in
from .mixins.band_verdict import BandVerdictMixin
from .mixins.covariates import CovariatesMixin
from .mixins.environment import EnvironmentMixin
from .mixins.file_system import FileSystemMixin
from .mixins.hints import HintsMixin
from .mixins.run_directory import RunDirectoryMixin
from .mixins.scale import MIB_PER_GIB, ScaleMixin
from .mixins.selection import SelectionMixin
from .mixins.transport import TransportMixin
from .program_output import read_output
from .striping import StripingError, require_commands

BYTES_PER_MIB = 2**20

#: The exit status of a program that SIGTERM ended.
TERMINATED = "143"

#: A block of 1 MiB in elements of 8 bytes; one of n MiB is n of these along the third axis.
MIB_BLOCK = (128, 128, 8)


class BenchioBase(
    rfm.RunOnlyRegressionTest,
    FileSystemMixin,
    EnvironmentMixin,
    ScaleMixin,
    SelectionMixin,
    RunDirectoryMixin,
    CovariatesMixin,
    TransportMixin,
    HintsMixin,
    BandVerdictMixin,
):
    """Writes and reads one layer of benchio on one file system."""

    #: The kernel, built once for each programming environment.
    kernel = fixture(BuildBenchio, scope="environment")

    #: The layer of benchio (contract 1).
    layer = variable(str)

    #: The access pattern, in the words of contract 1.
    pattern = variable(str, loggable=True)

    #: The I/O interface, in the words of contract 1.
    interface = variable(str, value="posix", loggable=True)

    #: What has a file of its own: the whole job, each node or each process.
    file_per = variable(typ.Str[r"job|node|process"], value="job")

    #: Whether the clock stops only when the data is on the file system.
    fsync = variable(bool, value=True, loggable=True)

    #: What the reads found in the page cache, as contract 1 says.
    cache = variable(str, type(None), value=None, loggable=True)

    #: The program that measures.
    tool = variable(str, value="benchio", loggable=True)

    #: The version of that program, as the run itself reported it.
    tool_version = variable(str, type(None), value=None, loggable=True)

    #: The version of these checks.
    suite_version = variable(str, value=iobands_version, loggable=True)

    #: The stripe count in effect, read back from the files.
    stripe_count = variable(int, type(None), value=None, loggable=True)

    #: The stripe size in effect in bytes, read back from the files.
    stripe_size = variable(int, type(None), value=None, loggable=True)

    #: The result file, in the stage directory.
    result_file = variable(str, value="result.jsonl")

    tags = {"io", "benchio"}
    num_cpus_per_task = 1

    @run_before("run")
    def write_commands(self) -> None:
        self.executable = str(Path(self.kernel.stagedir, self.kernel.program))
        n1, n2, n3 = MIB_BLOCK
        mib_per_task = self.scale_settings["mib_per_task"]
        self.executable_opts = [
            *map(str, (n1, n2, n3 * mib_per_task, "local", self.layer)),
            *(["fsync"] if self.fsync else []),
            '--directory="$run_directory"',
            "--read",
            "--verify",
            f"--repeats={self.repeats}",
            f"--result={self.result_file}",
            "--keep",  # so that the files can be looked at; the script's trap removes them
        ]
        required = require_commands(self.file_system_type, self.striping)
        self.prerun_cmds = [
            *self.make_run_directory(self.gib, required),
            *self.striping.set_commands(self.asked_striping),
            *self.look_around_before(),
        ]
        self.postrun_cmds = [
            *self.inspect_run_directory(),
            *self.look_around_after(),
            *self.striping.read_back_commands(),
            *self.leave_run_directory(),
        ]

    def expectation(self) -> result.Expectation:
        """What the result file must prove."""
        return result.Expectation(
            layer=self.layer,
            pattern=self.pattern,
            interface=self.interface,
            repeats=self.repeats,
            nodes=self.nodes,
            processes=self.tasks,
            bytes=round(self.gib * MIB_PER_GIB) * BYTES_PER_MIB,
            files={"job": 1, "node": self.nodes, "process": self.tasks}[self.file_per],
            fsync=self.fsync,
        )

    @sanity_function
    def prove(self) -> bool:
        """Every phase measured, every byte on disk and verified, the layout as asked."""
        stage = Path(self.stagedir)
        expected = self.expectation()
        try:
            self.require_success(stage)
            records = result.read_result(stage / self.result_file)
            problems = result.unproven(records, expected)
            listing = (stage / self.files_file).read_text(encoding="utf-8")
            problems += result.misplaced_files(listing, expected)
            problems += self.striping_problems(stage)
            problems += self.transport_problems(stage)
            problems += self.hint_problems(stage, records)
        except (result.ResultError, OSError) as error:
            raise SanityError(str(error)) from error
        if problems:
            raise SanityError("; ".join(problems))
        self.tool_version = records[0]["version"]
        self.cache = result.cache_of_reads(records)
        return True

    def striping_problems(self, stage: Path) -> list[str]:
        """What the layout of the files fails to prove; the one in effect is recorded anyway."""
        try:
            layout, problems = self.striping.in_effect(stage, self.asked_striping), []
        except StripingError as error:
            layout, problems = error.layout, [str(error)]
        if layout:
            self.stripe_count, self.stripe_size = layout.stripe_count, layout.stripe_size
        return problems

    def require_success(self, stage: Path) -> None:
        """Raise a SanityError if the program failed or never ran, in its own words or MPI's."""
        status_file = stage / self.exit_status_file
        status = status_file.read_text(encoding="utf-8").strip() if status_file.exists() else None
        if not (stage / str(self.stdout)).exists():
            limit = self.max_pending_time
            waited = f" or waited for more than {limit:g} s" if limit else ""
            raise SanityError(f"the job never began: it was cancelled{waited}")
        if status != "0":
            said = read_output(stage / str(self.stderr), stage / str(self.stdout))
            happened = f"exit status {status}" if status else f"{self.tool} did not run to its end"
            if status == TERMINATED:
                limit = f"{self.time_limit:g} s"
                happened += f" (asked to end: cancelled, or its limit of {limit} was near)"
            raise SanityError(": ".join(filter(None, [happened, reason_in(said)])))

    @run_before("performance")
    def judge_by_bands(self) -> None:
        if self.is_dry_run():
            return
        values = {
            f"{operation}_bw": self.median_bandwidth(operation) for operation in result.OPERATIONS
        }
        self.judge(values)

    @performance_function("GiB/s")
    def write_bw(self) -> float:
        """The median write bandwidth of the repeats."""
        return self.median_bandwidth("write")

    @performance_function("GiB/s")
    def read_bw(self) -> float:
        """The median read bandwidth of the repeats."""
        return self.median_bandwidth("read")

    def median_bandwidth(self, operation: str) -> float:
        """The median of the repeats of `operation`, in GiB/s."""
        records = result.read_result(Path(self.stagedir, self.result_file))
        return result.median_bandwidth(records, operation)
