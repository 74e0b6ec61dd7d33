"""Waiting for what another process or thread does."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for what must come; the bound is generous, since it only ends a failed test."""
    deadline = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
