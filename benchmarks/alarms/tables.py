"""The page of the simulations: each table has cases, a way to draw them, and a form of its rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from benchmarks.alarms import (
    accepting,
    asking_again,
    causes,
    peers,
    pinned,
    rows,
    simulate,
    slow,
    together,
    upgrades,
)
from benchmarks.alarms.figures import Delays, Rate, table, verdict
from benchmarks.alarms.simulate import LARGE
from benchmarks.alarms.worlds import WORLDS
from benchmarks.pages import TEMPLATES, rendered

_MORE_TARGETS: Final = slow.Targets(96)
# Free space: four empty targets added, one replaced, one nearly full, and few that all differ.
_UNEQUAL: Final = tuple(
    slow.Weighted(len(free), 1, free, files, shared)
    for free in (
        (*(1.0,) * 20, *(5.0,) * 4),
        (*(1.0,) * 23, 5.0),
        (*(5.0,) * 23, 1.0),
        (1.0, 1.0, 3.0, 5.0),
    )
    for files, shared in ((8, 1.0), (64, 1.0), (64, 4.0), (64, 64.0), (256, 1.0))
)
_STRIPED: Final = tuple(
    slow.Weighted(24, 4, _UNEQUAL[place].free, 128, 1.0) for place in (0, 5, 10)
)


@dataclass(frozen=True)
class Effort:
    """What is drawn: sites per case, series and groups per change, series for other detectors."""

    name: str
    sites: int
    changed: int
    groups: int
    peer_series: int


EFFORTS: Final = {
    "brief": Effort("brief", 1, 24, 10, 1),
    "small": Effort("small", 2, 100, 40, 1),
    "full": Effort("full", 10, 400, 100, 15),
}


@dataclass(frozen=True)
class Table:
    """A table: `draw(*case, seed=...)` is called `repeats` times, and `row` formats the results.

    `number`, if given, is how many series or groups one call draws.
    """

    draw: Callable[..., object]
    cases: Sequence[rows.Case]
    head: str
    row: Callable[[rows.Case, rows.Found], list[object]]
    repeats: Callable[[Effort, rows.Case], int] | None = None
    number: Callable[[Effort, rows.Case], int] | None = None


_ACCEPTED: Final = (
    "runs|correlation from day to day|outliers|lasting|0.9 called met (worst)|aim||"
    "1.05 called missed (worst)|aim||runs at 0.9|at 1|at 1.05|fixed number|share|aim|"
)
_OUTLIERS: Final = (0.005, 0.02, 0.05)
TABLES: Final[Mapping[str, Table]] = {
    "years": Table(
        simulate.years,
        list(product(WORLDS, rows.YEAR_AIM)),
        "world|correlation|first year: down|up|both|aim||second year: down|up",
        rows.year,
        repeats=lambda effort, _: effort.sites,
    ),
    "rounded": Table(
        simulate.rounded_year,
        list(product(WORLDS, rows.YEAR_AIM)),
        "world|correlation|false alarms|aim|",
        rows.rounded,
        repeats=lambda effort, _: effort.sites,
    ),
    "kinds": Table(
        simulate.kinds,
        [
            *product(["mode lost"], (0.25, 0.4), (0.0, 0.3)),
            *product(["unstable"], (0.1, 0.2), (0.0, 0.3)),
            *product(["sliding"], (0.02, 0.05, 0.1), (0.0, 0.3)),
        ],
        "change|of|correlation|median|runs until alerted|aim (median)||called so|slide dated",
        rows.kind,
        number=lambda effort, _: effort.changed,
    ),
    "delays": Table(
        simulate.delays,
        list(rows.BEFORE),
        "band|loss|oracle|at 5.7|before|at 12|before|no worse",
        rows.delay,
        number=lambda effort, _: effort.changed,
    ),
    "again": Table(
        asking_again.delays,
        [
            *(
                (world, phi, 0.0, f)
                for world in WORLDS
                for phi in rows.YEAR_AIM
                for f in rows.AGAIN_AIM
            ),
            *(("log-normal", 0.3, trouble, f) for trouble in (0.01, 0.05) for f in rows.AGAIN_AIM),
            (asking_again.STEADY, 0.0, 0.0, 0.7),
            (asking_again.STEADY, 0.0, 0.01, 0.7),
        ],
        "world|correlation|in trouble|loss|a run a day|measured again|aim (median / 90 %)|",
        rows.again,
        number=lambda effort, _: effort.changed,
    ),
    "again_years": Table(
        asking_again.year,
        [
            *product(WORLDS, (0.0, 0.3), (0.01,)),
            *(("log-normal", 0.3, trouble) for trouble in (0.0, 0.05)),
            ("log-normal", 0.6, 0.01),
        ],
        "world|correlation|in trouble|a run a day|measured again|aim||runs more|aim|",
        rows.again_year,
        number=lambda effort, _: 5 * effort.changed,
    ),
    "again_over": Table(
        asking_again.recoveries,
        [("log-normal", phi, factor) for phi in rows.YEAR_AIM for factor in (0.5, 0.7)],
        "world|correlation|loss|a run a day|measured again|aim (median)|",
        rows.again_over,
        number=lambda effort, _: effort.changed // 2,
    ),
    "outliers": Table(
        simulate.outliers,
        list(product(_OUTLIERS, (False, True), (rows.SMALL, LARGE))),
        "runs that are outliers||series of the site|false alarms|aim|",
        rows.outlier,
        repeats=lambda effort, case: effort.sites * (12 if case[2] == rows.SMALL else 1),
    ),
    "steady": Table(
        simulate.steady_disk,
        list(product((0.58, 0.71), (rows.SMALL, LARGE))),
        "to|series of the site|runs until alerted|aim (90 %)|",
        rows.steady,
        number=lambda effort, case: effort.changed // (1 if case[1] == rows.SMALL else 5),
    ),
    "accepted": Table(
        accepting.accepted,
        [
            *((0.0, outliers, 24.0, 0.0, 0.5) for outliers in (0.0, 0.05)),
            *((0.3, outliers, 24.0, 36.0, 0.5) for outliers in (0.0, 0.05)),
            (0.3, 0.0, 6.0, 36.0, 0.5),
            (0.3, 0.0, 24.0, 36.0, 0.25),
            (0.0, 0.0, 24.0, 36.0, 0.5),
            (0.45, 0.0, 24.0, 36.0, 0.5),
        ],
        _ACCEPTED,
        rows.accepted,
        number=lambda effort, _: 4 * effort.changed,
    ),
    "accepted_real": Table(
        accepting.of_real_year,
        [()] if os.environ.get("IOBANDS_REAL_DATA") else [],
        _ACCEPTED,
        rows.accepted,
        number=lambda effort, _: 20 * effort.changed,
    ),
    "shams": Table(
        upgrades.shams,
        list(product(("log-normal", "heavy tail"), (0.0, 0.3))),
        "values|correlation|" + "|".join(f"after {d} days" for d in upgrades.REPORTS) + "|all|aim|",
        rows.shams,
        repeats=lambda effort, _: 10 * effort.sites,
    ),
    "blind": Table(
        upgrades.blind,
        list(product(("log-normal", "heavy tail"), (0.0, 0.3))),
        "values|correlation|upgrades, real|wrong|aim|decided|aim||days announced",
        rows.blind,
        number=lambda effort, _: 40 * effort.sites,
    ),
    "groups_false": Table(
        together.false_drops,
        list(product(together.SHARED, (0.0, 0.02))),
        "series share|outliers|a year in 30 groups|aim|",
        rows.group_false,
        repeats=lambda effort, _: effort.sites,
    ),
    "groups": Table(
        together.delays,
        [(shared, *fall) for shared in together.SHARED for fall in ((10, 0.7), (4, 0.7), (4, 0.5))],
        "series share|fallen|either|aim (mean)||the group|first series",
        rows.group,
        number=lambda effort, _: effort.groups,
    ),
    "incidents": Table(
        together.false_incidents,
        [(0.02,), (0.05,)],
        "outliers|false incidents a year|aim|",
        rows.incident,
        number=lambda effort, _: 10 * effort.sites,
    ),
    "causes": Table(
        causes.counted,
        [(broken,) for broken in causes.BROKEN],
        "what breaks|alerts|right|unknown|wrong|aim|",
        rows.caused,
        repeats=lambda effort, _: 3 * effort.sites,
    ),
    "improvement": Table(
        simulate.lost_improvement,
        list(product((1.3, 2.0, 4.0), (0.0, 0.3), (rows.SMALL, LARGE))),
        "improved to|correlation|series of the site|runs|aim (mean)|",
        rows.improved,
        number=lambda effort, _: effort.changed,
    ),
    "healthy_peers": Table(
        slow.false_names,
        [
            *product((rows.TARGETS,), (0.0, 0.02, 0.05)),
            *product((_MORE_TARGETS, *rows.DIFFERING, *rows.NODES), (0.02,)),
            *product((*_UNEQUAL[1::5], *_UNEQUAL[2::5], _STRIPED[0]), (0.02,)),
        ],
        "of|busy by chance|named a year|aim|",
        rows.healthy_peers,
        repeats=lambda effort, _: 3 * effort.sites,
    ),
    "slow_peers": Table(
        slow.delays,
        [
            *((rows.TARGETS, 0.5, busy) for busy in (0.0, 0.02, 0.05)),
            (rows.TARGETS, 0.75, 0.02),
            *((place, 0.8, 0.02) for place in rows.DIFFERING),
            *((slow.Targets(24, stripes), 0.5, 0.02) for stripes in (2, 4, 8)),
            (_MORE_TARGETS, 0.5, 0.02),
            *product(rows.NODES, (0.5,), (0.0, 0.02)),
            *((nodes, 0.75, 0.02) for nodes in rows.NODES),
        ],
        "of|speed|busy by chance|sessions until named|aim (90 %)||first named|aim|",
        rows.slow_peer,
        number=lambda effort, _: effort.changed // 2,
    ),
    "unequal_peers": Table(
        slow.in_any_allocation,
        list(product((*_UNEQUAL[0::5], *_UNEQUAL[1::5], *_UNEQUAL[3::5]), (0.5,), (0.02,))),
        "of|in rotation|by weight|missed|aim (mean)|",
        rows.unequal,
        number=lambda effort, _: effort.changed // 2,
    ),
    "asked_again": Table(
        pinned.hours_until_named,
        list(product((rows.DIFFERING[0], rows.DIFFERING[2]), (0.5,), (0.02,), (1.0, 6.0))),
        "of|speed|busy by chance|for|hours until named|aim|",
        rows.asked_again,
        number=lambda effort, _: effort.changed // 3,
    ),
    "asked_healthy": Table(
        pinned.false_names,
        list(product((rows.DIFFERING[0],), (0.02,), (1.0, 6.0))),
        "of|busy by chance|for|named a year|aim||pinned runs a year",
        rows.asked_healthy,
        repeats=lambda effort, _: 2 * effort.sites,
    ),
    "peers": Table(
        peers.measured,
        [(world,) for world in WORLDS],
        "",
        lambda *_: [],  # a row is a detector: see `_peers`
        number=lambda effort, _: effort.peer_series,
    ),
}


def page(
    effort: Effort,
    pool: Executor,
    date: str,
    shuffled: Rate | None,
    real_peers: str,
    section: str | None = None,
) -> str:
    """Simulate everything, or only the tables of one section, and return the page.

    `shuffled` is the rate of incidents in the real year with its days in random order, and
    `real_peers` the table of the other detectors on the real year.
    """
    template = section_of((TEMPLATES / "error-rates.md").read_text(encoding="utf-8"), section)
    jobs: dict[str, dict[rows.Case, list[Any]]] = {}
    for name, each in TABLES.items():
        if f"{{{{ {name} }}}}" not in template:
            continue
        for case in each.cases:
            number = {"number": each.number(effort, case)} if each.number else {}
            key, count = (name, *case), each.repeats(effort, case) if each.repeats else 0
            jobs.setdefault(name, {})[case] = [
                pool.submit(each.draw, *case, seed=_seed(one), **number)
                for one in ([(*key, n) for n in range(count)] or [key])
            ]
    texts = dict.fromkeys(TABLES, "")
    for name, cases in jobs.items():
        found = {case: [job.result() for job in submitted] for case, submitted in cases.items()}
        lines = [TABLES[name].row(case, each) for case, each in found.items()]
        if name == "incidents" and shuffled is not None:
            met = verdict(shuffled.value < 0.5)  # noqa: PLR2004
            lines.append(["the real year, its days in random order", shuffled, "< 0.5", met])
        texts[name] = table(TABLES[name].head.split("|"), lines)
        if name == "peers":
            texts[name] = _peers([each for (each,) in found.values()], effort.peer_series)
    sites = {size: simulate.threshold_of(size) for size in (rows.SMALL, LARGE)}
    needed = {place: slow.threshold(place) for place in (rows.TARGETS, _MORE_TARGETS, *rows.NODES)}
    return rendered(
        "error-rates.md",
        date=date,
        effort=effort,
        sites=sites,
        needed=needed,
        real_peers=real_peers,
        **texts,
    )


def section_of(text: str, heading: str | None) -> str:
    """Return a section of a page, from its heading to the next one; the page without a heading."""
    if heading is None:
        return text
    begin = text.index(f"## {heading}\n")
    end = text.find("\n## ", begin)
    return text[begin : end if end >= 0 else len(text)]


def _peers(worlds: Sequence[Mapping[str, tuple[int, list[float]]]], series: int) -> str:
    lines = []
    for name in worlds[0]:
        time = len(worlds) * series * (peers.MORE_OF_OURS if name == peers.OURS else 1)
        false = Rate(sum(world[name][0] for world in worlds), time)
        delays = Delays(tuple(run for world in worlds for run in world[name][1]), peers.LONGEST)
        quantiles = [delays.quantile(share) for share in (0.5, 0.9)]
        late = [f"{each:.0f}" if each < delays.longest else "never" for each in quantiles]
        lines.append([name, false, *late, f"{delays.missed:.0%}"])
    return table(
        ["", "false alarms a series-year", "−30 %: median", "90 %", "missed in 100 runs"], lines
    )


def _seed(case: rows.Case) -> int:
    """Return a seed that depends on nothing but the case."""
    return int.from_bytes(repr(case).encode(), "little") % (2**31 - 1)
