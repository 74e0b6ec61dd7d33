"""Alerts of whole sites: one for each cause, with its member series, the worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path

import pytest

from iobands.judge.conditions import certainty, of_low_runs
from iobands.judge.detect.prior import Budget
from iobands.judge.groups import GroupDrop
from iobands.judge.happenings import happenings_of
from iobands.model import VARIABLE_UNITS, worst
from iobands.snapshot import (
    ACKNOWLEDGE,
    Acknowledgement,
    Action,
    Alert,
    Certainty,
    Ratio,
    Severity,
    Snapshot,
    State,
    ordered,
    what_failed,
)
from iobands.snapshot.history import Transient
from iobands.source.action_log import ALERT_LOG, alert_log
from iobands.views.alert_lines import counted_members
from iobands.views.explain_series import of_series
from iobands.views.writing import summary
from tests.factory import (
    NOW,
    case,
    daily,
    days_ago,
    line,
    write_bands,
    write_perflog,
    write_report,
)
from tests.sites import DAY, EIGHT, Factor, SiteFiles, levels, slow


def of(site: Snapshot, severity: Severity) -> list[Alert]:
    return [alert for alert in site.alerts if alert.severity is severity]


def labels(alert: Alert) -> set[str]:
    return {member.series.label for member in alert.members}


@pytest.mark.parametrize(
    ("fields", "subject", "number"),
    [
        ({"file_system": "a"}, "a writes", 4),
        ({"transport": "ucx"}, "transport ucx writes", 4),
        ({"pattern": "ssf"}, "pattern ssf writes", 4),
        ({}, "partition local writes", 8),
    ],
)
def test_one_cause_is_one_alert_of_those_that_fell(
    tmp_path: Path, fields: dict[str, str], subject: str, number: int
) -> None:
    site = SiteFiles(tmp_path).days(slow(0.7, **fields)).read()
    (alert,) = site.alerts
    assert (alert.severity, alert.subject) == (Severity.DEGRADED, subject)
    assert len(alert.members) == number
    for member in alert.members:
        assert all(getattr(member.series.key, name) == value for name, value in fields.items())
        assert member.ratio is not None
        assert member.ratio.value == pytest.approx(0.7, rel=0.1)
        assert member.baseline == pytest.approx(2, rel=0.1)
    ratios = [member.ratio.value for member in alert.members if member.ratio]
    assert ratios == sorted(ratios)
    # the first slow run was 11 days before the newest
    assert alert.since is not None
    assert abs(alert.since - (NOW - 11.25 * DAY)) <= DAY
    assert (alert.certainty, alert.direction) == (Certainty.CERTAIN, "down")
    assert site.exit_status == 2


@pytest.mark.parametrize(("day", "seed"), [(11, 1), (11, 2), (10, 6), (9, 6)])
def test_a_series_with_one_bad_run_has_no_part_in_the_fall_of_others(
    tmp_path: Path, day: int, seed: int
) -> None:
    bad = slow(0.4, since=day + 1, until=day, file_system="b", pattern="fpp", transport="ofi")
    fell = slow(0.7, file_system="a")
    files = SiteFiles(tmp_path).days(lambda *run: bad(*run) * fell(*run), seed=seed)
    (alert,) = (each for each in files.read().alerts if each.number)
    assert alert.subject == "a writes"
    assert [each.series.key.file_system for each in alert.members] == ["a"] * 4


def test_the_right_cause_is_nearly_always_named(tmp_path: Path) -> None:
    found: Counter[str] = Counter()
    for seed in range(6):
        files = SiteFiles(tmp_path / str(seed)).days(slow(0.8, transport="ucx"), seed=seed)
        found.update(alert.subject for alert in of(files.read(), Severity.DEGRADED))
    assert found["transport ucx writes"] >= 5
    assert found.total() <= 8


def test_one_series_is_an_alert_of_its_own(tmp_path: Path) -> None:
    fall = slow(0.6, file_system="a", pattern="fpp", transport="ofi")
    (alert,) = SiteFiles(tmp_path).days(fall).read().alerts
    assert alert.subject == "a fpp ofi write_bw"
    assert len(alert.members) == 1
    assert alert.since_low <= NOW - 11.25 * DAY <= alert.since_high


def test_a_weekly_series_that_fell_with_daily_ones_is_in_their_alert(tmp_path: Path) -> None:
    fell, daily_ones = slow(0.6, since=30, file_system="a"), EIGHT[::2]
    files = SiteFiles(tmp_path).days(fell, days=210, series=daily_ones)
    # they fell 30 days ago, between its runs of 31 and 24 days ago
    values = levels((26, 1.0), (4, 0.6), seed=2)
    rows = [
        line(
            job_completion_time=days_ago(week * 7 + 3.25),
            perf_value=value,
            file_system="a",
            pattern="serial",
            environ="ofi",
            transport="ofi",
        )
        for week, value in zip(range(29, -1, -1), values, strict=True)
    ]
    write_perflog(files.perflogs, rows, "Weekly.log")
    site = files.read()
    (alert,) = site.alerts
    assert "a serial write_bw" in labels(alert)
    assert (alert.number, len(alert.members)) == (1, 3)
    # its explanation, too, says that the others fell with it
    (weekly,) = (each.series for each in alert.members if each.series.label == "a serial write_bw")
    moved, _, still = "\n".join(of_series(site, weekly)).partition("Did not move")
    assert "a fpp write_bw: down since " in moved
    assert "of the same file system" not in still


def test_an_alert_that_most_have_left_counts_those_that_it_is_called_by(tmp_path: Path) -> None:
    soon = slow(0.6, since=40, until=15)
    here, last = {"file_system": "a", "pattern": "ssf"}, {"transport": "ucx"}
    long = slow(0.6, since=40, until=10, **here, **last)
    late = slow(0.6, since=40, **here, transport="ofi")
    files = SiteFiles(tmp_path).days(lambda *run: min(of(*run) for of in (soon, long, late)))
    counts = {}
    for ago in (20, 9, 1):
        site = files.read(NOW - ago * DAY, as_of=True)
        (alert,) = (each for each in site.alerts if each.number == 1)
        counts[ago] = (alert.subject, len(alert.members), counted_members(alert, site))
    assert counts[20] == ("partition local writes", 8, "8 of 8 series")
    assert counts[9] == ("partition local writes", 2, "2 of 8 series")
    assert counts[1] == ("partition local writes", 1, "1 of 8 series")


def test_a_drop_of_several_after_a_pause_may_have_begun_in_the_pause(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).days(slow(1.0), days=60, series=EIGHT[:2])
    path = files.perflogs / "here" / "local" / "BenchioFPP.log"
    rows = path.read_text("utf-8").splitlines()[1:]
    # no run from 40 to 3 days ago
    files.write([row for row in rows if not days_ago(40) < row[:25] < days_ago(3)])
    series, began = files.read().series, NOW - 2.25 * DAY
    drop = GroupDrop(
        "here", began, began, None, 1, 12.0, {each.key: Ratio(1, 1, 1) for each in series}
    )
    found = happenings_of(series, [drop], [])[-1]
    assert (found.low, found.after) == (began, NOW - 40.25 * DAY)
    # a change near it may be as early as two days after the last run before it
    assert found.earliest == NOW - 38.25 * DAY


def test_a_drop_of_several_is_over_when_each_has_recovered_by_itself(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).days(slow(0.5, since=40, until=20), series=EIGHT[:2])
    series, began = files.read().series, NOW - 40.25 * DAY
    ends = [each.status.evidence.changes[0].closed for each in series if each.status.evidence]
    drop = GroupDrop(
        "here", began, began, None, 1, 12.0, {each.key: Ratio(1, 1, 1) for each in series}
    )
    assert happenings_of(series, [drop], [])[-1].over == max(filter(None, ends))
    assert happenings_of(series, [replace(drop, raised=NOW)], [])[-1].over is None
    sooner = replace(drop, ended=NOW - 30 * DAY)
    assert happenings_of(series, [sooner], [])[-1].over == sooner.ended


def test_two_causes_are_two_alerts(tmp_path: Path) -> None:
    early, late = slow(0.7, since=40, file_system="a"), slow(0.7, file_system="b")
    files = SiteFiles(tmp_path).days(lambda *run: early(*run) * late(*run))
    found = {alert.subject: alert for alert in files.read().alerts}
    assert set(found) == {"a writes", "b writes"}
    between = found["b writes"].since - found["a writes"].since
    assert abs(between - 28 * DAY) <= 2 * DAY


def test_a_series_that_fell_long_before_adds_no_alert_to_the_shared_one(tmp_path: Path) -> None:
    early = slow(0.6, since=60, file_system="a", pattern="fpp", transport="ofi")
    late = slow(0.7, file_system="a")
    site = SiteFiles(tmp_path).days(lambda *run: min(early(*run), late(*run))).read()
    shared = max(site.alerts, key=lambda alert: len(alert.members))
    assert {"a fpp ucx write_bw", "a ssf ofi write_bw", "a ssf ucx write_bw"} <= labels(shared)
    assert abs(shared.since - (NOW - 11.25 * DAY)) <= DAY
    # it is a member or a separate alert, but never both
    others = [alert for alert in site.alerts if alert is not shared]
    assert sum("a fpp ofi write_bw" in labels(alert) for alert in site.alerts) == 1
    assert all(labels(alert) == {"a fpp ofi write_bw"} for alert in others)


def test_writes_and_reads_are_one_alert(tmp_path: Path) -> None:
    fall = slow(0.7, file_system="a")
    files = SiteFiles(tmp_path).days(fall, variables=("write_bw", "read_bw"))
    (alert,) = files.read().alerts
    assert alert.subject == "a"
    assert Counter(member.series.key.variable for member in alert.members) == {
        "write_bw": 4,
        "read_bw": 4,
    }


def test_improvements_with_one_cause_are_one_alert_and_all_is_well(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(1.6, file_system="b")).read()
    (alert,) = site.alerts
    assert (alert.severity, alert.subject, alert.direction) == (Severity.IMPROVED, "b writes", "up")
    assert len(alert.members) == 4
    assert (alert.exit_status, site.exit_status) == (0, 0)


def test_opposite_changes_are_not_one_alert(tmp_path: Path) -> None:
    up, down = slow(1.6, pattern="fpp", file_system="a"), slow(0.6, pattern="ssf", file_system="a")
    site = SiteFiles(tmp_path).days(lambda *run: up(*run) * down(*run)).read()
    (fell,), (rose,) = of(site, Severity.DEGRADED), of(site, Severity.IMPROVED)
    assert {member.series.key.pattern for member in fell.members} == {"ssf"}
    assert {member.series.key.pattern for member in rose.members} == {"fpp"}


def test_a_healthy_site_has_no_alert(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(1.0)).read()
    assert (site.alerts, site.exit_status) == ((), 0)
    assert site.counts() == {State.HEALTHY: 8}


def test_a_recovered_cause_is_no_alert(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(0.6, since=50, until=20, file_system="a")).read()
    assert site.alerts == ()


def test_cases_are_in_no_group(tmp_path: Path) -> None:
    series = [{**fields, "case": f"page {number}"} for number, fields in enumerate(EIGHT)]
    site = SiteFiles(tmp_path).days(slow(0.6), series=series).read()
    assert all(len(alert.members) == 1 for alert in site.alerts)
    assert len(site.alerts) == 8


def test_cases_that_a_tag_runs_are_in_groups(tmp_path: Path) -> None:
    scheduled = {"case": "csc-nonblocking", "interval_days": "1"}
    series = [{**fields, **scheduled} for fields in EIGHT]
    site = SiteFiles(tmp_path).days(slow(0.6, file_system="a"), series=series).read()
    (alert,) = site.alerts
    assert (alert.subject, len(alert.members)) == ("a writes", 4)


def test_a_few_low_runs_are_watched_and_no_warning(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path)
    sites = [files.write(daily(levels((112 - low, 1), (low, 0.7)))).read() for low in range(1, 10)]
    kinds = [site.series[0].status.state for site in sites]
    order = [State.HEALTHY, State.WATCH, State.DEGRADED]
    assert kinds == sorted(kinds, key=order.index)
    assert set(kinds) == set(order)
    watched = sites[kinds.index(State.WATCH)]
    (alert,) = of(watched, Severity.WATCH)
    (member,) = alert.members
    assert watched.exit_status == alert.exit_status == 0  # a note: it may be chance
    assert member.ratio.value == pytest.approx(0.7, rel=0.2)
    assert member.baseline == pytest.approx(1.5, rel=0.05)


def test_missing_samples_are_one_alert_for_a_file_system_and_a_reason(tmp_path: Path) -> None:
    rows = [row for n in range(6) for row in daily([1.5, None], pattern=f"p{n}")]
    rows += daily([1.5, None], file_system="home")
    rows += daily([1.5] * 4, file_system="home", pattern="old", last=9)
    site = SiteFiles(tmp_path).write(rows).read()
    assert all(alert.severity is Severity.NO_DATA for alert in site.alerts)
    found = sorted(len(alert.members) for alert in site.alerts)
    assert found == [1, 1, 6]
    six = next(alert for alert in site.alerts if len(alert.members) == 6)
    assert {member.series.key.file_system for member in six.members} == {"disk"}
    assert six.since == NOW - 1.25 * DAY  # of the newest sample that there is
    assert "sanity" in six.reason
    assert {alert.exit_status for alert in site.alerts} == {3}


def test_checks_that_fail_alike_are_one_alert_though_their_words_differ(tmp_path: Path) -> None:
    wrong = "sanity error: benchio: rank {0} on host n{0}: {1} of /work/{0}.dat failed: {2}"
    full = "No space left on device (errno 28)"
    errors = {f"p{n}": wrong.format(n, ("write", "fsync")[n % 2], full) for n in range(3)}
    errors["odd"] = wrong.format(5, "open", "Permission denied (errno 13)")
    names = [{"pattern": name, "display_name": f"Fails {name}"} for name in errors]
    files = SiteFiles(tmp_path).write([row for n in names for row in daily([1.5], last=1, **n)])
    ended = int(NOW.timestamp()) - 999
    failed = [
        case(fail_phase="sanity", fail_reason=said, job_completion_time_unix=ended + 90 * n, **name)
        for n, (name, said) in enumerate(zip(names, errors.values(), strict=True))
    ]
    write_report(files.perflogs, failed)
    alike, odd = sorted(files.read().alerts, key=lambda each: -len(each.members))
    assert (alike.subject, odd.subject) == ("3 series of disk", "disk odd write_bw")
    first = f"the run of 21 Nov 2026 01:13 failed: {errors['p0']}"
    assert alike.reason == f"{first}; likewise in 2 more checks"
    assert odd.reason.endswith("open of /work/5.dat failed: Permission denied (errno 13)")


def test_modules_that_are_missing_differ_by_their_names() -> None:
    first, other, newer = (
        what_failed(f"the run of 21 Nov 2026 01:13 failed: no module {name} on nid00{node}")
        for name, node in (("gcc/12", 1), ("openmpi/4", 2), ("gcc/13", 3))
    )
    assert first != other
    assert first == newer


def test_a_long_reason_takes_no_longer_to_compare_than_to_read() -> None:
    long = "a" * 200_000
    assert what_failed(f"write of /work/0.dat failed: {long}") == long


def test_missing_samples_of_imported_series_without_a_file_system(tmp_path: Path) -> None:
    rows = [r for n in range(2) for r in daily([1.5] * 9, file_system="null", pattern=f"p{n}")]
    (alert,) = SiteFiles(tmp_path).write(rows).read(NOW + 9 * DAY).alerts
    assert (alert.severity, alert.subject) == (Severity.NO_DATA, "2 series")


def test_the_age_of_a_sample_is_the_one_of_the_headline(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).write(daily([1.5] * 30, last=3.9, interval_days=1)).read()
    assert [each.reason for each in site.alerts] == ["the newest sample is 3 days old"]
    assert "newest run 3 days ago" in summary(site)
    often = daily([1.5] * 30, last=1.9, interval_days=0.25)
    (alert,) = SiteFiles(tmp_path).write(often).read().alerts
    assert alert.reason == "the newest sample is 1 day old"


def test_a_series_that_has_degraded_and_is_not_measured_is_not_silent(tmp_path: Path) -> None:
    rows = daily(levels((100, 1), (20, 0.5)), last=15.25, interval_days=1)
    files = SiteFiles(tmp_path).write([*rows, *daily([1.5] * 120, file_system="home")])
    files.act(ACKNOWLEDGE, "1", now=NOW - 15 * DAY)
    site = files.read()
    found = [(alert.severity, alert.is_quiet, alert.reason) for alert in site.alerts]
    said = "the newest sample is 15 days old"
    assert found == [(Severity.DEGRADED, True, ""), (Severity.NO_DATA, False, said)]
    assert (site.exit_status, site.alerts[1].since) == (3, NOW - 15.25 * DAY)


def test_a_few_collapsed_runs_are_alerts_of_their_own_and_many_are_one(tmp_path: Path) -> None:
    patterns = {"ssf": 0.2, "fpp": 0.1, "fpn": 0.3, "serial": 0.25}
    rows = [
        row
        for (pattern, value), file_system in product(patterns.items(), ("disk", "scratch"))
        # one series of scratch is healthy
        for row in daily(
            [1.5, 1.5 if (file_system, pattern) == ("scratch", "fpn") else value],
            file_system=file_system,
            pattern=pattern,
        )
    ]
    files = SiteFiles(tmp_path).write(rows)
    write_bands(files.bands)  # the floor of 1 to 2 GiB/s is 1 × (1/2)^1.5 = 0.354
    site = files.read()
    found = {alert.subject: alert for alert in of(site, Severity.COLLAPSED)}
    assert set(found) == {
        "disk writes",
        *(f"scratch {pattern} write_bw" for pattern in ("ssf", "fpp", "serial")),
    }
    ratios = [member.ratio.value for member in found["disk writes"].members]
    assert ratios == pytest.approx([value / 1.5 for value in (0.1, 0.2, 0.25, 0.3)])
    assert found["disk writes"].since == NOW - 0.25 * DAY
    assert site.exit_status == 0


def test_low_runs_that_are_over_again_keep_their_own_levels(tmp_path: Path) -> None:
    low = {"fpp": 0.4, "fpn": 0.2, "ssf": 0.3, "serial": 0.5}
    rows = [row for pattern in low for row in daily(levels((30, 1.0)), pattern=pattern)]
    series = []
    for each in SiteFiles(tmp_path).write(rows).read().series:
        since, until = NOW - 0.3 * DAY, NOW - 0.2 * DAY
        over = (Transient(since, until, low[str(each.key.pattern)], low=1, runs=2),)
        evidence = replace(each.status.evidence, transients=over)
        series.append(replace(each, status=replace(each.status, evidence=evidence)))
    (alert,) = of_low_runs(series, ())
    said = {m.series.key.pattern: m.ratio.value for m in alert.members if m.ratio}
    assert said == low
    assert [*said] == ["fpn", "ssf", "fpp", "serial"]


def test_a_level_that_has_fallen_is_no_collapse_too(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).write(daily(levels((100, 1), (20, 0.3)))).read()
    assert site.series[0].status.verdict == "collapsed"
    assert [alert.severity for alert in site.alerts] == [Severity.DEGRADED]


def test_a_check_that_never_gave_a_series_is_an_alert(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).write(daily([1.5]))
    write_report(files.perflogs, [case(display_name="Ior", file_system="fast")])
    (alert,) = files.read().alerts
    assert (alert.severity, alert.subject, alert.members) == (Severity.FAILED, "Ior", ())
    assert alert.since == NOW.replace(second=0)
    assert "setup" in alert.reason
    assert alert.exit_status == 3


def test_the_worst_is_first_and_decides(tmp_path: Path) -> None:
    values = {
        "worse": levels((100, 1), (20, 0.5)),
        "bad": levels((100, 1), (20, 0.8), seed=2),
        "lost": [1.5, None],
        "good": levels((100, 1), (20, 1.6), seed=3),
    }
    rows = [
        row
        for name, each in values.items()
        # they have no field in common
        for row in daily(
            each, file_system=name, partition=name, pattern=name, transport=name, medium=name
        )
    ]
    files = SiteFiles(tmp_path).write(rows)
    write_report(files.perflogs, [case(display_name="Ior", file_system="x")])
    site = files.read()
    assert [alert.severity for alert in site.alerts] == [
        Severity.DEGRADED,
        Severity.DEGRADED,
        Severity.NO_DATA,
        Severity.FAILED,
        Severity.IMPROVED,
    ]
    assert [alert.subject.split()[0] for alert in site.alerts[:2]] == ["worse", "bad"]
    assert site.exit_status == 2


def test_the_order_of_exit_statuses() -> None:
    assert worst([]) == 0
    assert worst([0, 1]) == 1
    assert worst([0, 1, 3]) == 3
    assert worst([0, 1, 3, 2]) == 2
    assert {each: Alert(each, "x").exit_status for each in Severity} == {
        Severity.INCIDENT: 2,
        Severity.DEGRADED: 2,
        Severity.MODE_LOST: 2,
        Severity.SLIDING: 2,
        Severity.UNSTABLE: 2,
        Severity.NO_DATA: 3,
        Severity.UNFIT: 3,
        Severity.FAILED: 3,
        Severity.FLAKY: 1,
        Severity.WATCH: 0,
        Severity.COLLAPSED: 0,
        Severity.IMPROVED: 0,
    }


def test_what_is_acknowledged_is_a_warning_at_most() -> None:
    known = Acknowledgement(Action(ACKNOWLEDGE, NOW, "jane", "r", ({"pattern": "fpp"},)))
    quiet = {each: Alert(each, "x", acknowledgement=known).exit_status for each in Severity}
    assert quiet[Severity.DEGRADED] == 1
    assert quiet[Severity.NO_DATA] == 3
    assert quiet[Severity.IMPROVED] == 0


def test_equals_are_in_the_order_of_their_evidence() -> None:
    weak, strong = Alert(Severity.WATCH, "weak", score=7), Alert(Severity.WATCH, "strong", score=8)
    lost = Alert(Severity.NO_DATA, "lost")
    assert ordered([weak, lost, strong]) == (lost, strong, weak)


def test_certainty_is_by_the_odds_of_one_real_change_a_year() -> None:
    # runs to a false alarm of score h are exp(0.6 h + 3.6): of 3650 runs a year 10 years are
    # ln 36,500 = 10.51 = 0.6 h + 3.6, so h = 11.51, and 1000 years 7.68 more
    budget = Budget(1.0, 3650.0)
    found = [certainty(score, budget) for score in (11.4, 11.6, 19.1, 19.3)]
    assert found == [
        Certainty.POSSIBLE,
        Certainty.LIKELY,
        Certainty.LIKELY,
        Certainty.CERTAIN,
    ]


def test_an_alert_of_a_run_under_a_clock_that_is_ahead_is_logged_once(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).days(slow(0.6, since=12, file_system="a"))
    now = NOW - 10.26 * DAY  # some minutes before the run that raises it
    judged = files.judge(now)
    assert judged.news["here"][0].kind == "opened"
    assert all(each.when > now for each in judged.news["here"])
    ALERT_LOG.append(alert_log(files.perflogs, "here"), judged.news["here"], known=())
    again = files.judge(now)
    assert again.news["here"] == []
    ALERT_LOG.append(alert_log(files.perflogs, "here"), (), again.known.alert_log["here"])


def test_nearness_decides_what_is_one_cause(tmp_path: Path) -> None:
    # two steady series, whose changes are dated to the run
    def site(name: str, apart: int) -> Snapshot:
        rows = daily([5.0] * 100 + [2.5] * 20, pattern="fpp", medium="x")
        rows += daily([5.0] * (100 - apart) + [2.5] * (20 + apart), pattern="ssf", medium="y")
        return SiteFiles(tmp_path / name).write(rows).read()

    assert [alert.subject for alert in site("near", 2).alerts] == ["disk writes"]
    far = site("far", 45).alerts
    assert sorted(alert.subject for alert in far) == ["disk fpp write_bw", "disk ssf write_bw"]
    assert replace(far[0], score=0).exit_status == 2
    assert far[0].since != far[1].since
    assert timedelta(days=45) in (far[0].since - far[1].since, far[1].since - far[0].since)
    assert days_ago(19.25) in {alert.since.isoformat() for alert in far}


@pytest.mark.parametrize(
    ("factor", "severity", "state"),
    [
        (slow(0.7, since=4, file_system="a"), Severity.DEGRADED, State.DEGRADED),
        (slow(1.5, file_system="b"), Severity.IMPROVED, State.IMPROVED),
    ],
)
def test_the_state_of_a_member_is_that_of_its_alert(
    tmp_path: Path, factor: Factor, severity: Severity, state: State
) -> None:
    site = SiteFiles(tmp_path).days(factor).read()
    (alert,) = of(site, severity)
    assert len(alert.members) == 4
    assert {member.series.status.state for member in alert.members} == {state}
    assert {each.key: each.status.state for each in site.series} == {
        each.key: state if each.key in alert.keys else State.HEALTHY for each in site.series
    }
    # and no member has a second alert, though its newest run may have collapsed
    assert not [each for each in site.alerts if each is not alert and each.keys & alert.keys]


@pytest.mark.parametrize("runs", [40, 250])
def test_series_that_were_low_for_hours_keep_their_own_ratios(runs: int, tmp_path: Path) -> None:
    factors = {"write_bw": 0.3, "read_bw": 0.4, "create_rate": 0.5, "stat_rate": 0.2}
    rows = []
    for seed, (variable, factor) in enumerate(factors.items()):
        fields = {"perf_var": variable, "perf_unit": VARIABLE_UNITS[variable]}
        rows += daily([*levels((runs, 1.0), seed=seed), 1.5 * factor], last=0.3, **fields)
        again = 0.2 if variable == "create_rate" else 0.25
        fields |= {"job_completion_time": days_ago(again), "purpose": "repeat"}
        rows.append(line(perf_value=1.5, **fields))
    (alert,) = SiteFiles(tmp_path).write(rows).read().alerts
    assert alert.reason.startswith("already over: up to 2 h at 0.5")  # the longest
    assert alert.reason.endswith("1 of 2 runs")
    found = [(each.series.key.variable, each.ratio.value) for each in alert.members]
    lowest_first = sorted(factors.items(), key=lambda each: each[1])
    assert found == [(name, pytest.approx(value, rel=0.03)) for name, value in lowest_first]


def test_an_alert_of_which_every_member_slides_is_a_slide(tmp_path: Path) -> None:
    def sinks(series: Mapping[str, str], day: int) -> float:
        return 1 - max(0, 90 - day) / 180 if series["file_system"] == "a" else 1.0

    found = SiteFiles(tmp_path).days(sinks, days=200).read()
    (alert,) = found.alerts
    assert alert.subject == "a writes"
    assert {each.series.status.state for each in alert.members} == {State.SLIDING}
    assert alert.severity is Severity.SLIDING
    assert alert.since and 70 <= (NOW - alert.since).days <= 100  # the beginning of the slide


def test_an_alert_of_a_check_that_failed_has_its_name(tmp_path: Path) -> None:
    both = ("write_bw", "read_bw")
    rows = [
        row
        for p in ("fpp", "ssf")
        for v in both
        for row in daily([2.0] * 30, pattern=p, perf_var=v)
    ]
    failed = {"result": "fail", "fail_phase": "sanity", "perf_value": "null", "pattern": "ssf"}
    rows += [line(job_completion_time=days_ago(0.1), perf_var=v, **failed) for v in both]
    (alert,) = SiteFiles(tmp_path).write(rows).read().alerts
    assert (alert.severity, alert.subject) == (Severity.NO_DATA, "disk ssf")
    assert alert.reason == "the run of 20 Nov 2026 23:06 failed in sanity"
