"""The base of the benchio checks: one layer, written, read back and verified, in one job.

A check states its layer; this works out sizes from the site's scale, writes the job script's
commands, and lets no rate count that the run did not prove.
"""

import statistics
from pathlib import Path

import reframe.utility.typecheck as typ
from reframe.core.builtins import (
    fixture,
    performance_function,
    run_before,
    sanity_function,
    variable,
)
from reframe.core.exceptions import SanityError

from . import benchio_result as result
from .benchio_build import BuildBenchio
from .io_base import IoBase
from .mixins.scale import MIB_PER_GIB

BYTES_PER_MIB = 2**20

#: A block of 1 MiB in elements of 8 bytes; one of n MiB is n of these along the third axis.
MIB_BLOCK = (128, 128, 8)


class BenchioBase(IoBase):
    """Writes and reads one layer of benchio on one file system."""

    #: The kernel, built once for each programming environment.
    kernel = fixture(BuildBenchio, scope="environment")

    #: The layer of benchio (contract 1).
    layer = variable(str)

    #: What has a file of its own: the whole job, each node or each process.
    file_per = variable(typ.Str[r"job|node|process"], value="job")

    #: The result file, in the stage directory.
    result_file = variable(str, value="result.jsonl")

    tool = "benchio"
    tags = {"io", "benchio"}

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
        self.prerun_cmds = self.before_program(self.gib)
        self.postrun_cmds = self.after_program()

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
            problems += self.environment_problems(stage, records)
        except (result.ResultError, OSError) as error:
            raise SanityError(str(error)) from error
        if problems:
            raise SanityError("; ".join(problems))
        self.tool_version = records[0]["version"]
        self.cache = result.cache_of_reads(records)
        return True

    @run_before("performance")
    def judge_by_bands(self) -> None:
        if self.is_dry_run():
            return
        self.judge_repeats(
            {f"{operation}_bw": self.bandwidths(operation) for operation in result.OPERATIONS}
        )

    @performance_function("GiB/s")
    def write_bw(self) -> float:
        """The median write bandwidth of the repeats."""
        return statistics.median(self.bandwidths("write"))

    @performance_function("GiB/s")
    def read_bw(self) -> float:
        """The median read bandwidth of the repeats."""
        return statistics.median(self.bandwidths("read"))

    def bandwidths(self, operation: str) -> list[float]:
        """The bandwidth of each repeat of `operation`, in GiB/s."""
        records = result.read_result(Path(self.stagedir, self.result_file))
        return result.bandwidths(records, operation)
