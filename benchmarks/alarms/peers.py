"""Other detectors on the same series, run anew on each day with the runs up to that day.

Each has the settings of its documentation. A change point counts where the detector puts it on
that day; one within `_SAME` runs of an earlier change point is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.alarms.charts import follow
from benchmarks.alarms.figures import NEVER
from benchmarks.alarms.simulate import LARGE, YEAR, prior_of, threshold_of
from benchmarks.alarms.worlds import WORLDS, Array, normals
from iobands.snapshot import DOWN

#: The number of first runs that are the reference of the control chart and of ReFrame.
FIRST: Final = 20
_SAME: Final = 10
#: The number of runs before a loss begins, and of those in which it may be found.
_PAST: Final = 200
LONGEST: Final = 100
_CORRELATION: Final = 0.3
OURS: Final = "iobands, a site of 300"
MORE_OF_OURS: Final = 20


@dataclass(frozen=True)
class Alarm:
    """An alarm raised with the run `raised` about a change that began with the run `at`."""

    raised: int
    at: int
    is_drop: bool


def otava(values: Array) -> list[int]:
    """Return the change points of Apache Otava, as it is called without options."""
    from otava.analysis import compute_change_points  # noqa: PLC0415  only for the benchmark

    return [int(point.index) for point in compute_change_points(list(values))[0]]


def pelt(values: Array) -> list[int]:
    """Return the change points of ruptures' PELT: change of mean, the penalty of BIC."""
    import ruptures  # noqa: PLC0415  only for the benchmark

    logarithms = np.log(values)
    noise = np.median(np.abs(np.diff(logarithms))) / (0.6745 * np.sqrt(2))
    penalty = 2 * noise**2 * np.log(len(values))
    search = ruptures.KernelCPD(kernel="linear", min_size=2).fit(logarithms)  # PELT, compiled
    found: list[int] = search.predict(pen=penalty)[:-1]
    return found


def asv(values: Array) -> list[int]:
    """Return where the steps of asv's step detection begin."""
    from asv.step_detect import detect_steps  # noqa: PLC0415  only for the benchmark

    return [int(step[0]) for step in detect_steps(list(values))[1:]]


def _day_by_day(points: Callable[[Array], list[int]], values: Array, first: int) -> Iterator[Alarm]:
    found: list[Alarm] = []
    for runs in range(first, len(values) + 1):
        ends = [0, *points(values[:runs]), runs]
        for before, at, after in zip(ends, ends[1:], ends[2:], strict=False):
            if all(abs(at - alarm.at) > _SAME for alarm in found):
                drop = np.median(values[at:after]) < np.median(values[before:at])
                found.append(Alarm(runs - 1, at, bool(drop)))
                yield found[-1]


def _under(floor: float, values: Array) -> list[Alarm]:
    low = np.flatnonzero(values[FIRST:] < floor) + FIRST
    return [Alarm(int(run), int(run), is_drop=True) for run in low]


def control_chart(values: Array, _: int = 0) -> list[Alarm]:
    """Return the runs more than three standard deviations below the mean of the first ones."""
    first = values[:FIRST]
    return _under(float(first.mean() - 3 * first.std(ddof=1)), values)


def reframe(values: Array, _: int = 0) -> list[Alarm]:
    """Return the runs more than 10 % below a reference, the median of the first ones."""
    return _under(0.9 * float(np.median(values[:FIRST])), values)


#: Each detector as a function of a series and the first run to judge.
PEERS: Final[Mapping[str, Callable[[Array, int], Iterable[Alarm]]]] = {
    "Apache Otava": lambda values, first: _day_by_day(otava, values, first),
    "PELT (ruptures)": lambda values, first: _day_by_day(pelt, values, first),
    "asv step detection": lambda values, first: _day_by_day(asv, values, first),
    "3 sigma over 20 runs": control_chart,
    "ReFrame, −10 %": reframe,
}


def measured(world: str, number: int, seed: int) -> dict[str, tuple[int, list[float]]]:
    """Return by detector the false alarms of a year of series, and the delays of a loss of 30 %.

    Each gets `number` series, and iobands `MORE_OF_OURS` times as many, with a large site's budget.
    """
    random = np.random.default_rng(seed)
    many, size = MORE_OF_OURS * number, _PAST + LONGEST
    quiet = WORLDS[world](normals(random, many, YEAR, _CORRELATION))
    fallen = WORLDS[world](normals(random, many, size, _CORRELATION))
    prior = prior_of(quiet)
    fallen[:, _PAST:] += np.log(0.7)

    def ours(values: Array, _: int) -> list[Alarm]:
        chart = follow(values, threshold=threshold_of(LARGE), prior=prior)
        return [Alarm(each.raised, each.since, each.direction == DOWN) for each in chart.changes]

    found = {}
    for name, peer in {OURS: ours, **PEERS}.items():
        healthy, lower = (many, many) if name == OURS else (number, 3 * number)
        false = sum(len(list(peer(each, FIRST))) for each in np.exp(quiet[:healthy]))
        alarms = [peer(each, _PAST + 1) for each in np.exp(fallen[:lower])]
        found[name] = (false, [delay(each, _PAST, LONGEST) for each in alarms])
    return found


def delay(alarms: Iterable[Alarm], change: int, longest: int) -> float:
    """Return the runs from a drop to its alarm, both counted; `NEVER` if there is none in time."""
    for alarm in alarms:  # day by day, so the first is enough
        if alarm.is_drop and alarm.raised >= change and alarm.at >= change - _SAME:
            late = alarm.raised - change + 1
            return float(late) if late <= longest else NEVER
    return NEVER
