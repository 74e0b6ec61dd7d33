"""IOR's results (versions 3.3 to 4.1): reading its JSON, and what a run must have proved by it.

Pure functions over files; knows nothing of ReFrame or of a site. IOR writes rates and parameters
into its JSON, but of a verification nothing at all: its count of errors is the exit status modulo
256, which is 0 for a whole page of wrong data in 3.3, and a line of its output says the same. So
each run also reads its files against a signature that they were not written with, and unless IOR
complains then, its silence before is not believed.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

BYTES_PER_MIB = 2**20
MIB_PER_GIB = 1024

WRITE, READ, VERIFY, CONTROL = "write", "read", "verify", "control"

#: What is measured, by the variable of the perflog.
VARIABLES = {"write_bw": WRITE, "read_bw": READ}

#: What each phase asks of IOR, in the words of its JSON.
_FLAGS = {
    WRITE: {"writeFile": 1, "readFile": 0, "checkWrite": 0, "checkRead": 0},
    READ: {"writeFile": 0, "readFile": 1, "checkWrite": 0, "checkRead": 0},
    VERIFY: {"writeFile": 0, "readFile": 1, "checkWrite": 0, "checkRead": 1},
}

#: IOR's name of each interface.
APIS = {"posix": "POSIX", "mpiio": "MPIIO", "hdf5": "HDF5", "pnetcdf": "NCMPI"}

#: Before this version the functions that should fsync for HDF5 and PnetCDF were empty.
_FIRST_THAT_SYNCS_ALL = 4

#: HDF5 and netCDF write some bytes of their own into each file.
_BYTES_OF_A_LIBRARY = BYTES_PER_MIB

# 4.x begins the line with a capital letter.
_WRONG_DATA = re.compile(r"^WARNING: [Ii]ncorrect data on (?:read|write)\b.*", re.MULTILINE)
_NO_API = re.compile(r"unrecognized I/?O API", re.IGNORECASE)

# IOR writes volumes in MiB with four digits, so bytes come out of it with this much of an error.
_GRAIN = BYTES_PER_MIB / 10**4


class ResultError(ValueError):
    """A result file does not say what a run must prove; the message says what is wrong."""


@dataclass(frozen=True)
class Expectation:
    """What a run was asked for. Sizes are in bytes; `bytes` are those of one phase.

    With `stonewall` a phase may have moved less than that.
    """

    interface: str
    file_per_process: bool
    collective: bool
    fsync: bool
    nodes: int
    tasks: int
    segments: int
    block: int
    transfer: int
    repeats: int
    stonewall: bool = False

    @property
    def bytes(self) -> int:
        """What a phase moves when nothing ends it early."""
        return self.tasks * self.segments * self.block


@dataclass(frozen=True)
class Phase:
    """One phase of one repeat, as IOR's JSON tells of it; bandwidth in GiB/s."""

    version: str
    parameters: Mapping
    tasks: int
    bytes: int
    bandwidth_gib_s: float


def file_of(phase: str, repeat: int | str) -> str:
    """The name of the JSON file of a phase."""
    return f"ior-{phase}-{repeat}.json"


def output_of(phase: str, repeat: int | str) -> str:
    """The name of the file with what IOR said in a verification or its control."""
    return f"ior-{phase}-{repeat}.out"


def status_of(repeat: int | str) -> str:
    """The name of the file with the exit status of a verification."""
    return f"ior-{VERIFY}-{repeat}.status"


def read_phase(path: Path) -> Phase:
    """The one test of one repetition in a JSON file of IOR's.

    Raises:
        ResultError: there is no file, or it is not that.
    """
    try:
        said = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise ResultError(f"{path.name}: no result file: {error.strerror}") from error
    except ValueError as error:
        raise ResultError(f"{path.name}: not JSON, IOR did not finish it") from error
    try:
        (test,), (summary,) = said["tests"], said["summary"]
        results = test["Results"]
        # 3.3 has a list for each repetition.
        (result,) = results[0] if isinstance(results[0], list) else results
        return Phase(
            version=said["Version"],
            parameters=test["Parameters"],
            tasks=summary["numTasks"],
            bytes=round(summary["xsizeMiB"] * BYTES_PER_MIB),
            bandwidth_gib_s=float(result["bwMiB"]) / MIB_PER_GIB,
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ResultError(f"{path.name}: not a result of one test of IOR") from error


def read_run(stage: Path, repeats: int) -> dict[tuple[str, int], Phase]:
    """All phases of a run, by phase and repeat.

    Raises:
        ResultError: one is missing.
    """
    return {
        (phase, repeat): read_phase(stage / file_of(phase, repeat))
        for repeat in range(1, repeats + 1)
        for phase in _FLAGS
    }


def unproven(phases: Mapping[tuple[str, int], Phase], expected: Expectation) -> list[str]:
    """What the phases fail to prove, in words; empty when all is proven."""
    problems = [
        f"{phase}, repeat {repeat}: {problem}"
        for (phase, repeat), found in phases.items()
        for problem in _phase_problems(phase, found, expected)
    ]
    versions = {found.version for found in phases.values()}
    if len(versions) > 1:
        problems.append(f"the phases were run by different versions: {sorted(versions)}")
    for repeat in range(1, expected.repeats + 1):
        written, *others = (phases[phase, repeat] for phase in _FLAGS)
        if any(_signature(written) != _signature(other) for other in others):
            problems.append(f"repeat {repeat}: verified against another signature than written")
        if any(abs(written.bytes - other.bytes) > _GRAIN for other in others):
            moved = ", ".join(str(each.bytes) for each in (written, *others))
            problems.append(f"repeat {repeat}: bytes written, read and verified differ: {moved}")
    return problems


def _signature(phase: Phase) -> object:
    return phase.parameters.get("setTimeStampSignature/incompressibleSeed")


def can_reorder(interface: str) -> bool:
    """Whether a process can read what another wrote: IOR's PnetCDF reads its own all the same."""
    return interface != "pnetcdf"


def _phase_problems(phase: str, found: Phase, expected: Expectation) -> list[str]:
    asked = {
        "api": APIS[expected.interface],
        "filePerProc": int(expected.file_per_process),
        "collective": int(expected.collective),
        "reorderTasks": int(can_reorder(expected.interface)),
        "nodes": expected.nodes,
        "segmentCount": expected.segments,
        "blockSize": expected.block,
        "transferSize": expected.transfer,
        "repetitions": 1,
        "dryRun": 0,
        **({"fsync": int(expected.fsync)} if phase == WRITE else {}),
        **_FLAGS[phase],
    }
    problems = [
        f"{name} asked: {value}, in effect: {found.parameters.get(name)}"
        for name, value in asked.items()
        if found.parameters.get(name) != value
    ]
    if found.tasks != expected.tasks:
        problems.append(f"tasks asked: {expected.tasks}, in effect: {found.tasks}")
    missing = expected.bytes - found.bytes
    if abs(missing) > _GRAIN and not (expected.stonewall and 0 < missing < expected.bytes):
        problems.append(f"bytes asked: {expected.bytes}, moved: {found.bytes}")
    if not 0 < found.bandwidth_gib_s < float("inf"):
        problems.append(f"bandwidth is {found.bandwidth_gib_s} GiB/s")
    return problems


def wrong_data(said: str, status: str) -> str | None:
    """What IOR says of wrong data in a verification that ended with `status`; None if nothing."""
    found = _WRONG_DATA.search(said)
    if found:
        return found[0].removeprefix("WARNING: ").rstrip(" .").replace("Incorrect", "incorrect")
    return None if status == "0" else f"exit status {status}"


def complains(said: str) -> bool:
    """Whether IOR told in a verification that the data is wrong."""
    return bool(_WRONG_DATA.search(said))


def misplaced_files(listing: str, expected: Expectation, written: int) -> list[str]:
    """What is wrong with the files found on disk; `listing` has a line `SIZE NAME` for each.

    `written` is how many bytes the last repeat wrote.
    """
    sizes = [int(line.split(maxsplit=1)[0]) for line in listing.splitlines()]
    files = expected.tasks if expected.file_per_process else 1
    problems = []
    if len(sizes) != files:
        problems.append(f"files asked: {files}, on disk: {len(sizes)}")
    spare = _GRAIN
    if APIS[expected.interface] in ("HDF5", "NCMPI"):
        spare += _BYTES_OF_A_LIBRARY * files
    if expected.stonewall:
        # The end of the last block that was begun lies behind blocks that were not finished.
        spare += expected.bytes - written
    if not written - _GRAIN <= sum(sizes) <= written + spare:
        problems.append(f"bytes written: {written}, on disk: {sum(sizes)}")
    return problems


def resident_pages(said: str, nodes: int) -> int | None:
    """How many pages of the files were in memory, over all nodes; None where that is not known.

    A node prints the number of each file, and `node` when it is done.
    """
    words = said.split()
    numbers = [int(word) for word in words if word.isdecimal()]
    if words.count("node") != nodes or not numbers:
        return None
    return sum(numbers)


def lacks_api(said: str) -> bool:
    """Whether IOR says that it was built without the interface that it was asked for."""
    return bool(_NO_API.search(said))


def syncs(version: str, interface: str) -> bool:
    """Whether IOR's fsync (`-e`) does anything through the interface; its JSON says so anyway."""
    major = int(version.partition(".")[0])
    return interface in ("posix", "mpiio") or major >= _FIRST_THAT_SYNCS_ALL


def bandwidths(phases: Mapping[tuple[str, int], Phase], phase: str) -> list[float]:
    """The bandwidth of each repeat of a phase, in GiB/s."""
    return [found.bandwidth_gib_s for (name, _), found in phases.items() if name == phase]
