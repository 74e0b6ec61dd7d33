"""Numbers, times and names as the views write them."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest

from iobands.snapshot import Ratio
from iobands.views.writing import (
    age_text,
    day_text,
    figure,
    fitted,
    nearest,
    percent,
    plural,
    printable,
    ratio_text,
    share_text,
)
from tests.factory import NOW


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (9.54e-6, "0.00000954"),
        (0.01234, "0.0123"),
        (1.0, "1"),
        (9.999, "10"),
        (99.94, "99.9"),
        (123.6, "124"),
        (4096, "4096"),
    ],
)
def test_figures(value: float, shown: str) -> None:
    assert figure(value) == shown


def test_ratios() -> None:
    assert ratio_text(Ratio(0.714, 0.66, 0.772)) == "0.71 × (0.66–0.77)"
    assert ratio_text(Ratio(0.714, 0.0, math.inf)) == "0.71 ×"
    assert ratio_text(Ratio(math.nan, 0.0, math.inf)) == "not known yet"
    assert ratio_text(Ratio(0.00123, 0.0009, 0.14)) == "0.00123 × (0.0009–0.14)"
    assert ratio_text(Ratio(1000.43, 933.4, 1067.4)) == "1000 × (933–1067)"
    assert (percent(0.15), percent(1.6), percent(1.0)) == ("−85 %", "+60 %", "+0 %")
    assert (percent(0.996), percent(0.9999), percent(0.001)) == ("−0.4 %", "+0 %", "−99.9 %")


def test_shares() -> None:
    shares = (0, 0.0004, 0.0042, 0.0123, 0.5, 0.989, 0.9967, 0.9997, 1, 2.5)
    shown = ["0 %", "0 %", "0.4 %", "1 %", "50 %", "99 %", "99.7 %", "99.9 %", "100 %", "250 %"]
    assert [*map(share_text, shares)] == shown


def test_times() -> None:
    assert day_text(NOW, NOW) == "21 Nov"
    assert day_text(NOW - timedelta(days=365), NOW) == "21 Nov 2025"
    ages = {
        timedelta(seconds=29): "just now",
        timedelta(minutes=1): "1 minute ago",
        timedelta(hours=30): "30 hours ago",
        timedelta(hours=47.6): "2 days ago",
        timedelta(days=2.9): "2 days ago",
        -timedelta(days=1): "dated in the future",
    }
    assert [age_text(age) for age in ages] == [*ages.values()]


def test_plurals() -> None:
    assert (plural(1, "run"), plural(2, "run"), plural(1, "series")) == (
        "1 run",
        "2 runs",
        "1 series",
    )


def test_of_many_names_the_nearest_are_shown() -> None:
    names = [f"disk{number} fpp write_bw" for number in range(500)]
    lines = nearest(names, "disk321 fpp").splitlines()
    assert lines[1] == "  disk321 fpp write_bw"
    assert len(lines) == 32
    assert "470 more" in lines[-1]
    assert nearest(["a", "b"], "x") == "\n  a\n  b"


def test_nothing_upsets_a_terminal() -> None:
    assert printable("a\x1b[2Jb\nc\ud800é") == "a?[2Jb?c?é"
    # a zero width space, a Hangul filler, a joiner of graphemes, a blank of Braille, a selector
    assert printable("a\u200bb\u3164c\u034fd\u2800e\ufe0fé") == "a?b?c?d?e?é"


def test_no_quote_in_what_looks_like_a_command_is_lost() -> None:
    said = "Why: iobands can't start the job, as its directory is not \"there"
    for width in (20, 40, 60):
        assert fitted([said], width).replace(" \\\n", "\n").split() == said.split()


def test_a_path_stays_beside_the_word_before_it() -> None:
    path = f"/scratch/{'x' * 80}/iobands-BenchioFPP"
    assert fitted([f"stays    {path}: something is mounted below it"], 60).splitlines() == [
        f"stays    {path}:",
        "         something is mounted below it",
    ]
    assert fitted([f"The page is in {path}"], 60).splitlines() == ["The page is in", f"  {path}"]
