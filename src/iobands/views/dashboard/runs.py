"""The runs of the series that the same jobs measure, in parts of half a year.

The tables are JSON, deflated, in base64 in a script, as a page opened from a disk can load nothing
else. Older runs make up most of a dashboard, so they keep less: figures with the printed digits,
and no targets or nodes.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from iobands.model import FIELDS, TIME, VALUE
from iobands.snapshot import SLOWEST, WHERE, Series, Snapshot

_PLACES: Final = ("jobid", "job_nodelist", *SLOWEST.values(), "attempt")
_EVIDENCE: Final = tuple(field for field in FIELDS if field.role in {"in_effect", "covariate"})
_NUMBERS: Final = tuple(field.name for field in _EVIDENCE if field.type == "number")
_INTEGERS: Final = tuple(field.name for field in _EVIDENCE if field.type == "integer")
_TEXTS: Final = tuple(field.name for field in _EVIDENCE if field.type == "text")


#: The other columns of a run, the most useful first.
COLUMNS: Final = (
    *_PLACES,
    *(field.name for field in _EVIDENCE if field.role == "covariate"),
    *sorted(
        (field.name for field in _EVIDENCE if field.role == "in_effect"),
        key=lambda name: name.endswith("version"),
    ),
)

_Table = dict[str, object]


@dataclass(frozen=True)
class _Detail:
    """The digits of a value and of the largest covariate, and whether places are kept."""

    of_values: int
    of_covariates: int
    places: bool


_RECENT: Final = _Detail(4, 3, places=True)
_EARLIER: Final = _Detail(3, 2, places=False)


def parts_of(
    site: Snapshot,
    group: Sequence[Series],
    slowest: Mapping[tuple[object, ...], pl.DataFrame],
) -> Iterator[tuple[str, str]]:
    """Yield the name of each part that has runs of the series of `group`, and its runs as text.

    Parts are half-years such as `2026-1`, and `earlier` for everything before them. Series with
    samples at the same times share a table. `slowest` is by `WHERE`, as in `results.speeds`.
    """
    tables: list[tuple[pl.DataFrame, dict[str, pl.Series]]] = []
    for series in group:
        frame = site.samples_of(series)
        if not len(frame):
            continue
        for known, values in tables:
            if known[TIME].equals(frame[TIME]) and known["jobid"].equals(frame["jobid"]):
                values[series.key.variable] = frame[VALUE]
                break
        else:
            tables.append(
                (_with_slowest(frame, series, slowest), {series.key.variable: frame[VALUE]})
            )
    parts: dict[str, list[_Table]] = {}
    for frame, values in tables:
        # the number of a half-year
        half = 2 * frame[TIME].dt.year() + (frame[TIME].dt.month() - 1) // 6
        this = 2 * site.now.year + (site.now.month - 1) // 6
        for name, mine, detail in (
            ("earlier", half < this - 1, _EARLIER),
            (f"{(this - 1) // 2}-{(this - 1) % 2 + 1}", half == this - 1, _RECENT),
            (f"{this // 2}-{this % 2 + 1}", half >= this, _RECENT),
        ):
            if mine.any():
                of_part = {name: each.filter(mine) for name, each in values.items()}
                table = _table(frame.filter(mine), of_part, detail)
                parts.setdefault(name, []).append(table)
    for name in sorted(parts, key=lambda name: (name != "earlier", name)):
        yield name, packed(parts[name])


def _with_slowest(
    frame: pl.DataFrame, series: Series, slowest: Mapping[tuple[object, ...], pl.DataFrame]
) -> pl.DataFrame:
    known = slowest.get(tuple(getattr(series.key, name) for name in WHERE))
    if known is None:
        return frame.with_columns(pl.lit(None, pl.String).alias(name) for name in SLOWEST.values())
    return frame.join(known, on=TIME, how="left", maintain_order="left")


def packed(data: object) -> str:
    """Return plain data as base64 of deflated JSON."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return base64.b64encode(zlib.compress(text.encode("utf-8", "replace"))).decode("ascii")


def _table(frame: pl.DataFrame, values: dict[str, pl.Series], detail: _Detail) -> _Table:
    """Return a column as its only value or as a list; times as the first and the differences."""
    places = _PLACES if detail.places else ()
    columns: dict[str, object] = {}
    for name in (*places, *_TEXTS, *_INTEGERS, *_NUMBERS):
        column = frame[name]
        if column.null_count() == len(column):
            continue
        if name in _NUMBERS:
            largest = float(column.abs().drop_nulls().to_numpy().max())
            size = math.floor(math.log10(largest or 1))
            column = column.round(max(0, detail.of_covariates - 1 - size))
        first = column[0]
        if first is not None and column.n_unique() == 1:
            columns[name] = first
        else:
            columns[name] = column.to_list()
    times = frame[TIME].dt.epoch("s")
    return {
        "times": [times[0], *times.diff()[1:].to_list()],
        "values": {
            name: each.round_sig_figs(detail.of_values).to_list() for name, each in values.items()
        },
        "columns": columns,
    }
