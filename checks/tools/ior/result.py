"""IOR's results (versions 3.3 to 4.1): reading its JSON, and what a run must prove by it.

Pure functions over files, independent of ReFrame and of a site. IOR writes rates and parameters
into its JSON, but nothing about a verification. Its exit status is the number of errors modulo 256,
which is 0 for a whole page of wrong data in 3.3, and a line of its output has the same number. So
each run also reads its files with a wrong signature. If IOR does not report that, its earlier
silence proves nothing.
"""

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...base import proof
from ...base.failure import reason_in
from ...base.proof import Phase, ResultError
from ...base.speeds import RankTime

BYTES_PER_MIB = 2**20
MIB_PER_GIB = 1024

WRITE, READ, VERIFY = "write", "read", "verify"

#: What each phase requests of IOR, in the words of its JSON.
_FLAGS = {
    WRITE: {"writeFile": 1, "readFile": 0, "checkWrite": 0, "checkRead": 0},
    READ: {"writeFile": 0, "readFile": 1, "checkWrite": 0, "checkRead": 0},
    VERIFY: {"writeFile": 0, "readFile": 1, "checkWrite": 0, "checkRead": 1},
}

#: IOR's name of each interface.
APIS = {"posix": "POSIX", "mpiio": "MPIIO", "hdf5": "HDF5", "pnetcdf": "NCMPI"}

#: Before this version the functions that should fsync for HDF5 and PnetCDF were empty.
_FIRST_THAT_SYNCS_ALL = 4

#: HDF5 and PnetCDF add some bytes to each file.
BYTES_OF_A_LIBRARY = BYTES_PER_MIB

# 4.x begins the line with a capital letter.
_WRONG_DATA = re.compile(r"^WARNING: [Ii]ncorrect data on (?:read|write)\b.*", re.MULTILINE)
_NO_API = re.compile(r"unrecognized I/?O API", re.IGNORECASE)

# IOR writes volumes in MiB with four digits, so bytes computed from them have this error.
GRAIN = BYTES_PER_MIB / 10**4


def file_of(phase: str, repeat: int | str) -> str:
    """The name of the JSON file of a phase."""
    return f"ior-{phase}-{repeat}.json"


def read_phase(path: Path, name: str, repeat: int) -> Phase:
    """A phase by its JSON file, with IOR's parameters and `tasks`, `bytes`, `version` as fields.

    Raises:
        ResultError: there is no file, or it is not about one test with one repetition.
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
        fields = {
            **test["Parameters"],
            "version": said["Version"],
            "tasks": summary["numTasks"],
            "bytes": round(summary["xsizeMiB"] * BYTES_PER_MIB),
        }
        return Phase(name, repeat, fields, float(result["bwMiB"]) / MIB_PER_GIB)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ResultError(f"{path.name}: not a result of one test of IOR") from error


def read_run(stage: Path, repeats: int) -> list[Phase]:
    """All phases of a run.

    Raises:
        ResultError: one is missing.
    """
    return [
        read_phase(stage / file_of(name, repeat), name, repeat)
        for repeat in range(1, repeats + 1)
        for name in _FLAGS
    ]


def rank_times(path: Path) -> list[RankTime]:
    """The times of the ranks of a write, each with its own file; IOR does not name their nodes.

    Reads are left out: with -C, the file that a process reads depends on the placement.

    Raises:
        OSError: the file cannot be read.
        ValueError, KeyError: it is not what saveRankPerformanceDetailsCSV writes.
    """
    with path.open(encoding="utf-8", newline="") as stream:
        return [
            RankTime(float(row["runtime-with-openclose"]), f"ior.dat.{int(row['rank']):08}")
            for row in csv.DictReader(stream, restval="")
        ]


def asked(fields: Mapping[str, object], interface: str, fsync: bool) -> dict[str, dict]:
    """The fields that each phase must have: `fields` in IOR's words, and common ones."""
    common = {
        **fields,
        "api": APIS[interface],
        "reorderTasks": int(can_reorder(interface)),
        "repetitions": 1,
        "dryRun": 0,
    }
    own = {WRITE: {"fsync": int(fsync)}}
    return {name: {**common, **own.get(name, {}), **flags} for name, flags in _FLAGS.items()}


def unproven(
    phases: Sequence[Phase],
    asked: Mapping[str, Mapping],
    repeats: int,
    bytes_asked: int,
    stonewall: bool,
) -> list[str]:
    """What the phases do not prove, a line each.

    With `stonewall` a phase may have moved less than `bytes_asked`.
    """
    problems = proof.unproven(phases, asked, repeats)
    for phase in phases:
        moved = phase.fields["bytes"]
        missing = bytes_asked - moved
        if abs(missing) > GRAIN and not (stonewall and 0 < missing < bytes_asked):
            problems.append(
                f"{phase.name}, repeat {phase.repeat}: bytes requested: {bytes_asked}, "
                f"moved: {moved}"
            )
    versions = {phase.fields["version"] for phase in phases}
    if len(versions) > 1:
        problems.append(f"the phases were run by different versions: {sorted(versions)}")
    for repeat in sorted({phase.repeat for phase in phases}):
        written, *others = (phase for phase in phases if phase.repeat == repeat)
        if any(_signature(written) != _signature(other) for other in others):
            problems.append(f"repeat {repeat}: verified against another signature than written")
        if any(abs(written.fields["bytes"] - other.fields["bytes"]) > GRAIN for other in others):
            moved = ", ".join(str(each.fields["bytes"]) for each in (written, *others))
            problems.append(f"repeat {repeat}: bytes written, read and verified differ: {moved}")
    return problems


def _signature(phase: Phase) -> object:
    return phase.fields.get("setTimeStampSignature/incompressibleSeed")


def can_reorder(interface: str) -> bool:
    """Whether a process can read another's data; through PnetCDF, IOR always reads its own."""
    return interface != "pnetcdf"


def spare_bytes(interface: str, files: int) -> int:
    """How much larger than the data the files of a library may be."""
    return BYTES_OF_A_LIBRARY * files if interface in ("hdf5", "pnetcdf") else 0


def wrong_data(said: str, status: str) -> str | None:
    """IOR's message about wrong data in a verification that ended with `status`, or None."""
    found = _WRONG_DATA.search(said)
    if found:
        return found[0].removeprefix("WARNING: ").rstrip(" .").replace("Incorrect", "incorrect")
    why = reason_in(said)
    return None if status == "0" else f"exit status {status}" + (f": {why}" if why else "")


def complains(said: str) -> bool:
    """Whether IOR reported wrong data in a verification."""
    return bool(_WRONG_DATA.search(said))


def resident_pages(said: str, nodes: int) -> int | None:
    """How many pages of the files were in memory, over all nodes; None if not known.

    A node prints the number for each file, and `node` when it is done.
    """
    words = said.split()
    numbers = [int(word) for word in words if word.isdecimal()]
    if words.count("node") != nodes or not numbers:
        return None
    return sum(numbers)


def lacks_api(said: str) -> bool:
    """Whether IOR reports that it was built without the requested interface."""
    return bool(_NO_API.search(said))


def syncs(version: str, interface: str) -> bool:
    """Whether IOR's fsync (`-e`) works through the interface; its JSON claims it in any case."""
    major = int(version.partition(".")[0])
    return interface in ("posix", "mpiio") or major >= _FIRST_THAT_SYNCS_ALL
