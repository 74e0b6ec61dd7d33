"""Samples that are kept but not judged: of the future, in maintenance, of retired series."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Final

from iobands.bands import Bands, Span
from iobands.judge.actions import bands_after
from iobands.measure.run_reports import CheckRun
from iobands.model import TARGET, PeerName, SeriesKey
from iobands.snapshot import RESOLVE, RETIRE, Action, FutureSample, History, MissingRun, in_force
from iobands.source.action_log import Log
from iobands.source.known import Maintenance

_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
#: The reason for a sample of the future.
WRONG: Final = "a clock was wrong"


def spans_of_peers(
    bands_of: Mapping[str, Bands],
    windows: Mapping[str, Maintenance],
    logs: Mapping[str, Log],
    now: datetime,
    kind: str,
    system: str,
    where: str,
) -> list[tuple[Span, str | None]]:
    """Return when runs do not count for targets or nodes: spans, each with a peer or None for all.

    They are maintenance, the time before the epoch, and while a peer was slow for a reason that a
    person resolved.
    """
    found = [*windows[system].of(where if kind == TARGET else None)]
    begin = bands_of[system].compares_since(now)
    if begin:
        before = begin - timedelta(microseconds=1)
        found.append(Span(_LONG_AGO, before, "before the epoch"))
    resolved = resolved_peers(logs[system], kind, system, where, now)
    return [*((span, None) for span in found), *resolved]


def outside_maintenance(
    runs: Iterable[CheckRun], windows: Mapping[str, Maintenance]
) -> tuple[CheckRun, ...]:
    """Return the runs outside maintenance, as failures during maintenance are expected."""

    def is_inside(run: CheckRun) -> bool:
        spans = windows[run.system].of(run.fields.get("file_system"))
        return any(run.when in span for span in spans)

    return tuple(run for run in runs if not is_inside(run))


def is_retired(actions: Iterable[Action], history: History) -> bool:
    """Return whether a series is retired: by an action in force, and without a sample since."""
    return any(
        action.kind == RETIRE and (not len(history) or history.last <= action.when)
        for action in actions
    )


def future_samples(
    found: Iterable[tuple[SeriesKey, datetime]],
    labels: Mapping[SeriesKey, str],
    logs: Mapping[str, Log],
    now: datetime,
) -> tuple[FutureSample, ...]:
    """Return the samples of the future that were not discarded, in the order of time."""
    return tuple(
        FutureSample(key, labels[key], when)
        for key, when in sorted(found, key=lambda each: (each[1], labels[each[0]]))
        if not any(when in span for span in _left_out(logs[key.system].of(key), now))
    )


def only_in_future(
    future: Iterable[FutureSample], histories: Mapping[SeriesKey, History]
) -> dict[SeriesKey, list[MissingRun]]:
    """Return the missing runs of series with samples of the future only."""
    return {
        each.key: [MissingRun(each.when, f"its sample is dated {each.when:%Y-%m-%d}: {WRONG}")]
        for each in future
        if each.key not in histories
    }


def _left_out(actions: Iterable[Action], now: datetime) -> tuple[Span, ...]:
    return bands_after(Bands("", ()), in_force(actions, now)).left_out


def resolved_peers(
    log: Log, kind: str, system: str, where: str, now: datetime
) -> list[tuple[Span, str]]:
    """Return when each peer of a place was slow for a reason that a person resolved."""
    return [
        (Span(action.since, action.until, action.reason), peer)
        for action in in_force(log.actions, now)
        if action.kind == RESOLVE and action.since and action.until
        if (peer := getattr(action, kind)) and action.names(PeerName(kind, system, where, peer))
    ]
