"""A bands file that people keep gets an epoch, and stays theirs."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from iobands.bands_writer import added, free_name

from iobands.bands import Band, Epoch, load_bands
from iobands.model.schema import FileError

ROOT = Path(__file__).resolve().parents[2]
WHEN = datetime(2026, 11, 21, 1, 30, tzinfo=timezone.utc)
MATCH = {"pattern": "fpp", "stripe_count_asked": None, "nodes": 16.0, "variable": "read_bw"}
BAND = Band(
    match=MATCH,
    unit="GiB/s",
    lower_quartile=1.25,
    median=2.0,
    upper_quartile=3.0,
    maximum=4.5,
    floor=0.3,
    runs=60,
    epoch="new",
    source="own",
    state="active",
    intervals={"lower_quartile": (1.0, 1.5)},
)


def epoch(*bands: Band) -> Epoch:
    return Epoch("new", WHEN, "own", bands, "because: of it", True)


@pytest.mark.parametrize(
    "name", ["config/bands/archer2.yaml", "tests/contracts/golden/golden.yaml"]
)
def test_only_lines_are_added(name: str) -> None:
    path = ROOT / name
    there = load_bands(path)
    change = added(path, there.system, epoch(BAND), kept=there.epochs[-1].bands)
    lines = change.diff().splitlines()[2:]
    assert [line for line in lines if line.startswith("-")] == ["-schema: 1"]
    old = path.read_text().replace("schema: 1", "schema: 2")
    assert change.after.decode().startswith(old)


def test_what_is_written_loads_as_it_was_meant(tmp_path: Path) -> None:
    path = tmp_path / "bands" / "here.yaml"
    change = added(path, "here", epoch(BAND))
    assert not path.exists()
    change.write()
    (found,) = load_bands(path).epochs
    assert (found.since, found.reason, found.continues) == (WHEN, "because: of it", True)
    assert found.bands == (BAND,)
    assert [p.name for p in path.parent.iterdir()] == ["here.yaml"]


@pytest.mark.parametrize(
    "text",
    [
        *("no", "Yes", "on", "OFF", "12:30", "1:02:03.5", "010", "1_000", "=", "<<", "0b1", "0x_f"),
        *("~", "2026-11-21", "1e3", "-.inf", "true", "null", "a: b", "'", "ja, nein", " x", "ü"),
    ],
)
def test_any_text_comes_back_as_it_was(tmp_path: Path, text: str) -> None:
    path = tmp_path / "here.yaml"
    band = replace(BAND, match={**MATCH, "file_system": text, "nodes": 16.0}, source=text)
    added(path, "here", replace(epoch(band), name=text, source=text, reason=text)).write()
    (found,) = load_bands(path).epochs
    assert (found.name, found.source, found.reason) == (text, text, text)
    assert found.bands[0].match["file_system"] == text


def test_bands_that_hold_on_keep_their_source_and_yield_to_new_ones(tmp_path: Path) -> None:
    path = tmp_path / "archer2.yaml"
    path.write_bytes((ROOT / "config" / "bands" / "archer2.yaml").read_bytes())
    old = load_bands(path)
    first = old.epochs[0].bands[0]
    own = Band({**first.match, "stripe_count_asked": "1"}, "GiB/s", 1, 2, 3, None, 1, 60, "", "")
    added(path, "archer2", epoch(own), kept=old.epochs[0].bands).write()
    bands = load_bands(path)
    assert bands.epochs[0] == old.epochs[0]
    held = [band.median for band in old.epochs[0].bands[1:]]
    assert held[:3] == [90, 10, 10]
    assert [band.median for band in bands.epochs[1].bands] == [*held, 2]
    assert {band.source for band in bands.epochs[1].bands[:3]} == {first.source}
    # and once more: the source stays the first one's
    again = Epoch("again", datetime(2026, 12, 1, tzinfo=timezone.utc), "by hand", (), "x")
    added(path, "archer2", again, kept=bands.epochs[1].bands).write()
    assert load_bands(path).epochs[2].bands[0].source == first.source


@pytest.mark.parametrize(
    "text",
    [
        "schema: 1\nsystem: here\nepochs: []\n",
        '{"schema": 1, "system": "here", "epochs": []}',
        "schema: 1  # one\r\nsystem: 'here'\r\nepochs:\r\n- name: a\r\n  since: 2023-10-09\r\n"
        "  source: b\r\n  bands: []\r\n",
        "\ufeffschema: 1\nsystem: here\nepochs:\n"
        "- {name: a, since: 2023-10-09, source: b, bands: []}\n",
    ],
)
def test_other_ways_to_write(tmp_path: Path, text: str) -> None:
    path = tmp_path / "here.yaml"
    path.write_bytes(text.encode())
    before = load_bands(path).epochs
    added(path, "here", epoch(BAND)).write()
    assert load_bands(path).epochs == (*before, epoch(BAND))


def test_nothing_is_written_over_another_change(tmp_path: Path) -> None:
    path = tmp_path / "here.yaml"
    change = added(path, "here", epoch(BAND))
    path.write_text("mine")
    with pytest.raises(FileError, match="was changed meanwhile"):
        change.write()
    assert path.read_text() == "mine"


def test_a_broken_file_or_a_second_epoch_of_the_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "here.yaml"
    path.write_text("schema: 1\nsystem: here\n")
    with pytest.raises(FileError, match="epochs is missing"):
        added(path, "here", epoch())
    path.unlink()
    added(path, "here", epoch()).write()
    with pytest.raises(FileError, match="given twice"):
        added(path, "here", epoch())


def test_mode_and_link_stay(tmp_path: Path) -> None:
    target, path = tmp_path / "kept.yaml", tmp_path / "here.yaml"
    target.write_text("schema: 1\nsystem: here\nepochs: []\n")
    target.chmod(0o640)
    path.symlink_to(target)
    added(path, "here", epoch(BAND)).write()
    assert path.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert load_bands(path).epochs == (epoch(BAND),)


def test_free_name() -> None:
    assert free_name("a", []) == "a"
    assert free_name("a", ["a", "a-2"]) == "a-3"
