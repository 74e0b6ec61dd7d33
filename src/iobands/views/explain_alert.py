"""Explains an alert in words, for `iobands explain` and for its page in the dashboard."""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import groupby
from typing import Final

from iobands import snapshot
from iobands.snapshot import Alert, AlertEvent, CauseKind, PeerName, Series, SeriesKey, Snapshot
from iobands.views import alert_lines, writing
from iobands.views.explain_series import IMPROVED, Related, Start, relations_of, section
from iobands.views.peers import confirmation
from iobands.views.writing import GAP, day_text, plural, ratio_text, time_text

_EVENTS: Final = {
    snapshot.OPENED: "opened as",
    snapshot.RENAMED: "renamed to",
    snapshot.FELL: "{number} fell again",
    snapshot.MERGED: "merged into {into}",
    snapshot.CLOSED: "closed: {end}",
    snapshot.REOPENED: "reopened",
    snapshot.CAUSED: "cause{of}: {cause}",
    snapshot.TURNED: "{number} now {state}",
}
_WHERE: Final = {
    "file_system": "check the file system: its servers, targets and fullness",
    "partition": "check what all runs of the partition share: clients, network, system software",
    "transport": "check the transport: fabric, drivers, MPI library and environment",
    "pattern": "check what only this pattern uses: its library and hints",
    "medium": "check the devices of this kind",
}
_ANSWERS: Final = {
    CauseKind.TARGET_OUT: "bring {} back into service",
    CauseKind.TARGET: "drain the target, then repair it",
    CauseKind.NODE: "drain the node, then repair it",
    CauseKind.VERSION: "run the previous version once more, and compare",
    CauseKind.TRANSPORT: "check the environment and the fabric: another transport is in use",
    CauseKind.HINTS: "check the hints: different ones are in effect",
    CauseKind.LAYOUT: "check the striping: the layout of the files has changed",
    CauseKind.FULLNESS: "free space, or move files to emptier targets",
    CauseKind.LOAD: "find the jobs that do much I/O",
    CauseKind.METADATA: "check the metadata servers",
    CauseKind.NODES: "check the nodes: the runs use different ones",
    CauseKind.PARTITION: _WHERE["partition"],
}
# The targets in a cause, such as `OST 7`; in older logs, the number of targets precedes `out`.
_TARGETS: Final = re.compile(r"\D+ .+?(?= (of|out) )")
_PEER: Final = ("drain it, then repair it", "confirm it before it is drained")
_NEAR: Final = 12  # runs on each side of the onset in a trend


@dataclass(frozen=True)
class Account:
    """An alert in words.

    `happened` pairs days with the events of the alert and the actions of people. `about` is the
    heading above its series, with their number. `maybe` lists possible causes. `moved` lists the
    series that moved at the same time, `still` those that did not, and `unmoved` are the ones of
    these that are nearest. `commands` pairs the commands to type next with their purposes.
    """

    title: str
    state: str
    facts: Sequence[str]
    happened: Sequence[tuple[str, str]]
    about: str
    maybe: Sequence[str]
    moved: Sequence[str]
    still: Sequence[str]
    unmoved: Sequence[Series]
    advice: str
    commands: Sequence[tuple[str, str]]
    confirm: Sequence[str]


def account_given_of(site: Snapshot, alert: Alert, *, every: bool = False) -> Account:
    """Return the explanation of an alert; `every` names all series, not only a few."""
    field, alike = alert_lines.sharing(site, alert)
    keys = {each.key for each in alike}
    near: list[Related] = []
    still: list[str] = []
    unmoved: list[Series] = []
    if alert.members and alert.since and alert.has_level:
        onset = Start(alert.since, alert.since_low or alert.since, alert.since_high or alert.since)
        related = relations_of(site, alert.members[0].series, onset, keys)
        others = [each for each in related if each.series.key not in alert.keys]
        near = [each for each in others if each.series.key in keys]
        known = [each.series for each in near if not each.direction]
        before, most = _before(site, alert), len(others) if every else writing.FEW_NAMES
        unmoved = [s for s in known if not any(s.key in other.keys for other in before)]
        stayed = {plural(len(unmoved), "series"): unmoved}
        for other in before:
            name = f"Already {other.direction or snapshot.DOWN}, alert {other.number}"
            stayed[name] = [each for each in known if each.key in other.keys]
        still = [f"{n}: {writing.some([s.label for s in a], most)}" for n, a in stayed.items() if a]
        still += _elsewhere(others, field, alert, most)
    maybe = [
        writing.odds_text(each, site.now)
        for each in alert.candidates
        if not alert.cause or each.kind != alert.cause.kind
    ]
    maybe += _maintenances(site, alert)
    is_open = alert.ended is None and not site.is_public
    is_now = is_open and not site.is_past  # nobody can act in the past
    return Account(
        title=alert_lines.title(alert, site),
        state=_state(site, alert),
        facts=[*_facts(site, alert)],
        happened=[*_happened(site, alert)],
        about=_about(site, alert),
        maybe=maybe,
        moved=[f"{each.series.label}: {each.says}" for each in near if each.direction],
        still=still,
        unmoved=unmoved,
        advice=_advice(alert, field, maybe) if is_open else "",
        commands=[*_commands(site, alert)] if is_now and alert.number is not None else [],
        confirm=[*_confirm(site, alert)] if is_now else [],
    )


def _maintenances(site: Snapshot, alert: Alert) -> Iterator[str]:
    """Yield the maintenances between the last run before the change and its onset."""
    low, high = alert.since_low, alert.since_high
    if not (alert.members and low and high and alert.has_level) or site.is_public:
        return
    times, _ = alert.members[0].series.judged
    before = times[times < snapshot.in_utc(low)][-1:]
    since = snapshot.moment(before[0]) if len(before) else low
    has_others = site.only or len(site.maintenance) > 1
    system = f"--system {shlex.quote(alert.system)}" if has_others else ""
    for window in site.maintenance.get(alert.system, ()):
        is_of = any(window.is_of(each.series.key.file_system) for each in alert.members)
        # a daily window lies between almost any two runs
        for span in window.spans(high) if is_of and "DAILY" not in window.repeat else ():
            if span.end >= since:
                day = f"{span.begin:%Y-%m-%dT%H:%M}"
                yield f"{span.why}: {writing.command_text('maintenance report', day, system)}"


def _about(site: Snapshot, alert: Alert) -> str:
    """Return the heading above its series, with their number."""
    if alert.peer:
        return f"Series that fell with it: {len(alert.members)}"
    number = alert_lines.counted_members(alert, site).replace(" series", "") or len(alert.members)
    moved = alert.has_level and not alert.reason
    return f"{'Series that moved' if moved else 'Its series'}: {number}"


def of_alert(site: Snapshot, alert: Alert, *, every: bool = False) -> Iterator[str]:
    """Yield the explanation of an alert, line by line; `every` names all series."""
    story = account_given_of(site, alert, every=every)
    yield f"{story.title}: {story.state}"
    yield f"at {time_text(site.now)} UTC; all times are UTC"
    yield from story.facts
    if story.happened:
        yield from section("What happened", (f"{day}: {text}" for day, text in story.happened))
    if alert.members:
        yield from ("", story.about)
    for each in alert.members:
        ratio = ratio_text(each.ratio) if each.ratio else ""
        level = writing.level_text(each, is_over=alert.ended is not None)
        cells = (_trend(each.series, alert.since), level, ratio)
        yield f"{GAP}{writing.cut(each.series.label)}"
        yield f"{GAP * 2}{GAP.join(filter(None, cells))}"
    for heading, lines in (
        ("Changed at the same time", story.maybe),
        ("Also moved", story.moved),
        ("Did not move", story.still),
    ):
        yield from section(heading, lines) if lines else ()
    if story.advice:
        yield from ("", f"Next step: {story.advice}")
    if story.commands:
        yield from section("What to type next", (f"{what}: {c}" for c, what in story.commands))
    yield from ("", *story.confirm) if story.confirm else ()


def _trend(series: Series, since: datetime | None) -> str:
    """Return a sparkline of the runs around the onset, with a bar at the onset."""
    if since is None or not len(series.history):
        return ""
    start = int(series.history.times.searchsorted(snapshot.in_utc(since)))
    first = max(0, start - _NEAR)
    blocks = writing.sparkline(series.history.values[first : start + _NEAR].tolist())
    return f"{blocks[: start - first]}│{blocks[start - first :]}"


def _state(site: Snapshot, alert: Alert) -> str:
    since = day_text(alert.since, site.now) if alert.since else ""
    if alert.ended:
        begin = f" from {since}" if since else ""
        end = f": {snapshot.how_ended(alert.end, alert.direction)}" if alert.end else ""
        return f"{alert.severity.value}{begin} to {day_text(alert.ended, site.now)}{end}"
    certainty = f", {alert.certainty.value}" if alert.certainty else ""
    return f"{alert.severity.value}{f' since {since}' if since else ''}{certainty}"


def _facts(site: Snapshot, alert: Alert) -> Iterator[str]:
    is_open = alert.ended is None
    if cause := alert_lines.cause_text(alert, site):
        yield f"Cause: {cause}"
    elif alert.peer:
        yield f"Cause: {alert.subject} {'is' if is_open and alert.peer.is_slow else 'was'} slow"
    elif alert.number is not None and alert.has_level and not site.is_public:  # it may be private
        yield "Cause: unknown"
    if alert.reason:
        yield f"Why: {alert.reason}"
    if is_open and alert.has_level:
        missing = Counter(each.series.status.missing for each in alert.members)
        of_all = f" for {{}} of its {len(alert.members)} series" if len(alert.members) > 1 else ""
        yield from (f"No data{of_all.format(n)}: {why}" for why, n in missing.items() if why)
    known = alert.acknowledgement
    if known and not site.is_public:
        has = {"Owner": known.action.owner or known.action.who, "Ticket": known.action.ticket}
        yield from (f"{name}: {value}" for name, value in has.items() if value)
        if not alert.is_quiet:
            yield writing.acknowledgement_text(alert)
    elif alert.certainty and is_open and alert.exit_status and not site.is_public:
        yield "Owner: nobody has acknowledged it"
    if alert.since_low and alert.since_high and alert.since_low < alert.since_high:
        yield f"It began {writing.between_text(alert.since_low, alert.since_high, site.now)}."
    if alert.peer:
        own = {name: f"; before, {writing.times(each)} ×" for name, each in alert.peer.own.items()}
        always = ", from its first sessions on" if is_open else ""
        yield from (
            f"{name}: {ratio_text(each)} the others{own.get(name, always)}"
            for name, each in sorted(alert.peer.ratios.items())
        )


def _happened(site: Snapshot, alert: Alert) -> Iterator[tuple[str, str]]:
    """Yield each eventful day with the events of the alert and the actions of people on that day.

    Successive days on which series only joined are one line. If an alert was renamed several times
    a day, as the runs of a session ended, only its last name is given.
    """
    named: dict[date, AlertEvent] = {}
    texts = [(each.when, writing.action_text(each, dated=False)) for each in _actions(site, alert)]
    joined: list[tuple[datetime, str]] = []
    for each in alert_lines.by_day(alert.events):
        if each.kind in (snapshot.OPENED, snapshot.RENAMED):
            day = each.when.date()
            named[day] = replace(named.get(day, each), subject=each.subject)
        elif each.kind == snapshot.CAUSED and not each.cause and site.is_public:
            continue  # it may be private
        elif each.kind != snapshot.GREW:
            texts.append((each.when, _event(each, alert, site)))
        else:
            # only the name of a target or node, which may be private, has a blank
            joined += (
                (each.when, name)
                for name in each.names
                if " " not in name or not (site.is_public or name == alert.subject)
            )
    texts = [*((each.when, _event(each, alert, site)) for each in named.values()), *texts]
    texts.sort(key=lambda each: each[0])
    days = {when.date(): when for when, _ in sorted((*texts, *joined), reverse=True)}
    eventful = {when.date() for when, _ in texts}
    for is_eventful, group in groupby(sorted(days), key=eventful.__contains__):
        near = [*group]
        for span in [[day] for day in near] if is_eventful else [near]:
            said = dict.fromkeys(text for when, text in texts if when.date() in span)
            new = [name for when, name in sorted(joined) if when.date() in span]
            peers = dict.fromkeys(f"{name} joined" for name in new if " " in name)
            number = sum(" " not in name for name in new)
            series = [f"{plural(number, 'series')} joined"] if number else []
            ends = dict.fromkeys(day_text(days[day], site.now) for day in (span[0], span[-1]))
            yield " to ".join(ends), "; ".join([*said, *series, *peers])


def _event(event: AlertEvent, alert: Alert, site: Snapshot) -> str:
    text = _EVENTS[event.kind].format(
        into=event.into,
        end=snapshot.how_ended(event.end or "", alert.direction),
        cause=event.cause.what if event.cause else "not certain",
        state=event.state.value if event.state else "another kind",
        number=plural(len(event.names), "series"),
        of=" of that" if event.names else "",
    )
    if event.kind not in (snapshot.OPENED, snapshot.RENAMED):
        return text
    if not event.subject or site.is_public:  # an earlier subject may name a node
        return text.partition(" ")[0]
    return f"{text} {writing.cut(event.subject)}"


def _actions(site: Snapshot, alert: Alert) -> Sequence[snapshot.Action]:
    """Return the actions on an alert that were not undone."""
    keys: list[SeriesKey | PeerName] = [*alert.keys, *([alert.peer.name] if alert.peer else [])]
    by_key = site.actions
    every = [each for key in keys for each in by_key.get(key, ()) if each.alert is not None]
    own = {(each.when, each.kind): each for each in every if each.alert == alert.number}
    if alert.acknowledgement:
        known = alert.acknowledgement.action
        own[known.when, known.kind] = known
    return snapshot.in_force(own[place] for place in sorted(own))


def _advice(alert: Alert, field: str, maybe: Sequence[str]) -> str:
    if alert.severity is snapshot.Severity.IMPROVED:
        return IMPROVED
    if alert.peer and alert.peer.is_slow:
        return _PEER[alert.certainty is snapshot.Certainty.POSSIBLE]
    if alert.cause:
        named = _TARGETS.match(alert.cause.what)
        return _ANSWERS[alert.cause.kind].format(named[0] if named else "the targets")
    if alert.members and alert.reason and alert.exit_status:
        return "see whether the checks run, and how they ended"
    return "check what changed at the same time" if maybe else _WHERE.get(field, "")


def _commands(site: Snapshot, alert: Alert) -> Iterator[tuple[str, str]]:
    reason = "--reason TEXT"
    if alert.severity is not snapshot.Severity.IMPROVED:
        if not alert.is_quiet:
            yield alert_lines.command_on(alert, site, "acknowledge", reason), "the cause is known"
        yield alert_lines.command_on(alert, site, "resolve", reason), "it is repaired"
    if alert.has_level:
        yield alert_lines.command_on(alert, site, "rebaseline", reason), "the new level is normal"


def _confirm(site: Snapshot, alert: Alert) -> Iterator[str]:
    place = alert_lines.place_of(alert, site)
    if place and alert.peer:
        nodes = " --nodes" if place.kind == snapshot.NODE else ""
        yield f"All {place.name}: iobands targets{nodes} {writing.view_options(site)}".rstrip()
        yield from confirmation(place, alert.peer.name.name)


def _before(site: Snapshot, alert: Alert) -> list[Alert]:
    """Return the alerts that were open when `alert` began."""
    begin = alert.since or site.now
    alerts = [e for e in (*site.alerts, *site.past) if e.number not in (None, alert.number)]
    return [e for e in alerts if e.since and e.since < begin < (e.ended or site.now)]


def _elsewhere(others: Sequence[Related], field: str, alert: Alert, most: int) -> Iterator[str]:
    """Yield how many series of each other value of `field` moved, and name up to `most`."""
    direction = alert.direction or snapshot.DOWN
    own = alert.shared[1] if alert.shared else None
    found: defaultdict[str, list[Related]] = defaultdict(list)
    for each in others if field else ():
        value = each.series.trait(field)
        if value not in (None, own):
            found[value].append(each)
    for value, every in sorted(found.items()):
        names = [e.series.label for e in every if e.has_change and e.direction == direction]
        said = f"{value}: {len(names) or 'none'} of {plural(len(every), 'series')} went {direction}"
        yield f"{said}: {writing.some(names, most)}" if names else said
