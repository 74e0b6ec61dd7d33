"""The text of `iobands explain` about a series, or about an alert that several series share."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from iobands.snapshot import (
    CAUSED,
    CLOSED,
    DOWN,
    FELL,
    GREW,
    MERGED,
    OPENED,
    RENAMED,
    REOPENED,
    Alert,
    AlertEvent,
    Series,
    Snapshot,
)
from iobands.views.digest import counted_members, subject
from iobands.views.explain_series import of_series
from iobands.views.format import (
    acknowledgement_text,
    between_text,
    day_text,
    level_text,
    plural,
    printable,
    ratio_text,
    time_text,
)
from iobands.views.peers import of_peer
from iobands.views.related import (
    Onset,
    Related,
    aligned,
    covariates,
    move,
    related,
    section,
    sharing,
    some,
)

_EVENTS: Final = {
    OPENED: "opened as {subject}",
    RENAMED: "renamed {subject}",
    FELL: "members fell again",
    MERGED: "merged into {into}",
    CLOSED: "closed: {end}",
    REOPENED: "reopened",
    CAUSED: "cause: {cause}",
}
_SHARE: Final = 0.5  # share of the members: from here on a covariate moved with the alert
_WHERE: Final = {
    "file_system": "check the file system: its servers, targets and fullness",
    "partition": "check what all runs of the partition share: clients, network, system software",
    "transport": "check the transport: fabric, drivers, MPI library and environment",
    "pattern": "check what only this pattern uses: its library and hints",
    "medium": "check the devices of this kind",
}


def chosen(site: Snapshot, wanted: str) -> list[Alert | Series]:
    """Return the names that match `wanted`: the exact name, or else all with each of its words.

    If no name matches, return the series that have the words as values of their fields.
    """
    numbered = [each for each in (*site.alerts, *site.past) if each.number and wanted == each.name]
    if numbered:
        return [*numbered]
    alerts = {
        each.subject: each for each in reversed(site.alerts) if len(each.members) != 1 or each.peer
    }
    series = {name: each for each in site.series for name in (each.name, each.label)}
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
    return subject(found) if isinstance(found, Alert) else found.label


def explanation(site: Snapshot, found: Alert | Series) -> str:
    """Return an explanation as text."""
    lines = of_alert(site, found) if isinstance(found, Alert) else of_series(site, found)
    return "\n".join(printable(line) for line in lines) + "\n"


def of_alert(site: Snapshot, alert: Alert) -> Iterator[str]:
    """Yield the explanation of an alert, line by line."""
    certainty = f", {alert.certainty.value}" if alert.certainty else ""
    since = f" since {day_text(alert.since, site.now)}" if alert.since else ""
    if alert.ended:
        certainty = f" to {day_text(alert.ended, site.now)}: {alert.end}"
        since = since.replace("since", "from")
    yield f"{subject(alert)}: {alert.severity.value}{since}{certainty}"
    yield f"at {time_text(site.now)} UTC; all times are UTC"
    if alert.reason:
        yield f"Why: {alert.reason}"
    if alert.acknowledgement:
        yield acknowledgement_text(alert)
    if alert.since_low and alert.since_high and alert.since_low < alert.since_high:
        yield f"It began {between_text(alert.since_low, alert.since_high, site.now)}."
    if happened := [*_history(site, alert)]:
        yield from section("What happened", happened)
    if alert.peer and alert.ended is None:
        yield from of_peer(site, alert.peer)
    if not alert.members:
        return
    field, alike = sharing(site, alert)
    count = len(alert.members)
    some_of = counted_members(alert, site) or plural(count, "series")
    yield from ("", f"Series that fell with it: {count}" if alert.peer else f"Series: {some_of}")
    yield from aligned(
        [
            (each.series.label, level_text(each), ratio_text(each.ratio) if each.ratio else "")
            for each in alert.members
        ]
    )
    onset = _onset(alert)
    if onset is None:
        return
    lead = alert.members[0].series
    others = [each for each in related(site, lead, onset) if each.series.key not in alert.keys]
    near = [each for each in others if each.series in alike]
    moved = [f"{each.series.label}: {move(site, each)}" for each in near if each.direction]
    changed, still = _common(site, alert, onset)
    if moved or changed:
        yield from section("Also moved", [*moved, *changed])
    names = [each.series.label for each in near if not each.direction]
    unmoved = [f"{plural(len(names), 'series')}: {some(names)}"] if names else []
    yield from section("Did not move", [*unmoved, *_elsewhere(others, field, alert), *still])
    if alert.ended is not None:
        return
    if changed:
        yield from ("", "Next step: check first what changed with these series")
    elif field:
        yield from ("", f"Next step: {_WHERE[field]}")


def _history(site: Snapshot, alert: Alert) -> Iterator[str]:
    """Yield what happened to an alert, a line for each day."""
    days: dict[str, list[AlertEvent]] = {}
    for event in alert.events:
        days.setdefault(day_text(event.when, site.now), []).append(event)
    for day, events in days.items():
        said = {
            _EVENTS[each.kind].format(
                subject=each.subject,
                into=each.into,
                end=each.end,
                cause=each.cause.what if each.cause else "unknown",
            ): None
            for each in events
            if each.kind != GREW
        }
        joined = [name for each in events if each.kind == GREW for name in each.names]
        peers = [name for name in joined if " " in name]  # no name of a series in files has a blank
        number = len(joined) - len(peers)
        more = [f"{plural(number, 'series')} joined"] if number else []
        yield f"{day}: {'; '.join([*said, *more, *(f'{each} joined' for each in peers)])}"


def moved_with(site: Snapshot, alert: Alert) -> list[str]:
    """Return the covariates that changed when the series of an alert did."""
    onset = _onset(alert)
    return _common(site, alert, onset)[0] if onset else []


def _onset(alert: Alert) -> Onset | None:
    """Return when a change began; None for other alerts."""
    if not alert.members or alert.since is None or alert.direction is None:
        return None
    return Onset(alert.since, alert.since_low or alert.since, alert.since_high or alert.since)


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


def _common(site: Snapshot, alert: Alert, onset: Onset) -> tuple[list[str], list[str]]:
    """Return the covariates that changed with half of the members or more, and the others."""
    found = [covariates(site, each.series, onset.since) for each in alert.members]
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
    return lines, [f"unchanged: {', '.join(still)}"] if still else []
