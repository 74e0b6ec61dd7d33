"""The base of the checks that run IOR: written, read and verified in launches of their own.

A check states the pattern, the interface and the sizes. Each repeat is three launches of IOR: a
write, a read, and a verification outside of every clock. A last one reads with a signature that
the files do not have, and must fail: the proof that the others could have.
"""

import statistics
from pathlib import Path

from reframe.core.builtins import (
    fixture,
    performance_function,
    run_after,
    run_before,
    sanity_function,
    variable,
)
from reframe.core.exceptions import SanityError

from . import ior_result as result
from . import site
from .io_base import TERMINATED, IoBase
from .mixins.launches import LaunchesMixin
from .mixins.program import ProgramMixin
from .mixins.scale import MIB_PER_GIB
from .program_output import read_output
from .spack_install import SpackInstall

BYTES_PER_MIB = 2**20


def _pages_file(repeat: str) -> str:
    """The name of the file with the pages that were in memory before the read of a repeat."""
    return f"pages-{repeat}.txt"


class IorBase(IoBase, ProgramMixin, LaunchesMixin):
    """Writes, reads and verifies on one file system with IOR."""

    if site.asks_spack_for("ior"):
        #: IOR, installed by Spack once for each programming environment.
        spack = fixture(SpackInstall, scope="environment", variables={"program": "ior"})

    #: Whether each process has a file of its own.
    file_per_process = variable(bool, value=False)

    #: Whether the processes make each call together; not of POSIX, which has no such calls.
    collective = variable(bool, value=False)

    #: The bytes that one call moves.
    transfer = variable(int, value=BYTES_PER_MIB)

    #: The contiguous bytes of each process in a segment; 0 stands for what the scale gives it.
    block = variable(int, value=0)

    #: How many segments there are, in each of which every process has a block.
    segments = variable(int, value=1)

    #: Seconds after which a phase is ended, all processes at the same number of transfers; 0 lets
    #: it run to its end.
    stonewall_seconds = variable(int, value=0)

    #: Further options for every launch of IOR.
    ior_options = variable(list, value=[])

    tool = "ior"
    program = "ior"
    tags = {"io", "ior"}

    @property
    def block_bytes(self) -> int:
        """The contiguous bytes of each process in a segment."""
        return self.block or self.scale_settings["mib_per_task"] * BYTES_PER_MIB

    def size_for(self, nodes: int) -> None:
        super().size_for(nodes)
        self.take_volume()

    # Last, when the check has said its interface: hints are of MPI-IO, and there of such calls.
    @run_after("init", always_last=True)
    def leave_out_hints_without_effect(self) -> None:
        if not self.collective and self.hints != site.DEFAULT_HINTS:
            self.valid_systems = []

    # Last, when the check has said its sizes.
    @run_after("init", always_last=True)
    def take_volume(self) -> None:
        self.gib = self.tasks * self.segments * self.block_bytes / BYTES_PER_MIB / MIB_PER_GIB

    @run_before("run")
    def write_commands(self) -> None:
        self.prerun_cmds = self.before_program(self.gib)
        self.postrun_cmds = [*self.phases(), *self.after_program()]
        if self.hint_preset.get("hints"):
            self.env_vars.setdefault("ROMIO_PRINT_HINTS", "1")

    @property
    def common_options(self) -> list[str]:
        """What all phases have in common."""
        return [
            f"-a {result.APIS[self.interface]}",
            f"-b {self.block_bytes} -t {self.transfer} -s {self.segments}",
            *(["-F"] if self.file_per_process else []),
            *(["-c"] if self.collective else []),
            # Each process reads what one of another node wrote, where there is one.
            *(["-C"] if result.can_reorder(self.interface) else []),
            "-k",  # the files are looked at; the script's trap removes them
            '-o "$run_directory/ior.dat"',
            "-O summaryFormat=JSON",
            *self.ior_options,
        ]

    def phases(self) -> list[str]:
        """The shell commands that call `launch` for each phase, up to the first that fails."""
        options = " ".join(self.common_options)
        stop = limit = ""
        if self.stonewall_seconds:
            stop = "-O stoneWallingStatusFile=stonewall.txt "
            limit = f"-D {self.stonewall_seconds} -O stoneWallingWearOut=1 "
        sync = "-e " if self.fsync else ""

        def phase(name: str, flags: str, output: str = "") -> str:
            file = result.file_of(name, "$1")
            return f"launch {options} {stop}{flags} -O summaryFile={file}{output}"

        said = {name: result.output_of(name, "$1") for name in (result.VERIFY, result.CONTROL)}
        return self.repeated(
            [
                "signature=$(( RANDOM * 32768 + RANDOM + 1 ))",
                phase(result.WRITE, f'{limit}{sync}-w -G "$signature"') + " || return",
                self.leave_page_cache(),
                phase(result.READ, '-r -G "$signature"') + " || return",
                phase(result.VERIFY, '-r -R -G "$signature"', f" > {said[result.VERIFY]} 2>&1"),
                f'status=$?; echo "$status" > {result.status_of("$1")}',
                # The time limit is near: what time is left is for the end of the script.
                f'[ "$status" -ne {TERMINATED} ] || return "$status"',
                f'[ "$1" -lt {self.repeats} ] || '
                + phase(
                    result.CONTROL,
                    '-r -R -G "$(( signature + 1 ))"',
                    f" > {said[result.CONTROL]} 2>&1",
                ),
                ":",
            ]
        )

    def leave_page_cache(self) -> str:
        """The shell command between a write and its read: each node lets go of the files.

        It counts the pages that are still there, and that is the proof; where these commands are
        missing or a file system keeps its pages, as one in memory does, the label says `none`.
        """
        return self.on_each_node(
            'find "$1" -type f -exec dd if={} iflag=nocache count=0 \\; ; '
            'find "$1" -type f -exec fincore --noheadings --bytes --output PAGES {} +; echo node',
            _pages_file("$1"),
            '"$run_directory"',
        )

    def cache_of_reads(self, stage: Path) -> str:
        """What kept all reads from finding their data in memory, as contract 1 says."""
        counts = [
            result.resident_pages(read_output(stage / _pages_file(str(repeat))), self.nodes)
            for repeat in range(1, self.repeats + 1)
        ]
        if all(count == 0 for count in counts):
            return "dropped"
        # An aggregator may read what it wrote itself, whichever process asked for it.
        return "shifted" if self.nodes > 1 and not self.collective else "none"

    def expectation(self) -> result.Expectation:
        """What the JSON files must prove."""
        return result.Expectation(
            interface=self.interface,
            file_per_process=self.file_per_process,
            collective=self.collective,
            fsync=self.fsync,
            nodes=self.nodes,
            tasks=self.tasks,
            segments=self.segments,
            block=self.block_bytes,
            transfer=self.transfer,
            repeats=self.repeats,
            stonewall=bool(self.stonewall_seconds),
        )

    @sanity_function
    def prove(self) -> bool:
        """Every phase measured, every byte on disk and verified, the layout as asked."""
        stage = Path(self.stagedir)
        expected = self.expectation()
        self.skip_if_lacking_interface(stage)
        try:
            self.require_success(stage)
            problems = self.verification_problems(stage)
            if not problems:  # of an IOR that was killed for wrong data there is no JSON
                run = result.read_run(stage, self.repeats)
                problems += result.unproven(run, expected)
                listing = (stage / self.files_file).read_text(encoding="utf-8")
                written = run[result.WRITE, self.repeats]
                self.skip_if_never_synced(written.version)
                problems += result.misplaced_files(listing, expected, written.bytes)
                self.tool_version = written.version
                self.cache = self.cache_of_reads(stage)
            problems += self.environment_problems(stage)
        except (result.ResultError, OSError) as error:
            raise SanityError(str(error)) from error
        if problems:
            raise SanityError("; ".join(problems))
        return True

    def skip_if_lacking_interface(self, stage: Path) -> None:
        """Skip the check where IOR was built without the interface."""
        said = read_output(stage / str(self.stderr), stage / str(self.stdout))
        if result.lacks_api(said):
            api = result.APIS[self.interface]
            library = " (PnetCDF)" if self.interface == "pnetcdf" else ""
            self.skip_as_not_installed(f"{self.program} was built without {api}{library}")

    def skip_if_never_synced(self, version: str) -> None:
        """Skip the check where the clock stopped without the fsync that was asked for."""
        if self.fsync and not result.syncs(version, self.interface):
            api = result.APIS[self.interface]
            self.skip_as_not_installed(
                f"{self.program} 4.0 or later, as {version} does not fsync through {api}"
            )

    def verification_problems(self, stage: Path) -> list[str]:
        """What the verifications found, or that they could have found nothing."""
        problems = []
        for repeat in range(1, self.repeats + 1):
            said = read_output(stage / result.output_of(result.VERIFY, repeat))
            status = read_output(stage / result.status_of(repeat)).strip()
            wrong = result.wrong_data(said, status)
            if wrong:
                problems.append(f"verification, repeat {repeat}: {wrong}")
        control = read_output(stage / result.output_of(result.CONTROL, self.repeats))
        if not problems and not result.complains(control):
            problems.append(
                "verification: proves nothing, as IOR does not complain of data that was written "
                "with another signature either"
            )
        return problems

    @run_before("performance")
    def judge_by_bands(self) -> None:
        if not self.is_dry_run():
            self.judge_repeats(
                {name: self.bandwidths(phase) for name, phase in result.VARIABLES.items()}
            )

    @performance_function("GiB/s")
    def write_bw(self) -> float:
        """The median write bandwidth of the repeats."""
        return statistics.median(self.bandwidths(result.WRITE))

    @performance_function("GiB/s")
    def read_bw(self) -> float:
        """The median read bandwidth of the repeats."""
        return statistics.median(self.bandwidths(result.READ))

    def bandwidths(self, phase: str) -> list[float]:
        """The bandwidth of each repeat of a phase, in GiB/s."""
        return result.bandwidths(result.read_run(Path(self.stagedir), self.repeats), phase)
