"""Contract 3, version 1: the golden file says what it always said."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from iobands.bands_file import load_bands

BANDS = load_bands(Path(__file__).parent / "golden" / "golden.yaml")
FPP = {"tool": "benchio", "pattern": "fpp", "medium": "nvme", "variable": "write_bw"}


def at(*when, hours=0):
    return datetime(*when, tzinfo=timezone(timedelta(hours=hours)))


@pytest.mark.parametrize(
    ("when", "epoch"),
    [
        (at(2023, 10, 8, 23), None),
        (at(2023, 10, 10), "first"),
        (at(2024, 5, 1, 10, 59), "first"),
        (at(2024, 5, 1, 11, 0), "second"),  # 12:00 at +01:00
        (at(2024, 5, 1, 11, 30, hours=1), "first"),
        (at(2030, 1, 1), "second"),
    ],
)
def test_epoch_in_force(when, epoch):
    found = BANDS.epoch_at(when)
    assert (found and found.name) == epoch


def test_a_band_without_a_floor_has_its_lower_fence():
    band = BANDS.band_for(FPP, at(2023, 11, 1))
    # 135 × (135 / 180)^1.5
    assert band.floor == pytest.approx(87.68507)
    assert band.reference() == pytest.approx((150, -0.4154329, None, "GiB/s"))
    verdicts = {200: "above", 180: "within", 135: "within", 134.9: "below", 87.6: "collapsed"}
    assert {value: band.verdict(value) for value in verdicts} == verdicts


def test_the_most_specific_band_wins():
    specific = {**FPP, "stripe_count_asked": "-1", "nodes": 16.0}
    assert BANDS.band_for(specific, at(2025, 1, 1)).floor == 80
    assert BANDS.band_for(FPP, at(2025, 1, 1)).median == 90
    assert BANDS.band_for({**FPP, "variable": "read_bw"}, at(2025, 1, 1)) is None
