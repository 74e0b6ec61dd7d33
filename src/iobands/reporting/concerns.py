"""What needs attention in a survey, each reason said once however many series share it.

May know: surveys and how they are worded; nothing of a particular view.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from iobands.alerts.acknowledged import Acknowledged
from iobands.alerts.collapses import FALLEN, RISEN
from iobands.bands import COLLAPSED
from iobands.cases import Finding
from iobands.reporting.collapse_views import (
    LESS_OFTEN,
    MORE_OFTEN,
    compared_text,
    name_of,
    place_name,
)
from iobands.reporting.format import act_text, answer_text, figure, plural, time_text
from iobands.series import SeriesKey
from iobands.status.following import Change, is_drop, ratio_text
from iobands.status.states import State, state_of
from iobands.status.survey import Series, Survey

_STATES: Final = (State.DEGRADED, State.NO_DATA, State.WATCH, State.IMPROVED)
#: The word for what checks could not be run on or with.
UNFIT: Final = "unfit"
# ReFrame's names carry each parameter; these say nothing where a site has no choice
_IDLE_PARAMETERS: Final = re.compile(r" %\w+=(null|default)\b")
#: What is older has its day told.
_FRESH: Final = timedelta(days=1)
#: How many names are said of those that share a reason.
_NAMED: Final = 3
#: From how many collapsed series on they are told as their file system's.
_MANY: Final = 4


@dataclass(frozen=True)
class Concern:
    """Series or checks that share a state or a word like `collapsed`, and the reason for it.

    `under` has a line for each series that took part in a change of a pool.
    """

    names: tuple[str, ...]
    word: str
    why: str
    under: tuple[str, ...] = ()

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
    return [*_common(survey), *_grouped(_each(survey))]


def acknowledged_concerns(survey: Survey) -> list[Concern]:
    """Return the changes that somebody knows of already, and that are no worse since."""
    return _grouped(_quiet(survey))


def _grouped(each: Iterable[tuple[str, str, str]]) -> list[Concern]:
    shared: dict[tuple[str, str], list[str]] = {}
    for name, word, why in each:
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
    covered = _covered(survey)
    for state in _STATES:
        if state is State.NO_DATA:
            yield from _obstacles(survey)
            covered.update((key, state.value) for each in survey.obstacles for key in each.keys)
        for series in survey.series:
            status = series.status
            if status.state is state and (series.key, state.value) not in covered:
                if not status.is_quiet:
                    yield series.label, state.value, status.why + _worse(status.acknowledged)
                elif status.missing:
                    yield series.label, State.NO_DATA.value, status.missing
    yield from _collapsed(survey)
    for each in survey.collapses.file_systems:
        word = {RISEN: MORE_OFTEN, FALLEN: LESS_OFTEN}.get(each.collapses.outcome or "")
        if word and not each.known:
            yield name_of(each, survey), word, compared_text(each.collapses, "round")
    for finding in survey.findings:
        yield _IDLE_PARAMETERS.sub("", finding.name), "failed", _why(finding)


def _collapsed(survey: Survey) -> Iterator[tuple[str, str, str]]:
    """Yield the newest runs under their floors; many of a file system are told as its own.

    One run in twenty or fifty is under its floor for no lasting reason: a site of hundreds of
    series has some every day.
    """
    found: dict[tuple[str, str], list[Series]] = {}
    of_place = Counter(_place(series) for series in survey.series)
    for series in survey.series:
        status = series.status
        # of a level that has fallen for good it is no news that a run is low
        is_known = status.is_closed or is_drop(status.change)
        if status.verdict == COLLAPSED and not is_known and status.band:
            found.setdefault(_place(series), []).append(series)
    for place, alike in found.items():
        if len(alike) < _MANY:
            yield from ((each.label, COLLAPSED, _under_floor(each, survey)) for each in alike)
            continue
        lowest = min(alike, key=_of_floor)
        share = f"{len(alike)} of {of_place[place]} series"
        why = f"{share}, the lowest {lowest.label}: {_under_floor(lowest, survey)}"
        yield place_name(*place, survey), COLLAPSED, why


def _place(series: Series) -> tuple[str, str]:
    return series.key.system, series.key.file_system or "none"


def _of_floor(series: Series) -> float:
    """Return the newest value as a part of the floor."""
    value, band = series.status.value, series.status.band
    assert value is not None and band is not None
    return value / band.floor


def _under_floor(series: Series, survey: Survey) -> str:
    status, unit = series.status, series.key.unit
    assert status.value is not None and status.when is not None and status.band is not None
    is_old = survey.now - status.when > _FRESH
    on = f" on {status.when:%Y-%m-%d}" if is_old else ""
    floor = figure(status.band.floor)
    return f"{figure(status.value)} {unit}{on} is under the floor of {floor} {unit}"


def _common(survey: Survey) -> Iterator[Concern]:
    labels = {series.key: series.label for series in survey.series}
    for common in sorted(survey.common, key=lambda each: not is_drop(each.change)):
        if not survey.is_quiet(common):
            state = state_of(common.change)
            under = tuple(
                f"{labels[member.key]}: {ratio_text(member.ratio)}"
                for member in common.members
                if member.took_part
            )
            worse = _worse(survey.acknowledged.get(common.name))
            why = f"{common.text()}{worse}; in {len(under)} of its {len(common.members)} series"
            yield Concern((common.name,), state.value, why, under)


def _covered(survey: Survey) -> set[tuple[SeriesKey, str]]:
    """Return the states of series that a common change tells."""
    covered: set[tuple[SeriesKey, str]] = set()
    for common in survey.common:
        state = state_of(common.change)
        if not survey.is_quiet(common):  # else a series may be loud on its own
            covered.update((key, state.value) for key in common.keys)
        if state is State.DEGRADED:
            covered.update((key, State.WATCH.value) for key in common.keys)
    return covered


def _quiet(survey: Survey) -> Iterator[tuple[str, str, str]]:
    covered: set[tuple[SeriesKey, str]] = set()
    for common in survey.common:
        if survey.is_quiet(common):
            state = state_of(common.change)
            covered.update((key, state.value) for key in common.keys)
            yield common.name, state.value, _known(common.change, survey.acknowledged[common.name])
    for series in survey.series:
        status = series.status
        if status.is_quiet and (series.key, status.state.value) not in covered:
            assert status.change is not None and status.acknowledged is not None
            yield series.label, status.state.value, _known(status.change, status.acknowledged)
    for each in survey.collapses.file_systems:
        if each.known:
            why = f"{compared_text(each.collapses, 'round')}; acknowledged {act_text(each.known)}"
            yield name_of(each, survey), MORE_OFTEN, why


def _known(change: Change, answer: Acknowledged) -> str:
    ratio = f"since {change.since:%Y-%m-%d}, {change.ratio.value:.2f} × its former level"
    return f"{ratio}; {answer_text(answer)}"


def _worse(answer: Acknowledged | None) -> str:
    """Return what is to be said of an alarm that is loud, though somebody knew of it."""
    return f"; {answer_text(answer)}" if answer else ""


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
