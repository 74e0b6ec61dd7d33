"""How the newest run moved its data, and the published advice that it did not follow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from iobands.model import SeriesKey
from iobands.views.digest import chosen, explanation
from iobands.views.notes import how_run, not_followed, uneven
from tests.factory import daily, write_perflog
from tests.views.sites import healthy, look

SHARED = SeriesKey(
    "s", "p", "e", "benchio", "ssf", "mpiio", "scratch", 12.0, "ofi", "default", 2.0, 64.0, 100.0,
    "write_bw",
)  # fmt: skip
OWN = replace(SHARED, pattern="fpp", interface="posix")
COLLECTIVE = "write_bw=collective:64,independent:0;read_bw=collective:0,independent:9"


def sentence(key: SeriesKey, **sample: Any) -> str:
    return " / ".join(not_followed(key, {"targets_active": 16, **sample}))


def test_the_fullest_target_is_named_where_it_is_known_how_full_it_is() -> None:
    sample = {"busiest_target": 2.5, "free_spread_percent": 80, "fullest_target": "OST3"}
    alone = "the busiest target has 2.5 × its round-robin share of files"
    why = ": OST3 is 97 % full, and targets with more free space get more files"
    assert uneven({**sample, "fullest_target_percent": 97}) == alone + why
    assert uneven({**sample, "fullest_target_percent": None}) == alone
    assert "OST3 is 99.7 % full" in str(uneven({**sample, "fullest_target_percent": 99.7}))
    # at 34 % less free space than an empty target of its own size, it would be 34 % full
    small = {**sample, "free_spread_percent": 34, "fullest_target_percent": 0}
    assert "OST3 is smaller, and targets with" in str(uneven(small))


def test_what_a_run_did_stands_beside_its_rate() -> None:
    sample = {
        "time_shares": "write_bw=open:0.02,transfer:0.9,sync:0.05,close:0.03",
        "mpiio_calls": COLLECTIVE,
        "movers": "write_bw=4,read_bw=64",
        "stripe_count": 16,
        "stripe_size": 2**20,
        "transport_in_effect": "ucx",
        "hints_in_effect": "cb_nodes=4",
        "targets_active": 16,
    }
    assert dict(how_run(SHARED, sample)) == {
        "Time": "open 2 %, transfer 90 %, sync 5 %, close 3 %",
        "Calls": "every call was collective (64)",
        "I/O done by": "4 of 64 processes",
        "In effect": "16 stripes of 1 MiB, transport ucx, 1 hint",
    }
    brief = {"time_shares": "write_bw=open:0.004,transfer:0.996"}
    assert dict(how_run(SHARED, brief))["Time"] == "open 0.4 %, transfer 99.6 %"
    reads = dict(how_run(replace(SHARED, variable="read_bw"), sample))
    assert reads["Calls"] == "every call was independent (9)"
    assert reads["I/O done by"] == "64 of 64 processes"
    assert "Time" not in reads
    assert "use collective calls" in reads["Guidance"]


@pytest.mark.parametrize(
    "text",
    [
        *("write_bw=open", "write_bw", "=", "write_bw=open:x,close:1"),
        pytest.param(f"write_bw={'9' * 5000}", id="more digits than int() takes"),
    ],
)
def test_a_column_that_somebody_edited_says_nothing(text: str) -> None:
    assert dict(how_run(SHARED, {"time_shares": text, "mpiio_calls": text, "movers": text})) == {}


@pytest.mark.parametrize(
    ("key", "sample", "words"),
    [
        (SHARED, {"stripe_count": 1}, "over all targets (ARCHER2): it has 1 stripe"),
        (SHARED, {"stripe_count": 1, "targets_active": 1}, ""),
        # 100 GiB are 107.4 GB, and the root of that is 10.4
        (SHARED, {"stripe_count": 8}, "at least 10 stripes, the square root"),
        (SHARED, {"stripe_count": 8, "targets_active": 8}, ""),
        (SHARED, {"stripe_count": 16}, ""),
        (SHARED, {"stripe_count": 12}, "divides the processes (CSC): 12 for 64"),
        (replace(SHARED, tasks=8.0), {"stripe_count": 16}, "no more stripes than processes"),
        (SHARED, {"stripe_count": 16, "mpiio_calls": COLLECTIVE, "movers": "write_bw=32"},
         "more aggregators than stripes do not help (CSC): 32 for 16"),
        (SHARED, {"stripe_count": 16, "mpiio_calls": COLLECTIVE, "movers": "write_bw=2"},
         "4 targets at the most (Cray): 2 for 16"),
        (SHARED, {"stripe_count": 16, "mpiio_calls": COLLECTIVE, "movers": "write_bw=4"}, ""),
        (SHARED, {"mpiio_calls": "write_bw=collective:4,independent:64"},
         "collective calls for a shared file (ARCHER2, Cray): 4 collective, 64 independent"),
        (replace(SHARED, pattern="ssf-independent"), {}, "by its pattern"),
        (OWN, {"stripe_count": 4}, "one stripe for a file per process (ARCHER2, CSC, Cray)"),
        # fewer files than targets
        (replace(OWN, tasks=4.0), {"stripe_count": 4}, ""),
        (OWN, {"stripe_count": 1}, ""),
        # many small files
        (replace(OWN, pattern="aligned-files"), {"stripe_count": 1}, ""),
        (OWN, {"time_shares": "write_bw=open:0.3,transfer:0.4,sync:0.1,close:0.2"},
         "(ARCHER2, CSC): opens and closes take 50 % of the time for 64 files"),
        (OWN, {"time_shares": "write_bw=open:0.1,transfer:0.8,sync:0,close:0.1"}, ""),
        (replace(OWN, pattern="serial"), {}, "a single one seldom exceeds 1 GB/s"),
        (replace(OWN, nodes=None, tasks=None, gib=None), {"stripe_count": 4}, ""),
    ],
)  # fmt: skip
def test_advice_that_was_not_followed(key: SeriesKey, sample: dict[str, Any], words: str) -> None:
    found = sentence(key, **sample)
    assert words in found
    assert bool(words) == bool(found)
    assert " / " not in found


def test_explain_says_it(tmp_path: Path) -> None:
    rows = daily(
        healthy(), pattern="ssf", interface="mpiio", tasks=4,
        time_shares="write_bw=open:0.3,transfer:0.6,sync:0,close:0.1",
        mpiio_calls="write_bw=collective:4,independent:12", open_close_percent=40,
    )  # fmt: skip
    write_perflog(tmp_path / "perflogs", rows)
    found = look(tmp_path)
    (series,) = chosen(found, "disk ssf")
    said = " ".join(explanation(found, series).split())
    assert "Calls 4 collective, 12 independent" in said
    assert "opens and closes take 40 % of the time" in said
    assert "use collective calls for a shared file" in said


def test_a_rise_of_the_time_in_opens_is_a_covariate(tmp_path: Path) -> None:
    values = [*healthy()[:-15], *(0.5 * each for each in healthy()[-15:])]
    rows = [
        *daily(values[:-15], last=15.25, open_close_percent=4),
        *daily(values[-15:], open_close_percent=52),
    ]
    write_perflog(tmp_path / "perflogs", rows)
    found = look(tmp_path)
    (series,) = chosen(found, "disk fpp")
    shown = " ".join(explanation(found, series).split())
    assert "% of the time in opens and closes 52 since 6 Nov, was 4" in shown
