"""New bands from a site's own runs: which runs count, what is left out, and the epochs."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from iobands.bands import Bands, load_bands
from iobands.bands.file import write_epoch
from iobands.judge.calibrate import Calibration, calibrate, epoch_by_hand
from iobands.snapshot import State
from tests.factory import NOW, daily
from tests.sites import DAY, SiteFiles, levels, slow

HOUR = timedelta(hours=1)


@pytest.fixture
def files(tmp_path: Path) -> SiteFiles:
    return SiteFiles(tmp_path)


def learn(files: SiteFiles, now: datetime = NOW, **options: object) -> Calibration:
    (found,) = calibrate(files.judge(now), **options)
    return found


def accept(files: SiteFiles, now: datetime = NOW) -> None:
    """Calibrate, and write the resulting epoch."""
    found = learn(files, now)
    assert found.epoch is not None
    write_epoch(files.bands, found.system, found.epoch)


def bands(files: SiteFiles) -> Bands:
    return load_bands(files.bands, "here")


def runs(found: Calibration) -> dict[str, int]:
    return {one.label: one.band.runs for one in found.learned}


def reasons(found: Calibration) -> dict[str, str]:
    return dict(found.left_out)


def test_a_new_epoch_continues_the_one_before(files: SiteFiles) -> None:
    files.write(daily(levels((80, 1))))
    found = learn(files)
    assert (found.system, found.left_out) == ("here", ())
    assert not files.bands.exists()
    accept(files)
    (epoch,) = bands(files).epochs
    assert (epoch.name, epoch.since, epoch.continues) == ("learned-2026-11-21", NOW, True)
    (band,) = epoch.bands
    assert band.state == "active"
    assert band.median == pytest.approx(1.5, rel=0.03)
    # calibrating again gives nothing new, and with more runs a second epoch next to the first
    again = learn(files, NOW + HOUR)
    assert (again.epoch, again.learned, len(again.left_out)) == (None, (), 1)
    files.write(daily(levels((130, 1))))
    accept(files, NOW + HOUR)
    names = [epoch.name for epoch in bands(files).epochs]
    assert names == ["learned-2026-11-21", "learned-2026-11-21-2"]
    assert bands(files).compares_since(NOW + HOUR) is None


def test_a_series_over_many_decades_has_a_band_that_its_file_can_hold(files: SiteFiles) -> None:
    over = 10.0 ** np.random.default_rng(1).uniform(-6, 6, 100)
    files.write(daily([float(f"{each:.6g}") for each in over]))
    accept(files)
    (band,) = bands(files).epochs[0].bands
    assert band.floor == 1e-12


def test_a_frozen_band_stays_until_the_tool_changes(files: SiteFiles) -> None:
    files.write(daily(levels((210, 1))))
    accept(files)
    files.write(daily(levels((300, 1))))
    again = learn(files, NOW + HOUR)
    assert (again.epoch, again.learned) == (None, ())
    assert "frozen" in reasons(again)["disk fpp write_bw"]
    new = daily([1.6 * value for value in levels((40, 1), seed=2)], tool_version="2.0")
    files.write([*daily(levels((300, 1)), last=50), *new])
    (learned,) = learn(files, NOW + HOUR).learned
    assert (learned.band.state, learned.band.runs) == ("provisional", pytest.approx(40, abs=2))
    assert learned.band.median == pytest.approx(1.6 * 1.5, rel=0.05)
    assert learned.before is not None
    # frozen anew, and now by the runs of the new tool
    accept(files, NOW + HOUR)
    assert "unchanged" in reasons(learn(files, NOW + 2 * HOUR))["disk fpp write_bw"]


@pytest.mark.parametrize(
    ("old", "mixed"),
    [
        ({"tool_version": "0.9"}, False),
        ({"fsync": "false"}, False),
        ({"fsync": "null"}, False),
        ({"suite_version": "1.0.0"}, False),
        ({"suite_version": "0.2.7"}, True),
        ({}, True),
    ],
)
def test_what_is_never_mixed(files: SiteFiles, old: dict[str, str], mixed: bool) -> None:
    values = levels((70, 1))
    files.write([*daily(values[:40], last=60, **old), *daily(values[40:])])
    (learned,) = learn(files).learned
    assert learned.band.runs == pytest.approx(70 if mixed else 30, abs=2)


def test_an_open_change_gives_no_band_and_a_rebaseline_does(files: SiteFiles) -> None:
    files.write([*daily(levels((70, 1), (30, 0.5))), *daily(levels((100, 1)), perf_var="read_bw")])
    found = learn(files)
    assert list(runs(found)) == ["disk fpp read_bw"]
    assert list(reasons(found)) == ["disk fpp write_bw"]
    files.act("rebaseline")
    later = learn(files)
    assert runs(later)["disk fpp write_bw"] == pytest.approx(30, abs=2)
    (write,) = (one.band for one in later.learned if one.label == "disk fpp write_bw")
    assert write.median == pytest.approx(0.75, rel=0.05)


def test_an_epoch_by_hand_does_so_too(files: SiteFiles) -> None:
    files.write(daily(levels((70, 1), (30, 0.5))))
    since = NOW - 29.5 * DAY
    write_epoch(files.bands, "here", epoch_by_hand("slower", since, "fuller", bands(files), False))
    (learned,) = learn(files).learned
    assert learned.band.median == pytest.approx(0.75, rel=0.05)


def test_a_member_of_a_shared_alert_gets_no_band(files: SiteFiles) -> None:
    found = learn(files.days(slow(0.75, since=8, file_system="a")))
    assert {label.split()[0] for label in runs(found)} == {"b"}
    assert {label.split()[0] for label in reasons(found)} == {"a"}
    assert all("a writes" in why for why in reasons(found).values())


def test_a_watched_series_waits(files: SiteFiles) -> None:
    for low in range(1, 12):
        site = files.write(daily(levels((112 - low, 1), (low, 0.8)))).read()
        if site.counts().get(State.WATCH):
            assert runs(learn(files)) == {}
            break
    else:
        pytest.fail("never watched")


@pytest.mark.parametrize(("runs", "factor"), [(30, 0.5), (20, 1.5)])
def test_runs_of_changes_that_are_over_are_left_out(
    files: SiteFiles, runs: int, factor: float
) -> None:
    (learned,) = learn(files.write(daily(levels((60, 1), (runs, factor), (60, 1))))).learned
    assert learned.band.runs == pytest.approx(120, abs=3)
    assert learned.band.median == pytest.approx(1.5, rel=0.03)
    assert learned.band.maximum < 1.5 * 1.3
    assert len(learned.notes) >= 1


def test_after_an_improvement_that_was_adopted_only_its_runs_count(files: SiteFiles) -> None:
    (learned,) = learn(files.write(daily(levels((100, 1), (60, 1.5))))).learned
    assert learned.band.runs == pytest.approx(60, abs=3)
    assert learned.band.median == pytest.approx(1.5 * 1.5, rel=0.03)


@pytest.mark.parametrize("parts", [[(100, 1.0), (60, 1.5)], [(8, 0.5), (100, 1.0)]])
def test_a_calibration_raises_nothing_in_the_past(
    files: SiteFiles, parts: list[tuple[int, float]]
) -> None:
    values = levels(*parts, (3, parts[-1][1]))
    before = files.write(daily(values[:-3])).read()
    accept(files)
    after = files.write(daily(values, last=-2.75)).read(NOW + 3 * DAY)
    assert after.series[0].status.band.state == "active"
    found = [site.series[0].status.evidence.changes for site in (before, after)]
    assert found[0] == found[1]


def test_failed_runs_and_too_few_runs(files: SiteFiles) -> None:
    files.write([*daily([*levels((19, 1)), None]), *daily([1.0], perf_var="read_bw")])
    found = learn(files)
    assert (found.epoch, found.learned) == (None, ())
    assert len(found.left_out) == 2


def test_since_and_part_of_a_label(files: SiteFiles) -> None:
    files.write([*daily(levels((60, 1))), *daily(levels((60, 1), seed=2), perf_var="read_bw")])
    found = learn(files, since=NOW - 30 * DAY, part="read")
    assert runs(found) == {"disk fpp read_bw": pytest.approx(30, abs=2)}
    assert found.left_out == ()
    assert list(calibrate(files.judge(), "nowhere")) == []


def test_bands_of_other_series_hold_on(files: SiteFiles) -> None:
    files.write([*daily(levels((60, 1))), *daily(levels((60, 1), seed=2), perf_var="read_bw")])
    accept(files)
    before = {band.match["variable"]: band for band in bands(files).epochs[0].bands}
    files.write([*daily(levels((80, 1))), *daily(levels((60, 1), seed=2), perf_var="read_bw")])
    accept(files, NOW + HOUR)
    after = {band.match["variable"]: band for band in bands(files).epochs[1].bands}
    assert after["read_bw"].median == before["read_bw"].median
    assert after["write_bw"].runs > before["write_bw"].runs


def test_calibrating_begins_at_the_newest_rebaseline(files: SiteFiles) -> None:
    values = np.array(levels((250, 1), (65, 0.7)))
    files.write(daily(values[:250]))
    accept(files, NOW)
    (frozen,) = bands(files).epochs[0].bands
    assert frozen.state == "frozen"
    files.write(daily(values, last=-64.75))
    now = NOW + 65 * DAY
    files.act("rebaseline", now=now)
    (learned,) = learn(files, now).learned
    assert (learned.band.state, learned.before) == ("active", None)
    assert learned.band.runs == pytest.approx(65, abs=2)
    accept(files, now)
    # the frozen band does not continue: the new one is in force
    judgement = files.judge(now + HOUR)
    (series,) = judgement.snapshot.series
    band = judgement.judged[series.key].bands.band_for(series.key.fields(), now + HOUR)
    assert band.median == learned.band.median


def test_a_rebaseline_ends_a_band_that_was_learned_before_the_drop_was_known(
    files: SiteFiles,
) -> None:
    values = levels((100, 1), (40, 0.8))
    files.write(daily(values[:102], last=38.25))
    accept(files, NOW - 38 * DAY)
    files.write(daily(values)).act("rebaseline")
    (series,) = files.read(NOW + HOUR).series
    assert series.status.state is State.HEALTHY
    accept(files, NOW + HOUR)
    bands_now = files.judge(NOW + 2 * HOUR).judged[series.key].bands
    band = bands_now.band_for(series.key.fields(), NOW + 2 * HOUR)
    assert (band.state, band.runs) == ("provisional", pytest.approx(40, abs=2))


@pytest.mark.parametrize("variable", ["write_bw", "read_bw"])
def test_a_rebaseline_takes_no_band_of_another_series(files: SiteFiles, variable: str) -> None:
    values = levels((70, 1), (30, 0.5))
    other = {"write_bw": "read_bw", "read_bw": "write_bw"}[variable]
    steady = daily(levels((100, 1)), perf_var=other)
    files.write([*daily(values[:70], last=30.25, perf_var=variable), *steady[:70]])
    accept(files, NOW - 30 * DAY)
    files.write([*daily(values, perf_var=variable), *steady])
    files.act("rebaseline", f"disk fpp {variable}")
    epoch = learn(files, part=variable).epoch
    assert epoch is not None
    assert sorted(band.match["variable"] for band in epoch.bands) == ["read_bw", "write_bw"]


def test_epochs_by_hand_keep_the_bands_or_not(files: SiteFiles) -> None:
    files.write(daily(levels((80, 1))))
    accept(files)
    for number, (name, keep) in enumerate((("kept", True), ("none", False)), 1):
        since = NOW + number * DAY
        write_epoch(files.bands, "here", epoch_by_hand(name, since, "r", bands(files), keep))
    assert [len(epoch.bands) for epoch in bands(files).epochs] == [1, 1, 0]
    assert bands(files).compares_since(NOW) is None
    assert bands(files).compares_since(NOW + DAY) == NOW + DAY
    assert bands(files).compares_since(NOW + 3 * DAY) == NOW + 2 * DAY
