"""Perflogs of a made-up site of which it is known what moved, when and on which nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import numpy as np
from iobands.status.survey import Survey, take_survey

from tests.package.factory import NOW, days_ago, line, write_perflog

DAYS = 150
SERIES = [
    {"file_system": fs, "pattern": pattern, "transport": transport}
    for fs, pattern, transport in product(("a", "b"), ("fpp", "ssf"), ("ofi", "ucx"))
]

Factor = Callable[[dict[str, str], int, Sequence[str]], float]


def site(
    tmp_path: Path,
    factor: Factor,
    *,
    nodes: Callable[[np.random.Generator], Sequence[str]] = lambda _: ("n1", "n2"),
    seed: int = 1,
    days: int = DAYS,
    variables: Sequence[str] = ("write_bw",),
    series: Sequence[dict[str, str]] = SERIES,
) -> Survey:
    """Survey 150 days of eight series, of two file systems and two transports.

    `factor` gets the fields of a series, how many days ago a run was, and its nodes, and says what
    its value is multiplied by; `nodes` draws the nodes of a run. A fifth of the variance is the
    day's, which all series share.
    """
    random = np.random.default_rng(seed)
    rows = []
    for day in range(days - 1, -1, -1):
        common = 0.05 * random.standard_normal()
        for fields in series:
            names = nodes(random)
            for variable in variables:
                value = 2 * np.exp(common + 0.1 * random.standard_normal())
                value *= factor({**fields, "variable": variable}, day, names)
                rows.append(
                    line(
                        job_completion_time=days_ago(day + 0.25),
                        perf_value=value,
                        perf_var=variable,
                        job_nodelist=",".join(names),
                        environ=fields["transport"],
                        **fields,
                    )
                )
    write_perflog(tmp_path / "perflogs", rows)
    return take_survey(tmp_path / "perflogs", tmp_path / "bands", now=NOW)
