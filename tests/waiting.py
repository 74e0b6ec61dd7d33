"""Waiting for another process or thread."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until `condition` holds; the limit is generous, as only a failed test reaches it."""
    deadline = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
