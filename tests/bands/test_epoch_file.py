"""Epochs in separate files: what is written is loaded again unchanged, and no file is rewritten."""

from __future__ import annotations

import resource
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iobands.bands import Band, Epoch, load_bands
from iobands.bands.file import bands_path, epoch_yaml, write_epoch
from iobands.model import FileError

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
EPOCH = Epoch("new", WHEN, "own", (BAND,), "because: of it", True)


def test_an_epoch_comes_back_as_it_was(tmp_path: Path) -> None:
    path = write_epoch(tmp_path / "bands", "here", EPOCH)
    assert path == tmp_path / "bands" / "here" / "new.yaml"
    assert load_bands(tmp_path / "bands", "here").epochs == (EPOCH,)
    assert [each.name for each in path.parent.iterdir()] == ["new.yaml"]


@pytest.mark.parametrize(
    "text",
    [
        *("no", "Yes", "on", "OFF", "12:30", "1:02:03.5", "010", "1_000", "=", "<<", "0b1", "0x_f"),
        *("~", "2026-11-21", "1e3", "-.inf", "true", "null", "a: b", "'", "ja, nein", " x", "ü"),
        *("a/b", "../up", "# x", "two\nlines", "a\u2028b"),
    ],
)
def test_any_text_comes_back_as_it_was(tmp_path: Path, text: str) -> None:
    band = replace(BAND, match={**MATCH, "file_system": text}, source=text, epoch=text)
    epoch = replace(EPOCH, name=text, source=text, reason=text, bands=(band,))
    path = write_epoch(tmp_path, "here", epoch)
    assert path.parent == tmp_path / "here"
    assert load_bands(tmp_path, "here").epochs == (epoch,)


FIGURE = st.floats(1e-6, 1e6)


@settings(max_examples=40)
@given(
    st.lists(FIGURE, min_size=5, max_size=5).map(sorted),
    st.none() | st.integers(1, 500),
    st.sampled_from([None, "provisional", "active", "frozen"]),
    st.booleans(),
    st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)),
)
def test_any_band_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory,
    figures: list[float],
    runs: int | None,
    state: str | None,
    continues: bool,
    since: datetime,
) -> None:
    floor, low, median, high, top = figures
    band = replace(
        BAND,
        floor=floor,
        lower_quartile=low,
        median=median,
        upper_quartile=high,
        maximum=top,
        runs=runs,
        state=state,
        intervals={"median": (low, high)},
    )
    offset = timezone(timedelta(hours=1))
    epoch = replace(EPOCH, bands=(band,), continues=continues, since=since.replace(tzinfo=offset))
    directory = tmp_path_factory.mktemp("bands")
    write_epoch(directory, "here", epoch)
    assert load_bands(directory, "here").epochs == (epoch,)


def test_nothing_that_is_there_is_rewritten(tmp_path: Path) -> None:
    path = bands_path(tmp_path, "here", EPOCH)
    path.parent.mkdir()
    path.write_text("mine")
    with pytest.raises(FileError):
        write_epoch(tmp_path, "here", EPOCH)
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    "wrong",
    [
        replace(EPOCH, name=" "),
        replace(EPOCH, source=""),
        replace(EPOCH, bands=(replace(BAND, unit="MB/s"),)),
        replace(EPOCH, bands=(replace(BAND, median=9.0),)),
        replace(EPOCH, bands=(BAND, BAND)),
        replace(EPOCH, bands=(replace(BAND, match={"colour": "red"}),)),
    ],
)
def test_what_breaks_the_contract_is_not_written(tmp_path: Path, wrong: Epoch) -> None:
    with pytest.raises(FileError):
        write_epoch(tmp_path, "here", wrong)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("a file")
    with pytest.raises(FileError):
        write_epoch(tmp_path, "here", EPOCH)


def test_the_files_of_a_system_are_read_together(tmp_path: Path) -> None:
    assert load_bands(tmp_path, "archer2").epochs == ()
    published = (ROOT / "config" / "bands" / "archer2.yaml").read_bytes()
    (tmp_path / "archer2.yaml").write_bytes(published)
    old = load_bands(tmp_path, "archer2")
    later = replace(EPOCH, name="later", since=WHEN + timedelta(days=9), bands=())
    for epoch in (later, EPOCH):
        write_epoch(tmp_path, "archer2", epoch)
    found = load_bands(tmp_path, "archer2")
    assert found.epochs == (*old.epochs, EPOCH, replace(later, bands=()))
    assert found.least_change == old.least_change
    assert (tmp_path / "archer2.yaml").read_bytes() == published
    # the epoch is not loaded for another system
    assert load_bands(tmp_path, "here").epochs == ()


def test_bands_that_are_carried_on_keep_their_source(tmp_path: Path) -> None:
    (tmp_path / "archer2.yaml").write_bytes(
        (ROOT / "config" / "bands" / "archer2.yaml").read_bytes()
    )
    old = load_bands(tmp_path, "archer2").epochs[0]
    write_epoch(tmp_path, "archer2", replace(EPOCH, bands=old.bands))
    carried = load_bands(tmp_path, "archer2").epochs[1]
    assert carried.bands == tuple(replace(band, epoch="new") for band in old.bands)


@pytest.mark.parametrize(
    ("name", "since"),
    [("new", WHEN + timedelta(days=1)), ("other", WHEN)],
)
def test_two_files_with_one_epoch_are_an_error(tmp_path: Path, name: str, since: datetime) -> None:
    write_epoch(tmp_path, "here", EPOCH)
    other = replace(EPOCH, name=name, since=since, bands=())
    (tmp_path / "here.yaml").write_text(epoch_yaml("here", other))
    with pytest.raises(FileError) as caught:
        load_bands(tmp_path, "here")
    assert "here.yaml" in str(caught.value)
    assert "new.yaml" in str(caught.value)


def test_a_file_of_another_system_is_an_error(tmp_path: Path) -> None:
    path = bands_path(tmp_path, "here", EPOCH)
    path.parent.mkdir()
    path.write_text(epoch_yaml("there", EPOCH))
    with pytest.raises(FileError, match="there"):
        load_bands(tmp_path, "here")


def test_a_full_disk_leaves_no_half_of_an_epoch(tmp_path: Path) -> None:
    write_epoch(tmp_path, "here", EPOCH)
    other = replace(EPOCH, name="other")
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
    try:
        with pytest.raises(FileError, match="File too large"):
            write_epoch(tmp_path, "here", other)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    assert load_bands(tmp_path, "here").epochs == (EPOCH,)
    assert write_epoch(tmp_path, "here", other).name == "other.yaml"
