"""iobands: the I/O performance of an HPC site, from perflogs to verdicts.

This module stays light on purpose: `iobands.bands` is imported by ReFrame checks under a
site's own ReFrame, where neither pandas nor matplotlib need exist.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__version__ = "0.1.0"


def load(perflogs: str | Path, system: str | None = None) -> pd.DataFrame:
    """Return the samples of a directory of perflogs as a pandas frame, for notebooks.

    A row is a sample, in the order of time; a column is a field of contract 2. Times are in UTC,
    `perf_value` is in `perf_unit`, and what is missing is None, or NaN in a column of numbers.
    `attrs["rejected"]` has a line of text for each line that could not be read.

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
