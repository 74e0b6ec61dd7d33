"""Metrics of the site for node_exporter's textfile collector, and its history for promtool.

The text is OpenMetrics and, as every type is a gauge, also Prometheus' older text format, which
the textfile collector reads. The collector refuses times, so only the history has them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

import numpy as np

from iobands.snapshot import Severity, Snapshot

#: The help texts of the metrics, in the order of output.
_HELP: Final = {
    "sample": "The newest value of a series, in its unit.",
    "sample_timestamp_seconds": "Time of the newest value of a series.",
    "series_state": "1 for the current state of a series.",
    "band": "The band of a series, in its unit.",
    "alerts": "Open alerts by severity and whether they are acknowledged.",
    "exit_status": "The exit status of iobands status: 0, 1, 2 or 3.",
    "last_session_timestamp_seconds": "Time of the newest value of a system; alert on its age.",
}
#: The figures of a band that become labels.
_BAND: Final = ("floor", "lower_quartile", "median", "upper_quartile")
_ESCAPED: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def state_metrics(site: Snapshot) -> str:
    """Return the state of the site now, without times."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    newest: dict[str, float] = {}
    for each in site.series:
        labels, status = {**each.key.fields(), "unit": each.key.unit}, each.status
        found["series_state"].append(_sample({**labels, "state": status.state.value}, 1))
        for name in _BAND if status.band else ():
            found["band"].append(_sample({**labels, "figure": name}, getattr(status.band, name)))
        if status.value is not None and status.when:
            time = status.when.timestamp()
            found["sample"].append(_sample(labels, status.value))
            found["sample_timestamp_seconds"].append(_sample(labels, time))
            newest[each.key.system] = max(time, newest.get(each.key.system, time))
    alerts = Counter((each.severity, each.is_quiet) for each in site.alerts)
    for severity, quiet in product(Severity, (False, True)):
        labels = {"severity": severity.value, "acknowledged": str(quiet).lower()}
        found["alerts"].append(_sample(labels, alerts[severity, quiet]))
    found["exit_status"].append(_sample({}, site.exit_status))
    for system, time in newest.items():
        found["last_session_timestamp_seconds"].append(_sample({"system": system}, time))
    return _written({name: found[name] for name in _HELP}, _HELP)


def history_metrics(site: Snapshot) -> str:
    """Return all values with their times, for `promtool tsdb create-blocks-from openmetrics`."""
    samples: list[str] = []
    for series in site.series:
        labels, history = {**series.key.fields(), "unit": series.key.unit}, series.history
        seconds = history.times.astype("datetime64[ns]").astype(np.int64) / 1e9
        # a database keeps one value per time: here the last
        last = np.diff(seconds, append=np.inf) > 0
        pairs = zip(history.values[last], seconds[last], strict=True)
        samples += [f"{_sample(labels, value)} {time:.3f}" for value, time in pairs]
    return _written({"sample": samples}, {"sample": "The values of a series, in its unit."})


def _written(found: Mapping[str, Sequence[str]], explained: Mapping[str, str]) -> str:
    lines = []
    for name, samples in found.items():
        if samples:
            lines += [f"# HELP iobands_{name} {explained[name]}", f"# TYPE iobands_{name} gauge"]
        lines += [f"iobands_{name}{each}" for each in samples]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _sample(labels: Mapping[str, object], value: float) -> str:
    """Return the labels and the value of a sample, to follow the name of a metric."""
    pairs = (f'{name}="{_text(each)}"' for name, each in labels.items() if each is not None)
    return f"{{{','.join(pairs)}}} {float(value)!r}" if labels else f" {float(value)!r}"


def _text(value: object) -> str:
    text = f"{value:.15g}" if isinstance(value, int | float) else str(value)
    if isinstance(value, float) and float(text) != value:
        text = repr(value)  # else two series might have equal labels
    return text.translate(_ESCAPED)
