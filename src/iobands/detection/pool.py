"""One chart for several series that share something: a file system, a transport, a set of nodes.

What each series' own chart found in a run is put together session by session, so that a change
that all of them have in common is seen sooner than in any one of them. May know: numpy and the
charts of single series.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iobands.detection.alarm import DOWN, RECOVERED, UP, Alarm
from iobands.detection.change import level_ratio, onset_interval
from iobands.detection.chart import DEGRADED, LARGEST_REFERENCE, LEAST, RECOVERY
from iobands.detection.parts import (
    Dependence,
    Part,
    dependence,
    every_session,
    placed,
    stretches,
    within,
)
from iobands.detection.scores import DESIGNS, DROPS, Array, grained
from iobands.detection.settling import is_small, is_surely_small
from iobands.detection.sums import SIDES

#: From how much evidence of its own, in nats, a series counts as one that took part in a change.
TOOK_PART: Final = 2.0

_BEFORE_ONSET: Final = 60
_AFTER_ALARM: Final = 30


@dataclass(frozen=True)
class CommonAlarm:
    """A lasting change that several series share; `alarm` counts sessions where others count runs.

    `contributions`, one a part, is the evidence that each has given since the onset for the design
    that fits it best. `total` is that of all of them for the one that fits them together best.
    """

    alarm: Alarm
    contributions: tuple[float, ...]
    total: float

    @property
    def series(self) -> tuple[int, ...]:
        """Which parts took part in the change, the strongest first."""
        order = sorted(range(len(self.contributions)), key=lambda j: -self.contributions[j])
        return tuple(j for j in order if self.contributions[j] >= TOOK_PART)


@dataclass(frozen=True)
class PooledChart:
    """The outcome of `follow_together`; `down` and `up` are of shape (sessions,), in nats.

    `sessions` are the numbers that the parts had for them, and `depends` is what the chart
    reckoned with.
    """

    sessions: NDArray[np.int_]
    down: Array
    up: Array
    depends: Dependence
    alarms: tuple[CommonAlarm, ...]

    @property
    def open_alarm(self) -> CommonAlarm | None:
        """The alarm that is open, or None."""
        return self.alarms[-1] if self.alarms and self.alarms[-1].alarm.is_open else None


def follow_together(
    parts: Sequence[Part],
    *,
    limit: float = DEGRADED,
    depends: Dependence | None = None,
    least: float = LEAST,
) -> PooledChart:
    """Return the chart of what several series have in common.

    The scores of a session's m runs are added and divided by 1 + (m - 1) rho, rho being the
    correlation between series: the sum of m normal scores that correlate so has the variance
    m (1 + (m - 1) rho), and the quotient is again a log-likelihood ratio of about the right size.
    The errors of m references are not all to one side either: of what was taken off the scores for
    them so much is given back that the rest grows with m like the error of their sum.

    Args:
        parts: one a series, two at least.
        limit: the evidence, in nats, at which an alarm is raised.
        depends: rho, and more; None to measure it on the first 200 sessions.
        least: by which share the level must be off that of before, or the references of the series,
            for an alarm. A change by less is passed over.

    Raises:
        ValueError: there are fewer than two series.
    """
    if len(parts) < 2:  # noqa: PLR2004
        raise ValueError(f"{len(parts)} series have nothing in common: two at least")
    sessions = every_session([part.sessions for part in parts])
    there = placed(parts, sessions)
    depends = depends or dependence(there, len(sessions), limit)
    return _Drawing(sessions, there, depends, limit, least).through()


class _Drawing:
    def __init__(
        self,
        sessions: NDArray[np.int_],
        parts: Sequence[Part],
        depends: Dependence,
        limit: float,
        least: float,
    ) -> None:
        self.sessions = sessions
        self.parts = parts
        self.depends = depends
        self.limit = limit
        self.least = least
        self.quiet = self._together([part.speaks for part in parts])
        self.down = np.zeros(len(sessions))
        self.up = np.zeros(len(sessions))
        self.alarms: list[CommonAlarm] = []

    def through(self) -> PooledChart:
        at = 0
        while at < len(self.down):
            at = self._until_alarm(at)
        return PooledChart(self.sessions, self.down, self.up, self.depends, tuple(self.alarms))

    def _taking_part(self, since: int, raised: int) -> Array:
        """Return the scores of sessions, of the series that spoke from `since` to an alarm.

        Those whose own alarm was open before would else keep this one open for ever.
        """
        return self._together(
            [
                part.judged & part.speaks[within(part.sessions, since, raised + 1)].any()
                for part in self.parts
            ]
        )

    def _together(self, runs: Sequence[NDArray[np.bool_]]) -> Array:
        """Return the scores of sessions, of shape (sessions, designs), of these runs of each."""
        total = np.zeros((len(self.sessions), len(DESIGNS)))
        # what begins less what ends with a session: to add up once for all, and not for each part
        begun = np.zeros((len(self.sessions) + 1, len(DESIGNS)))
        more = np.zeros(len(self.sessions) + 1)
        taken_off, count = np.zeros_like(total), np.zeros(len(self.sessions))
        for part, chosen in zip(self.parts, runs, strict=True):
            rows = np.flatnonzero(chosen)
            places = part.sessions[rows]
            without_gaps = stretches(places, rows)
            if without_gaps is None:
                total[places] += part.increments[rows]
                taken_off[places] += part.penalty
                count[places] += 1
                continue
            for span, mine in without_gaps:
                total[span] += part.increments[mine]
                begun[span.start] += part.penalty
                begun[span.stop] -= part.penalty
                more[span.start] += 1
                more[span.stop] -= 1
        taken_off += np.cumsum(begun[:-1], axis=0)
        count += np.cumsum(more[:-1])
        count = np.maximum(count, 1)[:, None]
        spread = 1 + (count - 1) * self.depends.shared
        total += taken_off * (1 - np.minimum(np.sqrt(spread / count) * self.depends.scale, 1.0))
        return grained(total / spread / self.depends.scale)

    def _until_alarm(self, begun: int) -> int:
        total = np.cumsum(self.quiet[begun:], axis=0)
        sums = total - np.minimum(np.minimum.accumulate(total, axis=0), 0.0)
        self.down[begun:] = sums[:, SIDES[DOWN]].max(axis=1)
        self.up[begun:] = sums[:, SIDES[UP]].max(axis=1)
        over = np.flatnonzero(sums.max(axis=1) >= self.limit)
        if not over.size:
            return len(self.down)
        event = int(over[0])
        design = int(np.argmax(sums[event]))
        zeros = np.flatnonzero(sums[:event, design] == 0)
        since = begun + (int(zeros[-1]) + 1 if zeros.size else 0)
        scores = self._taking_part(since, begun + event)[:, design]
        if self._is_small(begun, begun + event, scores):
            return begun + event + 1
        return self._raise(begun, begun + event, design, float(sums[event, design]), scores)

    def _is_small(self, begun: int, raised: int, scores: Array) -> bool:
        """Tell whether the change that was found at `raised` does not matter."""
        first = max(begun, raised - _BEFORE_ONSET - _AFTER_ALARM)
        onset = first + onset_interval(scores[first : raised + 1], raised - first)[0]
        before = self._runs(max(0, onset - LARGEST_REFERENCE), onset)[1]
        after = self._runs(onset, raised + 1)[1]
        if not (before.size and after.size):
            return False
        off = float(np.exp(np.median(after)))
        return is_small(off, self.least) and is_surely_small(level_ratio(before, after), self.least)

    def _raise(self, begun: int, raised: int, design: int, score: float, scores: Array) -> int:
        is_down = design < len(DROPS)
        evidence = self.down if is_down else self.up
        later = scores[raised + 1 :]
        evidence[raised + 1 :] = np.maximum(score + np.cumsum(later), 0.0)
        (self.up if is_down else self.down)[raised + 1 :] = 0.0
        back = np.cumsum(-later)
        sums = back - np.minimum(np.minimum.accumulate(back), 0.0)
        over = np.flatnonzero(sums >= RECOVERY)
        ended = closed = None
        if over.size:
            zeros = np.flatnonzero(sums[: over[0]] == 0)
            ended = raised + 1 + (int(zeros[-1]) + 1 if zeros.size else 0)
            closed = raised + 1 + int(over[0])
        alarm = Alarm(
            direction=DOWN if is_down else UP,
            raised=raised,
            onset=raised,
            onset_low=raised,
            onset_high=raised,
            ratio=level_ratio(np.zeros(1), np.zeros(1)),
            score=score,
            limit=self.limit,
            design=DESIGNS[design],
            ended=ended,
            closed=closed,
            end=RECOVERED if over.size else None,
        )
        self.alarms.append(self._dated(alarm, begun, scores))
        return len(self.down) if ended is None else ended

    def _dated(self, alarm: Alarm, begun: int, scores: Array) -> CommonAlarm:
        stop = min(len(self.down), alarm.raised + 1 + _AFTER_ALARM)
        if alarm.ended is not None:
            stop = max(alarm.raised + 1, min(stop, alarm.ended))
        first = max(begun, alarm.raised - _BEFORE_ONSET - _AFTER_ALARM)
        dated = onset_interval(scores[first:stop], alarm.raised - first)
        onset, low, high = (first + i for i in dated)
        before = self._levels(max(0, onset - LARGEST_REFERENCE), onset)
        after = self._levels(onset, alarm.ended)
        ratio = level_ratio(before if before.size else np.zeros(1), after)
        told = replace(alarm, onset=onset, onset_low=low, onset_high=high, ratio=ratio)
        given = [part.sums(onset, alarm.ended, alarm.direction) for part in self.parts]
        total = float(np.sum(given, axis=0).max())
        return CommonAlarm(told, tuple(float(sums.max()) for sums in given), total)

    def _runs(self, first: int, last: int | None) -> tuple[NDArray[np.int_], Array]:
        """Return the sessions and residuals of the runs from `first` to before `last`."""
        spans = [within(part.sessions, first, last) for part in self.parts]
        places = np.concatenate(
            [part.sessions[span] for part, span in zip(self.parts, spans, strict=True)]
        )
        values = np.concatenate(
            [part.residuals[span] for part, span in zip(self.parts, spans, strict=True)]
        )
        known = ~np.isnan(values)
        return places[known], values[known]

    def _levels(self, first: int, last: int | None) -> Array:
        """Return the median residual of each session from `first` to before `last` that has one."""
        places, values = self._runs(first, last)
        order = np.lexsort((values, places))
        values = values[order]
        _, starts, counts = np.unique(places[order], return_index=True, return_counts=True)
        return (values[starts + (counts - 1) // 2] + values[starts + counts // 2]) / 2
