"""Planned repeats, as shown by the digest and the explanation."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from iobands.judge.site import read_site
from iobands.model import Ask, slug
from iobands.snapshot import public
from iobands.views.dashboard.series import details_of
from iobands.views.explain_series import facts
from iobands.views.notes import remarks_of
from tests.factory import NOW, ROW, daily, line, write_perflog


def test_a_repeat_and_what_is_planned_next(tmp_path: Path) -> None:
    rows = daily([1.5] * 10, purpose="scheduled")
    rows.append(
        line(
            job_completion_time=(NOW - timedelta(hours=4)).isoformat(),
            perf_value=0.7,
            purpose="repeat",
        )
    )
    write_perflog(tmp_path / "perflogs", rows)
    found = read_site(tmp_path / "perflogs", tmp_path / "b", tmp_path / "a", now=NOW)
    (series,) = found.series
    name = str(ROW["display_name"])
    ask = Ask(
        *("here", "local", "builtin", name, "disk", "suspect", "low since 20 Nov"),
        (slug(series.key),),
        measured=NOW,
        due=NOW + timedelta(hours=3),
    )
    site = replace(found, planned=(ask,))
    said = [(heading, text) for heading, text in facts(site, series)]
    assert ("Next repeat", "04:30: low since 20 Nov") in said
    assert dict(said)["Newest"].endswith("measured again (repeat)")
    (note,) = [
        each
        for each in remarks_of(site, rejected=False)
        if each.heading.startswith("To be measured again")
    ]
    assert note.lines == ["disk fpp write_bw: next repeat 04:30 (low since 20 Nov)"]
    due = replace(site, planned=(replace(ask, due=NOW),))
    assert ("Next repeat", "within the hour: low since 20 Nov") in [*facts(due, series)]
    tomorrow = replace(site, planned=(replace(ask, due=NOW + timedelta(hours=30)),))
    assert ("Next repeat", "22 Nov 07:30: low since 20 Nov") in [*facts(tomorrow, series)]
    late = replace(site, planned=(replace(ask, due=NOW - timedelta(hours=3)),))
    assert ("Next repeat", "due since 20 Nov 22:30: low since 20 Nov") in [*facts(late, series)]
    pinned = replace(ask, node="nid7", series=(), why="node nid7 of local may be slow")
    (note,) = [
        each
        for each in remarks_of(replace(site, planned=(pinned,)), rejected=False)
        if each.heading.startswith("To be measured again")
    ]
    assert note.lines == ["disk on node nid7: next repeat 04:30 (node nid7 of local may be slow)"]
    usual = replace(ask, why="node nid7 of local may be slow")
    shown = public(replace(site, planned=(usual,)))
    assert ("Next repeat", "04:30: a node may be slow") in [*facts(shown, shown.series[0])]
    # a smaller mark of the same colour
    newest = int((NOW - timedelta(hours=4)).timestamp())
    assert details_of(site, series)["asked"] == [newest]
