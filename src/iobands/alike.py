"""Which samples of a series compare with its newest one, and which of them the chart judges.

Pure functions over tables and bands; may know neither files nor views.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from iobands.bands import Bands
from iobands.following import PERFORMANCE
from iobands.nodes import nodes_of


def comparable(samples: pd.DataFrame, bands: Bands | None) -> pd.DataFrame:
    """Return time and value of the earlier samples that the newest one compares with.

    They passed, were measured in the same way (`alike`), and are of the same epoch.
    """
    chosen = earlier(comparing(samples, bands) & says(samples["result"], "pass"))
    # of few columns, because a selection costs by the column
    return samples[["job_completion_time", "perf_value"]].iloc[np.flatnonzero(chosen)]


def earlier(chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return `chosen` without the newest sample, which must not be judged by itself."""
    chosen[-1] = False
    return chosen


def judged(samples: pd.DataFrame, compares: NDArray[np.bool_]) -> NDArray[np.int_]:
    """Return the places of the samples that the chart judges, the newest one among them.

    They compare with the newest one. Those count too that were measured and failed for being
    slow: without them a file system that collapses would have a spotless record.
    """
    measured = says(samples["result"], "pass")
    return np.flatnonzero(compares & (measured | says(samples["fail_phase"], PERFORMANCE)))


def says(cells: pd.Series, text: str) -> NDArray[np.bool_]:
    """Return which of `cells` say `text`; one that is missing says nothing."""
    codes, kinds = _kinds(cells)
    return np.array([*(str(kind) == text for kind in kinds), False])[codes]


def _kinds(cells: pd.Series) -> tuple[NDArray[np.int_], Sequence[object]]:
    """Return for each cell the place of what it says among all kinds, and these; -1 if missing."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        # which has done this already, and takes much longer to do it over
        return cells.array.codes, cells.array.categories
    return pd.factorize(cells)


def comparing(samples: pd.DataFrame, bands: Bands | None) -> NDArray[np.bool_]:
    """Return which samples compare with the newest: measured alike, in epochs that compare."""
    times = samples["job_completion_time"]
    chosen = alike(samples)
    if bands is None:
        return chosen
    since = bands.compares_since(times.iloc[-1].to_pydatetime())
    if since is not None:
        chosen = chosen & (times >= since).to_numpy()
    return chosen & ~left_out(samples, bands)


def left_out(samples: pd.DataFrame, bands: Bands | None) -> NDArray[np.bool_]:
    """Return which of `samples` compare with nothing, as their alarm was closed."""
    times = samples["job_completion_time"]
    found = np.zeros(len(times), dtype=bool)
    for closed in bands.left_out if bands else ():
        inside = ((times >= closed.since) & (times <= closed.until)).to_numpy()
        found |= inside & touched(samples, closed.nodes) if closed.nodes else inside
    return found


def touched(samples: pd.DataFrame, nodes: Collection[str]) -> NDArray[np.bool_]:
    """Return which of `samples` any of `nodes` took part in, as far as it is known."""
    if "job_nodelist" not in samples:
        return np.zeros(len(samples), dtype=bool)
    codes, kinds = _kinds(samples["job_nodelist"])
    any_of = [not set(nodes).isdisjoint(nodes_of(str(kind))) for kind in kinds]
    return np.array([*any_of, False])[codes]  # the last for those that are missing


def alike(samples: pd.DataFrame) -> np.ndarray:
    """Return which of `samples` were measured as the newest one was, of shape (samples,).

    They agree in the version of the tool, in `fsync` and in the first number of the version of the
    suite, as far as the table has these columns. What is missing agrees with what is missing only.
    """
    same = np.ones(len(samples), dtype=bool)
    for name in ("tool_version", "fsync", "suite_version"):
        if name in samples:
            codes, kinds = _kinds(samples[name])
            kinds = [_major(kind) if name == "suite_version" else str(kind) for kind in kinds]
            newest = kinds[codes[-1]] if codes[-1] >= 0 else None
            wanted = [kind == newest for kind in kinds]
            # the last place, which the code -1 of a missing value points at, is for those
            same &= np.array([*wanted, codes[-1] < 0])[codes]
    return same


def _major(version: object) -> str:
    return str(version).split(".", maxsplit=1)[0]
