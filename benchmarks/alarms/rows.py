"""Turns the simulations of a case into a row of each table, with the figures aimed at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from benchmarks.alarms import (
    accepting,
    simulate,
    slow,
)
from benchmarks.alarms.figures import Delays, Rate, verdict
from benchmarks.alarms.simulate import LARGE

SMALL: Final = 12
TARGETS: Final = slow.Targets(24)
DIFFERING: Final = tuple(
    slow.Targets(targets, spread=spread) for targets in (24, 96) for spread in (0.05, 0.1)
)
NODES: Final = (slow.Nodes(8, 16), slow.Nodes(64, 32))
_SESSIONS_MORE: Final = 2
_SESSIONS_AIM: Final = {TARGETS: 4, DIFFERING[2]: 12}
_HOURS_OF_A_DAY: Final = 24
YEAR_AIM: Final = {0.0: 1.5, 0.3: 1.5, 0.6: 3.0}
_STEADY_AIM: Final = {SMALL: 3, LARGE: 5}
_MODE_AIM, _MODE_SHARE = 30, 0.4
_GROUP_AIM: Final = {10: 4, 4: 8}
#: The mean delay at the watch threshold and at 12 nats after 200 runs, before the detector learned
#: from all series: this page as it was in commit 1b11f27.
BEFORE: Final = {
    ("NVMe FPP", 0.9): (22.5, 52.0), ("NVMe FPP", 0.8): (8.3, 17.2),
    ("NVMe FPP", 0.7): (3.6, 6.8), ("NVMe FPP", 0.5): (2.0, 3.5),
    ("SSF NVMe", 0.9): (34.2, 89.6), ("SSF NVMe", 0.8): (8.1, 16.7),
    ("SSF NVMe", 0.7): (3.4, 7.1), ("SSF NVMe", 0.5): (2.1, 3.8),
    ("SSF HDD", 0.9): (86.2, 142.2), ("SSF HDD", 0.8): (24.7, 66.8),
    ("SSF HDD", 0.7): (10.5, 24.1), ("SSF HDD", 0.5): (4.0, 8.6),
    ("FPP HDD", 0.9): (30.1, 64.3), ("FPP HDD", 0.8): (19.4, 40.8),
    ("FPP HDD", 0.7): (13.0, 28.7), ("FPP HDD", 0.5): (11.1, 25.0),
}  # fmt: skip
Case = tuple[Any, ...]
Found = Sequence[Any]


def year(case: Case, found: Found) -> list[object]:
    """Return false alarms in the first year and in the second."""
    down, up, later_down, later_up = (
        Rate(sum(counts), len(found)) for counts in zip(*found, strict=True)
    )
    both, aim = Rate(down.alarms + up.alarms, down.time), YEAR_AIM[case[1]]
    return [*case, down, up, both, f"≤ {aim:g}", verdict(both.value <= aim), later_down, later_up]


def delay(case: Case, found: Found) -> list[object]:
    """Return the delays from a drop to its alert, next to those of `BEFORE`."""
    band, factor = case
    mean, ninth = simulate.oracle(band, factor, 1000.0)
    (delays,), before = found, BEFORE[band, factor]
    slower = any(d.mean > old + 2 * d.error for d, old in zip(delays, before, strict=True))
    figures = (delays[0], before[0], delays[1], before[1])
    return [band, f"−{1 - factor:.0%}", f"{mean:.1f} ({ninth:.0f})", *figures, verdict(not slower)]


AGAIN_AIM: Final = {0.7: (6.0, 12.0), 0.5: (2.0, 3.0)}


def _days(delays: Delays) -> str:
    missed = f", {delays.missed:.0%} missed" if delays.missed else ""
    return f"{delays.quantile(0.5):.1f} / {delays.quantile(0.9):.1f}{missed}"


def again(case: Case, found: Found) -> list[object]:
    """Return delays in days, with daily runs only and when measured again."""
    world, correlation, trouble, factor = case
    ((daily, again),), aims = found, AGAIN_AIM[factor]
    met = all(again.quantile(q) <= aim for q, aim in zip((0.5, 0.9), aims, strict=True))
    aim = f"≤ {aims[0]:g} / {aims[1]:g}"
    loss = f"−{1 - factor:.0%}"
    return [
        world,
        correlation,
        f"{trouble:.0%}",
        loss,
        *map(_days, (daily, again)),
        aim,
        verdict(met),
    ]


def again_year(case: Case, found: Found) -> list[object]:
    """Return false alarms of a year in which series are measured again."""
    world, correlation, trouble = case
    ((daily, again, more, number),) = found
    rates = [Rate(alarms, number / LARGE) for alarms in (daily, again)]
    met = verdict(rates[1].value <= 1), verdict(more <= 0.1)  # noqa: PLR2004
    share = f"{more:.1%}"
    return [world, correlation, f"{trouble:.0%}", *rates, "≤ 1", met[0], share, "≤ 10 %", met[1]]


def again_over(case: Case, found: Found) -> list[object]:
    """Return the days until trouble is known to be over."""
    ((daily, again),) = found
    met = verdict(again.quantile(0.5) <= 1)
    return [*case[:2], f"−{1 - case[2]:.0%}", _days(daily), _days(again), "≤ 1", met]


def outlier(case: Case, found: Found) -> list[object]:
    """Return false alarms by outliers."""
    rate, pairs, size = case
    where, false = "in pairs" if pairs else "single", Rate(sum(found), len(found))
    return [f"{rate:.1%}", where, size, false, "≤ 1.5", verdict(false.value <= YEAR_AIM[0.0])]


def steady(case: Case, found: Found) -> list[object]:
    """Return delays for a drop in a steady series."""
    (delays,), aim = found, _STEADY_AIM[case[1]]
    return [f"{case[0]:g} ×", case[1], delays, f"≤ {aim}", verdict(delays.quantile(0.9) <= aim)]


def kind(case: Case, found: Found) -> list[object]:
    """Return how often the kind of a change was recognised, and how soon."""
    kind, size, phi = case
    (one,) = found
    aim = _MODE_AIM if kind == "mode lost" and size <= _MODE_SHARE and phi == 0 else None
    middle, dated = one.delays.quantile(0.5), "–"
    aims = ("", "") if aim is None else (f"≤ {aim}", verdict(middle <= aim))
    if one.dated:
        dated = "{:+.0f} to {:+.0f}".format(*np.percentile(one.dated, [10, 90]))
    return [kind, f"{size:.0%}", phi, f"{middle:g}", one.delays, *aims, f"{one.right:.0%}", dated]


def rounded(case: Case, found: Found) -> list[object]:
    """Return false alarms of rounded values."""
    false, aim = Rate(sum(found), len(found)), YEAR_AIM[case[1]]
    return [*case, false, f"≤ {aim:g}", verdict(false.value <= aim)]


def group_false(case: Case, found: Found) -> list[object]:
    """Return false alarms of groups."""
    false = Rate(sum(found), len(found))
    return [case[0], f"{case[1]:.0%}", false, "≤ 1", verdict(false.value <= 1)]


def caused(case: Case, found: Found) -> list[object]:
    """Return how often the cause was named."""
    every = sum(found, Counter[str]())
    shares = [f"{every[each] / max(1, every.total()):.0%}" for each in ("right", "unknown")]
    return [*case, every.total(), *shares, every["wrong"], "0 wrong", verdict(not every["wrong"])]


def group(case: Case, found: Found) -> list[object]:
    """Return delays for a drop of a group."""
    shared, fallen, factor = case
    ((group, alone),), aim = found, _GROUP_AIM[fallen]
    first = Delays(tuple(map(min, group.runs, alone.runs)), group.longest)
    what, met = f"{fallen} of 10 at {factor:g}", verdict(first.mean <= aim)
    return [shared, what, first, f"≤ {aim}", met, group, alone]


def incident(case: Case, found: Found) -> list[object]:
    """Return how often an incident opens by chance."""
    what = f"{case[0]:.0%} of the runs, all independent"
    return [what, found[0], "< 0.5", verdict(found[0].value < 0.5)]  # noqa: PLR2004


def improved(case: Case, found: Found) -> list[object]:
    """Return delays for a rise."""
    rise, phi, size = case
    met = verdict(found[0].mean <= 8)  # noqa: PLR2004
    return [f"{rise:g} ×", phi, size, found[0], "≤ 8", met]


def healthy_peers(case: Case, found: Found) -> list[object]:
    """Return false alarms of targets or nodes."""
    place, busy = case
    rate = Rate(sum(found), len(found))
    return [place, f"{busy:.0%}", rate, "< 1", verdict(rate.value < 1)]


def slow_peer(case: Case, found: Found) -> list[object]:
    """Return delays for a slow target or node."""
    place, speed, busy = case
    ((delays, right),) = found
    soon, named = ("", ""), ("", "")
    if speed == 0.5 and place in (TARGETS, *NODES):  # noqa: PLR2004
        named = "≥ 95 %", verdict(right >= 0.95)  # noqa: PLR2004
    if place in _SESSIONS_AIM and (speed == 0.5 or place.spread):  # noqa: PLR2004
        aim = _SESSIONS_AIM[place]
        soon = f"≤ {aim}", verdict(delays.quantile(0.9) <= aim)
    return [place, f"{speed:g} ×", f"{busy:.0%}", delays, *soon, f"{right:.0%}", *named]


def asked_again(case: Case, found: Found) -> list[object]:
    """Return delays for a slow target that is measured again."""
    place, speed, busy, lasting = case
    (delays,) = found
    met = verdict(delays.quantile(0.5) <= _HOURS_OF_A_DAY)
    return [place, f"{speed:g} ×", f"{busy:.0%}", f"{lasting:g} h", delays, "≤ 24 (median)", met]


def asked_healthy(case: Case, found: Found) -> list[object]:
    """Return false alarms where targets are measured again."""
    place, busy, lasting = case
    names, runs = (Rate(sum(each), len(found)) for each in zip(*found, strict=True))
    met = verdict(names.value < 1)
    return [place, f"{busy:.0%}", f"{lasting:g} h", names, "< 1", met, f"{runs.value:.0f}"]


def unequal(case: Case, found: Found) -> list[object]:
    """Return delays for a slow target where files are placed by free space."""
    place, *_ = case
    ((rotation, weighted),) = found
    met = verdict(weighted.mean <= rotation.mean + _SESSIONS_MORE)
    missed = f"{weighted.missed:.0%}"
    return [place, rotation, weighted, missed, f"≤ {rotation.mean + _SESSIONS_MORE:.1f}", met]


def accepted(case: Case, found: Found) -> list[object]:
    """Return how often a contract was called met or missed."""
    (every,) = found
    low, even, high = (
        [each for each in every if each.truth == truth] for truth in accepting.TRUTHS
    )
    row: list[object] = [accepting.REAL, "0.3", "5 %", "36 h"]
    if case:
        correlation, outliers, gap, lasting, quantile = case
        name = f"{gap:g} h apart" + ", lower quartile" * (quantile == 0.25)  # noqa: PLR2004
        row = [name, correlation, f"{outliers:.0%}", f"{lasting:g} h"]
    for errors in ([each.met for each in low], [each.missed for each in high]):
        mean = float(np.mean(errors))
        worst = f" ({max(errors):.1%})" if len(errors) > 1 else ""
        row += [f"{mean:.1%}{worst}", "≤ 5 %", verdict(mean <= 0.05)]  # noqa: PLR2004
    row += [", ".join(f"{each.runs:.0f}" for each in some) for some in (low, even, high)]
    share = sum(e.runs for e in (*low, *high)) / sum(e.fixed for e in (*low, *high))
    fixed = ", ".join(f"{each.fixed:.0f}" for each in low)
    return [*row, fixed, f"{share:.0%}", "≤ 60 %", verdict(share <= 0.6)]  # noqa: PLR2004


def shams(case: Case, found: Found) -> list[object]:
    """Return claims about maintenances that changed nothing."""
    reports = [sum(each) for each in zip(*found, strict=True)]
    share = sum(reports) / (len(reports) * len(found))
    counts = [f"{each} of {len(found)}" for each in reports]
    return [*case, *counts, f"{share:.1%}", "≤ 5 %", verdict(share <= 0.05)]  # noqa: PLR2004


def blind(case: Case, found: Found) -> list[object]:
    """Return rulings on upgrades whose effect is known."""
    (each,) = found
    met = not each.wrong and each.decided >= 0.75 * each.upgrades
    upgrades_of = f"{each.upgrades}, {each.real}"
    return [*case, upgrades_of, each.wrong, "0", each.decided, "¾", verdict(met), each.days]
