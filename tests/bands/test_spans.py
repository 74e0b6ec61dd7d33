"""Spans of time that samples are left out of, held against looking at each of them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from iobands.bands import Span, Spans, Window
from iobands.judge.normal import inside

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
