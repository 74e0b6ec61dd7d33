"""What acts do to states: drops, recoveries and further drops are put in at a known run."""

from __future__ import annotations

from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from iobands.alerts.acts import (
    ACKNOWLEDGE,
    CLOSE,
    NEW_NORMAL,
    REOPEN,
    Act,
    Acts,
    bands_for,
    standing,
)
from iobands.alerts.targets import CannotAct
from iobands.learning import calibrate, epoch_by_hand
from iobands.reporting.concerns import acknowledged_concerns, concerns
from iobands.reporting.digest_json import as_json
from iobands.status.states import State, Status
from iobands.status.survey import Survey
from rich.console import Console

from iobands.bands import Band, Bands, Epoch
from iobands.reporting.digest import digest_text
from iobands.reporting.explain import explain, explanation_text
from iobands.reporting.page import render
from tests.package.acting_site import DAY, Site, levels
from tests.package.factory import NOW, line, write_bands, write_perflog


def only(found: Survey) -> Status:
    (series,) = found.series
    return series.status


def test_an_acknowledged_alarm_is_a_warning_and_stays_shown(tmp_path: Path) -> None:
    site = Site(tmp_path, disk=levels((105, 1), (30, 0.7)))
    assert site.survey(120).exit_status == 2
    site.act(ACKNOWLEDGE)
    found = site.survey()
    assert (found.exit_status, only(found).state) == (1, State.DEGRADED)
    assert concerns(found) == []
    (known,) = acknowledged_concerns(found)
    assert known.why.endswith("its former level; acknowledged 2026-11-06 01:30 by jane: a reason")
    (series,) = as_json(found)["series"]
    assert (series["state"], series["acknowledged"]["who"]) == ("degraded", "jane")
    assert series["acknowledged"]["worse"] is None
    text = explanation_text(explain(found, found.series[0]), found)
    assert "Known       2026-11-06 01:30 by jane: a reason" in text
    # at the same level it stays so
    assert site.survey(135).exit_status == 1


def test_a_new_alarm_after_a_recovery_is_loud(tmp_path: Path) -> None:
    site = Site(tmp_path, disk=levels((105, 1), (15, 0.7), (25, 1), (15, 0.7)))
    site.survey(120)
    site.act(ACKNOWLEDGE)
    assert site.survey(145).exit_status == 0
    again = site.survey(160)
    assert (again.exit_status, only(again).acknowledged) == (2, None)


def test_a_markedly_worse_alarm_is_loud_and_can_be_acknowledged_again(tmp_path: Path) -> None:
    site = Site(tmp_path, disk=levels((105, 1), (40, 0.7), (20, 0.4)))
    site.survey(120)
    site.act(ACKNOWLEDGE)
    assert site.survey(145).exit_status == 1
    worse = site.survey(165)
    assert worse.exit_status == 2
    change = only(worse).acknowledged.worse
    # the first run at 0.4 of 0.7 was 19 days before the newest
    assert change.since_low <= NOW - 19.25 * DAY <= change.since_high
    assert 0.5 < change.ratio.value < 0.7
    (concern,) = (each for each in concerns(worse) if each.word == "degraded")
    assert "; worse since 2026-11-0" in concern.why
    site.act(ACKNOWLEDGE)
    assert site.survey().exit_status == 1


def test_worse_than_acknowledged_on_a_published_band(tmp_path: Path) -> None:
    site = Site(tmp_path, disk=levels((35, 0.6), (10, 0.25)))
    write_bands(tmp_path / "bands", (1.42, 1.5, 1.58))
    site.survey(15)
    site.act(ACKNOWLEDGE)
    assert site.survey(35).exit_status == 1
    assert site.survey(45).exit_status == 2


def test_a_watched_series_has_no_alarm_to_act_on(tmp_path: Path) -> None:
    site = Site(tmp_path, disk=levels((105, 1), (15, 0.7)))
    day = next(n for n in range(106, 120) if only(site.survey(n)).state is State.WATCH)
    site.survey(day)
    with pytest.raises(CannotAct, match="state is watch, and no alarm yet"):
        site.act(ACKNOWLEDGE)


def test_a_missing_sample_is_not_covered(tmp_path: Path) -> None:
    site = Site(tmp_path, disk=levels((105, 1), (15, 0.7)))
    site.survey(120)
    site.act(ACKNOWLEDGE)
    late = site.look(NOW + 9 * DAY)
    assert late.exit_status == 3
    (concern,) = concerns(late)
    assert (concern.word, concern.why) == ("no data", "the newest sample is 9 days old")


def test_what_was_closed_does_not_count(tmp_path: Path) -> None:
    site = Site(tmp_path, disk=levels((105, 1), (15, 0.7), (40, 1)))
    site.survey(120)
    act = site.act(CLOSE)
    # the first slow run was 14 days before the newest of then
    assert act.since <= site.now - 14.25 * DAY <= act.until
    closed = site.survey()
    status = only(closed)
    assert (status.state, closed.exit_status, concerns(closed)) == (State.HEALTHY, 0, [])
    assert status.why == "its alarm was closed, and there was no run since"
    assert status.band.median == pytest.approx(1.5, rel=0.03)
    later = only(site.survey(160))
    assert (later.state, later.following.changes) == (State.HEALTHY, ())
    out = sum(act.since <= when <= act.until for when in _times(site))
    assert len(later.following.rows) == 160 - out
    assert out == pytest.approx(15, abs=2)
    (found,) = calibrate(
        tmp_path / "perflogs", tmp_path / "bands", now=NOW, alarms=tmp_path / "alarms"
    )
    (learnt,) = found.learnt
    assert learnt.proposal.runs == pytest.approx(160 - out, abs=4)
    assert f"{out} runs under closed alarms left out" in learnt.notes


def _times(site: Site) -> list[datetime]:
    return site.look(site.now).series[0].samples["job_completion_time"].to_list()


def test_a_repair_that_was_none_is_an_alarm_again(tmp_path: Path) -> None:
    site = Site(tmp_path, disk=levels((105, 1), (30, 0.7)))
    site.survey(120)
    site.act(CLOSE)
    assert only(site.survey(135)).state is State.DEGRADED


def test_closed_as_of_an_earlier_repair(tmp_path: Path) -> None:
    site = Site(tmp_path, disk=levels((103, 1), (15, 0.7), (2, 1)))
    # two runs are no recovery yet
    assert only(site.survey(120)).state is State.DEGRADED
    site.act(CLOSE, since=NOW - 2 * DAY)
    status = only(site.survey())
    assert (status.state, status.is_closed) == (State.HEALTHY, False)
    with pytest.raises(CannotAct, match="no open alarm"):
        site.act(CLOSE)


def test_a_new_normal_begins_where_the_change_did(tmp_path: Path) -> None:
    site = Site(tmp_path, disk=levels((105, 1), (50, 0.7), (15, 0.5)))
    write_bands(tmp_path / "bands", (1.42, 1.5, 1.58))
    site.survey(120)
    act = site.act(NEW_NORMAL)
    young = only(site.survey())
    # the band describes the former level, and 15 runs are too few for another
    assert (young.state, young.band) == (State.CALIBRATING, None)
    grown = only(site.survey(155))
    assert (grown.state, grown.band.runs) == (State.HEALTHY, 49)
    assert grown.band.median == pytest.approx(0.7 * 1.5, rel=0.03)
    assert act.since <= site.now - 49.25 * DAY
    assert only(site.survey(170)).state is State.DEGRADED


def test_calibrating_begins_at_the_newest_new_normal(tmp_path: Path) -> None:
    site = Site(tmp_path, disk=levels((250, 1), (65, 0.7)))
    site.survey(250)
    options = {"now": site.now, "alarms": tmp_path / "alarms"}
    (before,) = calibrate(tmp_path / "perflogs", tmp_path / "bands", **options)
    before.change.write()  # frozen
    site.survey(265)
    site.act(NEW_NORMAL)
    site.survey(315)
    options["now"] = site.now
    (found,) = calibrate(tmp_path / "perflogs", tmp_path / "bands", **options)
    (learnt,) = found.learnt
    assert (learnt.band.state, learnt.before) == ("active", None)
    assert learnt.proposal.runs == pytest.approx(65, abs=2)
    found.change.write()
    # the old band is not carried on as if it were new, and the new one holds
    newest = site.look(site.now + DAY).series[0]
    assert newest.bands.band_for(newest.key.fields(), NOW + DAY).median == learnt.band.median


def test_what_is_taken_back_is_as_it_was(tmp_path: Path) -> None:
    site = Site(tmp_path, disk=levels((105, 1), (15, 0.7)))
    before = as_json(site.survey(120))["series"][0]
    for kind in (ACKNOWLEDGE, CLOSE, NEW_NORMAL):
        site.act(kind)
        assert site.survey().exit_status != 2
        site.act(REOPEN)
        found = as_json(site.survey())["series"][0]
        assert {**found, "acts": []} == before
    assert [act["act"] for act in found["acts"]] == [
        *(ACKNOWLEDGE, REOPEN),
        *(CLOSE, REOPEN),
        *(NEW_NORMAL, REOPEN),
    ]
    with pytest.raises(CannotAct, match="nothing was done that could be taken back"):
        site.act(REOPEN)


def test_the_clock_of_the_runs_may_be_ahead(tmp_path: Path) -> None:
    site = Site(tmp_path, disk=levels((105, 1), (15, 0.7)))
    site.survey(120)
    rows = (tmp_path / "perflogs" / "here" / "local" / "BenchioFPP.log").read_text().splitlines()
    ahead = (NOW + timedelta(minutes=20, seconds=0.5)).isoformat()
    write_perflog(
        tmp_path / "perflogs", [*rows[1:], line(job_completion_time=ahead, perf_value=1.05)]
    )
    act = site.act(CLOSE)
    assert act.until > datetime.fromisoformat(ahead)
    assert only(site.look(NOW)).is_closed


def test_an_act_of_the_future_does_not_hold_and_is_told(tmp_path: Path) -> None:
    site = Site(tmp_path, disk=levels((105, 1), (15, 0.7)))
    site.survey(120)
    site.act(ACKNOWLEDGE)
    # by a clock that is a little ahead it does
    assert site.look(NOW - timedelta(minutes=59)).exit_status == 1
    early = site.look(NOW - timedelta(minutes=61))
    assert early.exit_status == 2
    (told,) = early.rejected
    assert told.path == tmp_path / "alarms" / "here.yaml"
    assert "is of the future and does not hold yet" in told.reason


def test_bands_after_a_new_normal() -> None:
    def band(median: float) -> Band:
        return Band({}, "GiB/s", median - 1, median, median + 1, None, 1, None, "", "")

    def epoch(day: int, *medians: float) -> Epoch:
        since = NOW + day * DAY
        return Epoch(f"{day}", since, "", tuple(band(median) for median in medians))

    bands = Bands("here", (epoch(0, 5), epoch(10, 5, 6), epoch(20, 7)))
    anew = Act(NEW_NORMAL, NOW + 8 * DAY, "jane", "r", ({"pattern": "fpp"},), since=NOW + 4 * DAY)
    found = bands_for(bands, [anew], "here")
    # what was there before the new normal does not hold after it, also where it was carried on
    assert [[one.median for one in each.bands] for each in found.epochs] == [[5], [], [6], [7]]
    assert found.compares_since(NOW + 5 * DAY) == NOW + 4 * DAY
    assert bands_for(None, [anew], "here").compares_since(NOW + 5 * DAY) == NOW + 4 * DAY
    assert bands_for(None, [], "here") is None


def test_the_same_act_twice_is_one() -> None:
    one = Act(ACKNOWLEDGE, NOW, "jane", "r", ({"pattern": "fpp"},))
    back = Act(REOPEN, NOW + DAY, "jane", "r", ({"pattern": "fpp"},), of=NOW)
    assert standing([one, one], NOW + DAY) == (one, one)
    assert standing([one, one, back], NOW + DAY) == ()
    assert Acts("here", (one, back)).future(NOW + DAY) == ()


def test_what_was_closed_is_told_where_another_series_moved(tmp_path: Path) -> None:
    dropping = {
        name: levels((105, 1), (15, 0.7), seed=seed) for seed, name in enumerate(("disk", "home"))
    }
    site = Site(tmp_path, **dropping)
    site.survey(120)
    site.act(CLOSE, "home")
    found = site.survey()
    text = explanation_text(explain(found, found.series[0]), found)
    moved = text.split("Moved at the same time")[1].split("Did not move")[0]
    assert "home fpp write_bw: since 2026-11-0" in moved
    assert "close, 2026-11-21 01:30 by jane: a reason" in moved


def test_the_band_s_state_and_the_epoch_are_told(tmp_path: Path) -> None:
    site = Site(tmp_path, disk=levels((100, 1)))
    site.survey(50)
    options = {"now": site.now, "alarms": tmp_path / "alarms"}
    (found,) = calibrate(tmp_path / "perflogs", tmp_path / "bands", **options)
    found.change.write()
    later = site.survey(60)
    proposal = found.learnt[0].proposal
    low, high = proposal.intervals["median"]
    facts = f"provisional, from {proposal.runs} runs, own history, by iobands calibrate"
    text = explanation_text(explain(later, later.series[0]), later)
    assert facts in text
    assert "95 % intervals: floor " in text
    assert f"median {low:.3g} to {high:.3g}" in text
    assert "Epoch       learnt-2026-10-02, since 2026-10-02 01:30: calibrated: the bands" in text
    page = render(later)
    assert facts in page
    assert "Epoch learnt-2026-10-02, since 2026-10-02 01:30: calibrated" in page
    (series,) = as_json(later)["series"]
    assert (series["band"]["state"], series["epoch"]["continues"]) == ("provisional", True)
    epoch_by_hand(
        tmp_path / "bands",
        "here",
        "firmware",
        reason="new",
        since=site.now - 5 * DAY,
        keep_bands=False,
    ).write()
    console = Console(width=100, file=StringIO())
    said = digest_text(site.survey(), console)
    assert "calibrating in the epoch firmware, since 2026-10-07 01:30: new\n" in said
