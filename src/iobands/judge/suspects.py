"""Decides what to measure ahead of schedule, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import product
from typing import Any, Final

import numpy as np

from iobands.model import RECOVERY, REPEAT, SUSPECT, TARGET, Ask, CheckRun, check_name, slug
from iobands.snapshot import (
    COLLAPSED,
    DOWN,
    MAYBE_OVER,
    SUSPECTED,
    UNCERTAIN,
    Certainty,
    Place,
    Series,
    Snapshot,
    day_and_time,
)

#: In these patterns each process or node has its own file: a run compares all targets and nodes.
_COMPARING: Final = ("fpp", "fpn")
#: The check that `-S CHECK.target=N` pins to a target, and `-S CHECK.node=NAME` to a node.
_PINS: Final = "BenchioFPP "
#: Schedulers that give a job a node by its name, and choose the other nodes of the job.
_CHOOSES_NODES: Final = ("slurm", "squeue")
#: With two nodes, a run does not show which one is slow.
_FEWEST_NODES: Final = 3
_NONE: Final = np.empty(0)


def asks_of(site: Snapshot, runs: Sequence[CheckRun]) -> tuple[Ask, ...]:
    """Return what to measure between sessions: series by falling evidence, then peers."""
    doubts, of_key = site.doubts, {each.key: each for each in site.series}
    found = []
    for key, doubt in sorted(doubts.items(), key=lambda each: -each[1].nats):
        alerts = [each for each in site.alerts_on(key) if each.number is not None]
        if doubt.kind == UNCERTAIN:
            alerts = [each for each in alerts if each.certainty is not Certainty.CERTAIN]
        about = f"alert {alerts[0].number}" if alerts else "its change"
        purpose, why = SUSPECT, f"low since {day_and_time(doubt.since)}"
        if doubt.kind == UNCERTAIN:
            why = f"{about} is not certain yet"
        elif doubt.kind == MAYBE_OVER:
            purpose, why = RECOVERY, f"{about} may be over"
        found.append((of_key[key], purpose, why))
    return (*_by_check(found, runs), *_of_peers(site, runs))


def _of_peers(site: Snapshot, runs: Sequence[CheckRun]) -> Iterator[Ask]:
    """Yield asks for the most suspected target or node of each place.

    For a Lustre target they are two pinned runs, one of a healthy target. For a node under Slurm it
    is a job with this node among others. Elsewhere a run of the usual check compares all again.
    """
    scheduler_of = {run.identity: run.scheduler for run in runs}  # in the order of time
    for place in site.places:
        suspects, series = [*place.suspects()], _comparing(site.series, place)
        if not suspects or series is None:
            continue
        name = place.name_of(suspects[0])
        why = f"{name} may be slow"
        usual = _by_check([(series, SUSPECT, why)], runs)
        if place.kind == TARGET:
            beside = f"beside {name}, which may be slow"
            peers = {suspects[0]: why, **dict.fromkeys(place.healthy()[:1], beside)}
            can = place.file_system_type == "lustre"
        else:
            peers = {suspects[0]: why}
            can = (series.key.nodes or 0) >= _FEWEST_NODES and all(
                scheduler_of.get(ask.of_check) in _CHOOSES_NODES for ask in usual
            )
        if not (can and _can_be_pinned(series, place)):
            yield from usual
            continue
        for ask, (peer, why) in product(usual, peers.items()):
            pin: dict[str, Any] = {place.kind: peer}
            yield replace(ask, series=(), why=why, **pin)


def repeats_of(site: Snapshot, since: datetime, runs: Iterable[CheckRun]) -> tuple[Ask, ...]:
    """Return the checks to repeat, by their runs since the time `since` a session began.

    A run is repeated if it collapsed and no certain alert explains it, or made a drop more likely.
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
            found.append((series, REPEAT, f"low since {day_and_time(doubt.since)}"))
    return _by_check(found, runs)


def _comparing(every: Iterable[Series], place: Place) -> Series | None:
    """Return the newest series whose runs compare the peers, of those to pin if there are any."""
    found = [
        each
        for each in every
        if each.key.system == place.system and each.key.pattern in _COMPARING and each.status.when
        if place.where == (each.key.file_system if place.kind == TARGET else each.key.partition)
        if not each.is_on_demand
    ]
    return max(
        found, key=lambda each: (_can_be_pinned(each, place), each.history.last), default=None
    )


def _can_be_pinned(series: Series, place: Place) -> bool:
    """Whether a run of the check can be pinned; to a target only with one stripe a file."""
    name = series.history.newest.get("display_name") or ""
    can = place.kind != TARGET or series.key.stripe_count_asked in (None, 1)
    return name.startswith(_PINS) and can


def _by_check(
    wanted: Iterable[tuple[Series, str, str]], runs: Iterable[CheckRun]
) -> tuple[Ask, ...]:
    """Return one ask for each check, with all its wanted series."""
    hours = {run.identity: run.node_hours for run in runs}  # in the order of time
    found: dict[tuple[str, ...], Ask] = {}
    for series, purpose, why in wanted:
        key, newest = series.key, series.history.newest
        name, environ = check_name(newest.get("display_name") or ""), key.environ
        if not name or not environ or series.is_on_demand:
            continue
        check = (key.system, key.partition, environ, name)
        if former := found.get(check):
            found[check] = replace(former, series=(*former.series, slug(key)))
            continue
        about = (*check, key.file_system, purpose, why, (slug(key),), series.history.last)
        found[check] = Ask(*about, node_hours=hours.get(check, 0.0))
    return tuple(found.values())
