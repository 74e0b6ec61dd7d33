"""The state of a series from perflogs and reports, with bands worked out by hand."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from iobands.bands import Span, parse_bands
from iobands.judge.normal import OWN_HISTORY
from iobands.judge.requests import RequestError
from iobands.model import FileError
from iobands.snapshot import DISCARD, RETIRE, VERDICTS, Snapshot, State
from iobands.source.known import maintenance_of
from iobands.views.writing import runs_left, summary
from tests.factory import (
    NOW,
    case,
    daily,
    days_ago,
    line,
    write_bands,
    write_report,
)
from tests.sites import DAY, SiteFiles, levels, only

#: 1 to 20: quartiles 5.75, 10.5, 15.25 (type 7: 1 + 19 q), floor 5.75 (5.75 / 15.25)^2.375 = 0.5670
HISTORY = [float(value) for value in range(1, 21)]


@pytest.fixture
def files(tmp_path: Path) -> SiteFiles:
    return SiteFiles(tmp_path)


@pytest.mark.parametrize(
    ("newest", "verdict"),
    [(0.56, "collapsed"), (0.57, "below"), (5.75, "within"), (15.25, "within"), (15.3, "above")],
)
def test_a_band_is_learned_from_twenty_earlier_runs(
    files: SiteFiles, newest: float, verdict: str
) -> None:
    status = only(files.write(daily([*HISTORY, newest])).read()).status
    band = status.band
    assert (band.lower_quartile, band.median, band.upper_quartile) == (5.75, 10.5, 15.25)
    assert band.floor == pytest.approx(0.5670, abs=5e-5)
    assert (band.maximum, band.runs, band.source) == (20, 20, OWN_HISTORY)
    assert (status.verdict, status.provisional) == (verdict, True)
    assert status.state is State.HEALTHY  # whatever the verdict


def test_the_newest_run_is_not_in_its_own_band(files: SiteFiles) -> None:
    status = only(files.write(daily(HISTORY)).read()).status
    assert (status.state, status.verdict, status.band) == (State.CALIBRATING, "no band", None)
    assert (status.usable, status.runs, status.why) == (19, 20, "the next run is judged")


def test_a_run_that_teaches_nothing_does_not_bring_a_band_nearer(files: SiteFiles) -> None:
    lines = daily(HISTORY[:11])
    files.write(lines).act(DISCARD, at=Span(NOW - DAY, NOW))
    discarded = only(files.read())
    asked = [
        *daily(HISTORY[:10], last=1.25),
        line(purpose="repeat", job_completion_time=days_ago(1)),
    ]
    repeated = only(SiteFiles(files.perflogs.parent / "asked").write(asked).read())
    for each in (discarded, repeated):
        assert (each.status.usable, each.status.why) == (10, "10 of 20 runs")
        assert runs_left(each) == 11  # ten for a band, and the one that it judges


@pytest.mark.parametrize("number", [1, 2, 20])
def test_few_equal_runs_are_calibrating(files: SiteFiles, number: int) -> None:
    status = only(files.write(daily([5.0] * number)).read()).status
    assert (status.state, status.verdict, status.runs) == (State.CALIBRATING, "no band", number)


@pytest.mark.parametrize(
    ("fields", "usable"),
    [
        ({"tool_version": "0.9"}, 4),
        ({"fsync": "false"}, 4),
        ({"fsync": "null"}, 4),
        ({"suite_version": "1.0.0"}, 4),
        ({"suite_version": "0.9.9"}, 14),
        ({"result": "fail"}, 4),
        ({"result": "fail", "fail_phase": "performance"}, 4),
        ({}, 14),
    ],
)
def test_what_compares_with_the_newest_run(
    files: SiteFiles, fields: dict[str, str], usable: int
) -> None:
    rows = daily(HISTORY[:10], last=20, **fields) + daily([5.0] * 5)
    status = only(files.write(rows).read()).status
    assert (status.usable, status.runs) == (usable, 15)


def test_a_published_band_goes_before_the_series_own(files: SiteFiles) -> None:
    files.write(daily([*HISTORY, 6]))
    write_bands(files.bands, (5, 11, 15))
    status = only(files.read()).status
    assert (status.band.median, status.provisional, status.verdict) == (11, False, "within")
    assert status.state is State.HEALTHY


def test_runs_from_before_the_epoch_do_not_count(files: SiteFiles) -> None:
    files.write(daily([*HISTORY, 1.9]))
    write_bands(files.bands, since="2026-11-18", variable="read_bw")
    assert only(files.read()).status.usable == 2  # of 18 and 19 November, the newest not


def test_a_band_by_medium(files: SiteFiles) -> None:
    files.write([*daily([1.2]), *daily([1.2], file_system="fast", medium="nvme")])
    write_bands(files.bands, variable="write_bw", medium="nvme")
    found = {series.label: series.status.verdict for series in files.read().series}
    assert found == {"disk fpp write_bw": "no band", "fast fpp write_bw": "within"}


def test_verdicts_of_all_runs(files: SiteFiles) -> None:
    files.write(daily([0.5, 1.5, 0.2, 1.0, 3.0]))
    write_bands(files.bands, since=days_ago(3.5))
    series = only(files.read())
    found = [VERDICTS[code] for code in series.verdicts.codes]
    # floor 1 (1/2)^1.5 = 0.354
    assert found == ["no band", "within", "collapsed", "within", "above"]


def test_a_learned_band_judges_the_runs_that_it_compares_with(files: SiteFiles) -> None:
    rows = daily([5.0], last=30, tool_version="0.9") + daily([*HISTORY, 16.0])
    series = only(files.write(rows).read())
    found = [VERDICTS[code] for code in series.verdicts.codes]
    assert found[:3] == ["no band", "below", "below"]
    assert found[-1] == "above"


def test_a_collapsed_run_is_a_sample(files: SiteFiles) -> None:
    files.write(daily([1.5, 0.1], result="fail", fail_phase="performance"))
    write_bands(files.bands)
    values = {"here:local:write_bw": [0.1, 1.5, -0.9, None, "GiB/s", "fail"]}
    end = (NOW - timedelta(days=0.25)).timestamp() + 0.9
    report = case(fail_phase="performance", perfvalues=values, job_completion_time_unix=end)
    write_report(files.perflogs, [report])
    site = files.read()
    status = only(site).status
    assert (status.state, status.verdict, status.value) == (State.HEALTHY, "collapsed", 0.1)
    assert site.exit_status == 0


def test_collapsed_runs_are_judged_though_they_failed(files: SiteFiles) -> None:
    rows = daily(levels((100, 1)), last=10.25)
    rows += daily([0.2] * 10, result="fail", fail_phase="performance")
    assert only(files.write(rows).read()).status.state is State.DEGRADED


def test_a_published_band_judges_from_the_first_runs(files: SiteFiles) -> None:
    files.write(daily([75.0] * 15))
    write_bands(files.bands, (135, 150, 180))
    assert only(files.read()).status.state is State.DEGRADED


def test_a_newest_run_without_a_value_is_no_data(files: SiteFiles) -> None:
    site = files.write(daily([1.5, 1.6, None])).read()
    status = only(site).status
    assert (status.state, status.value, status.runs) == (State.NO_DATA, 1.6, 2)
    assert "sanity" in status.missing
    assert site.exit_status == 3


def test_an_earlier_run_without_a_value_is_past(files: SiteFiles) -> None:
    status = only(files.write(daily([1.5, None, 1.6])).read()).status
    assert (status.state, status.missing) == (State.CALIBRATING, None)


def test_a_run_that_left_no_line_is_no_data(files: SiteFiles) -> None:
    files.write([*daily([1.5]), *daily([2.5], perf_var="read_bw")])
    write_report(files.perflogs, [case(perfvalues={"here:local:read_bw": [2.5]})])
    found = {series.label: series.status for series in files.read().series}
    assert found["disk fpp read_bw"].state is State.CALIBRATING
    assert found["disk fpp write_bw"].state is State.NO_DATA
    assert "no such file system" in found["disk fpp write_bw"].missing


def test_a_report_from_before_the_newest_sample_is_past(files: SiteFiles) -> None:
    files.write(daily([1.5]))
    write_report(files.perflogs, [case()], days=1)
    assert only(files.read()).status.state is State.CALIBRATING


@pytest.mark.parametrize(
    "report",
    [
        {"display_name": "BenchioFPP %new=1"},  # renamed, and known by its fields
        {"result": "pass", "fail_phase": None, "fail_reason": None},  # without a value
        {"result": "skip", "fail_reason": None, "skip_reason": "not installed: benchio"},
    ],
)
def test_a_run_that_gave_nothing_is_no_data(files: SiteFiles, report: dict[str, object]) -> None:
    files.write(daily([1.5]))
    write_report(files.perflogs, [case(**report)])
    site = files.read()
    assert only(site).status.state is State.NO_DATA
    # and of the series alone
    (alert,) = site.alerts
    assert alert.keys == {only(site).key}


def test_a_new_check_that_fails_beside_the_old_one_is_another(files: SiteFiles) -> None:
    files.write(daily([1.5], last=0.5))
    fine = {"result": "pass", "fail_phase": None, "fail_reason": None}
    values = {"here:local:write_bw": [1.5], "here:local:read_bw": [2.5]}
    new = case(display_name="BenchioFPP %new=1")
    write_report(files.perflogs, [case(perfvalues=values, **fine), new])
    site = files.read()
    assert only(site).status.state is State.CALIBRATING
    assert [alert.subject for alert in site.alerts] == ["BenchioFPP %new=1"]


def test_a_check_that_was_refused_for_its_series_leaves_the_series_alone(files: SiteFiles) -> None:
    files.write(daily([1.5], last=0.5))
    why = "shared series error: Mine and BenchioFPP would feed one series of write_bw: set 'case'"
    write_report(files.perflogs, [case(display_name="Mine", fail_reason=why)])
    site = files.read()
    assert only(site).status.state is State.CALIBRATING
    assert [alert.subject for alert in site.alerts] == ["Mine"]


@pytest.mark.parametrize(
    ("gaps", "age", "state"),
    [
        ([1, 1, 1], 3, State.CALIBRATING),  # two intervals and a day
        ([1, 1, 1], 3.01, State.NO_DATA),
        ([1, 1, 1, 0.01, 0.01], 3.1, State.NO_DATA),  # repeats by hand are one visit
        ([1, 1, 9, 1, 1], 3.01, State.NO_DATA),  # an outage is no habit
        ([7, 7, 7], 14.9, State.CALIBRATING),
        ([7, 7, 7], 15.1, State.NO_DATA),
        ([1, 1, 1, 1, 1, 1, 1, 7, 7, 7], 14.9, State.CALIBRATING),  # from daily to weekly
        ([], 400, State.CALIBRATING),  # run once
        ([1, 1], 400, State.CALIBRATING),  # a campaign of three days
        ([1, 1, 1], -1 / 24, State.CALIBRATING),  # a clock is ahead
    ],
)
def test_when_a_series_is_overdue_is_learned(
    files: SiteFiles, gaps: list[float], age: float, state: State
) -> None:
    days = [age + sum(gaps[place:]) for place in range(len(gaps) + 1)]
    files.write([line(job_completion_time=days_ago(each)) for each in days])
    assert only(files.read()).status.state is state


@pytest.mark.parametrize(("age", "state"), [(14, State.CALIBRATING), (16, State.NO_DATA)])
def test_an_interval_that_the_site_declares_goes_first(
    files: SiteFiles, age: float, state: State
) -> None:
    files.write(daily([1.5] * 5, last=age, interval_days=7))
    assert only(files.read()).status.state is state


@pytest.mark.parametrize(("interval", "state"), [("null", State.CALIBRATING), (1, State.NO_DATA)])
def test_a_case_is_overdue_where_the_site_has_put_it_into_a_tag(
    files: SiteFiles, interval: object, state: State
) -> None:
    rows = daily([1.5] * 5, last=4, case="csc-nonblocking", interval_days=interval)
    files.write(rows)
    series = only(files.read())
    assert series.status.state is state
    assert series.is_on_demand == (interval == "null")


def test_one_run_of_2066_is_set_aside(files: SiteFiles) -> None:
    rows = daily([*HISTORY, 6])
    late = line(job_completion_time="2066-01-01T05:30:12+00:00")
    files.write([*rows, late])
    write_report(files.perflogs, [case()], days=-14_000)  # of the same session
    write_report(files.perflogs, [case(display_name="Other", pattern="ssf")], number=1)
    site = files.read()
    assert (only(site).status.state, only(site).status.runs) == (State.HEALTHY, len(rows))
    (future,) = site.future
    assert (future.label, future.when.year) == ("disk fpp write_bw", 2066)
    # other reports are still read
    assert [alert.subject for alert in site.alerts] == ["Other", "clock"]
    assert site.alerts[1].reason.startswith("a sample is dated 2066-01-01 05:30, in the future")
    # in 2066 it is a sample like any other
    assert files.read(future.when).future == ()
    files.write([late])
    assert only(files.read()).status.state is State.NO_DATA


def test_a_case_is_never_overdue(files: SiteFiles) -> None:
    files.write(daily([1.0], last=400, case="csc-aggregators 2"))
    assert only(files.read()).status.state is State.CALIBRATING


def test_a_degraded_series_without_news_stays_degraded(files: SiteFiles) -> None:
    status = only(files.write(daily(levels((105, 1), (15, 0.5)), last=9)).read()).status
    assert status.state is State.DEGRADED
    assert status.missing is not None


def test_an_improved_series_without_news_is_missed(files: SiteFiles) -> None:
    site = files.write(daily(levels((60, 1), (15, 1.5)), last=15)).read()
    assert only(site).status.state is State.NO_DATA
    missing, improved = site.alerts
    assert (missing.severity, improved.severity) == ("no data", "improved")
    assert missing.reason == "the newest sample is 15 days old"
    assert site.exit_status == 3


def test_a_drop_has_a_date_and_a_size(files: SiteFiles) -> None:
    site = files.write(daily(levels((105, 1), (15, 0.7)))).read()
    status = only(site).status
    assert (status.state, site.exit_status) == (State.DEGRADED, 2)
    change = status.change
    # the newest run was 0.25 days before NOW, and the first of 15 slow ones 14 days before that
    assert change.since_low <= NOW - 14.25 * DAY <= change.since_high
    assert change.ratio.low < 0.7 < change.ratio.high
    assert change.baseline == pytest.approx(1.5, rel=0.03)
    assert change.level == pytest.approx(0.7 * 1.5, rel=0.05)
    assert change.score >= change.threshold == site.threshold
    small, large = status.evidence.power.values()
    assert 2 < large < small < 30


def test_an_open_drop_does_not_teach_the_band(files: SiteFiles) -> None:
    status = only(files.write(daily(levels((80, 1), (40, 0.5)))).read()).status
    assert status.band.median == pytest.approx(1.5, rel=0.03)
    assert status.band.runs <= 81


def test_what_recovered_is_healthy_and_remembered(files: SiteFiles) -> None:
    status = only(files.write(daily(levels((80, 1), (20, 0.5), (50, 1)))).read()).status
    assert (status.state, status.change) == (State.HEALTHY, None)
    (change,) = status.evidence.changes
    assert (change.direction, change.end) == ("down", "recovered")
    assert abs(change.ended - (NOW - 49.25 * DAY)) <= 2 * DAY


def test_a_small_change_is_reported_if_the_site_asks_for_it(files: SiteFiles) -> None:
    files.write(daily([5.0, 5.002, 5.001] * 40 + [4.98, 4.982, 4.981] * 5))
    assert only(files.read()).status.state is not State.DEGRADED
    files.bands.mkdir()
    text = "schema: 3\nsystem: here\nleast_change_percent: 0.1\nepochs: []\n"
    (files.bands / "here.yaml").write_text(text)
    assert only(files.read()).status.state is State.DEGRADED


def test_equal_values_are_healthy_and_a_percent_less_is_no_collapse(files: SiteFiles) -> None:
    for newest, verdict in ((5.0, "within"), (4.95, "below"), (4.4, "collapsed")):
        status = only(files.write(daily([5.0] * 60 + [newest])).read()).status
        assert (status.state, status.verdict) == (State.HEALTHY, verdict)
        # a tenth under the lower quartile at the least
        assert status.band.floor == pytest.approx(4.5)


@pytest.mark.parametrize("before", [[5.0] * 60, [5.0, 6.0] * 50])
def test_ties_that_fall_are_dated_to_the_run(files: SiteFiles, before: list[float]) -> None:
    assert only(files.write(daily(before)).read()).status.state is State.HEALTHY
    status = only(files.write(daily([*before, *[3.5] * 12])).read()).status
    assert status.state is State.DEGRADED
    assert status.change.since.isoformat() == days_ago(11.25)


def test_the_order_of_the_lines_and_time_zones_do_not_matter(files: SiteFiles) -> None:
    rows = daily(levels((75, 1), (15, 0.6)))
    change = only(files.write(rows).read()).status.change
    # every second line first, so that most come before an earlier one
    assert only(files.write([*rows[1::2], *rows[::2]]).read()).status.change == change
    assert days_ago(0.25).endswith("T19:30:00+00:00")
    elsewhere = [row.replace("T19:30:00+00:00", "T14:30:00-05:00") for row in rows[::2]]
    assert only(files.write([*elsewhere, *rows[1::2]]).read()).status.change == change


def test_runs_that_are_not_measured_are_not_judged(files: SiteFiles) -> None:
    rows = daily(levels((60, 1)), last=10.25) + daily([1500.0] * 10, perf_unit="MB/s")
    site = files.write(rows).read()
    status = only(site).status
    assert (status.state, status.runs) == (State.NO_DATA, 60)
    assert len(site.rejected) == 10


def test_no_series_is_unknown(files: SiteFiles) -> None:
    site = files.write([]).read()
    assert (site.series, site.exit_status) == ((), 3)


def test_a_series_without_a_sample_has_no_data(files: SiteFiles) -> None:
    status = only(files.write(daily([None])).read()).status
    assert (status.state, status.value, status.evidence) == (State.NO_DATA, None, None)


def test_lines_that_are_none_are_rejected_with_their_place(files: SiteFiles) -> None:
    files.write([*daily([1.5]), line(perf_value="x"), "y"])
    write_report(files.perflogs, []).write_text("{")
    site: Snapshot = files.read()
    assert [rejected.line for rejected in site.rejected] == [3, 4, 0]
    assert [rejected.path.suffix for rejected in site.rejected] == [".log", ".log", ".json"]


MAINTENANCE = """
schema: 5
system: here
epochs: []
maintenance:
  - from: 2026-11-11T00:00:00Z
    to: 2026-11-20T12:00:00Z
    reason: new disks
  - {from: 2027-01-01T00:00:00Z, to: 2028-01-01T00:00:00Z, reason: later, file_systems: [disk]}
"""


def test_samples_in_a_maintenance_are_not_judged_and_none_is_missed(files: SiteFiles) -> None:
    values = levels((105, 1), (9, 0.5))
    files.write(daily(values, last=1.25))  # to 19 November
    assert only(files.read()).status.state is State.DEGRADED
    files.bands.mkdir()
    path = files.bands / "here.yaml"
    path.write_text(MAINTENANCE)
    site = files.read()
    assert (only(site).status.state, site.alerts) == (State.HEALTHY, ())
    assert only(site).status.left_out == "maintenance: new disks"
    newest = VERDICTS[only(site).verdicts.codes[-1]]  # in the table of the newest runs
    assert only(site).status.verdict == newest == "no band"
    assert (only(site).status.runs, len(only(site).status.evidence.rows)) == (114, 105)
    # what failed in it, and the days without a sample, are expected
    write_report(files.perflogs, [case(), case(display_name="Other")], days=1)
    assert files.read().alerts == ()
    assert files.read(NOW + 2 * DAY).alerts == ()
    assert [each.severity for each in files.read(NOW + 4 * DAY).alerts] == ["no data"]
    path.write_text(MAINTENANCE.replace("2026-11-20T12", "2026-11-11T01"))
    assert only(files.read()).status.state is State.DEGRADED  # only a window of the future is left


def test_a_maintenance_that_repeats_follows_the_clock_of_its_zone() -> None:
    text = """
schema: 5
system: here
epochs: []
maintenance:
  - from: 2026-10-07T08:00:00+02:00
    to: 2026-10-07T18:00:00+02:00
    reason: first Wednesday of the month
    repeat: FREQ=MONTHLY;BYDAY=1WE
    zone: Europe/Paris
"""
    (window,) = parse_bands(text.encode(), Path("here.yaml")).maintenance
    spans = window.spans(datetime(2026, 11, 4, 7, tzinfo=timezone.utc))
    assert [f"{span.begin:%m-%d %H}" for span in spans] == [
        "10-07 06",
        "11-04 07",  # winter time
    ]
    assert window.following(NOW).begin.isoformat() == "2026-12-02T07:00:00+00:00"
    with pytest.raises(FileError, match="write a time zone, such as Europe/Paris"):
        parse_bands(text.replace("Europe/Paris", "Here").encode(), Path("here.yaml"))
    # by hours, no page could show it; every 0 days, it would never end
    for rule in ("FREQ=HOURLY", "FREQ=DAILY;INTERVAL=0", "FREQ=DAILY;INTERVAL=-1"):
        with pytest.raises(FileError, match=rule):
            parse_bands(text.replace("FREQ=MONTHLY;BYDAY=1WE", rule).encode(), Path("here.yaml"))
    # no month has 53 Mondays, and no 30 February comes
    for rule in ("BYDAY=53MO", "BYMONTH=2;BYMONTHDAY=30"):
        odd = parse_bands(text.replace("BYDAY=1WE", rule).encode(), Path("here.yaml"))
        with pytest.raises(FileError, match=rf"{rule}': .*; write a rule such as"):
            maintenance_of(odd, NOW)


def test_a_series_is_retired_until_it_is_run_again(files: SiteFiles) -> None:
    files.write(daily([1.5] * 5, last=30))
    assert [each.severity for each in files.read().alerts] == ["no data"]
    files.act(RETIRE)
    site = files.read()
    assert (site.series, site.alerts, [each.label for each in site.retired]) == (
        (),
        (),
        ["disk fpp write_bw"],
    )
    assert summary(site) == "IOBANDS UNKNOWN: nothing to judge: 1 series retired"
    files.write([*daily([1.5] * 5, last=30), line(job_completion_time=days_ago(-0.5))])
    assert (len(files.read(NOW + DAY).series), files.read(NOW + DAY).retired) == (1, ())


def test_a_sample_is_discarded(files: SiteFiles) -> None:
    files.write([*daily([*HISTORY, 0.1]), line(job_completion_time="2066-01-01T05:30:12+00:00")])
    assert [each.severity for each in files.read().alerts] == ["failed", "collapsed"]
    action = files.act(DISCARD)  # the newest, which is from 2066
    assert action.since.year == 2066
    assert files.read().future == ()
    files.act(DISCARD, at=Span(NOW - DAY, NOW))
    status = only(files.read()).status
    assert (status.left_out, status.runs) == ("discarded: a reason", len(HISTORY) + 1)
    assert files.read().alerts == ()
    with pytest.raises(RequestError, match=r"the nearest is at 2026-11-2\d"):
        files.act(DISCARD, at=Span(NOW, NOW))


def test_a_system_with_runs_of_a_maintenance_alone_is_judged(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path)
    write_bands(files.bands, (1.4, 1.5, 1.6))
    site = files.write(daily([0.9, 0.9], purpose="maintenance")).read()
    assert only(site).status.state is State.WATCH
    assert [each.severity.value for each in site.alerts] == ["watch", "collapsed"]
