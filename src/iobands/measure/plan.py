"""The daily budgets of partitions, and the plan of what to measure again, `perflogs/plan.json`.

A cost is an upper bound, known before anything is submitted: the volume of the scale times the
repeats, and the nodes times the time limit. The plan says what is measured again, when and why.
Cron runs `iobands run --suspects` every hour, perhaps on several hosts; it reads the plan, and ends
at once if nothing is due. Only the holder of the lock writes the plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, timedelta, timezone
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any, Final

from iobands.measure.documents import decoded, read_object, write_document
from iobands.measure.reframe import ReadSiteFile, Selection, Workplace, describe
from iobands.model import REPEAT, Ask, FileError, Unusable, seconds_of

PLAN_NAME: Final = "plan.json"
_SCHEMA: Final = 2
_MOST_HOURS: Final = 1e9
_DAY: Final = timedelta(days=1)
_LONGEST: Final = 87_600.0  # hours, ten years: far longer intervals would overflow a date
#: How far a time may be ahead before the clock counts as set back.
_CLOCK_OFF: Final = timedelta(minutes=15)
#: The directories of `config/` that the plan depends on.
_INPUTS: Final = ("alerts", "bands", "systems")
#: Their files; epochs that a command began are in a directory for each system.
_FILES: Final = ("[!._]*.*", "[!._]*/[!._]*.*")

Stamp = tuple[int, int]  # time of the last change in ns, and size


@dataclass(frozen=True)
class Limits:
    """How often a partition may measure again: `suspects` of the site file, times in hours.

    `repeat` is the time from a low run to its repeat in the same session. 0 disables an entry.
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
    """The asks, what was measured (`asked`) in the last 24 hours, and the files it depends on."""

    written: datetime
    inputs: Mapping[str, Stamp]
    asks: tuple[Ask, ...] = ()
    asked: tuple[Asked, ...] = ()

    def calls(self, config: Path, now: datetime) -> bool:
        """Whether to act now: an ask is due, inputs or clock changed, or a maintenance began."""
        return (
            self.written - now > _CLOCK_OFF
            or self.inputs != inputs_of(config)
            or any(ask.is_due(now) or (ask.until and ask.until <= now) for ask in self.asks)
        )


_NO_PLAN: Final = Plan(datetime.min.replace(tzinfo=timezone.utc), {"": (0, 0)})


def limits_of(read_site_file: ReadSiteFile, place: str) -> Limits:
    """Return the limits of a partition, `system:partition`, or raise FileError."""
    system, _, name = place.partition(":")
    said = read_site_file(system).partitions.get(name, {}).get("suspects", {})
    found = {each: said[each] for each in ("per_day", "node_hours_per_day") if each in said}
    try:
        for key, entry in (("every", "every"), ("repeat", "repeat_after")):
            if entry in said:
                found[key] = min(seconds_of(said[entry]) / 3600, _LONGEST)
    except (ValueError, TypeError) as error:
        raise FileError(f"config/systems/{system}.py: suspects of {name}: {error}") from error
    return Limits(**found)


def inputs_of(config: Path) -> dict[str, Stamp]:
    """Return the stamps of the files that a plan depends on, by path below `config`."""
    found: dict[str, Stamp] = {}
    every = ((config / name).glob(each) for name in _INPUTS for each in _FILES)
    for path in (path for some in every for path in sorted(some)):
        with suppress(OSError):  # it was just removed, or is a dangling link
            about, name = path.stat(), path.relative_to(config).as_posix()
            found[name] = (about.st_mtime_ns, about.st_size)
    return found


def timed(
    ask: Ask,
    asked: Iterable[Asked],
    limits: Limits,
    quiet: Sequence[tuple[datetime, datetime]],
    now: datetime,
) -> Ask | None:
    """Return `ask` with the times between which it may be measured; None if the site allows none.

    `quiet` are the maintenance windows of its file system. A time in the future comes from a wrong
    clock: such a run counts towards the runs of today, but postpones nothing.
    """
    if not limits.allow:
        return None
    every = timedelta(hours=limits.every)
    own = sorted(each.when for each in _recent(asked, now) if each.check == ask.identity)
    past = [when for when in (ask.measured, *own) if when <= now + _CLOCK_OFF]
    begin = max(past) + every if past else now
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
    """Return the asks, in order, that fit into the node hours left after the last 24 hours."""
    spent: defaultdict[str, float] = defaultdict(float)
    for each in _recent(asked, now):
        spent[each.check[0]] += each.node_hours
    found = []
    for ask in asks:
        if spent[ask.place] + ask.node_hours <= limits[ask].node_hours_per_day:
            spent[ask.place] += ask.node_hours
            found.append(ask)
    return found


def _recent(asked: Iterable[Asked], now: datetime) -> list[Asked]:
    return [each for each in asked if abs(now - each.when) < _DAY]


def within_hours(
    asks: Sequence[Ask], asked: Sequence[Asked], limits: Mapping[Ask, Limits], now: datetime
) -> list[Ask]:
    """Return all asks; due ones that exceed the node hours wait until some are free again."""
    due = [ask for ask in asks if ask.is_due(now)]
    waiting = {*due} - {*affordable(due, asked, limits, now)}
    oldest = {each.check[0]: each.when for each in reversed(_recent(asked, now))}
    return [
        replace(ask, due=min(oldest.get(ask.place, now), now) + _DAY) if ask in waiting else ask
        for ask in asks
    ]


def allowed(
    asks: Sequence[Ask], asked: Sequence[Asked], limits: Mapping[Ask, Limits], now: datetime
) -> list[Ask]:
    """Return the asks that the limits allow now; `every` does not apply to repeats."""
    found = []
    for ask in asks:
        if ask.purpose == REPEAT:
            own = sum(each.check == ask.identity for each in asked)
            if limits[ask].allow and limits[ask].repeat > 0 and own < limits[ask].per_day:
                found.append(ask)
        elif (again := timed(ask, asked, limits[ask], (), now)) and again.is_due(now):
            found.append(ask)
    return affordable(found, asked, limits, now)


def read_plan(perflogs: Path) -> Plan:
    """Return the plan; if it is missing, damaged or of a newer iobands, an empty one to replace.

    Version 1 had no `asked`.
    """
    try:
        plan = decoded(Plan, read_object(perflogs / PLAN_NAME, range(1, _SCHEMA + 1)))
    except (OSError, Unusable):
        return _NO_PLAN
    is_whole = all(each.check for each in plan.asked)
    costs = [each.node_hours for each in plan.asks] + [each.node_hours for each in plan.asked]
    return plan if is_whole and all(0 <= cost < _MOST_HOURS for cost in costs) else _NO_PLAN


def write_plan(perflogs: Path, plan: Plan, now: datetime) -> None:
    """Write the plan, without runs of more than a day before `now`, or raise OSError."""
    said = {"schema": _SCHEMA, **asdict(plan), "asked": [*map(asdict, _recent(plan.asked, now))]}
    write_document(perflogs / PLAN_NAME, said)


def note_asked(perflogs: Path, asks: Mapping[Ask, Limits], now: datetime) -> None:
    """Record in the plan that `asks` begin now, and when each is due again, or raise OSError."""
    plan = read_plan(perflogs)
    next_of = {ask.identity: now + timedelta(hours=limits.every) for ask, limits in asks.items()}
    later = tuple(replace(ask, due=next_of.get(ask.identity, ask.due)) for ask in plan.asks)
    more = (Asked(now, ask.identity, ask.node_hours) for ask in asks)
    write_plan(perflogs, replace(plan, asks=later, asked=(*plan.asked, *more)), now)


BUDGET_NAME: Final = ".budget.json"
GIB_PER_TIB: Final = 1024
#: The order in which checks get a share of the budget, by tag.
_PRIORITY: Final = ("smoke", "daily", "weekly")


@dataclass(frozen=True)
class Cost:
    """The most that a check costs on one partition: GiB written, and node hours.

    Both are 0 if the scheduler chooses the number of nodes.
    """

    name: str
    partition: str
    file_system: str
    priority: int
    written_gib: float
    node_hours: float


def costs_of(described: Iterable[Mapping[str, Any]]) -> list[Cost]:
    """Return the costs of checks as `reframe --describe` lists them; the preflight has none."""
    found = []
    for check in described:
        if not (check.get("tool") and "gib" in check):
            continue
        tags = [n for n, tag in enumerate(_PRIORITY) if tag in check["tags"]]
        runs = len(check["valid_prog_environs"])
        gib = check["gib"] * max(check["repeats"], 1) * runs
        hours = check["nodes"] * (check["time_limit"] or 0) / 3600 * runs
        what, priority = check["file_system"], min(tags, default=len(_PRIORITY))
        found += [
            Cost(check["display_name"], place, what, priority, gib, hours)
            for place in check["valid_systems"]
        ]
    return found


def over_budget(at: Workplace, selection: Selection) -> tuple[list[Cost], set[str]]:
    """Reserve the costs of a selection today, and return the ones that exceed the site's budgets.

    Also return the names of checks that fit the budget of at least one partition. If no site file
    has a budget, ReFrame is not called. Raises SessionError if the costs cannot be read, and
    OSError if the reservation cannot be recorded.
    """
    budgets = {
        f"{system}:{name}": extras["daily_budget"]
        for system, site_file in at.systems()
        for name, extras in site_file.partitions.items()
        if "daily_budget" in extras
    }
    if not budgets:
        return [], set()
    costs = costs_of(describe(at.root, selection.arguments()))
    cut = reserve(at.perflogs, costs, budgets, datetime.now(timezone.utc).date())
    return cut, {cost.name for cost in {*costs} - {*cut}}


def reserve(
    perflogs: Path, costs: Sequence[Cost], budgets: Mapping[str, Mapping[str, float]], day: date
) -> list[Cost]:
    """Reserve `costs` on `day`, and return the ones that exceed the budgets.

    The keys of `budgets` are `system:partition`. Smoke checks come first, then daily ones. Raises
    OSError if the reservation cannot be recorded.
    """
    path, today, cut = perflogs / BUDGET_NAME, day.isoformat(), []
    spent: dict[str, tuple[float, float]] = {}  # by partition
    with suppress(OSError, Unusable):
        said = read_object(path)
        found = decoded(dict[str, tuple[float, float]], said.get("spent"))
        if said.get("day") == today and min(chain(*found.values()), default=0) >= 0:
            spent = found
    for cost in sorted(costs, key=lambda each: each.priority):
        if (budget := budgets.get(cost.partition)) is None:
            continue
        written, hours = spent.get(cost.partition, (0.0, 0.0))
        total = (written + cost.written_gib, hours + cost.node_hours)
        most = (budget.get("written_tib", inf) * GIB_PER_TIB, budget.get("node_hours", inf))
        if total[0] <= most[0] and total[1] <= most[1]:
            spent[cost.partition] = total
        else:
            cut.append(cost)
    write_document(path, {"day": today, "spent": spent})
    return cut
