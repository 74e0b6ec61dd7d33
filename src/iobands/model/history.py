"""The samples of one series as plain arrays, for bands, charts and states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.datetime64]
Flags = NDArray[np.bool_]

#: The phase that fails when a run measured its rates and they are too low.
PERFORMANCE: Final = "performance"
#: Samples compare with the newest one if they agree in these; of `suite_version` in the major.
COMPARED: Final = ("tool_version", "fsync", "suite_version")


@dataclass(frozen=True)
class History:
    """The samples of a series in the order of time; each array is of shape (samples,).

    `times` are in UTC. `passed`: the run did all that was asked of it. `too_slow`: it failed in
    the performance phase. `alike`: it agrees with the newest sample in `COMPARED`. `newest` has
    the fields of the newest sample, None where missing.
    """

    times: Times
    values: NDArray[np.float64]
    passed: Flags
    too_slow: Flags
    alike: Flags
    newest: Mapping[str, Any]

    def __len__(self) -> int:
        """Return how many samples there are."""
        return len(self.times)

    @property
    def first(self) -> datetime:
        """When the first sample was taken."""
        return moment_of(self.times[0])

    @property
    def last(self) -> datetime:
        """When the newest sample was taken."""
        return moment_of(self.times[-1])


#: The history of a series without samples.
NOTHING: Final = History(
    np.empty(0, "datetime64[ns]"),
    np.empty(0),
    np.empty(0, bool),
    np.empty(0, bool),
    np.empty(0, bool),
    {},
)


def moment_of(time: np.datetime64) -> datetime:
    """Return `time`, which is in UTC, to the microsecond."""
    moment: datetime = time.astype("datetime64[us]").item()
    return moment.replace(tzinfo=timezone.utc)


def in_utc(when: datetime) -> np.datetime64:
    """Return `when`, which has an offset, as numpy time in UTC."""
    return np.datetime64(when.astimezone(timezone.utc).replace(tzinfo=None), "ns")


def moment(time: np.datetime64) -> datetime:
    """Return `time`, which is in UTC, to the second."""
    seconds = int(time.astype("datetime64[s]").astype(np.int64))
    return datetime.fromtimestamp(seconds, tz=timezone.utc)
