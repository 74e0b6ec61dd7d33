"""Gives both programs of a pair the same state of memory."""

from __future__ import annotations

import mmap
import os
import shutil
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.launch import run


def warm_memory(size: int) -> None:
    """Touch `size` bytes of memory and release them.

    On a virtual machine, a page that was not touched lately may have to be fetched from the host
    first, which takes longer than filling it. Which program finds such pages would depend on what
    ran before it.
    """
    with mmap.mmap(-1, size) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        # A byte of each page will do: the kernel fills the rest with zeros.
        memory[:: mmap.PAGESIZE] = bytes(-(-size // mmap.PAGESIZE))


def drop_files(directory: Path) -> None:
    """Drop the pages of all files in a directory from memory.

    Raises:
        BenchmarkError: some pages stayed, so a read would not come from the disk.
    """
    files = [path for path in sorted(directory.iterdir()) if path.is_file()]
    for path in files:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
    if not files or shutil.which("fincore") is None:
        return
    resident = run(["fincore", "--bytes", "--noheadings", "--output", "res", *files]).split()
    if any(int(size) for size in resident):
        raise BenchmarkError(f"pages of the files in {directory} stay in memory")
