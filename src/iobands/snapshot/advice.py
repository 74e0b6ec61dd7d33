"""The value of settings, and what a maintenance changed: comparisons and advice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import Enum
from typing import Any, Final

from iobands.model import ALL_TARGETS, PairedRatio, SeriesKey
from iobands.snapshot.history import Change, Ratio

#: The fields that can be compared, and those that follow from each.
COMPARABLE: Final[Mapping[str, tuple[str, ...]]] = {
    "transport": ("environ",),
    "environ": ("transport",),
    "file_system": (),
    "stripe_count_asked": (),
    "hints": (),
    "pattern": ("interface",),
    "interface": (),
    "tasks": ("nodes", "gib"),
    "tool": (),
}


@dataclass(frozen=True)
class Comparison:
    """The ratio of the values of `key` to the values of `against`, which differs in one field.

    `ratio` is None if no samples of the two were measured near each other in time.
    """

    key: SeriesKey
    against: SeriesKey
    ratio: PairedRatio | None


def value_of(key: SeriesKey, field: str) -> str:
    """Return the value of a field in the form for people."""
    value = getattr(key, field)
    if field == "stripe_count_asked" and value == ALL_TARGETS:
        return "all"
    if value is None:
        return "null"
    return f"{value:.15g}" if isinstance(value, float | int) else str(value)


#: The settings covered by advice, in addition to the file system.
SETTINGS: Final = ("stripe_count_asked", "transport", "hints")
FILE_SYSTEM: Final = "file_system"

#: Above this number, the number of missing runs is not given.
MOST_MORE: Final = 1000


class Conclusion(str, Enum):
    """The outcome of a comparison."""

    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no difference"
    TOO_FEW = "not enough runs"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class PairedEvidence:
    """The median of paired ratios, with an interval if there are enough pairs."""

    ratio: float
    interval: Interval
    pairs: int
    first: datetime
    last: datetime

    @property
    def is_better(self) -> bool:
        """Whether the whole interval of the ratio is above 1."""
        return self.interval is not None and self.interval[0] > 1

    @property
    def makes_no_difference(self) -> bool:
        """Whether the whole interval of the ratio is within the margin."""
        return self.interval is not None and (
            self.interval[0] > 1 / MARGIN and self.interval[1] < MARGIN
        )


@dataclass(frozen=True)
class Advice:
    """`key` compared with `other`, which differs from it in `setting`; the ratio is key to other.

    `before` is the evidence of withdrawn advice. `more` is about how many more runs are needed if
    there are not enough.
    """

    setting: str
    key: SeriesKey
    other: SeriesKey
    finding: Conclusion
    evidence: PairedEvidence
    before: PairedEvidence | None = None
    more: int | None = None


@dataclass(frozen=True)
class Advised:
    """The settings of a pattern and variable, compared.

    `best` has the settings with the highest median on each file system, the highest first. Medians
    are of the newer half of the runs, in the unit of the variable.
    """

    best: tuple[SeriesKey, ...]
    medians: Mapping[SeriesKey, float]
    advice: tuple[Advice, ...]


@dataclass(frozen=True)
class CaseAdvice:
    """The result of a case that compares: the ratio with its setting to without it."""

    key: SeriesKey
    finding: Conclusion
    evidence: PairedEvidence
    more: int | None = None


Interval = tuple[float, float] | None


#: The published figures, and the quantile of each.
QUANTILES: Final = {"upper_quartile": 0.75, "median": 0.5, "lower_quartile": 0.25}
FIGURES: Final = ("maximum", *QUANTILES)

#: For how long after the newest run figures hold.
HOLDS: Final = timedelta(days=92)


@dataclass(frozen=True)
class Changed:
    """A file system on which a change is still open."""

    file_system: str
    change: Change[datetime]


@dataclass(frozen=True)
class Rates:
    """The rates of a pattern on a medium in one direction, which is the variable, in `unit`.

    They come from comparable runs, from `first` to `last`: on each file system one epoch and one
    level, outliers included. `epoch` names all these epochs. `intervals` has the 95 % interval of
    each quartile, None with too few runs. The rates are valid until `holds`: the first of
    `changed`, else some time after the newest run. `caches` has the state of the page cache before
    reads on each of `file_systems`.
    """

    pattern: str
    medium: str
    file_systems: tuple[str, ...]
    variable: str
    unit: str
    figures: Mapping[str, float]
    intervals: Mapping[str, Interval]
    runs: int
    first: datetime
    last: datetime
    epoch: str
    holds: datetime
    changed: tuple[Changed, ...] = ()
    caches: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recommended:
    """Settings of a pattern, the commands that set them, and the conditions of the measurement.

    `newest` has the fields of the newest sample of each file system. `commands` are by file
    systems. `is_asked` means that the site file recommends the settings; otherwise they are the
    best measured.
    """

    key: SeriesKey
    newest: Mapping[str, Mapping[str, Any]]
    commands: Mapping[tuple[str, ...], tuple[str, ...]]
    rates: tuple[Rates, ...]
    is_asked: bool


#: Ratios between this and its inverse do not matter to users.
MARGIN: Final = 1.1


class ShiftVerdict(str, Enum):
    """The verdict on a series or a group after a maintenance, the most urgent first."""

    SLOWER = "slower"
    FASTER = "faster"
    UNDECIDED = "not enough runs"
    NO_CHANGE = "no change"


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
    """What a maintenance from `begin` to `end` changed, as of `now`; it may last (`is_open`).

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
