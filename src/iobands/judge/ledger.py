"""The ledger: open and past alerts, how each ended, and the site's own precision and delay."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from iobands.judge.correlated import NEAR
from iobands.judge.groups import GroupDrop
from iobands.snapshot import (
    DOWN,
    FALSE,
    REAL,
    RECOVERED,
    RESOLVE,
    Action,
    Alert,
    Change,
    Incident,
    Ledger,
    LedgerEntry,
    PeerState,
    Place,
    Series,
)

# How the alert ended of a peer that was slow when it was last compared.
_NO_LONGER: Final = {
    PeerState.UNUSED: "no longer used",
    PeerState.UNKNOWN: "no longer compared",
}


def ledger_of(
    alerts: Iterable[Alert],
    series: Sequence[Series],
    drops: Sequence[GroupDrop],
    incidents: Sequence[Incident],
    actions: Iterable[Sequence[Action]],
    places: Sequence[Place] = (),
) -> Ledger:
    """Return the ledger; `actions` are the ones in force about each series, target or node."""
    entries = [
        LedgerEntry(
            each.subject,
            each.since,
            each.raised,
            ratio=_ratio(each),
            delay=each.delay,
            kind=each.peer.name.kind if each.peer else None,
        )
        for each in alerts
        if each.direction is not None and each.since is not None
    ]
    entries += [
        LedgerEntry(
            each.name,
            each.since,
            each.raised,
            each.until,
            min(each.ratios.values(), default=None),
            "incident over",
        )
        for each in incidents
        if not each.is_open
    ]
    entries += [*_past(series, drops, incidents), *_slow(places)]
    every = {action.when: action for each in actions for action in each}
    done = [action for action in every.values() if action.kind == RESOLVE]
    entries += [_resolved(action, series) for action in done if action.since]
    delays = [each.delay for each in entries if each.delay and each.ratio and each.ratio < 1]
    return Ledger(
        tuple(sorted(entries, key=lambda entry: entry.since, reverse=True)),
        sum(action.verdict == REAL for action in done),
        sum(action.verdict == FALSE for action in done),
        statistics.median(delays) if delays else None,
    )


def _slow(places: Sequence[Place]) -> Iterator[LedgerEntry]:
    """Yield when a target or a node was slow, once for all variables."""
    for place in places:
        for name, found in place.peers().items():
            until: datetime | None = None
            spans = [(*span, peer) for peer in found.values() for span in peer.alarms]
            for raised, ended, peer in sorted(spans, key=lambda span: span[0]):
                if ended is None and peer.state is PeerState.SLOW:
                    continue  # it is an alert
                last = ended or peer.last
                if until is None or raised > until + NEAR:
                    end = "again as fast as the others" if ended else _NO_LONGER[peer.state]
                    yield LedgerEntry(
                        place.name_of(name), raised, raised, last, end=end, kind=place.kind
                    )
                until = last


def _ratio(alert: Alert) -> float | None:
    if alert.peer:
        return alert.peer.ratio.value
    found = [member.ratio.value for member in alert.members if member.ratio]
    return min(found, default=None)


@dataclass(frozen=True)
class _Past:
    """A change of a series that ended, alone or with others."""

    series: Series
    direction: str
    entry: LedgerEntry


def _past(
    series: Sequence[Series], drops: Sequence[GroupDrop], incidents: Sequence[Incident]
) -> list[LedgerEntry]:
    """Return the changes that ended; changes of one variable on a file system are one entry.

    A drop of a group that was an incident gets no further entry.
    """
    by_key = {each.key: each for each in series}
    past = [
        _Past(each, change.direction, _change(each, change))
        for each in series
        if each.status.evidence
        for change in each.status.evidence.changes
        if change.ended and change.end
    ]
    past += [
        _Past(by_key[key], DOWN, _share(by_key[key], drop, drop.change.ratios[place].value))
        for drop in drops
        if drop.ended
        for place, key in zip(drop.change.members, drop.members, strict=True)
        if not any(
            key in each.ratios and each.since - NEAR <= drop.since <= each.until
            for each in incidents
        )
    ]
    groups: list[list[_Past]] = []
    newest: dict[tuple[str | None, ...], list[_Past]] = {}
    for each in sorted(past, key=lambda each: each.entry.since):
        key = each.series.key
        alike = (each.direction, key.system, key.file_system, key.variable)
        group = newest.get(alike)
        if group is None or each.entry.since - group[0].entry.since > NEAR:
            newest[alike] = group = []
            groups.append(group)
        group.append(each)
    return [_joined(group) for group in groups]


def _change(series: Series, change: Change) -> LedgerEntry:
    ended, end = change.ended, change.end or ""
    ratio = change.ratio.value
    return LedgerEntry(series.label, change.since, change.raised, ended, ratio, end, change.delay)


def _share(series: Series, drop: GroupDrop, ratio: float) -> LedgerEntry:
    """Return the drop of a group as a change of one of its series."""
    delay = drop.change.delay
    return LedgerEntry(series.label, drop.since, drop.raised, drop.ended, ratio, RECOVERED, delay)


def _joined(group: Sequence[_Past]) -> LedgerEntry:
    """Return one entry for changes at one time, with the worst of them and the first alert."""
    worst = min(group, key=lambda each: each.entry.ratio or 1.0)
    first = min(group, key=lambda each: each.entry.raised or each.entry.since)
    key, members = worst.series.key, {each.series.key for each in group}
    return replace(
        worst.entry,
        subject=worst.entry.subject
        if len(members) == 1
        else f"{len(members)} series of {key.file_system} {key.variable}",
        raised=first.entry.raised,
        ended=max(each.entry.ended for each in group if each.entry.ended),
        delay=first.entry.delay,
    )


def _resolved(action: Action, series: Sequence[Series]) -> LedgerEntry:
    named = [each for each in series if action.names(each.key)]
    subject = action.subject or (named[0].label if len(named) == 1 else f"{len(named)} series")
    verdict = f" ({action.verdict})" if action.verdict else ""
    assert action.since is not None
    return LedgerEntry(
        subject,
        action.since,
        ended=action.when,
        ratio=action.ratio,
        end=f"resolved{verdict}",
        who=action.who,
        reason=action.reason,
    )
