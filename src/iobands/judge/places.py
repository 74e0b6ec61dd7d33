"""Targets and nodes: the speed of each, and the evidence that it is slow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple
from datetime import datetime, timedelta
from itertools import product
from typing import Final

import numpy as np
import polars as pl

from iobands.judge.detect import Budget
from iobands.judge.normal import inside
from iobands.judge.peer_scan import compare_peers, comparisons_a_year, looks, over_others
from iobands.snapshot import (
    CHECK,
    FIELD_OF,
    LONG_AGO,
    SERIES_FIELDS,
    TARGET,
    TIME,
    VALUE,
    VARIABLE,
    Action,
    Array,
    Columns,
    PeerName,
    Place,
    Spans,
    Speeds,
    session_codes,
    sessions_of,
)
from iobands.source.action_log import Log

# A place without a run in this time is not shown.
_KEPT: Final = timedelta(days=200)
# The case of runs with all files on one target.
_PINNED: Final = r"^target (\d+)$"
# Pinned runs are compared if each follows the one before within this time.
_TOGETHER: Final = timedelta(minutes=30)
_RUN: Final = (*CHECK, TIME)


def places_of(
    speeds: pl.DataFrame,
    samples: Columns,
    not_judged: Callable[[str, str, str], Sequence[tuple[Spans, str | None]]],
    now: datetime,
    false_alarms: float,
) -> tuple[Place, ...]:
    """Return the places whose peers were compared, targets before nodes.

    Of the `samples`, only pinned runs are used. `not_judged` returns, for a kind, a system and a
    file system or partition, the spans in which runs do not count, each with its peer, or None for
    all. Each place has a budget of `false_alarms` a year.
    """
    pinned = _pinned(samples)
    shared = speeds.join(pinned, on=_RUN, how="anti")  # a pinned run's nodes wait for one target
    found = []
    for kind, field in FIELD_OF.items():
        of_kind = shared.filter((pl.col("kind") == kind) & pl.col(field).is_not_null())
        for (system, where), rows in of_kind.group_by("system", field, maintain_order=True):
            if rows[TIME].max() <= now - _KEPT:  # type: ignore[operator]
                continue
            spans = not_judged(kind, str(system), str(where))
            own = (pl.col("system") == system) & (pl.col(field) == where)
            of_target = pinned.filter(own) if kind == TARGET else pinned.clear()
            by_variable = dict(_matrices(_without(rows, spans), _without(of_target, spans)))
            every = [*by_variable.values()]
            accepted = [peer for each, peer in spans if LONG_AGO in each]
            newest = max((each.times[-1:] for each in every), default=np.empty(0, "datetime64[ns]"))
            a_year = float(comparisons_a_year(every, newest).sum())
            peers = {
                variable: compare_peers(each, thresholds(each, every, false_alarms), accepted)
                for variable, each in by_variable.items()
            }
            place = Place(
                kind,
                str(system),
                str(where),
                file_system_type=rows["file_system_type"][-1] if kind == TARGET else None,
                found=peers,
                speeds=by_variable,
                comparisons_a_year=a_year,
            )
            found.append(place)
    return tuple(found)


def thresholds(speeds: Speeds, every: Sequence[Speeds], false_alarms: float) -> Array:
    """Return the threshold at each session, in nats, by what was known when its span began."""
    spans = looks(speeds.times)
    a_year = comparisons_a_year(every, speeds.times[[begin for begin, _ in spans]])
    found = [Budget(false_alarms, float(each)).threshold for each in a_year]
    return np.repeat(found, [end - begin for begin, end in spans])


def _pinned(samples: Columns) -> pl.DataFrame:
    """Return the rates of runs pinned to one target, with the columns `peer` and `speed`."""
    case = pl.col("case").cast(pl.String)
    is_pinned = samples["case"].cast(pl.String).str.contains(_PINNED)
    return samples.rows(is_pinned.arg_true().to_numpy()).with_columns(
        case.str.extract(_PINNED).alias("peer"),
        pl.col(VARIABLE).alias("variable"),
        pl.col(VALUE).alias("speed"),
    )


def _without(rows: pl.DataFrame, spans: Sequence[tuple[Spans, str | None]]) -> pl.DataFrame:
    for each, peer in spans:
        of_peer = pl.lit(value=True) if peer is None else pl.col("peer") == peer
        times = rows[TIME].cast(pl.Datetime("ns")).to_numpy()
        rows = rows.filter(~(pl.Series(inside(each, times)) & of_peer))
    return rows


def _matrices(rows: pl.DataFrame, pinned: pl.DataFrame) -> Iterator[tuple[str, Speeds]]:
    """Yield each variable with its speeds: the median of the runs in each session."""
    alike = [name for name in SERIES_FIELDS if name != "case"]  # their rates can be compared
    later = (pl.col(TIME).diff() > _TOGETHER).fill_null(value=False)
    near = pinned.sort(TIME).with_columns(later.cum_sum().cast(pl.Int64).alias("number"))
    medians = [*(_medians(each, ()) for each in _numbered(rows)), _medians(near, alike)]
    every = pl.concat(medians).sort(TIME, "variable")
    for (variable,), mine in every.group_by("variable", maintain_order=True):
        sessions, at = np.unique(mine["session"].to_numpy(), return_inverse=True)
        peers = sorted(mine["peer"].unique(), key=_order)
        places = {peer: place for place, peer in enumerate(peers)}
        values = np.full((len(sessions), len(peers)), np.nan)
        used = np.zeros(values.shape, dtype=bool)
        cells = (at, [places[peer] for peer in mine["peer"]])
        values[cells] = mine["speed"].fill_null(np.nan).to_numpy()
        used[cells] = True
        is_pinned = sessions % 2 == 1
        values[is_pinned] = over_others(values[is_pinned])
        used[is_pinned] &= np.isfinite(values[is_pinned])
        times = mine.group_by("session").agg(pl.col(TIME).min()).sort("session")[TIME]
        order = np.argsort(times.to_numpy(), kind="stable")
        columns = (times.cast(pl.Datetime("ns")).to_numpy(), values, used, is_pinned)
        yield str(variable), Speeds(tuple(peers), *(each[order] for each in columns))


def _numbered(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield `rows` with the column `number`, the session of the run, unless `rows` is empty."""
    found = rows.select(*_RUN, "session").unique(_RUN, maintain_order=True)
    runs = found.sort(TIME).partition_by(CHECK, as_dict=True)
    if not runs:
        return
    numbers = sessions_of(
        {check: each[TIME].cast(pl.Datetime("ns")).to_numpy() for check, each in runs.items()},
        {check: session_codes(each["session"]) for check, each in runs.items()},
    )
    numbered = (
        each.with_columns(pl.Series("number", numbers[check])).drop("session")
        for check, each in runs.items()
    )
    yield rows.join(pl.concat(numbered), on=_RUN)


def _medians(rows: pl.DataFrame, alike: Sequence[str]) -> pl.DataFrame:
    """Return the median logarithm of the speeds by variable, peer, session and columns `alike`.

    Only pinned runs have such columns, and odd session numbers.
    """
    of_session = ("number", *alike)
    sessions = rows.select(of_session).unique(maintain_order=True).with_row_index("at")
    at = (pl.col("at").cast(pl.Int64) * 2 + int(bool(alike))).alias("session")
    return (
        rows.join(sessions, on=of_session, nulls_equal=True)
        .group_by(pl.col("variable", "peer").cast(pl.String), at)
        .agg(pl.col("speed").fill_nan(None).log().median(), pl.col(TIME).min())
    )


def _order(peer: str) -> tuple[int, str]:
    """Return a sort key: names, then numbers of any length by size (without leading zeros)."""
    return (len(peer), peer) if peer.isdecimal() else (0, peer)


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
        for action, (kind, field) in product(log.actions, FIELD_OF.items()):
            if peer := getattr(action, kind):
                where = {str(each[field]) for each in action.series if field in each}
                names |= {PeerName(kind, system, each, peer) for each in where}
    return {name: logs[name.system].of(name) for name in sorted(names, key=astuple)}
