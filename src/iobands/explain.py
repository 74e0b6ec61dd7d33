"""Why a series is in its state: the evidence as text, with what else moved and what did not.

For a person who shall tell a colleague what happened without opening a log. May know: surveys
and how they are worded; nothing of files or of the command line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np
import pandas as pd

from iobands.collapse_views import series_lines
from iobands.following import Change, Following, utc
from iobands.series import slug
from iobands.states import State
from iobands.survey import Series, Survey
from iobands.words import band_text, figure, plural, printable, time_text

#: Figures that a run records beside its rate, and what they are called.
_FIGURES: Final = {
    "fullness_percent": "fullness in %",
    "targets_active": "active targets",
    "targets_inactive": "inactive targets",
    "load_per_node": "load a node",
    "other_jobs": "other jobs",
    "client_written_gib": "GiB that clients wrote",
    "client_read_gib": "GiB that clients read",
}
#: What a run says of how and where it ran.
_FACTS: Final = {
    "job_nodelist": "node list",
    "tool_version": "version of the tool",
    "suite_version": "version of the suite",
    "version": "version of ReFrame",
    "medium": "medium",
    "file_system_type": "type of the file system",
    "stripe_count": "stripe count",
    "stripe_size": "stripe size",
    "transport_in_effect": "transport in effect",
    "hints_in_effect": "hints in effect",
    "fsync": "fsync",
    "cache": "cache",
}
_BEFORE: Final = 200  # runs that the ones since are held against, as many as a reference has
_LEAST_BEFORE: Final = 5
_USUAL: Final = (5, 95)  # percentiles
_FEW_VALUES: Final = 0.5  # more different values than this share of runs: it changes by itself
_NEAR: Final = timedelta(days=3)
_NAMED: Final = 6
_INDENT: Final = "  "


@dataclass(frozen=True)
class Kin:
    """Another series of the same system, and what it shares with the one that is explained."""

    series: Series
    shared: tuple[str, ...]
    change: Change | None


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
        Kin(other, _shared(series, other), _near(other, window) if window else None)
        for other in survey.series
        if other is not series and other.key.system == series.key.system
    ]
    kin.sort(key=lambda each: -len(each.shared))
    moved, still = _covariates(series.samples, since) if since else ((), ())
    return Explanation(
        series,
        since,
        tuple(moved),
        tuple(still),
        tuple(each for each in kin if each.change),
        tuple(each for each in kin if not each.change),
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
        source = status.band.source or "the bands file"
        yield (
            f"Band        {band_text(status.band, status.provisional)} {unit} (quartiles; {source})"
        )
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


def _rank(following: Following) -> str:
    """Return the place of the newest run among the earlier ones that compare."""
    values = following.values
    if len(values) < 2:  # noqa: PLR2004
        return ""
    lower = int(np.count_nonzero(values[:-1] < values[-1]))
    return f"; {lower} of {plural(len(values) - 1, 'earlier run')} were lower"


def _moved(told: Explanation) -> Iterator[str]:
    for each in told.moved_kin:
        change = each.change
        assert change is not None
        shared = f"same {_listed(each.shared)}" if each.shared else "same system"
        yield (
            f"{each.series.label}: {change.direction} since {change.since:%Y-%m-%d}, "
            f"{change.ratio.value:.2f} × ({shared})"
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


def _covariates(samples: pd.DataFrame, since: datetime) -> tuple[list[str], list[str]]:
    """Return what is to be said of what moved at `since`, and of what did not."""
    start = int(np.searchsorted(utc(samples), np.datetime64(since.replace(tzinfo=None), "ns")))
    before, after = samples.iloc[max(0, start - _BEFORE) : start], samples.iloc[start:]
    moved: list[str] = []
    still: list[str] = []
    for column, name in _FIGURES.items():
        if column in samples:
            _tell(_figure_moved(before[column], after[column]), name, moved, still)
    for column, name in _FACTS.items():
        if column in samples:
            _tell(_fact_moved(before[column], after[column]), name, moved, still)
    return moved, still


def _tell(found: tuple[bool, str] | None, name: str, moved: list[str], still: list[str]) -> None:
    if found:
        (moved if found[0] else still).append(f"{name}: {found[1]}")


def _figure_moved(before: pd.Series, after: pd.Series) -> tuple[bool, str] | None:
    """Tell whether the median since lies outside the middle 90 % of before."""
    earlier = before.dropna().to_numpy(dtype=float)
    later = after.dropna().to_numpy(dtype=float)
    if len(earlier) < _LEAST_BEFORE or not len(later):
        return None
    low, high = np.percentile(earlier, _USUAL)
    now = float(np.median(later))
    was = float(np.median(earlier))
    if low <= now <= high:
        return False, f"{figure(now)}, as before ({figure(low)} to {figure(high)})"
    return True, f"{figure(was)} before ({figure(low)} to {figure(high)}), {figure(now)} since"


def _fact_moved(before: pd.Series, after: pd.Series) -> tuple[bool, str] | None:
    """Tell whether half of the runs since have what no run before had."""
    earlier = Counter(map(str, before.dropna()))
    later = Counter(map(str, after.dropna()))
    if earlier.total() < _LEAST_BEFORE or not later:
        return None
    usual, newest = earlier.most_common(1)[0][0], later.most_common(1)[0][0]
    if len(earlier) > max(1, earlier.total() * _FEW_VALUES):
        return False, f"differs from run to run, now mostly {newest}"
    new = sum(count for value, count in later.items() if value not in earlier)
    if 2 * new >= later.total():
        return True, f"{usual} before, {newest} since"
    return False, newest


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
