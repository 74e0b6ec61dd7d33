"""Whether clocks agree: a time that was taken between two others must lie between them.

So nothing has to happen on several nodes at the same time. A slow launcher only makes the span
longer; it never makes a correct clock look wrong. Pure functions.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

#: The default number of seconds by which clocks may differ. Make and rsync compare seconds.
DEFAULT_SKEW_SECONDS = 1.0


@dataclass(frozen=True)
class Span:
    """A span between two times of one clock, in seconds since 1970."""

    begin: float
    end: float

    def off(self, time: float) -> float:
        """How far `time` is ahead of the span, or behind it if negative; 0 within it."""
        return max(0.0, time - self.end) + min(0.0, time - self.begin)


def allowed_skew(extras: Mapping) -> float:
    """By how many seconds the clocks of a partition may differ."""
    return extras.get("max_clock_skew_seconds", DEFAULT_SKEW_SECONDS)


def node_times(text: str) -> dict[str, float]:
    """The time that each node printed, the latest if several."""
    return {
        name: float(time)
        for name, time in sorted(re.findall(r"^iobands-node (\S+) (\d+\.\d+)$", text, re.MULTILINE))
    }


def disagreement(whose: str, off: float, than: str, allowed: float) -> str | None:
    """One line if the clock of `whose` is off by more than allowed."""
    if abs(off) <= allowed:
        return None
    side = "ahead of" if off > 0 else "behind"
    return f"{whose} {abs(off):.1f} s {side} {than}; {allowed:g} s are allowed"
