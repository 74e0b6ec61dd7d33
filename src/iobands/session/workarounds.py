"""Workarounds for three faults of ReFrame 4.10, in its own process.

A signal makes it raise an `Exception`, which logging swallows, and it goes on. It computes how
long to sleep from the machine's clock: when that is put back an hour, it sleeps for an hour. And
where the local time has an offset with seconds, it writes one that is no RFC 3339.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from importlib import import_module
from types import SimpleNamespace
from typing import Final

_MEASURE_TIME: Final = ("reframe.frontend.executors.policies", "reframe.core.schedulers.local")


class ForceExitError(KeyboardInterrupt):
    """A request to end, which passes every `except Exception`, as Ctrl-C does.

    ReFrame says of both that a user cancelled the run, so the signal is named here.
    """

    def __init__(self, said: str) -> None:
        """Say it at once; a buffered stream may be in use by what was interrupted."""
        super().__init__(said)
        with suppress(OSError):  # nobody may read it any more
            os.write(sys.stderr.fileno(), f"iobands: {said}\n".encode())


def apply_workarounds() -> None:
    """Let every signal end this ReFrame, and no change of the clock stop its polls and limits."""
    vars(import_module("reframe.frontend.executors"))["ForceExitError"] = ForceExitError
    began = time.time() - time.monotonic()
    steady = SimpleNamespace(time=lambda: began + time.monotonic(), sleep=time.sleep)
    for name in _MEASURE_TIME:
        vars(import_module(name))["time"] = steady
    if time.localtime().tm_gmtoff % 60:
        os.environ["TZ"] = "UTC"
        time.tzset()
