"""The bands in the suite: each figure agrees with the quote next to it, and is of one volume."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path

import pytest
import yaml

import iobands
from iobands.bands import load_bands
from iobands.bands.band import Bands

BANDS = Path(iobands.__file__).resolve().parents[2] / "config" / "bands"
SYSTEMS = sorted(path.stem for path in BANDS.glob("*.yaml"))
FIGURE = re.compile(r"^ +(\w+): ([0-9.]+)  #: (.+)$", re.MULTILINE)
FIGURES = {"lower_quartile", "median", "upper_quartile", "maximum", "at_most", "at_least", "about"}
#: The units of quotes in GiB/s.
UNITS = {"GiB/s": 1.0, "MiB/s": 1 / 1024, "GB/s": 1e9 / 2**30, "MB/s": 1e6 / 2**30}


def quoted(quote: str) -> float:
    """The value of a quote such as `2939.85 MiB/s`, in GiB/s, or of a ratio of two figures."""
    if " / " in quote:
        above, below = map(float, quote.split(" / "))
        return above / below
    figure, unit = quote.split()
    return float(figure) * UNITS[unit]


@pytest.mark.parametrize("system", SYSTEMS)
def test_each_figure_is_the_one_quoted_beside_it(system: str) -> None:
    text = (BANDS / f"{system}.yaml").read_text("utf-8")
    found = FIGURE.findall(text)
    for name, figure, quote in found:
        assert float(figure) == pytest.approx(quoted(quote), rel=5e-4), (name, figure, quote)
    (epoch,) = yaml.safe_load(text)["epochs"]
    figures = [name for band in epoch["bands"] for name in band if name in FIGURES]
    assert [name for name, *_ in found] == figures


@pytest.mark.parametrize("system", SYSTEMS)
def test_each_band_is_of_one_size(system: str) -> None:
    assert load_bands(BANDS, system).warnings == ()


def limit_of(bands: Bands, **fields: object) -> tuple[str, float] | None:
    found = bands.limit_for(fields, datetime(2024, 1, 1, tzinfo=timezone.utc))
    return (found.kind, found.value) if found else None


def test_a_rate_below_a_maximum_is_fine() -> None:
    size = {"nodes": 16, "tasks": 2048, "gib": 64, "variable": "write_bw"}
    # 1 GB/s is 1e9 / 2**30 GiB/s
    single = {"case": "archer2-single-writer", "stripe_count_asked": 1, **size}
    assert limit_of(load_bands(BANDS, "archer2"), **single) == ("at_most", 0.9313)
    assert limit_of(load_bands(BANDS, "archer2"), **{**single, "nodes": 4}) is None
    # 10 GB/s over all OSTs, with the transport and the variables that the page recommends
    striped = {"case": "archer2-stripe-count", "pattern": "ssf", "stripe_count_asked": -1, **size}
    as_recommended = {"transport": "ucx", "hints": "archer2-ssf"}
    archer2 = load_bands(BANDS, "archer2")
    assert limit_of(archer2, **striped, **as_recommended) == ("at_most", 9.313)
    assert limit_of(archer2, **striped, transport="ofi", hints="default") is None


def test_figures_are_of_their_stripe_count_and_access() -> None:
    fields = {
        "case": "bulk-lustre-large-file",
        "stripe_count_asked": 16,
        "variable": "write_bw",
        "nodes": 16,
        "tasks": 64,
        "gib": 100,
    }
    bands = load_bands(BANDS, "frontera")
    # 5693 / 1024 and 962 / 1024 GiB/s; the source has no figure for stripes dealt at random
    assert limit_of(bands, **fields, pattern="aligned") == ("about", 5.56)
    assert limit_of(bands, **fields, pattern="aligned-files") == ("about", 0.9395)
    assert limit_of(bands, **fields, pattern="aligned-random") is None
    assert limit_of(bands, **{**fields, "stripe_count_asked": -1}, pattern="aligned") is None
