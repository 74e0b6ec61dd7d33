"""Reading perflogs (contract 2): every line becomes a sample, a miss or a rejected line.

Perflogs lie on shared file systems and are written by jobs that get killed, so any line may be
damaged. A damaged line costs that line alone, and is reported. May know: pandas, the contracts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iobands.readers import cache
from iobands.readers.adapters.csv_table import CsvTable
from iobands.readers.cache import Kept, KnownFile
from iobands.readers.fields import FIELDS, REQUIRED, TIME
from iobands.readers.files import Part, Place, read_file
from iobands.readers.kinds import KIND, ROWS, Rows, factored
from iobands.readers.lines import Contract, Format
from iobands.readers.rejected import Rejected
from iobands.readers.repeats import find_repeats
from iobands.readers.table import (
    FILE,
    arrow,
    concatenated,
    from_rows,
    joined,
    numbers,
    places,
    there,
    to_pandas,
)
from iobands.vocabulary import LATER_FIELDS

if TYPE_CHECKING:
    import pandas as pd

#: Smaller perflogs are read as fast as a cache of them.
WORTH_KEEPING: Final = 2**20  # bytes
#: The cache is written anew once this much was appended; until then that is read each time.
WORTH_ADDING: Final = 4 * 2**20  # bytes


@dataclass(frozen=True)
class Perflogs:
    """What perflogs hold.

    `measured` has one row a value, in the order of time; `missed` has the lines of runs that
    proved nothing, whose `perf_value` is missing. `others` counts the lines of checks that measure
    nothing, such as builds, and of dry runs. `rejected` has the repeats of other lines too.
    """

    measured: Rows
    missed: Rows
    others: int
    rejected: tuple[Rejected, ...]

    @cached_property
    def samples(self) -> pd.DataFrame:
        """The rows with a value, with the columns of the contract.

        `job_completion_time` is in UTC and `perf_value` in `perf_unit`; texts are categories.
        """
        return self.measured.frame()

    @cached_property
    def misses(self) -> pd.DataFrame:
        """The rows without a value, with the same columns."""
        return self.missed.frame()


def read_perflogs(
    directory: Path,
    system: str | None = None,
    format_: Format | None = None,
    columns: Collection[str] = FIELDS,
) -> Perflogs:
    """Read all perflogs below `directory`, or only those of `system`.

    Rotated files (`*.log.h0`, ...), which ReFrame leaves when the columns change, are read too.
    `format_` is how the files are laid out, contract 2 if it is not given; `columns` are those
    that are wanted: of what differs from run to run no others are there. A run that two lines
    tell of alike, as in a copy of a file, counts once. What was read before comes from a cache in
    the user's cache directory, if there is one.

    Raises:
        FileNotFoundError: there is no such directory. Bad content never raises.
    """
    if not directory.is_dir():
        raise FileNotFoundError(f"{directory}: no such directory")
    wanted = {*columns, *REQUIRED, *LATER_FIELDS}
    kept, endings = _read_all(directory, system, format_ or Contract(), wanted)
    rows = kept.rows
    if isinstance(format_, CsvTable) and system is not None:
        # where a table lies says nothing of the system
        mine = pc.equal(rows.kinds.column("system").cast(pa.string()), system)
        rows = rows.only(mine.to_numpy()[rows.of_kind])
    value = rows.table.column("perf_value")
    measures = there(value.combine_chunks()) if value.null_count else np.ones(len(rows), bool)
    return Perflogs(
        measured=rows.only(measures) if value.null_count else rows,
        missed=rows.only(~measures),
        others=sum(known.others for known in kept.files),
        rejected=tuple(_rejected(directory, kept, endings)),
    )


def perflog_files(directory: Path, system: str | None = None) -> list[Path]:
    """Return the perflogs below `directory`, rotated ones included, in the order of their names."""
    found = (*directory.glob("*/*/*.log"), *directory.glob("*/*/*.log.h[0-9]*"))
    return sorted(
        path
        for path in found
        if system is None or path.relative_to(directory).parts[0] == system
        if path.parent.name != "reports"
    )


def as_table(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """Return `rows` as a table with the columns and types of the contract, ordered by time."""
    table = to_pandas(concatenated([from_rows(rows, range(len(rows)))]))
    return table.sort_values(TIME, kind="stable", ignore_index=True)


def _read_all(
    directory: Path, system: str | None, format_: Format, fields: Collection[str]
) -> tuple[Kept, list[tuple[str, int, str]]]:
    """Return all rows, and what is to be said of the ends of files as they are now."""
    if isinstance(format_, CsvTable):
        paths = sorted(directory.glob(format_.glob))
    else:
        paths = perflog_files(directory, system)
    where = cache.cache_file(directory, f"{system or ''}\0{format_!r}", ".parquet")
    # of files that are not there, or no files, their reading will tell
    size = sum(path.stat().st_size for path in paths if path.is_file())
    columns = [name for name in ROWS.names if name in fields or name == KIND]
    if size < WORTH_KEEPING:
        new = _read_on(directory, paths, format_, None, columns)
        return new.kept, new.endings
    old = _still_right(cache.load(where, columns), directory, paths)
    new = _read_on(directory, paths, format_, old, columns) if old else None
    if new is None or new.anew or new.appended >= WORTH_ADDING:
        # what is kept has all columns, whichever are wanted now
        old = old and new and not new.anew and cache.load(where, ROWS.names)
        whole = _read_on(directory, paths, format_, old or None, ROWS.names)
        cache.save(where, whole.kept)
        rows = replace(whole.kept.rows, table=whole.kept.rows.table.select(columns))
        return replace(whole.kept, rows=rows), whole.endings
    return new.kept, new.endings


def _still_right(kept: Kept | None, directory: Path, paths: Sequence[Path]) -> Kept | None:
    """Return the cache if each of its files is there as it was, or was only appended to."""
    if kept is None:
        return None
    try:
        right = {directory / known.path for known in kept.files} <= set(paths) and all(
            known.is_unchanged(directory / known.path) or known.is_continued(directory / known.path)
            for known in kept.files
        )
    except OSError:
        return None
    return kept if right else None


@dataclass
class _ReadOn:
    """What is known after reading on: all of it, the ends of files, how much was appended.

    `anew` tells that all was read, and nothing taken from a cache.
    """

    kept: Kept
    endings: list[tuple[str, int, str]]
    appended: int
    anew: bool


def _read_on(
    directory: Path,
    paths: Sequence[Path],
    format_: Format,
    old: Kept | None,
    columns: Sequence[str],
) -> _ReadOn:
    """Read what `old` does not have, and return all rows with `columns`, which `old` has."""
    files = list(old.files) if old else []
    at = cache.positions(files)
    fresh: list[pa.Table] = []
    endings: list[tuple[str, int, str]] = []
    appended = 0
    for path in paths:
        name = str(path.relative_to(directory))
        known = files[at[name]] if name in at else None
        if known and known.size == known.place.offset and _is_unchanged(known, path):
            endings += [(name, *ending) for ending in _ending(known, format_)]
            continue
        before = _seen(path)
        part = read_file(path, format_, known.place if known else Place())
        appended += part.place.offset - (known.place.offset if known else 0)
        index = at.setdefault(name, len(files))
        if index == len(files):
            files.append(KnownFile(name, 0, 0, 0, "", Place(), 0, ()))
        rows, others = _of_interest(part, index)
        part.tables.clear()
        fresh += rows
        endings += [(name, *ending) for ending in part.ending]
        files[index] = _known(path, name, before, part, files[index], others)
    found = _joined(old, fresh, columns)
    if found is None:
        return _read_on(directory, paths, format_, None, columns)
    return _ReadOn(Kept(tuple(files), *found), endings, appended, old is None)


def _is_unchanged(known: KnownFile, path: Path) -> bool:
    try:
        return known.is_unchanged(path)
    except OSError:
        return False


def _ending(known: KnownFile, format_: Format) -> list[tuple[int, str]]:
    columns = known.place.columns
    if known.place.lines == 1 and columns and not format_.missing(columns):
        return [(1, "a header line only")]
    return [] if known.place.offset else [(0, "empty file")]


def _seen(path: Path) -> tuple[int, int, int]:
    """Return inode, time and size: taken before reading, so that what comes after is noticed."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def _known(
    path: Path, name: str, seen: tuple[int, int, int], part: Part, old: KnownFile, others: int
) -> KnownFile:
    try:
        mark = cache.mark(path, part.place.offset)
    except OSError:
        mark = ""
    reasons = (*old.reasons, *sorted(part.reasons))
    return KnownFile(name, *seen, mark, part.place, old.others + others, reasons)


def _of_interest(part: Part, file: int) -> tuple[list[pa.Table], int]:
    """Return the rows that are samples or misses, as of that file, and how many are neither."""
    chosen, others = [], 0
    for table in part.tables:
        variable, value, result = (
            table.column(name).combine_chunks() for name in ("perf_var", "perf_value", "result")
        )
        # a run that passes has values, or was not run at all
        said = np.array([*(text == "pass" for text in result.dictionary.to_pylist()), False])
        is_dry = ~there(value) & said[places(result)]
        wanted = there(variable) & ~is_dry
        rows = table if wanted.all() else table.filter(arrow(wanted))
        others += len(table) - len(rows)
        number = arrow(np.full(len(rows), file, np.int32))
        if len(rows):
            chosen.append(rows.set_column(rows.schema.get_field_index(FILE), FILE, number))
    return chosen, others


def _joined(
    old: Kept | None, fresh: list[pa.Table], columns: Sequence[str]
) -> tuple[Rows, tuple[tuple[int, int, int, int], ...]] | None:
    """Return all rows in the order of time, and within that of files and lines, without repeats.

    None where rows came that are not all after the old ones: then everything has to be read anew,
    to tell what comes first and what repeats what. `fresh`, in the order of files and lines, is
    emptied.
    """
    if old and not fresh:
        return old.rows, old.repeats
    table = joined(fresh, TIME)
    repeats = find_repeats(table)
    if len(repeats.rows):
        keep = np.ones(len(table), bool)
        keep[repeats.rows] = False
        table = table.filter(arrow(keep))
    if not old:
        table, kinds = factored(table)
        return Rows(table.select(columns), kinds), repeats.told
    before = old.rows.table
    if len(before) and len(table) and numbers(table, TIME)[0] <= numbers(before, TIME)[-1]:
        return None
    table, kinds = factored(table, old.rows.kinds)
    rows = Rows(concatenated([before, table.select(columns)]), kinds)
    return rows, (*old.repeats, *repeats.told)


def _rejected(
    directory: Path, kept: Kept, endings: Sequence[tuple[str, int, str]]
) -> list[Rejected]:
    """Return what was not read, in the order of files and lines."""
    said = [(known.path, line, reason) for known in kept.files for line, reason in known.reasons]
    for file, line, first_file, first_line in kept.repeats:
        first = directory / kept.files[first_file].path
        said.append((kept.files[file].path, line, f"repeats {first}:{first_line}"))
    said += endings
    said.sort(key=lambda each: (Path(each[0]), each[1]))
    return [Rejected(directory / name, line, reason) for name, line, reason in said]
