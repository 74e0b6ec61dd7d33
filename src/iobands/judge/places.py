"""Targets and nodes: what is known of each, and the alerts of those that are slow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple
from datetime import datetime, timedelta
from typing import Final

import numpy as np
import polars as pl

from iobands.bands import Span
from iobands.judge.budget import Budget
from iobands.judge.peer_scan import compare_peers, comparisons_a_year
from iobands.model import FIELD_OF, TARGET, TIME, PeerName
from iobands.snapshot import (
    Action,
    Place,
    Speeds,
    sessions_of,
)
from iobands.source.action_log import Log
from iobands.source.samples import CHECK, session_codes

#: Older runs do not describe today's targets.
KEPT: Final = timedelta(days=200)


def places_of(
    speeds: pl.DataFrame,
    not_judged: Callable[[str, str, str], Sequence[tuple[Span, str | None]]],
    now: datetime,
    false_alarms: float,
) -> tuple[Place, ...]:
    """Return the compared places, targets before nodes.

    `not_judged` gives the spans in which runs do not count, for a kind, a system and a file system
    or partition. Each span has its peer, or None for all. Each place may have this many
    `false_alarms` a year.
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
                    {
                        variable: compare_peers(each, budget)
                        for variable, each in by_variable.items()
                    },
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
    found = rows.select(*CHECK, TIME, "session").unique([*CHECK, TIME], maintain_order=True)
    runs = found.sort(TIME).partition_by(CHECK, as_dict=True)
    numbers = sessions_of(
        {check: each[TIME].cast(pl.Datetime("ns")).to_numpy() for check, each in runs.items()},
        {check: session_codes(each["session"]) for check, each in runs.items()},
    )
    numbered = [
        each.with_columns(pl.Series("number", numbers[check])).drop("session")
        for check, each in runs.items()
    ]
    if not numbered:
        return
    medians = (
        rows.join(pl.concat(numbered), on=[*CHECK, TIME])
        .group_by("variable", "number", "peer")
        .agg(pl.col("speed").fill_nan(None).log().median(), pl.col(TIME).min())
        .sort("number", pl.col("variable").cast(pl.String))
    )
    for (variable,), mine in medians.group_by("variable", maintain_order=True):
        sessions, at = np.unique(mine["number"].to_numpy(), return_inverse=True)
        peers = sorted(mine["peer"].unique(), key=_order)
        places = {peer: place for place, peer in enumerate(peers)}
        values = np.full((len(sessions), len(peers)), np.nan)
        used = np.zeros(values.shape, dtype=bool)
        cells = (at, [places[peer] for peer in mine["peer"]])
        values[cells] = mine["speed"].fill_null(np.nan).to_numpy()
        used[cells] = True
        first = mine.group_by("number").agg(pl.col(TIME).min()).sort("number")[TIME]
        yield (
            str(variable),
            Speeds(tuple(peers), first.cast(pl.Datetime("ns")).to_numpy(), values, used),
        )


def _order(peer: str) -> tuple[int, str]:
    return (int(peer), "") if peer.isdecimal() else (0, peer)


def actions_on_peers(
    places: Sequence[Place], logs: Mapping[str, Log]
) -> dict[PeerName, tuple[Action, ...]]:
    """Return all actions about each peer that is slow or that has actions."""
    names = {
        PeerName(place.kind, place.system, place.where, name)
        for place in places
        for name in place.slow()
    }
    for system, log in logs.items():
        for action in log.actions:
            for kind, field in FIELD_OF.items():
                peer = getattr(action, kind)
                where = {str(each[field]) for each in action.series if field in each}
                names |= {PeerName(kind, system, each, peer) for each in where if peer}
    return {name: logs[name.system].of(name) for name in sorted(names, key=astuple)}
