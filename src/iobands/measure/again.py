"""Measuring again, under the lock: what the site allows of what is asked, each run by itself."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from iobands.measure.perflogs import reconcile
from iobands.measure.plan import Asked, Limits, affordable, limits_of, note_asked, read_plan, timed
from iobands.measure.reframe import pause, run_checks
from iobands.measure.run_reports import read_report
from iobands.measure.workplace import Selection, Workplace, selection_of
from iobands.model import COMPLETED, LIMIT, NODE, REPEAT, TARGET, Ask, CheckRun, FileError, Unusable


@dataclass(frozen=True)
class Again:
    """What was measured again: the asks that gave a rate, how it ended, problems and notes."""

    measured: tuple[Ask, ...] = ()
    how: str = COMPLETED
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def ask_again(at: Workplace, asks: Sequence[Ask], session: str, limit: float) -> Again:
    """Measure `asks` again, as far as the limits of their site files allow.

    A repeat waits until some minutes have passed since its low run. Each ask is noted before it is
    measured, so that no other host and no later hour asks the same while its job waits.

    Raises:
        SessionError: there is no ReFrame.
        OSError: a file cannot be written.
    """
    perflogs, end = at.perflogs, time.monotonic() + limit
    now = datetime.now(timezone.utc)
    try:
        limits = {ask: limits_of(at.read_site_file, ask.place) for ask in asks}
    except FileError as error:
        return Again(problems=(str(error),))
    chosen = _allowed(asks, read_plan(perflogs).asked, limits, now)
    left = ", ".join(dict.fromkeys(ask.check for ask in asks if ask not in chosen))
    notes = [f"not repeated, as `suspects` in the site file allows no more today: {left}"] * bool(
        left
    )
    begin = max((ask.measured + timedelta(hours=limits[ask].repeat) for ask in chosen), default=now)
    how = COMPLETED
    if chosen and chosen[0].purpose == REPEAT and begin > now:
        at.listener.step(f"waiting until {begin.astimezone():%H:%M} for the repeats")
        wait = min((begin - now).total_seconds(), max(limits[ask].repeat for ask in chosen) * 3600)
        how = pause(at.root, wait, limit, at.listener)
    problems: list[str] = []
    failed: defaultdict[str, list[str]] = defaultdict(list)
    measured: list[Ask] = []
    reports: list[Path] = []
    for selection, own in _selections(chosen):
        if how != COMPLETED:
            break
        note_asked(perflogs, {ask: limits[ask] for ask in own}, datetime.now(timezone.utc))
        ended = run_checks(at.root, selection, [], session, end - time.monotonic(), at.listener)
        how = ended.how
        reports += ended.reports
        problems += [f"not loaded: {each}" for each in ended.not_loaded]
        if how == COMPLETED and not ended.reports and ended.cases is not None:
            problems.append(ended.said)
        for ask in own:
            why = _why_not(ask, ended.reports)
            if not why:
                measured.append(ask)
            elif how == COMPLETED:
                failed[why].append(ask.check)
    notes += [f"not measured again: {', '.join(each)}: {why}" for why, each in failed.items()]
    if how != COMPLETED:
        what = "reached the time limit" if how == LIMIT else "were interrupted"
        notes.append(f"the repeats {what}; {len(measured)} of {len(chosen)} are done")
    reconciled = reconcile(reports, perflogs)
    return Again(
        tuple(measured),
        how,
        (*problems, *reconciled.lost),
        (*notes, *reconciled.notes),
    )


def _allowed(
    asks: Sequence[Ask], asked: Sequence[Asked], limits: Mapping[Ask, Limits], now: datetime
) -> list[Ask]:
    """Return the asks that the limits allow now; a repeat waits for minutes, not for hours."""
    found = []
    for ask in asks:
        if ask.purpose == REPEAT:
            own = sum(each.check == ask.identity for each in asked)
            if limits[ask].allow and limits[ask].repeat > 0 and own < limits[ask].per_day:
                found.append(ask)
        elif (again := timed(ask, asked, limits[ask], (), now)) and again.is_due(now):
            found.append(ask)
    return affordable(found, asked, limits, now)


def _selections(asks: Sequence[Ask]) -> Iterator[tuple[Selection, list[Ask]]]:
    """Yield what to run: the checks of a partition, an environment and a purpose together."""
    together: defaultdict[tuple[str, ...], list[Ask]] = defaultdict(list)
    for ask in asks:
        together[ask.place, ask.environ, ask.purpose, ask.target, ask.node].append(ask)
    for (place, environ, purpose, target, node), own in together.items():
        words: list[str] = []
        for kind, peer in ((TARGET, target), (NODE, node)):
            words += ["-S", f"{own[0].check.split()[0]}.{kind}={peer}"] if peer else []
        yield selection_of([ask.check for ask in own], place, environ, purpose, words), own


def _why_not(ask: Ask, reports: Iterable[Path]) -> str:
    """Return why an ask gave no rate, by the run reports; empty if it gave one."""
    every = (each for path in reports for each in _runs(path))
    for run in (each for each in every if each.identity == ask.of_check):
        return "" if run.recorded else run.reason or run.result
    return "ReFrame finds no such check; if it is gone for good, retire its series"


def _runs(path: Path) -> list[CheckRun]:
    try:
        return (read_report(path) or (None, []))[1]
    except Unusable:
        return []
