"""Properties: for any runs, irrelevant changes of a site do not change what is reported."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iobands.model import slug
from iobands.snapshot import ACKNOWLEDGE, REBASELINE, RESOLVE, UNDO, Snapshot
from tests.factory import NOW, daily, write_perflog
from tests.sites import DAY, SiteFiles

#: For each series, the time of its nightly run in days before NOW, and the factor it falls to.
NIGHTS = st.lists(
    st.tuples(st.floats(0.01, 0.99), st.sampled_from([0.5, 0.7, 1.0])), min_size=2, max_size=4
)


def rows(system: str, series: list[tuple[float, float]], seed: int) -> list[str]:
    """Return 50 nights of writes to a disk, low in the five before the last five."""
    random = np.random.default_rng(seed)
    lines = []
    for number, (ago, factor) in enumerate(series):
        level = np.repeat([2.0, 2.0 * factor, 2.0], [40, 5, 5])
        values = level * np.exp(0.1 * random.standard_normal(50))
        lines += daily(values, last=ago, system=system, pattern=f"p{number}")
    return lines


def said(site: Snapshot) -> list[object]:
    """Return what the snapshot says about the system `here`: sessions, incidents and alerts."""
    mine = [each for each in site.series if each.key.system == "here"]
    first = min(each.history.sessions[0] for each in mine)
    known = [each for each in (*site.alerts, *site.past) if each.system == "here"]
    return [
        *((slug(e.key), e.status.state, (e.history.sessions - first).tolist()) for e in mine),
        *((e.variable, e.since, e.raised, e.closed) for e in site.incidents if e.system == "here"),
        *((e.number, e.severity, e.since, e.raised, e.delay, e.ended, e.score) for e in known),
    ]


@settings(max_examples=10, deadline=None)
@given(here=NIGHTS, there=NIGHTS, seed=st.integers(0, 100))
def test_what_is_said_of_a_system_does_not_depend_on_the_runs_of_another(
    here: list[tuple[float, float]], there: list[tuple[float, float]], seed: int
) -> None:
    with TemporaryDirectory() as root:
        files = SiteFiles(Path(root))
        write_perflog(files.perflogs, rows("here", here, seed))
        alone = said(files.read())
        write_perflog(files.perflogs, rows("there", there, seed + 1), system="there")
        assert said(files.read()) == alone


@pytest.mark.parametrize("kind", [ACKNOWLEDGE, RESOLVE, REBASELINE])
def test_an_answer_that_is_undone_leaves_all_series_as_before(tmp_path: Path, kind: str) -> None:
    # one becomes unstable, at the same level, and the other falls with it
    noise = 0.02 * np.random.default_rng(1).standard_normal((2, 140))
    wild = 2 * np.exp(noise[0] * np.repeat([1, 5], [100, 40]))
    low = 2 * np.exp(noise[1]) * np.repeat([1, 0.7], [102, 38])
    files = SiteFiles(tmp_path).write([*daily(wild, pattern="fpp"), *daily(low, pattern="ssf")])

    def members() -> list[tuple[str, str]]:
        (alert,) = files.read().alerts
        return [(each.series.label, each.series.status.state.value) for each in alert.members]

    before = members()
    assert before == [("disk ssf write_bw", "degraded"), ("disk fpp write_bw", "unstable")]
    files.act(kind, "1", force=True)
    files.act(UNDO, "1", now=NOW + DAY / 24, force=True)
    assert members() == before
