"""What runs left behind is removed later, and nothing else ever is."""

import pytest

from checks.base.leftovers import sweep

NAME = "iobands-BenchioFPP-0123456789"


@pytest.fixture
def disk(tmp_path):
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


@pytest.fixture
def notes(tmp_path):
    return tmp_path / "leftovers"


def filled(directory):
    (directory / "deep").mkdir(parents=True)
    (directory / "deep" / "proc000000.dat").write_bytes(b"x")
    return directory


def test_the_directory_of_a_run_that_is_over_goes(disk, notes):
    own = filled(disk / NAME)
    other = filled(disk / "iobands-BenchioSSF-abcdefghij")
    assert sweep(notes, own) == []
    assert not own.exists()
    assert other.exists()
    assert not notes.exists()


def test_nothing_to_do(disk, notes):
    assert sweep(notes, None) == []
    assert sweep(notes, disk / NAME) == []
    assert not notes.exists()


def test_one_that_cannot_be_removed_now_is_removed_later(disk, notes):
    own = disk / NAME
    disk.rmdir()  # as a file system that is not mounted
    assert sweep(notes, own) == [own]
    assert sweep(notes, None) == [own]
    disk.mkdir()
    filled(own)
    assert sweep(notes, None) == []
    assert not own.exists()
    assert list(notes.iterdir()) == []


@pytest.mark.parametrize("name", ["precious", "iobands-", "iobands-BenchioFPP-0123456789x", ".."])
def test_a_directory_with_another_name_stays(disk, notes, name):
    precious = disk / name
    precious.mkdir(exist_ok=True)
    assert sweep(notes, precious) == []
    notes.mkdir(exist_ok=True)
    (notes / "iobands-note").write_text(f"{precious}\n", encoding="utf-8")
    assert sweep(notes, None) == []
    assert precious.exists()


def test_a_link_is_no_run_directory(disk, notes):
    precious = filled(disk / "precious")
    (disk / NAME).symlink_to(precious)
    assert sweep(notes, disk / NAME) == [disk / NAME]
    assert (precious / "deep" / "proc000000.dat").exists()
