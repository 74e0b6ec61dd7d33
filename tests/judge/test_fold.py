"""Alerts through time: examples by hand, and that nothing once reported is ever taken back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iobands.judge.causes import tell_causes
from iobands.judge.fold import Happening, Story, fold
from iobands.model import PeerName
from iobands.snapshot import CAUSED, AlertEvent, Cause, CauseKind, State, Turn

DAY = timedelta(days=1)
FIRST = datetime(2026, 1, 1, tzinfo=timezone.utc)
#: A series' file system is the first letter of its name; all are in one partition.
NAMES = ("a1", "a2", "a3", "b1", "b2")
TRAITS = {name: {"file_system": name[0], "partition": "p"} for name in NAMES}
ALONE = {name: {"file_system": name} for name in NAMES}


def found(
    names: str, low: int, raised: int, over: int | None = None, *, certain: bool = True, **more
) -> Happening:
    """Return a happening that began on day `low`, was raised on `raised` and ended on `over`."""
    days = [FIRST + low * DAY] * 3 + [FIRST + raised * DAY]
    ended = None if over is None else FIRST + over * DAY
    given = {"source": None, "direction": "down", "names": tuple(names.split("+")), **more}
    return Happening(
        **given,
        **dict(zip(("since", "low", "high", "raised"), days, strict=True)),
        ended=ended,
        over=ended,
        certain=certain,
    )


def subject(names: Sequence[str]) -> str:
    """Return the name of an alert on these series: the series, their file system or partition."""
    letters = {name[0] for name in names}
    return names[0] if len(names) == 1 else letters.pop() if len(letters) == 1 else "p"


def folded(
    happenings: Sequence[Happening],
    logged: Sequence[AlertEvent] = (),
    traits: dict[str, dict[str, str]] = TRAITS,
    now: int = 1000,
    named: str = "",
) -> list[Story]:
    def called(names: Sequence[str]) -> str:
        return named if named in names else subject(names)

    when = FIRST + now * DAY
    return fold(
        happenings, logged, traits, called, lambda _, over: over or (when, "withdrawn"), when
    )


def causes(story: Story, when: datetime, fall: AlertEvent | None) -> tuple[Cause, ...] | None:
    """Return made-up causes that depend on the number of an alert's members and on its age."""
    if fall:
        return None
    number = sum(joined <= when for joined in story.joined.values())
    kind = [*CauseKind][(number + (when - story.opened) // (5 * DAY)) % 5]
    return (Cause(kind, kind.value, when, 100 if number % 4 else 5),) if number != 2 else None


def told_with_causes(
    happenings: Sequence[Happening], logged: Sequence[AlertEvent], now: int
) -> list[Story]:
    stories = folded(happenings, logged, now=now)
    for story in stories:
        tell_causes(story, FIRST + now * DAY, lambda when: when, causes)
    return stories


def test_what_began_in_a_file_system_before_an_alert_was_raised_may_be_part_of_it() -> None:
    # a slow slide: the onset in each series is uncertain by weeks
    slide = [found("a1", 10, 24), found("a2", 22, 30), found("a3", 25, 33)]
    first, second = folded(slide)
    assert (first.names, second.names) == (["a1", "a2"], ["a3"])
    assert "fell" not in [each.kind for each in first.events]  # no member fell again
    # series of different file systems join only if they begin at the same time
    assert len(folded([found("a1", 10, 24), found("b1", 22, 30)])) == 2
    # and so does a target
    target = PeerName("target", "here", "a", "OST 7")
    traits = TRAITS | {"OST 7": {"file_system": "a"}}
    slow = found("OST 7", 22, 30, source=target)
    assert len(folded([found("a1", 10, 24), slow], traits=traits)) == 2


def test_a_cause_is_reported_once_and_then_only_if_it_is_another() -> None:
    drops = [found("a1+a2+a3", 10, 13), found("b1", 11, 15)]
    (story,) = told_with_causes(drops, (), 1000)
    assert [each for each in events([story]) if each[2] == "caused"] == [
        (13, 1, "caused"),
        (15, 1, "caused"),  # with four members, it is no longer certain
    ]
    assert [each.cause and each.cause.odds for each in story.events if each.kind == "caused"] == [
        100,
        None,
    ]
    again = told_with_causes(drops, story.events, 1000)[0]
    assert again.events == story.events


def test_a_logged_cause_in_the_words_of_an_older_release_is_not_told_again() -> None:
    drops = [found("a1+a2+a3", 10, 13)]
    (story,) = folded(drops)
    for older, newer in (("OST 7 of 12", "OST 7"), ("OST 3, 7 of 12", "OSTs 3, 7")):
        was = Cause(CauseKind.TARGET_OUT, f"{older} out of service", FIRST, 98)
        now = replace(was, what=f"{newer} out of service (1 of 12)")
        logged = [*story.events, AlertEvent(FIRST + 14 * DAY, 1, CAUSED, cause=was)]
        other = replace(now, what="OST 8 out of service (1 of 12)")
        for cause, number in ((now, 1), (other, 2)):
            (again,) = folded(drops, logged)
            tell_causes(again, FIRST + 40 * DAY, lambda when: when, lambda *_, c=cause: (c,))
            assert [each.kind for each in again.events].count(CAUSED) == number


def events(stories: Sequence[Story]) -> list[tuple[int, int, str]]:
    """Return day, number and kind of all events."""
    every = sorted((e for s in stories for e in s.events), key=lambda e: (e.when, e.number))
    return [((each.when - FIRST) // DAY, each.number, each.kind) for each in every]


@pytest.mark.parametrize(("after", "number"), [(10, 1), (11, 1), (12, 1), (13, 2)])
def test_a_weekly_series_joins_if_it_may_have_fallen_between_its_runs(
    after: int, number: int
) -> None:
    # the daily ones fell between the days 10 and 11, to a day, and the weekly
    # one after a run on the day `after`
    daily = replace(found("a1", 10, 13), high=FIRST + 11 * DAY)
    weekly = found("a2", after + 7, 30, after=FIRST + after * DAY)
    stories = folded([daily, weekly])
    assert len(stories) == number
    evening = folded([daily])
    logged = [event for story in evening for event in story.events]
    assert events(folded([daily, weekly], logged)) == events(stories)


def test_what_the_log_says_of_an_alert_stands_though_another_part_is_found_no_more() -> None:
    # one of two falls again before the drop of both is over
    fell = found("a1", 16, 17)
    (story,) = folded([found("a1+a2", 10, 12, 18), fell], now=30)
    assert events([story]) == [(12, 1, "opened"), (17, 1, "fell")]
    # the other is rebaselined, and the rest of the drop was over by then
    assert events(folded([found("a1", 10, 12, 15), fell], story.events)) == events([story])


def test_what_is_dated_anew_has_not_fallen_again() -> None:
    drop, later = found("a1+a2", 10, 12), found("a3", 11, 20)
    (story,) = folded([drop, later], now=21)
    # a maintenance is backdated into its first days: the rest of it seems to begin later
    left = [found("a1+a2", 15, 17), found("a1", 16, 18), later]
    # the first run of a drop in one series may be minutes before the last one without it in another
    minutes = {"after": FIRST + 10.01 * DAY}
    dated = [found("a1+a2", 10, 12), found("a1", 14, 18, **minutes), later]
    assert events(folded(dated, story.events)) == events([story])
    before = [(12, 1, "opened"), (20, 1, "grew")]
    (again,) = folded(left, story.events)
    assert events([again]) == events([story]) == before
    # a further fall is still reported as one
    (further,) = folded([*left, found("a1", 30, 34)], story.events)
    assert events([further]) == [*before, (34, 1, "fell")]


def test_a_series_that_falls_with_others_joins_their_alert() -> None:
    parts = [found("a1", 10, 13), found("a2", 12, 20), found("b1", 11, 30), found("b2", 11, 31)]
    (story,) = folded(parts)
    assert (story.number, story.subject) == (1, "p")
    assert events([story]) == [
        (13, 1, "opened"),
        (20, 1, "grew"),
        (20, 1, "renamed"),  # from a1 to a
        (30, 1, "grew"),  # most are of a
        (31, 1, "grew"),
        (31, 1, "renamed"),  # to the partition
    ]


def test_what_began_long_after_or_shares_nothing_is_another_alert() -> None:
    later = folded([found("a1", 10, 13), found("a2", 17, 20)])
    assert [each.subject for each in later] == ["a1", "a2"]
    apart = folded([found("a1", 10, 13), found("a2", 10, 13)], traits=ALONE)
    assert [each.subject for each in apart] == ["a1", "a2"]
    up = folded([found("a1", 10, 13), found("a2", 10, 13, direction="up")])
    assert len(up) == 2


def test_an_alert_closes_with_its_last_part_and_a_new_fall_has_a_new_number() -> None:
    stories = folded([found("a1", 10, 13, 40), found("a2", 11, 14, 30), found("a1", 45, 50)])
    assert events(stories) == [
        (13, 1, "opened"),
        (14, 1, "grew"),
        (14, 1, "renamed"),
        (40, 1, "closed"),
        (50, 2, "opened"),
    ]


def test_a_member_that_falls_again_is_an_event_of_its_alert() -> None:
    (story,) = folded([found("a1+a2", 10, 13), found("a1", 60, 64)])
    assert events([story]) == [(13, 1, "opened"), (64, 1, "fell")]


def test_a_fall_that_an_action_dates_anew_is_not_told_again() -> None:
    drop = found("a1+a2", 10, 13)
    (story,) = folded([drop, found("a1+a2", 60, 64)])
    for raised in (62, 63, 65, 66):  # the day depends on how many other series are judged
        (again,) = folded([drop, found("a1+a2", 60, raised)], story.events)
        assert events([again]) == events([story])
    # the group's fall is also found in one of its members alone, and later that falls once more
    own = [drop, found("a1+a2", 60, 64), found("a1", 61, 66), found("a1", 70, 74)]
    assert [day for day, _, kind in events(folded(own)) if kind == "fell"] == [64, 74]
    # the falls of two series at the same time are one event
    both = folded([drop, found("a1", 60, 64), found("a2", 60, 64)])
    assert [each.names for each in both[0].events if each.kind == "fell"] == [("a1", "a2")]


def test_a_drop_that_is_raised_later_by_another_judgement_keeps_its_number() -> None:
    # a series that has nothing in common with others, such as a case
    (story,) = folded([found("a1", 10, 13)], traits={})
    (again,) = folded([found("a1", 10, 15)], story.events, traits={})
    assert events([again]) == [(13, 1, "opened")]
    assert [each.number for each in folded([found("a1", 20, 25)], story.events, traits={})] == [
        1,
        2,
    ]


def test_an_incident_that_becomes_a_change_which_began_long_before_keeps_its_number() -> None:
    (story,) = folded([found("a1", 30, 32)])
    # its low runs now belong to the change, and the incident is no longer found
    (again,) = folded([found("a1", 15, 35)], story.events)
    assert events([again]) == [(32, 1, "opened")]
    # while the incident is still found, there are two alerts
    both = folded([found("a1+a2", 30, 32), found("a3", 15, 35)], story.events)
    assert [each.number for each in both] == [1, 2]


def test_what_is_left_of_a_drop_when_a_member_is_retired_keeps_its_number() -> None:
    (story,) = folded([found("a1+a2", 10, 12)])
    left = {name: TRAITS[name] for name in TRAITS if name != "a2"}
    # without the group, the other one was found a day later, after the newest event
    assert [each.number for each in folded([found("a1", 10, 13)], story.events, left)] == [1]
    # nothing joins an alert whose members are all retired
    gone = {name: TRAITS[name] for name in ("a3", "b1")}
    assert len(folded([found("a3", 10, 13)], story.events, gone)) == 2


def test_some_evidence_joins_and_opens_and_holds_nothing() -> None:
    some = [found("a2", 11, 15, 90, certain=False), found("b1", 200, 210, certain=False)]
    stories = folded([found("a1", 10, 13, 20), *some])
    assert events(stories) == [
        (13, 1, "opened"),
        (15, 1, "grew"),
        (15, 1, "renamed"),
        (20, 1, "closed"),
    ]


def test_a_group_that_has_parts_of_two_alerts_merges_them() -> None:
    stories = folded([found("a1", 10, 13), found("b1", 10, 14), found("a1+b1", 11, 16)], traits={})
    assert [(each.number, each.closed is None) for each in stories] == [(1, True), (2, False)]
    assert stories[0].names == ["a1", "b1"]
    assert stories[1].events[-1].into == 1


def test_most_of_a_group_that_falls_later_is_an_alert_without_those_that_fell_before() -> None:
    stories = folded([found("a1", 10, 13), found("a1+a2+a3", 60, 62)])
    assert [each.names for each in stories] == [["a1"], ["a2", "a3"]]


def test_a_group_that_falls_later_leaves_each_of_its_members_in_one_alert() -> None:
    every = [found("a1", 0, 2), found("b1", 10, 12), found("a1+b1", 30, 31)]
    first, second = folded(every)
    assert (first.names, second.names) == (["a1"], ["b1"])
    assert events([first, second]) == [(2, 1, "opened"), (12, 2, "opened"), (31, 1, "fell")]
    # what some evidence shows of a member joins no other alert either
    first, second = folded([*every[:2], found("a1", 11, 13, certain=False)])
    assert (first.names, second.names) == (["a1"], ["b1"])


def test_two_slow_targets_are_two_alerts() -> None:
    slow = [
        found(name, 10, 12, source=PeerName("target", "s", "a", name))
        for name in ("OST 1", "OST 2")
    ]
    traits = {**TRAITS, "OST 1": {"file_system": "a"}, "OST 2": {"file_system": "a"}}
    stories = folded([*slow, found("a1", 10, 14)], traits=traits)
    assert [each.names for each in stories] == [["OST 1", "a1"], ["OST 2"]]


def test_a_target_that_is_slow_again_is_in_its_open_alert() -> None:
    target = PeerName("target", "s", "a", "OST 1")
    slow = [found("OST 1", *days, source=target) for days in ((10, 12, 20), (30, 33))]
    traits = {**TRAITS, "OST 1": {"file_system": "a"}}
    # a series that fell with it stays low
    every = [*slow, found("a1", 10, 14)]
    (story,) = folded(every, traits=traits, named="OST 1")
    assert events([story]) == [
        (12, 1, "opened"),
        (14, 1, "grew"),
        (33, 1, "fell"),
    ]
    assert events(folded(every, story.events, traits, named="OST 1")) == events([story])


def test_a_slow_target_that_joins_gives_the_alert_its_name() -> None:
    slow = found("OST 1", 10, 14, source=PeerName("target", "s", "a", "1"))
    traits = {**TRAITS, "OST 1": {"file_system": "a"}}
    (story,) = folded([found("a1+a2+a3", 10, 12), slow], traits=traits, named="OST 1")
    assert (story.subject, events([story])[-1]) == ("OST 1", (14, 1, "renamed"))


def test_what_another_judgement_does_not_find_is_withdrawn_and_comes_back_by_its_number() -> None:
    drop = found("a1", 10, 13)
    log = folded([drop])[0].events
    (gone,) = folded([], log, now=20)
    assert events([gone])[1:] == [(20, 1, "closed")]
    (back,) = folded([drop], gone.events, now=21)
    assert events([back])[2:] == [(21, 1, "reopened")]
    assert back.closed is None


def test_a_number_is_not_given_again() -> None:
    log = folded([found("a1", 10, 13)])[0].events
    stories = folded([found("b1", 5, 7)], log, traits=ALONE, now=20)
    assert [(each.number, each.subject) for each in stories] == [(1, "a1"), (2, "b1")]


def test_a_kind_that_turns_into_another_is_an_event_of_the_same_alert() -> None:
    turns = (Turn(FIRST + 5 * DAY, State.UNSTABLE), Turn(FIRST + 20 * DAY, State.DEGRADED))
    (story,) = folded([found("a1", 1, 5, 40, turns=turns)])
    assert events([story]) == [(5, 1, "opened"), (20, 1, "turned"), (40, 1, "closed")]
    opened, turned, _ = story.events
    assert (opened.state, turned.state) == (State.UNSTABLE, State.DEGRADED)
    assert [each.is_worse for each in story.events] == [False, True, False]


@st.composite
def histories(draw: st.DrawFn) -> list[Happening]:
    every = []
    for _ in range(draw(st.integers(1, 8))):
        names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
        low = draw(st.integers(0, 60))
        raised = low + draw(st.integers(0, 20))
        over = draw(st.none() | st.integers(raised + 1, raised + 60))
        last = min(over or 200, 200)
        turned = draw(st.lists(st.integers(raised, last), max_size=2, unique=True))
        kinds = (State.UNSTABLE, State.DEGRADED)
        turns = tuple(
            Turn(FIRST + day * DAY, kind) for day, kind in zip(sorted(turned), kinds, strict=False)
        )
        certain = len(names) > 1 or draw(st.booleans())
        every.append(found("+".join(names), low, raised, over, certain=certain, turns=turns))
    return every


def seen(every: Sequence[Happening], day: int) -> list[Happening]:
    """Return what is known on a day about the happenings `every`."""
    now = FIRST + day * DAY
    known = [
        replace(each, turns=tuple(turn for turn in each.turns if turn.when <= now))
        for each in every
        if each.raised <= now
    ]
    return [
        each if each.over is None or each.over <= now else replace(each, ended=None, over=None)
        for each in known
    ]


def folded_again(every: Sequence[Happening], day: int) -> list[Story]:
    """Fold `every` on top of the alert log that was written on a day."""
    log = [event for story in folded(seen(every, day)) for event in story.events]
    return folded(every, sorted(log, key=lambda each: (each.when, each.number)))


def test_what_is_raised_as_an_alert_closes_is_not_part_of_it_when_told_again() -> None:
    turns = (Turn(FIRST + 61 * DAY, State.UNSTABLE),)
    every = [found("a1+a2", 1, 1, 61), found("a1", 41, 61, certain=False, turns=turns)]
    assert events(folded_again(every, 61)) == events(folded(every))
    assert events(folded(every)) == [(1, 1, "opened"), (61, 1, "closed")]


def test_what_joined_one_alert_as_another_closed_does_not_reopen_that() -> None:
    every = [
        found("a1+a2", 0, 0, 56),
        found("a1", 0, 0, certain=False),
        found("a1+a3+b1", 33, 33),
        found("a1+a2", 36, 56),
    ]
    assert events(folded_again(every, 56)) == events(folded(every))
    assert events(folded(every)) == [
        (0, 1, "opened"),
        (33, 2, "opened"),
        (56, 1, "closed"),
        (56, 2, "grew"),
    ]


@pytest.mark.parametrize(
    ("every", "day"),
    [
        pytest.param(
            [
                found("a1", 6, 20, 59),
                found("a1", 0, 1, 16),
                found("a3", 4, 9, 66),
                found("b2", 1, 2, 34),
            ],
            57,
            id="left one alert and joined another",
        ),
        pytest.param(
            [found("a1", 20, 20), found("a2+a3", 6, 6, 21), found("a1+a3", 4, 20, 23)],
            98,
            id="opened an alert and joined another at once",
        ),
        pytest.param(
            [
                found("a2", 0, 8, 9),
                found("a1+b1", 8, 8, 11),
                found("a2", 6, 8, certain=False),
            ],
            44,
            id="only fell with others as it opened an alert",
        ),
        pytest.param(
            [
                found("a1+a3+b1", 6, 10, 13),
                found("a2+b2", 5, 25, 85),
                found("a1+a3+b2", 6, 6),
                found("a2+b1", 2, 4, 38),
            ],
            109,
            id="was of an alert that merged later",
        ),
        pytest.param(
            [found("a2+a3+b2", 11, 19), found("a3+b1", 8, 22, 23), found("a1+a2+b1", 7, 22, 45)],
            100,
            id="opened an alert that merged at once",
        ),
        pytest.param(
            [
                found("a1+a3+b1", 7, 7),
                found("a2+b2", 3, 5, 60),
                found("a2+a3+b1", 6, 7, 10),
            ],
            16,
            id="merged an alert as it opened",
        ),
        pytest.param(
            [
                found("a1+a3+b2", 11, 19, 22),
                found("a3+b1+b2", 6, 7, 16),
                found("a1+a2+a3", 12, 13),
                found("b1", 5, 6, 35),
                found("b2", 11, 26),
            ],
            133,
            id="fell again near the younger of two alerts",
        ),
        pytest.param(
            [
                found("a1+a2", 11, 31),
                found("a1+a2+a3", 11, 31),
                found("a1+a2+a3", 4, 4, turns=(Turn(FIRST + 31 * DAY, State.UNSTABLE),)),
                found("a1", 0, 0),
            ],
            31,
            id="fell again as the older one turned",
        ),
        pytest.param([found("a2", 0, 4), found("a1", 4, 5)], 5, id="joined a slide"),
    ],
)
def test_of_two_alerts_with_a_name_each_finds_its_own(every: list[Happening], day: int) -> None:
    assert events(folded_again(every, day)) == events(folded(every))


def test_what_a_member_turns_into_after_the_alert_closed_is_not_told() -> None:
    turns = (Turn(FIRST + 2 * DAY, State.UNSTABLE),)
    every = [found("a1+a2", 0, 0, 1), found("a1", 0, 0, certain=False, turns=turns)]
    assert events(folded_again(every, 1)) == events(folded(every))
    assert events(folded(every)) == [(0, 1, "opened"), (1, 1, "closed")]


@settings(max_examples=int(os.environ.get("IOBANDS_EXAMPLES", "100")), deadline=None)
@given(histories(), st.lists(st.integers(0, 150), max_size=6))
def test_told_day_by_day_or_at_once_it_is_the_same(every: list[Happening], days: list[int]) -> None:
    log: list[AlertEvent] = []
    for day in [*sorted(days), 200]:
        stories = told_with_causes(seen(every, day), log, day)
        said = [event for story in stories for event in story.events]
        assert [each for each in log if each not in said] == []
        log = sorted(said, key=lambda each: (each.when, each.number))
        now = FIRST + day * DAY
        in_alerts = [name for s in stories if s.closed is None for name in s.names_at(now)]
        assert len(in_alerts) == len(set(in_alerts))
    assert events(told_with_causes(every, (), 200)) == events(stories)


def test_what_left_an_alert_and_falls_again_later_is_another() -> None:
    parts = [found("a1+a2", 10, 12, 16), found("b1", 11, 15), found("a1+a2", 40, 41)]
    first, later = folded(parts)
    assert (first.names, first.closed) == (["a1", "a2", "b1"], None)
    assert (later.names, later.number) == (["a1", "a2"], 2)
    # while it lasts, it falls again
    (first,) = folded([found("a1+a2", 10, 12), found("a1", 40, 41)])
    assert events([first])[-1] == (41, 1, "fell")
