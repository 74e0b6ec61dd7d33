"""The site as metrics: for node_exporter's textfile collector, and the history for promtool.

The text is OpenMetrics and, as every type is a gauge, also Prometheus' older text format, which
the textfile collector reads. The collector refuses times, so only the history has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from iobands.snapshot import SERIES_FIELDS, SeriesKey, Severity, Snapshot

#: The quantiles of a band, as labels.
_BAND: Final = ("floor", "lower_quartile", "median", "upper_quartile")
_ESCAPED: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_NANOSECONDS: Final = 1e9

Labels = Mapping[str, object]


@dataclass
class _Family:
    """A metric with its help and its samples: labels, value and time in seconds or None."""

    name: str
    help: str
    samples: list[tuple[Labels, float, float | None]] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} gauge"
        for labels, value, time in self.samples:
            inside = ",".join(
                f'{name}="{_text(each).translate(_ESCAPED)}"'
                for name, each in labels.items()
                if each is not None
            )
            at = "" if time is None else f" {time:.3f}"
            yield f"{self.name}{f'{{{inside}}}' if inside else ''} {value!r}{at}"


def state_metrics(site: Snapshot) -> str:
    """Return the state of the site now, without times."""
    newest = _Family("iobands_sample", "The newest value of a series, in its unit.")
    times = _Family("iobands_sample_timestamp_seconds", "Time of the newest value of a series.")
    states = _Family("iobands_series_state", "1 for the current state of a series.")
    bands = _Family("iobands_band", "The band of a series, in its unit.")
    for series in site.series:
        labels, status = _labels(series.key), series.status
        states.samples.append(({**labels, "state": status.state.value}, 1.0, None))
        if status.value is not None and status.when is not None:
            newest.samples.append((labels, status.value, None))
            times.samples.append((labels, status.when.timestamp(), None))
        if status.band:
            for name in _BAND:
                value = float(getattr(status.band, name))
                bands.samples.append(({**labels, "figure": name}, value, None))
    alerts = _Family("iobands_alerts", "Open alerts by severity and whether they are acknowledged.")
    for severity in Severity:
        for known in (False, True):
            found = sum(
                each.severity is severity and each.is_quiet is known for each in site.alerts
            )
            names = {"severity": severity.value, "acknowledged": str(known).lower()}
            alerts.samples.append((names, float(found), None))
    exit_status = _Family("iobands_exit_status", "The exit status of iobands status: 0, 1, 2 or 3.")
    exit_status.samples.append(({}, float(site.exit_status), None))
    session = _Family(
        "iobands_last_session_timestamp_seconds",
        "Time of the newest value of a system; alert on its age.",
    )
    measured = [(each.key.system, each.status.when) for each in site.series if each.status.when]
    for system in dict.fromkeys(name for name, _ in measured):
        newest_of = max(when for name, when in measured if name == system)
        session.samples.append(({"system": system}, newest_of.timestamp(), None))
    return _written([newest, times, states, bands, alerts, exit_status, session])


def history_metrics(site: Snapshot) -> str:
    """Return all values with their times, for `promtool tsdb create-blocks-from openmetrics`."""
    family = _Family("iobands_sample", "The values of a series, in its unit.")
    for series in site.series:
        labels, history = _labels(series.key), series.history
        seconds = history.times.astype("datetime64[ns]").astype(np.int64) / _NANOSECONDS
        # a database keeps only one of two values at the same time
        last = np.append(np.diff(seconds) > 0, [True] * bool(len(seconds))).astype(bool)
        for value, at in zip(history.values[last], seconds[last], strict=True):
            family.samples.append((labels, float(value), float(at)))
    return _written([family])


def _written(families: Sequence[_Family]) -> str:
    lines = [line for family in families if family.samples for line in family.lines()]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _labels(key: SeriesKey) -> dict[str, object]:
    fields = {name: getattr(key, name) for name in SERIES_FIELDS}
    return {**fields, "variable": key.variable, "unit": key.unit}


def _text(value: object) -> str:
    return f"{value:.15g}" if isinstance(value, int | float) else str(value)
