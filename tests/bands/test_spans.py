"""Time spans whose samples are left out, compared with a check of each sample."""

from __future__ import annotations

import cProfile
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from dateutil.rrule import rrulestr
from hypothesis import example, given
from hypothesis import strategies as st

from iobands.bands import Bands, Span, Spans, Window
from iobands.judge.normal import inside
from iobands.model import FileError
from iobands.source.known import maintenance_of
from tests.factory import NOW

BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(-2, 12)), max_size=8)


def spans_of(hours: list[tuple[int, int]]) -> Spans:
    every = (Span(BEGIN + at * HOUR, BEGIN + (at + lasts) * HOUR, f"{at}") for at, lasts in hours)
    return Spans(tuple(every))


@given(SPANS)
def test_a_time_is_in_spans_that_have_it(hours: list[tuple[int, int]]):
    spans = spans_of([(at, abs(lasts)) for at, lasts in hours])
    times = [BEGIN + half * HOUR / 2 for half in range(-2, 160)]
    naive = [any(each.begin <= when <= each.end for each in spans.every) for when in times]
    assert [when in spans for when in times] == naive
    utc = np.array([each.replace(tzinfo=None) for each in times], "datetime64[ns]")
    assert inside(spans, utc).tolist() == naive
    why = [next((e.why for e in spans.every if e.begin <= t <= e.end), "") for t in times]
    assert [spans.why(when) for when in times] == why


@given(SPANS, st.integers(-5, 80), st.integers(-5, 80))
@example(hours=[(0, 12)], begin=5, end=3)
def test_overlaps_are_covered_once(hours: list[tuple[int, int]], begin: int, end: int):
    spans = spans_of([(at, abs(lasts)) for at, lasts in hours])
    held = {hour for at, lasts in hours for hour in range(at, at + abs(lasts))}
    covered = spans.covered(BEGIN + begin * HOUR, BEGIN + end * HOUR)
    assert covered == len(held & {*range(begin, end)}) * HOUR


def test_a_window_knows_the_next_occurrence_as_well():
    daily = Window(BEGIN, BEGIN + HOUR, "backup", "FREQ=DAILY")
    now = BEGIN + timedelta(days=2)
    assert [each.begin.day for each in daily.spans(now)] == [1, 2, 3]
    assert daily.following(now).begin.day == 4
    once = Window(BEGIN, BEGIN + HOUR, "upgrade")
    assert (once.spans(BEGIN - HOUR), once.following(BEGIN - HOUR).begin) == ((), BEGIN)
    assert (len(once.spans(now)), once.following(now)) == (1, None)


@pytest.mark.parametrize(
    ("day", "begins", "ends"),
    [  # Paris is two hours ahead of UTC in summer, and one in winter
        (datetime(2026, 10, 23), "23 20:00", "24 04:00"),
        (datetime(2026, 10, 24), "24 20:00", "25 05:00"),  # a night of nine hours
        (datetime(2026, 10, 25), "25 21:00", "26 05:00"),
        (datetime(2027, 3, 27), "27 21:00", "28 04:00"),  # a night of seven hours
    ],
)
def test_a_night_ends_by_the_clock_of_its_zone(day: datetime, begins: str, ends: str) -> None:
    zone = timezone(timedelta(hours=1))
    begin = datetime(2026, 1, 31, 22, tzinfo=zone)
    window = Window(begin, begin + 8 * HOUR, "backup", "FREQ=DAILY", "Europe/Paris")
    span = window.spans(day.replace(hour=23, tzinfo=timezone.utc))[-1]
    assert (f"{span.begin:%d %H:%M}", f"{span.end:%d %H:%M}") == (begins, ends)


def test_of_a_time_that_the_clocks_show_twice_the_first_counts() -> None:
    # on 25 October, the clocks of Paris show 2:30 at 0:30 and at 1:30 UTC
    begin = datetime(2026, 10, 11, 1, 30, tzinfo=timezone(2 * HOUR))
    for hours, ends in ((1, "00:30"), (2, "02:30")):
        window = Window(begin, begin + hours * HOUR, "backup", "FREQ=WEEKLY", "Europe/Paris")
        span = window.spans(datetime(2026, 10, 26, tzinfo=timezone.utc))[-1]
        assert (f"{span.begin:%d %H:%M}", f"{span.end:%H:%M}") == ("24 23:30", ends)


def test_no_occurrence_ends_before_it_begins() -> None:
    # from 2:45 to 3:15 on the day without the hour from 2 to 3
    begin = datetime(2026, 1, 31, 2, 45, tzinfo=timezone(timedelta(hours=1)))
    window = Window(begin, begin + HOUR / 2, "backup", "FREQ=DAILY", "Europe/Paris")
    for span in window.spans(datetime(2026, 4, 1, tzinfo=timezone.utc)):
        assert span.begin <= span.end


@pytest.mark.parametrize("rule", ["YEARLY;BYMONTH=2;BYMONTHDAY=30", "MONTHLY;BYSETPOS=2"])
def test_a_rule_of_days_that_no_calendar_has_is_named_soon(rule: str) -> None:
    window = Window(NOW - timedelta(days=400), NOW - timedelta(days=399), "disks", f"FREQ={rule}")
    work = cProfile.Profile()
    with work, pytest.raises(FileError, match="no day of the next ten years"):
        maintenance_of(Bands("here", (), maintenance=(window,)), NOW)
    # not a step for each period of eight thousand years
    assert sum(each.callcount for each in work.getstats()) < 100_000


@pytest.mark.parametrize("begin", [datetime(1999, 1, 31), datetime(2024, 2, 29), NOW])
@pytest.mark.parametrize(
    "rule",
    [
        "YEARLY",
        "MONTHLY;INTERVAL=3;BYMONTHDAY=31",
        "WEEKLY;INTERVAL=2;BYDAY=MO,WE;BYSETPOS=2",
        "DAILY;INTERVAL=5;BYDAY=WE",
        "YEARLY;BYMONTH=2;BYMONTHDAY=29",
    ],
)
def test_a_rule_has_the_days_of_the_calendar(begin: datetime, rule: str) -> None:
    begin, until = (e.replace(tzinfo=timezone.utc) for e in (begin, datetime(2035, 1, 1)))
    window = Window(begin, begin + HOUR, "disks", f"FREQ={rule}")
    days = rrulestr(window.repeat, dtstart=begin).between(begin, until, inc=True)
    assert [*window.begins(until)] == days != []


def test_the_next_occurrence_by_count_and_by_a_last_day() -> None:
    begin = datetime(2026, 11, 1, 6, tzinfo=timezone.utc)
    for rule, last in (("COUNT=30", 30), ("UNTIL=20261125T060000Z", 25)):
        window = Window(begin, begin + timedelta(hours=1), "disks", f"FREQ=DAILY;{rule}")
        assert len(window.spans(NOW)) == 21 - (begin.replace(day=21) > NOW)
        following = window.following(NOW)
        assert following is not None
        assert len(window.spans(NOW + timedelta(days=99))) == last
        assert window.following(begin + timedelta(days=last - 1)) is None
    with pytest.raises(ValueError, match="COUNT is not above 0"):
        Window(begin, begin, "disks", "FREQ=DAILY;COUNT=-1").spans(NOW)


def test_maintenances_that_would_take_hours_to_list_are_refused():
    begin = datetime(1900, 1, 1, tzinfo=timezone.utc)
    daily = Window(begin, begin + timedelta(hours=1), "x", "FREQ=DAILY")
    assert len(daily.spans(NOW)) > 40_000
    maintenance_of(Bands("here", (), maintenance=(daily,) * 2), NOW)
    with pytest.raises(FileError, match="more than 100,000 times"):
        maintenance_of(Bands("here", (), maintenance=(daily,) * 3), NOW)
