"""The log of alerts anew: what it would say if it had been kept from the first sample on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from iobands.judge.site import judge
from iobands.snapshot import DISCARD, REBASELINE, RESOLVE, RETIRE, UNDO, AlertEvent
from iobands.source.known import Known

# After these, what was found before is found no more.
_FORGETTING: Final = (DISCARD, REBASELINE, RESOLVE, RETIRE, UNDO)
_BEFORE: Final = timedelta(microseconds=1)


def chronicle(
    known: Known, read: Callable[[datetime], Known], false_alarms: float
) -> dict[str, tuple[AlertEvent, ...]]:
    """Return the events by system, from what is `known` now and what `read` knew at a time.

    The site is judged as it was before each action that takes runs out of the judgement, and now.
    """
    actions = [each for log in known.logs.values() for each in log.actions]
    times = sorted({each.when - _BEFORE for each in actions if each.kind in _FORGETTING})
    told: dict[str, tuple[AlertEvent, ...]] = {}
    for when in (*times, None):
        then = known if when is None else read(when)
        judged = judge(replace(then, alert_log=told), false_alarms=false_alarms, with_power=False)
        for system, events in judged.news.items():
            told[system] = (*told.get(system, ()), *events)
    return told
