"""Which series and runs are pooled, and what they are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
from iobands.alerts.pools import LEAST_RUNS, MOST_NODE_SETS, Pool, charts_a_year, pools_of
from iobands.alerts.sessions import sessions_of

from iobands.model.history import History
from iobands.model.series import SeriesKey
from tests.package.factory import NOW

KEY = SeriesKey(
    "here", "cpu", "gnu", "benchio", "fpp", "mpiio", "a", None, "ofi", "default", 1, 4, 0.5,
    "write_bw",
)  # fmt: skip


def runs(*lists: str | None, days: float = 1) -> History:
    """Return the history of samples with these node lists, so many days apart up to NOW."""
    times = [NOW - timedelta(days=days * i) for i in range(len(lists))][::-1]
    samples = {
        "job_completion_time": pd.to_datetime(times),
        "job_nodelist": pd.Series(lists, dtype="category"),
    }
    return History.of(pd.DataFrame(samples))


def named(samples: dict[SeriesKey, History]) -> dict[str, Pool]:
    return {pool.name: pool for pool in pools_of(samples)}


def test_what_the_same_series_make_up_is_one_pool() -> None:
    found = named({KEY: runs(*["n1"] * 9), replace(KEY, pattern="ssf"): runs(*["n1"] * 9)})
    assert list(found) == ["all a"]


def test_a_variable_of_one_series_is_in_no_pool() -> None:
    other = replace(KEY, variable="read_bw")
    assert named({KEY: runs("n1"), other: runs("n1")}) == {}
    third = replace(KEY, pattern="ssf")
    assert named({KEY: runs("n1"), other: runs("n1"), third: runs("n1")})["all a"].keys == (
        KEY,
        third,
    )


def test_file_systems_transports_partitions_and_systems() -> None:
    keys = [
        replace(KEY, file_system=fs, transport=transport, partition=partition, pattern=pattern)
        for fs in "ab"
        for transport in ("ofi", "ucx")
        for partition in ("cpu", "gpu")
        for pattern in ("fpp", "ssf")
    ]
    assert set(named({key: runs("n1") for key in keys})) == {
        "all a",
        "all b",
        "all transport ofi",
        "all transport ucx",
        "all partition cpu",
        "all partition gpu",
    }
    two = [key for key in keys if key.partition == "cpu" and key.transport == "ofi"]
    two += [replace(key, system="there") for key in two]
    assert set(named({key: runs("n1") for key in two})) == {
        f"all {system} {what}"
        for system in ("here", "there")
        for what in ("a", "b", "partition cpu")
    }


def fixed(nodes: Sequence[str]) -> History:
    return runs(*[",".join(nodes)] * 10)


def test_nodes_that_go_together_are_one_set() -> None:
    small = [replace(KEY, pattern=pattern) for pattern in ("fpp", "ssf")]
    large = [replace(key, nodes=4) for key in small]
    samples = {key: fixed(["n1"]) for key in small}
    samples |= {key: fixed(["n1", "n2", "n3", "n4"]) for key in large}
    found = named(samples)
    # n1 is touched by all, which "all a" says already
    assert set(found) == {"all a", "all nodes n[2-4]"}
    assert found["all nodes n[2-4]"].keys == tuple(large)
    assert found["all nodes n[2-4]"].rows is None


def test_nodes_that_a_scheduler_picks_are_pools_of_the_runs_that_touched_them() -> None:
    keys = [replace(KEY, pattern=pattern) for pattern in ("fpp", "ssf", "fpn")]
    samples = {
        keys[0]: runs(*["n1", "n2"] * 6),
        keys[1]: runs(*["n1,n2", "n2,n3"] * 6),
        keys[2]: runs(*["n3"] * 4, *["n2", None] * 4),
    }
    found = named(samples)
    assert set(found) == {"all a", "all node n1", "all node n2"}  # n3: one series often enough
    assert found["all node n1"].keys == tuple(keys[:2])  # keys[2] never touched it
    rows = found["all node n1"].rows
    assert rows is not None
    assert rows[keys[0]].tolist() == rows[keys[1]].tolist() == [0, 2, 4, 6, 8, 10]
    pool = found["all node n1"]
    assert pool.of(keys[0], np.array([2, 3, 4])).tolist() == [True, False, True]


def test_old_runs_teach_nothing_of_nodes() -> None:
    keys = [KEY, replace(KEY, pattern="ssf")]
    lists = ["old"] * 20 + ["n1", "n2"] * 10
    found = named({key: runs(*lists, days=20) for key in keys})
    assert "all node old" not in found
    assert found["all node n1"].rows is not None


def test_charts_are_counted_by_the_sessions_that_they_judge() -> None:
    keys = [KEY, replace(KEY, pattern="ssf")]
    # every second day each, on days in turn: together daily
    times = np.arange(np.datetime64("2026-01-01"), np.datetime64("2026-12-01")).astype("M8[ns]")
    sessions = sessions_of({keys[0]: times[::2], keys[1]: times[1::2]})
    assert charts_a_year(Pool("file system", "all a", tuple(keys)), sessions) == pytest.approx(365)
    rows = {key: np.arange(0, 160, 10) for key in keys}
    touched = Pool("nodes", "all node n1", tuple(keys), rows)
    # 32 sessions, from the first day to the 302nd
    assert charts_a_year(touched, sessions) == pytest.approx(32 * 365 / 301)


def test_a_night_is_one_session() -> None:
    late = np.array(["2026-01-01T23:50", "2026-01-02T23:40"], dtype="M8[ns]")
    early = np.array(["2026-01-02T00:10", "2026-01-03T00:20"], dtype="M8[ns]")
    twice = np.array(["2026-01-01T23:55", "2026-01-02T00:30"], dtype="M8[ns]")
    keys = [replace(KEY, pattern=pattern) for pattern in ("one", "two", "three")]
    found = sessions_of(dict(zip(keys, (late, early, twice), strict=True))).numbers
    assert found[keys[0]].tolist() == found[keys[1]].tolist()
    assert found[keys[2]][0] == found[keys[0]][0]
    assert found[keys[0]][0] < found[keys[2]][1] < found[keys[0]][1]
    assert sessions_of({}).numbers == {}


def test_of_very_many_sets_of_nodes_those_with_the_most_runs_are_followed() -> None:
    lists = ["rare"] * LEAST_RUNS
    for number in range(MOST_NODE_SETS):
        lists += [f"n{number}"] * (LEAST_RUNS + 1)
    found = named({key: runs(*lists, days=0.2) for key in (KEY, replace(KEY, pattern="ssf"))})
    nodes = {name for name in found if name.startswith("all node ")}
    assert nodes == {f"all node n{number}" for number in range(MOST_NODE_SETS)}
