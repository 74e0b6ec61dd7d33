"""Actions: which are in force, which series they concern, and which bands hold after them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iobands.bands import Band, Bands, Epoch, Span, Spans
from iobands.judge.state import bands_after
from iobands.snapshot import ACKNOWLEDGE, REBASELINE, RESOLVE, UNDO, Action, in_force
from tests.factory import NOW
from tests.judge.keys import KEY
from tests.sites import DAY

ONE = Action(ACKNOWLEDGE, NOW, "jane", "r", ({"pattern": "fpp"},))
UNDONE = replace(ONE, kind=UNDO, when=NOW + DAY, of=NOW)


def band(median: float) -> Band:
    return Band(
        match={},
        unit="GiB/s",
        lower_quartile=median - 1,
        median=median,
        upper_quartile=median + 1,
        maximum=None,
        floor=1,
        runs=None,
        epoch="",
        source="",
    )


def epoch(day: int, *medians: float) -> Epoch:
    bands = tuple(band(median) for median in medians)
    return Epoch(f"{day}", NOW + day * DAY, "", bands)


def test_what_was_undone_is_not_in_force() -> None:
    assert in_force([ONE]) == (ONE,)
    assert in_force([ONE, UNDONE]) == ()
    assert in_force([ONE, ONE, UNDONE]) == ()
    # an action after an undo holds, even in the same second
    assert in_force([ONE, replace(UNDONE, when=NOW), ONE]) == (ONE,)


@pytest.mark.parametrize(
    ("series", "is_about"),
    [
        ({"pattern": "fpp"}, True),
        ({"pattern": "fpp", "file_system": "b"}, False),
        ({"nodes": "1", "gib": 0.5, "variable": "write_bw"}, True),
        ({"stripe_count_asked": None}, True),
        ({"variable": "read_bw"}, False),
    ],
)
def test_which_series_an_action_is_about(series: dict[str, object], is_about: bool) -> None:
    assert replace(ONE, series=(series,)).names(KEY) is is_about
    assert replace(ONE, series=({"pattern": "ssf"}, series)).names(KEY) is is_about


def test_nothing_done_leaves_the_bands_as_they_are() -> None:
    bands = Bands("here", (epoch(0, 5),))
    assert bands_after(bands, [ONE]) is bands


def test_a_rebaseline_ends_what_was_in_force() -> None:
    bands = Bands("here", (epoch(0, 5), epoch(10, 5, 6), epoch(20, 7)))
    anew = replace(ONE, kind=REBASELINE, when=NOW + 8 * DAY, since=NOW + 4 * DAY)
    found = bands_after(bands, [anew])
    # a band in force before the action does not hold after it, even if a later epoch repeats it
    assert [[each.median for each in one.bands] for one in found.epochs] == [[5], [], [6], [7]]
    assert found.compares_since(NOW + 5 * DAY) == NOW + 4 * DAY
    alone = bands_after(Bands("here", ()), [anew])
    assert alone.compares_since(NOW + 5 * DAY) == NOW + 4 * DAY


def test_a_resolve_leaves_its_span_out() -> None:
    bands = Bands("here", (epoch(0, 5),), left_out=(Spans((Span(NOW, NOW + DAY),)),))
    done = replace(ONE, kind=RESOLVE, since=NOW + 2 * DAY, until=NOW + 3 * DAY)
    found = bands_after(bands, [done])
    assert [(each.begin, each.end) for spans in found.left_out for each in spans.every] == [
        (NOW, NOW + DAY),
        (NOW + 2 * DAY, NOW + 3 * DAY),
    ]
    assert found.epochs == bands.epochs
