"""Why a series is in its state, and what an alert is about, with what else moved."""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from iobands.alerts.alert import Alert, Severity
from iobands.detection import ADOPTED, DOWN, Ratio
from iobands.detection.series import POWER_DROP, Detection
from iobands.reporting.covariates import Covariates, covariates
from iobands.reporting.digest import details
from iobands.reporting.format import (
    acknowledgement_text,
    action_text,
    band_source,
    band_text,
    between_text,
    day_text,
    epoch_text,
    figure,
    intervals_text,
    level_text,
    listed,
    percent,
    plural,
    printable,
    ratio_text,
    time_text,
)
from iobands.reporting.related import (
    FIELDS,
    Onset,
    Related,
    onset_of,
    related,
    sharing,
    value_of,
)
from iobands.reporting.samples import newest_sample
from iobands.series import slug
from iobands.site.site import Site
from iobands.status.outliers import Outliers
from iobands.status.series import Series
from iobands.status.state import State
from iobands.status.verdicts import ENOUGH_RUNS

_WIDTH: Final = 100
_HEADING: Final = 12
_NAMED: Final = 6
_MOST_MOVED: Final = 12
_SHARE: Final = 0.5  # of the members: from then on a covariate moved with the alert
_WHERE: Final = {
    "file_system": "the file system itself: its servers, targets and fullness",
    "partition": "what all runs of the partition share: clients, network, system software",
    "transport": "the transport: fabric, drivers, MPI library and environment",
    "pattern": "what the pattern alone uses: its library and hints",
    "medium": "the devices of this kind",
}


def chosen(site: Site, wanted: str) -> list[Alert | Series]:
    """Return what `wanted` may mean: exactly that, or else all with each of its words.

    If no series or alert has them in its name, series with the words as values of their fields.
    """
    alerts = {each.subject: each for each in reversed(site.alerts) if len(each.members) != 1}
    series = {name: each for each in site.series for name in (slug(each.key), each.label)}
    exact = alerts.get(wanted) or series.get(wanted)
    if exact:
        return [exact]
    words = wanted.casefold().split()
    named: list[Alert | Series] = [*alerts.values(), *site.series]
    found = [
        each for each in named if words and all(word in name_of(each).casefold() for word in words)
    ]
    return found or [
        each
        for each in site.series
        if words and set(words) <= {str(value).casefold() for value in each.key.fields().values()}
    ]


def name_of(found: Alert | Series) -> str:
    """Return what an alert or a series is called."""
    return found.subject if isinstance(found, Alert) else found.label


def explanation(site: Site, found: Alert | Series) -> str:
    """Return an explanation as text."""
    lines = _of_alert(site, found) if isinstance(found, Alert) else _of_series(site, found)
    return "\n".join(printable(line) for line in lines) + "\n"


def _of_series(site: Site, series: Series) -> Iterator[str]:
    onset = onset_of(series)
    others = related(site, series, onset)
    yield f"{series.label}: {_state(series)}"
    yield f"at {time_text(site.now)} UTC; all times are UTC; name in files: {slug(series.key)}"
    yield ""
    yield from _facts(site, series)
    found = Covariates()
    if onset:
        found = covariates(series, onset.since)
        moved = [each for each in others if each.direction]
        moved.sort(key=lambda each: each.change is None)
        lines = [f"{each.series.label}: {_move(site, each)}" for each in moved[:_MOST_MOVED]]
        more = len(moved) - len(lines)
        lines += [f"and {more} more that lean without an alert"] if more > 0 else []
        lines += _said(found.changed) + _said(found.moved)
        yield from _section(
            f"Moved at the same time, about {day_text(onset.since, site.now)}", lines
        )
        still = [each for each in others if not each.direction]
        yield from _section("Did not move", [*_still(still), *_as_before(found.still)])
    yield from ("", f"Look next: {_advice(site, series, others, found)}")
    yield from _newest(series)


def _state(series: Series) -> str:
    status = series.status
    if status.state is State.CALIBRATING:
        return f"calibrating: {status.why}; judged after {ENOUGH_RUNS} runs"
    if status.state is State.NO_DATA:
        return f"no data: {status.missing or status.why}"
    return f"{status.state.value}{f': {status.why}' if status.why else ''}"


def _facts(site: Site, series: Series) -> Iterator[str]:
    """Yield what is known of a series, a heading a line."""
    status, unit, detection = series.status, series.key.unit, series.status.detection
    for alert in site.alerts_on(series.key):
        yield from _fact("Alert", _alert(site, alert, series))
    if detection is None or status.value is None or status.when is None:
        yield from _fact("Runs", "no sample")
        return
    yield from _change(site, series, detection)
    rank = _rank(detection)
    newest = f"{figure(status.value)} {unit} at {time_text(status.when)}: {status.verdict}"
    yield from _fact("Newest", f"{newest}{rank}")
    if len(detection.times):
        first, last = (str(each.astype("datetime64[D]")) for each in detection.times[[0, -1]])
        judged = f"{len(detection.times)} of {plural(status.runs, 'run')}"
        yield from _fact("Runs", f"{judged} compare with the newest, from {first} to {last}")
    if status.band:
        text = f"{band_text(status.band, status.provisional)} {unit} (quartiles), floor "
        source = band_source(status.band, status.provisional)
        yield from _fact("Band", f"{text}{figure(status.band.floor)} {unit}; {source}")
        if status.band.intervals:
            yield from _fact("", f"95 % intervals: {intervals_text(status.band)}")
    if series.epoch:
        yield from _fact("Epoch", epoch_text(series.epoch))
    yield from _evidence(detection, unit)
    yield from _earlier(site, detection)
    place = (series.key.system, series.key.file_system or "none")
    outliers = f"{_outliers(site, series.outliers)}; of all {place[1]}: "
    yield from _fact("Outliers", f"{outliers}{_outliers(site, site.outliers[place])}")
    for action in site.actions.get(series.key, ()):
        undone = any(each.of == action.when for each in site.actions[series.key])
        yield from _fact("Action", f"{action_text(action)}{' (undone)' if undone else ''}")


def _alert(site: Site, alert: Alert, series: Series) -> str:
    said = ", ".join(filter(None, [alert.severity.value, *details(alert, site)]))
    if len(alert.members) == 1:
        return said
    return f"{alert.subject}: {said}; iobands explain '{alert.subject}'"


def _change(site: Site, series: Series, detection: Detection) -> Iterator[str]:
    """Yield the size and the time of the open change, or of what `watch` is about."""
    unit = series.key.unit
    if change := detection.open_change:
        word = "Drop" if change.is_drop else "Rise"
        level = f"{figure(change.level)} {unit} since {day_text(change.since, site.now)}, was "
        yield from _fact(word, f"{level}{figure(change.baseline)}: {ratio_text(change.ratio)}")
        began = f"began {between_text(change.since_low, change.since_high, site.now)}"
        yield from _fact("", f"{began}; alert raised {day_text(change.raised, site.now)}")
    elif suspicion := detection.suspicion:
        since = f"since about {day_text(suspicion.since, site.now)}"
        yield from _fact("Suspicion", f"{ratio_text(suspicion.ratio)} the baseline {since}")


def _evidence(detection: Detection, unit: str) -> Iterator[str]:
    chart = detection.chart
    baseline = chart.baseline
    if not (chart.runs and chart.can_judge):
        return
    level = figure(float(np.exp(np.median(baseline.level()))))
    runs = f"median of {plural(len(baseline.runs), 'accepted run')}"
    yield from _fact("Baseline", f"{level} {unit}, {runs if len(baseline.runs) else 'of the band'}")
    yield from _fact(
        "Evidence",
        f"{chart.down[-1]:.1f} for a drop, {chart.up[-1]:.1f} for a rise; watch from "
        f"{chart.watch:g}, alert from {chart.threshold:g} (nats)",
    )
    if baseline.correlation:
        yield from _fact(
            "",
            f"divided by {chart.scale:.2f}, as successive runs correlate by "
            f"{baseline.correlation:.2f}",
        )
    power = f"in about {plural(round(detection.power), 'run')}"
    seen = power if np.isfinite(detection.power) else "not at all"
    yield from _fact("Power", f"sees {percent(POWER_DROP)} {seen}")


def _earlier(site: Site, detection: Detection) -> Iterator[str]:
    for change in detection.changes:
        if change.ended is None:
            continue
        since, ended = (day_text(each, site.now) for each in (change.since, change.ended))
        size = ratio_text(change.ratio)
        if change.end == ADOPTED:
            text = f"the improvement of {since}, {size}, became the baseline on {ended}"
        else:
            word = "drop" if change.is_drop else "rise"
            text = f"{word} from {since} to {ended}, {size}: {change.end}"
        yield from _fact("Earlier", text)


def _outliers(site: Site, found: Outliers) -> str:
    newest = f", the newest on {day_text(found.newest, site.now)}" if found.newest else ""
    return f"{found.outliers} of {plural(found.runs, 'run')}{newest}"


def _rank(detection: Detection) -> str:
    """Return the place of the newest run among the earlier ones that compare."""
    values = detection.values
    if len(values) < 2:  # noqa: PLR2004
        return ""
    lower = int(np.count_nonzero(values[:-1] < values[-1]))
    same = int(np.count_nonzero(values[:-1] == values[-1]))
    ties = f", {same} the same" if same else ""
    return f"; {lower} of {plural(len(values) - 1, 'earlier run')} were lower{ties}"


def _move(site: Site, each: Related) -> str:
    shared = f" (same {listed([FIELDS[name] for name in each.shared])})" if each.shared else ""
    if change := each.change:
        until = f" to {day_text(change.ended, site.now)}" if change.ended else ""
        since = f"{change.direction} since {day_text(change.since, site.now)}{until}"
        return f"{since}, {ratio_text(change.ratio)}{shared}"
    if each.action:
        ratio = f", {each.action.ratio:.2f} ×" if each.action.ratio else ""
        return f"{each.action.direction}{ratio}; {action_text(each.action)}{shared}"
    assert each.leaning is not None
    runs = plural(each.runs, "run")
    return f"no alert, but {ratio_text(each.leaning)} in its next {runs}{shared}"


def _still(others: Sequence[Related]) -> Iterator[str]:
    near = [each for each in others if "file_system" in each.shared]
    far = [each for each in others if "file_system" not in each.shared]
    for group, where in ((near, "the same file system"), (far, "other file systems")):
        if group:
            names = _some([each.series.label for each in group])
            yield f"{plural(len(group), 'series')} of {where}: {names}"


def _advice(site: Site, series: Series, others: Sequence[Related], found: Covariates) -> str:
    """Return where to look next, by what moved and what did not."""
    status = series.status
    alerts = [each for each in site.alerts_on(series.key) if len(each.members) > 1]
    shared = "".join(f"; all of it: iobands explain '{each.subject}'" for each in alerts[:1])
    if status.state is State.NO_DATA:
        return f"the check, whether it runs and how it ended{shared}"
    if status.state is State.CALIBRATING:
        return "again when there are enough runs"
    if onset_of(series) is None:
        return f"what it shares with other series{shared}" if shared else "nowhere"
    if found.changed:
        return f"what changed with it ({', '.join(found.changed)}), before the file system{shared}"
    also = f"; its {listed(list(found.moved))} moved with it" if found.moved else ""
    return f"{_advice_by_related(series, others)}{also}{shared}"


def _advice_by_related(series: Series, others: Sequence[Related]) -> str:
    direction = series.status.change.direction if series.status.change else DOWN
    alike = [each for each in others if each.direction == direction]
    with_it = [each for each in alike if "file_system" in each.shared]
    without = [each for each in others if each not in alike and "file_system" in each.shared]
    # Of many other series some always lean: elsewhere only changes count.
    elsewhere = [each for each in alike if "file_system" not in each.shared and each.change]
    if elsewhere:
        number = plural(len(elsewhere), "series")
        return (
            f"what several file systems share: clients, network, system software ({number} of "
            f"other file systems went {direction} too)"
        )
    if with_it and not without:
        name = series.key.file_system
        return f"the file system {name}: all its series moved, and none of another did"
    if with_it:
        common = set.intersection(*(set(each.shared) for each in with_it))
        telling = sorted(common - {name for each in without for name in each.shared})
        words = listed([FIELDS[name] for name in telling]) if telling else ""
        same = f", which have the same {words}" if words else ""
        return f"the {len(with_it) + 1} series of {series.key.file_system} that moved{same}"
    return f"what this series alone uses: no other went {direction}. Run its check once more"


def _of_alert(site: Site, alert: Alert) -> Iterator[str]:
    certainty = f", {alert.certainty.value}" if alert.certainty else ""
    since = f" since {day_text(alert.since, site.now)}" if alert.since else ""
    yield f"{alert.subject}: {alert.severity.value}{since}{certainty}"
    yield f"at {time_text(site.now)} UTC; all times are UTC"
    if alert.reason:
        yield f"Why: {alert.reason}"
    if alert.acknowledgement:
        yield acknowledgement_text(alert)
    if alert.since_low and alert.since_high and alert.since_low < alert.since_high:
        yield f"It began {between_text(alert.since_low, alert.since_high, site.now)}."
    if not alert.members:
        return
    field, alike = sharing(site, alert)
    rows = [(each.series.label, level_text(each), _ratio(each.ratio)) for each in alert.members]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    yield from ("", f"Series: {len(rows)} of {len(alike)}")
    for row in rows:
        cells = (f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()
    if alert.since is None or alert.severity not in {Severity.DEGRADED, Severity.IMPROVED}:
        return
    onset = Onset(alert.since, alert.since_low or alert.since, alert.since_high or alert.since)
    lead = alert.members[0].series
    others = [each for each in related(site, lead, onset) if each.series.key not in alert.keys]
    near = [each for each in others if each.series in alike]
    moved = [f"{each.series.label}: {_move(site, each)}" for each in near if each.direction]
    changed, still = _common(alert, onset)
    if moved or changed:
        yield from _section("Moved too", [*moved, *changed])
    names = [each.series.label for each in near if not each.direction]
    unmoved = [f"{plural(len(names), 'series')}: {_some(names)}"] if names else []
    yield from _section("Did not move", [*unmoved, *_elsewhere(others, field, alert), *still])
    if changed:
        yield from ("", "Look next: what changed with them, before the rest")
    elif field:
        yield from ("", f"Look next: {_WHERE[field]}")


def _ratio(ratio: Ratio | None) -> str:
    return ratio_text(ratio) if ratio else ""


def _elsewhere(others: Sequence[Related], field: str, alert: Alert) -> Iterator[str]:
    """Yield how many series moved that have another value of `field`."""
    direction = alert.direction or DOWN
    found: defaultdict[str, list[bool]] = defaultdict(list)
    own = value_of(alert.members[0].series, field) if field else None
    for each in others:
        value = value_of(each.series, field) if field else None
        if value is not None and value != own:
            found[value].append(bool(each.change) and each.direction == direction)
    for value, moved in sorted(found.items()):
        number = plural(len(moved), "series")
        yield f"{value}: {sum(moved) or 'none'} of {number} went {direction}"


def _common(alert: Alert, onset: Onset) -> tuple[list[str], list[str]]:
    """Return the covariates that changed with half of the members or more, and the others."""
    found = [covariates(each.series, onset.since) for each in alert.members]
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for each in found:
        for name, text in {**each.changed, **each.moved}.items():
            counts[name][text] += 1
    least = _SHARE * len(found)
    moved = {name: texts for name, texts in counts.items() if texts.total() >= least}
    still = [
        name for name in dict.fromkeys(n for each in found for n in each.still) if name not in moved
    ]
    lines = [
        f"{name}: {texts.most_common(1)[0][0]} (in {texts.total()} of {len(found)} series)"
        for name, texts in moved.items()
    ]
    return lines, [f"as before: {', '.join(still)}"] if still else []


def _newest(series: Series) -> Iterator[str]:
    """Yield every column of the newest sample."""
    if not series.status.runs:
        return
    cells = newest_sample(series).items()
    text = "; ".join(f"{name}: {_cell(value)}" for name, value in cells if value is not None)
    yield from _section("Newest sample", [text])


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _fact(heading: str, text: str) -> Iterator[str]:
    indent = " " * _HEADING
    yield from textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=f"{heading:{_HEADING}}",
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


def _section(heading: str, lines: Iterable[str]) -> Iterator[str]:
    yield from ("", heading)
    for line in list(lines) or ["nothing that is recorded"]:
        yield from textwrap.wrap(
            line, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
        )


def _said(found: dict[str, str]) -> list[str]:
    return [f"{name}: {text}" for name, text in found.items()]


def _as_before(found: dict[str, str]) -> list[str]:
    said = "; ".join(f"{name} {text}" for name, text in found.items())
    return [f"as before: {said}"] if found else []


def _some(names: Sequence[str]) -> str:
    hidden = len(names) - _NAMED
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {hidden} more" if hidden > 0 else shown
