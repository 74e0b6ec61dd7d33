"""The budget of false alarms, and the evidence that an alert needs for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

#: Evidence thresholds in nats; `threshold.threshold_for` gives the one for a site.
WATCH: Final = 5.7

DEGRADED: Final = 9.0

#: The evidence of a single run that is low, and of one that is far down.
LOW: Final = 0.5

FAR_DOWN: Final = 3.0


_QUARTERS: Final = 4


@dataclass(frozen=True)
class Budget:
    """The false-alarm budget of a site; `runs_a_year` is of all series and groups together."""

    false_alarms_a_year: float = 1.0
    runs_a_year: float = 365.0

    @cached_property
    def threshold(self) -> float:
        """The evidence for an alert, in nats, at least `DEGRADED`, rounded up to a quarter.

        The runs a year are an estimate that changes every day. Rounding keeps an alert from coming
        and going with it.
        """
        exact = threshold_for(self.false_alarms_a_year, 1, max(self.runs_a_year, 1.0))
        return max(DEGRADED, math.ceil(exact * _QUARTERS) / _QUARTERS)

    def years_to_false_alarm(self, score: float) -> float:
        """Return the mean number of years between false alarms of `score` on this site."""
        return runs_between_false_alarms(score) / max(self.runs_a_year, 1.0)


#: Runs to a false alarm at threshold h are at least exp(SLOPE * h) / DIVISOR, the smallest number
#: measured for any band, tail and size of history (docs/error-rates.md).
SLOPE: Final = 0.6

DIVISOR: Final = math.exp(-3.6)

#: A threshold below this would make single runs an alarm.
LOWEST: Final = WATCH

# Evidence grows with each run of a lasting drop, and floating-point numbers end at exp(709).
_LARGEST_EXPONENT: Final = 700.0


def runs_between_false_alarms(threshold: float) -> float:
    """Return the mean number of runs of one healthy series to a false alarm at `threshold`."""
    return max(1.0, math.exp(min(SLOPE * threshold, _LARGEST_EXPONENT)) / DIVISOR)


def threshold_for(
    false_alarms_a_year: float = 1.0, series: int = 1, runs_a_year: float = 365.0
) -> float:
    """Return the threshold that keeps a whole site within its false alarms a year.

    Args:
        false_alarms_a_year: how many the site allows itself, all series together.
        series: how many series and groups the site has.
        runs_a_year: how often each of them runs in a year.

    Raises:
        ValueError: one of them is not a positive finite number.
    """
    for number in (false_alarms_a_year, series, runs_a_year):
        if not (math.isfinite(number) and number > 0):
            raise ValueError(f"not a positive finite number: {number}")
    runs = series * runs_a_year / false_alarms_a_year
    return max(LOWEST, math.log(max(runs * DIVISOR, 1.0)) / SLOPE)


#: The evidence for recovery that ends a change.
RECOVERED_FROM: Final = 6.0
