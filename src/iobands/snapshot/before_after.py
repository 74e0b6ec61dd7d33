"""A maintenance, and what the runs before and after it say: the value that its report shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum

from iobands.snapshot.history import Ratio


class ShiftVerdict(str, Enum):
    """The verdict on a series or a group after a maintenance."""

    SLOWER = "slower"
    FASTER = "faster"
    NO_CHANGE = "no change"
    UNDECIDED = "not enough runs"


@dataclass(frozen=True)
class Shift:
    """A series or a group of `members`, after a maintenance over before.

    `ratio` has a 95 % interval of its own; `outcome` holds for all rows of a report together.
    `bound` is the largest change that is left open, and `visible` the smallest loss that these runs
    show with the power asked for, as shares; None if they cannot. About `more` days decide, None if
    that is unknown. `before` and `after` are numbers of runs and of days. `story` says on which day
    what became of a claim: said, confirmed or withdrawn, and from how many runs.
    """

    kind: str
    name: str
    members: int
    outcome: ShiftVerdict
    ratio: Ratio
    bound: float
    visible: float | None
    more: int | None
    before: tuple[int, int]
    after: tuple[int, int]
    story: tuple[tuple[date, str, int], ...] = ()

    @property
    def is_claim(self) -> bool:
        """Whether something changed."""
        return self.outcome in {ShiftVerdict.SLOWER, ShiftVerdict.FASTER}


@dataclass(frozen=True)
class Beside:
    """A column of the samples that differs before and after, in `series` of `of` series."""

    column: str
    before: str
    after: str
    series: int
    of: int


@dataclass(frozen=True)
class BeforeAfter:
    """What is known at `now` of a maintenance from `begin` to `end`, which may last (`is_open`).

    `groups` and `series` have a row each, `left_out` why a series has none. `epochs` began in it.
    """

    name: str
    system: str
    begin: datetime
    end: datetime
    reason: str
    file_systems: tuple[str, ...]
    now: datetime
    is_open: bool
    groups: tuple[Shift, ...] = ()
    series: tuple[Shift, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    beside: tuple[Beside, ...] = ()
    epochs: tuple[str, ...] = ()
