"""What `iobands explain` says about perflogs in which it is known which series changed."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from iobands.bands import Span, Window
from iobands.model import slug
from iobands.snapshot import (
    ACKNOWLEDGE,
    CAUSED,
    DISCARD,
    DOWN,
    FELL,
    GREW,
    OPENED,
    RESOLVE,
    Action,
    Alert,
    AlertEvent,
    Ask,
    Cause,
    CauseKind,
    Certainty,
    Member,
    PeerName,
    Ratio,
    Severity,
    SlowPeer,
    Snapshot,
    State,
    public,
)
from iobands.snapshot.stored import to_json
from iobands.views.alert_lines import counted_members, details
from iobands.views.digest import chosen, explanation, name_of
from iobands.views.explain_series import missed_text, relations_of, start_of
from tests.conftest import Command
from tests.factory import NOW, daily, write_perflog
from tests.sites import DAY, EIGHT, NOTHING_KNOWN, SiteFiles, levels, slow
from tests.snapshot.read_back import from_json
from tests.views.sites import SLOW, dropped, everything, healthy, look, site
from tests.views.test_dashboard import kinds
from tests.views.test_digest import text as digest

NAMES = ("a fpp", "a ssf", "b fpp", "b ssf")


def only(found: Snapshot, wanted: str):
    (one,) = chosen(found, wanted)
    return one


def text(found: Snapshot, wanted: str) -> str:
    return explanation(found, only(found, wanted), 1000)


def flat(found: Snapshot, wanted: str) -> str:
    return " ".join(text(found, wanted).split())


def advice(found: Snapshot, wanted: str) -> str:
    (said,) = (each for each in text(found, wanted).split("\n\n") if each.startswith("Next step"))
    return " ".join(said.split())


def moved(found: Snapshot, wanted: str) -> dict[str, str | None]:
    series = only(found, wanted)
    others = relations_of(found, series, start_of(series))
    return {each.series.label: each.direction for each in others}


def test_a_whole_file_system_is_named(tmp_path: Path) -> None:
    found = site(tmp_path, *NAMES, factors={"a fpp": 0.7, "a ssf": 0.7})
    assert moved(found, "a ssf write_bw") == {
        "a fpp write_bw": "down",
        "b fpp write_bw": None,
        "b ssf write_bw": None,
    }
    assert "the file system a" in advice(found, "a ssf write_bw")
    assert "iobands explain 1" in advice(found, "a ssf write_bw")


def test_a_series_on_its_own(tmp_path: Path) -> None:
    found = site(tmp_path, *NAMES, factors={"a fpp": 0.7})
    assert set(moved(found, "a fpp write_bw").values()) == {None}
    assert "only this series uses" in advice(found, "a fpp write_bw")


def test_several_file_systems_point_to_what_they_share(tmp_path: Path) -> None:
    found = site(tmp_path, *NAMES, factors={"a fpp": 0.7, "b fpp": 0.7})
    assert "clients, network" in advice(found, "a fpp write_bw")


def test_a_series_that_leans_the_same_way_did_not_stand_still(tmp_path: Path) -> None:
    # one series fell by half; another by a tenth, in too few runs for an alert; the third stayed
    rows = []
    for seed, (pattern, factor) in enumerate((("fpp", 0.5), ("ssf", 0.9), ("fpn", 1.0))):
        rows += daily(dropped(factor, seed, after=6), pattern=pattern)
    write_perflog(tmp_path / "perflogs", rows)
    found = look(tmp_path)
    series = only(found, "fpp")
    onset = start_of(series)
    others = {each.series.key.pattern: each for each in relations_of(found, series, onset)}
    leaning, still = others["ssf"], others["fpn"]
    assert (leaning.direction, leaning.has_change) == (DOWN, False)
    low, high, runs = re.findall(r"\((.*)–(.*)\) in its next (\d+) runs, ", leaning.says)[0]
    assert float(low) < 0.9 < float(high) < 0.97
    assert runs == "6"
    assert still.direction is None


def test_all_that_did_not_move_is_named_on_demand(tmp_path: Path) -> None:
    patterns = "abcdefgh"
    names = ("x fpp", *(f"{place} {each}" for each in patterns for place in "xy"))
    found = site(tmp_path, *names, factors={"x fpp": 0.5, "x a": 0.5})
    for wanted in ("1", "x fpp"):
        one = only(found, wanted)
        short, full = (explanation(found, one, 1000, every=every) for every in (False, True))
        assert "more" in short.split("Did not move")[1].split("Next step")[0]
        still = full.split("Did not move")[1].split("Next step")[0]
        assert "more" not in still
        assert all(f"x {each}" in still for each in patterns[1:])


def test_what_moved_the_other_way_is_no_common_cause(tmp_path: Path) -> None:
    found = site(tmp_path, "a fpp", "b fpp", factors={"a fpp": 0.6, "b fpp": 1.6})
    assert moved(found, "a fpp") == {"b fpp write_bw": "up"}
    assert "only this series uses" in advice(found, "a fpp")


def test_a_level_of_almost_nothing_has_its_digits(tmp_path: Path) -> None:
    found = site(tmp_path, "a fpp", "b fpp", factors={"a fpp": 0.7})
    series, other = only(found, "a fpp write_bw"), only(found, "b fpp write_bw")
    onset = start_of(series)
    times = {"since": onset.since, "until": NOW}
    done = Action(RESOLVE, NOW, "jane", "a cable", (), direction=DOWN, ratio=0.004, **times)
    both = replace(found, series=(series, replace(other, actions=(done,))))
    (related,) = relations_of(both, series, onset)
    assert related.says.startswith("down, 0.004 ×; resolved 21 Nov")


def test_what_changed_at_the_same_time_is_shown_with_its_odds(tmp_path: Path) -> None:
    found = site(tmp_path, "a fpp", factors={"a fpp": 0.7}, suite_version="0.2.0")
    shown = text(found, "1")
    assert "Cause: unknown" in shown
    assert "Changed at the same time\n  suite version 0.2.0 since 6 Nov, was 0.1.0 (odds" in shown
    assert "check what changed at the same time" in advice(found, "1")
    assert "suite version 0.2.0 since 6 Nov, was 0.1.0" in text(found, "a fpp write_bw")


def test_a_drop_since_files_lie_unevenly_names_the_full_target(tmp_path: Path) -> None:
    usual = {"busiest_target": 1, "free_spread_percent": 3}
    full = {"fullest_target": "OST0003", "fullest_target_percent": 97, "free_spread_percent": 80}
    values = dropped(0.6)
    rows = [
        *daily(values[:-SLOW], last=0.25 + SLOW, **usual),
        *daily(values[-SLOW:], **full, busiest_target=2.5),
    ]
    write_perflog(tmp_path / "perflogs", rows)
    found = look(tmp_path)
    lines = " ".join(explanation(found, only(found, "write_bw")).split())
    assert "OST0003 is 97 % full, and targets with more free space get more files" in lines
    assert "files on the busiest target, × its round-robin share: 2.5 since 6 Nov, was 1" in lines


def test_a_shared_alert_has_its_members_and_who_did_not_move(tmp_path: Path) -> None:
    names = (*NAMES, "a fpn", "b fpn")
    found = site(tmp_path, *names, factors={"a fpp": 0.5, "a ssf": 0.6}, version="4.11")
    shown = text(found, "a writes")
    members, still = shown.split("Did not move")
    for name in ("a fpp write_bw", "a ssf write_bw"):
        assert name in members
    assert "1 series: a fpn write_bw" in still
    assert "b: none of 3 series went down" in still
    assert "4.11" not in members  # nor is it the cause: a series that stayed has it, too


def test_a_series_of_an_alert_without_newer_samples_is_counted(tmp_path: Path) -> None:
    rows = daily(dropped(0.5, 1, SLOW), file_system="a", pattern="fpp")
    rows += daily(dropped(0.6, 2, SLOW)[:-9], last=9.25, file_system="a", pattern="ssf")
    write_perflog(tmp_path / "perflogs", rows)
    found = look(tmp_path)
    expected = "No data for 1 of its 2 series: the newest sample is 9 days old\n"
    assert expected in text(found, "a writes")
    assert "No data for 1 of its 2 series: no sample\n" in text(public(found), "a writes")
    is_over = replace(only(found, "a writes"), ended=NOW)
    assert "No data" not in explanation(found, is_over, 1000)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_every_command_of_an_explanation_can_be_pasted(tmp_path: Path, width: int) -> None:
    found = site(tmp_path, *NAMES, factors={"a fpp": 0.5, "a ssf": 0.6})
    found = replace(found, only="a-system-with-a-long-name")
    for wanted in ("a writes", "a fpp write_bw"):
        lines = explanation(found, only(found, wanted), width).replace(" \\\n", "").splitlines()
        commands = [line.partition("iobands ")[2] for line in lines if "iobands " in line]
        assert len(commands) == (3 if wanted == "a writes" else 2)
        for each in commands:
            _, *words = shlex.split(each)
            assert words[:3] == ["1", "--system", "a-system-with-a-long-name"]
            assert words[3:] in ([], ["--reason", "TEXT"])


def test_rank_power_the_past_and_the_newest_sample(tmp_path: Path) -> None:
    values = healthy(150)
    values[80:100] = [value * 0.5 for value in values[80:100]]
    values[-1] = float(np.sort(values[:-1])[29] * 1.000001)  # above thirty of the earlier runs
    write_perflog(tmp_path / "perflogs", daily(values, fullness_percent=81.25))
    shown = flat(look(tmp_path), "write_bw")
    assert "30 of 149 earlier runs were lower" in shown
    assert "detects −20 % in about" in shown
    assert "Earlier drop from" in shown
    assert "fullness_percent: 81.25" in " ".join(shown.split())


def test_a_slide_has_one_beginning(tmp_path: Path) -> None:
    found = kinds(tmp_path)
    slide = only(found, "slide").status.change
    assert slide is not None and slide.began < slide.since
    said = text(found, "slide")
    assert f"slides since {slide.began.day} {slide.began:%b}" in said
    assert f"{slide.since.day} {slide.since:%b}" not in said.partition("Newest sample")[0]


def test_a_degraded_series_without_news_says_so(tmp_path: Path) -> None:
    SiteFiles(tmp_path).write(daily(levels((105, 1), (15, 0.5)), last=9))
    shown = flat(look(tmp_path), "write_bw")
    assert shown.startswith("disk fpp write_bw: degraded: the newest sample is 9 days old at ")


def test_a_newest_sample_that_is_not_judged_has_its_own_rank(tmp_path: Path) -> None:
    # 1 to 30, then 0.5, which is then discarded
    files = SiteFiles(tmp_path).write(daily([*map(float, range(1, 31)), 0.5]))
    assert "0 of 30 earlier runs were lower" in flat(look(tmp_path), "write_bw")
    files.act(DISCARD, at=Span(NOW - DAY, NOW))
    shown = flat(look(tmp_path), "write_bw")
    assert "30 of 31 runs comparable with the newest" in shown
    assert "0 of 30 earlier runs were lower" in shown


def test_an_improvement_is_no_damage_that_could_be_repaired(tmp_path: Path) -> None:
    found = site(tmp_path, *NAMES, factors={"a fpp": 1.6})
    assert found.alerts[0].severity is Severity.IMPROVED
    said = explanation(found, found.alerts[0])
    assert re.findall(r"iobands (\w+) 1", said) == ["rebaseline"]


def test_an_improvement_that_became_the_baseline_is_dated(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily(dropped(1.6, after=60, runs=200)))
    found = look(tmp_path)
    (series,) = found.series
    (change,) = series.status.evidence.changes
    assert change.end == "adopted"
    assert ": became the baseline" in flat(found, "write_bw")


def test_one_selector_for_series_and_alerts(tmp_path: Path) -> None:
    found = everything(tmp_path)
    names = {wanted: [name_of(each, found) for each in chosen(found, wanted)] for wanted in (
        "scratch writes", "SCRATCH fpn", "write_bw fast", "tape", "nothing", " ",
    )}  # fmt: skip
    assert names == {
        "scratch writes": ["2 scratch writes"],
        "SCRATCH fpn": ["scratch fpn write_bw"],
        "write_bw fast": ["fast fpp write_bw"],
        "tape": [],
        "nothing": [],
        " ": [],
    }
    series = found.series[2]
    assert chosen(found, slug(series.key)) == [series]
    # words that labels leave out: tool, interface
    assert len(chosen(found, "benchio posix home")) == 1
    (failed,) = chosen(found, "ior")
    assert "no such file system" in explanation(found, failed)


def test_a_series_without_samples(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([None]))
    assert "no sample" in text(look(tmp_path), "write_bw")


def test_one_that_is_calibrating(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.0] * SLOW))
    assert "calibrating: 15 of 20 runs" in text(look(tmp_path), "write_bw")


def test_an_open_incident_and_one_that_is_over(tmp_path: Path) -> None:
    rows = []
    for seed, pattern in enumerate(("fpp", "ssf", "fpn")):
        values = healthy(seed=seed)
        # without transients before, two such sessions would be a drop
        own = (slice(day, day + 2) for day in range(22 + 3 * seed, 70, 10))
        for low in (*own, slice(80, 82), slice(90, 92), slice(-2, None)):
            values[low] = [value / 5 for value in values[low]]
        rows += daily(values, file_system="a", pattern=pattern)
    write_perflog(tmp_path / "perflogs", rows)
    found = look(tmp_path)
    assert [incident.is_open for incident in found.incidents] == [False, False, True]
    alert = only(found, "a writes")
    assert (alert.severity.value, len(alert.members)) == ("incident", 3)
    assert "Series that moved: 3 of 3" in explanation(found, alert)
    assert "Incident a write_bw from" in flat(found, "a fpp")
    assert "incident  3 a writes (3 of 3 series)" in digest(found)
    assert [each.is_open for each in from_json(to_json(found)).incidents] == [False, False, True]


def test_an_alert_of_the_past_is_explained_by_its_number(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).days(slow(0.6, since=50, until=20, file_system="a"))
    site = files.read()
    assert site.alerts == ()
    (past,) = chosen(site, "1")
    assert isinstance(past, Alert)
    lines = explanation(site, past).splitlines()
    assert past.ended is not None
    assert abs(past.ended - (NOW - 19.25 * DAY)) <= 4 * DAY
    assert lines[0].startswith("1 a writes: degraded from 2 Oct to ")
    assert lines[0].endswith(f" {past.ended.day} {past.ended:%b}: recovered")
    assert "What happened" in lines
    assert sum("% " in line or "×" in line for line in lines) >= 4  # its members
    assert not any("Next step" in line for line in lines)


def test_an_improvement_does_not_recover(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(1.4, since=40, until=20, file_system="a")).read()
    (entry,) = site.ledger.entries
    said = explanation(site, only(site, "1")), explanation(site, only(site, "a fpp ofi write_bw"))
    assert all(re.search(r" to \d+ \w+(, .*)?: fell back\n", each) for each in said)
    assert "closed: fell back\n" in said[0]
    assert entry.ending == "fell back"
    assert not any("recover" in each for each in said)


def test_a_series_that_was_first_measured_later_did_not_stay(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).days(slow(0.6, since=50, until=20, file_system="a"))
    path = next(files.perflogs.rglob("*.log"))
    new = [daily([1.5] * 10, file_system=each, pattern="serial") for each in ("a", "b")]
    path.write_text(path.read_text() + "".join(f"{row}\n" for rows in new for row in rows))
    site = files.read()
    said = explanation(site, only(site, "1"))
    assert "Series that moved: 4 of 4\n" in said
    assert "b: none of 4 series went down" in said


def test_a_series_does_not_explain_itself_by_one_that_was_first_measured_later(
    tmp_path: Path,
) -> None:
    rows = daily(dropped(), file_system="a") + daily(dropped(seed=2), pattern="ssf")
    rows += daily([1.5] * 10, file_system="a", pattern="serial")
    write_perflog(tmp_path / "perflogs", rows)
    found = look(tmp_path)
    assert moved(found, "a fpp") == {"disk ssf write_bw": "down"}
    assert "serial" not in text(found, "a fpp")


def test_a_number_that_no_alert_has(tmp_path: Path, iobands: Command) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.0] * 30))
    done = iobands("explain", "99")
    assert done.returncode == 3
    assert "no alert has the number 99; list all with: iobands alerts --all" in done.stderr


def test_a_drop_that_somebody_resolved_moved_at_the_same_time(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).days(slow(0.6, since=20, file_system="a"))
    files.act(RESOLVE, "a fpp ofi write_bw", force=True, reason="a cable")
    said = flat(files.read(), "a fpp ucx write_bw")
    assert re.search(r"a fpp ofi write_bw: down, 0\.\d+ ×; resolved .* by jane: a cable", said)


def test_a_drop_that_is_over_has_a_beginning_and_an_end(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path)
    values = {"a": levels((80, 1), (30, 0.6)), "b": levels((80, 1), (10, 0.6), (20, 1), seed=2)}
    files.write([row for name in values for row in daily(values[name], file_system=name)])
    said = flat(files.read(), "a fpp write_bw")
    assert "b fpp write_bw: down from 22 Oct to 1 Nov, 0." in said
    assert "1 of 109 earlier runs was lower" in flat(
        files.write(daily([*healthy(108), 0.1, 0.2], file_system="a")).read(), "a fpp write_bw"
    )


def test_who_did_what_about_an_alert_stands_among_its_events(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).days(slow(0.6, since=20, file_system="a"))
    files.act(ACKNOWLEDGE, "1", now=NOW - 3 * DAY, reason="a switch")
    site = files.read()
    (alert,) = site.alerts
    known = alert.acknowledgement
    assert known is not None
    # an action on another alert is not part of this one
    other = replace(known.action, when=NOW - DAY, alert=2, reason="of another")
    site = replace(
        site, series=tuple(replace(each, actions=(known.action, other)) for each in site.series)
    )
    action = replace(known.action, owner="joe", ticket="https://tickets/4")
    alert = replace(alert, acknowledgement=replace(known, action=action))
    shown = explanation(site, alert)
    assert "Owner: joe\nTicket: https://tickets/4\n" in shown
    happened = shown.split("What happened\n")[1].split("\n\n")[0].splitlines()
    assert " Nov: opened as a " in happened[0]
    assert happened[-1].startswith("  18 Nov: acknowledged at 01:30 by jane: a switch")
    assert "of another" not in shown
    assert "acknowledge 1" not in shown  # it is already acknowledged
    assert "iobands resolve 1 --reason TEXT" in shown


def test_a_cause_is_reported_before_all_else(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(0.6, since=20, file_system="a")).read()
    cause = Cause(CauseKind.TARGET_OUT, "OST 7 out of service (1 of 12)", NOW - 20 * DAY, 412.3)
    shown = explanation(site, replace(site.alerts[0], cause=cause)).splitlines()
    assert shown[2] == "Cause: OST 7 out of service (1 of 12) since 1 Nov (odds 412 to 1)"


@pytest.mark.parametrize(
    ("what", "named"),
    [
        ("OST 7 out of service (1 of 12)", "OST 7"),
        ("OST 7 of 12 out of service", "OST 7"),  # as older logs say it
        ("OSTs 3, 7 out of service (2 of 12)", "OSTs 3, 7"),
        ("2 of 12 targets out of service", "the targets"),
    ],
)
def test_the_next_step_names_the_target_that_is_out(tmp_path: Path, what: str, named: str) -> None:
    site = SiteFiles(tmp_path).days(slow(0.6, since=20, file_system="a")).read()
    cause = Cause(CauseKind.TARGET_OUT, what, NOW - 20 * DAY, 412.3)
    shown = explanation(site, replace(site.alerts[0], cause=cause))
    assert f"Next step: bring {named} back into service\n" in shown


def test_the_first_line_of_an_alert_has_its_median_and_its_cause(tmp_path: Path) -> None:
    found = site(tmp_path, "a fpp", "a ssf", factors={"a fpp": 0.5, "a ssf": 0.7})
    (alert,) = found.alerts
    middle = sum(each.ratio.value for each in alert.members if each.ratio) / 2
    assert alert.ratio == pytest.approx(middle)
    size = f"−{100 * (1 - middle):.0f} %"
    assert details(alert, found)[0] == size
    cause = Cause(CauseKind.TARGET_OUT, "OST 7 out of service (1 of 12)", NOW - 20 * DAY, 412.3)
    assert details(replace(alert, cause=cause), found) == [
        f"{size}: OST 7 out of service since 1 Nov"
    ]


def test_a_public_page_names_no_node_as_a_cause(tmp_path: Path) -> None:
    found = site(tmp_path, "a fpp", factors={"a fpp": 0.5})
    (alert,) = found.alerts
    for kind, is_shown in ((CauseKind.NODE, False), (CauseKind.TARGET_OUT, True)):
        cause = Cause(kind, "a few words", NOW, 20.0)
        event = AlertEvent(NOW, 1, CAUSED, cause=cause)
        known = replace(alert, cause=cause, candidates=(cause,), events=(event,))
        shown = public(replace(found, alerts=(known,)))
        assert ("a few words" in to_json(shown)) == is_shown
        said = explanation(shown, shown.alerts[0])
        assert ("cause: a few words" in said) == ("Cause: a few words" in said) == is_shown
        assert "unknown" not in said
        assert "not certain" not in said


def test_a_trend_has_a_line_at_the_onset(tmp_path: Path) -> None:
    rows = daily([2.0] * 40 + [1.0] * 3)
    write_perflog(tmp_path / "perflogs", rows)
    (series,) = look(tmp_path).series
    found = Alert(
        Severity.DEGRADED, "disk", (Member(series),), since=NOW - 2.5 * DAY, direction="down"
    )
    assert "    ████████████│▁▁▁  1 GiB/s" in explanation(look(tmp_path), found)


def test_days_on_which_series_only_joined_are_one_line(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(0.6, since=20, file_system="a")).read()
    (alert,) = site.alerts

    def event(day: float, kind: str, *names: str) -> AlertEvent:
        return AlertEvent(NOW - day * DAY, 1, kind, names=names)

    events = (
        event(20, OPENED),
        event(20, GREW, "x"),
        event(19, GREW, "y", "z"),
        event(17, GREW, "u"),
        event(15, FELL, "x"),
        event(14.99, FELL, "y"),  # each series as its run of the session ended
        event(14, GREW, "OST 7 of a"),
    )
    shown = explanation(site, replace(alert, events=events))
    assert shown.split("What happened\n")[1].split("\n\n")[0].splitlines() == [
        "  1 Nov: opened; 1 series joined",
        "  2 Nov to 4 Nov: 3 series joined",
        "  6 Nov: 2 series fell again",
        "  7 Nov: OST 7 of a joined",
    ]


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (AlertEvent(NOW, 1, "merged", into=4), "merged into 4"),
        (AlertEvent(NOW, 1, "closed", end="resolved"), "closed: resolved"),
        (AlertEvent(NOW, 1, "reopened"), "reopened"),
        (AlertEvent(NOW, 1, "renamed", subject="b"), "renamed to b"),
        (AlertEvent(NOW, 1, "caused"), "cause: not certain"),
        (
            AlertEvent(NOW, 1, "turned", names=("x",), state=State.SLIDING),
            "1 series now sliding",  # of several, and the alert may stay degraded
        ),
    ],
)
def test_each_event_is_reported(tmp_path: Path, event: AlertEvent, says: str) -> None:
    write_perflog(tmp_path / "perflogs", daily([2.0] * 30))
    alert = Alert(Severity.DEGRADED, "a", number=1, system="here", events=(event,))
    assert f"  21 Nov: {says}\n" in explanation(look(tmp_path), alert)


def test_a_collapsed_run_waits_for_the_next(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([*healthy(100), 0.3]))
    found = look(tmp_path)
    (series,) = found.series
    shown = flat(found, series.label)
    assert shown.startswith(f"{series.label}: healthy; its newest run collapsed at")
    assert "Alert" not in shown
    assert "Next step: wait for the next run; one run below the floor raises no alert" in shown
    where = ("here", "compute", "gnu", "BenchioFPP", "disk")
    ask = Ask(*where, "suspect", "collapsed", (slug(series.key),), NOW)
    again = flat(replace(found, planned=(ask,)), series.label)
    assert "Next step: wait for its next repeat, " in again


def test_failed_runs_are_counted_with_the_newest_message(tmp_path: Path) -> None:
    values: list[float | None] = [*healthy(60)]
    values[3] = values[40] = values[50] = None
    write_perflog(tmp_path / "perflogs", daily(values))
    found = look(tmp_path)
    (series,) = found.series
    assert "Failed 2 of the last 40 sessions, newest 11 Nov 19:30 in sanity" in flat(
        found, series.label
    )
    assert [missed_text(each) for each in series.missing] == ["Run failed in sanity"] * 3


def test_a_first_run_is_reported_in_short(tmp_path: Path) -> None:
    new = daily([1.5], stripe_count=15, stripe_size=2**20)
    write_perflog(tmp_path / "perflogs", [*new, *daily(healthy(), perf_var="read_bw")])
    found = look(tmp_path)
    shown = text(found, "disk fpp write_bw").splitlines()
    assert "In effect    15 stripes of 1 MiB" in shown
    assert "Runs         1 run, 20 Nov" in shown
    assert not any(line.startswith("Outliers") for line in shown)


def test_an_alert_of_the_past_says_nothing_of_what_its_series_do_today(tmp_path: Path) -> None:
    away = {"file_system": "a", "pattern": "fpp", "transport": "ofi"}
    fell, up = slow(0.6, since=150, until=120, **away), slow(1.25, since=60, **away)
    files = SiteFiles(tmp_path).days(
        lambda series, day: fell(series, day) * up(series, day) ** (1 if day % 2 else -1), days=260
    )
    found = files.read(as_of=True)
    (today,) = (each.status for each in found.series if each.label == "a fpp ofi write_bw")
    assert today.state is State.UNSTABLE
    said = text(found, "1")
    assert re.search(r"1\.\d+ GiB/s, was [12]\.\d+ \(−4\d %\)", said), said


def test_an_alert_of_the_past_says_that_its_cause_is_unknown(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(0.6, since=60, until=40, file_system="a")).read()
    (past,) = site.past
    assert "\nCause: unknown\n" in explanation(site, past)


@pytest.mark.parametrize("job", ["4711", "4" * 27])  # the second fills a line of 80 columns
def test_the_newest_runs_are_listed_with_what_failed(tmp_path: Path, job: str) -> None:
    write_perflog(tmp_path / "perflogs", daily([*healthy(30), None, 0.2], jobid=job))
    found = look(tmp_path)
    (series,) = found.series
    shown = explanation(found, series, runs=3).split("Newest runs\n")[1].splitlines()
    cells = [re.split(r" {2,}", line.strip()) for line in shown]
    assert cells[0] == ["TIME", "VALUE", "VERDICT", "JOB"]
    assert cells[1] == ["20 Nov 2026 19:30", "0.2 GiB/s", "collapsed", job]
    assert cells[2][:2] == ["19 Nov 2026 19:30", "-"]
    assert " ".join(shown[2:-1]).count("Run failed in") == 1
    assert shown[-1].startswith("  18 Nov")


def test_a_member_has_the_odds_of_its_alert(tmp_path: Path) -> None:
    found = site(tmp_path, "a fpp", "a ssf", factors={"a fpp": 0.5, "a ssf": 0.7})
    (alert,) = found.alerts
    logged, today = (Cause(CauseKind.VERSION, "x 2, was 1", NOW, odds) for odds in (98.0, 96.0))
    alert = replace(alert, cause=logged, candidates=(today,))
    shown = text(replace(found, alerts=(alert,)), "a fpp write_bw")
    assert "(odds 98 to 1)" in shown
    assert "96" not in shown.split("Moved at the same time")[1].split("Did not")[0]


def test_a_maintenance_between_the_last_run_before_and_the_first_one_since_may_be_the_cause(
    tmp_path: Path,
) -> None:
    found = site(tmp_path, "a fpp", "b fpp", factors={"a fpp": 0.6})
    (alert,) = found.alerts
    assert "Changed at the same time" not in text(found, "1")
    first = alert.since

    def window(days: float, reason: str, **more: object) -> Window:
        begin = first - days * DAY
        return Window(begin, begin + DAY / 4, reason, **more)

    windows = (
        window(40, "disks"),
        window(0.5, "firmware"),
        window(0.4, "network", file_systems=("b",)),
        window(50.4, "backup", repeat="FREQ=DAILY"),
        window(-5, "later"),
    )
    said = text(replace(found, maintenance={"here": windows}), "1")
    name = f"{windows[1].begin:%Y-%m-%dT%H:%M}"
    (line,) = said.partition("Changed at the same time\n")[2].partition("\n\n")[0].splitlines()
    assert line == f"  maintenance: firmware: iobands maintenance report {name}"
    of_one = text(replace(found, maintenance={"here": windows}, only="here"), "1")
    assert f"maintenance report {name} --system here" in " ".join(of_one.split())
    assert "Next step: check what changed at the same time\n" in said


def test_a_power_that_was_not_asked_for_is_not_half_said(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).write(daily(healthy()))
    asked, unasked = (files.judge(NOW, with_power=each).snapshot for each in (True, False))
    assert "detects −20 % in about" in text(asked, "disk")
    assert "detects" not in text(unasked, "disk")


def joined_by(tmp_path: Path, **fields: str) -> tuple[Snapshot, Alert]:
    """Return the one alert of a site: all series of a fell, and a day later some of b."""

    def factor(series: Mapping[str, str], day: int) -> float:
        is_other = {"file_system": "b", **fields}.items() <= series.items()
        since = 12 if series["file_system"] == "a" else 11 if is_other else 0
        return 0.6 if day < since else 1.0

    found = SiteFiles(tmp_path).days(factor).read()
    (alert,) = found.alerts
    return found, alert


def test_a_series_that_joined_an_alert_is_not_one_that_its_name_counts(tmp_path: Path) -> None:
    found, alert = joined_by(tmp_path, pattern="fpp", transport="ofi")
    assert (alert.subject, len(alert.members)) == ("a writes", 5)
    assert alert.shared == ("file_system", "a")
    assert counted_members(alert, found) == "4 of 4 series and 1 other"
    said = explanation(found, alert)
    assert "Series that moved: 4 of 4 and 1 other\n" in said
    assert "  b: none of 3 series went down\n" in said
    assert "Next step: check the file system: its servers, targets and fullness\n" in said


def test_a_name_that_a_quarter_does_not_share_counts_nothing(tmp_path: Path) -> None:
    found, alert = joined_by(tmp_path, pattern="fpp")
    assert (alert.subject, len(alert.members)) == ("a writes", 6)
    assert alert.shared == ("partition", "local")
    assert counted_members(alert, found) == "6 of 8 series"


def test_what_fell_on_one_file_system_alone_is_no_matter_of_its_pattern(tmp_path: Path) -> None:
    more = ({**EIGHT[0], "pattern": "fpn"}, {**EIGHT[1], "pattern": "fpn"})  # a has six, fpp four
    here = slow(0.6, file_system="a", pattern="fpp")
    found = SiteFiles(tmp_path).days(here, series=(*EIGHT, *more)).read()
    (alert,) = found.alerts
    assert (alert.subject, alert.shared) == ("a fpp writes", ("file_system", "a"))
    assert "Next step: check the file system: " in explanation(found, alert)


def test_what_was_down_already_did_not_move_without_an_alert(tmp_path: Path) -> None:
    found = kinds(tmp_path, over=True)  # the slide lasted from before the lost mode on
    (lost,) = [each for each in found.series if each.label.startswith("modes")]
    said = explanation(found, lost)
    assert "Earlier      drop from 28 Aug to 1 Nov" in explanation(found, *chosen(found, "slide"))
    assert "mode lost, certain" in said
    assert "without an alert" not in said
    assert (
        "  3 series of other file systems: failing fpp write_bw, slide fpp write_bw, wide" in said
    )


def test_a_series_on_watch_is_no_part_of_itself(tmp_path: Path) -> None:
    fell, leans = slow(0.6, file_system="a"), slow(0.92, **EIGHT[4])
    found = SiteFiles(tmp_path).days(lambda *run: fell(*run) * leans(*run)).read()
    (alert,) = found.alerts
    low = next(each for each in found.series if each.label == "b fpp ofi write_bw")
    watch = Alert(
        Severity.WATCH, low.label, (Member(low),), alert.since, certainty=Certainty.POSSIBLE
    )
    watched = replace(found, alerts=(alert, watch))
    first = alert.members[0].series
    onset = start_of(first)
    assert onset
    (says,) = [e.says for e in relations_of(watched, first, onset) if e.series is low]
    assert "in its next 12 runs, watch (same variable" in says


def test_an_improvement_asks_for_nothing(tmp_path: Path) -> None:
    found = SiteFiles(tmp_path).days(slow(1.4, file_system="a", pattern="fpp")).read()
    (alert,) = found.alerts
    assert alert.severity is Severity.IMPROVED
    said = explanation(found, alert, 200)
    what = "none: nothing is broken. The new level becomes the baseline after 30 runs"
    assert f"Next step: {what}\n" in said
    assert said.split("What to type next\n")[1].splitlines() == [
        f"  the new level is normal: iobands rebaseline {alert.number} --reason TEXT"
    ]
    assert "acknowledged" not in said
    assert f"Next step: {what};" in explanation(found, alert.members[0].series, 200)


def test_a_series_does_not_date_the_alert_that_it_shares(tmp_path: Path) -> None:
    found = SiteFiles(tmp_path).days(slow(0.6, file_system="a")).read()
    last = max((e.series for e in found.alerts[0].members), key=lambda s: s.status.change.raised)
    raised = last.status.change.raised
    assert raised > found.alerts[0].raised
    said = explanation(found, last)
    assert f"; enough evidence for an alert on {raised.day} Nov\n" in said
    assert "alert raised" not in said


def test_a_target_that_recovered_has_not_been_fast_since_it_became_slow() -> None:
    name, unknown = PeerName("target", "here", "a", "7"), Ratio(math.nan, 0, math.inf)
    peer, since = SlowPeer(name, unknown, {}), NOW - 12 * DAY
    sure = Certainty.CERTAIN
    alert = Alert(Severity.DEGRADED, "OST 7 of a", since=since, certainty=sure, peer=peer)
    assert [*filter(None, details(alert, NOTHING_KNOWN))] == ["no longer slow"]


def test_low_runs_of_a_day_are_not_all_series_of_their_file_system(tmp_path: Path) -> None:
    found = SiteFiles(tmp_path).days(slow(1.0)).read()
    members = tuple(Member(each) for each in found.series if each.key.file_system == "a")[:3]
    low = Alert(Severity.COLLAPSED, "a writes", members, since=NOW)
    assert counted_members(low, found) == "3 series"  # of four
