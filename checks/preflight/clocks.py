"""Whether clocks agree. A time that was taken between two others must lie between them.

So nothing need happen at once on several nodes: a slow launcher makes the span longer, and no
clock that is right ever looks wrong. Pure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

#: By how many seconds clocks may differ where the site says nothing. Make and rsync go by seconds.
DEFAULT_SKEW_SECONDS = 1.0


@dataclass(frozen=True)
class Span:
    """From one time to another, of one clock, in seconds since 1970."""

    begin: float
    end: float

    def off(self, time: float) -> float:
        """How far `time` is ahead of the span, or behind it where negative; 0 within it."""
        return max(0.0, time - self.end) + min(0.0, time - self.begin)


def allowed_skew(extras: Mapping) -> float:
    """By how many seconds the clocks of a partition may differ."""
    return extras.get("max_clock_skew_seconds", DEFAULT_SKEW_SECONDS)


def node_times(text: str) -> dict[str, float]:
    """The time of each node, the latest where it has several."""
    return {
        name: float(time)
        for name, time in sorted(re.findall(r"^iobands-node (\S+) (\d+\.\d+)$", text, re.MULTILINE))
    }


def disagreement(whose: str, off: float, than: str, allowed: float) -> str | None:
    """One line where the clock of `whose` is off by more than is allowed."""
    if abs(off) <= allowed:
        return None
    side = "ahead of" if off > 0 else "behind"
    return f"{whose} {abs(off):.1f} s {side} {than}; {allowed:g} s are allowed"
