"""The error about a file that cannot be written names the file, not its temporary replacement."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iobands.model import in_time, open_regular, read_small, replace_file


def test_a_file_that_cannot_be_replaced_is_named_by_its_own_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        replace_file(tmp_path / "nowhere" / "file", b"content")
    assert raised.value.filename == f"{tmp_path}/nowhere/file"


def test_a_directory_that_is_in_the_way_is_named_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(IsADirectoryError) as error:
        replace_file(tmp_path / "file", b"content")
    assert error.value.filename == str(tmp_path / "file")
    assert [*tmp_path.iterdir()] == [tmp_path / "file"]


def test_a_directory_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError) as failed:
        read_small(tmp_path)
    assert failed.value.filename == str(tmp_path)


def test_work_that_panics_is_not_waited_for() -> None:
    """Panics of polars are no subclasses of `Exception`."""

    def work() -> None:
        raise BaseException("a panic")

    with pytest.raises(RuntimeError, match="a panic"):
        in_time(60, work, TimeoutError("late"))


def test_a_pipe_is_not_waited_for_even_if_it_came_just_before(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with open_regular(tmp_path / "file") as stream:
        assert stream.read() == b"x"
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(OSError, match="not a regular file"):
            open_regular(path)
    with pytest.raises(OSError, match="Is a directory"):
        open_regular(tmp_path)
