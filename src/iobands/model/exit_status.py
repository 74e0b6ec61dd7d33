"""The exit statuses of a monitoring plug-in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

#: Exit statuses of a monitoring plug-in.
OK, WARNING, CRITICAL, UNKNOWN = range(4)

#: Exit statuses, the worst first: a missing sample may hide a loss, a known loss hides nothing.
WORST_STATUS_FIRST: Final = (CRITICAL, UNKNOWN, WARNING, OK)


def worst(statuses: Iterable[int]) -> int:
    """Return the exit status for all of `statuses`: 2 before 3 before 1 before 0.

    A missing sample must not hide a known loss, and may itself be as bad. `watch` is a suspicion
    that the next runs settle.
    """
    found = set(statuses)
    return next((status for status in WORST_STATUS_FIRST if status in found), OK)
