"""Sequential charts: whether a series has changed for good, how sure that is, and since when.

The interface, all pure functions over plain numbers; nothing here knows files, times or states::

    chart = follow(values, band, history=(), resets=(), limit=9.0, watch=5.7, least=0.05)
    chart = extend(chart, more_values, resets=())    # the same as a full pass, to the last bit
    chart.down, chart.up        # evidence after each run, in nats
    chart.is_watched, chart.open_alarm, chart.alarms, chart.settled, chart.can_judge
    alarm.direction, .raised, .onset, .onset_low, .onset_high, .ratio.value/.low/.high,
         .score, .limit, .design, .ended, .closed, .end, .is_open

    parts = [Part.of(chart, sessions_of_its_runs), ...]    # .only(mask) for some of its runs
    pooled = follow_together(parts)
    pooled.alarms[i].alarm, .contributions, .series; pooled.down, pooled.up, pooled.open_alarm

    limit_for(false_alarms_a_year=1, series=500, runs_a_year=365)   # fleet budget -> limit
    runs_between_false_alarms(limit)                                # to show beside an alarm
    power(chart, drop=0.7)                                          # runs until it would be seen

`values` are positive numbers in the order of time, one sample a job; `band` is anything with
`lower_quartile`, `median`, `upper_quartile` and `maximum`, such as `iobands.bands.Band`, or None;
`history` are earlier healthy values; `resets` are the indices of runs from which on a person
declared a new normal. Indices of runs count from 0 over all runs the chart ever got.
"""

from __future__ import annotations

from iobands.detection.alarm import DOWN, NEW_NORMAL, RECOVERED, SETTLED, UP, Alarm
from iobands.detection.change import Ratio
from iobands.detection.chart import (
    DEGRADED,
    FIRST_REFERENCE,
    FULL_REFERENCE,
    LAG,
    LARGEST_REFERENCE,
    LEAST,
    WATCH,
    Chart,
    begin,
)
from iobands.detection.correlation import serial_correlation
from iobands.detection.drawing import extend, follow
from iobands.detection.limits import limit_for, power, runs_between_false_alarms
from iobands.detection.parts import Part
from iobands.detection.pool import CommonAlarm, PooledChart, follow_together
from iobands.detection.scores import DESIGNS, Quartiles

__all__ = [
    "DEGRADED",
    "DESIGNS",
    "DOWN",
    "FIRST_REFERENCE",
    "FULL_REFERENCE",
    "LAG",
    "LARGEST_REFERENCE",
    "LEAST",
    "NEW_NORMAL",
    "RECOVERED",
    "SETTLED",
    "UP",
    "WATCH",
    "Alarm",
    "Chart",
    "CommonAlarm",
    "Part",
    "PooledChart",
    "Quartiles",
    "Ratio",
    "begin",
    "extend",
    "follow",
    "follow_together",
    "limit_for",
    "power",
    "runs_between_false_alarms",
    "serial_correlation",
]
