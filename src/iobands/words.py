"""How figures, times and other people's text are written in every view.

May know: bands, states and surveys; nothing of a particular view.
"""

from __future__ import annotations

from datetime import datetime

from iobands.bands import Band
from iobands.collapses import RISEN
from iobands.states import CRITICAL, OK, UNKNOWN, WARNING
from iobands.survey import Survey

_STATUS_WORDS = {OK: "OK", WARNING: "WARNING", CRITICAL: "CRITICAL", UNKNOWN: "UNKNOWN"}


def figure(value: float) -> str:
    """Return `value` with three significant digits, and all digits before the point."""
    hundred = 100
    return f"{value:.0f}" if abs(value) >= hundred else f"{value:.3g}"


def band_text(band: Band, provisional: bool) -> str:
    """Return the quartiles of a band, lower, median, upper; `~` marks a provisional one."""
    quartiles = (band.lower_quartile, band.median, band.upper_quartile)
    return ("~" if provisional else "") + "–".join(figure(value) for value in quartiles)


def time_text(when: datetime) -> str:
    """Return `when`, which is in UTC, to the minute."""
    return f"{when:%Y-%m-%d %H:%M}"


def plural(count: int, noun: str) -> str:
    """Return `count` with its noun; `series` stays as it is."""
    return f"{count} {noun}" if count == 1 or noun.endswith("s") else f"{count} {noun}s"


def printable(text: str) -> str:
    """Return `text` without what could upset a terminal: it may come from anywhere."""
    return "".join(c if c.isprintable() else "?" for c in text)


def summary(survey: Survey) -> str:
    """Return the one line that says it all, as monitoring plugins print it."""
    word = _STATUS_WORDS[survey.exit_status]
    if survey.series:
        states = ", ".join(f"{n} {state.value}" for state, n in survey.counts().items())
        parts = [f"{plural(len(survey.series), 'series')}: {states}"]
    else:
        parts = ["no samples"]
    if survey.obstacles:
        stopped = sum(len(each.checks) for each in survey.obstacles)
        unfit = ", ".join(dict.fromkeys(each.subject for each in survey.obstacles))
        parts.append(f"unfit: {unfit}; {plural(stopped, 'check')} not run")
    risen = [each for each in survey.collapses.file_systems if each.collapses.outcome == RISEN]
    if risen:
        parts.append(f"{plural(len(risen), 'file system')} with more collapses")
    if survey.findings:
        parts.append(f"{plural(len(survey.findings), 'check')} failed without a series")
    if survey.rejected:
        parts.append(f"{plural(len(survey.rejected), 'line')} rejected")
    return f"IOBANDS {word}: {'; '.join(parts)}"
