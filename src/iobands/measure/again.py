"""Measuring again, under the lock: what the site allows of what is asked, each run by itself."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from iobands.measure import Listener, ReadSiteFile, Selection, exactly
from iobands.measure.perflogs import reconcile
from iobands.measure.plan import Asked, Limits, affordable, limits_of, note_asked, read_asked, timed
from iobands.measure.reframe import pause, run_checks
from iobands.measure.run_reports import Part, entries_of, load_report
from iobands.model import COMPLETED, REPEAT, Ask, FileError, Unusable


@dataclass(frozen=True)
class Again:
    """What was measured again: the asks that gave a rate, how it ended, problems and notes."""

    measured: tuple[Ask, ...] = ()
    how: str = COMPLETED
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def ask_again(
    root: Path,
    asks: Sequence[Ask],
    read_site_file: ReadSiteFile,
    session: str,
    limit: float,
    listener: Listener,
) -> Again:
    """Measure `asks` again, as far as the limits of their site files allow.

    A repeat waits until some minutes have passed since its low run. Each ask is noted before it is
    measured, so that no other host and no later hour asks the same while its job waits.

    Raises:
        SessionError: there is no ReFrame.
        OSError: a file cannot be written.
    """
    perflogs, end = root / "perflogs", time.monotonic() + limit
    now = datetime.now(timezone.utc)
    try:
        limits = {ask: limits_of(read_site_file, ask.place) for ask in asks}
    except FileError as error:
        return Again(problems=(str(error),))
    chosen = _allowed(asks, read_asked(perflogs), limits, now)
    left = len(asks) - len(chosen)
    notes = [f"{left} not measured again: the limits of the site are reached"] if left else []
    if not chosen:
        return Again(notes=tuple(notes))
    note_asked(perflogs, (Asked(now, ask.identity, ask.node_hours) for ask in chosen), now)
    begin = max(ask.measured + timedelta(hours=limits[ask].repeat) for ask in chosen)
    how = COMPLETED
    if chosen[0].purpose == REPEAT and begin > now:
        listener.step(f"waiting until {begin.astimezone():%H:%M} to repeat {len(chosen)}")
        wait = min((begin - now).total_seconds(), max(limits[ask].repeat for ask in chosen) * 3600)
        how = pause(root, wait, limit, listener)
    reports: list[Path] = []
    problems: list[str] = []
    for selection in _selections(chosen):
        if how == COMPLETED:
            ended = run_checks(root, selection, [], session, end - time.monotonic(), listener)
            how = ended.how
            reports += ended.reports
            problems += [f"not loaded: {each}" for each in ended.not_loaded]
            if not ended.reports and ended.cases is not None:
                problems.append(ended.said)
    reconciled = reconcile(reports, perflogs)
    measured = []
    for ask in chosen:
        why = _why_not(ask, reports)
        if why:
            notes.append(f"{ask.check} was not measured again: {why}")
        else:
            measured.append(ask)
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


def _selections(asks: Sequence[Ask]) -> list[Selection]:
    """Return what to run: the checks of a partition, an environment and a purpose together."""
    together: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for ask in asks:
        together[ask.place, ask.environ, ask.purpose, ask.target].append(ask.check)
    return [
        Selection(
            tag=None,
            system=place,
            extra=(
                *(word for name in dict.fromkeys(names) for word in ("-n", exactly(name))),
                "-p",
                f"^{re.escape(environ)}$",
                *(("-S", f"{names[0].split()[0]}.target={target}") if target else ()),
            ),
            why=purpose,
        )
        for (place, environ, purpose, target), names in together.items()
    ]


def _why_not(ask: Ask, reports: Sequence[Path]) -> str:
    """Return why an ask gave no rate, by the run reports; empty if it gave one."""
    entry = next((each for path in reports for each in _entries(path) if _is_of(each, ask)), None)
    if entry is None:
        return "it was not run; it may be gone or renamed"
    values = entry.get("perfvalues")
    figures = values.values() if isinstance(values, dict) else ()
    if any(each and each[0] is not None for each in figures):
        return ""
    said = entry.get("skip_reason") or entry.get("fail_reason") or entry.get("result")
    return " ".join(str(said).split())


def _is_of(entry: Part, ask: Ask) -> bool:
    place = f"{entry.get('system')}:{entry.get('partition')}"
    return (place, entry.get("environ"), entry.get("display_name")) == ask.identity[:3]


def _entries(path: Path) -> list[Part]:
    try:
        return [*entries_of(load_report(path))]
    except Unusable:
        return []
