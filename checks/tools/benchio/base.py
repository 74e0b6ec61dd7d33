"""The base of the benchio checks: one layer, written, read back and verified, in one job."""

from collections.abc import Iterable
from pathlib import Path

import reframe.utility.typecheck as typ
from reframe.core.builtins import fixture, variable

from ...base.io_base import IoBase, Switch
from ...base.proof import misplaced_files, rates, unproven
from ...base.scale import MIB_PER_GIB
from . import result
from .build import BuildBenchio

BYTES_PER_MIB = 2**20

#: A block of 1 MiB in elements of 8 bytes; a block of n MiB is n of them along the third axis.
MIB_BLOCK = (128, 128, 8)


def asking_for(variables: Iterable[str]) -> list[str]:
    """The options that make benchio record these environment variables."""
    return [f"--environment={name}" for name in variables]


class BenchioBase(IoBase):
    """Writes and reads one layer of benchio on one file system."""

    #: The kernel, built once for each programming environment.
    kernel = fixture(BuildBenchio, scope="environment")

    #: The layer of benchio (contract 1).
    layer = variable(str)

    #: The unit with its own file: the whole job, each node, group of processes or process.
    file_per = variable(typ.Str[r"job|node|group|process"], value="job")

    #: Whether each call that moves data is timed, for the column `call_seconds`.
    times_calls = variable(Switch, value=False)

    #: The result file, in the stage directory.
    result_file = variable(str, value="result.jsonl")

    tool = "benchio"
    tags = {"io", "benchio"}
    metrics = ("write_bw", "read_bw")

    def write_command(self) -> None:
        self.program_path = str(Path(self.kernel.stagedir, self.kernel.program))
        self.executable_opts = [
            *self.sizes(),
            self.layer,
            *self.common_options(),
            '--directory="$run_directory"',
            f"--repeats={self.repeats}",
            *asking_for(self.hint_preset.get("env_vars", {})),
            f"--result={self.result_file}",
        ]

    def sizes(self) -> list[str]:
        """The sizes of the array on each process, as words for benchio."""
        n1, n2, n3 = MIB_BLOCK
        return [*map(str, (n1, n2, n3 * self.scale_settings["mib_per_task"])), "local"]

    def common_options(self) -> list[str]:
        """The options other than sizes, layer, directory and files of results."""
        return [
            *(["fsync"] if self.fsync else []),
            "--verify",
            *(["--latency"] if self.times_calls else []),
            "--keep",  # so that the files can be examined; the script's trap removes them
        ]

    def asked_of(self, layer: str) -> dict[str, object]:
        """The fields that each record of a layer must have, for any operation."""
        return {
            "layer": layer,
            "pattern": self.pattern,
            "interface": self.interface,
            "nodes": self.nodes,
            "processes": self.tasks,
            "bytes": round(self.gib * MIB_PER_GIB) * BYTES_PER_MIB,
            "files": self.number_of_files(self.file_per),
        }

    def number_of_files(self, file_per: str) -> int:
        """The number of files, by the unit with its own file."""
        return {"job": 1, "node": self.nodes, "process": self.tasks}[file_per]

    def result_problems(self, stage: Path) -> list[str]:
        """Each phase measured, all bytes on disk and verified."""
        fields = self.asked_of(self.layer)
        self.records = result.read_result(stage / self.result_file)
        phases = result.phases(self.records)
        listing = (stage / "files.txt").read_text(encoding="utf-8")
        problems = [
            *unproven(phases, result.asked(fields, self.fsync), self.repeats),
            *misplaced_files(listing, fields["files"], fields["bytes"], self.overhead_bytes),
        ]
        if not problems:
            self.tool_version = self.records[0]["version"]
            self.cache = result.cache_of_reads(self.records)
            self.samples = {f"{name}_bw": rates(phases, name) for name in result.OPERATIONS}
            self.seconds_io = result.seconds_measured(self.records)
            self.call_seconds = result.call_seconds(self.records)
        return problems

    @property
    def overhead_bytes(self) -> int:
        """How much larger than the data the files may be."""
        return 0
