"""The effect of actions on sites whose drops, recoveries and further drops are at known runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from iobands.bands import Span
from iobands.judge.calibrate import calibrate
from iobands.judge.requests import (
    Request,
    RequestError,
    Subject,
    action_of,
    selected,
    subjects_of,
)
from iobands.snapshot import (
    ACKNOWLEDGE,
    DISCARD,
    REBASELINE,
    RESOLVE,
    RETIRE,
    UNDO,
    Action,
    Alert,
    Severity,
    Snapshot,
    State,
    in_utc,
)
from iobands.source.action_log import ALERT_LOG, alert_log, log_path
from tests.factory import NOW, line, write_bands, write_perflog
from tests.sites import DAY, Growing, SiteFiles, levels, only, slow


def degraded(site: Snapshot) -> Alert:
    (alert,) = (each for each in site.alerts if each.severity is Severity.DEGRADED)
    return alert


@pytest.fixture
def falling(tmp_path: Path) -> Growing:
    """A series that is at 0.7 from run 105 on, on the evening of run 120."""
    site = Growing(tmp_path, disk=levels((105, 1), (30, 0.7)))
    assert site.after(120).exit_status == 2
    return site


def test_an_acknowledged_drop_is_a_warning_and_stays(falling: Growing) -> None:
    action = falling.does(ACKNOWLEDGE)
    site = falling.again()
    alert = degraded(site)
    assert (site.exit_status, only(site).status.state) == (1, State.DEGRADED)
    assert alert.acknowledgement.action == action
    assert alert.is_quiet
    # the first slow run was 14 days before the newest
    assert action.since <= falling.now - 14.25 * DAY <= action.until
    assert action.ratio == pytest.approx(0.7, rel=0.05)
    # at the same level it stays acknowledged
    assert falling.after(135).exit_status == 1


def test_an_answer_to_several_series_has_the_median_of_their_levels(tmp_path: Path) -> None:
    falls = {name: levels((105, 1), (15, by)) for name, by in (("a", 0.5), ("b", 0.7), ("c", 0.8))}
    site = Growing(tmp_path, **falls)
    assert degraded(site.after(120)).ratio == pytest.approx(0.7, rel=0.05)
    assert site.does(ACKNOWLEDGE, "1").ratio == pytest.approx(0.7, rel=0.05)
    site.does(UNDO, "1")
    assert site.does(ACKNOWLEDGE, "c fpp write_bw").ratio == pytest.approx(0.8, rel=0.05)


def test_a_drop_after_a_recovery_is_another_one(tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=levels((105, 1), (15, 0.7), (25, 1), (15, 0.7)))
    site.after(120)
    site.does(ACKNOWLEDGE)
    assert site.after(145).exit_status == 0
    again = site.after(160)
    assert again.exit_status == 2
    assert degraded(again).acknowledgement is None


def test_what_became_worse_is_critical_and_can_be_acknowledged_again(tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=levels((105, 1), (40, 0.7), (20, 0.4)))
    site.after(120)
    site.does(ACKNOWLEDGE)
    assert site.after(145).exit_status == 1
    worse = site.after(165)
    assert worse.exit_status == 2
    alert = degraded(worse)
    fell = alert.worse_since(alert.acknowledgement.action.when)
    # the first run at 0.4 of 0.7 was 19 days before the newest
    assert NOW - 19.25 * DAY <= fell.when <= NOW - 14 * DAY
    site.does(ACKNOWLEDGE)
    assert site.again().exit_status == 1


def test_what_became_worse_than_acknowledged_on_a_published_band(tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=levels((35, 0.6), (10, 0.25)))
    write_bands(site.bands, (1.42, 1.5, 1.58))
    site.after(15)
    site.does(ACKNOWLEDGE)
    assert site.after(35).exit_status == 1
    assert site.after(45).exit_status == 2


def test_a_missing_sample_is_not_acknowledged(falling: Growing) -> None:
    falling.does(ACKNOWLEDGE)
    late = falling.read(falling.now + 9 * DAY)
    assert only(late).status.missing is not None
    assert only(late).status.state is State.DEGRADED


def test_only_an_alert_of_a_change_can_be_acted_on(tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=levels((105, 1), (15, 0.7)), home=levels((120, 1), seed=2))
    days = next(n for n in range(106, 120) if site.after(n).counts().get(State.WATCH))
    site.after(days)
    for words in ("disk", "home"):
        for kind in (ACKNOWLEDGE, RESOLVE, REBASELINE, UNDO):
            with pytest.raises(RequestError):
                site.does(kind, f"{words} fpp write_bw")
    assert not log_path(site.alerts, "here").exists()


def test_one_collapsed_run_needs_no_answer(tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=[*levels((105, 1)), 0.3])
    site.after(106)
    wanted = "is one collapsed run and needs no answer; to ignore it: iobands discard 'disk fpp"
    with pytest.raises(RequestError, match=wanted):
        site.does(ACKNOWLEDGE, "disk fpp write_bw")


def test_what_was_resolved_does_not_count(tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=levels((105, 1), (15, 0.7), (40, 1)))
    site.after(120)
    action = site.does(RESOLVE, force=True)
    assert action.since <= site.now - 14.25 * DAY <= action.until
    resolved = site.again()
    status = only(resolved).status
    assert (status.state, status.left_out[:8], resolved.alerts) == (State.HEALTHY, "resolved", ())
    assert status.band.median == pytest.approx(1.5, rel=0.03)
    later = only(site.after(160))
    assert (later.status.state, later.status.left_out) == (State.HEALTHY, "")
    evidence, (times, _) = later.status.evidence, later.judged
    assert evidence.changes == ()
    begin, end = in_utc(action.since), in_utc(action.until)
    left_out = np.count_nonzero((later.history.times >= begin) & (later.history.times <= end))
    assert left_out == pytest.approx(15, abs=2)
    assert len(evidence.rows) == 160 - left_out
    assert not ((times >= begin) & (times <= end)).any()
    # nor does calibration learn a band from these runs
    ((learned,),) = (each.learned for each in calibrate(site.judge(site.now)))
    assert learned.band.runs == pytest.approx(160 - left_out, abs=4)


def test_a_drop_whose_runs_are_low_still_is_resolved_only_by_force(falling: Growing) -> None:
    with pytest.raises(RequestError):
        falling.does(RESOLVE)
    assert falling.again().exit_status == 2
    falling.does(RESOLVE, force=True)
    assert falling.again().exit_status == 0
    # it was no repair
    assert only(falling.after(135)).status.state is State.DEGRADED


def test_resolved_as_of_an_earlier_repair(tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=levels((103, 1), (15, 0.7), (2, 1)))
    # two runs are no recovery yet
    assert only(site.after(120)).status.state is State.DEGRADED
    with pytest.raises(RequestError):
        site.does(RESOLVE, since=NOW - 60 * DAY)
    with pytest.raises(RequestError):
        site.does(RESOLVE, since=NOW + DAY)
    action = site.does(RESOLVE, since=NOW - 2 * DAY)
    assert action.until == NOW - 2 * DAY
    status = only(site.again()).status
    assert (status.state, status.left_out) == (State.HEALTHY, "")
    with pytest.raises(RequestError):
        site.does(RESOLVE)


def test_a_rebaseline_begins_where_the_change_did(tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=levels((105, 1), (50, 0.7), (15, 0.5)))
    write_bands(site.bands, (1.42, 1.5, 1.58))
    site.after(120)
    action = site.does(REBASELINE)
    young = only(site.again()).status
    # the published band describes the level before, and 15 runs are too few for a new one
    assert (young.state, young.band) == (State.CALIBRATING, None)
    grown = only(site.after(155)).status
    # the band is of those runs at the new level that have joined the baseline by now
    assert (grown.state, grown.band.runs) == (State.HEALTHY, 20)
    assert grown.band.median == pytest.approx(0.7 * 1.5, rel=0.03)
    assert action.since <= site.now - 49.25 * DAY
    assert only(site.after(170)).status.state is State.DEGRADED


def test_the_level_that_a_rebaseline_makes_normal_is_the_one_since_the_last_fall(
    tmp_path: Path,
) -> None:
    values = levels((105, 1), (20, 0.8), (20, 0.5)), levels((107, 1), (18, 0.8), (20, 0.5), seed=2)
    site = Growing(tmp_path, disk=values[0], disk2=values[1])
    (alert,) = site.after(145).alerts
    assert [each.kind for each in alert.events].count("fell")
    action = site.does(REBASELINE, "1")
    assert abs(action.since - (NOW - 19.25 * DAY)) <= 2 * DAY
    after = site.again()
    assert after.alerts == ()
    assert [each.end for each in after.past] == ["rebaselined"]


def test_a_rebaseline_of_a_healthy_series_needs_a_time(tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=levels((105, 1)))
    site.after(105)
    with pytest.raises(RequestError):
        site.does(REBASELINE)
    site.does(REBASELINE, since=NOW - 30 * DAY)
    status = only(site.again()).status
    assert len(status.evidence.rows) == 30
    assert status.band.runs == 20


def test_a_drop_from_an_improvement_that_was_rebaselined(tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=levels((105, 1), (40, 1.5), (15, 1)))
    assert only(site.after(120)).status.state is State.IMPROVED
    site.does(REBASELINE)
    assert only(site.after(145)).status.state is State.HEALTHY
    assert only(site.after(160)).status.state is State.DEGRADED


def test_what_is_undone_is_as_it_was(tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=levels((105, 1), (15, 0.7)))
    before = degraded(site.after(120))
    for kind in (ACKNOWLEDGE, RESOLVE, REBASELINE):
        site.does(kind, force=True)
        assert site.again().exit_status != 2
        site.does(UNDO)
        found = degraded(site.again())
        assert (found.since, found.score) == (before.since, before.score)
        assert (found.acknowledgement, found.exit_status) == (None, 2)
    log = site.again().actions[only(site.again()).key]
    assert [action.kind for action in log] == [ACKNOWLEDGE, UNDO, RESOLVE, UNDO, REBASELINE, UNDO]
    with pytest.raises(RequestError):
        site.does(UNDO)


def test_the_clock_of_the_runs_may_be_ahead(falling: Growing) -> None:
    rows = (falling.perflogs / "here" / "local" / "BenchioFPP.log").read_text().splitlines()
    ahead = falling.now + timedelta(minutes=20, seconds=0.5)
    newest = line(job_completion_time=ahead.isoformat(), perf_value=1.05)
    write_perflog(falling.perflogs, [*rows[1:], newest])
    action = falling.does(RESOLVE, force=True)
    assert action.until > ahead
    assert only(falling.again()).status.left_out


def test_an_action_of_the_future_does_not_hold_and_is_reported(falling: Growing) -> None:
    falling.does(ACKNOWLEDGE)
    # one that is less than an hour ahead, as by a wrong clock, holds
    assert falling.read(falling.now - timedelta(minutes=59)).exit_status == 1
    early = falling.read(falling.now - timedelta(minutes=61))
    assert early.exit_status == 2
    (rejected,) = early.rejected
    assert (rejected.path, rejected.line) == (log_path(falling.alerts, "here"), 1)


def test_a_damaged_log_costs_its_lines_alone(falling: Growing) -> None:
    falling.does(ACKNOWLEDGE)
    with log_path(falling.alerts, "here").open("a") as stream:
        stream.write('{"schema": 1, "action": "resol')
    site = falling.again()
    assert (site.exit_status, [each.line for each in site.rejected]) == (1, [2])


@pytest.fixture
def shared(tmp_path: Path) -> Growing:
    """Two series of one file system that drop together, and one elsewhere that does not."""
    dropping = {
        name: levels((105, 1), (45, 0.7), (20, 0.45), seed=seed)
        for seed, name in enumerate(("disk", "disk2"))
    }
    site = Growing(tmp_path, **dropping, home=levels((170, 1), seed=7))
    assert degraded(site.after(120)).subject == "disk writes"
    return site


def test_a_shared_drop_is_acknowledged_in_one_go(shared: Growing) -> None:
    action = shared.does(ACKNOWLEDGE, "disk")
    known = shared.again()
    assert known.exit_status == 1
    assert degraded(known).is_quiet
    assert [action.names(each.key) for each in known.series] == [True, True, False]
    assert shared.after(150).exit_status == 1
    worse = shared.after(170)
    assert worse.exit_status == 2
    assert not degraded(worse).is_quiet


def test_a_shared_drop_stays_critical_until_each_series_is_acknowledged(shared: Growing) -> None:
    shared.does(ACKNOWLEDGE, "disk fpp write_bw")
    assert shared.again().exit_status == 2
    shared.does(ACKNOWLEDGE, "disk ssf write_bw")
    assert shared.again().exit_status == 1


def test_a_shared_drop_is_resolved_in_one_go_and_undone_one_by_one(shared: Growing) -> None:
    shared.does(RESOLVE, "disk writes", force=True)
    assert shared.again().alerts == ()
    shared.does(UNDO, "disk fpp write_bw")
    assert [each.status.state for each in shared.again().series] == [
        State.DEGRADED,
        State.HEALTHY,
        State.HEALTHY,
    ]


def test_a_shared_action_is_undone_by_the_name_of_the_alert_that_is_gone(shared: Growing) -> None:
    shared.does(RESOLVE, "disk writes", force=True)
    assert shared.again().alerts == ()
    shared.does(UNDO, "disk writes")
    assert [alert.subject for alert in shared.again().alerts] == ["disk writes"]


def test_an_answer_to_an_alert_is_undone_also_if_it_has_other_series_now(shared: Growing) -> None:
    retired = shared.does(RETIRE, "1")
    site = shared.again()
    (left,) = site.series
    over = Subject("disk writes", (left,), number=1)

    def asked(kind: str) -> Action:
        request, known = Request(kind, "ada", "why"), (*site.series, *site.retired)
        return action_of(over, request, known, site.actions, shared.now, {})

    undone = asked(UNDO)
    assert (undone.of, undone.series) == (retired.when, retired.series)
    assert asked(RETIRE).names(left.key)


def test_the_newest_samples_are_none_of_an_alert_that_is_over(shared: Growing) -> None:
    shared.does(RESOLVE, "1", force=True)
    with pytest.raises(RequestError, match="1 disk writes has no open alert: it is over"):
        shared.does(DISCARD, "1")
    day = shared.now - DAY
    assert shared.does(DISCARD, "1", at=Span(day, day + DAY)).since == day


def test_a_shared_rebaseline(shared: Growing) -> None:
    shared.does(REBASELINE, "disk")
    assert [each.status.state for each in shared.again().series] == [
        State.CALIBRATING,
        State.CALIBRATING,
        State.HEALTHY,
    ]


def test_words_that_mean_several_things_or_none(shared: Growing) -> None:
    for words in ("write_bw fpp", "nowhere", ""):
        with pytest.raises(RequestError):
            shared.does(REBASELINE, words, since=NOW - 5 * DAY)
    # a wrong number is not looked up as a word of a name, such as the 7 in `OST 7 of disk`
    other = Subject("OST 7 of disk", shared.again().series[:1])
    request = Request(ACKNOWLEDGE, "ada", "why")
    with pytest.raises(RequestError, match="no alert has the number '7'"):
        selected([other], "7", request, every=False, log={})
    assert selected([other], "OST 7", request, every=False, log={}) == [other]
    # an alert whose series are no longer measured is still found
    gone = Subject("disk writes", (), number=3)
    assert selected([gone], "3", replace(request, kind=UNDO), every=False, log={}) == [gone]
    # "writes" is only in the name of the shared alert
    assert shared.does(ACKNOWLEDGE, "writes").kind == ACKNOWLEDGE


def test_an_open_alert_goes_before_one_that_is_over_and_has_just_this_name(
    shared: Growing,
) -> None:
    site = shared.again()
    over = Subject("disk", site.series, number=9)
    lasting = Subject("disk writes", site.series[:2], degraded(site), number=1)

    def chosen(kind: str, subjects: list[Subject]) -> list[Subject]:
        log = shared.again().actions
        return selected(subjects, "disk", Request(kind, "ada", "why"), every=False, log=log)

    assert chosen(ACKNOWLEDGE, [over, lasting]) == [lasting]
    shared.does(ACKNOWLEDGE, "disk writes")
    assert chosen(UNDO, [over, lasting]) == [lasting]
    # if none is open, the one that is over is chosen, to be refused later
    assert chosen(ACKNOWLEDGE, [over]) == [over]


def test_all_is_each_series_with_the_words_although_an_alert_has_just_this_name(
    tmp_path: Path,
) -> None:
    fell = slow(0.6, since=20, file_system="a", transport="ofi")
    variables = ("write_bw", "read_bw")
    files = SiteFiles(tmp_path).days(fell, variables=variables)
    site = files.read()
    (alert,) = site.alerts
    assert (alert.subject, len(alert.members)) == ("a", 4)

    def chosen(kind: str, **more: object) -> list[tuple[str, int]]:
        """Return the names that --all chooses for the word `a`, with their numbers of series."""
        request, known = Request(kind, "jane", "why", **more), (site.series, site.alerts, site.past)
        found = selected(subjects_of(*known), "a", request, every=True, log=site.actions)
        return sorted((each.title, len(each.series)) for each in found)

    # as a maintenance report proposes it: the other four series have not fallen enough for an alert
    others = [f"a {p} ucx {v}" for p in ("fpp", "ssf") for v in ("read_bw", "write_bw")]
    both = [("1 a", 4), *((name, 1) for name in others)]
    assert chosen(REBASELINE, since=NOW - 20 * DAY) == both
    # those four have no alert to acknowledge
    assert chosen(ACKNOWLEDGE) == [("1 a", 4)]
    # an alert that is over does not hide series that were never its members
    files.act(RESOLVE, "1", force=True)
    site = files.read()
    assert site.alerts == ()
    assert len(chosen(RETIRE)) == 8


def test_a_drop_that_only_the_group_has_is_resolved_when_it_is_over(tmp_path: Path) -> None:
    dropping = {
        name: levels((105, 1), (12, 0.8), (8, 1), seed=seed)
        for seed, name in enumerate(("disk", "disk2"))
    }
    site = Growing(tmp_path, **dropping)
    days = iter(range(106, 118))
    while (found := site.after(next(days))).exit_status != 2:
        pass
    assert [each.status.change for each in found.series] == [None, None]
    with pytest.raises(RequestError, match=r"^2 series of the group: the newest run is still at 0"):
        site.does(RESOLVE, "disk writes")
    site.after(118)  # a run as before the drop
    site.does(RESOLVE, "disk writes")
    assert site.again().alerts == ()


def test_an_alert_that_is_over_is_not_acted_on(tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=levels((105, 1), (15, 0.6), (40, 1)))
    site.after(160)
    with pytest.raises(RequestError, match=r"no open alert: it is over; see `iobands explain 1`"):
        site.does(ACKNOWLEDGE, "1")


def test_of_an_alert_whose_series_are_all_retired_only_that_can_be_undone(tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=levels((105, 1), (15, 0.6), (40, 1)), home=levels((160, 1)))
    site.after(160)
    site.does(RETIRE)
    for kind in (ACKNOWLEDGE, RESOLVE, REBASELINE):
        with pytest.raises(
            RequestError, match="no open alert: it is over; see `iobands explain 1`"
        ):
            site.does(kind, "1")
    site.does(UNDO, "fpp disk")
    assert site.again().retired == ()


def test_an_alert_is_retired_and_taken_back_by_its_number(tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=levels((105, 1), (15, 0.6)), home=levels((120, 1)))
    assert [each.number for each in site.after(120).alerts] == [1]
    site.does(RETIRE, "1")
    assert site.again().alerts == ()
    site.does(UNDO, "1")
    assert [each.number for each in site.again().alerts] == [1]


def test_an_alert_whose_series_are_retired_one_by_one_ends_as_retired(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).days(slow(0.6, since=20, file_system="a"))
    (alert,) = files.read().alerts
    for member in alert.members:
        when = files.act(RETIRE, member.series.label, reason="a is gone").when
    site = files.read()
    assert site.alerts == ()
    (past,) = site.past
    assert (past.number, past.end, past.ended) == (1, "retired", when)
    (entry,) = site.ledger.entries
    assert entry.ending == "retired by jane: a is gone"


def test_an_alert_that_fell_again_ends_with_the_last_series_of_a_system(tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=levels((105, 1), (25, 0.7), (20, 0.4)))
    (alert,) = site.after(150).alerts
    assert "fell" in [each.kind for each in alert.events]
    site.does(RETIRE)
    found = site.again()
    assert found.alerts == ()
    assert [(each.number, each.end) for each in found.past] == [(1, "retired")]


def test_an_alert_keeps_its_name_when_a_member_is_retired(shared: Growing) -> None:
    shared.does(ACKNOWLEDGE, "1")
    shared.does(RETIRE, "disk ssf write_bw")
    (alert,) = shared.again().alerts
    assert (alert.number, alert.subject) == (1, "disk writes")
    assert [member.series.label for member in alert.members] == ["disk fpp write_bw"]
    assert alert.is_quiet


def test_an_undo_of_an_alert_takes_back_no_answer_to_another_one(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).days(slow(0.6, since=50, file_system="a"))
    files.act("resolve", "1", now=NOW - 20 * DAY, force=True)
    for days in (19, 10):
        for system, events in files.judge(NOW - days * DAY, as_of=True).news.items():
            ALERT_LOG.append(alert_log(files.perflogs, system), events)
    assert [each.number for each in files.read().alerts] == [2]
    with pytest.raises(RequestError, match="2 a writes: there is nothing to undo"):
        files.act("undo", "2")
    assert files.act("undo", "1").of == NOW - 20 * DAY


def test_the_newest_samples_of_an_alert_are_discarded_if_they_are_of_one_session(
    tmp_path: Path,
) -> None:
    values = {"disk": levels((105, 1), (15, 0.6)), "disk2": levels((105, 1), (15, 0.6), seed=2)}
    site = Growing(tmp_path, **values)
    assert len(site.after(120).alerts[0].members) == 2
    action = site.does(DISCARD, "1")
    assert action.since == action.until == site.again().series[0].history.last
    site.values["disk2"] = values["disk2"][:-3]
    site.after(120)
    with pytest.raises(RequestError, match="disk fpp write_bw has several samples since"):
        site.does(DISCARD, "1")


def test_series_are_retired_by_the_name_of_the_alert_that_misses_them(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(1.0)).read(NOW + 4 * DAY)
    assert sorted(each.subject for each in site.alerts) == ["4 series of a", "4 series of b"]
    subjects = subjects_of(site.series, site.alerts, site.past)
    request, log = Request(RETIRE, "jane", "over"), site.actions
    found = selected(subjects, "4 series of a", request, every=True, log=log)
    assert {each.title for each in found} == {
        f"a {name} write_bw" for name in ("fpp ofi", "fpp ucx", "ssf ofi", "ssf ucx")
    }
    with pytest.raises(RequestError, match="give --all"):
        selected(subjects, "4 series of a", request, every=False, log=log)


def test_a_resolve_leaves_what_showed_the_end_of_the_alert_before(tmp_path: Path) -> None:
    # three good runs between two drops: the second may have begun at the last of them
    site = Growing(tmp_path, disk=levels((70, 1), (15, 0.5), (3, 1), (22, 0.8), seed=26))
    (alert,) = [each for each in site.after(108).alerts if each.number]
    assert alert.number == 2
    site.does("resolve", "2", force=True)
    after = site.again()
    assert [each.number for each in after.alerts if each.number] == []
    assert [(each.number, each.end) for each in after.past] == [(1, "recovered"), (2, "resolved")]
