"""Series: which samples belong together, and what a series is called.

May know: the contracts and pandas tables of the readers; nothing of bands or verdicts.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from iobands.readers.kinds import coded, combined
from iobands.readers.table import arrow
from iobands.vocabulary import LATER_FIELDS, SERIES_FIELDS, VARIABLE_UNITS, canonical

if TYPE_CHECKING:
    import pandas as pd

# What a label says beyond file system, pattern and variable, where series differ in it.
_FURTHER: Final = (
    "case",
    "stripe_count_asked",
    "transport",
    "environ",
    "hints",
    "interface",
    "tool",
    "nodes",
    "tasks",
    "gib",
    "partition",
    "system",
)
#: What stands for all targets in a stripe count.
ALL_TARGETS: Final = -1
_SLUG_LENGTH: Final = 120  # file systems allow 255


@dataclass(frozen=True)
class SeriesKey:
    """One variable at one combination of the series fields; `gib` is in GiB."""

    system: str
    partition: str
    environ: str | None
    tool: str | None
    pattern: str | None
    interface: str | None
    file_system: str | None
    stripe_count_asked: float | None
    transport: str | None
    hints: str | None
    nodes: float | None
    tasks: float | None
    gib: float | None
    variable: str
    case: str | None = None

    @property
    def unit(self) -> str:
        """The unit of the values."""
        return VARIABLE_UNITS[self.variable]

    def fields(self) -> dict[str, object]:
        """Return the series fields and `variable`, as `Bands.band_for` takes them."""
        return {name: getattr(self, name) for name in (*SERIES_FIELDS, "variable")}

    def matches(self, fields: Mapping[str, object]) -> bool:
        """Tell whether all series fields (not the variable) equal those in `fields`."""
        return all(
            (name in fields or name in LATER_FIELDS)
            and canonical(fields.get(name)) == canonical(getattr(self, name))
            for name in SERIES_FIELDS
        )

    def sort_key(self) -> tuple[str, ...]:
        """Return what orders series as people look for them."""
        order = ("system", "partition", "file_system", "pattern", "variable", *_FURTHER)
        return tuple(_padded(getattr(self, name)) for name in order)


_KEY_FIELDS: Final = tuple(each.name for each in fields(SeriesKey))


@dataclass(frozen=True)
class Grouping:
    """The series of a table; `codes` has for each row the place of its series in `keys`."""

    keys: tuple[SeriesKey, ...]
    codes: np.ndarray

    def split(self, table: pd.DataFrame) -> Iterator[tuple[SeriesKey, pd.DataFrame]]:
        """Yield each series with its rows, in the order of the table."""
        # one move of all rows, and then views: a selection for each series costs far more
        ordered = table.take(np.argsort(self.codes, kind="stable"))
        ends = np.cumsum(np.bincount(self.codes, minlength=len(self.keys)))
        for key, begin, end in zip(self.keys, [0, *ends], ends, strict=False):
            yield key, ordered.iloc[begin:end]


def grouping(table: pd.DataFrame) -> Grouping:
    """Return which series there are in `table`, in the order in which they come up first."""
    by = ["perf_var" if name == "variable" else name for name in _KEY_FIELDS]
    codes, first = combined(_coded(table[name]) for name in by)
    cells = zip(*(table[name].take(first) for name in by), strict=True)
    keys = tuple(SeriesKey(*(_plain(value) for value in values)) for values in cells)
    return _grouping(keys, codes)


def grouping_of(kinds: pa.Table) -> Grouping:
    """Return which series there are among kinds of rows, as they come up first."""
    by = ["perf_var" if name == "variable" else name for name in _KEY_FIELDS]
    codes, first = combined(coded(kinds.column(name)) for name in by)
    cells = kinds.select(by).take(arrow(first)).to_pylist()
    return _grouping(tuple(SeriesKey(*each.values()) for each in cells), codes)


def _grouping(keys: tuple[SeriesKey, ...], codes: np.ndarray) -> Grouping:
    # the smallest type, because it is sorted by
    return Grouping(keys, codes.astype(np.min_scalar_type(max(1, len(keys)))))


def split(table: pd.DataFrame) -> Iterator[tuple[SeriesKey, pd.DataFrame]]:
    """Yield each series of `table` with its rows, in the order of time."""
    yield from grouping(table).split(table)


def _coded(column: pd.Series) -> tuple[np.ndarray, int]:
    """Return the place of each cell's value among so many."""
    import pandas as pd  # noqa: PLC0415 (takes its time)

    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy(), len(column.cat.categories)
    codes, uniques = pd.factorize(column)
    return codes, len(uniques)


def labels(keys: Iterable[SeriesKey]) -> dict[SeriesKey, str]:
    """Return a short name for each series, such as `disk fpp write_bw`.

    Further fields are named only where they tell series apart that would else share a name.
    """
    alike: defaultdict[tuple[object, ...], list[SeriesKey]] = defaultdict(list)
    for key in keys:
        alike[(key.file_system, key.pattern, key.variable)].append(key)
    found = {}
    for group in alike.values():
        telling = _telling(group)
        found.update((key, _label(key, telling)) for key in group)
    return found


def slug(key: SeriesKey) -> str:
    """Return a file name for the series, which stays the same whatever else is there."""
    *values, case = astuple(key)
    values += [case] if case else []  # a field that came later, and older names stay as they were
    text = "-".join("none" if value is None else _number(value) for value in values)
    readable = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in text)
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return f"{readable[:_SLUG_LENGTH]}-{digest[:8]}"


def _plain(value: Any) -> Any:  # noqa: ANN401 (a cell of whatever type pandas has for it)
    import pandas as pd  # noqa: PLC0415

    if pd.isna(value):
        return None
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else str(value)


def _label(key: SeriesKey, telling: Sequence[str]) -> str:
    words = [key.file_system or "none", key.pattern or "none"]
    words += [_word(name, getattr(key, name)) for name in telling]
    return " ".join([*words, key.variable])


def _telling(group: Sequence[SeriesKey]) -> list[str]:
    """Return the fields, as few as may be, that tell all series of `group` apart."""
    telling: list[str] = []
    distinct = 1
    for name in _FURTHER:
        found = _number_of_kinds(group, [*telling, name])
        if found > distinct:
            telling.append(name)
            distinct = found
    # an environment may say the transport as well, which a label then need not repeat
    for name in list(telling):
        fewer = [other for other in telling if other != name]
        if _number_of_kinds(group, fewer) == distinct:
            telling = fewer
    return telling


def _number_of_kinds(group: Sequence[SeriesKey], names: Sequence[str]) -> int:
    return len({tuple(getattr(key, name) for name in names) for key in group})


def _word(name: str, value: object) -> str:
    if name == "stripe_count_asked":
        if value is None:
            return "unstriped"
        return "stripes=all" if value == ALL_TARGETS else f"stripes={_number(value)}"
    if name in {"transport", "environ", "hints"} and value not in {None, "default"}:
        return str(value)  # a name of its own, which needs no heading
    return f"{name}={'none' if value is None else _number(value)}"


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _padded(value: object) -> str:
    """Return text that sorts numbers by size, and missing values first."""
    if value is None:
        return ""
    return f"{value:020.6f}" if isinstance(value, int | float) else str(value)
