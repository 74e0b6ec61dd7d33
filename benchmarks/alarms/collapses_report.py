"""The section of `docs/error-rates.md` on collapses that do not last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iobands.alerts.collapses import ENDING
from iobands.alerts.file_systems import FALSE_RISES

from benchmarks.alarms.collapses import SITES, WITHIN, FalseRises, Found, Results
from benchmarks.alarms.report import templates
from benchmarks.alarms.tables import table


def section(results: Results) -> str:
    """Return the section in Markdown."""
    value, error, worst, number = max(
        (each.a_year(number), each.error(number), _what(each), number)
        for each in results.quiet
        for number in SITES
    )
    rising = len(results.risen[0].delays)
    first = results.quiet[0]
    return (
        templates()
        .get_template("collapses.md")
        .render(
            allowed=FALSE_RISES,
            file_systems=first.file_systems,
            rounds=first.rounds // first.file_systems,
            quiet=_quiet(results.quiet),
            most={"value": value, "error": error, "what": f"{worst}, {number} file systems"},
            ending=ENDING,
            rising=rising,
            within=WITHIN,
            share_error=0.5 / rising**0.5,
            risen=_risen(results.risen),
        )
    )


def _what(found: FalseRises) -> str:
    case = found.case
    floor = "learnt" if case.learnt else "published"
    series = f"{case.series} series" if case.series > 1 else "one series"
    return f"{case.band}, {case.tail} tail, correlation {case.correlation:g}, {series}, {floor}"


def _quiet(results: Sequence[FalseRises]) -> str:
    head = ["band", "tail", "correlation", "series", "floor", "collapsed"]
    for number in SITES:
        head += [f"{number} file system{'s' if number > 1 else ''}", "±"]
    rows = []
    for found in results:
        case = found.case
        row = [case.band, case.tail, f"{case.correlation:g}", str(case.series)]
        row += ["learnt" if case.learnt else "published", f"{found.collapsed / found.rounds:.1%}"]
        for number in SITES:
            row += [f"{found.a_year(number):.2f}", f"{found.error(number):.2f}"]
        rows.append(row)
    return table(head, rows)


def _risen(results: Sequence[Found]) -> str:
    head = ["rate a round", "rises", *(f"within {rounds}" for rounds in WITHIN), "median"]
    rows = []
    for found in results:
        middle = float(np.median(found.delays))
        row = [f"{found.share:.0%}", f"× {found.rise:g}"]
        row += [f"{found.within(rounds):.0%}" for rounds in WITHIN]
        rows.append([*row, f"{middle:.0f}" if np.isfinite(middle) else f"over {max(WITHIN)}"])
    return table(head, rows)
