"""How much one run counts for a change: cells of values, and the evidence of each cell.

The values of a healthy series are cut into cells. Their probabilities are known without a model:
by the quartiles of a published band, or by the ranks among earlier runs. For each design change
(all values times 0.7, say) the probabilities of the same cells follow from the series' own
quantiles. The logarithm of their ratio, Huberised, is the score of a run that falls into the
cell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.snapshot.history import Array, median_of

#: The designs after those that are shifts of the level: a lost mode, and a doubled spread.
MODE, SPREAD = 8, 9
OTHERS: Final = slice(MODE, SPREAD + 1)

# Two modes explain this share of the variance, where one normal mode cut in two explains 0.64
# (Otsu, "A threshold selection method from gray-level histograms", IEEE Trans. SMC 9, 1979).
_TWO: Final = 0.8
# The least share of the runs in a mode, and their least number.
_LEAST_SHARE: Final = 0.15
_LEAST_RUNS: Final = 8
_WIDER: Final = 2.0


def lower_mode(ordered: Array) -> int:
    """Return how many of the runs are in the lower one of two modes, 0 if there is one mode.

    `ordered` are their logarithms in rising order.
    """
    size = len(ordered)
    least = max(_LEAST_RUNS, round(_LEAST_SHARE * size))
    if size < 2 * least or ordered[0] == ordered[-1]:
        return 0
    counts = np.arange(least, size - least + 1)
    lower = ordered.cumsum()[least - 1 : size - least]
    total = ordered.sum()
    mean = total / size
    centred = ordered - mean
    between = counts * (lower / counts - mean) ** 2
    between += (size - counts) * ((total - lower) / (size - counts) - mean) ** 2
    best = int(between.argmax())
    return int(counts[best]) if between[best] >= _TWO * (centred @ centred) else 0


def other_designs(
    ordered: Array, edges: Array, healthy: Array, below: Callable[[Array], Array]
) -> Array:
    """Return the probabilities of the cells under the designs `OTHERS`, of shape (2, cells).

    `ordered` are the runs of the baseline, `edges` and `healthy` the edges and probabilities of its
    cells, and `below` returns the probability of lower values. A single mode cannot be lost.
    """
    until = healthy.cumsum()
    lower = lower_mode(ordered) / (len(ordered) + 1)
    lost = np.minimum(until / lower, 1.0) if lower else until
    middle = median_of(ordered)
    wider = below(middle + (edges - middle) / _WIDER)
    found = shares_of(np.array([lost[:-1], wider]))
    found[0, -1] = lost[-1] - lost[-2]
    return found


def shares_of(until: Array) -> Array:
    """Return the probabilities of k cells; `until` are those below each of the k - 1 edges."""
    found = np.empty((len(until), until.shape[1] + 1))
    found[:, :-1], found[:, -1] = until, 1.0
    found[:, 1:] -= until
    return found


#: The changes that the chart looks for, as factors on every value.
DROPS: Final = (0.9, 0.8, 0.7, 0.5)
RISES: Final = tuple(1 / drop for drop in DROPS)
DESIGNS: Final = DROPS + RISES

# Huber's least favourable pair (Huber, "A robust version of the probability ratio test", Annals of
# Mathematical Statistics 36, 1965): this share of the runs may come from elsewhere. It bounds the
# evidence of one run: +6.1 nats for a change, -2.7 against it.
_STRAY_CHANGED: Final = 0.07
_STRAY_HEALTHY: Final = 0.002

# A run that looks healthy though nothing is repaired: what favours it lasts for this many hours.
_LUCK: Final = 1.5

#: The chart is made for a drop of 30 %. Designs of other sizes help less than their false alarms
#: cost, so their evidence counts for less.
WEIGHTS: Final = np.array((0.7, 0.85, 1.0, 0.85) * 2 + (1.0, 1.0))
#: The number of designs: the shifts, and the designs of `other_designs`.
EVERY: Final = len(WEIGHTS)

# The quartiles in units of the standard deviation of a normal distribution, and its 99.5 % point,
# which stands for a band's maximum.
_QUARTILE: Final = NormalDist().inv_cdf(0.75)
_NEAR_ONE: Final = NormalDist().inv_cdf(0.995)

# A baseline of n runs is off by chance. Every score is lowered so far that a baseline with an error
# of this many standard errors, in the direction of the change, gives no evidence.
_ERRORS: Final = 1.7
# A published band does not say how many runs it comes from; it counts like this many.
_RUNS_OF_A_BAND: Final = 100

# The middle cells of a history have this share of its runs; towards both ends they get smaller,
# down to the cell beyond every value.
_MIDDLE_CELL: Final = 1 / 20
# Runs that are all equal stand for what is within this share of them.
_MARGIN: Final = 1e-6
# A design change stands for its neighbours: its probabilities are a mean over these factors.
_NEIGHBOURS: Final = np.exp(np.linspace(-0.03, 0.03, 7))
# The largest ones stand for all beyond as well, down to an eighth and up to eight times.
_BEYOND: Final = np.geomspace(0.95, 0.25, 7)


def _shifts() -> Array:
    near = np.multiply.outer(DESIGNS, np.tile(_NEIGHBOURS, 2))
    half = len(_NEIGHBOURS)
    near[len(DROPS) - 1, half:] = min(DROPS) * _BEYOND
    near[-1, half:] = max(RISES) / _BEYOND
    return np.log(near)


#: The changes of the logarithms of values, of shape (designs, neighbours).
SHIFTS: Final = _shifts()


#: The quartiles of a published band in the unit of the series, and its maximum if it has one.
Quartiles = tuple[float, ...]


@dataclass(frozen=True)
class Cells:
    """Cells of values, and how probable each is: `healthy`, and `changed` for each design.

    `edges`, of shape (k - 1,), are the rising logarithms of the bounds of k cells; a value on an
    edge lies between the two cells. `healthy` is of shape (k,), `changed` of (designs, k).
    The cells were learned from `runs` independent runs, and every score is lowered by `errors`
    standard errors of their probabilities.
    """

    edges: Array
    healthy: Array
    changed: Array
    runs: float
    errors: float = _ERRORS

    @cached_property
    def table(self) -> Array:
        """The score of a run in each cell, of shape (designs, k), in nats."""
        top, bottom = self._robust
        return self._lowered(top / bottom)

    def _lowered(self, ratios: Array) -> Array:
        return (np.log(ratios) - self._unweighted[:, None]) * WEIGHTS[:, None]

    def scores(self, logarithms: Array) -> Array:
        """Return the score of each run for each design, of shape (runs, designs), in nats.

        A value that equals one or more edges gets the likelihood ratio of all cells that it
        touches taken together, so that ties among the values can raise no alarm.
        """
        first = np.searchsorted(self.edges, logarithms, side="left")
        found = self.table.T[first]
        tied = np.flatnonzero(self.edges[np.minimum(first, len(self.edges) - 1)] == logarithms)
        if tied.size:
            last = np.searchsorted(self.edges, logarithms[tied], side="right")
            top, bottom = (np.pad(p.cumsum(axis=1), ((0, 0), (1, 0))) for p in self._robust)
            start, stop = first[tied], last + 1
            ratios = (top[:, stop] - top[:, start]) / (bottom[:, stop] - bottom[:, start])
            found[tied] = self._lowered(ratios).T
        return found

    @cached_property
    def _robust(self) -> tuple[Array, Array]:
        top = (1 - _STRAY_CHANGED) * self.changed + _STRAY_CHANGED * self.healthy
        bottom = (1 - _STRAY_HEALTHY) * self.healthy + _STRAY_HEALTHY * self.changed
        return top, bottom

    @property
    def penalty(self) -> Array:
        """How much every score is lowered for the error of the reference, of shape (designs,)."""
        return self._unweighted * WEIGHTS

    @cached_property
    def _unweighted(self) -> Array:
        # If the healthy probabilities are off by this many standard errors, either the mean of the
        # scores must stay as far below zero, or the mean of the likelihood ratios at one. One of
        # the two is enough; which one lowers the scores less depends on the shape.
        errors, (top, bottom) = self.errors / np.sqrt(self.runs), self._robust
        ratios = top / bottom
        mean = (ratios * self.healthy).sum(axis=1)
        by_ratios = np.log(mean + errors * self._deviation(ratios))
        return np.minimum(by_ratios, errors * self._deviation(np.log(ratios)))

    def _deviation(self, numbers: Array) -> Array:
        mean = numbers @ self.healthy
        return np.sqrt(((numbers - mean[:, None]) ** 2) @ self.healthy)


def sure_end(gaps: Array) -> Array:
    """Return the evidence of runs that surely surpass the level of a drop for its end, in nats.

    Only stray runs limit it, and a stray run is likelier in the hours after another one.
    """
    again = np.exp(-gaps / _LUCK)
    return np.asarray(-np.log(_STRAY_CHANGED + (1 - _STRAY_CHANGED) * again))


@dataclass(frozen=True)
class Blend:
    """Scores that mix the series' own history, with weight `share`, and a band.

    The likelihood ratios are averaged, not the scores: a mean of ratios whose healthy mean is at
    most one has that property again.
    """

    own: Cells
    published: Cells
    share: float

    @property
    def penalty(self) -> Array:
        """As for `Cells`."""
        return self.share * self.own.penalty + (1 - self.share) * self.published.penalty

    def scores(self, logarithms: Array) -> Array:
        """As for `Cells`."""
        own = self.share * np.exp(self.own.scores(logarithms))
        return np.log(own + (1 - self.share) * np.exp(self.published.scores(logarithms)))


def band_cells(band: Quartiles) -> Cells:
    """Return the four cells of a published band.

    Between the quartiles the quantile function is interpolated linearly on the logarithms against
    the quantiles of the normal distribution. Below the lower quartile, which only rises look at,
    the slope above it is continued.
    """
    at, figures = _known_quantiles(band)

    def below(logarithms: Array) -> Array:
        normal = _extended(logarithms, figures, at)
        return np.vectorize(NormalDist().cdf, otypes=[float])(normal)

    healthy = np.full(4, 0.25)
    others = np.tile(healthy, (EVERY - len(DESIGNS), 1))
    return _cells(figures[:3], healthy, below, others, _RUNS_OF_A_BAND)


def band_sample(band: Quartiles) -> Array:
    """Return logarithms that stand for the runs behind a band: 99 evenly spaced quantiles."""
    shares = np.arange(1, _RUNS_OF_A_BAND) / _RUNS_OF_A_BAND
    return _extended(np.array([*map(NormalDist().inv_cdf, shares)]), *_known_quantiles(band))


def history_cells(history: Array, independent: float | None = None, youth: float = 0.0) -> Cells:
    """Return the rank cells of earlier runs; `history` are their logarithms in any order.

    They are worth `independent` runs, all of them unless given. The scores of a young baseline are
    lowered by `youth` standard errors more.
    """
    ordered = np.sort(history)
    size = len(ordered)
    counts = cell_counts(size)
    edges, healthy = ordered[counts - 1], np.diff(counts, prepend=0, append=size + 1) / (size + 1)
    if (ordered[1:] == ordered[:-1]).any():
        edges, healthy, ordered = _of_ties(ordered, counts)
    shares = np.arange(1, size + 1) / (size + 1)

    def below(logarithms: Array) -> Array:
        return np.interp(logarithms, ordered, shares, left=0.0, right=1.0)

    others = other_designs(ordered, edges, healthy, below)
    return _cells(edges, healthy, below, others, independent or size, _ERRORS + youth)


def _of_ties(ordered: Array, counts: NDArray[np.int_]) -> tuple[Array, Array, Array]:
    """Return edges, healthy probabilities and runs, where several of the `ordered` runs are equal.

    Such values are rounded: each stands for all that are nearer to it than to its neighbours. A
    cell has all runs of a value or none, and beyond the outermost values there is a cell each.
    Equal runs are spread evenly over what they stand for.
    """
    values, sizes = np.unique(ordered, return_counts=True)
    gaps, until = np.diff(values), np.cumsum(sizes)
    margin = gaps.min() / 2 if gaps.size else _MARGIN
    bounds = np.concatenate(([values[0] - margin], values[:-1] + gaps / 2, [values[-1] + margin]))
    last = np.unique(np.searchsorted(until, counts))  # the last value of each cell
    edges = bounds[np.concatenate(([0], last + 1))]
    healthy = np.concatenate(([1], np.diff(until[last], prepend=0), [1])) / (len(ordered) + 2)
    nth = np.arange(len(ordered)) - np.repeat(until - sizes, sizes)
    shares = (nth + 0.5) / np.repeat(sizes, sizes)
    spread = np.repeat(bounds[:-1], sizes) + shares * np.repeat(np.diff(bounds), sizes)
    return edges, healthy, spread


@lru_cache
def cell_counts(size: int) -> NDArray[np.int_]:
    """Return which order statistics of `size` runs, counted from 1, bound the cells."""
    half: list[int] = []
    at, step, widest = 1, 1, max(1, round(size * _MIDDLE_CELL))
    while at <= (size + 1) // 2:
        half.append(at)
        at += step
        step = min(2 * step, widest)
    lower = np.array(half)
    return np.unique(np.concatenate((lower, size + 1 - lower)))


def _known_quantiles(band: Quartiles) -> tuple[Array, Array]:
    """Return quantiles of the normal distribution, and a band's logarithms at them."""
    at, figures = np.array([-_QUARTILE, 0.0, _QUARTILE, _NEAR_ONE]), np.log(band)
    known = 4 if figures[-1] > figures[2] else 3  # a maximum at the quartile says nothing
    return at[:known], figures[:known]


def _extended(at: Array, positions: Array, values: Array) -> Array:
    """Interpolate, and continue the first and the last piece as straight lines."""
    inside = np.interp(at, positions, values)
    first = np.maximum(positions[1] - positions[0], 1e-9)
    last = np.maximum(positions[-1] - positions[-2], 1e-9)
    before = values[0] + (at - positions[0]) * (values[1] - values[0]) / first
    after = values[-1] + (at - positions[-1]) * (values[-1] - values[-2]) / last
    return np.where(at < positions[0], before, np.where(at > positions[-1], after, inside))


def _cells(
    edges: Array,
    healthy: Array,
    below: Callable[[Array], Array],
    others: Array,
    runs: float,
    errors: float = _ERRORS,
) -> Cells:
    shifted = shares_of(below(edges - SHIFTS[:, :, None]).mean(axis=1))
    return Cells(edges, healthy, np.concatenate((shifted, others)), runs, errors)
