"""How fast targets and nodes were: the texts of the columns as a frame, one row a speed."""

from __future__ import annotations

from typing import Final

import polars as pl

from iobands.model.fields import TIME, VARIABLE_UNITS
from iobands.snapshot import SPEED_COLUMNS
from iobands.source.lines import FILE, LINE

#: What tells the runs of one check from others on the same day.
CHECK: Final = ("system", "partition", "environ", "display_name")

# What a speed can be, over that of the median target or node.
_POSSIBLE: Final = (2.0**-20, 2.0**20)
_GOOD: Final = (pl.col("speed").is_between(*_POSSIBLE) | pl.col("speed").is_nan()).fill_null(
    value=False
)
_OF_RUN: Final = (*CHECK, "file_system", "file_system_type")
_TEXTS: Final = (*_OF_RUN, "kind", "variable", "peer")
_SCHEMA: Final = {
    TIME: pl.Datetime("us", "UTC"),
    **dict.fromkeys(_TEXTS, pl.Categorical()),
    "speed": pl.Float64(),
}


def no_speeds() -> pl.DataFrame:
    """Return a frame of speeds without any."""
    return pl.DataFrame(schema=_SCHEMA)


def speeds_of(
    said: pl.DataFrame, rows: pl.DataFrame
) -> tuple[pl.DataFrame, list[tuple[int, int, str]]]:
    """Return the speeds in the order of time, and file, line and reason of those that are none.

    `said` has the columns as texts, `rows` the lines that count. The lines of one run say the same,
    and count once.
    """
    if said.is_empty():
        return no_speeds(), []
    of_run = rows.select(TIME, pl.col(_OF_RUN).cast(pl.Categorical), FILE, LINE)
    runs = of_run.join(said, on=[FILE, LINE]).unique([TIME, *_OF_RUN], keep="first")
    runs = runs.sort(TIME, FILE, LINE).with_row_index("run")
    every = pl.concat([_speeds(runs, kind, column) for kind, column in SPEED_COLUMNS.items()])
    bad = every.filter(~_GOOD).unique(["run", "kind"], keep="first")
    places = runs.select("run", FILE, LINE)
    rejected = [
        (file, line, f"{SPEED_COLUMNS[kind]}: {part!r} is no speed; no speed of this run counts")
        for kind, part, file, line in bad.join(places, on="run")
        .select("kind", "part", FILE, LINE)
        .iter_rows()
    ]
    every = every.drop("part").join(bad, on=["run", "kind"], how="anti").sort("run")
    about = runs.select(TIME, *_OF_RUN)[every["run"]]
    return about.hstack(every.select("kind", "variable", "peer", "speed")), rejected


def _speeds(runs: pl.DataFrame, kind: str, column: str) -> pl.DataFrame:
    """Return the speeds that a column has, such as `write_bw=0:1.02,1:nan;read_bw=0:1,1:1`.

    NaN stands for a target that was used and of which nothing is said. Of a part that is no speed
    the text is kept.
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
