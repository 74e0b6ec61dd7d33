"""The page of the simulations: small tables, the aim beside each figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchmarks.alarms.figures import Delays, Rate, table, verdict
from benchmarks.alarms.plan import (
    CORRELATIONS,
    FACTORS,
    FALLEN,
    LARGE,
    OUTLIERS,
    SHARED,
    SMALL,
    Effort,
    Results,
)
from benchmarks.alarms.simulate import threshold_of
from benchmarks.alarms.worlds import BANDS, WORLDS

TEMPLATES: Final = Path(__file__).resolve().parents[1] / "templates"
#: False alarms a year of a healthy site, both directions, by serial correlation.
YEAR_AIM: Final = {0.0: 1.5, 0.3: 1.5, 0.6: 3.0}
_BUDGET_AIM: Final = 1.0
_STEADY_AIM: Final = {SMALL: 3, LARGE: 5}
_GROUP_AIM: Final = {10: 4, 4: 8}
_INCIDENT_AIM: Final = 0.5
_HALF_AIM: Final = 8
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


def page(results: Results, effort: Effort, date: str, shuffled: Rate | None, peers: str) -> str:
    """Return the page; `shuffled` are incidents in the real year in random order."""
    return rendered(
        "error-rates.md",
        date=date,
        effort=effort,
        sites={size: threshold_of(size) for size in (SMALL, LARGE)},
        years=_years(results),
        delays=_delays(results),
        outliers=_outliers(results),
        steady=_steady(results),
        groups_false=_groups_false(results),
        groups=_groups(results),
        incidents=_incidents(results, shuffled),
        improvement=_improvement(results),
        peers=_peers(results),
        real_peers=peers,
    )


def rendered(template: str, **values: object) -> str:
    """Return a template with its values."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(**values)


def _years(results: Results) -> str:
    rows = []
    for world in WORLDS:
        for phi in CORRELATIONS:
            first = results.years[world, phi][:2]
            aim = YEAR_AIM[phi]
            both = Rate(sum(each.alarms for each in first), first[0].time)
            met = verdict(both.value <= aim)
            rows.append([world, phi, *first, both, f"≤ {aim:g}", met,
                         *results.years[world, phi][2:]])  # fmt: skip
    head = ["world", "correlation", "first year: down", "up", "both", "aim", ""]
    return table([*head, "second year: down", "up"], rows)


def _delays(results: Results) -> str:
    rows = []
    for band in BANDS:
        for factor in FACTORS:
            found, before = results.delays[band, factor], BEFORE[band, factor]
            mean, ninth = results.oracle[band, factor]
            slower = [
                each.mean > old + 2 * each.error for each, old in zip(found, before, strict=True)
            ]
            rows.append([band, f"−{1 - factor:.0%}", f"{mean:.1f} ({ninth:.0f})", found[0],
                         before[0], found[1], before[1], verdict(not any(slower))])  # fmt: skip
    head = ["band", "loss", "oracle", "at 5.7", "before", "at 12", "before", "no worse"]
    return table(head, rows)


def _outliers(results: Results) -> str:
    rows = []
    for rate in OUTLIERS:
        for pairs in (False, True):
            found = [results.outliers[rate, pairs, size] for size in (SMALL, LARGE)]
            met = [verdict(each.value <= YEAR_AIM[0.0]) for each in found]
            where = "in pairs" if pairs else "single"
            rows.append([f"{rate:.1%}", where, found[0], met[0], found[1], met[1]])
    head = ["runs that are outliers", "", f"site of {SMALL}", "≤ 1.5", f"site of {LARGE}", "≤ 1.5"]
    return table(head, rows)


def _steady(results: Results) -> str:
    rows = []
    for (factor, size), found in results.steady.items():
        aim = _STEADY_AIM[size]
        met = verdict(found.quantile(0.9) <= aim)
        rows.append([f"{factor:g} ×", size, found, f"≤ {aim}", met])
    return table(["to", "series of the site", "runs until alerted", "aim (90 %)", ""], rows)


def _groups_false(results: Results) -> str:
    rows = [
        [shared, f"{rate:.0%}", found, f"≤ {_BUDGET_AIM:g}", verdict(found.value <= _BUDGET_AIM)]
        for (shared, rate), found in results.groups_false.items()
    ]
    return table(["series share", "outliers", "a year in 30 groups", "aim", ""], rows)


def _groups(results: Results) -> str:
    rows = []
    for shared in SHARED:
        for fallen, factor in FALLEN:
            group, alone = results.groups[shared, fallen, factor]
            aim = _GROUP_AIM[fallen]
            rows.append([shared, f"{fallen} of 10 at {factor:g}", group, f"≤ {aim}",
                         verdict(group.mean <= aim), alone])  # fmt: skip
    return table(["series share", "fallen", "the group", "aim (mean)", "", "first series"], rows)


def _incidents(results: Results, shuffled: Rate | None) -> str:
    found = {f"{rate:.0%} of the runs, all independent": each
             for rate, each in results.incidents.items()}  # fmt: skip
    if shuffled is not None:
        found["the real year, its days in random order"] = shuffled
    rows = [
        [name, each, f"< {_INCIDENT_AIM:g}", verdict(each.value < _INCIDENT_AIM)]
        for name, each in found.items()
    ]
    return table(["outliers", "false incidents a year", "aim", ""], rows)


def _improvement(results: Results) -> str:
    rows = []
    for (rise, phi, size), found in results.improvement.items():
        met = verdict(found.mean <= _HALF_AIM)
        rows.append([f"{rise:g} ×", phi, size, found, f"≤ {_HALF_AIM}", met])
    return table(["improved to", "correlation", "site", "runs", "aim (mean)", ""], rows)


def _peers(results: Results) -> str:
    rows = [[name, each.false, *delay_cells(each.delays)] for name, each in results.peers.items()]
    return table(
        ["", "false alarms a series-year", "−30 %: median", "90 %", "missed in 100 runs"], rows
    )


def delay_cells(found: Delays) -> Iterator[str]:
    """Yield median, 90 % point and the share missed."""
    for share in (0.5, 0.9):
        value = found.quantile(share)
        yield f"{value:.0f}" if value < found.longest else "never"
    yield f"{found.missed:.0%}"


def peers_on_real(counts: Mapping[str, tuple[Rate, list[str]]], names: list[str]) -> str:
    """Return the table of all detectors on the real year, with the sessions to each stretch."""
    rows = [[name, rate, *found] for name, (rate, found) in counts.items()]
    return table(["", "alarms a series-year", *names], rows)
