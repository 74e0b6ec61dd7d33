"""The explanation of a series: its state, and what else moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.snapshot import (
    ADOPTED,
    ASKED,
    DOWN,
    TIME,
    Alert,
    Change,
    Evidence,
    Outliers,
    Series,
    Snapshot,
    State,
    moment,
    slug,
)
from iobands.views import (
    SHARED_FIELDS,
    Related,
    acknowledgement_text,
    action_text,
    band_source,
    band_text,
    between_text,
    command_text,
    day_text,
    details,
    due_text,
    epoch_text,
    figure,
    hour_text,
    how_run,
    intervals_text,
    limit_text,
    listed,
    maintenance_text,
    move,
    odds_text,
    onset_time_of,
    percent,
    plural,
    ratio_text,
    relations_of,
    section,
    some,
    time_text,
    uneven,
)

#: A heading and the text under it.
Fact = tuple[str, str]

_HEADING: Final = 13
_MOST_MOVED: Final = 12
_MOST_INCIDENTS: Final = 5


def of_series(site: Snapshot, series: Series) -> Iterator[str]:
    """Yield the explanation of a series, line by line."""
    onset = onset_time_of(series)
    others = relations_of(site, series, onset)
    yield f"{series.label}: {_state(series)}"
    yield f"at {time_text(site.now)} UTC; all times are UTC"
    yield ""
    for heading, text in facts(site, series):
        yield f"{heading:{_HEADING}}{text}"
    if onset:
        yield from section(
            f"Moved at the same time, about {day_text(onset.since, site.now)}",
            _moved(site, series, others),
        )
        yield from section("Did not move", _still([each for each in others if not each.direction]))
    yield from ("", f"Next step: {_advice(site, series, others)}")
    yield from _newest(series)


def moved(site: Snapshot, series: Series) -> Iterator[str]:
    """Yield what moved when the series did; nothing if it did not move."""
    onset = onset_time_of(series)
    if onset:
        yield from _moved(site, series, relations_of(site, series, onset))


def _moved(site: Snapshot, series: Series, others: Sequence[Related]) -> Iterator[str]:
    for alert in site.alerts_on(series.key):
        yield from (odds_text(each, site.now) for each in alert.candidates)
    near = [each for each in others if each.direction]
    near.sort(key=lambda each: each.change is None)
    yield from (f"{each.series.label}: {move(site, each)}" for each in near[:_MOST_MOVED])
    if len(near) > _MOST_MOVED:
        yield f"and {len(near) - _MOST_MOVED} more that moved without an alert"


def _state(series: Series) -> str:
    status = series.status
    if status.state is State.NO_DATA:
        return f"no data: {status.missing or status.why}"
    return f"{status.state.value}{f': {status.why}' if status.why else ''}"


_TRANSIENTS: Final = 3


def facts(site: Snapshot, series: Series) -> Iterator[Fact]:
    """Yield what is known of a series; an empty heading continues the one before."""
    status, unit, evidence = series.status, series.key.unit, series.status.evidence
    for alert in site.alerts_on(series.key):
        yield "Alert", _alert(site, alert)
    if evidence is None or status.value is None or status.when is None:
        yield "Runs", "no sample"
        return
    yield from _change(site, series, evidence)
    times, values = series.judged
    rank = _rank(values)
    newest = f"{figure(status.value)} {unit} at {time_text(status.when)}: {status.verdict}"
    purpose = series.history.newest.get("purpose")
    again = f", measured again ({purpose})" if purpose in ASKED else ""
    yield "Newest", f"{newest}{rank}{again}"
    for ask in site.planned:
        if slug(series.key) in ask.series:
            yield "Next repeat", f"{due_text(ask, site.now)}: {ask.why}"
    yield from how_run(series.key, series.history.newest)
    if len(times):
        first, last = (day_text(moment(each), site.now) for each in times[[0, -1]])
        judged = f"{len(times)} of {plural(status.runs, 'run')}"
        yield "Runs", f"{judged} can be compared with the newest, from {first} to {last}"
    if text := uneven(series.history.newest):
        yield "Targets", text
    if status.band:
        text = f"{band_text(status.band, status.provisional)} {unit} (quartiles), floor "
        source = band_source(status.band, status.provisional)
        yield "Band", f"{text}{figure(status.band.floor)} {unit}; {source}"
        if status.band.intervals:
            yield "", f"95 % intervals: {intervals_text(status.band)}"
    if status.limit:
        yield "Published", f"{limit_text(status.limit)} {unit}; {status.limit.source}"
    if series.epoch:
        yield "Epoch", epoch_text(series.epoch)
    yield from _maintenance(site, series)
    yield from _evidence(evidence, unit)
    yield from _earlier(site, evidence)
    for each in evidence.transients[-_TRANSIENTS:]:
        yield "Transient", f"{time_text(each.since)}: {each}"
    yield from _incidents(site, series)
    place = site.file_system(series.key.system, series.key.file_system)
    outliers = f"{_outliers(site, series.outliers)}; of all {place.name}: "
    yield "Outliers", f"{outliers}{_outliers(site, place.outliers)}"
    for action in series.actions:
        undone = any(each.of == action.when for each in series.actions)
        yield "Action", f"{action_text(action)}{' (undone)' if undone else ''}"


def _maintenance(site: Snapshot, series: Series) -> Iterator[tuple[str, str]]:
    for window in site.maintenance.get(series.key.system, ()):
        text = maintenance_text(window, site.now)
        if text and window.is_of(series.key.file_system):
            yield "Maintenance", text


def _alert(site: Snapshot, alert: Alert) -> str:
    """Return the alert: in full if several series share it, else what no other line shows."""
    if len(alert.members) > 1:
        text = ", ".join([alert.severity.value, *filter(None, details(alert, site))])
        return f"{alert.subject}: {text}; {command_text('explain', alert.name)}"
    certainty = alert.certainty.value if alert.certainty else ""
    known = acknowledgement_text(alert)
    return ", ".join(filter(None, [alert.severity.value, alert.reason, certainty, known]))


def _change(site: Snapshot, series: Series, evidence: Evidence) -> Iterator[Fact]:
    """Yield the size and the time of the open change, or of the suspicion behind `watch`."""
    unit = series.key.unit
    if change := evidence.open_change:
        word = "Drop" if change.is_drop else "Rise"
        yield "Spread" if change.kind is State.UNSTABLE else word, _size(site, change, unit)
        began = f"began {between_text(change.since_low, change.since_high, site.now)}"
        began = "" if change.kind is State.SLIDING else f"{began}; "
        yield "", f"{began}alert raised {day_text(change.raised, site.now)}"
        if change.repeats:
            known = f"confirmed by {change.confirmed} of {plural(change.repeats, 'repeat')}"
            yield "", f"since {hour_text(change.since, site.now)}, {known}"
        if change.falls and change.newest:
            again = day_text(change.falls[-1].since, site.now)
            yield "", f"fell again {again}, now {ratio_text(change.newest)}"
    elif suspicion := evidence.suspicion:
        since = f"since about {day_text(suspicion.since, site.now)}"
        yield "Suspicion", f"{ratio_text(suspicion.ratio)} the baseline {since}"


def _size(site: Snapshot, change: Change, unit: str) -> str:
    """Return what happened to a series, in a sentence for each kind of change."""
    since = day_text(change.began, site.now)
    if change.kind is State.UNSTABLE:
        now, was = (" and ".join(map(figure, each)) for each in (change.now, change.was))
        return f"varies between {now} {unit} since {since}; before, between {was} (quartiles)"
    if change.kind is State.MODE_LOST:
        low, high = map(figure, change.was)
        return f"no run near {high} {unit} since {since}; before, near {low} or near {high}"
    ratio = change.newest or change.ratio
    if change.kind is State.SLIDING:
        now = f"now {figure(change.baseline * ratio.value)} {unit}, {ratio_text(ratio)}"
        return f"slides since {since}: {percent(ratio.value)} so far, {now}"
    level = f"{figure(change.level)} {unit} since {since}, was "
    return f"{level}{figure(change.baseline)}: {ratio_text(change.ratio)}"


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
        yield (
            "",
            f"divided by {evidence.scale:.2f}, as the correlation of successive runs is "
            f"{evidence.correlation:.2f}",
        )
    seen = (_seen(float(drop), runs) for drop, runs in evidence.power.items())
    yield "Power", f"detects {', '.join(seen)}"


def _seen(drop: float, runs: float | None) -> str:
    when = "not at all" if runs is None else f"in about {plural(round(runs), 'run')}"
    return f"{percent(drop)} {when}"


def _earlier(site: Snapshot, evidence: Evidence) -> Iterator[Fact]:
    for change in evidence.changes:
        if change.ended is None:
            continue
        since, ended = (day_text(each, site.now) for each in (change.since, change.ended))
        size = ratio_text(change.ratio)
        if change.end == ADOPTED:
            text = f"the improvement of {since}, {size}, became the baseline on {ended}"
        else:
            word = "drop" if change.is_drop else "rise"
            text = f"{word} from {since} to {ended}, {size}: {change.end}"
        yield "Earlier", text


def _incidents(site: Snapshot, series: Series) -> Iterator[Fact]:
    past = [each for each in site.incidents if series.key in each.ratios and not each.is_open]
    for each in past[-_MOST_INCIDENTS:]:
        since, until = (day_text(time, site.now) for time in (each.since, each.until))
        ratio = f"{each.ratios[series.key]:.2f} × the band of this series"
        yield "Incident", f"{each.name} from {since} to {until}: {ratio}"


def _outliers(site: Snapshot, found: Outliers) -> str:
    newest = f", the newest on {day_text(found.newest, site.now)}" if found.newest else ""
    return f"{found.outliers} of {plural(found.runs, 'run')}{newest}"


def _rank(values: NDArray[np.float64]) -> str:
    """Return the rank of the newest run among the earlier comparable ones."""
    if len(values) < 3:  # noqa: PLR2004 (a rank among one says nothing)
        return ""
    lower = int(np.count_nonzero(values[:-1] < values[-1]))
    same = int(np.count_nonzero(values[:-1] == values[-1]))
    ties = f", {same} the same" if same else ""
    return f"; {lower} of {plural(len(values) - 1, 'earlier run')} were lower{ties}"


def _still(others: Sequence[Related]) -> Iterator[str]:
    near = [each for each in others if "file_system" in each.shared]
    far = [each for each in others if "file_system" not in each.shared]
    for group, where in ((near, "the same file system"), (far, "other file systems")):
        if group:
            names = some([each.series.label for each in group])
            yield f"{plural(len(group), 'series')} of {where}: {names}"


def _advice(site: Snapshot, series: Series, others: Sequence[Related]) -> str:
    """Return where to look next, by what moved and what did not."""
    status = series.status
    alerts = [each for each in site.alerts_on(series.key) if len(each.members) > 1]
    whole = [command_text("explain", each.name) for each in alerts[:1]]
    shared = "".join(f"; the whole alert: {each}" for each in whole)
    if status.state is State.NO_DATA:
        return f"see whether the check runs, and how it ended{shared}"
    if status.state is State.CALIBRATING:
        return "none until there are enough runs"
    if onset_time_of(series) is None:
        return f"see what it shares with other series{shared}" if shared else "none; no change"
    known = [alert.cause.what for alert in alerts if alert.cause]
    first = f"check its cause, {known[0]}" if known else _advice_by_related(series, others)
    return f"{first}{shared}"


def _advice_by_related(series: Series, others: Sequence[Related]) -> str:
    direction = series.status.change.direction if series.status.change else DOWN
    alike = [each for each in others if each.direction == direction]
    with_it = [each for each in alike if "file_system" in each.shared]
    without = [each for each in others if each not in alike and "file_system" in each.shared]
    # Among many other series some always lean: elsewhere only changes count.
    elsewhere = [each for each in alike if "file_system" not in each.shared and each.change]
    if elsewhere:
        number = plural(len(elsewhere), "series")
        return (
            f"check what several file systems share: clients, network, system software ({number} "
            f"of other file systems went {direction} too)"
        )
    if with_it and not without:
        name = series.key.file_system
        return f"check the file system {name}: all its series moved, and no others did"
    if with_it:
        common = set.intersection(*(set(each.shared) for each in with_it))
        telling = sorted(common - {name for each in without for name in each.shared})
        words = listed([SHARED_FIELDS[name] for name in telling]) if telling else ""
        same = f", such as the same {words}" if words else ""
        moved = f"the {len(with_it) + 1} series of {series.key.file_system} that moved"
        return f"check what {moved} have in common{same}"
    return (
        f"run its check once more, and check what only this series uses, as no other went "
        f"{direction}"
    )


def _newest(series: Series) -> Iterator[str]:
    """Yield every column of the newest sample."""
    if not series.status.runs:
        return
    cells = [(TIME, series.history.last), *series.history.newest.items()]
    texts = (
        f"{name}: {f'{value:.6g}' if isinstance(value, float) else value}"
        for name, value in cells
        if value is not None
    )
    yield from section("Newest sample", ["; ".join(texts)])
