"""What needs attention in a survey, each reason said once however many series share it.

May know: surveys and how they are worded; nothing of a particular view.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from iobands.bands import COLLAPSED
from iobands.collapse_views import LESS_OFTEN, MORE_OFTEN, compared_text, name_of
from iobands.collapses import FALLEN, RISEN
from iobands.following import is_drop
from iobands.series import SeriesKey
from iobands.states import State
from iobands.survey import Finding, Survey
from iobands.words import figure, plural, time_text

_STATES: Final = (State.DEGRADED, State.NO_DATA, State.WATCH, State.IMPROVED)
#: The word for what checks could not be run on or with.
UNFIT: Final = "unfit"
# ReFrame's names carry each parameter; these say nothing where a site has no choice
_IDLE_PARAMETERS: Final = re.compile(r" %\w+=(null|default)\b")
#: How many names are said of those that share a reason.
_NAMED: Final = 3


@dataclass(frozen=True)
class Concern:
    """Series or checks that share a state or a word like `collapsed`, and the reason for it."""

    names: tuple[str, ...]
    word: str
    why: str

    @property
    def who(self) -> str:
        """The names, or the first few of many."""
        if len(self.names) <= _NAMED + 1:
            return ", ".join(self.names)
        return f"{', '.join(self.names[:_NAMED])} and {len(self.names) - _NAMED} more"

    @property
    def joint(self) -> str:
        """What stands between the word and the reason: `degraded since ...` is read aloud."""
        return " " if self.why.startswith("since ") else ": "


def concerns(survey: Survey) -> list[Concern]:
    """Return what needs attention, the worst first, in the order of the series within that."""
    shared: dict[tuple[str, str], list[str]] = {}
    for name, word, why in _each(survey):
        shared.setdefault((word, why), []).append(name)
    return [Concern(tuple(names), word, why) for (word, why), names in shared.items()]


def skipped(survey: Survey) -> list[Concern]:
    """Return what was skipped and why, the checks of one kind and reason as one.

    A reason begins with what is the matter in a few words, such as `not installed`, and a colon.
    """
    shared: dict[str, dict[str, None]] = {}
    for finding in survey.skipped:
        shared.setdefault(finding.reason, {})[finding.name.split()[0]] = None
    found = []
    for reason, names in shared.items():
        word, colon, why = reason.partition(": ")
        found.append(Concern(tuple(names), *((word, why) if colon else ("skipped", reason))))
    return found


def _each(survey: Survey) -> Iterator[tuple[str, str, str]]:
    covered: set[tuple[SeriesKey, str]] = set()
    labels = {series.key: series.label for series in survey.series}
    for common in sorted(survey.common, key=lambda each: not is_drop(each.change)):
        state = State.DEGRADED if is_drop(common.change) else State.IMPROVED
        names = ", ".join(labels[key] for key in common.keys)
        yield common.name, state.value, f"{common.change.text()}; seen in {names}"
        covered.update((key, state.value) for key in common.keys)
        if state is State.DEGRADED:
            covered.update((key, State.WATCH.value) for key in common.keys)
    for state in _STATES:
        if state is State.NO_DATA:
            yield from _obstacles(survey)
            covered.update((key, state.value) for each in survey.obstacles for key in each.keys)
        for series in survey.series:
            if series.status.state is state and (series.key, state.value) not in covered:
                yield series.label, state.value, series.status.why
    for series in survey.series:
        status, unit = series.status, series.key.unit
        if status.verdict == COLLAPSED and status.value is not None and status.band:
            floor = figure(status.band.floor)
            why = f"{figure(status.value)} {unit} is under the floor of {floor} {unit}"
            yield series.label, COLLAPSED, why
    for each in survey.collapses.file_systems:
        word = {RISEN: MORE_OFTEN, FALLEN: LESS_OFTEN}.get(each.collapses.outcome or "")
        if word:
            yield name_of(each, survey), word, compared_text(each.collapses, "round")
    for finding in survey.findings:
        yield _IDLE_PARAMETERS.sub("", finding.name), "failed", _why(finding)


def _obstacles(survey: Survey) -> Iterator[tuple[str, str, str]]:
    places = {(series.key.system, series.key.partition) for series in survey.series}
    places |= {(each.system, each.partition) for each in survey.obstacles}
    for each in survey.obstacles:
        where = f" on {each.system}:{each.partition}" if len(places) > 1 else ""
        stopped = f"{plural(len(each.checks), 'check')} not run" if each.checks else ""
        yield f"{each.subject}{where}", UNFIT, "; ".join(filter(None, [each.why, stopped]))


def _why(finding: Finding) -> str:
    phase = f" in {finding.phase}" if finding.phase else ""
    where = f"on {finding.system}:{finding.partition}{phase}"
    return f"{where}, {time_text(finding.when)}: {finding.reason}"
