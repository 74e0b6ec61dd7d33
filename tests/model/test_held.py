"""One process at a time holds a file, even if the file system has no locks."""

from __future__ import annotations

import errno
import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from iobands.model import held

#: Adds lines to a file, each time by reading and rewriting all of it; no line may be lost.
WRITER = """
import errno, fcntl, sys
from pathlib import Path
from iobands.model import held
path, number = Path(sys.argv[1]), int(sys.argv[2])
if number:
    def flock(*_): raise OSError(number, "no locks here")
    fcntl.flock = flock
for _ in range(20):
    with held(path.with_suffix(".lock"), 60):
        path.write_text(path.read_text() + "x")
"""


@pytest.mark.parametrize("number", [0, errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_two_writers_lose_nothing(number: int, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("")
    path.with_suffix(".lock").write_text("")  # from a time when the file system had locks
    command = [sys.executable, "-c", WRITER, str(path), str(number)]
    writers = [subprocess.Popen(command) for _ in range(2)]
    assert [each.wait(120) for each in writers] == [0, 0]
    assert path.read_text() == "x" * 40
    assert sorted(each.name for each in tmp_path.iterdir()) == ["log", "log.lock"]


def test_who_waits_too_long_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(TimeoutError, match="another process holds it"), held(path, 0.2):
            raise AssertionError
    with held(path, 0):
        assert path.exists()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"), held(tmp_path / "lock", 0):
        raise AssertionError
    assert not (tmp_path / "elsewhere").exists()
