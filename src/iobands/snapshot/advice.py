"""Which settings are better, what to publish about them, and what a maintenance changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import Enum
from typing import Any, Final

from iobands.model import ALL_TARGETS, PairedRatio, SeriesKey
from iobands.snapshot.history import Change, Ratio

#: The fields that can be compared, each with the fields that may differ along with it.
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
    """The ratio of the series `key` to the series `against`, which differs in the compared field.

    `ratio` is None if no two of their samples are at most a day apart.
    """

    key: SeriesKey
    against: SeriesKey
    ratio: PairedRatio | None


def value_of(key: SeriesKey, field: str) -> str:
    """Return the value of a field as text; a stripe count of −1 is `all`, None is `null`."""
    value = getattr(key, field)
    if field == "stripe_count_asked" and value == ALL_TARGETS:
        return "all"
    if value is None:
        return "null"
    return f"{value:.15g}" if isinstance(value, float | int) else str(value)


#: The settings that advice compares, besides the file system.
SETTINGS: Final = ("stripe_count_asked", "transport", "hints")
FILE_SYSTEM: Final = "file_system"

#: The largest number of further runs that is estimated; it means this many or more.
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
    """The median of paired ratios, and its interval, None with too few pairs."""

    ratio: float
    interval: Interval
    pairs: int
    first: datetime
    last: datetime

    @property
    def is_better(self) -> bool:
        """Whether the whole interval is above 1."""
        return self.interval is not None and self.interval[0] > 1

    @property
    def makes_no_difference(self) -> bool:
        """Whether the whole interval is between 1 / `MARGIN` and `MARGIN`."""
        return self.interval is not None and (
            self.interval[0] > 1 / MARGIN and self.interval[1] < MARGIN
        )


@dataclass(frozen=True)
class Advice:
    """A comparison of `key` with `other`, which differs in `setting`; ratios are key over other.

    `before` is the older evidence of advice that is now withdrawn. `more` estimates how many more
    pairs of runs are needed, if there are too few.
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
    """The comparison of all settings of a pattern and variable.

    `best` lists the settings with the highest median on each file system, the highest first. The
    `medians` are of the newer half of the runs, in the unit of the variable.
    """

    best: tuple[SeriesKey, ...]
    medians: Mapping[SeriesKey, float]
    advice: tuple[Advice, ...]


@dataclass(frozen=True)
class CaseAdvice:
    """The result of a case that measures a ratio: the rate with its setting over without it."""

    key: SeriesKey
    finding: Conclusion
    evidence: PairedEvidence
    more: int | None = None


Interval = tuple[float, float] | None


#: The published quartiles, each with its quantile.
QUANTILES: Final = {"upper_quartile": 0.75, "median": 0.5, "lower_quartile": 0.25}
FIGURES: Final = ("maximum", *QUANTILES)

#: How long after the newest run published rates are valid.
HOLDS: Final = timedelta(days=92)


@dataclass(frozen=True)
class Changed:
    """A change that is still open, and its file system."""

    file_system: str
    change: Change[datetime]


@dataclass(frozen=True)
class Rates:
    """What to expect of one `variable` of a pattern on a medium, in `unit`.

    `figures` come from `runs` comparable runs, `first` to `last`: on each file system one epoch and
    one level, outliers included. `epoch` names these epochs. `intervals` are the 95 % intervals of
    the quartiles, None with too few runs. The figures are valid until `holds`: the first onset in
    `changed`, else some time after the newest run. `caches` is the state of the page cache before
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
    """Recommended settings of a pattern, the commands that set them, and the rates they give.

    `newest` maps each file system to the fields of its newest sample, and `commands` maps groups of
    file systems to their commands. `is_asked` means that the site file recommends the settings;
    otherwise they are the best measured.
    """

    key: SeriesKey
    newest: Mapping[str, Mapping[str, Any]]
    commands: Mapping[tuple[str, ...], tuple[str, ...]]
    rates: tuple[Rates, ...]
    is_asked: bool


#: A ratio between the inverse of this and this does not matter to users.
MARGIN: Final = 1.1


class ShiftVerdict(str, Enum):
    """The verdict on a series or a group after a maintenance, the most urgent first."""

    SLOWER = "slower"
    FASTER = "faster"
    UNDECIDED = "not enough runs"
    NO_CHANGE = "no change"


@dataclass(frozen=True)
class Shift:
    """The change of a series, or of a group of `members` series, across a maintenance.

    `ratio` is the level after over the level before, with its own 95 % interval, whereas `outcome`
    holds for all rows of a report together. As shares, `bound` is the largest change not ruled out,
    and `visible` the smallest loss that these runs would show with odds of 9 to 1, None if none.
    About `more` days of runs would decide, None if unknown. `before` and `after` are the numbers of
    runs and days. `story` lists when a claim was made, confirmed or withdrawn: day, what, runs.
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
        """Whether the outcome is a change."""
        return self.outcome in {ShiftVerdict.SLOWER, ShiftVerdict.FASTER}


@dataclass(frozen=True)
class Beside:
    """A column whose values differ before and after, in `series` of `of` series."""

    column: str
    before: str
    after: str
    series: int
    of: int


@dataclass(frozen=True)
class BeforeAfter:
    """What a maintenance from `begin` to `end` changed, as known at `now`.

    `left_out` pairs each series that was not compared with the reason, `beside` lists what else
    changed, and `epochs` names the epochs that began with it. `is_open` means that it still lasts.
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
