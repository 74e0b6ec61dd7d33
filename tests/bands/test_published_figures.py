"""The bands that the suite brings: figures of the published sources, worked out by hand."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

import iobands
from iobands.bands import load_bands


@pytest.mark.parametrize(
    ("system", "fields", "median"),
    [
        # 1 GB/s is 1e9 / 2**30 GiB/s
        ("archer2", {"case": "archer2-single-writer", "variable": "write_bw"}, 0.9313),
        # 2939.85 / 1024 GiB/s, and 2939.85 / 1292.96
        ("mahti", {"case": "csc-blocking unit", "variable": "write_bw"}, 2.871),
        ("mahti", {"case": "csc-blocking unit", "variable": "write_ratio"}, 2.274),
        # 3699.31 / 2939.85, of which both have the hint of the unit
        ("mahti", {"case": "csc-aggregators 2", "variable": "write_ratio"}, 1.258),
        # 5693 / 1024 GiB/s, over 16 stripes; the source has no figure of another number
        (
            "frontera",
            {
                "case": "bulk-lustre-large-file",
                "pattern": "aligned",
                "stripe_count_asked": 16,
                "variable": "write_bw",
            },
            5.56,
        ),
        # 18,329 / 1310
        (
            "frontera",
            {
                "case": "bulk-lustre-small-files",
                "pattern": "aligned",
                "variable": "write_ratio",
            },
            13.99,
        ),
    ],
)
def test_figures_of_the_sources(system: str, fields: dict[str, object], median: float) -> None:
    root = Path(iobands.__file__).resolve().parents[2]
    bands = load_bands(root / "config" / "bands", system)
    size = {"nodes": 16, "tasks": 64 if system == "frontera" else 256, "stripe_count_asked": 1}
    band = bands.band_for({**size, **fields}, datetime(2024, 1, 1, tzinfo=timezone.utc))
    assert band is not None
    assert band.median == pytest.approx(median, rel=1e-3)


def test_a_figure_of_16_stripes_is_not_one_of_all() -> None:
    bands = load_bands(Path(iobands.__file__).resolve().parents[2] / "config" / "bands", "frontera")
    fields = {"case": "bulk-lustre-large-file", "pattern": "aligned", "variable": "write_bw"}
    size = {"nodes": 16, "tasks": 64, "stripe_count_asked": -1}
    assert bands.band_for({**size, **fields}, datetime(2024, 1, 1, tzinfo=timezone.utc)) is None
