"""Measuring low runs again does not change the figures of a healthy site."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from iobands.judge.advise import published
from iobands.judge.calibrate import calibrate
from iobands.source.missing_runs import overdue_after
from iobands.source.site_file import SiteFile
from tests.factory import NOW, line
from tests.sites import SiteFiles

DAYS = 120


def site(root: Path, *, repeats: bool):
    """Return the judgement of a healthy site; with `repeats` low runs are measured again."""
    random = np.random.default_rng(1)
    rows = []
    for ago in range(DAYS, 0, -1):
        when, value = NOW - timedelta(days=ago), float(np.exp(0.2 * random.standard_normal()))
        rows.append(row(when, value, "scheduled"))
        low = value < 0.8  # what lowered it lasts
        again = [row(when + timedelta(hours=4 * n), 0.9 * value, "suspect") for n in (1, 2)]
        rows += again if repeats and low else []
    return SiteFiles(root).write(rows).judge()


def row(when: datetime, value: float, purpose: str) -> str:
    return line(job_completion_time=when.isoformat(), perf_value=value, purpose=purpose)


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    pair = [
        site(tmp_path_factory.mktemp(name), repeats=name == "asked") for name in ("not", "asked")
    ]
    asked = pair[1].snapshot.series[0].history.asked
    assert asked.sum() > 20
    return pair


WHAT = {
    "band": lambda each: first(each).status.band,
    "usable": lambda each: first(each).status.usable,
    "outliers": lambda each: first(each).outliers,
    "level": lambda each: first(each).status.evidence.level,
    "correlation": lambda each: first(each).status.evidence.correlation,
    "threshold": lambda each: first(each).status.evidence.threshold,
    "learned": lambda each: [one.learned[0].band for one in calibrate(each)],
    "overdue": lambda each: overdue_after(first(each).history),
    "rates": lambda each: published(each.snapshot.series, SiteFile(), ())[0].rates,
}


def first(judgement):
    return judgement.snapshot.series[0]


@pytest.mark.parametrize("what", WHAT.values(), ids=WHAT)
def test_what_is_learned_does_not_move(sites, what):
    without, with_repeats = map(what, sites)
    assert with_repeats == without
    assert without is not None
