"""Where file systems are mounted."""

from __future__ import annotations

import re
from pathlib import Path


def mounts() -> list[tuple[str, str]]:
    """Return where each file system is mounted, bind mounts included, and its type.

    No file system is touched, as one may hang. The list is empty where /proc is missing.
    """
    try:
        table = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return mounts_in(table)


def mounts_in(table: str) -> list[tuple[str, str]]:
    """Return points and types in the form of /proc/self/mountinfo, see proc(5)."""
    found = []
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        point, kind = before.split()[4:5], after.split()[:1]
        if point and kind:
            plain = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), point[0])
            found.append((plain, kind[0]))
    return found
