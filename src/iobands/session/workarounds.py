"""Workarounds for two faults of ReFrame 4.10, in its own process.

A signal makes it raise an `Exception`, which logging swallows, and it goes on. And it computes how
long to sleep from the machine's clock: when that is put back an hour, it sleeps for an hour.
"""

from __future__ import annotations

import time
from importlib import import_module
from types import SimpleNamespace
from typing import Final

_MEASURE_TIME: Final = ("reframe.frontend.executors.policies", "reframe.core.schedulers.local")


class ForceExitError(KeyboardInterrupt):
    """A request to end, which passes every `except Exception`, as Ctrl-C does."""


def apply_workarounds() -> None:
    """Let every signal end this ReFrame, and no change of the clock stop its polls and limits."""
    vars(import_module("reframe.frontend.executors"))["ForceExitError"] = ForceExitError
    began = time.time() - time.monotonic()
    steady = SimpleNamespace(time=lambda: began + time.monotonic(), sleep=time.sleep)
    for name in _MEASURE_TIME:
        vars(import_module(name))["time"] = steady
