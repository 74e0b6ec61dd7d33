"""Why a series is in its state: the evidence as text, with what else moved and what did not.

For a person who shall tell a colleague what happened without opening a log. May know: surveys
and how they are worded; nothing of files or of the command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from iobands.acts import CLOSE, NEW_NORMAL, Act, standing
from iobands.collapse_views import series_lines
from iobands.covariates import covariates
from iobands.following import Change, Following
from iobands.series import slug
from iobands.states import State
from iobands.survey import Series, Survey
from iobands.words import (
    act_text,
    acts_told,
    answer_text,
    band_facts,
    band_text,
    epoch_text,
    figure,
    intervals_text,
    plural,
    printable,
    time_text,
)

_NEAR: Final = timedelta(days=3)
_NAMED: Final = 6
_INDENT: Final = "  "


@dataclass(frozen=True)
class Kin:
    """Another series of the same system, and what it shares with the one that is explained.

    `change` is what changed at the same time. `act` is what a person did about such a change, which
    then is a change no longer.
    """

    series: Series
    shared: tuple[str, ...]
    change: Change | None
    act: Act | None = None

    @property
    def has_moved(self) -> bool:
        """Whether it moved at the same time."""
        return self.change is not None or self.act is not None


@dataclass(frozen=True)
class Explanation:
    """What is known of a series; `moved` and `still` are sentences on covariates."""

    series: Series
    since: datetime | None
    moved: tuple[str, ...]
    still: tuple[str, ...]
    moved_kin: tuple[Kin, ...]
    still_kin: tuple[Kin, ...]


def chosen(survey: Survey, wanted: str) -> list[Series]:
    """Return the series that `wanted` may mean: one if it is a slug or a label, else all like it.

    A series is like it if each word of `wanted` is in its label, whatever the case.
    """
    exact = [each for each in survey.series if wanted in {slug(each.key), each.label}]
    if exact:
        return exact
    words = wanted.casefold().split()
    return [
        each
        for each in survey.series
        if words and all(word in each.label.casefold() for word in words)
    ]


def explain(survey: Survey, series: Series) -> Explanation:
    """Return what is known of `series`, from a survey with all columns of the samples."""
    following = series.status.following
    since = _since(following)
    window = _window(following, since)
    kin = [
        _kin(series, other, window, survey.now)
        for other in survey.series
        if other is not series and other.key.system == series.key.system
    ]
    kin.sort(key=lambda each: -len(each.shared))
    moved, still = covariates(series.samples, since) if since else ((), ())
    return Explanation(
        series,
        since,
        tuple(moved),
        tuple(still),
        tuple(each for each in kin if each.has_moved),
        tuple(each for each in kin if not each.has_moved),
    )


def explanation_text(told: Explanation, survey: Survey) -> str:
    """Return an explanation as lines of text."""
    lines = [*_head(told, survey), "", *_evidence(told.series)]
    if told.series.status.runs:
        lines += series_lines(told.series.key, survey)
    if told.since:
        lines += ["", f"Moved at the same time, about {told.since:%Y-%m-%d}"]
        lines += [f"{_INDENT}{line}" for line in _moved(told)]
        lines += ["", "Did not move"]
        lines += [f"{_INDENT}{line}" for line in _still(told)]
    lines += ["", f"Look next: {advice(told)}"]
    return "\n".join(printable(line) for line in lines) + "\n"


def advice(told: Explanation) -> str:
    """Return where to look next, from what moved and what did not."""
    status, key = told.series.status, told.series.key
    if status.state is State.NO_DATA:
        return "at the check: its newest run left no sample"
    if not told.since:
        return "nowhere; nothing speaks for a lasting change of this series"
    if told.moved:
        return f"at what changed with it ({told.moved[0].split(':')[0]}), before the file system"
    return _advice_by_kin(told, key.file_system or "")


def _advice_by_kin(told: Explanation, file_system: str) -> str:
    """Return where to look next, from which other series moved."""
    same = "file system"
    with_it = [each for each in told.moved_kin if same in each.shared]
    without = [each for each in told.still_kin if same in each.shared]
    elsewhere = [each for each in told.moved_kin if same not in each.shared]
    if elsewhere:
        return (
            f"at what the series of several file systems share ({plural(len(elsewhere), 'series')} "
            f"elsewhere moved too): clients, network, system software"
        )
    if with_it and not without:
        return f"at the file system {file_system}: all its series moved, and none of another did"
    if with_it:
        in_common = set.intersection(*(set(each.shared) for each in with_it))
        telling = in_common - {name for each in without for name in each.shared}
        common = f", which have the {_listed(sorted(telling))} in common" if telling else ""
        return f"at the {len(with_it) + 1} series of {file_system} that moved{common}"
    return (
        "at what this series alone uses: nothing else moved. A rerun of its check tells whether "
        "it lasts"
    )


def _head(told: Explanation, survey: Survey) -> Iterator[str]:
    series = told.series
    status = series.status
    state = status.state.value
    joint = " " if status.why.startswith("since ") else ": "
    yield f"{series.label}: {state}{joint + status.why if status.why else ''}"
    if status.acknowledged:
        yield answer_text(status.acknowledged)
    yield f"at {time_text(survey.now)} UTC; all times are UTC; name in files: {slug(series.key)}"


def _evidence(series: Series) -> Iterator[str]:
    status, unit = series.status, series.key.unit
    following = status.following
    if following is None or status.value is None or status.when is None:
        yield "History     no sample"
        return
    times = following.times
    if len(times):
        gap = (
            f", one every {_days((times[-1] - times[0]) / (len(times) - 1))}"
            if len(times) > 1
            else ""
        )
        yield (
            f"History     {plural(len(times), 'run')} that compare, from {_day(times[0])} to "
            f"{_day(times[-1])}{gap}; {status.runs} in all"
        )
    if status.band:
        facts = band_facts(status.band, status.provisional)
        yield (
            f"Band        {band_text(status.band, status.provisional)} {unit} (quartiles; {facts})"
        )
        if status.band.intervals:
            yield f"            95 % intervals: {intervals_text(status.band)}"
    if series.epoch:
        yield f"Epoch       {epoch_text(series.epoch)}"
    yield (
        f"Newest      {figure(status.value)} {unit} at {time_text(status.when)}: {status.verdict}"
        f"{_rank(following)}"
    )
    chart = following.chart
    if chart.runs and chart.can_judge:
        years = following.budget.years_to_false_alarm(chart.limit)
        yield (
            f"Evidence    {chart.down[-1]:.1f} for a drop, {chart.up[-1]:.1f} for a rise; watch "
            f"from {chart.watch:g}, alarm from {chart.limit:g} (one false alarm in {years:.1f} "
            f"years of all {following.budget.runs_a_year:.0f} runs a year)"
        )
        yield (
            f"Dependence  correlation from run to run {chart.correlation:.2f}; evidence is "
            f"divided by {chart.scale:.2f} for it"
        )
    yield f"Power       {following.power_text()}"
    for change in following.changes:
        if change.ended:
            yield (
                f"Earlier     {change.direction} from {change.since:%Y-%m-%d} to "
                f"{change.ended:%Y-%m-%d} ({change.end}): {change.ratio.value:.2f} ×"
            )
    for heading, what in acts_told(series.acts):
        yield f"{heading:12}{what}"


def _rank(following: Following) -> str:
    """Return the place of the newest run among the earlier ones that compare."""
    values = following.values
    if len(values) < 2:  # noqa: PLR2004
        return ""
    lower = int(np.count_nonzero(values[:-1] < values[-1]))
    return f"; {lower} of {plural(len(values) - 1, 'earlier run')} were lower"


def _moved(told: Explanation) -> Iterator[str]:
    for each in told.moved_kin:
        change, act = each.change, each.act
        shared = f"same {_listed(each.shared)}" if each.shared else "same system"
        if change:
            yield (
                f"{each.series.label}: {change.direction} since {change.since:%Y-%m-%d}, "
                f"{change.ratio.value:.2f} × ({shared})"
            )
        elif act and act.since:
            ratio = f", {act.ratio:.2f} ×" if act.ratio else ""
            yield (
                f"{each.series.label}: since {act.since:%Y-%m-%d}{ratio} ({shared}); {act.kind}, "
                f"{act_text(act)}"
            )
    yield from told.moved
    if not told.moved_kin and not told.moved:
        yield "nothing that is recorded"


def _still(told: Explanation) -> Iterator[str]:
    near = [each for each in told.still_kin if "file system" in each.shared]
    far = [each for each in told.still_kin if "file system" not in each.shared]
    for group, what in ((near, "of the same file system"), (far, "of other file systems")):
        if group:
            names = [each.series.label for each in group]
            yield f"{plural(len(names), 'series')} {what}: {_some(names)}"
    yield from told.still
    if not told.still_kin and not told.still:
        yield "nothing that is recorded"


def _since(following: Following | None) -> datetime | None:
    if following is None:
        return None
    known = following.open_change or following.suspicion
    return known.since if known else None


def _window(
    following: Following | None, since: datetime | None
) -> tuple[datetime, datetime] | None:
    if following is None or since is None:
        return None
    change = following.open_change
    low, high = (change.since_low, change.since_high) if change else (since, since)
    return low - _NEAR, high + _NEAR


def _kin(
    series: Series, other: Series, window: tuple[datetime, datetime] | None, now: datetime
) -> Kin:
    shared = _shared(series, other)
    if window is None:
        return Kin(other, shared, None)
    acts = [
        act
        for act in standing(other.acts, now)
        if act.kind in {CLOSE, NEW_NORMAL} and act.since and window[0] <= act.since <= window[1]
    ]
    return Kin(other, shared, _near(other, window), acts[-1] if acts else None)


def _near(other: Series, window: tuple[datetime, datetime]) -> Change | None:
    """Return the newest change of `other` that may have begun within `window`."""
    following = other.status.following
    changes = following.changes if following else ()
    for change in reversed(changes):
        if change.since_low <= window[1] and change.since_high >= window[0]:
            return change
    return None


def _shared(one: Series, other: Series) -> tuple[str, ...]:
    pairs = (
        ("file system", one.key.file_system, other.key.file_system),
        ("pattern", one.key.pattern, other.key.pattern),
        ("direction", one.key.variable, other.key.variable),
        ("transport", one.key.transport, other.key.transport),
        ("environment", one.key.environ, other.key.environ),
        ("partition", one.key.partition, other.key.partition),
    )
    return tuple(name for name, mine, its in pairs if mine == its and mine is not None)


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _some(names: Sequence[str]) -> str:
    hidden = len(names) - _NAMED
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {hidden} more" if hidden > 0 else shown


def _day(time: np.datetime64) -> str:
    return str(time.astype("datetime64[D]"))


def _days(span: np.timedelta64) -> str:
    days = span / np.timedelta64(1, "D")
    return f"{days:.1f} days" if days >= 1 else f"{days * 24:.1f} hours"
