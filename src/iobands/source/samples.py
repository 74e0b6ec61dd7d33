"""The samples of a site: one frame, the rows of each series, and the exports."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from iobands.model import (
    ASKED,
    CHECK,
    TIME,
    VALUE,
    VARIABLE,
    VARIABLE_UNITS,
    CheckRun,
    Rejected,
    SeriesKey,
    grouped_by,
    path_part,
    replace_file,
)
from iobands.snapshot import (
    COMPARED,
    PERFORMANCE,
    SPEED_COLUMNS,
    Columns,
    History,
    is_constant,
    session_codes,
    sessions_of,
)
from iobands.source.lines import FILE, LINE

#: The columns that identify a series, in the order of `SeriesKey`.
KEY: Final = tuple(
    VARIABLE if name == "variable" else name for name in SeriesKey.__dataclass_fields__
)

# The beginning of a cell that a spreadsheet would take for a formula.
_FORMULA: Final = r"^([=+\-@\t\r])"

_OF_RUN: Final = (*CHECK, "file_system", "file_system_type")

_SCHEMA: Final = {
    TIME: pl.Datetime("us", "UTC"),
    **dict.fromkeys((*_OF_RUN, "session", "kind", "variable", "peer"), pl.Categorical()),
    "speed": pl.Float64(),
}


@dataclass(frozen=True)
class Samples:
    """The content of perflogs as frames, in the order of time.

    `values` have a row for each value, `missed` one for each run that proved nothing. `speeds` is
    what `speeds_of` returns.
    """

    values: Columns
    missed: pl.DataFrame
    rejected: tuple[Rejected, ...]
    speeds: pl.DataFrame

    @cached_property
    def rows(self) -> Mapping[SeriesKey, NDArray[np.uint32]]:
        """The row numbers in `values` of each series; series are in order of appearance."""
        keys = self.values.select(*KEY)
        differing = [name for name in KEY if not is_constant(keys[name])] or KEY[:1]
        grouped = keys.lazy().with_row_index("row").group_by(differing, maintain_order=True)
        rows = grouped.agg("row").collect()["row"]
        names = keys[rows.list.first()].iter_rows()
        return {SeriesKey(*name): of.to_numpy() for name, of in zip(names, rows, strict=True)}

    def until(self, when: datetime) -> Samples:
        """Return the samples that were known at `when`."""
        return self._where(TIME, lambda times: times <= when, "values", "missed", "speeds")

    def of(self, system: str) -> Samples:
        """Return the samples of a system; what is rejected stays."""
        return self._where("system", lambda names: names == system, "values", "missed", "speeds")

    def without(self, purpose: str) -> Samples:
        """Return the samples of all purposes but one; speeds of targets and nodes stay."""
        return self._where("purpose", lambda purposes: purposes != purpose, "values", "missed")

    def _where(self, column: str, known: Callable[[pl.Series], pl.Series], *names: str) -> Samples:
        """Keep the rows of the frames `names` whose `column` is `known`; return self if all are."""
        frames = [getattr(self, name) for name in names]
        chosen = [known(frame[column]) for frame in frames]
        if all(each.all(ignore_nulls=False) for each in chosen):
            return self
        few = (frame.filter(each) for frame, each in zip(frames, chosen, strict=True))
        return replace(self, **dict(zip(names, few, strict=True)))

    def with_sessions_of(self, runs: Sequence[CheckRun]) -> Samples:
        """Return the samples with the sessions of `runs` where the perflog names none.

        Older perflogs lack the column.
        """
        of_run = (*CHECK, TIME)
        if not runs:
            return self
        first = min(run.when for run in runs)
        if not (self.values["session"].is_null() & (self.values[TIME] >= first)).any():
            return self
        known = pl.DataFrame(
            [(*run.identity, run.when, run.session) for run in runs],
            {**{name: self.values.schema[name] for name in of_run}, "known": pl.Categorical()},
            orient="row",
        ).unique(of_run)
        said = self.values.select(*of_run, "session")
        joined = said.join(known, on=of_run, how="left", maintain_order="left")
        filled = joined["session"].fill_null(joined["known"])
        return replace(self, values=self.values.with_columns(filled))

    @property
    def measured(self) -> pl.DataFrame:
        """The rows with a value, with all their columns."""
        return self.values.frame

    @cached_property
    def histories(self) -> Mapping[SeriesKey, History]:
        """The history of each series that has a sample."""
        if not self.rows:
            return {}
        order = np.concatenate([*self.rows.values()])
        sizes = [len(rows) for rows in self.rows.values()]
        ends = np.cumsum(sizes)
        parts = dict(zip(self.rows, map(slice, [0, *ends], ends), strict=True))
        columns = (TIME, VALUE, "result", "fail_phase", "session", "purpose", *COMPARED)
        frame = self.values.select(*columns)
        times = frame[TIME].cast(pl.Datetime("ns")).to_numpy()[order]
        values = frame[VALUE].to_numpy()[order]
        passed = _flags(frame["result"] == "pass")[order]
        too_slow = _flags(frame["fail_phase"] == PERFORMANCE)[order]
        asked = _flags(frame["purpose"].is_in([*ASKED]))[order]
        alike = np.ones(len(order), dtype=bool)
        for name in COMPARED:
            if not is_constant(frame[name]):
                codes = _codes(frame[name])[order]
                alike &= codes == np.repeat(codes[ends - 1], sizes)
        named = session_codes(frame["session"])[order]
        of_system = grouped_by(parts, lambda key: key.system)
        sessions: dict[SeriesKey, NDArray[np.int_]] = {}
        begin = 0  # no two systems share a number
        for keys in of_system.values():  # so that none depends on the runs of another system
            numbers = sessions_of(
                {key: times[parts[key]] for key in keys}, {key: named[parts[key]] for key in keys}
            )
            sessions |= {key: begin + each for key, each in numbers.items()}
            begin += 1 + max(each[-1] for each in numbers.values())
        newest = self.values.rows(order[ends - 1]).drop(TIME).to_dicts()
        found = {}
        for (key, mine), row in zip(parts.items(), newest, strict=True):
            flags = passed[mine], too_slow[mine], alike[mine]
            found[key] = History(times[mine], values[mine], *flags, sessions[key], asked[mine], row)
        return found


def samples_csv(samples: Samples) -> str:
    """Return the samples as CSV with a header; times are RFC 3339, missing values are empty.

    A text that a spreadsheet would take for a formula has a ' before it. Numbers stay numbers.
    """
    texts = pl.selectors.by_dtype(pl.String, pl.Categorical).cast(pl.String)
    safe = texts.str.replace(_FORMULA, "'$1")
    return samples.measured.with_columns(_rfc_3339()).with_columns(safe).write_csv()


def samples_json(samples: Samples) -> str:
    """Return the samples as a JSON array of objects; missing values are null."""
    return samples.measured.with_columns(_rfc_3339()).write_json()


def write_parquet(samples: Samples, directory: Path) -> Iterator[Path]:
    """Write a file for each system and month (UTC), and yield the changed ones.

    `DIR/SYSTEM/2026-11.parquet` has a column for each field of contract 2, with its type.

    Raises:
        OSError: the directory cannot be written.
    """
    texts = samples.measured.with_columns(pl.col(pl.Categorical).cast(pl.String))
    by_month = texts.group_by("system", pl.col(TIME).dt.strftime("%Y-%m"), maintain_order=True)
    for (system, month), rows in by_month:
        path = directory / path_part(str(system)) / f"{month}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = io.BytesIO()
        rows.write_parquet(stream, compression="zstd")
        if replace_file(path, stream.getvalue()):
            yield path


def _flags(column: pl.Series) -> NDArray[np.bool_]:
    return column.fill_null(value=False).to_numpy()


def _codes(column: pl.Series) -> NDArray[np.int64]:
    """Return a number for each cell, equal for comparable ones; -1 for missing ones."""
    if column.name == "suite_version":  # only the major version counts
        column = column.cast(pl.String).str.extract(r"^([^.]*)").cast(pl.Categorical)
    return session_codes(column)


def _rfc_3339() -> pl.Expr:
    return pl.col(TIME).dt.strftime("%Y-%m-%dT%H:%M:%S%.f+00:00")


# The possible range of a speed, relative to the median target or node.
_POSSIBLE: Final = (2.0**-20, 2.0**20)

_GOOD: Final = (pl.col("speed").is_between(*_POSSIBLE) | pl.col("speed").is_nan()).fill_null(
    value=False
)


def speeds_of(said: pl.DataFrame, rows: Columns) -> tuple[pl.DataFrame, list[tuple[int, int, str]]]:
    """Return the speeds in the order of time, and file, line and reason of invalid ones.

    `said` has the columns of `SPEEDS` as texts, `rows` the lines that count. All lines of a run say
    the same, which counts once.
    """
    if said.is_empty():
        return pl.DataFrame(schema=_SCHEMA), []
    texts = pl.col(*_OF_RUN, "session").cast(pl.Categorical)
    of_run = rows.select(TIME, *_OF_RUN, "session", FILE, LINE).with_columns(texts)
    runs = of_run.join(said, on=[FILE, LINE]).unique([TIME, *_OF_RUN], keep="first")
    runs = runs.sort(TIME, FILE, LINE).with_row_index("run")
    every = pl.concat([_speeds(runs, kind, column) for kind, column in SPEED_COLUMNS.items()])
    bad = every.filter(~_GOOD).unique(["run", "kind"], keep="first")
    bad_lines = bad.join(runs.select("run", FILE, LINE), on="run")
    rejected = [
        (file, line, f"{SPEED_COLUMNS[kind]}: {part!r} is not a speed; no speed of this run counts")
        for kind, part, file, line in bad_lines.select("kind", "part", FILE, LINE).iter_rows()
    ]
    every = every.drop("part").join(bad, on=["run", "kind"], how="anti").sort("run")
    about = runs.select(TIME, *_OF_RUN, "session")[every["run"]]
    return about.hstack(every.select("kind", "variable", "peer", "speed")), rejected


def _speeds(runs: pl.DataFrame, kind: str, column: str) -> pl.DataFrame:
    """Return a row for each speed in a column, such as `write_bw=0:1.02,1:nan;read_bw=0:1,1:1`.

    NaN stands for a target that was used but has no speed. `part` is the text of what is not a
    speed, null otherwise.
    """
    part = pl.col("part")
    return (
        runs.lazy()
        .select("run", part=column)
        .drop_nulls("part")
        .with_columns(part.str.split(";"))
        .explode("part", empty_as_null=True)
        .with_columns(
            part.str.extract(r"^(\w+)=").cast(pl.Categorical).alias("variable"),
            part.str.replace(r"^\w+=", "").str.split(","),
        )
        .explode("part", empty_as_null=True)
        .with_columns(
            part.str.extract(r"^([^:]+):").cast(pl.Categorical).alias("peer"),
            pl.when(pl.col("variable").cast(pl.String).is_in(list(VARIABLE_UNITS)))
            .then(part.str.extract(r"^[^:]+:([0-9.e+-]+|nan)$"))
            .cast(pl.Float64, strict=False)
            .alias("speed"),
        )
        .select(
            "run",
            pl.lit(kind).cast(pl.Categorical).alias("kind"),
            "variable",
            "peer",
            "speed",
            pl.when(~_GOOD).then(part).alias("part"),
        )
        .collect()
    )
