"""Alerts through time: happenings are folded in as they were raised, so an alert keeps its number.

An alert opens once, grows, is renamed when half of its members are new, and closes; events in the
log of alerts never change. This module works on names and times, not on series or evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from functools import cached_property
from typing import Any, Final

from iobands.snapshot import (
    CLOSED,
    FELL,
    GREW,
    LONG_AGO,
    MERGED,
    OPENED,
    RECOVERED,
    RENAMED,
    REOPENED,
    TURNED,
    AlertEvent,
    PeerName,
    Turn,
)

#: Changes that began within this time of each other may have one cause.
NEAR: Final = timedelta(days=3)
# An onset is an estimate: it may lie up to this long before another series' last run without it.
_ABOUT: Final = timedelta(days=1)

# The events with which an alert takes up a happening.
_TOOK: Final = (OPENED, GREW, FELL)
_FOR_EVER: Final = datetime.max.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class Happening:
    """Something lasting that was found: a change, a drop of a group, an incident, a slow peer.

    It began between `low` and `high`, most likely at `since`, and was `raised` after `delay` runs.
    `over` is when its end became known, None while it lasts; `ended` is when it was last seen, if
    earlier, and `end` says how it ended. `names` are its series, or its peer. `turns` are its kinds
    through time, if it is not just a change of the level. If it is not `certain`, it may join an
    alert but opens none. `after` is the time of the last run without it, None if unknown.
    """

    source: object
    direction: str
    names: tuple[str, ...]
    since: datetime
    low: datetime
    high: datetime
    raised: datetime
    over: datetime | None
    ended: datetime | None = None
    end: str = RECOVERED
    delay: int | None = None
    certain: bool = True
    turns: tuple[Turn[datetime], ...] = ()
    after: datetime | None = None

    @property
    def earliest(self) -> datetime:
        """The earliest time for `is_near`: a weekly series may have changed between its runs."""
        return min(self.low, self.after + NEAR - _ABOUT) if self.after else self.low


@dataclass(frozen=True)
class Flaky:
    """A flaky check: the number of last sessions that `failed`, and `reason`, the same in words.

    The last sessions are those before now or, once it is not flaky any more, before that was known.
    """

    failed: int
    reason: str


@dataclass
class Story:
    """An alert through time; the first `logged` of its `events` are in the log.

    `called` returns the name of an alert about several members. `joined` gives the time at which
    each member joined, and `found` are the happenings, which keep the alert open `until` the last
    one is over. `named` is the number of members when it got its name, and `into` the alert that it
    was merged into. `earliest` is the smallest `earliest` of its happenings.
    """

    number: int
    direction: str
    subject: str
    low: datetime
    high: datetime
    opened: datetime
    called: Callable[[Sequence[str]], str] = field(repr=False, compare=False)
    joined: dict[str, datetime] = field(default_factory=dict)
    closed: datetime | None = None
    into: int | None = None
    found: list[Happening] = field(default_factory=list)
    events: list[AlertEvent] = field(default_factory=list)
    logged: int = 0
    named: int = 1
    until: datetime | None = None
    earliest: datetime = _FOR_EVER

    @property
    def certain(self) -> list[Happening]:
        """The happenings that keep it open; a series that only fell with others does not."""
        return [each for each in self.found if each.certain]

    @property
    def names(self) -> list[str]:
        """The names of all members that ever joined."""
        return [*self.joined]

    @property
    def known(self) -> list[AlertEvent]:
        """Its events in the log."""
        return self.events[: self.logged]

    @cached_property
    def logged_names(self) -> set[str]:
        """The members in the log."""
        return {name for each in self.known for name in each.names}

    def is_near(self, found: Happening, until: datetime = LONG_AGO) -> bool:
        """Return whether both may have begun together, or `found` began no later than `until`."""
        earliest = min(self.low, self.earliest)
        return earliest <= found.high + NEAR and found.earliest <= max(self.high + NEAR, until)

    def is_open(self, found: Happening) -> bool:
        """Return whether it was open when `found`, a change in its direction, was raised."""
        end = self.until if self.closed is None else self.closed
        return self.direction == found.direction and (end is None or end > found.raised)

    def is_at(self, found: Happening) -> bool:
        """Return whether it was open when `found` was raised, so that this may belong to it."""
        may_join = found.certain or (self.is_near(found) and self.opened <= found.raised)
        return self.is_open(found) and may_join

    def names_at(self, when: datetime) -> set[str]:
        """Return the members with a happening that lasts at `when`."""
        lasting = (each.names for each in self.found if each.over is None or each.over > when)
        return {name for names in lasting for name in names}

    def shares(self, found: Happening) -> int:
        """Return how many names of `found` were members, and had not left, when it was raised."""
        if self.joined.keys().isdisjoint(found.names):
            return 0
        return len(self.names_at(found.raised).intersection(found.names))

    def shared_by_then(self, found: Happening) -> int:
        """Return how many names of `found` had joined, left or not, when it was raised."""
        return sum(self.joined.get(name, _FOR_EVER) <= found.raised for name in found.names)

    def record(self, when: datetime, kind: str, **said: Any) -> None:  # noqa: ANN401
        """Add an event."""
        self.events.append(AlertEvent(when, self.number, kind, **said))

    def keep(self, *found: Happening) -> None:
        """Add happenings; the first one opened the alert, or is what is found now in its place.

        It completes the onset of the alert, as the log has only the earliest time of it.
        """
        for each in found[:1] if not self.found else ():
            self.high = max(self.high, each.high)
            self.earliest = min(self.earliest, each.earliest)
        self.found += found
        ends = [each.over or _FOR_EVER for each in found if each.certain]
        self.until = max(ends if self.until is None else [self.until, *ends], default=None)

    def take(self, found: Happening) -> None:
        """Let the names of a happening join; rename the alert if it doubled or a peer joined."""
        new = [name for name in found.names if name not in self.joined]
        if not new:
            return
        when = max([found.raised, *(each.when for each in self.known)])
        self.joined |= dict.fromkeys(new, when)
        self.record(when, GREW, names=tuple(new))
        is_other = len(self.joined) >= 2 * self.named or isinstance(found.source, PeerName)
        if is_other and (subject := self.called(self.names)) != self.subject:
            self.subject, self.named = subject, len(self.joined)
            self.record(when, RENAMED, subject=subject)

    def join(self, found: Happening) -> None:
        """Add a happening with its names; members among them may have fallen again."""
        # a member whose joining is already logged at that moment did not fall again
        again = tuple(n for n in found.names if self.joined.get(n, _FOR_EVER) < found.raised)
        # nor is a fall reported twice, if an action dates it anew or each series finds a shared one
        falls = [{*e.names} for e in self.events if e.kind == FELL and found.low <= e.when]
        known = any(map({*again}.issubset, falls))
        if self.found and again and not known and not self.is_near(found) and found.certain:
            self._fall(found.raised, again)
        self.keep(found)
        self.take(found)

    def _fall(self, when: datetime, names: tuple[str, ...]) -> None:
        """Record a further fall; what falls at one time is one event, unchanged if it is logged."""
        for place, each in enumerate(self.events):
            if each.kind == FELL and each.when == when:
                if place >= self.logged:
                    every = tuple(dict.fromkeys([*each.names, *names]))
                    self.events[place] = replace(each, names=every)
                return
        self.record(when, FELL, names=names)


#: When an alert ended, and how.
Ending = tuple[datetime, str]


def fold(
    happenings: Iterable[Happening],
    logged: Sequence[AlertEvent],
    traits: Mapping[str, Mapping[str, str]],
    subject_of: Callable[[Sequence[str]], str],
    ended: Callable[[Story, Ending | None], Ending | None],
    now: datetime,
) -> list[Story]:
    """Return all alerts of a system in the order of their numbers.

    `traits` gives, for each name still judged, the values by field that it may share with others;
    `subject_of` returns the name of an alert about several members. `ended` takes an alert and the
    ending of its last happening, None if nothing is found any more, and returns the ending of the
    alert, None if it is open. A closed alert that lasts, as after an undo, reopens at `now`.
    """
    stories = stories_in(logged, subject_of)
    logged_until = max((each.when for each in logged), default=LONG_AGO)
    next_number = 1 + max((each.number for each in stories), default=0)
    merged = [story for story in stories if story.into is not None]
    later = sorted(stories, key=lambda each: each.opened, reverse=True)
    begun: list[Story] = []
    for each in sorted(happenings, key=lambda each: (each.raised, not each.certain, each.names)):
        merged = _merge_again(merged, stories, each.raised)
        while later and later[-1].opened <= each.raised:
            begun.append(later.pop())
        begun = [s for s in begun if s.closed is None or s.closed >= each.raised]
        # an uncertain happening joins no alert that opened later
        current = [*begun, *later] if each.certain else begun
        here = [story for story in current if story.is_at(each)]
        fresh = _fresh(each, current)
        known = _known(fresh, current) if each.raised <= logged_until else None
        if known:
            began = known.opened == each.raised and known.events[0].names == fresh.names
            if known.into is not None and known.closed == each.raised and not began:
                known = next(story for story in stories if story.number == known.into)
            known.join(fresh)
            may_reopen = known.closed is not None and known.into is None
            if may_reopen and fresh.over is None and fresh.certain:
                known.closed = None
                known.record(now, REOPENED)
            continue
        if not fresh.names:
            continue
        mine = [story for story in here if story.shares(fresh) or _may_share(story, fresh, traits)]
        if mine:
            _merged(mine, fresh).join(fresh)
        elif fresh.certain:
            opened = _opened(next_number, fresh, subject_of)
            stories.append(opened)
            begun.append(opened)
            next_number += 1
    _merge_again(merged, stories, now)
    for story in stories:
        _end(story, ended)
        _tell_turns(story)
        story.events[story.logged :] = sorted(
            story.events[story.logged :], key=lambda each: (each.when, each.kind == CLOSED)
        )
    return stories


def stories_in(
    events: Sequence[AlertEvent], called: Callable[[Sequence[str]], str] = ", ".join
) -> list[Story]:
    """Return the alerts that `events` describe, in the order of numbers; all count as logged."""
    found: dict[int, Story] = {}
    for each in events:
        if each.kind == OPENED and each.number not in found and each.since:
            found[each.number] = Story(
                each.number,
                each.direction or "",
                each.subject or "",
                low=each.since,
                high=each.since,
                opened=each.when,
                called=called,
            )
        story = found.get(each.number)
        if story is None:
            continue
        for name in each.names:
            story.joined.setdefault(name, each.when)
        if each.subject:
            story.subject, story.named = each.subject, len(story.joined)
        if each.kind in (CLOSED, MERGED, REOPENED):
            story.closed = None if each.kind == REOPENED else each.when
        if each.kind == MERGED and each.into in found and each.into < each.number:
            story.into = each.into
        story.events.append(each)
        story.logged += 1
    return [found[number] for number in sorted(found)]


def _known(found: Happening, stories: Sequence[Story]) -> Story | None:
    """Return the alert to which the log assigns a happening, or None."""
    took = (*_TOOK, MERGED)
    mine = []
    for story in stories:
        if story.direction != found.direction or (found.over and found.over < story.low):
            continue
        if 2 * len(story.logged_names.intersection(found.names)) <= len(found.names):
            continue
        # it closed at the moment `found` was raised, and took something or was merged then
        then = [each for each in story.events if each.when == found.raised]
        is_known = story.closed == found.raised and any(each.kind in took for each in then)
        fell = (each.names for each in then if each.kind == FELL and found.certain)
        is_known |= any(set(names) == set(found.names) for names in fell)
        if is_known or story.is_at(found):
            mine.append(story)
    fits = (_logged_of, Story.shares, Story.shared_by_then, Story.is_near)
    return min(
        mine,
        key=lambda story: (*(-each(story, found) for each in fits), story.number),
        default=None,
    )


def _logged_of(story: Story, found: Happening) -> int:
    """Return how many names of `found` are in an event logged when it was raised, with no others.

    One more if it opened the alert, as it did if it is certain and has the same names.
    """
    then = [e for e in story.known if e.when == found.raised and e.kind in _TOOK]
    if found.certain and any(e.kind == OPENED and e.names == found.names for e in then):
        return len(found.names) + 1
    alike = (e.names for e in then if found.certain or e.kind != OPENED)
    return max((len(names) for names in alike if set(names).issubset(found.names)), default=0)


def _fresh(found: Happening, stories: Sequence[Story]) -> Happening:
    """Return a happening without the names that fell long before, in other open alerts.

    It keeps those of the alert that shares most if no alert that began with it shares any, and no
    more than half of its names are left. So a name is in one open alert only.
    """

    def is_there(story: Story) -> bool:
        merges = story.into is not None and story.closed == found.raised
        return (story.is_open(found) or merges) and story.shares(found) > 0

    mine = [story for story in stories if is_there(story)]
    near = {name for e in mine if e.is_near(found) for name in e.names_at(found.raised)}
    far = sorted(
        (each for each in mine if not each.is_near(found)),
        key=lambda each: (-each.shares(found), each.number),
    )
    before = {name for each in far for name in each.names_at(found.raised)} - near
    if not before:
        return found
    left = {name for name in found.names if name not in before}
    if far and found.certain and not near and 2 * len(left) <= len(found.names):
        left |= far[0].names_at(found.raised)
    return replace(found, names=tuple(name for name in found.names if name in left))


def _may_share(story: Story, found: Happening, traits: Mapping[str, Mapping[str, str]]) -> bool:
    """Return whether both began together and share a trait; a peer joins no alert of another peer.

    When a file system slowly gets slower, each of its series is found to have fallen at another
    time: what began before the alert was raised may be part of it.
    """
    is_peer = isinstance(found.source, PeerName)
    if is_peer and any(isinstance(each.source, PeerName) for each in story.found):
        return found.names[0] in story.joined  # it is slow again
    mine = [traits[name].items() for name in story.names if name in traits]
    every = [*mine, *(traits.get(name, {}).items() for name in found.names)]
    common = dict(set(every[0]).intersection(*every[1:])) if mine else {}
    is_slow = "file_system" in common and not is_peer
    # nothing of the logged alert is found any more: this may be what is found in its place
    is_anew = not story.found and not story.logged_names.isdisjoint(found.names)
    near = bool(common) and story.is_near(found, story.opened if is_slow else LONG_AGO)
    return near or (is_anew and found.low <= story.opened)


def _merged(stories: Sequence[Story], found: Happening) -> Story:
    """Return the alert that a happening joins, after merging the alerts that it connects.

    Alerts that share a name with it and began when it did are merged into the oldest. If fewer than
    two do, it joins the one that shares most names.
    """
    together = [each for each in stories if each.shares(found) and each.is_near(found)]
    if len(together) < 2:  # noqa: PLR2004
        return min(stories, key=lambda story: (-story.shares(found), story.number))
    oldest, *others = sorted(together, key=lambda each: each.number)
    for each in others:
        oldest.keep(*each.found)
        oldest.take(replace(found, names=tuple(each.joined)))
        each.closed, each.into = found.raised, oldest.number
        each.record(found.raised, MERGED, into=oldest.number)
    return oldest


def _merge_again(merged: Sequence[Story], stories: Sequence[Story], until: datetime) -> list[Story]:
    """Repeat the logged mergers before `until`, and return the alerts that merged later."""
    for story in merged:
        if story.closed and story.closed < until:
            oldest = next(each for each in stories if each.number == story.into)
            oldest.keep(*story.found)
            for found in story.found:
                oldest.take(found)
    return [each for each in merged if each.closed and each.closed >= until]


def _opened(number: int, found: Happening, called: Callable[[Sequence[str]], str]) -> Story:
    state = next((each.kind for each in found.turns if each.when <= found.raised), None)
    said = (called(found.names), found.direction, found.low, found.names)
    (story,) = stories_in([AlertEvent(found.raised, number, OPENED, *said, state=state)], called)
    story.logged = 0
    story.keep(found)
    return story


def _tell_turns(story: Story) -> None:
    """Record what members turned into between joining the alert and its end."""
    known = {(each.when, each.names) for each in story.events if each.kind == TURNED}
    for found in story.found:
        joined = max(story.joined[name] for name in found.names)
        for turn in found.turns:
            is_in = joined < turn.when <= (story.closed or _FOR_EVER)
            if is_in and (turn.when, found.names) not in known:
                said = {"names": found.names, "state": turn.kind, "since": turn.since}
                story.record(turn.when, TURNED, **said)


def _end(story: Story, ended: Callable[[Story, Ending | None], Ending | None]) -> None:
    """Close an alert if all its certain happenings are over."""
    if story.closed is not None or any(each.over is None for each in story.certain):
        return
    spans = [(each.over, each.end) for each in story.certain if each.over is not None]
    if ending := ended(story, max(spans, default=None)):
        when, how = ending
        story.closed = max([when, *(each.when for each in story.events)])
        story.record(story.closed, CLOSED, end=how)
