"""Targets and nodes: what is known of each, by the sessions of the last 200 days."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import numpy as np
import polars as pl

from iobands.bands import Span
from iobands.judge.detection import Budget
from iobands.judge.peer_scan import compare, comparisons_a_year
from iobands.model.fields import TIME
from iobands.model.sessions import sessions_of
from iobands.snapshot import FIELD_OF, TARGET, Place, Speeds
from iobands.source.speeds import CHECK

#: Older runs say nothing of today's targets.
KEPT: Final = timedelta(days=200)


def places_of(
    speeds: pl.DataFrame,
    not_judged: Callable[[str, str, str], Sequence[tuple[Span, str | None]]],
    now: datetime,
    false_alarms: float,
) -> tuple[Place, ...]:
    """Return what is compared, targets before nodes.

    `not_judged` gives the spans in which runs do not count, of a kind, a system and a file system
    or partition, each with its peer, None of all. Each place may have so many `false_alarms` a
    year.
    """
    recent = speeds.filter(pl.col(TIME) > now - KEPT)
    found = []
    for kind, field in FIELD_OF.items():
        of_kind = recent.filter((pl.col("kind") == kind) & pl.col(field).is_not_null())
        for (system, where), rows in of_kind.group_by("system", field, maintain_order=True):
            kept = _without(rows, not_judged(kind, str(system), str(where)))
            by_variable = dict(_matrices(kept))
            a_year = comparisons_a_year([*by_variable.values()])
            budget = Budget(false_alarms, a_year)
            found.append(
                Place(
                    kind,
                    str(system),
                    str(where),
                    rows["file_system_type"][-1] if kind == TARGET else None,
                    {variable: compare(each, budget) for variable, each in by_variable.items()},
                    by_variable,
                    a_year,
                )
            )
    return tuple(found)


def _without(rows: pl.DataFrame, spans: Sequence[tuple[Span, str | None]]) -> pl.DataFrame:
    for span, peer in spans:
        of_peer = pl.lit(value=True) if peer is None else pl.col("peer") == peer
        rows = rows.filter(~(pl.col(TIME).is_between(span.begin, span.end) & of_peer))
    return rows


def _matrices(rows: pl.DataFrame) -> Iterator[tuple[str, Speeds]]:
    """Yield the speeds of each variable; of several runs in a session, their median."""
    runs = rows.select(*CHECK, TIME).unique().sort(TIME).partition_by(CHECK, as_dict=True)
    times = {check: each[TIME].cast(pl.Datetime("ns")).to_numpy() for check, each in runs.items()}
    numbers = sessions_of(times).numbers
    numbered = [
        each.with_columns(pl.Series("session", numbers[check])) for check, each in runs.items()
    ]
    if not numbered:
        return
    medians = (
        rows.join(pl.concat(numbered), on=[*CHECK, TIME])
        .group_by("variable", "session", "peer")
        .agg(pl.col("speed").fill_nan(None).log().median(), pl.col(TIME).min())
        .sort("session", pl.col("variable").cast(pl.String))
    )
    for (variable,), mine in medians.group_by("variable", maintain_order=True):
        sessions, at = np.unique(mine["session"].to_numpy(), return_inverse=True)
        peers = sorted(mine["peer"].unique(), key=_order)
        places = {peer: place for place, peer in enumerate(peers)}
        values = np.full((len(sessions), len(peers)), np.nan)
        used = np.zeros(values.shape, dtype=bool)
        cells = (at, [places[peer] for peer in mine["peer"]])
        values[cells] = mine["speed"].fill_null(np.nan).to_numpy()
        used[cells] = True
        first = mine.group_by("session").agg(pl.col(TIME).min()).sort("session")[TIME]
        yield (
            str(variable),
            Speeds(tuple(peers), first.cast(pl.Datetime("ns")).to_numpy(), values, used),
        )


def _order(peer: str) -> tuple[int, str]:
    return (int(peer), "") if peer.isdecimal() else (0, peer)
