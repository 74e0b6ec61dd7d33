"""Keeping charts between calls, so that only the runs that are new have to be drawn.

A chart follows from the values of its runs, the band, the limit and the code alone. It is kept
with a digest of them, and used again for a series that begins with the same runs: whatever was
inserted, removed, left out by a person or moved to another epoch gives another digest, and the
chart is drawn anew. Nothing depends on what is kept: a file that is missing, damaged, of another
version or that cannot be written costs time alone. May know: charts, and where caches lie.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from iobands import detection as charts
from iobands.detection import DESIGNS, LEAST, Alarm, Chart, Quartiles, Ratio, begin, extend
from iobands.detection.alarm import Found
from iobands.detection.chart import Learnt, logarithms_of
from iobands.readers.cache import cache_file, read_parquet
from iobands.readers.cache import replace as put_in_place
from iobands.status.following import Draw

#: Goes up whenever the layout of what is kept changes.
VERSION: Final = 2
#: Fewer runs than this are drawn as fast as others are read, and until so many are new they are
#: drawn each time.
WORTH_KEEPING: Final = 20_000

_SCHEMA: Final = pa.schema(
    [
        ("series", pa.string()),
        ("digest", pa.binary()),
        ("runs", pa.int64()),
        ("state", pa.string()),
        # as bytes, which are read as they are; lists of numbers would take several times as long
        ("increments", pa.large_binary()),
        ("down", pa.large_binary()),
        ("up", pa.large_binary()),
        ("usable", pa.large_binary()),
        ("reference", pa.large_binary()),
    ]
)
_KEY: Final = b"iobands"


@dataclass(frozen=True)
class _Known:
    """A chart, and the digest of what it follows from."""

    digest: bytes
    chart: Chart


class KeptCharts:
    """The charts of the series of one survey: those of earlier calls, and those of this one."""

    def __init__(self, path: Path) -> None:
        """Take what is kept at `path`, if there is something that is any good.

        It is read while the caller goes on: with a second core the perflogs' cache is, meanwhile.
        """
        self._path = path
        self._loading = ThreadPoolExecutor(1).submit(_load, path)
        self._known: dict[str, _Known] = {}
        self._drawn = 0

    @classmethod
    def of(cls, perflogs: Path, *what: object) -> KeptCharts:
        """Return those of a directory of perflogs, read and judged as `what` says."""
        return cls(cache_file(perflogs, "\0".join(["charts", *map(repr, what)]), ".parquet"))

    def draw(self, series: str) -> Draw:
        """Return what gives the chart of a series, whose name no other has."""
        return partial(self._chart, series)

    def save(self) -> None:
        """Keep the charts that were asked for, if enough of them is new."""
        if self._drawn >= WORTH_KEEPING:
            put_in_place(self._path, partial(_write, self._known))

    def _chart(
        self,
        series: str,
        values: NDArray[np.float64],
        band: Quartiles | None,
        limit: float,
        least: float = LEAST,
    ) -> Chart:
        told = hashlib.sha256(repr((limit, least, _numbers(band))).encode())
        chart = begin(band, limit=limit, least=least)
        row = self._row(series)
        if row and row["runs"].as_py() <= len(values):
            seen = told.copy()
            seen.update(values[: row["runs"].as_py()].tobytes())
            if seen.digest() == row["digest"].as_py():
                told, chart = seen, _chart_of(row, values, chart)
        new = values[chart.runs :]
        if len(new):
            told.update(new.tobytes())
            chart = extend(chart, new)
            self._drawn += len(new)
        self._known[series] = _Known(told.digest(), chart)
        return chart

    def _row(self, series: str) -> Mapping[str, pa.Scalar] | None:
        place = self._rows.get(series)
        if place is None:
            return None
        return {name: cells[place] for name, cells in zip(_SCHEMA.names, self._cells, strict=True)}

    @cached_property
    def _cells(self) -> Sequence[pa.Array]:
        """The columns, because asking a table for a cell takes longer than the cell is worth."""
        table = self._loading.result()
        return [column.chunk(0) for column in table.columns] if table else []

    @cached_property
    def _rows(self) -> Mapping[str, int]:
        """The row of each series."""
        names = self._cells[0].to_pylist() if self._cells else []
        return {name: row for row, name in enumerate(names)}


def _numbers(band: Quartiles | None) -> tuple[float | None, ...] | None:
    if band is None:
        return None
    return (band.lower_quartile, band.median, band.upper_quartile, band.maximum)


def _code() -> str:
    """Return what tells the code apart that draws: its text, and how numpy reckons here.

    A home directory may be shared by machines whose processors round logarithms otherwise.
    """
    found = hashlib.sha256(f"{VERSION} {np.__version__}".encode())
    for path in sorted(Path(charts.__file__).parent.glob("*.py")):
        found.update(path.read_bytes())
    found.update(np.log(np.linspace(0.001, 1000, 999)).tobytes())
    return found.hexdigest()


def _load(path: Path) -> pa.Table | None:
    try:
        table = read_parquet(path)
        code = table.schema.metadata[_KEY].decode()
        right = table.schema.remove_metadata() == _SCHEMA and code == _code()
    except Exception:  # whatever a damaged file makes a library raise: it is written anew
        return None
    return table.combine_chunks() if right else None


def _write(known: Mapping[str, _Known], path: Path) -> None:
    rows = [
        {
            "series": series,
            "digest": each.digest,
            "runs": each.chart.runs,
            "state": json.dumps(_state(each.chart)),
            "increments": each.chart.increments.astype("<f4").tobytes(),
            "down": each.chart.down.astype("<f8").tobytes(),
            "up": each.chart.up.astype("<f8").tobytes(),
            "usable": each.chart.usable.tobytes(),
            "reference": each.chart.reference.astype("<f8").tobytes(),
        }
        for series, each in known.items()
    ]
    table = pa.Table.from_pylist(rows, schema=_SCHEMA.with_metadata({_KEY: _code()}))
    pq.write_table(
        table,
        path,
        compression="lz4",
        write_statistics=False,
        write_page_checksum=True,
        use_dictionary=False,
    )


def _state(chart: Chart) -> dict[str, object]:
    """Return what a chart has beside its long arrays, and what follows from them."""
    return {
        "sums": chart.sums.tolist(),
        "starts": chart.starts.tolist(),
        "joined": chart.joined,
        "open": chart.open and {**asdict(chart.open), "before": chart.open.before.tolist()},
        "recovery": chart.recovery.tolist(),
        "recovery_start": chart.recovery_start,
        "ended": [asdict(alarm) for alarm in chart.ended],
        "settled": [asdict(alarm) for alarm in chart.settled],
        "levels": chart.levels,
    }


def _chart_of(row: Mapping[str, pa.Scalar], values: NDArray[np.float64], empty: Chart) -> Chart:
    """Return the chart that a row keeps of the first of `values`; `empty` is the one of none."""
    said = json.loads(row["state"].as_py())
    runs = row["runs"].as_py()
    ended, settled = (
        tuple(Alarm(**{**each, "ratio": Ratio(**each["ratio"])}) for each in said[name])
        for name in ("ended", "settled")
    )
    still = said["open"] and Found(**{**said["open"], "before": np.array(said["open"]["before"])})
    return replace(
        empty,
        learnt=Learnt(_array(row["reference"], "<f8"), empty.band),
        logarithms=logarithms_of(values[:runs]),
        increments=_array(row["increments"], "<f4").reshape(runs, len(DESIGNS)),
        down=_array(row["down"], "<f8"),
        up=_array(row["up"], "<f8"),
        sums=np.array(said["sums"]),
        starts=np.array(said["starts"], dtype=int),
        usable=_array(row["usable"], "?"),
        joined=said["joined"],
        open=still,
        recovery=np.array(said["recovery"]),
        recovery_start=said["recovery_start"],
        ended=ended,
        settled=settled,
        levels=tuple((since, shift) for since, shift in said["levels"]),
    )


def _array(cell: pa.Scalar, kind: str) -> NDArray[Any]:
    return np.frombuffer(cell.as_buffer(), dtype=kind)
