"""What is known of an alert: the same for `iobands explain` and for its page in the dashboard."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Final

from iobands.snapshot import (
    CAUSED,
    CLOSED,
    DOWN,
    FELL,
    GREW,
    MERGED,
    NODE,
    OPENED,
    RENAMED,
    REOPENED,
    TURNED,
    Action,
    Alert,
    AlertEvent,
    CauseKind,
    Certainty,
    PeerName,
    Series,
    SeriesKey,
    Snapshot,
    in_force,
    in_utc,
)
from iobands.views import (
    OnsetTime,
    Related,
    acknowledgement_text,
    action_text,
    between_text,
    cause_text,
    command_text,
    confirmation,
    counted_members,
    day_text,
    level_text,
    move,
    odds_text,
    plural,
    ratio_text,
    relations_of,
    section,
    sharing,
    some,
    sparkline,
    subject,
    time_text,
)

_EVENTS: Final = {
    OPENED: "opened",
    RENAMED: "renamed",
    FELL: "{number} fell again",
    MERGED: "merged into {into}",
    CLOSED: "closed: {end}",
    REOPENED: "reopened",
    CAUSED: "cause{of}: {cause}",
    TURNED: "now {state}",
}
_WHERE: Final = {
    "file_system": "check the file system: its servers, targets and fullness",
    "partition": "check what all runs of the partition share: clients, network, system software",
    "transport": "check the transport: fabric, drivers, MPI library and environment",
    "pattern": "check what only this pattern uses: its library and hints",
    "medium": "check the devices of this kind",
}
_ANSWERS: Final = {
    CauseKind.TARGET_OUT: "bring the targets back into service",
    CauseKind.TARGET: "drain the target, then repair it",
    CauseKind.NODE: "drain the node, then repair it",
    CauseKind.VERSION: "run the version of before once more, and compare",
    CauseKind.TRANSPORT: "check the environment and the fabric: another transport is in use",
    CauseKind.HINTS: "check the hints: others are in effect",
    CauseKind.LAYOUT: "check the striping: the layout of the files is another one",
    CauseKind.FULLNESS: "free space, or move files to emptier targets",
    CauseKind.LOAD: "find the jobs that do much I/O",
    CauseKind.METADATA: "check the metadata servers",
    CauseKind.NODES: "check the nodes: the runs use others",
    CauseKind.PARTITION: _WHERE["partition"],
}
_PEER: Final = ("drain it, then repair it", "confirm it before it is drained")
_NEAR: Final = 12  # runs before and since the onset that a trend shows


@dataclass(frozen=True)
class Account:
    """An alert in words.

    `facts` are sentences. `happened` has a day and what happened to the alert, or what somebody
    did. `count` says how many of the series with its subject are members. `maybe` is what may be
    the cause, without clear odds. `moved` are series that moved at the same time, `still` what did
    not, and `unmoved` the nearest series that did not. `commands` are what to type next, with what
    each is for.
    """

    alert: Alert
    title: str
    state: str
    facts: tuple[str, ...]
    happened: tuple[tuple[str, str], ...]
    count: str
    maybe: tuple[str, ...]
    moved: tuple[str, ...]
    still: tuple[str, ...]
    unmoved: tuple[Series, ...]
    advice: str
    commands: tuple[tuple[str, str], ...]
    confirm: tuple[str, ...]


def account_given_of(site: Snapshot, alert: Alert) -> Account:
    """Return what is known of an alert."""
    onset = _onset(alert)
    field, alike = sharing(site, alert)
    others: list[Related] = []
    if onset:
        every = relations_of(site, alert.members[0].series, onset)
        others = [each for each in every if each.series.key not in alert.keys]
    keys = {each.key for each in alike}
    near = [each for each in others if each.series.key in keys]
    known = alert.cause and alert.cause.kind
    maybe = [each for each in alert.candidates if each.kind != known]
    moved = [f"{each.series.label}: {move(site, each)}" for each in near if each.direction]
    unmoved = tuple(
        each.series
        for each in near
        if not each.direction
        and onset
        and len(each.series.history)
        and each.series.history.first < onset.since
    )
    names = [each.label for each in unmoved]
    still = [f"{plural(len(names), 'series')}: {some(names)}"] if names else []
    advice = ""
    if alert.ended is None and not site.is_public:
        cause = alert.cause and _ANSWERS[alert.cause.kind]
        advice = cause or ("check what changed at the same time" if alert.candidates else "")
        advice = advice or _WHERE.get(field, "")
        if alert.peer and alert.peer.is_slow:
            advice = _PEER[alert.certainty is Certainty.POSSIBLE]
    return Account(
        alert=alert,
        title=subject(alert),
        state=_state(site, alert),
        facts=tuple(_facts(site, alert)),
        happened=tuple(_happened(site, alert)),
        count=counted_members(alert, site).removesuffix(" series") or str(len(alert.members)),
        maybe=tuple(odds_text(each, site.now) for each in maybe),
        moved=tuple(moved),
        still=(*still, *_elsewhere(others, field, alert)) if onset else (),
        unmoved=unmoved,
        advice=advice,
        commands=tuple(_commands(alert)) if alert.ended is None and not site.is_public else (),
        confirm=tuple(_confirm(site, alert)),
    )


def of_alert(site: Snapshot, alert: Alert) -> Iterator[str]:
    """Yield the explanation of an alert, line by line."""
    story = account_given_of(site, alert)
    yield f"{story.title}: {story.state}"
    yield f"at {time_text(site.now)} UTC; all times are UTC"
    yield from story.facts
    if story.happened:
        yield from section("What happened", (f"{day}: {text}" for day, text in story.happened))
    if alert.members:
        yield ""
        heading = "Series that fell with it" if alert.peer else "Series that moved"
        yield f"{heading}: {len(alert.members) if alert.peer else story.count}"
        yield from _members(alert)
    if story.maybe:
        yield from section("Changed at the same time", story.maybe)
    if story.moved:
        yield from section("Also moved", story.moved)
    if story.still:
        yield from section("Did not move", story.still)
    if story.advice:
        yield from ("", f"Next step: {story.advice}")
    if story.commands:
        yield from ("", "What to type next")
        width = max(len(command) for command, _ in story.commands)
        yield from (f"  {command:{width}}  {what}" for command, what in story.commands)
    yield from ("", *story.confirm) if story.confirm else ()


def _members(alert: Alert) -> Iterator[str]:
    for each in alert.members:
        ratio = ratio_text(each.ratio) if each.ratio else ""
        cells = (_trend(each.series, alert.since), level_text(each), ratio)
        yield f"  {each.series.label}"
        yield f"    {'  '.join(filter(None, cells))}"


def _trend(series: Series, since: datetime | None) -> str:
    """Return the runs around an onset as blocks, with a line at the onset."""
    if since is None or not len(series.history):
        return ""
    times, values = series.history.times, series.history.values
    start = int(times.searchsorted(in_utc(since)))
    first = max(0, start - _NEAR)
    blocks = sparkline(values[first : start + _NEAR].tolist())
    return f"{blocks[: start - first]}│{blocks[start - first :]}"


def _state(site: Snapshot, alert: Alert) -> str:
    if alert.ended:
        begin = f" from {day_text(alert.since, site.now)}" if alert.since else ""
        until = f"{begin} to {day_text(alert.ended, site.now)}"
        return f"{alert.severity.value}{until}{f': {alert.end}' if alert.end else ''}"
    since = f" since {day_text(alert.since, site.now)}" if alert.since else ""
    return f"{alert.severity.value}{since}{f', {alert.certainty.value}' if alert.certainty else ''}"


def _facts(site: Snapshot, alert: Alert) -> Iterator[str]:
    if cause := cause_text(alert, site):
        yield f"Cause: {cause}"
    elif alert.peer:
        yield f"Cause: {alert.subject} is slow"
    elif alert.certainty and alert.ended is None:
        yield "Cause: unknown"
    if alert.reason:
        yield f"Why: {alert.reason}"
    known = alert.acknowledgement
    if known and not site.is_public:
        has = {"Owner": known.action.owner or known.action.who, "Ticket": known.action.ticket}
        yield from (f"{name}: {value}" for name, value in has.items() if value)
        if not alert.is_quiet:
            yield acknowledgement_text(alert)
    elif alert.certainty and alert.ended is None and not site.is_public:
        yield "Owner: nobody has acknowledged it"
    if alert.since_low and alert.since_high and alert.since_low < alert.since_high:
        yield f"It began {between_text(alert.since_low, alert.since_high, site.now)}."
    if alert.peer and alert.ended is None:
        own = {name: f"; before, {each:.2f} ×" for name, each in alert.peer.own.items()}
        yield from (
            f"{name}: {ratio_text(each)} the others{own.get(name, ', from its first sessions on')}"
            for name, each in sorted(alert.peer.ratios.items())
        )


def _happened(site: Snapshot, alert: Alert) -> Iterator[tuple[str, str]]:
    """Yield the days on which something happened, with the events and what people did.

    Days on which series joined and nothing else happened are one line. If an
    alert was renamed several times a day, as the runs of a session ended, its last name counts.
    """
    events = [(each.when, "", action_text(each, dated=False)) for each in _actions(site, alert)]
    named: dict[str, AlertEvent] = {}
    for each in alert.events:
        day = day_text(each.when, site.now)
        if each.kind in (OPENED, RENAMED):
            named[day] = replace(named.get(day, each), subject=each.subject)
        elif each.kind != GREW:
            events.append((each.when, "", _event(each, site)))
        for name in each.names if each.kind == GREW else ():
            is_peer = " " in name  # no name of a series in files has a blank
            if not is_peer or not (site.is_public or name == alert.subject):
                events.append((each.when, name, f"{name} joined" if is_peer else ""))
    events = [*((each.when, "", _event(each, site)) for each in named.values()), *events]
    days: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for when, name, text in sorted(events, key=lambda each: (each[0], each[1])):
        days[day_text(when, site.now)].append((name, text))
    for is_growth, group in groupby(days, key=lambda day: all(name for name, _ in days[day])):
        near = [*group]
        for span in [near] if is_growth else [[day] for day in near]:
            said = [each for day in span for each in days[day]]
            number = sum(not text for _, text in said)
            texts = dict.fromkeys(text for name, text in said if text and not name)
            peers = dict.fromkeys(text for name, text in said if text and name)
            joined = [f"{plural(number, 'series')} joined"] if number else []
            shown = span[0] if len(span) == 1 else f"{span[0]} to {span[-1]}"
            yield shown, "; ".join([*texts, *joined, *peers])


def _event(event: AlertEvent, site: Snapshot) -> str:
    cause = event.cause.what if event.cause else "not certain"
    state = event.state.value if event.state else "another kind"
    text = _EVENTS[event.kind].format(
        into=event.into,
        end=event.end,
        cause=cause,
        state=state,
        number=plural(len(event.names), "series"),
        of=" of that" if event.names else "",
    )
    if event.kind not in (OPENED, RENAMED) or not event.subject or site.is_public:
        return text  # a subject of the past may be a node
    return f"{text}{' as' if event.kind == OPENED else ''} {event.subject}"


def _actions(site: Snapshot, alert: Alert) -> list[Action]:
    """Return what people did about an alert, without what was undone."""
    keys: list[SeriesKey | PeerName] = [*alert.keys]
    keys += [alert.peer.name] if alert.peer else []
    every = [each for key in keys for each in site.actions.get(key, ())]
    every += [alert.acknowledgement.action] if alert.acknowledgement else []
    known = alert.acknowledgement and alert.acknowledgement.action.when
    own = {
        (each.when, each.kind): each
        for each in every
        if each.when == known or (each.alert is not None and each.alert == alert.number)
    }
    return list(in_force((own[place] for place in sorted(own)), site.now))


def _commands(alert: Alert) -> Iterator[tuple[str, str]]:
    if alert.number is None:
        return
    reason = "--reason TEXT"
    if not alert.is_quiet:
        yield command_text("acknowledge", alert.name, reason), "the cause is known"
    yield command_text("resolve", alert.name, reason), "it is repaired"
    yield command_text("rebaseline", alert.name, reason), "the new level is normal"


def _confirm(site: Snapshot, alert: Alert) -> Iterator[str]:
    """Yield the commands that confirm a slow target."""
    if alert.peer is None or alert.ended or site.is_public:
        return
    name = alert.peer.name
    for place in site.places:
        if (place.kind, place.system, place.where) == (name.kind, name.system, name.where):
            yield f"All {place.name}: iobands targets{' --nodes' if name.kind == NODE else ''}"
            yield from confirmation(place, name.name)


def _onset(alert: Alert) -> OnsetTime | None:
    """Return when a change began; None for other alerts."""
    if not alert.members or alert.since is None or not alert.has_level:
        return None
    return OnsetTime(alert.since, alert.since_low or alert.since, alert.since_high or alert.since)


def _elsewhere(others: Sequence[Related], field: str, alert: Alert) -> Iterator[str]:
    """Yield how many series with another value of `field` moved."""
    direction = alert.direction or DOWN
    found: defaultdict[str, list[bool]] = defaultdict(list)
    own = alert.members[0].series.trait(field) if field else None
    for each in others:
        value = each.series.trait(field) if field else None
        if value is not None and value != own:
            found[value].append(bool(each.change) and each.direction == direction)
    for value, moved in sorted(found.items()):
        number = plural(len(moved), "series")
        yield f"{value}: {sum(moved) or 'none'} of {number} went {direction}"
