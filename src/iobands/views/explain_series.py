"""Explains a series in words: its state, the facts behind it, and what else moved."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from textwrap import shorten
from typing import Final, NamedTuple

import numpy as np

from iobands import snapshot
from iobands.snapshot import Alert, Change, Evidence, Series, SeriesKey, Snapshot, State, figure
from iobands.views import writing
from iobands.views.alert_lines import command_on, could_move, details
from iobands.views.notes import how_run, uneven
from iobands.views.writing import day_text, listed, percent, plural, ratio_text, time_text

#: A heading and the text under it.
Fact = tuple[str, str]

#: What to do about an improvement.
IMPROVED: Final = "none: nothing is broken. The new level becomes the baseline after 30 runs"
_MOST_MOVED: Final = 12
_MOST_INCIDENTS: Final = 5
_TRANSIENTS: Final = 3
# The runs before a change, as many as in the largest baseline, and since, that are compared. Later
# runs may have moved for another reason.
_BEFORE: Final = 200
_NEXT: Final = 30
_LEAST_BEFORE: Final = 20
_LEAST_SINCE: Final = 3
_LEANS: Final = 0.97  # a ratio of levels between this and its inverse is no move
_NEAR: Final = timedelta(days=3)
_SESSIONS: Final = 40  # the newest ones, in which failed runs are counted
_MESSAGE: Final = 100
_DATED: Final = re.compile(r"^the (run|check) of .*? \d\d:\d\d ")
# The fields that two series may have in common, and what they are called in a sentence.
_SHARED: Final = {
    "file_system": "file system",
    "pattern": "pattern",
    "variable": "variable",
    "transport": "transport",
    "environ": "environment",
    "partition": "partition",
}
_FIGURES: Final = ("floor", "lower_quartile", "median", "upper_quartile", "maximum")


class Start(NamedTuple):
    """When a change began: most likely at `since`, between `low` and `high`."""

    since: datetime
    low: datetime
    high: datetime


@dataclass(frozen=True)
class Related:
    """Another series of the same system, and the fields that both have in common.

    If it moved at the same time, `direction` is `up` or `down`, and `says` describes the move: its
    own change (`has_change`), a change that an action ended, or a different level without an alert.
    """

    series: Series
    shared: tuple[str, ...]
    direction: str | None = None
    says: str = ""
    has_change: bool = False


def start_of(series: Series) -> Start | None:
    """Return when the open change of a series or its suspected drop began; None without either."""
    if change := series.status.change:
        return Start(change.since, change.since_low, change.since_high)
    evidence = series.status.evidence
    since = evidence.suspicion.since if evidence and evidence.suspicion else None
    return Start(since, since, since) if since else None


def relations_of(
    site: Snapshot, series: Series, onset: Start, near: Collection[SeriesKey] | None = None
) -> list[Related]:
    """Return the other series of its system, first those with the most fields in common.

    Series that were first measured after the onset are left out. Moves without an alert are looked
    for in the series `near`, or in all if that is None.
    """
    found = []
    for other in site.series:
        is_other = other is not series and other.key.system == series.key.system
        if is_other and could_move(other, onset.since):
            is_near = near is None or other.key in near
            found.append(_moved(site, series, other, onset, is_near))
    return sorted(found, key=lambda each: -len(each.shared))


def _moved(site: Snapshot, series: Series, other: Series, onset: Start, is_near: bool) -> Related:
    """Return whether and how `other` moved, at the onset or as a member of an alert of `series`."""
    traits = {name: series.trait(name) for name in _SHARED}
    shared = tuple(name for name, own in traits.items() if own and own == other.trait(name))
    still = Related(other, shared)
    alerts = [each for each in site.alerts_on(other.key) if each.certainty]
    is_with_it = any(series.key in each.keys for each in alerts)
    same = f" (same {listed([_SHARED[name] for name in shared])})" if shared else ""
    evidence = other.status.evidence
    low, high = onset.low - _NEAR, onset.high + _NEAR
    for change in reversed(evidence.changes if evidence else ()):
        is_same = is_with_it and change.ended is None
        if is_same or (change.since_low <= high and change.since_high >= low):
            until = f" to {day_text(change.ended, site.now)}" if change.ended else ""
            begin = f"{'from' if until else 'since'} {day_text(change.began, site.now)}"
            what, size = change.kind.value, ""
            if change.is_of_level:
                what, size = change.direction, f", {ratio_text(change.size)}"
            says = f"{what} {begin}{until}{size}{same}"
            return Related(other, shared, change.direction, says, has_change=True)
    for action in reversed(snapshot.in_force(other.actions)):
        is_end = action.kind in {snapshot.RESOLVE, snapshot.REBASELINE}
        if is_end and action.direction and action.since and low <= action.since <= high:
            ratio = f", {writing.times(action.ratio)} ×" if action.ratio else ""
            says = f"{action.direction}{ratio}; {writing.action_text(action)}{same}"
            return Related(other, shared, action.direction, says)
    # A series in a change or an alert of another time did not move at this onset.
    is_other = any(each.since and not low <= each.since <= high for each in alerts)
    for change in evidence.changes if evidence else ():
        is_other |= bool(change.ended and change.began <= onset.since < change.ended)
    if not is_near or other.status.change or is_other:
        return still
    times, values = other.judged
    start = int(np.searchsorted(times, snapshot.in_utc(onset.since)))
    before, after = values[max(0, start - _BEFORE) : start], values[start : start + _NEXT]
    if len(before) < _LEAST_BEFORE or len(after) < _LEAST_SINCE:
        return still
    level = snapshot.level_ratio(np.log(before), np.log(after))
    if level.high >= _LEANS and level.low <= 1 / _LEANS:
        return still
    where = "without an alert"
    for alert in alerts[:1]:
        is_own = alert.subject == other.label
        where = alert.severity.value if is_own else f"part of '{alert.subject}'"
    says = f"{ratio_text(level)} in its next {plural(len(after), 'run')}, {where}{same}"
    return Related(other, shared, snapshot.DOWN if level.value < 1 else snapshot.UP, says)


def section(heading: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield an empty line, a heading, and indented lines."""
    yield from ("", heading, *(f"  {line}" for line in list(lines) or ["nothing recorded"]))


def of_series(
    site: Snapshot, series: Series, *, every: bool = False, runs: int = 0
) -> Iterator[str]:
    """Yield the explanation of a series, line by line, with a table of its newest `runs`.

    `every` names all other series, not only a few.
    """
    onset, status = start_of(series), series.status
    others = relations_of(site, series, onset) if onset else []
    why = status.missing or status.why
    why = "; its newest run collapsed" if status.is_low_once else why and f": {why}"
    yield f"{series.label}: {status.state.value}{why}"
    yield f"at {time_text(site.now)} UTC; all times are UTC"
    yield ""
    for heading, text in facts(site, series):
        yield f"{heading:13}{text}"
    if onset:
        most, same = len(others) if every else None, "Moved at the same time"
        yield from section(same, _others_moved(site, series, others, most or _MOST_MOVED))
        still = [each for each in others if not each.direction]
        yield from section("Did not move", _still(still, most or writing.FEW_NAMES))
    yield from ("", f"Next step: {_advice(site, series, others)}")
    if status.runs:
        cells = [(snapshot.TIME, series.history.last), *series.history.newest.items()]
        texts = (
            f"{name}: {f'{value:.6g}' if isinstance(value, float) else value}"
            for name, value in cells
            if value is not None
        )
        yield from section("Newest sample", ["; ".join(texts)])
    if runs:
        yield from section("Newest runs", _newest(site, series, runs))


def _newest(site: Snapshot, series: Series, number: int) -> Iterator[str]:
    """Yield a table of the newest runs, including runs that gave no sample."""
    newest, verdicts = slice(-number, None), series.verdicts.codes[-number:]
    jobs = site.samples["jobid"][series.rows[newest]].to_list()
    values = series.history.values[newest]
    runs = zip(series.history.times[newest], values, verdicts, jobs, strict=True)
    unit = series.key.symbol
    rows = [
        (snapshot.moment(when), f"{figure(value)} {unit}", snapshot.VERDICTS[code], job)
        for when, value, code, job in runs
    ]
    rows += [(each.when, "-", missed_text(each), None) for each in series.missing[newest]]
    rows.sort(key=lambda row: row[0], reverse=True)
    table = [(time_text(when), value, says, job or "-") for when, value, says, job in rows[:number]]
    table.insert(0, ("TIME", "VALUE", "VERDICT", "JOB"))
    width = writing.output_width() - len(writing.GAP)  # a section indents its lines
    for lines in writing.blocks(table, width, wrapped=(2,), right=(1,), indent=""):
        yield from lines


def moved(site: Snapshot, series: Series) -> Iterator[str]:
    """Yield the causes and the series that moved with `series`; nothing if it did not move."""
    if onset := start_of(series):
        yield from _others_moved(site, series, relations_of(site, series, onset))


def _others_moved(
    site: Snapshot, series: Series, others: Sequence[Related], most: int = _MOST_MOVED
) -> Iterator[str]:
    for alert in site.alerts_on(series.key):
        causes = [alert.cause] if alert.cause else []  # with the odds of that time
        causes += [e for e in alert.candidates if e.kind not in [c.kind for c in causes]]
        yield from (writing.odds_text(each, site.now) for each in causes)
    near = [each for each in others if each.direction]
    near.sort(key=lambda each: not each.has_change)
    yield from (f"{each.series.label}: {each.says}" for each in near[:most])
    if len(near) > most:
        yield f"and {len(near) - most} more that moved without an alert"


def facts(site: Snapshot, series: Series) -> Iterator[Fact]:
    """Yield the facts about a series; an empty heading continues the fact before."""
    status, unit, evidence = series.status, series.key.symbol, series.status.evidence
    for alert in site.alerts_on(series.key):
        if not (status.is_low_once and alert.subject == series.label and not alert.reason):
            yield "Alert", _alert(site, alert)
    if evidence is None or status.value is None or status.when is None:
        yield "Runs", "no sample"
        return
    yield from _change(site, evidence, unit)
    times, values = series.judged
    newest = f"{figure(status.value)} {unit} at {time_text(status.when)}: {status.verdict}"
    # by row, not by time: the newest may not be judged, and an earlier run may have the same second
    earlier = values[evidence.rows < len(series.history) - 1]
    if len(earlier) > 1:  # a rank among one says nothing
        lower, same = np.sum(earlier < status.value), np.sum(earlier == status.value)
        ties = f", {same} the same" if same else ""
        were = "was" if lower == 1 else "were"
        newest += f"; {lower} of {len(earlier)} earlier runs {were} lower{ties}"
    purpose = series.history.newest.get("purpose")
    yield "Newest", newest + (f", measured again ({purpose})" if purpose in snapshot.ASKED else "")
    for ask in site.planned:
        if series.name in ask.series:
            yield "Next repeat", f"{writing.due_text(ask, site.now)}: {ask.why}"
    yield from how_run(series.key, series.history.newest)
    if len(times):
        ends = dict.fromkeys(day_text(snapshot.moment(e), site.now) for e in times[[0, -1]])
        number, runs = len(times), plural(status.runs, "run")
        said = runs if number == status.runs else f"{number} of {runs} comparable with the newest"
        yield "Runs", f"{said}, {' to '.join(ends)}"
    yield from _failed(series, site.now)
    if text := uneven(series.history.newest):
        yield "Targets", text
    yield from _normal(status, unit)
    if series.epoch:
        yield "Epoch", writing.epoch_text(series.epoch)
    for window in site.maintenance.get(series.key.system, ()):
        text = writing.maintenance_text(window, site.now)
        if text and window.is_of(series.key.file_system):
            yield "Maintenance", text
    yield from _evidence(evidence, unit)
    yield from _past(site, series, evidence)
    yield from _of_outliers(site, series)
    undone = {each.of for each in series.actions}
    for action in series.actions:
        is_undone = " (undone)" if action.when in undone else ""
        yield "Action", f"{writing.action_text(action)}{is_undone}"


def _alert(site: Snapshot, alert: Alert) -> str:
    """Return a shared alert in full; of another one, what no other fact shows."""
    if len(alert.members) > 1:
        text = ", ".join([alert.severity.value, *filter(None, details(alert, site))])
        return f"{alert.subject}: {text}; see: {command_on(alert, site, 'explain')}"
    certainty = alert.certainty.value if alert.certainty else ""
    known = writing.acknowledgement_text(alert)
    return ", ".join(filter(None, [alert.severity.value, alert.reason, certainty, known]))


def _change(site: Snapshot, evidence: Evidence, unit: str) -> Iterator[Fact]:
    """Yield the size and the dates of the open change, or of the suspected drop."""
    if change := evidence.open_change:
        word = "Drop" if change.is_drop else "Rise"
        yield "Spread" if change.kind is State.UNSTABLE else word, size_of(site, change, unit)
        yield "", raised_of(site, change)
        if change.repeats:
            known = f"confirmed by {change.confirmed} of {plural(change.repeats, 'repeat')}"
            yield "", f"since {snapshot.day_and_time(change.since)}, {known}"
        if change.falls and change.newest:
            again = day_text(change.falls[-1].since, site.now)
            yield "", f"fell again {again}, now {ratio_text(change.newest)}"
    elif suspicion := evidence.suspicion:
        since = f"since about {day_text(suspicion.since, site.now)}"
        yield "Suspicion", f"{ratio_text(suspicion.ratio)} the baseline {since}"


def size_of(site: Snapshot, change: Change[datetime], unit: str) -> str:
    """Return the levels before and since a change, or the quartiles or modes, by its kind."""
    since = day_text(change.began, site.now)
    if change.kind is State.UNSTABLE:
        now, was = (" and ".join(map(figure, each)) for each in (change.now, change.was))
        return f"varies between {now} {unit} since {since}; before, between {was} (quartiles)"
    if change.kind is State.MODE_LOST:
        low, high = map(figure, change.was)
        return f"no run near {high} {unit} since {since}; before, near {low} or near {high}"
    if change.kind is State.SLIDING and change.ended is None:
        now = f"now {figure(change.level)} {unit}, {ratio_text(change.size)}"
        return f"slides since {since}: {percent(change.size.value)} so far, {now}"
    slid = "slid to " if change.kind is State.SLIDING else ""
    level = f"{slid}{figure(change.level)} {unit} since {since}, was "
    return f"{level}{figure(change.baseline)}: {ratio_text(change.size)}"


def raised_of(site: Snapshot, change: Change[datetime]) -> str:
    """Return when a change began and had enough evidence; `size_of` says when a slide began.

    An alert that the series shares may have been raised earlier.
    """
    began = f"began {writing.between_text(change.since_low, change.since_high, site.now)}; "
    began = "" if change.kind is State.SLIDING else began
    return f"{began}enough evidence for an alert on {day_text(change.raised, site.now)}"


def _normal(status: snapshot.Status, unit: str) -> Iterator[Fact]:
    """Yield the band of a series with its source, and the published limit."""
    if band := status.band:
        stage = "" if status.provisional else band.state
        runs = f"from {plural(band.runs, 'run')}" if band.runs else ""
        source = ", ".join(filter(None, [stage, runs, band.source or "the bands file"]))
        quartiles = f"{writing.band_text(band)} {unit} (quartiles)"
        yield "Band", f"{quartiles}, floor {figure(band.floor)} {unit}; {source}"
        said = [
            f"{name.replace('_', ' ')} {' to '.join(map(figure, band.intervals[name]))}"
            for name in _FIGURES
            if name in band.intervals
        ]
        if said:
            yield "", f"95 % intervals: {', '.join(said)}"
    if limit := status.limit:
        published = f"{limit.kind.replace('_', ' ')} {figure(limit.value)} {unit}"
        yield "Published", f"{published}; {limit.source}"


def _evidence(evidence: Evidence, unit: str) -> Iterator[Fact]:
    if evidence.level is None or not len(evidence.rows):
        return
    runs = f"median of {plural(evidence.baseline_runs, 'accepted run')}"
    of_what = runs if evidence.baseline_runs else "from the band"
    yield "Baseline", f"{figure(evidence.level)} {unit}, {of_what}"
    yield (
        "Evidence",
        f"{evidence.down[-1]:.1f} for a drop, {evidence.up[-1]:.1f} for a rise; watch from "
        f"{evidence.watch:g}, alert from {evidence.threshold:g} (nats)",
    )
    if evidence.correlation:
        why = f"as the correlation of successive runs is {evidence.correlation:.2f}"
        yield "", f"divided by {evidence.scale:.2f}, {why}"
    seen = (
        f"{percent(float(drop))} "
        + ("not at all" if runs is None else f"in about {plural(round(runs), 'run')}")
        for drop, runs in evidence.power.items()
    )
    if evidence.power:
        yield "Power", f"detects {', '.join(seen)}"


def _past(site: Snapshot, series: Series, evidence: Evidence) -> Iterator[Fact]:
    """Yield the changes, transients and incidents that are over."""
    for change in evidence.changes:
        if change.ended is None:
            continue
        since, ended = (day_text(each, site.now) for each in (change.began, change.ended))
        word, size = change.kind.value, ""
        if change.is_of_level:
            word, size = "drop" if change.is_drop else "rise", f", {ratio_text(change.size)}"
        end = snapshot.how_ended(change.end or "", change.direction)
        end = "became the baseline" if end == snapshot.ADOPTED else end
        yield "Earlier", f"{word} from {since} to {ended}{size}: {end}"
    for transient in evidence.transients[-_TRANSIENTS:]:
        yield "Transient", f"{time_text(transient.since)}: {transient}"
    over = [each for each in site.incidents if series.key in each.ratios and not each.is_open]
    for each in over[-_MOST_INCIDENTS:]:
        since, until = (day_text(time, site.now) for time in (each.since, each.until))
        ratio = f"{writing.times(each.ratios[series.key])} × the band of this series"
        yield "Incident", f"{each.name} from {since} to {until}: {ratio}"


def _of_outliers(site: Snapshot, series: Series) -> Iterator[Fact]:
    place = site.file_system(series.key.system, series.key.file_system)
    if series.outliers.runs:
        of_all = f"of all {place.name}: {_outliers(site, place.outliers)}"
        yield "Outliers", f"{_outliers(site, series.outliers)}; {of_all}"


def _outliers(site: Snapshot, found: snapshot.Outliers) -> str:
    newest = f", the newest on {day_text(found.newest, site.now)}" if found.newest else ""
    return f"{found.outliers} of {plural(found.runs, 'run')}{newest}"


def _failed(series: Series, now: datetime) -> Iterator[Fact]:
    """Yield how many of its last sessions failed, and how the newest of them did."""
    failed = [each for each in series.missing if each.is_failure]
    samples = map(snapshot.moment, series.history.times[-_SESSIONS:])
    begins = sorted([*(each.when for each in failed), *samples])[-_SESSIONS:]
    if last := [each for each in failed if each.when >= begins[0]]:
        how = shorten(last[-1].what.partition(" failed")[2], _MESSAGE, placeholder="…")
        when = f"{day_text(last[-1].when, now)} {last[-1].when:%H:%M}"
        newest = f"newest {when}{'' if how.startswith(':') else ' '}{how}"
        yield "Failed", f"{len(last)} of the last {plural(len(begins), 'session')}, {newest}"


def missed_text(missing: snapshot.MissingRun) -> str:
    """Return why a run gave no sample, without its time; empty if unknown."""
    how = _DATED.sub(r"\1 ", missing.what)
    return how[:1].upper() + how[1:]


def _still(others: Sequence[Related], most: int) -> Iterator[str]:
    for is_near, where in ((True, "the same file system"), (False, "other file systems")):
        if alike := [e.series.label for e in others if ("file_system" in e.shared) is is_near]:
            yield f"{plural(len(alike), 'series')} of {where}: {writing.some(alike, most)}"


def _advice(site: Snapshot, series: Series, others: Sequence[Related]) -> str:
    """Return the next step, by what moved and what did not."""
    status, has_moved, every = series.status, start_of(series), site.alerts_on(series.key)
    alerts = [each for each in every if len(each.members) > 1]
    whole = f"; the whole alert: {command_on(alerts[0], site, 'explain')}" if alerts else ""
    fails = any(each.reason and each.exit_status for each in every)
    if status.state is State.NO_DATA or (fails and not has_moved):
        return f"see whether the check runs, and how it ended{whole}"
    if status.state is State.CALIBRATING:
        return "none until there are enough runs"
    if not has_moved:
        if whole or not status.is_low_once:
            return f"see what it shares with other series{whole}" if whole else "none; no change"
        due = [writing.due_text(a, site.now) for a in site.planned if series.name in a.series]
        again = f"its next repeat, {due[0]}" if due else "the next run"
        return f"wait for {again}; one run below the floor raises no alert"
    if status.state is State.IMPROVED:
        return f"{IMPROVED}{whole}"
    known = [alert.cause.what for alert in alerts if alert.cause]
    first = f"check its cause: {known[0]}" if known else _advice_by_related(series, others)
    return f"{first}{whole}"


def _advice_by_related(series: Series, others: Sequence[Related]) -> str:
    direction = series.status.change.direction if series.status.change else snapshot.DOWN
    alike = [each for each in others if each.direction == direction]
    with_it = [each for each in alike if "file_system" in each.shared]
    without = [each for each in others if each not in alike and "file_system" in each.shared]
    # Some of many series always move a little: on other file systems only changes count.
    if elsewhere := sum("file_system" not in each.shared and each.has_change for each in alike):
        return (
            "check what several file systems share: clients, network, system software "
            f"({plural(elsewhere, 'series')} of other file systems went {direction} too)"
        )
    name = series.key.file_system
    if with_it and not without:
        return f"check the file system {name}: all its series moved, and no others did"
    if with_it:
        common = set.intersection(*(set(each.shared) for each in with_it))
        telling = sorted(common.difference(*(each.shared for each in without)))
        words = listed([_SHARED[name] for name in telling]) if telling else ""
        same = f", such as the same {words}" if words else ""
        moved = f"the {len(with_it) + 1} series of {name} that moved"
        return f"check what {moved} have in common{same}"
    return (
        "run its check once more, and check what only this series uses, as no other clearly went "
        f"{direction}"
    )
