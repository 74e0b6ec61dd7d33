"""What is worth a run before its time, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

import numpy as np

from iobands.bands import COLLAPSED
from iobands.measure.run_reports import CheckRun
from iobands.model import RECOVERY, REPEAT, SUSPECT, TARGET, Ask, SeriesKey, slug
from iobands.snapshot import (
    DOWN,
    MAYBE_OVER,
    SUSPECTED,
    UNCERTAIN,
    Certainty,
    Place,
    Series,
    Snapshot,
)

#: In these patterns each process has files of its own: one run compares all targets and nodes.
_COMPARING: Final = ("fpp", "fpn")
#: The check that `-S CHECK.target=N` pins to a target.
_PINS: Final = "BenchioFPP "
_NONE: Final = np.empty(0)


def asks_of(site: Snapshot, runs: Iterable[CheckRun]) -> tuple[Ask, ...]:
    """Return what to measure again between sessions, the strongest evidence first."""
    doubts, of_key = site.doubts, {each.key: each for each in site.series}
    found = []
    for key, doubt in sorted(doubts.items(), key=lambda each: -each[1].nats):
        alerts = [each for each in site.alerts_on(key) if each.number is not None]
        if doubt.kind == UNCERTAIN and alerts and all(each.is_quiet for each in alerts):
            continue
        about = f"alert {alerts[0].number}" if alerts else "its change"
        why = {
            MAYBE_OVER: f"{about} may be over",
            UNCERTAIN: f"{about} is not certain yet",
        }.get(doubt.kind, f"low since {doubt.since:%d %b %H:%M}")
        purpose = RECOVERY if doubt.kind == MAYBE_OVER else SUSPECT
        found.append((of_key[key], purpose, why))
    return (*_by_check(site, found, runs), *_of_peers(site, runs))


def _of_peers(site: Snapshot, runs: Iterable[CheckRun]) -> Iterator[Ask]:
    """Yield asks about targets and nodes under suspicion.

    A Lustre target is measured by itself, and beside it a healthy one: their samples are of cases.
    Elsewhere users cannot choose, so a run of the usual check compares all again.
    """
    for place in site.places:
        suspects, series = [*place.suspects()], _comparing(site.series, place)
        if not suspects or series is None:
            continue
        why = f"{place.name_of(suspects[0])} may be slow"
        asks = _by_check(site, [(series, SUSPECT, why)], runs)
        pinned = place.kind == TARGET and place.file_system_type == "lustre"
        if not (pinned and str(series.history.newest.get("display_name")).startswith(_PINS)):
            yield from asks
            continue
        beside = [
            (each, f"beside {suspects[0]}, which may be slow") for each in place.healthy()[:1]
        ]
        for target, reason in ((suspects[0], why), *beside):
            yield from (replace(ask, target=target, why=reason, series=()) for ask in asks)


def repeats_of(site: Snapshot, since: datetime, runs: Iterable[CheckRun]) -> tuple[Ask, ...]:
    """Return what to repeat of the runs `since` a session began.

    They have collapsed, or made a change more likely. One of a known change is not repeated.
    """
    doubts = site.doubts
    since = since.replace(microsecond=0)  # as perflogs have whole seconds
    found: list[tuple[Series, str, str]] = []
    for series in site.series:
        status, doubt = series.status, doubts.get(series.key)
        if status.when is None or status.when < since or status.left_out:
            continue
        known = any(
            each.direction == DOWN and each.certainty is Certainty.CERTAIN
            for each in site.alerts_on(series.key)
        )
        down = status.evidence.down if status.evidence else _NONE
        if status.verdict == COLLAPSED and not known:
            found.append((series, REPEAT, "it collapsed"))
        elif doubt and doubt.kind == SUSPECTED and len(down) > 1 and down[-1] > down[-2]:
            found.append((series, REPEAT, f"low since {doubt.since:%d %b %H:%M}"))
    return _by_check(site, found, runs)


def _comparing(every: Iterable[Series], place: Place) -> Series | None:
    """Return the newest series whose runs compare the peers of a place."""
    found = [
        each
        for each in every
        if each.key.system == place.system and each.key.pattern in _COMPARING and each.status.when
        if place.where == (each.key.file_system if place.kind == TARGET else each.key.partition)
    ]
    return max(found, key=lambda each: each.history.last, default=None)


def _by_check(
    site: Snapshot, wanted: Iterable[tuple[Series, str, str]], runs: Iterable[CheckRun]
) -> tuple[Ask, ...]:
    """Return an ask for each check, as a check has several series."""
    unfit = {key for each in site.obstacles for key in each.keys}
    hours = {run.identity: run.node_hours for run in runs}  # in the order of time
    found: dict[tuple[str, ...], Ask] = {}
    for ask in _asks(wanted, unfit, hours):
        former = found.get(ask.identity)
        series = (*former.series, *ask.series) if former else ask.series
        found[ask.identity] = replace(former or ask, series=tuple(dict.fromkeys(series)))
    return tuple(found.values())


def _asks(
    wanted: Iterable[tuple[Series, str, str]],
    unfit: set[SeriesKey],
    hours: Mapping[tuple[str, str, str, str], float],
) -> Iterator[Ask]:
    for series, purpose, why in wanted:
        key, newest = series.key, series.history.newest
        name, environ = newest.get("display_name"), key.environ
        on_demand = key.case is not None and not series.history.is_scheduled
        if not name or not environ or on_demand or key in unfit:
            continue
        yield Ask(
            key.system,
            key.partition,
            environ,
            name,
            key.file_system,
            purpose,
            why,
            (slug(key),),
            series.history.last,
            hours.get((key.system, key.partition, environ, name), 0.0),
        )
