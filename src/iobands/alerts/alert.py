"""An alert: what a person acts on, its severity, its certainty and its exit status."""

from __future__ import annotations

from typing import Final

from iobands.detection.series import Budget
from iobands.snapshot.alert import (
    Certainty,
)

# The odds that a change is real, if one real change a year is expected on the site.
_CERTAIN_ODDS: Final = 1000.0
_LIKELY_ODDS: Final = 10.0


def certainty(score: float, budget: Budget) -> Certainty:
    """Return how sure a change with the evidence `score` is on a site with this budget.

    The odds are those of one real change a year against the false alarms of such a score.
    """
    odds = budget.years_to_false_alarm(score)
    if odds >= _CERTAIN_ODDS:
        return Certainty.CERTAIN
    return Certainty.LIKELY if odds >= _LIKELY_ODDS else Certainty.POSSIBLE
