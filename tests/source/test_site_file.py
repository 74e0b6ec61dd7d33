"""An unusable site file is named, whatever is wrong with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iobands.commands.cli import site_files
from iobands.model import FileError
from iobands.source.site_file import read_site_file

PARTITION = {"name": "local", "extras": {"filesystems": {"disk": {"path": "/disk"}}}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("system = {}", "KeyError: 'partitions'"),
        ("raise SystemExit(0)", "line 1: SystemExit: 0"),
        (f"system = {{'partitions': [{PARTITION}]}}".replace("path", "pth"), "KeyError: 'path'"),
        (f"system = {{'partitions': [{PARTITION}]}}".replace("{'path'", "7, {'a'"), "line 1"),
        (
            f"system = {{'hostnames': ['login['], 'partitions': [{PARTITION}]}}",
            r"hostnames: 'login\[' is no regular expression: unterminated character set",
        ),
    ],
)
def test_a_mistake_is_named_with_its_file(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "here.py"
    path.write_text(f"system = {{'partitions': [{PARTITION}]}}\n")
    assert read_site_file(tmp_path, "here").paths == {"disk": "/disk"}
    path.write_text(text)
    with pytest.raises(FileError, match=f"here.py.*{said}"):
        read_site_file(tmp_path, "here")


def test_a_pipe_in_place_of_a_site_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "here.py")
    with pytest.raises(FileError, match=r"here\.py: cannot be read: is not a regular file"):
        read_site_file(tmp_path, "here")


def test_a_site_file_that_does_not_end_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks at something that never answers, as a file system whose server is down."""
    monkeypatch.setattr("iobands.model.files._ANSWER", 0.1)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "here.py").write_text(f"open({str(tmp_path / 'pipe')!r})")
    why = r"here\.py: did not end within 0\.1 s; it may wait for a file system that does not answer"
    with pytest.raises(FileError, match=why):
        read_site_file(tmp_path, "here")


def test_a_command_runs_a_site_file_once(tmp_path: Path) -> None:
    """It may wait for a disk that does not answer."""
    ran = tmp_path / "ran"
    text = f"import os\nos.mkdir({str(ran)!r})\nsystem = {{'partitions': [{PARTITION}]}}"
    (tmp_path / "here.py").write_text(text)
    read = site_files(tmp_path)
    assert read("here") == read("here")
    assert ran.is_dir()
