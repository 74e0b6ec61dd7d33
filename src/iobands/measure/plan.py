"""`perflogs/plan.json`: what is measured again between sessions, when and why.

A session writes the plan. The hourly command reads it and ends at once if nothing is due, so this
module needs little. What was measured again is in `perflogs/.asked.json`, which only the holder of
the lock writes: several hosts may have the hourly line.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from iobands.measure import ReadSiteFile
from iobands.model import Ask, FileError, parse_time, read_small, replace_file, seconds_of

PLAN_NAME: Final = "plan.json"
ASKED_NAME: Final = ".asked.json"
_SCHEMA: Final = 1
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
    """What is asked, and the files of which it was made, by their names below `config/`."""

    written: datetime
    inputs: Mapping[str, Stamp]
    asks: tuple[Ask, ...] = ()

    def is_outdated(self, config: Path, now: datetime) -> bool:
        """Whether actions, bands or site files have changed, or a maintenance began since."""
        return self.inputs != inputs_of(config) or any(
            ask.until is not None and ask.until <= now for ask in self.asks
        )

    def due(self, asked: Iterable[Asked], now: datetime) -> tuple[Ask, ...]:
        """Return what is due and was not measured since the plan was written."""
        since = {each.check for each in asked if each.when >= self.written}
        return tuple(ask for ask in self.asks if ask.is_due(now) and ask.identity not in since)


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
    """Return the files of which a plan is made."""
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


def read_plan(perflogs: Path) -> Plan | None:
    """Return the plan, None if there is none or it is damaged.

    Raises:
        FileError: it is of a newer iobands.
    """
    try:
        said = json.loads(read_small(perflogs / PLAN_NAME, _LARGEST))
        if type(said["schema"]) is int and said["schema"] > _SCHEMA:
            raise FileError(
                f"{perflogs / PLAN_NAME}: of a newer iobands (version {said['schema']}); run "
                "`iobands run --suspects` with that one, or remove the file"
            )
        if said["schema"] != _SCHEMA:
            return None
        inputs = {str(name): (int(ns), int(size)) for name, (ns, size) in said["inputs"].items()}
        return Plan(parse_time(said["written"]), inputs, tuple(map(_ask, said["asks"])))
    except FileError:
        raise
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def write_plan(perflogs: Path, plan: Plan) -> None:
    """Replace the plan.

    Raises:
        OSError: it cannot be written.
    """
    said = {"schema": _SCHEMA, **asdict(plan)}
    text = json.dumps(said, indent=1, default=datetime.isoformat)
    replace_file(perflogs / PLAN_NAME, f"{text}\n".encode("utf-8", "replace"))


def read_asked(perflogs: Path) -> list[Asked]:
    """Return what was measured again; nothing if the file is damaged."""
    try:
        said = json.loads(read_small(perflogs / ASKED_NAME, _LARGEST))
        found = [
            Asked(parse_time(one["when"]), tuple(map(str, one["check"])), float(one["node_hours"]))
            for one in said
        ]
    except (OSError, ValueError, OverflowError, TypeError, KeyError, RecursionError):
        return []
    return [each for each in found if each.check and 0 <= each.node_hours < _MOST_HOURS]


def note_asked(perflogs: Path, more: Iterable[Asked], now: datetime) -> None:
    """Add to what was measured again, and forget what is older than a day.

    Raises:
        OSError: it cannot be written.
    """
    kept = [each for each in read_asked(perflogs) if abs(now - each.when) < _DAY]
    text = json.dumps([asdict(each) for each in (*kept, *more)], default=datetime.isoformat)
    replace_file(perflogs / ASKED_NAME, f"{text}\n".encode("utf-8", "replace"))


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
    if not re.fullmatch(r"\d*", ask.target, re.ASCII):
        raise ValueError("not a target")
    return ask
