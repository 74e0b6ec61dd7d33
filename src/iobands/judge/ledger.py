"""The ledger: open and past alerts, how each ended, and the site's own precision and delay."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from iobands.snapshot import (
    FALSE,
    REAL,
    RESOLVE,
    Action,
    Alert,
    Ledger,
    LedgerEntry,
    Series,
)


def ledger_of(
    alerts: Iterable[Alert], series: Sequence[Series], actions: Iterable[Sequence[Action]]
) -> Ledger:
    """Return the ledger of `alerts`, open and past ones.

    `actions` are all that are in force about each series, target or node.
    """
    done = {action.when: action for each in actions for action in each if action.kind == RESOLVE}
    entries = [_entry(each, done) for each in alerts if each.number is not None]
    ended = {each.ended for each in entries}
    # resolved before there was a log of alerts
    entries += [
        _resolved(each, series) for each in done.values() if each.since and each.when not in ended
    ]
    delays = [each.delay for each in entries if each.delay and each.ratio and each.ratio < 1]
    return Ledger(
        tuple(sorted(entries, key=lambda entry: entry.since, reverse=True)),
        sum(action.verdict == REAL for action in done.values()),
        sum(action.verdict == FALSE for action in done.values()),
        statistics.median(delays) if delays else None,
    )


def _entry(alert: Alert, done: Mapping[datetime, Action]) -> LedgerEntry:
    assert alert.since is not None
    by = done.get(alert.ended) if alert.ended else None
    ratio = alert.peer.ratio.value if alert.peer else alert.ratio
    return LedgerEntry(
        alert.subject,
        alert.since,
        alert.raised,
        alert.ended,
        ratio if ratio and math.isfinite(ratio) else None,
        _end_of(by) if by else alert.end,
        alert.delay,
        by.who if by else "",
        by.reason if by else "",
        alert.peer.name.kind if alert.peer else None,
        alert.number,
        alert.cause,
    )


def _end_of(action: Action) -> str:
    return f"resolved{f' ({action.verdict})' if action.verdict else ''}"


def _resolved(action: Action, series: Sequence[Series]) -> LedgerEntry:
    named = [each for each in series if action.names(each.key)]
    subject = action.subject or (named[0].label if len(named) == 1 else f"{len(named)} series")
    assert action.since is not None
    return LedgerEntry(
        subject,
        action.since,
        ended=action.when,
        ratio=action.ratio,
        end=_end_of(action),
        who=action.who,
        reason=action.reason,
    )
