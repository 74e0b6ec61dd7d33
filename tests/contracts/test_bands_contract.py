"""Contract 3: the golden files of all its versions keep their meaning."""

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from iobands.bands import load_bands, parse_bands
from iobands.bands.file import epoch_yaml
from iobands.model import FileError

GOLDEN = Path(__file__).parent / "golden"
BANDS, SECOND, THIRD = (load_bands(GOLDEN, f"golden{number}") for number in ("", "-2", "-3"))
FPP = {"tool": "benchio", "pattern": "fpp", "medium": "nvme", "variable": "write_bw"}


def at(*when, hours=0):
    return datetime(*when, tzinfo=timezone(timedelta(hours=hours)))


@pytest.mark.parametrize(
    ("when", "epoch"),
    [
        (at(2023, 10, 8, 23, 59, 59), None),
        (at(2023, 10, 9), "first"),
        (at(2024, 5, 1, 10, 59, 59), "first"),
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


def test_what_version_2_added():
    _, calibrated, repaired = SECOND.epochs
    band, kept = calibrated.bands
    assert (calibrated.reason, calibrated.continues) == ("the bands are new", True)
    assert (band.state, band.runs, band.source) == ("active", 60, "own history")
    assert band.intervals == {"floor": (2, 5), "lower_quartile": (20, 40)}
    assert (kept.state, kept.intervals, kept.source) == (None, {}, "another one")
    assert (repaired.reason, repaired.continues, repaired.bands) == ("disks replaced", False, ())


def test_what_version_3_added():
    assert (THIRD.least_change, SECOND.least_change) == (0.025, None)
    text = (GOLDEN / "golden-3.yaml").read_text()
    path = Path("golden-3.yaml")
    assert parse_bands(text.replace("2.5", "0").encode(), path).least_change == 0
    for old, new, mentions in (
        ("schema: 3", "schema: 2", "line 4: least_change_percent"),
        ("2.5", "100", "least_change_percent is 100; write a number from 0 to below 100"),
        ("2.5", "-1", "least_change_percent is -1"),
        ("2.5", ".nan", "least_change_percent is nan"),
        ("2.5", "5 %", "least_change_percent is '5 %'"),
    ):
        with pytest.raises(FileError, match=re.escape(mentions)):
            parse_bands(text.replace(old, new, 1).encode(), path)


def test_epochs_that_commands_add_are_in_files_of_their_own():
    written, learned = THIRD.epochs
    assert (written.name, learned.name) == ("disks", "learned-2026-11-21")
    assert (learned.continues, learned.since) == (True, at(2026, 11, 21, 1, 30))
    assert (learned.bands[0].median, learned.bands[0].state) == (150, "active")


def test_what_version_4_added():
    (learned,) = load_bands(GOLDEN, "golden-4").epochs
    assert learned.runs_since == at(2026, 6, 1, 1, 30)
    # and it is written in the same form again
    path = GOLDEN / "golden-4" / "learned-2026-11-21.yaml"
    assert epoch_yaml("golden-4", learned) == path.read_text(encoding="utf-8")
    with pytest.raises(FileError, match="runs_since"):
        parse_bands(path.read_bytes().replace(b"schema: 4", b"schema: 3"), path, "golden-4")


def test_what_version_5_added():
    once, monthly = load_bands(GOLDEN, "golden-5").maintenance
    assert (once.begin, once.end) == (at(2026, 12, 2, 8, hours=1), at(2026, 12, 2, 18, hours=1))
    assert (monthly.repeat, monthly.zone) == ("FREQ=MONTHLY;BYDAY=1WE", "Europe/Paris")
    assert (once.file_systems, monthly.file_systems) == ((), ("scratch",))
    path = GOLDEN / "golden-5.yaml"
    with pytest.raises(FileError, match="maintenance"):
        parse_bands(path.read_bytes().replace(b"schema: 5", b"schema: 4"), path)


@pytest.mark.parametrize(
    ("since", "continues", "void"),
    [
        ("2026-05-31", "false", False),
        ("2026-08-01", "false", True),
        ("2026-08-01", "true", False),
        ("2026-11-22", "false", False),
    ],
)
def test_learned_bands_are_void_if_an_epoch_began_amid_their_runs(tmp_path, since, continues, void):
    learned = GOLDEN / "golden-4" / "learned-2026-11-21.yaml"
    directory = tmp_path / "golden-4"
    directory.mkdir()
    (directory / learned.name).write_bytes(learned.read_bytes())
    epoch = f"{{name: upgrade, since: {since}, source: me, continues: {continues}, bands: []}}"
    text = f"schema: 4\nsystem: golden-4\nepochs: [{epoch}]\n"
    (directory / "upgrade.yaml").write_text(text)
    found = {each.name: each for each in load_bands(tmp_path, "golden-4").epochs}
    assert (found["learned-2026-11-21"].bands == ()) is void


def test_an_epoch_that_continues_compares_with_the_one_before():
    assert SECOND.compares_since(at(2023, 1, 1)) is None
    assert SECOND.compares_since(at(2024, 1, 1)) == at(2023, 10, 9)
    assert SECOND.compares_since(at(2024, 6, 1)) == at(2023, 10, 9)
    assert SECOND.compares_since(at(2025, 6, 1)) == at(2025, 1, 1)


@pytest.mark.parametrize(
    ("old", "new", "mentions"),
    [
        (
            "schema: 2",
            "schema: 1",
            "reason is 'the bands are new'; leave it out",
        ),
        ("state: active", "state: perhaps", "state is 'perhaps'; write provisional"),
        ("[20, 40]", "[33, 40]", "does not contain"),
        ("[20, 40]", "[20]", "lower_quartile is [20]; write the two ends"),
        ("[20, 40]", "[.nan, 40]", "finite"),
        ("continues: true", "continues: 1", "true or false"),
        ("reason: disks replaced", "reason: 5", "reason is 5; write a string"),
        ("floor: [2, 5]", "flour: [2, 5]", "flour"),
    ],
)
def test_version_2_is_checked_at_load(old, new, mentions):
    text = (GOLDEN / "golden-2.yaml").read_text()
    with pytest.raises(FileError, match=re.escape(mentions)):
        parse_bands(text.replace(old, new, 1).encode(), Path("golden-2.yaml"))


@pytest.mark.parametrize(
    ("case", "verdicts"),
    [
        ("one", {0.001: "within", 9.313: "within", 9.32: "above"}),
        ("two", {0.001: "below", 1.99: "below", 2: "within", 99: "within"}),
        ("three", {1.99: "below", 2: "within", 8: "within", 8.01: "above"}),
    ],
)
def test_what_version_6_added(case, verdicts):
    bands = load_bands(GOLDEN, "golden-6")
    variable = "write_ratio" if case == "three" else "write_bw"
    fields = {"case": case, "nodes": 16, "tasks": 64, "gib": "100.0", "variable": variable}
    limit = bands.limit_for(fields, at(2024, 1, 1))
    assert {value: limit.verdict(value) for value in verdicts} == verdicts
    assert limit.reference() == (limit.value, None, None, limit.unit)
    assert limit.source == ("another page" if case == "two" else "a page")
    assert bands.band_for(fields, at(2024, 1, 1)) is None
    assert bands.limit_for({**fields, "nodes": 4}, at(2024, 1, 1)) is None
    assert bands.limit_for(fields, at(2023, 1, 1)) is None


def test_a_published_band_for_any_size_is_warned_of():
    (warning,) = load_bands(GOLDEN, "golden-6").warnings
    path = GOLDEN / "golden-6.yaml"
    names = "match does not name nodes, tasks, gib; add the values of the source"
    assert warning == f"{path}, line 20: epoch 'published', band 4: {names}"
    learned = GOLDEN / "golden-4" / "learned-2026-11-21.yaml"
    assert parse_bands(learned.read_bytes(), learned, "golden-4").warnings == ()


def test_an_epoch_with_limits_is_written_as_it_was_read():
    path = GOLDEN / "golden-6.yaml"
    (epoch,) = load_bands(GOLDEN, "golden-6").epochs
    text = epoch_yaml("golden-6", epoch)
    assert text.startswith("schema: 6\n")
    assert parse_bands(text.encode(), path).epochs == (epoch,)


@pytest.mark.parametrize(
    ("old", "new", "mentions"),
    [
        ("schema: 6", "schema: 5", "at_most is 9.313; leave it out, or set schema to 6"),
        ("about: 4", "about: 0", "about is 0; write a finite number above 0"),
        ("about: 4", "about: null", "about is empty; write a finite number above 0"),
        ("about: 4", "about: 4\n        floor: 2", "floor is 2; leave it out with at_most"),
        ("about: 4", "about: 4\n        at_most: 5", "about is 4; leave it out with at_most"),
        ("about: 4", "median: 4", "lower_quartile is missing; add it"),
    ],
)
def test_version_6_is_checked_at_load(old, new, mentions):
    text = (GOLDEN / "golden-6.yaml").read_text()
    with pytest.raises(FileError, match=re.escape(mentions)):
        parse_bands(text.replace(old, new, 1).encode(), Path("golden-6.yaml"))
