"""`iobands.load`: samples as a pandas frame."""

from __future__ import annotations

from pathlib import Path

import iobands
from iobands.model import READ
from tests.factory import NOW, daily, write_perflog


def test_load(tmp_path: Path) -> None:
    write_perflog(tmp_path, [*daily([1.0, None, 3.0]), *daily([5.0], last=9, stripe_count=4)])
    frame = iobands.load(tmp_path)
    assert list(frame.columns) == list(READ)
    assert frame["perf_value"].tolist() == [5, 1, 3]
    assert frame.loc[frame["perf_value"] > 2, "stripe_count"].isna().tolist() == [False, True]
    assert (NOW - frame["job_completion_time"].iloc[-1]).total_seconds() == 6 * 3600
    assert frame.groupby("pattern")["perf_value"].count().to_dict() == {"fpp": 3}
    assert frame["hints_in_effect"].isna().all()
    assert frame.attrs["rejected"] == []
    assert len(iobands.load(tmp_path, "there")) == 0
