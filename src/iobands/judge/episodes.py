"""How long trouble lasts that ends by itself: learned from runs that were measured again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from iobands.snapshot.history import Array, Flags

# Without history: most trouble is over within `_LIFE` hours of the first low run, and one in
# so many lasts longer than a day. The first counts as so many episodes, the second as a hundred.
_LIFE: Final = 5.5
_EPISODES: Final = 10
_IN: Final = 100
#: In hours.
DAY: Final = 24.0
# What lasts longer was a change.
_LONGEST: Final = 3 * DAY


@dataclass(frozen=True)
class Episode:
    """Low runs that nothing lasting came of: low for `low` hours at least, over by `over`.

    Hours count from the first low run. The end was known with the run `end`.
    """

    low: float
    over: float
    end: int

    @property
    def square(self) -> float:
        """The mean square of the hours that it may have lasted."""
        return (self.low**2 + self.over**2) / 2


@dataclass(frozen=True)
class Life:
    """How long trouble lasts from the first low run on, by the episodes seen so far.

    `ended` is the number of those that were over within a day, `squares` the sum of the squares of
    their hours, `longer` the number of those that lasted longer and ended by themselves.
    """

    ended: int = 0
    squares: float = 0.0
    longer: int = 0

    @classmethod
    def of(cls, seen: Sequence[Episode]) -> Life:
        """Return what so many episodes say."""
        short = [each.square for each in seen if each.over <= DAY]
        return cls(len(short), sum(short), len(seen) - len(short))

    @property
    def hours(self) -> float:
        """The root mean square of the hours that trouble lasts which is over within a day."""
        return math.sqrt((_EPISODES * _LIFE**2 + self.squares) / (_EPISODES + self.ended))

    @property
    def days(self) -> float:
        """The share of trouble that lasts longer than a day."""
        return (1 + self.longer) / (_IN + self.ended + self.longer)

    def lasts(self, hours: float, again: float) -> float:
        """Return the probability that trouble still lasts after so many hours.

        What is over within a day has a Rayleigh distribution, whose rate of ending rises with age:
        others' jobs, rebuilds and backups end. Of what lasts longer the share `again` goes on from
        one day to the next.
        """
        short = math.exp(-((hours / self.hours) ** 2))
        return (1 - self.days) * short + self.days * again ** max(hours / DAY - 1, 0)


def episodes(hours: Array, low: Flags, asked: Flags) -> Iterator[Episode]:
    """Yield the streaks of `low` runs that were measured again and ended, in the order of time.

    A low run before a healthy one of the next day tells nothing: it may have lasted a minute.
    """
    edges = np.flatnonzero(np.diff(low, prepend=False, append=False))
    for first, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        begun, again = hours[first], asked[first : end + 1].any()
        if end < len(low) and again and hours[end] - begun <= _LONGEST:
            yield Episode(float(hours[end - 1] - begun), float(hours[end] - begun), end)
