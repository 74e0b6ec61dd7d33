"""The base of the checks that run IOR: it writes, reads and verifies in separate launches.

A check states the pattern, the interface and the sizes; ior.sh has the launches.
"""

import shlex
from pathlib import Path

import reframe.utility.typecheck as typ
from reframe.core.builtins import fixture, run_before, variable

from ...base import site
from ...base.failure import failed_calls
from ...base.io_base import IoBase
from ...base.proof import misplaced_files, rates
from ...base.scale import MIB_PER_GIB
from ...base.speeds import RankTime
from ...base.stage import call, read_output
from ..program import ProgramMixin, SpackInstall
from . import result

BYTES_PER_MIB = 2**20

#: The times of the ranks of the last write, in the stage directory.
RANKS_FILE = "ior-ranks.csv"


class IorBase(IoBase, ProgramMixin):
    """Writes, reads and verifies on one file system with IOR."""

    if site.asks_spack_for("ior"):
        #: IOR, installed by Spack once for each programming environment.
        spack = fixture(SpackInstall, scope="environment", variables={"program": "ior"})

    #: Whether each process has its own file.
    file_per_process = False

    #: Whether the calls are collective; POSIX has no such calls.
    collective = False

    #: The bytes that one call moves.
    transfer = variable(int, value=BYTES_PER_MIB)

    #: The contiguous bytes of each process in a segment; 0 stands for the scale's volume.
    block = variable(int, value=0)

    #: The number of segments; every process has a block in each.
    segments = variable(int, value=1)

    #: Seconds after which a phase ends, with the same number of transfers on all processes; 0 lets
    #: it run to its end.
    stonewall_seconds = variable(int, value=0)

    #: Further options for every launch of IOR, as words for the shell; -S separates them by commas.
    ior_options = variable(typ.List[str], value=[])

    tool = program = "ior"
    tags = {"io", "ior"}
    metrics = ("write_bw", "read_bw")
    scripts = (Path(__file__).with_name("ior.sh"),)
    launches_often = True
    deciding = (
        *IoBase.deciding, "transfer", "block", "segments", "stonewall_seconds", "ior_options",
    )  # fmt: skip

    @property
    def block_bytes(self) -> int:
        """The contiguous bytes of each process in a segment."""
        return self.block or self.scale_settings["mib_per_task"] * BYTES_PER_MIB

    @property
    def phase_bytes(self) -> int:
        """The bytes that a phase moves if it does not end early."""
        return self.tasks * self.segments * self.block_bytes

    @property
    def ranks_are_alone(self) -> bool:
        """Whether each rank's time is the time for its own file, of the same size for all."""
        return self.file_per_process and not self.collective and not self.stonewall_seconds

    def rank_times(self, stage: Path) -> dict[str, list[RankTime]]:
        path = stage / RANKS_FILE
        if not self.ranks_are_alone or not path.exists():
            return {}
        return {"write_bw": result.rank_times(path)}

    def take_volume(self) -> None:
        self.gib = self.phase_bytes / BYTES_PER_MIB / MIB_PER_GIB

    def leave_out_points(self) -> None:
        # Hints concern MPI-IO's collective calls.
        if not self.collective and self.hints != site.DEFAULT_HINTS:
            self.valid_systems = []

    @run_before("run")
    def display_hints(self) -> None:
        if self.hint_preset.get("hints"):
            self.env_vars.setdefault("ROMIO_PRINT_HINTS", "1")

    def phases(self) -> list[str]:
        options = [
            *("-a", result.APIS[self.interface]),
            *("-b", self.block_bytes, "-t", self.transfer, "-s", self.segments),
            *(["-F"] if self.file_per_process else []),
            *(["-c"] if self.collective else []),
            # Each process reads the data of a process on another node, if there is one.
            *(["-C"] if result.can_reorder(self.interface) else []),
            "-k",  # the files are examined; the script's trap removes them
            *("-O", "summaryFormat=JSON"),
        ]
        writes = ["-e"] if self.fsync else []
        if self.stonewall_seconds:
            options += ["-O", "stoneWallingStatusFile=stonewall.txt"]
            writes += ["-D", self.stonewall_seconds, "-O", "stoneWallingWearOut=1"]
        keep = call("keep_rank_times", self.program_path, RANKS_FILE)
        words = [shlex.join(map(str, options)), '-o "$run_directory/ior.dat"', *self.ior_options]
        return [
            f"ior_options=({' '.join(words)})",
            f"write_options=({shlex.join(map(str, writes))})",
            *([keep] if self.ranks_are_alone else []),
            f"measure {self.repeats}",
        ]

    def asked(self) -> dict[str, dict]:
        """The fields that the JSON of each phase must have."""
        fields = {
            "filePerProc": int(self.file_per_process),
            "collective": int(self.collective),
            "nodes": self.nodes,
            "tasks": self.tasks,
            "segmentCount": self.segments,
            "blockSize": self.block_bytes,
            "transferSize": self.transfer,
        }
        return result.asked(fields, self.interface, self.fsync)

    def result_problems(self, stage: Path) -> list[str]:
        """Each phase measured, every byte on disk and verified."""
        problems = self.verification_problems(stage)
        if problems:  # an IOR that was killed for wrong data leaves no JSON
            return problems
        phases = result.read_run(stage, self.repeats)
        written = next(phase for phase in reversed(phases) if phase.name == result.WRITE).fields
        self.skip_if_never_synced(written["version"])
        files = self.tasks if self.file_per_process else 1
        spare = result.spare_bytes(self.interface, files)
        if self.stonewall_seconds:
            # The files end where the last block ends, after blocks that were not finished.
            spare += self.phase_bytes - written["bytes"]
        listing = (stage / "files.txt").read_text(encoding="utf-8")
        self.tool_version = written["version"]
        self.cache = self.cache_of_reads(stage)
        self.samples = {
            "write_bw": rates(phases, result.WRITE),
            "read_bw": rates(phases, result.READ),
        }
        return [
            *result.unproven(
                phases,
                self.asked(),
                self.repeats,
                self.phase_bytes,
                stonewall=bool(self.stonewall_seconds),
            ),
            *misplaced_files(listing, files, written["bytes"], spare, result.GRAIN),
            *failed_calls(read_output(stage / str(self.stdout), stage / str(self.stderr))),
        ]

    def cache_of_reads(self, stage: Path) -> str:
        """How all reads avoided data in memory, in the words of contract 1."""
        counts = [
            result.resident_pages(read_output(stage / f"pages-{repeat}.txt"), self.nodes)
            for repeat in range(1, self.repeats + 1)
        ]
        if all(count == 0 for count in counts):
            return "dropped"
        # An aggregator may read its own data, whichever process requested them.
        return "shifted" if self.nodes > 1 and not self.collective else "none"

    def skip_if_unable(self, stage: Path) -> None:
        """Skip the check if IOR was built without the interface."""
        said = read_output(stage / str(self.stderr), stage / str(self.stdout))
        if result.lacks_api(said):
            api = result.APIS[self.interface]
            library = " (PnetCDF)" if self.interface == "pnetcdf" else ""
            self.skip_as_not_installed(f"{self.program} was built without {api}{library}")

    def skip_if_never_synced(self, version: str) -> None:
        """Skip the check if the clock stopped without the requested fsync."""
        if self.fsync and not result.syncs(version, self.interface):
            api = result.APIS[self.interface]
            self.skip_as_not_installed(
                f"{self.program} 4.0 or later, as {version} does not fsync through {api}"
            )

    def verification_problems(self, stage: Path) -> list[str]:
        """The errors that the verifications found, or that they could not have found any."""
        problems = []
        for repeat in range(1, self.repeats + 1):
            said = read_output(stage / f"ior-verify-{repeat}.out")
            status = read_output(stage / f"ior-verify-{repeat}.status").strip()
            wrong = result.wrong_data(said, status)
            if wrong:
                problems.append(f"verification, repeat {repeat}: {wrong}")
        control = read_output(stage / f"ior-control-{self.repeats}.out")
        status = read_output(stage / f"ior-control-{self.repeats}.status").strip()
        if not problems and not result.complains(control):
            problems.append(
                "verification: proves nothing, as IOR does not report data with another signature "
                f"either (exit status {status})"
            )
        return problems
