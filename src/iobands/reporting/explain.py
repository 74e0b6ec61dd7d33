"""Why a series is in its state: the evidence as text, with what else moved and what did not.

For a person who shall tell a colleague what happened without opening a log. May know: surveys
and how they are worded; nothing of files or of the command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np

from iobands.alerts.nodes import folded
from iobands.alerts.shared import Common
from iobands.detection import DOWN
from iobands.detection.chart import RECOVERY
from iobands.reporting.collapse_views import series_lines
from iobands.reporting.covariates import covariates
from iobands.reporting.format import (
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
from iobands.reporting.related import Kin, kin_of, since_of
from iobands.series import slug
from iobands.status.following import Following, Times, is_drop, ratio_text
from iobands.status.states import State
from iobands.status.survey import Series, Survey

_NAMED: Final = 6
_SETTLED: Final = 3
_INDENT: Final = "  "


@dataclass(frozen=True)
class Explanation:
    """What is known of a series; `common` are the changes that it shares with others.

    Sentences on covariates: `changed` of how and where it ran, `moved` of figures that moved, and
    `still` of what did neither.
    """

    series: Series
    since: datetime | None
    changed: tuple[str, ...]
    moved: tuple[str, ...]
    still: tuple[str, ...]
    moved_kin: tuple[Kin, ...]
    still_kin: tuple[Kin, ...]
    common: tuple[Common, ...]


def chosen(survey: Survey, wanted: str) -> list[Series]:
    """Return the series that `wanted` may mean: one if it is a slug or a label, else all like it.

    A series is like it if each word of `wanted` is in its label, whatever the case; if there is
    none, if each is the value of one of its fields, which its label need not say.
    """
    exact = [each for each in survey.series if wanted in {slug(each.key), each.label}]
    if exact:
        return exact
    words = wanted.casefold().split()
    found = [
        each
        for each in survey.series
        if words and all(word in each.label.casefold() for word in words)
    ]
    return found or [
        each
        for each in survey.series
        if words and set(words) <= {str(value).casefold() for value in each.key.fields().values()}
    ]


def explain(survey: Survey, series: Series) -> Explanation:
    """Return what is known of `series`, from a survey with all columns of the samples."""
    since = since_of(series.status.following)
    kin = kin_of(survey, series)
    changed, moved, still = covariates(series.samples, since) if since else ([], [], [])
    return Explanation(
        series,
        since,
        tuple(changed),
        tuple(moved),
        tuple(still),
        tuple(each for each in kin if each.direction),
        tuple(each for each in kin if not each.direction),
        tuple(each for each in survey.common if series.key in each.keys),
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
    if status.missing and status.state is State.NO_DATA:
        return f"at the check, whether it runs and how it ended: {status.missing}"
    if status.state is State.NO_DATA:
        return f"at the check: {status.why}"
    if status.state is State.CALIBRATING:
        return "when there are enough runs to judge by"
    if not told.since and not told.common:
        return "nowhere; nothing speaks for a lasting change of this series"
    shared = [f"iobands explain '{each.name}'" for each in told.common]
    if not told.since:
        return f"at what it shares with others: {listed(shared)}"
    together = f"; for all that went with it: {listed(shared)}" if shared else ""
    if told.changed:
        where = f"at what changed with it ({_names(told.changed)}), before the file system"
    else:
        also = f"; and at its {_names(told.moved)}, which moved with it" if told.moved else ""
        where = f"{_advice_by_kin(told, key.file_system or '')}{also}"
    return where + together


def _names(sentences: Sequence[str]) -> str:
    return listed([sentence.split(":", maxsplit=1)[0] for sentence in sentences])


def _advice_by_kin(told: Explanation, file_system: str) -> str:
    """Return where to look next, from which other series moved in the same direction."""
    same = "file system"
    following = told.series.status.following
    change = following.open_change if following else None
    direction = change.direction if change else DOWN
    alike = [each for each in told.moved_kin if each.direction == direction]
    others = [*(each for each in told.moved_kin if each not in alike), *told.still_kin]
    with_it = [each for each in alike if same in each.shared]
    without = [each for each in others if same in each.shared]
    # of many other series some always lean, so that it takes alarms there
    elsewhere = [each for each in alike if same not in each.shared and each.change]
    if elsewhere:
        return (
            f"at what the series of several file systems share ({plural(len(elsewhere), 'series')} "
            f"elsewhere went {direction} too): clients, network, system software"
        )
    if with_it and not without:
        return f"at the file system {file_system}: all its series moved, and none of another did"
    if with_it:
        in_common = set.intersection(*(set(each.shared) for each in with_it))
        telling = in_common - {name for each in without for name in each.shared}
        common = f", which have the {listed(sorted(telling))} in common" if telling else ""
        return f"at the {len(with_it) + 1} series of {file_system} that went {direction}{common}"
    return (
        f"at what this series alone uses: no other went {direction}. A rerun of its check tells "
        "whether it lasts"
    )


def _head(told: Explanation, survey: Survey) -> Iterator[str]:
    series = told.series
    status = series.status
    state = status.state.value
    joint = " " if status.why.startswith("since ") else ": "
    yield f"{series.label}: {state}{joint + status.why if status.why else ''}"
    if status.acknowledged:
        yield answer_text(status.acknowledged)
    for each in told.common:
        change = each.changes[series.key.variable]
        runs = f"Its runs on {folded(each.pool.nodes)} have" if each.pool.nodes else "It has"
        word = "fallen" if is_drop(change) else "risen"
        yield (
            f"{runs} {word} together with others: {each.name}, since {change.since:%Y-%m-%d}, "
            f"{ratio_text(change.ratio)}"
        )
    yield f"at {time_text(survey.now)} UTC; all times are UTC; name in files: {slug(series.key)}"


def _evidence(series: Series) -> Iterator[str]:
    status, unit = series.status, series.key.unit
    following = status.following
    if following is None or status.value is None or status.when is None:
        yield "History     no sample"
        return
    times = following.times
    if len(times):
        yield (
            f"History     {plural(len(times), 'run')} to compare, from {_day(times[0])} to "
            f"{_day(times[-1])}{_cadence(times)}; {status.runs} in all"
        )
    if status.band:
        facts = band_facts(status.band, status.provisional)
        former = ", of the level before the change" if status.change else ""
        yield (
            f"Band        {band_text(status.band, status.provisional)} {unit} (quartiles{former}; "
            f"{facts})"
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
            f"from {chart.watch:g}, alarm from {chart.limit:g}, where all series together have one "
            f"false alarm in {years:.1f} years"
        )
        if chart.open is not None:
            yield (
                f"Recovery    {float(chart.recovery.min()):.1f} of the {RECOVERY:g} that close the "
                "alarm"
            )
        if chart.correlation:
            yield (
                f"Dependence  correlation from run to run {chart.correlation:.2f}; evidence is "
                f"divided by {chart.scale:.2f} for it"
            )
    yield f"Power       {following.power_text()}"
    for change in following.changes:
        if change.ended:
            yield (
                f"Earlier     {change.direction} from {change.since:%Y-%m-%d} to "
                f"{change.ended:%Y-%m-%d} ({change.end}): {ratio_text(change.ratio)}"
            )
    yield from _settled(following)
    for heading, what in acts_told(series.acts):
        yield f"{heading:12}{what}"


def _settled(following: Following) -> Iterator[str]:
    """Yield the newest changes that were too small for an alarm."""
    changes = following.settled
    if len(changes) > _SETTLED:
        yield f"Settled     {len(changes) - _SETTLED} more, before these"
    for change in changes[-_SETTLED:]:
        yield (
            f"Settled     {change.direction} since {change.since:%Y-%m-%d}: "
            f"{change.ratio.value:.3f} × the reference, less than the "
            f"{100 * following.chart.least:g} % that matter"
        )


def _rank(following: Following) -> str:
    """Return the place of the newest run among the earlier ones that compare."""
    values = following.values
    if len(values) < 2:  # noqa: PLR2004
        return ""
    lower = int(np.count_nonzero(values[:-1] < values[-1]))
    same = int(np.count_nonzero(values[:-1] == values[-1]))
    ties = f", {same} the same" if same else ""
    return f"; {lower} of {plural(len(values) - 1, 'earlier run')} were lower{ties}"


def _cadence(times: Times) -> str:
    """Return how often it ran, by days: several runs of a moment say nothing of that."""
    days = np.unique(times.astype("datetime64[D]"))
    if len(days) == 1:
        return ""
    gap = (days[-1] - days[0]) / (len(days) - 1) / np.timedelta64(1, "D")
    return f", on {len(days)} days, one every {gap:.1f} days"


def _moved(told: Explanation) -> Iterator[str]:
    for each in told.moved_kin:
        shared = f"same {listed(each.shared)}" if each.shared else "same system"
        yield f"{each.series.label}: {_move(each)} ({shared})"
    yield from told.changed
    yield from told.moved
    if not (told.moved_kin or told.changed or told.moved):
        yield "nothing that is recorded"


def _move(kin: Kin) -> str:
    if kin.change:
        change = kin.change
        until = f" to {change.ended:%Y-%m-%d}" if change.ended else ""
        return (
            f"{change.direction} since {change.since:%Y-%m-%d}{until}, {change.ratio.value:.2f} ×"
        )
    if kin.act and kin.act.since:
        ratio = f", {kin.act.ratio:.2f} ×" if kin.act.ratio else ""
        return f"since {kin.act.since:%Y-%m-%d}{ratio}; {kin.act.kind}, {act_text(kin.act)}"
    assert kin.leaning is not None
    return (
        f"no alarm of its own, but {ratio_text(kin.leaning)} in its next {plural(kin.runs, 'run')}"
    )


def _still(told: Explanation) -> Iterator[str]:
    near = [each for each in told.still_kin if "file system" in each.shared]
    far = [each for each in told.still_kin if "file system" not in each.shared]
    for group, what in ((near, "of the same file system"), (far, "of other file systems")):
        if group:
            names = [each.series.label for each in group]
            yield f"{plural(len(names), 'series')} {what}, as far as can be told: {_some(names)}"
    yield from told.still
    if not told.still_kin and not told.still:
        yield "nothing that is recorded"


def listed(words: Sequence[str]) -> str:
    """Return `words` as one reads them aloud."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _some(names: Sequence[str]) -> str:
    hidden = len(names) - _NAMED
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {hidden} more" if hidden > 0 else shown


def _day(time: np.datetime64) -> str:
    return str(time.astype("datetime64[D]"))
