"""File systems that a test mounts for its own use, and unmounts again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(where: Path, *arguments: str | Path) -> Iterator[Path]:
    """Mount at `where`, and unmount even if the test fails."""
    where.mkdir(exist_ok=True)
    subprocess.run(["mount", *arguments, where], check=True)
    try:
        yield where
    finally:
        subprocess.run(["umount", where], check=True)


def in_memory(where: Path, options: str) -> AbstractContextManager[Path]:
    """Mount a file system in memory at `where`."""
    return mounted(where, "-t", "tmpfs", "-o", options, "tmpfs")


@contextmanager
def unanswered(where: Path) -> Iterator[Path]:
    """Mount a file system whose server never answers, as when that of NFS is down."""
    where.mkdir()
    server = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0"
    mount = ["mount", "-i", "-t", "fuse", "-o", options, "none", where]
    try:
        subprocess.run(mount, check=True, pass_fds=[server])
        yield where
    finally:
        os.close(server)  # ends the calls that wait
        subprocess.run(["umount", "-l", where], check=True)


def fill(path: Path) -> None:
    """Write to a file until its file system is full."""
    with path.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(bytes(4096))
