"""Charts that are kept: whatever happens to a series, they equal those that are drawn anew."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iobands.bands import Band
from iobands.detection import Chart, follow
from iobands.reporting.digest_json import as_json
from iobands.status import kept_charts
from iobands.status.kept_charts import KeptCharts
from iobands.status.survey import take_survey
from tests.package.factory import NOW, daily, days_ago, line, write_bands, write_perflog

BAND = Band(
    match={},
    unit="GiB/s",
    lower_quartile=9.0,
    median=10.0,
    upper_quartile=11.0,
    maximum=14.0,
    floor=6.0,
    runs=None,
    epoch="",
    source="",
)


@pytest.fixture(autouse=True)
def _small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_charts, "WORTH_KEEPING", 1)


def values(runs: int, seed: int = 1) -> np.ndarray:
    """Return runs at 10 with losses that come and go, and with ties."""
    draw = np.random.default_rng(seed)
    found = np.round(10 * np.exp(0.15 * draw.standard_normal(runs)), 1)
    for _ in range(runs // 60):
        begin = draw.integers(runs)
        found[begin : begin + draw.integers(3, 60)] *= draw.choice([0.5, 0.7, 0.8, 1.3])
    return found


def told(chart: Chart) -> tuple[Any, ...]:
    """Return all that a chart says, and what it will go on from, to the last bit."""
    return (
        repr(chart.alarms),
        chart.is_watched,
        chart.can_judge,
        chart.scale,
        repr(chart.open and (chart.open.start, chart.open.before.tolist())),
        *(
            getattr(chart, name).tolist()
            for name in (
                "logarithms",
                "increments",
                "down",
                "up",
                "usable",
                "reference",
                "sums",
                "starts",
                "recovery",
            )
        ),
        (chart.joined, chart.recovery_start, chart.limit, chart.watch),
    )


def kept(path: Path, *histories: np.ndarray, limit: float = 9.0, band: Band | None = None):
    """Return the charts of `histories` as one call of the command gets them."""
    charts = KeptCharts(path)
    found = [
        charts.draw(f"series {number}")(history, band, limit)
        for number, history in enumerate(histories)
    ]
    charts.save()
    return found


def drawn(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many runs each further chart will have drawn."""
    seen: list[int] = []
    original = kept_charts.extend

    def extend(chart, new):
        seen.append(len(new))
        return original(chart, new)

    monkeypatch.setattr(kept_charts, "extend", extend)
    return seen


@pytest.mark.parametrize("seed", range(12))
def test_any_history_of_edits(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    runs = list(values(draw.choice([5, 40, 400]), seed))
    further = iter(values(2000, seed + 100))
    limit, band = 9.0, draw.choice([None, BAND])
    for _ in range(12):
        edit = draw.choice(["append", "append", "append", "insert", "remove", "limit", "band"])
        if edit == "append":
            runs += [next(further) for _ in range(draw.choice([0, 1, 30, 100]))]
        elif edit == "insert":
            runs.insert(draw.randrange(len(runs)), next(further))
        elif edit == "remove":
            del runs[draw.randrange(len(runs))]
        elif edit == "limit":
            limit = draw.choice([9.0, 9.25, 11.0])
        else:
            band = draw.choice([None, BAND])
        now = np.array(runs)
        (found,) = kept(tmp_path / "kept", now, limit=limit, band=band)
        assert told(found) == told(follow(now, band, limit=limit)), edit


def test_only_new_runs_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kept"
    one, other = values(300), values(200, 2)
    kept(path, one[:250], other)
    seen = drawn(path, monkeypatch)
    kept(path, one, other)
    assert seen == [50]
    seen.clear()
    kept(path, np.delete(one, 7), other)
    assert seen == [299]


def test_few_new_runs_are_drawn_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kept"
    monkeypatch.setattr(kept_charts, "WORTH_KEEPING", 100)
    history = values(200)
    kept(path, history[:99])
    assert not path.exists()
    kept(path, history[:100])
    before = path.read_bytes()
    kept(path, history[:199])
    assert path.read_bytes() == before
    kept(path, history)
    assert path.read_bytes() != before


def test_a_damaged_file_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    history = values(300)
    expected = told(kept(path, history)[0])
    whole = path.read_bytes()
    places = range(0, len(whole), len(whole) // 60)
    for damaged in (b"", whole[:-5], *(flipped(whole, place) for place in places)):
        path.write_bytes(damaged)
        assert told(kept(path, history)[0]) == expected
        assert told(kept(path, history)[0]) == expected  # from what was written then


def flipped(whole: bytes, place: int) -> bytes:
    return whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :]


def test_what_other_code_drew_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kept"
    kept(path, values(300))
    monkeypatch.setattr(kept_charts, "VERSION", -1)
    seen = drawn(path, monkeypatch)
    kept(path, values(300))
    assert seen == [300]


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    history = values(300)
    assert told(kept(tmp_path / "file" / "kept", history)[0]) == told(follow(history))


def test_several_at_once(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    history = values(600)
    lengths = [200, 600, 400, 550] * 5
    with ThreadPoolExecutor(4) as workers:
        found = list(workers.map(lambda runs: kept(path, history[:runs])[0], lengths))
    for chart, runs in zip(found, lengths, strict=True):
        assert told(chart) == told(follow(history[:runs]))
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]


def test_a_survey_says_the_same(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the perflogs on: with what is kept, and without, after each kind of edit."""
    history = [float(value) for value in values(120, 5)]
    lines = daily([*history, *(7.0 + 0.1 * (day % 9) for day in range(20))])

    def both() -> tuple[object, object]:
        found = []
        for home in (str(caches.parent), "/dev/null"):
            monkeypatch.setenv("XDG_CACHE_HOME", home)
            found.append(as_json(take_survey(tmp_path / "perflogs", tmp_path / "bands", now=NOW)))
        return tuple(found)

    seen = []
    new = line(perf_value=4.0, job_completion_time=days_ago(0.1), jobid=9)
    late = line(perf_value=4.0, job_completion_time=days_ago(60.5), jobid=10)
    for edited in (
        lines,
        [*lines, new],
        [*lines, late, new],  # older than what was read
        lines[5:],
        [each.replace("|1.0|", "|2.0|") for each in lines[:60]] + lines[60:],  # another kernel
    ):
        write_perflog(tmp_path / "perflogs", edited)
        ours, theirs = both()
        assert ours == theirs
        seen.append(theirs["series"][0]["evidence"]["down"])
    write_bands(tmp_path / "bands", (9.0, 10.0, 11.0))
    ours, theirs = both()
    assert ours == theirs
    assert len(set(seen)) > 1  # the edits did change something
