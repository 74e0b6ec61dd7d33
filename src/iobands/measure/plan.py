"""What is measured again, when and why: `perflogs/plan.json`, and how it is carried out.

Only the holder of the lock writes the plan, as several hosts may have the hourly line. That line
reads it and ends at once if nothing is due.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final

from iobands.measure.reframe import (
    ReadSiteFile,
    Selection,
    Workplace,
    pause,
    run_checks,
    selection_of,
)
from iobands.measure.run_reports import read_report
from iobands.model import (
    COMPLETED,
    LIMIT,
    NODE,
    REPEAT,
    TARGET,
    Ask,
    CheckRun,
    FileError,
    Unusable,
    parse_time,
    read_small,
    replace_file,
    seconds_of,
)

PLAN_NAME: Final = "plan.json"
_SCHEMA: Final = 2
_LARGEST: Final = 1 << 20
_MOST_HOURS: Final = 1e9
_DAY: Final = timedelta(days=1)
#: How far a time may be ahead before the clock counts as set back.
_CLOCK_OFF: Final = timedelta(minutes=15)
#: Parts of `config/` whose change may change what is asked.
_INPUTS: Final = ("alerts", "bands", "systems")

Stamp = tuple[int, int]  # time of the last change in ns, and size


@dataclass(frozen=True)
class Limits:
    """How often a partition measures again: `suspects` of the site file, times in hours.

    `repeat` is how long after a low run it is repeated within the session. 0 switches off.
    """

    every: float = 4.0
    per_day: int = 6
    node_hours_per_day: float = 20.0
    repeat: float = 10 / 60

    @property
    def allow(self) -> bool:
        """Whether anything may be measured again between sessions."""
        return self.every > 0 and self.per_day > 0 and self.node_hours_per_day > 0


@dataclass(frozen=True)
class Asked:
    """A check that was measured again: its identity, and the node hours that it cost at most."""

    when: datetime
    check: tuple[str, ...]
    node_hours: float


@dataclass(frozen=True)
class Plan:
    """What is asked, and the files it was made from, by their names below `config/`.

    `asked` is what was measured again in the last 24 hours.
    """

    written: datetime
    inputs: Mapping[str, Stamp]
    asks: tuple[Ask, ...] = ()
    asked: tuple[Asked, ...] = ()

    def calls(self, config: Path, now: datetime) -> bool:
        """Whether something is due, or what it was made of is not what it was.

        Actions, bands or site files have changed, a maintenance has begun, or the clock was set
        back.
        """
        return (
            self.written - now > _CLOCK_OFF
            or self.inputs != inputs_of(config)
            or any(ask.is_due(now) or (ask.until and ask.until <= now) for ask in self.asks)
        )


_NO_PLAN: Final = Plan(datetime.min.replace(tzinfo=timezone.utc), {"": (0, 0)})


def limits_of(read_site_file: ReadSiteFile, place: str) -> Limits:
    """Return the limits of a partition, `system:partition`; those of the defaults if it has none.

    Raises:
        FileError: the site file cannot be read.
    """
    system, _, name = place.partition(":")
    said = read_site_file(system).partitions.get(name, {}).get("suspects", {})
    known = Limits()
    return Limits(
        _hours(said.get("every"), known.every),
        said.get("per_day", known.per_day),
        said.get("node_hours_per_day", known.node_hours_per_day),
        _hours(said.get("repeat_after"), known.repeat),
    )


def inputs_of(config: Path) -> dict[str, Stamp]:
    """Return the files that a plan is made from."""
    found = {}
    for path in (path for name in _INPUTS for path in sorted((config / name).glob("[!._]*.*"))):
        about = path.stat()
        found[f"{path.parent.name}/{path.name}"] = (about.st_mtime_ns, about.st_size)
    return found


def timed(
    ask: Ask,
    asked: Iterable[Asked],
    limits: Limits,
    quiet: Sequence[tuple[datetime, datetime]],
    now: datetime,
) -> Ask | None:
    """Return `ask` with the times between which it may be measured; None if the site allows none.

    `quiet` are maintenances of its file system. A time in the future was written by a clock that
    was wrong; what happened then counts as of today, but postpones nothing.
    """
    if not limits.allow:
        return None
    every = timedelta(hours=limits.every)
    today = [each for each in asked if abs(now - each.when) < _DAY]
    own = sorted(each.when for each in today if each.check == ask.identity)
    begin = ask.measured + every if ask.measured <= now + _CLOCK_OFF else now
    past = [when for when in own if when <= now + _CLOCK_OFF]
    begin = max([begin, *(when + every for when in past[-1:])])
    if len(own) >= limits.per_day:
        begin = max(begin, min(own[-limits.per_day], now) + _DAY)
    until = None
    for first, last in sorted(quiet):
        if first <= max(begin, now) < last:
            begin = last
        elif first > max(begin, now):
            until = first
            break
    return replace(ask, due=begin, until=until)


def affordable(
    asks: Iterable[Ask], asked: Iterable[Asked], limits: Mapping[Ask, Limits], now: datetime
) -> list[Ask]:
    """Return the asks, in their order, that the node hours of the last day leave room for."""
    spent: defaultdict[str, float] = defaultdict(float)
    for each in asked:
        if abs(now - each.when) < _DAY:
            spent[each.check[0]] += each.node_hours
    found = []
    for ask in asks:
        if spent[ask.place] + ask.node_hours <= limits[ask].node_hours_per_day:
            spent[ask.place] += ask.node_hours
            found.append(ask)
    return found


def within_hours(
    asks: Sequence[Ask], asked: Sequence[Asked], limits: Mapping[Ask, Limits], now: datetime
) -> list[Ask]:
    """Return the asks; what is due but has no node hours left waits until some are free again."""
    due = [ask for ask in asks if ask.is_due(now)]
    waiting = {*due} - {*affordable(due, asked, limits, now)}
    oldest = {each.check[0]: each.when for each in reversed(asked) if abs(now - each.when) < _DAY}
    return [
        replace(ask, due=min(oldest.get(ask.place, now), now) + _DAY) if ask in waiting else ask
        for ask in asks
    ]


def read_plan(perflogs: Path) -> Plan:
    """Return the plan, one that calls for another if it is missing, damaged or of a newer iobands.

    Version 1 had no account of what was measured.
    """
    try:
        said = json.loads(read_small(perflogs / PLAN_NAME, _LARGEST))
        if said["schema"] not in range(1, _SCHEMA + 1):
            return _NO_PLAN
        inputs = {str(name): (int(ns), int(size)) for name, (ns, size) in said["inputs"].items()}
        asked = tuple(map(_asked, said.get("asked", ())))
        return Plan(parse_time(said["written"]), inputs, tuple(map(_ask, said["asks"])), asked)
    except (
        OSError,
        ValueError,
        OverflowError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
    ):
        return _NO_PLAN


def write_plan(perflogs: Path, plan: Plan, now: datetime) -> None:
    """Replace the plan, without what was measured more than a day before `now`.

    Raises:
        OSError: it cannot be written.
    """
    asked = tuple(each for each in plan.asked if abs(now - each.when) < _DAY)
    said = {"schema": _SCHEMA, **asdict(replace(plan, asked=asked))}
    text = json.dumps(said, indent=1, default=datetime.isoformat)
    replace_file(perflogs / PLAN_NAME, f"{text}\n".encode("utf-8", "replace"))


def note_asked(perflogs: Path, asks: Mapping[Ask, Limits], now: datetime) -> None:
    """Note what is about to be measured, so that its next time is not before it is due again.

    Raises:
        OSError: the plan cannot be written.
    """
    plan = read_plan(perflogs)
    next_of = {ask.identity: now + timedelta(hours=limits.every) for ask, limits in asks.items()}
    later = tuple(replace(ask, due=next_of.get(ask.identity, ask.due)) for ask in plan.asks)
    more = (Asked(now, ask.identity, ask.node_hours) for ask in asks)
    write_plan(perflogs, replace(plan, asks=later, asked=(*plan.asked, *more)), now)


def _hours(duration: str | None, otherwise: float) -> float:
    return otherwise if duration is None else seconds_of(duration) / 3600


def _ask(said: Mapping[str, Any]) -> Ask:
    """Return the ask with these fields; raise any error if they are not valid."""
    times = {name: parse_time(said[name]) for name in ("measured", "due", "until") if said[name]}
    ask = Ask(**{**said, "series": tuple(said["series"]), **times})
    texts = [getattr(ask, each.name) for each in fields(ask) if each.type == "str"]
    if not all(isinstance(text, str) and text.isprintable() for text in (*texts, *ask.series)):
        raise ValueError("not a text")
    if not isinstance(ask.measured, datetime):
        raise ValueError("not a time")
    if type(ask.node_hours) not in (int, float) or not 0 <= ask.node_hours < _MOST_HOURS:
        raise ValueError("not a number of node hours")
    return ask


def _asked(said: Mapping[str, Any]) -> Asked:
    found = Asked(
        parse_time(said["when"]), tuple(map(str, said["check"])), float(said["node_hours"])
    )
    if not found.check or not 0 <= found.node_hours < _MOST_HOURS:
        raise ValueError("not an account")
    return found


@dataclass(frozen=True)
class Again:
    """What was measured again: the asks that gave a rate, how it ended, problems and notes.

    `reports` are ReFrame's run reports.
    """

    measured: tuple[Ask, ...] = ()
    how: str = COMPLETED
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reports: tuple[Path, ...] = ()


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
    return Again(tuple(measured), how, tuple(problems), tuple(notes), tuple(reports))


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
