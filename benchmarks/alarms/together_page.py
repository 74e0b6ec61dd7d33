"""What is measured of pooled charts, and the tables that the page has of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from iobands.alerts.pools import FILE_SYSTEM, KINDS, NODES

from benchmarks.alarms import together
from benchmarks.alarms.measure import LIMITS, FalseAlarms
from benchmarks.alarms.tables import delay_text, table
from benchmarks.alarms.together import Days, Delays, Told
from benchmarks.alarms.worlds import BANDS, world
from iobands.detection import limit_for, runs_between_false_alarms

#: The days that series share: nothing, the day, and days that depend on the day before.
ALONE: Final = Days()
SHARED: Final = Days(0.3)
SLOW: Final = Days(0.3, 0.6)
DAYS: Final[Mapping[str, Days]] = {
    "independent": ALONE,
    "a common daily factor": SHARED,
    "one that lasts": SLOW,
}
#: The site whose budget is told: so many series and pooled charts, each daily.
SITE: Final = (500, 40)
TOLD_SIZE: Final = 10
OTHER_SIZES: Final = (2, 4, 40)
DROPS: Final = (0.9, 0.8, 0.7)
MAIN: Final = "plain"
_OF_SIZES: Final = "NVMe FPP"
_ONE: Final = dict(
    zip(KINDS, ("a file system", "a transport", "the partition", "a node"), strict=True)
)
_LIMITS: Final = (6.0, 8.0, 10.0, 12.0, 14.0)
_LONGEST: Final = 150
_YEAR: Final = 365

Key = tuple[Any, ...]


def limit_of_site() -> float:
    """Return the limit of `SITE` at one false alarm a year."""
    return float(np.ceil(4 * limit_for(1.0, sum(SITE))) / 4)


def cases() -> list[Key]:
    """Return (kind, band, days, series or kind of pool, factor)."""
    found: list[Key] = []
    for band in BANDS:
        found += [("quiet", band, name, TOLD_SIZE, 1.0) for name in DAYS]
        for name in DAYS:
            found += [("delay", band, name, TOLD_SIZE, 0.9)]
        kinds = KINDS if band == _OF_SIZES else (FILE_SYSTEM, NODES)
        found += [("told", band, "a common daily factor", kind, 0.7) for kind in kinds]
    for size in OTHER_SIZES:
        found.append(("quiet", _OF_SIZES, "a common daily factor", size, 1.0))
        found.append(("delay", _OF_SIZES, "a common daily factor", size, 0.9))
    found += [
        ("told", _OF_SIZES, "a common daily factor", kind, factor)
        for kind in KINDS
        for factor in DROPS
        if factor != 0.7  # noqa: PLR2004  it is above
    ]
    return found


def measured(case: Key, series: int, sessions: int, seed: int) -> FalseAlarms | Delays | Told:
    """Measure one of `cases`; `series` is how many a case of single series has."""
    kind, band, days, size, factor = case
    made, limit = world(band, MAIN), limit_of_site()
    if kind == "quiet":
        pools = max(4, series * (2 if size <= TOLD_SIZE else 1) // 3)
        return together.pooled_false_alarms(made, DAYS[days], size, pools, sessions, seed)
    if kind == "delay":
        return together.pooled_delay(
            made, DAYS[days], size, factor, limit, max(4, series // 4), _LONGEST, seed
        )
    return together.told(made, DAYS[days], size, factor, limit, max(2, series // 8), seed)


class Together:
    """The tables, from what was measured."""

    def __init__(self, results: Mapping[Key, Any]) -> None:
        """`results` are by case."""
        self.results = results

    def false_alarms(self) -> str:
        """ARL0 of pools at several limits, and false alarms a year at the site's budget."""
        rows = []
        for key, found in self.results.items():
            if key[0] != "quiet":
                continue
            _, band, days, size, _ = key
            row = [band, days, str(size)]
            row += [_run_length(found, limit) for limit in _LIMITS]
            rows.append([*row, self._a_year(found)])
        head = ["band", "days", "series", *(f"at {limit:g}" for limit in _LIMITS)]
        formula = ["formula", "", "", *(f"{runs_between_false_alarms(h):.0f}" for h in _LIMITS)]
        promised = SITE[1] * _YEAR / runs_between_false_alarms(limit_of_site())
        return table([*head, "false alarms a year"], [[*formula, f"{promised:.2f}"], *rows])

    def _a_year(self, found: FalseAlarms) -> str:
        """Return how many false alarms a year `SITE` has of its pooled charts."""
        index = int(np.argmin(np.abs(LIMITS - limit_of_site())))
        runs, alarms = float(found.runs[index]), float(found.alarms[index])
        years = runs / (SITE[1] * _YEAR)
        if not alarms:
            return f"0 seen, below {3 / years:.2f}"
        return f"{alarms / years:.2f} ± {alarms**0.5 / years:.2f}"

    def gain(self, days: str) -> Delays:
        """Return the delays of a drop of 10 % of ten series on NVMe."""
        found: Delays = self.results["delay", _OF_SIZES, days, TOLD_SIZE, 0.9]
        return found

    def delays(self) -> str:
        """Delays of a common drop of 10 %, pooled and single."""
        rows = []
        for key, found in self.results.items():
            if key[0] == "delay":
                _, band, days, size, _ = key
                pooled, single = found.pooled, found.single
                row = [band, days, str(size), delay_text(pooled), delay_text(single)]
                row += [f"{pooled.mean / single.mean:.2f} ± {_ratio_error(found):.2f}"]
                rows.append(row)
        return table(["band", "days", "series", "pooled", "one series", "pooled : one"], rows)

    def told(self) -> str:
        """Under which pool a drop is told."""
        rows = []
        for key, found in self.results.items():
            if key[0] == "told":
                _, band, _, kind, factor = key
                every = found.right + found.wrong + found.none
                counts = (found.right, found.wrong, found.none, found.more)
                shares = [f"{count / every:.0%}" for count in counts]
                rows.append([band, f"× {factor}", _ONE[kind], *shares])
        head = ["band", "drop", "what fell", "told so", "under another", "not yet", "and one more"]
        return table(head, rows)


def _run_length(found: FalseAlarms, limit: float) -> str:
    index = int(np.argmin(np.abs(LIMITS - limit)))
    if not found.alarms[index]:
        return f"over {found.runs[index] / 3:.0f}"
    return f"{found.run_length[index]:.0f} ± {found.relative_error[index]:.0%}"


def _ratio_error(found: Delays) -> float:
    pooled, single = found.pooled, found.single
    relative = np.hypot(pooled.error / pooled.mean, single.error / single.mean)
    return float(pooled.mean / single.mean * relative)
