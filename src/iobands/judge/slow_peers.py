"""Alerts of targets and nodes that are slower than the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from iobands.bands import Span
from iobands.judge.correlated import certainty, overlap, ratio_of
from iobands.judge.detection import Budget
from iobands.snapshot import (
    ACKNOWLEDGE,
    DOWN,
    FIELD_OF,
    RESOLVE,
    TARGET,
    Acknowledgement,
    Action,
    Alert,
    Peer,
    PeerName,
    Place,
    Severity,
    SlowPeer,
    in_force,
)
from iobands.source.action_log import Log

#: An acknowledged peer is loud again at so much less of its speed.
_WORSE: Final = 0.8


def with_slow_peers(
    alerts: Sequence[Alert],
    places: Sequence[Place],
    actions: Mapping[PeerName, Sequence[Action]],
    now: datetime,
    false_alarms: float,
) -> tuple[Alert, ...]:
    """Return `alerts` and those of slow peers.

    A drop of series of a file system that began with a slow target there has that for its cause,
    and is a part of its alert: of the slowest, where there are several.
    """
    left = list(alerts)
    found = []
    for place in places:
        slow = [_of_peer(place, name, each, false_alarms) for name, each in place.slow().items()]
        for alert in sorted(slow, key=lambda each: each.peer.ratio.value if each.peer else 1.0):
            caused = [each for each in left if place.kind == TARGET and _is_caused(each, alert)]
            left = [each for each in left if each not in caused]
            members = sorted((m for each in caused for m in each.members), key=ratio_of)
            whole = replace(alert, members=tuple(members))
            assert alert.peer
            found.append(_acknowledged(whole, in_force(actions.get(alert.peer.name, ()), now)))
    return (*left, *found)


def actions_on_peers(
    places: Sequence[Place], logs: Mapping[str, Log]
) -> dict[PeerName, tuple[Action, ...]]:
    """Return all that was done about each slow peer, and about those that somebody acted on."""
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
    return {name: logs[name.system].of(name) for name in names}


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


def _of_peer(place: Place, name: str, found: Mapping[str, Peer], false_alarms: float) -> Alert:
    worst = min(found.values(), key=lambda each: each.ratio.value)
    surest = max(found.values(), key=lambda each: each.score)
    since = min(each.since for each in found.values() if each.since)
    return Alert(
        Severity.DEGRADED,
        place.name_of(name),
        since=since,
        since_low=min(each.since_low for each in found.values() if each.since_low),
        since_high=since,
        direction=DOWN,
        score=surest.score,
        certainty=certainty(surest.score, Budget(false_alarms, place.comparisons_a_year)),
        raised=min(each.alarms[-1][0] for each in found.values()),
        peer=SlowPeer(
            PeerName(place.kind, place.system, place.where, name),
            worst.ratio,
            {variable: each.ratio for variable, each in found.items()},
        ),
    )


def _is_caused(alert: Alert, by: Alert) -> bool:
    """Return whether a drop is of series of the file system, and began at about the same time."""
    assert by.peer
    name = by.peer.name
    return (
        alert.severity in (Severity.DEGRADED, Severity.INCIDENT)
        and overlap(alert, by)
        and {(key.system, key.file_system) for key in alert.keys} == {(name.system, name.where)}
    )


def _acknowledged(alert: Alert, actions: Sequence[Action]) -> Alert:
    """Return the alert with its acknowledgement, unless it is far worse since."""
    assert alert.peer and alert.since
    for action in reversed(actions):
        is_it = action.kind == ACKNOWLEDGE and action.until and alert.since <= action.until
        if is_it and alert.peer.ratio.high >= _WORSE * (action.ratio or 1.0):
            return replace(alert, acknowledgement=Acknowledgement(action))
    return alert
