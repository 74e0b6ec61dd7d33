"""How transient collapses are told: in words for every view, and as plain data.

May know: surveys and the collapses in them; nothing of a particular view.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from iobands.alerts.collapses import FALLEN, RISEN, Comparison, Rate, Window
from iobands.alerts.file_systems import Collapses, FileSystem
from iobands.series import SeriesKey
from iobands.status.survey import Survey

#: What is said of a file system whose rate has changed.
MORE_OFTEN: Final = "collapses more often"
LESS_OFTEN: Final = "collapses less often"

_OUTCOMES: Final = {RISEN: "the rate has risen", FALLEN: "the rate has fallen"}


def name_of(file_system: FileSystem, survey: Survey) -> str:
    """Return what a file system is called: with its system where there are several."""
    return place_name(file_system.system, file_system.name, survey)


def place_name(system: str, name: str, survey: Survey) -> str:
    """Return the same of the file system `name` of `system`."""
    several = len({each.key.system for each in survey.series}) > 1
    return f"{system} {name}" if several else name


def rate_text(told: Collapses, noun: str = "run") -> str:
    """Return how often it collapses; `noun` is what is counted, a run or a round of runs."""
    count = told.count
    if count is None:
        return f"none counted: {told.why}"
    times = {0: "never", 1: "once"}.get(count.events, f"{count.events} times")
    text = f"{times} in {count.runs} {noun}{'' if count.runs == 1 else 's'}"
    rates = []
    if a_run := count.a_run:
        percent = (f"{100 * share:.1f}" for share in (a_run.value, a_run.low, a_run.high))
        rates.append("{} % a {noun} ({}–{})".format(*percent, noun=noun))
    if a_year := count.a_year:
        rates.append(f"{a_year.value:.1f} a year ({a_year.low:.1f}–{a_year.high:.1f})")
    text = f"{text}: {', '.join(rates)}" if rates else text
    return f"{text}; the newest on {told.newest:%Y-%m-%d}" if told.newest else text


def compared_text(told: Collapses, noun: str = "run") -> str:
    """Return the newest runs beside those before; empty where nothing was counted."""
    compared = told.comparison
    if compared is None:
        return ""
    recent, earlier = compared.recent, compared.earlier
    text = (
        f"{recent.collapsed} of the newest {recent.runs} {noun}s in {_events(recent)}, "
        f"{earlier.collapsed} of the {earlier.runs} before in {_events(earlier)}"
    )
    ratio = compared.ratio
    if ratio is None:
        return text
    if math.isinf(ratio.value):
        return f"{text}: at least {ratio.low:.1f} × as often"
    return f"{text}: {ratio.value:.1f} × as often ({ratio.low:.1f}–{ratio.high:.1f})"


def change_text(told: Collapses, noun: str = "run") -> str:
    """Return whether the rate has changed; empty where nothing was counted."""
    compared = told.comparison
    if compared is None:
        return ""
    outcome = compared.outcome
    if outcome is None:
        return f"too few to tell a change: {compared_text(told, noun)}"
    known = _OUTCOMES.get(outcome, "no change of the rate is seen")
    return f"{known}: {compared_text(told, noun)}"


def _events(window: Window) -> str:
    return f"{window.events} event{'' if window.events == 1 else 's'}"


def series_lines(key: SeriesKey, survey: Survey) -> Iterator[str]:
    """Yield what `iobands explain` says of a series and of its file system."""
    for head, told, noun in _of_series(key, survey):
        yield f"{head}{rate_text(told, noun)}"
        if told.comparison:
            yield f"{' ' * len('Collapses   ')}{change_text(told, noun)}"


def _of_series(key: SeriesKey, survey: Survey) -> Iterator[tuple[str, Collapses, str]]:
    yield "Collapses   ", survey.collapses.of(key), "run"
    for each in survey.collapses.file_systems:
        if (each.system, each.name) == (key.system, key.file_system or "none"):
            series = f"{each.series} series" if each.series > 1 else "this series alone"
            yield f"  of {name_of(each, survey)}, {series}: ", each.collapses, "round"


def collapses_as_json(told: Collapses) -> dict[str, object]:
    """Return collapses as plain data: null where it is not known, with `why` where none count."""
    count = told.count
    return {
        "why": told.why or None,
        "runs": count.runs if count else None,
        "collapsed": count.collapsed if count else None,
        "chances": count.chances if count else None,
        "events": count.events if count else None,
        "years": count.years if count else None,
        "a_run": _rate(count.a_run) if count else None,
        "a_year": _rate(count.a_year) if count else None,
        "newest": told.newest.isoformat() if told.newest else None,
        "change": _comparison(told.comparison) if told.comparison else None,
    }


def file_systems_as_json(survey: Survey) -> list[dict[str, object]]:
    """Return the file systems with their collapses, whose runs are rounds of runs, as data."""
    return [
        {
            "system": each.system,
            "file_system": each.name,
            "series": each.series,
            "collapses": collapses_as_json(each.collapses),
        }
        for each in survey.collapses.file_systems
    ]


def _comparison(compared: Comparison) -> dict[str, object]:
    possible = compared.is_possible
    return {
        "outcome": compared.outcome,
        "recent": asdict(compared.recent),
        "earlier": asdict(compared.earlier),
        "chance_of_more": compared.chance_of_more if possible else None,
        "chance_of_fewer": compared.chance_of_fewer if possible else None,
        "level": compared.level,
        "ratio": _rate(compared.ratio),
    }


def _rate(rate: Rate | None) -> dict[str, float | None] | None:
    """Return a rate with its interval; what is infinite is null, which JSON has no word for."""
    return rate and {
        name: number if math.isfinite(number) else None for name, number in asdict(rate).items()
    }
