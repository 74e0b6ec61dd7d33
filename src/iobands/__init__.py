"""iobands: the I/O performance of an HPC site, from perflogs to verdicts.

This module stays light on purpose: `iobands.bands` is imported by ReFrame checks under a
site's own ReFrame, where neither pandas nor matplotlib need exist.
"""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from iobands.version import __version__ as __version__

if TYPE_CHECKING:
    import pandas as pd

_STATUS = ("why", "value", "when", "verdict", "runs", "missing")
_ALERT = ("name", "subject", "direction", "since", "raised", "is_quiet", "reason")


def load(perflogs: str | Path, system: str | None = None) -> pd.DataFrame:
    """Return the samples of a directory of perflogs as a pandas frame, for notebooks.

    A row is a sample, in the order of time; a column is a field of contract 2. Times are in UTC,
    `perf_value` is in `perf_unit`, and what is missing is None, or NaN in a column of numbers.
    `attrs["rejected"]` has a line of text for each line that could not be read. Needs the packages
    of `iobands[report]`.

    Raises:
        FileNotFoundError: there is no such directory.
    """
    import pandas as pd  # noqa: PLC0415 (slow to load)

    from iobands.source.perflog import read_perflogs  # noqa: PLC0415

    samples = read_perflogs(Path(perflogs), system)
    frame = pd.DataFrame({column.name: column.to_numpy() for column in samples.measured})
    frame["job_completion_time"] = frame["job_completion_time"].dt.tz_localize("UTC")
    frame.attrs["rejected"] = [str(rejected) for rejected in samples.rejected]
    return frame


def status(
    perflogs: str | Path, config: str | Path | None = None, *, now: datetime | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the states and the alerts of a site as two pandas frames, for notebooks.

    The columns are fields of contract 6. A row of the states is a series; `value` and `median`,
    the median of its band, are in `unit`. The alerts, the worst first, have a row for each of
    their series, and one where they have none; `ratio` is the level since over the `baseline`.
    `config` has the directories `bands` and `alerts`; by default it is the one beside the perflogs.
    Needs the packages of `iobands[report]`.

    Raises:
        FileNotFoundError: there are no perflogs.
    """
    import pandas as pd  # noqa: PLC0415 (slow to load)

    from iobands.judge.site import read_site  # noqa: PLC0415
    from iobands.model import SERIES_FIELDS  # noqa: PLC0415

    perflogs = Path(perflogs)
    config = Path(config) if config else perflogs.resolve().parent / "config"
    when = now or datetime.now(timezone.utc)
    site = read_site(perflogs, config / "bands", config / "alerts", now=when)
    states = [
        {
            "label": each.label,
            **each.key.fields(),
            "unit": each.key.unit,
            "state": each.status.state.value,
            **{name: getattr(each.status, name) for name in _STATUS},
            "median": each.status.band and each.status.band.median,
        }
        for each in site.series
    ]
    alerts = [
        {
            "severity": alert.severity.value,
            **{name: getattr(alert, name) for name in _ALERT},
            "certainty": alert.certainty and alert.certainty.value,
            "label": member and member.series.label,
            "ratio": member and member.ratio and member.ratio.value,
            "baseline": member and member.baseline,
            "unit": member and member.unit,
        }
        for alert in site.alerts
        for member in alert.members or (None,)
    ]
    columns = ["severity", *_ALERT, "certainty", "label", "ratio", "baseline", "unit"]
    own = ["label", *SERIES_FIELDS, "variable", "unit", "state", *_STATUS, "median"]
    return pd.DataFrame(states, columns=own), pd.DataFrame(alerts, columns=columns)
