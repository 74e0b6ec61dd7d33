"""Prepares the perflogs for a session, and completes them after it.

Before a session, they are tested for writing, and an incomplete last line gets its line break.
After it, values of the run reports that they lack are appended: ReFrame writes a line after each
check, and goes on if it cannot.
"""

from __future__ import annotations

import bz2
import fcntl
import gzip
import json
import lzma
import os
import stat
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from iobands import model
from iobands.measure.lock import refusing, user_name
from iobands.measure.run_reports import by_age, load_report, report_files
from iobands.model import TIME, VALUE, VARIABLE, SessionError, naming, path_part

_ROOM: Final = 2**18  # bytes that must be free: far more than the lines and report of a session
_PROBE: Final = ".writable."
#: The columns that identify the line of a sample.
_IDENTITY: Final = (TIME, "jobid", "display_name", "environ", VARIABLE, VALUE)
#: The columns of the performance tuple in a run report.
_LIMITS: Final = ("perf_ref", "perf_lower_thres", "perf_upper_thres")
_FIGURES: Final = (VALUE, *_LIMITS, "perf_unit", "perf_result")
_UNDEFINED: Final = "<undefined>"
#: With these options the perflogs are elsewhere, or nothing was measured.
_ELSEWHERE: Final = ("--perflogdir", "--dry-run")

#: The age of reports that complete a perflog restored from a backup.
_BACKUP_SECONDS: Final = 31 * 86_400
_MOST_REPORTS: Final = 1000
#: The longest line that readers accept, in bytes.
_LONGEST: Final = 2**22
#: How to open files that logrotate has compressed, by suffix.
_OPEN: Final[Mapping[str, Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}

_Cells = Mapping[str, str]


def require_writable(perflogs: Path, system: str) -> None:
    """Raise SessionError if perflogs or run reports of `system` could not be written."""
    below = perflogs / path_part(system)
    require_owner(perflogs, below.name)
    files = sorted([*below.glob("*/*.log"), *below.glob("*/.*.lock")])
    with refusing(perflogs):
        directories = [perflogs, below, *sorted(p for p in below.glob("*") if p.is_dir())]
        (below / "reports").mkdir(parents=True, exist_ok=True)
        for directory in directories:
            require_room(directory)
        for path in files:
            if not path.is_file():
                raise SessionError(f"{path}: is not a regular file; remove it")
            with naming(path):
                os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK))


def require_owner(perflogs: Path, system: str | None) -> None:
    """Raise SessionError if root would write to perflogs of another user, of any system if None."""
    top = system or "*"
    for pattern in (top, f"{top}/*/*.log", f"{top}/*/.*.lock") if os.geteuid() == 0 else ():
        for path in sorted(perflogs.glob(pattern)):
            if (path.is_dir() or pattern != top) and (owner := path.lstat().st_uid):
                name = user_name(owner)
                raise SessionError(
                    f"{path} belongs to {name}, who could not write what root adds; "
                    f"run it as {name}: sudo -u {name} iobands run"
                )


def takes_locks(perflogs: Path) -> bool:
    """Whether files there can be locked; on Lustre this needs the mount option `flock`."""
    with suppress(OSError), tempfile.TemporaryFile(dir=perflogs) as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def open_to_all(perflogs: Path) -> list[str]:
    """Return a note if all users may write to perflogs: added lines would change the verdicts.

    A sticky directory is accepted: there, users can add files, but not change the files of others.
    """
    found = []
    below = [path for pattern in ("*", "*/*", "*/*/*.log") for path in perflogs.glob(pattern)]
    for path in (perflogs, *sorted(below)):
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:  # the temporary file of a session that tried the lock
            continue
        sticky = stat.S_ISDIR(mode) and mode & stat.S_ISVTX
        if mode & stat.S_IWOTH and not (sticky or stat.S_ISLNK(mode)):
            found.append(str(path))
    remedy = f"all users may write there: chmod -R o-w {perflogs}"
    return [f"{_first(found)}: {remedy}"] if found else []


def _first(found: Sequence[str]) -> str:
    return found[0] + (f" and {len(found) - 1} more" if found[1:] else "")


def end_lines(perflogs: Path, system: str) -> None:
    """Append a line break to each perflog that ends in an incomplete line."""
    for path in sorted((perflogs / path_part(system)).glob("*/*.log")):
        with naming(path), path.open("rb+") as stream:
            if stream.seek(0, os.SEEK_END):
                stream.seek(-1, os.SEEK_END)
                if stream.read(1) != b"\n":
                    stream.write(b"\n")


def require_room(directory: Path) -> None:
    """Write a file as large as a session's results, and remove it, or raise OSError."""
    with naming(directory), tempfile.NamedTemporaryFile(dir=directory, prefix=_PROBE) as probe:
        probe.write(bytes(_ROOM))
        probe.flush()
        os.fsync(probe.fileno())


def reconcile(reports: Iterable[Path], perflogs: Path) -> tuple[list[str], list[str]]:
    """Append to the perflogs the values of `reports` that they lack.

    Return notes on the appended values, and on values that could not be appended. Unusable reports
    and test cases are skipped; they are reported elsewhere.
    """
    wanted: dict[Path, list[_Cells]] = {}
    for report in reports:
        for path, cells in _samples(report, perflogs):
            wanted.setdefault(path, []).append(cells)
    notes: list[str] = []
    lost: list[str] = []
    for path, samples in wanted.items():
        if not (missing := _missing(path, samples)):
            continue
        names = [*map(_name, missing)]
        try:
            _append(path, missing)
            notes.append(f"{_first(names)}: missing in its perflog, written from the report")
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            lost += [f"{path}: {name} could not be recorded: {why}" for name in names]
    return notes, lost


def recent_reports(perflogs: Path) -> list[Path]:
    """Return the reports of the last month, from which a restored perflog is completed."""
    first, newest = time.time() - _BACKUP_SECONDS, by_age(report_files(perflogs))[-_MOST_REPORTS:]
    return [path for when, path in newest if when > first]


def _samples(report: Path, perflogs: Path) -> Iterator[tuple[Path, _Cells]]:
    """Yield the path of the perflog and the cells of the line for each value of a report."""
    try:
        session, cases = load_report(report)
    except model.Unusable:
        return
    if any(word.startswith(_ELSEWHERE) for word in str(session.get("cmdline")).split()):
        return
    for case in (case for case in cases if case.get(TIME)):
        names = [str(case.get(name, "")).split(" ")[0] for name in ("system", "partition", "name")]
        try:
            path = perflogs.joinpath(*map(path_part, names))
        except model.FileError:
            continue
        measured = case.get("perfvalues")
        for key, figures in measured.items() if isinstance(measured, dict) else ():
            if not isinstance(figures, list) or [*figures, None][0] is None:
                continue
            values = {**case, "version": session.get("version"), VARIABLE: key.rpartition(":")[2]}
            values |= dict(zip(_FIGURES, figures, strict=False))
            line = {name: _text(value) for name, value in values.items()}
            yield path.with_name(f"{names[-1]}.log"), line


def _missing(path: Path, samples: Iterable[_Cells]) -> list[_Cells]:
    """Return the samples that are neither in the perflog nor in its rotated files."""
    there: set[tuple[str, ...]] = set()
    for each in {*path.parent.glob(f"{path.stem}*"), *path.parent.glob(f"*/{path.stem}*")}:
        # readers cannot read the damaged part of a file either, so its samples count as missing
        with suppress(OSError, EOFError, zlib.error, lzma.LZMAError):
            if each.is_file():
                with _OPEN.get(each.suffix, Path.open)(each, "rb") as stream:
                    _read(stream, there)
    return [cells for cells in samples if _identity(cells) not in there]


def _append(path: Path, samples: Sequence[_Cells]) -> None:
    """Append the lines of samples to a perflog."""
    if path.exists() and not path.is_file():
        raise ValueError("is not a regular file")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as stream:
        stream.seek(0)
        columns, is_whole = _read(stream, set())
        new = "" if is_whole else "\n"
        if not columns:  # ReFrame writes no second header if a perflog is rotated meanwhile
            columns = [field.name for field in model.FIELDS]
            new += "|".join(columns) + "\n"
        rows = ("|".join(cells.get(name, "null") for name in columns) for cells in samples)
        stream.write((new + "".join(f"{row}\n" for row in rows)).encode())
        stream.flush()
        os.fsync(stream.fileno())


def _read(stream: IO[bytes], there: set[tuple[str, ...]]) -> tuple[list[str], bool]:
    """Add the identity of each sample in a complete line to `there`.

    Return the columns of the last header, and whether the last line is complete.
    """
    columns: list[str] = []
    is_whole = True
    while line := stream.readline(_LONGEST):
        was_whole, is_whole = is_whole, line.endswith(b"\n")
        cells = line[:-1].decode(errors="replace").split("|")
        if not (was_whole and is_whole):
            continue
        if {*_IDENTITY} <= {*cells}:
            columns = cells
        elif columns and len(cells) == len(columns):
            there.add(_identity(dict(zip(columns, cells, strict=True))))
    return columns, is_whole


def _identity(cells: _Cells) -> tuple[str, ...]:
    return tuple("" if (cell := cells.get(name, "")) in model.NULLS else cell for name in _IDENTITY)


def _name(cells: _Cells) -> str:
    return f"{cells.get('display_name')} {cells[VARIABLE]} {cells[VALUE]} {cells.get('perf_unit')}"


def _text(value: object) -> str:
    """Return a value as ReFrame writes it into a cell, with blanks for `|` and line breaks."""
    if value is None or value == _UNDEFINED:
        return "null"
    if isinstance(value, list):
        return ",".join(_text(each) for each in value)
    text = value if isinstance(value, str) else json.dumps(value)
    return " ".join(text.replace("|", " ").split()) if {"|", "\n", "\r"} & {*text} else text
