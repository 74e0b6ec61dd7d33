"""Reads perflogs (contract 2): every line becomes a sample, a missed run or a rejected line.

Perflogs lie on shared file systems, and their writers may be killed, so any line may be damaged. A
damaged line is reported, and the others count.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import polars as pl

from iobands.model import (
    FIELD,
    MOST_KEPT,
    SCHEDULED,
    SERIES_FIELDS,
    TIME,
    VALUE,
    VARIABLE,
    Rejected,
    Rejections,
    entries,
    not_read,
    open_regular,
)
from iobands.snapshot import Columns
from iobands.source.kept import Kept, Reach, keep, read_kept
from iobands.source.lines import FILE, LINE, LONGEST, ROWS, SAID, Layout
from iobands.source.samples import Samples, speeds_of

_BLOCK: Final = 2**23  # bytes that are read at once
_ENDLESS: Final = 2**28  # bytes of a line; the rest of its file is not read
_TRIES: Final = 3  # while files are rotated
_OPEN: Final[Mapping[str, Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_NOT_UNPACKED: Final = frozenset({".zst", ".Z", ".lz4", ".lzma", ".lzo", ".zip"})
#: The endings of compressed files.
PACKED: Final = frozenset({*_OPEN, *_NOT_UNPACKED})
# Perflogs, the ones that ReFrame sets aside when the columns change, and the ones of logrotate.
_ENDINGS: Final = "|".join(map(re.escape, PACKED))
_NAME: Final = re.compile(rf"\.log(\.h[0-9]+|[-._][0-9][-._0-9]*)?({_ENDINGS})?$")
#: The directories of a system that belong to no partition.
NO_PERFLOGS: Final = frozenset({"canaries", "leftovers", "reports"})
_FORMER: Final = frozenset({"target_speeds"})
#: The order of rows: of two that repeat one run, the first counts.
ORDER: Final = (TIME, FILE, LINE)
#: Rows that agree in these columns repeat one run, whatever their files.
_SAME: Final = (TIME, VALUE, "jobid", "result", *SERIES_FIELDS, VARIABLE)


@dataclass(frozen=True)
class Parsed:
    """The lines of perflogs as typed rows, with their origin; `Samples` are made of them.

    `rows` has the columns of `ROWS`, in `ORDER`, `said` those of `SAID`. `paths` has the files by
    number, `rejected` the lines that are not rows, `unread` the files that could not be read.
    `reached` says how far each of the others was read.
    """

    rows: Columns
    said: pl.DataFrame
    paths: list[Path]
    rejected: Rejections
    unread: list[Rejected]
    reached: Mapping[int, Reach] = field(default_factory=dict)

    def samples(self) -> Samples:
        """Return the samples; a run on two equal lines counts once."""
        rows = self.rows.with_columns(self.rows["purpose"].fill_null(SCHEDULED))
        # a build has no variable; a run that passes without a value was a dry run
        proved = rows[VALUE].is_not_null() | (rows["result"] != "pass")
        is_run = rows[VARIABLE].is_not_null() & proved
        repeats = _repeats(rows, is_run)
        for file, line, first_file, first_line in repeats.select(pl.exclude("row")).iter_rows():
            self.rejected.add(file, line, f"repeats {self.paths[first_file]}:{first_line}")
        kept = is_run.scatter(repeats["row"], values=False)
        has_value = rows[VALUE].is_not_null()
        measured, without = rows.filter(kept & has_value), rows.filter(kept & ~has_value)
        speeds, wrong = speeds_of(self.said, measured)
        for each in wrong:
            self.rejected.add(*each)
        return Samples(
            measured.drop(FILE, LINE),
            without.drop(FILE, LINE).rows(range(len(without))),
            # sorted by file, so that a store, which reads by system, gives the same order
            tuple(sorted([*self.unread, *self.rejected.of(self.paths)], key=lambda e: e.path)),
            speeds,
        )


def read_perflogs(
    directory: Path, system: str | None = None, *, keeps: bool = False, most: int = MOST_KEPT
) -> Samples:
    """Return the samples in the perflogs below `directory`, as `parse_perflogs` reads them.

    Of `system` alone, these are its samples, and what is rejected in its directory.

    Raises:
        FileNotFoundError: there is no such directory. Bad content of a perflog never raises.
    """
    found = parse_perflogs(directory, keeps=keeps, most=most).samples()
    if system is None:
        return found
    own = {(), (system,)}  # the first is of `directory` itself
    said = (e for e in found.rejected if e.path.relative_to(directory).parts[:1] in own)
    return replace(found.of(system), rejected=tuple(said))


def parse_perflogs(
    directory: Path,
    *,
    keeps: bool = False,
    after: Mapping[Path, Reach] | None = None,
    most: int = MOST_KEPT,
) -> Parsed:
    """Parse all perflogs below `directory`.

    Rotated files (`*.log.h0`, which ReFrame leaves when the columns change; `*.log.1`,
    `*.log-20261122.gz`, ... of logrotate) are read too. A file or directory that cannot be read
    is rejected as unread. Cached lines are not parsed again, and `keeps` caches new ones. With
    `after`, only the lines beyond these places are returned. Of rejected lines, the first `most`
    are listed with their reasons. If perflogs are rotated meanwhile, all are read again.

    Raises:
        FileNotFoundError: there is no such directory. Bad content of a perflog never raises.
    """
    if not directory.is_dir():
        raise FileNotFoundError(
            f"{directory}: there are no perflogs; measure first with `iobands run`, or "
            "give their directory with --perflogs"
        )
    for _ in range(_TRIES):
        there = inodes(directory)
        parsed = _parse(directory, keeps=keeps, after=after, most=most)
        if inodes(directory) == there:
            break
    return parsed


def inodes(directory: Path) -> dict[Path, int]:
    """Return the inode of each perflog, which is another one once it was rotated."""
    found = {}
    for path in perflog_files(directory):
        with suppress(OSError):
            found[path] = path.stat().st_ino
    return found


def _parse(
    directory: Path, *, keeps: bool, after: Mapping[Path, Reach] | None, most: int
) -> Parsed:
    unread: list[Rejected] = []
    paths = perflog_files(directory, unread)
    if after is None:
        kept = read_kept(directory, paths)
    else:
        kept = Kept(reached={n: after[path] for n, path in enumerate(paths) if path in after})
    layouts: dict[tuple[str, ...], Layout] = {}
    rejected = Rejections(most)
    for each in kept.rejected:
        rejected.add(*each)
    reached: dict[int, Reach] = {}
    for file, path in enumerate(paths):
        with readable(path, unread):
            reached[file] = _read(path, file, layouts, rejected, kept.reached.get(file))
    parts = [each.parsed() for each in layouts.values()]
    new = pl.concat([pl.DataFrame(schema=ROWS), *(rows for rows, _ in parts)])
    new = new.sort(ORDER) if len(kept.rows) else new  # then all are mostly in order
    rows = Columns([*kept.rows.sources, *Columns.of(new).sources], ROWS)
    rows = rows.at(rows.select(*ORDER).select(pl.arg_sort_by(ORDER)).to_series().to_numpy())
    said = pl.concat([pl.DataFrame(schema=SAID), kept.said, *(said for _, said in parts)])
    parsed = Parsed(rows, said, paths, rejected, unread, reached)
    if keeps and not rejected.is_full:
        with suppress(OSError):  # the caller reports the same error for the judge's memory
            keep(directory, paths, kept, Kept(rows, said, rejected.listed, reached))
    return parsed


def perflog_files(directory: Path, rejected: list[Rejected] | None = None) -> list[Path]:
    """Return the perflogs below `directory`, rotated ones included, in the order of their names.

    Rotated ones may be in a directory below the partition's, logrotate's `olddir`. Directories that
    cannot be listed are added to `rejected`.
    """
    failed = [] if rejected is None else rejected
    return [
        path
        for place in entries(directory, failed)
        for partition in entries(place, failed)
        if partition.name not in NO_PERFLOGS
        for found in entries(partition, failed)
        for path in ([found] if _NAME.search(found.name) else entries(found, failed))
        if _NAME.search(path.name)
    ]


def unknown_columns(directory: Path) -> list[str]:
    """Return the columns in the first lines of perflogs that this version does not know."""
    found = set()
    for path in perflog_files(directory):
        with readable(path, []), opened(path) as stream:
            found |= {*(columns_of(stream.readline(LONGEST)) or ())} - FIELD.keys() - _FORMER
    return sorted(found)


@contextmanager
def readable(path: Path, rejected: list[Rejected]) -> Iterator[None]:
    """Add an error of reading or unpacking a perflog to `rejected` instead of raising it."""
    try:
        yield
    except OSError as error:
        rejected.append(not_read(path, error))
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        rejected.append(Rejected(path, 0, f"cannot be unpacked: {error}"))


@contextmanager
def opened(path: Path) -> Iterator[Any]:  # of a module of its own for each packer
    """Open a perflog for reading bytes, packed or not.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    if path.suffix in _NOT_UNPACKED:
        raise OSError(errno.ENOTSUP, f"{path.suffix} files are not supported; unpack it")
    with open_regular(path) as stream:
        if packer := _OPEN.get(path.suffix):
            with packer(stream, "rb") as unpacked:
                yield unpacked
        else:
            yield stream


def _read(
    path: Path,
    file: int,
    layouts: dict[tuple[str, ...], Layout],
    rejected: Rejections,
    reached: Reach | None,
) -> Reach:
    """Add the lines of a file beyond `reached` to the layouts of their headers.

    Return how far the file was read.
    """
    if reached and reached.whole:
        return reached
    about = path.stat()
    end, lines, columns = (reached.end, reached.lines, reached.columns) if reached else (0, 0, ())
    layout = layouts.setdefault(columns, Layout(columns, rejected))
    unfinished = b""
    for block, size in _blocks(path, end):
        whole = block.rfind(b"\n") + 1
        unfinished = block[whole:]
        end += size - len(unfinished)
        for text, header in _runs(block[:whole]):
            if header:
                lines += 1
                former, layout = layout, layouts.setdefault(header, Layout(header, rejected))
                if layout.problem or former.columns:
                    why = layout.problem or "another header line in the middle of the file"
                    rejected.add(file, lines, why)
            else:
                lines += layout.add(text, file, lines + 1)
    if unfinished:
        # it may look complete but lack the last digits of a number
        rejected.add(file, lines + 1, "the line is cut off: it has no line break")
    elif not lines:
        rejected.add(file, 0, "empty file")
    elif lines == 1 and not layout.problem:
        rejected.add(file, 1, "only a header line")
    end, packed = (about.st_size, True) if path.suffix in PACKED else (end, False)
    return Reach(end, lines, layout.columns, about.st_mtime_ns, packed)


def _blocks(path: Path, begin: int) -> Iterator[tuple[bytes, int]]:
    """Yield blocks of whole lines from byte `begin` on, each with its number of bytes in the file.

    The last line may lack its line break. A line longer than `LONGEST` is cut, and ends in a NUL
    byte, so that it is rejected.

    Raises:
        OSError: the file cannot be read, or a line does not end, as in a file with a large hole.
    """
    with opened(path) as stream:
        stream.seek(begin)
        while block := stream.read(_BLOCK) + stream.readline(LONGEST):
            size = len(block)
            if not block.endswith(b"\n"):
                rest, more = b"", 0
                while not rest.endswith(b"\n") and (rest := stream.readline(LONGEST)):
                    if (more := more + len(rest)) > _ENDLESS:
                        yield block.replace(b"\r\n", b"\n") + b"\0\n", size + more
                        raise OSError(errno.EFBIG, f"has a line of more than {_ENDLESS >> 20} MiB")
                if rest:
                    block, size = block + b"\0\n", size + more
            yield (block.replace(b"\r\n", b"\n") if b"\r" in block else block), size


def _runs(block: bytes) -> Iterator[tuple[bytes, tuple[str, ...] | None]]:
    """Split whole lines at headers; yield (lines, None), and (header, columns) for each header."""
    begin = end = 0
    while (found := block.find(TIME.encode(), end)) >= 0:
        start = max(begin, block.rfind(b"\n", begin, found) + 1)
        end = block.index(b"\n", found) + 1
        if columns := columns_of(block[start:end]):
            if start > begin:
                yield block[begin:start], None
            yield block[start:end], columns
            begin = end
    if begin < len(block):
        yield block[begin:], None


def columns_of(line: bytes) -> tuple[str, ...] | None:
    """Return the columns that a line names, if it is a header."""
    cells = tuple(line.decode(errors="replace").rstrip("\n").split("|"))
    return cells if TIME in cells and VALUE in cells else None


def _repeats(rows: Columns, is_run: pl.Series) -> pl.DataFrame:
    """Return the rows that repeat an earlier run, with file and line of both."""
    # rows of one run have the same time and value, whose hashes are quick to compare
    hashes = rows.select(TIME, VALUE).hash_rows()
    ordered = hashes.sort()
    twice = ordered.filter(ordered == ordered.shift())
    same = (hashes.is_in(twice.implode()) & is_run).arg_true()
    found = rows.rows(same.to_numpy()).with_columns(same.alias("row"))
    first = pl.col("row", FILE, LINE).first().over(_SAME).name.prefix("first")
    repeats = found.with_columns(first).filter(pl.col("row") != pl.col("firstrow"))
    return repeats.select("row", FILE, LINE, f"first{FILE}", f"first{LINE}")
