"""Judges a canary by the files that `canary.sh` left. Pure functions, independent of ReFrame."""

import statistics
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from ..tools.benchio import result
from . import proof
from .failure import reason_in
from .transport_reports import REPORT_VARIABLES, in_effect

__all__ = ["REPORT_VARIABLES", "AskedCanary", "Finding", "finding_of"]

#: The statuses of a finding, which are exit statuses of monitoring plug-ins.
FIT, UNFIT, UNKNOWN = 0, 2, 3

#: The exit statuses of benchio and timeout(1) at their limits.
_LIMITS = (3, 124)
#: From this exit status on, a signal ended the program.
_SIGNAL = 128

#: The name of a fault, and words of reasons for it.
_NAMES = {
    "stale": ("Stale file handle", "not connected"),
    "read-only": ("Read-only",),
    "full": ("No space left", "GiB are free", "quota exceeded"),
    "unmounted": ("mounted there", "No such file or directory"),
}


@dataclass(frozen=True)
class AskedCanary:
    """A canary: the path of the file system, the volume, its limit and the transport."""

    root: str
    mib: int
    seconds: int
    mpi: str | None
    transport: str


@dataclass(frozen=True)
class Finding:
    """The status of a file system, the reason if it is not fit, its rates, and further columns.

    `at_most` is an upper bound of the rates in GiB/s, for a run that did not finish in time.
    """

    status: int
    why: str = ""
    rates: dict[str, float] = field(default_factory=dict)
    columns: dict[str, object] = field(default_factory=dict)
    at_most: float | None = None
    is_unstarted: bool = False


def finding_of(stage: Path, status: int, asked: AskedCanary) -> Finding:
    """Judge the files in the stage directory of a canary whose script ended with `status`."""
    said = (stage / "output.txt").read_text("utf-8", "replace")
    begun = (stage / "begun").exists()
    if not begun or status not in {0, *_LIMITS}:
        reason = reason_in(said) or f"exit status {status}"
        own = reason.removeprefix(f"iobands: {asked.root}: ")
        if status == 1 and "not sticky" not in own and (begun is reason.startswith("benchio:")):
            return Finding(UNFIT, named(own))
        is_unstarted = begun and 0 < status < _SIGNAL
        return Finding(UNKNOWN, f"no run: {own}", is_unstarted=is_unstarted)
    file = stage / "result.jsonl"
    phases = result.phases(result.read_result(file) if file.exists() else [])
    counts = Counter(each.repeat for each in phases)
    # at a limit, the last repeat may lack its read, and its files are gone
    whole = len(result.OPERATIONS)
    phases = [each for each in phases if not status or counts[each.repeat] == whole]
    if not phases:
        why = f"{asked.mib} MiB were not written and read within {asked.seconds} s"
        return Finding(UNKNOWN, why, at_most=2 * asked.mib / 1024 / asked.seconds)
    fields = {"layer": "proc", "processes": 1, "bytes": asked.mib << 20, "files": 1}
    repeats = max(each.repeat for each in phases)
    listed = (stage / "files.txt").read_text("utf-8")
    problems = [
        *proof.unproven(phases, result.asked(fields, fsync=True), repeats),
        *([] if status else proof.misplaced_files(listed, 1, asked.mib << 20)),
    ]
    if problems:
        return Finding(UNFIT, f"failed: {problems[0]}")
    seen = in_effect(asked.mpi, said, (stage / "libraries.txt").read_text("utf-8", "replace"))
    if asked.transport not in {"default", seen}:
        why = f"wrong transport: {asked.transport} requested, in effect: {seen or 'none known'}"
        return Finding(UNFIT if seen else UNKNOWN, why)
    cache = result.cache_of_reads([each.fields for each in phases])
    # a read from memory says nothing about the file system
    operations = result.OPERATIONS if cache != "none" else result.OPERATIONS[:1]
    used, free = map(int, (stage / "df.txt").read_text("utf-8").split("\n")[1].split()[1:3])
    columns = {
        "transport_in_effect": seen or "null",
        "tool_version": phases[0].fields["version"],
        "cache": cache,
        "fullness_percent": f"{100 * used / max(1, used + free):.2f}",
    }
    rates = {f"{each}_bw": statistics.median(proof.rates(phases, each)) for each in operations}
    return Finding(FIT, rates=rates, columns=columns)


def named(reason: str) -> str:
    """A reason, preceded by the name of its fault."""
    found = (name for name, words in _NAMES.items() if any(each in reason for each in words))
    return f"{next(found, 'failed')}: {reason}"
