"""`iobands maintenance`: begin, end and report, as a person types them, and odd cases."""

from __future__ import annotations

import json
import re
import shlex
from datetime import datetime, timedelta, timezone, tzinfo
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from iobands.model import parse_time
from iobands.snapshot import BeforeAfter, Ratio, Shift, ShiftVerdict
from iobands.views.maintenance import account, page_of_maintenance
from iobands.views.writing import written
from tests.commands.calling import call
from tests.factory import line, write_bands, write_perflog

DAYS = 40


def utc(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture
def now() -> datetime:
    return datetime.now(timezone.utc).replace(microsecond=0)


def site(root: Path, now: datetime, factor: float = 1.0, since: float = 8.5) -> Path:
    """Make six daily series, whose level changed by `factor` `since` days ago."""
    random, rows = np.random.default_rng(3), []
    for ago in range(DAYS, -1, -1):
        for tasks in range(1, 7):
            value = 1.5 * np.exp(0.04 * random.standard_normal()) * (factor if ago < since else 1)
            when = utc(now - timedelta(days=ago, minutes=10))
            size = "4194304" if ago < since else "1048576"
            rows.append(
                line(job_completion_time=when, tasks=tasks, perf_value=value, stripe_size=size)
            )
    write_bands(root / "config" / "bands")
    (root / "config" / "systems").mkdir(parents=True)
    write_perflog(root / "perflogs", rows)
    return root


def at(root: Path, *words: str) -> tuple[int, str]:
    return call("maintenance", *words, "--site", str(root))


def without_time(report: str) -> str:
    """Return a report without the minute of its judgement."""
    found, times = re.subn("as known on .* UTC", "", report)
    assert times == 1
    return found


def past(root: Path, now: datetime) -> None:
    begin, end = (utc(now - timedelta(days=8.5, hours=each)) for each in (6, 0))
    done = at(root, "begin", "--reason", "Lustre 2.17", "--since", begin, "--until", end)
    assert done[0] == 0, done[1]
    # it is over, so no runs "at once" are proposed
    named = f"{now - timedelta(days=8.5, hours=6):%Y-%m-%dT%H:%M}"
    assert done[1].endswith(f"\nWhat it changed: iobands maintenance report {named}\n")
    assert "smallest loss" not in done[1]


@pytest.mark.parametrize("verb", [("begin", "--reason", "r"), ("end",)])
def test_a_time_without_measuring_is_refused(
    verb: tuple[str, ...], tmp_path: Path, now: datetime
) -> None:
    status, said = at(site(tmp_path, now), *verb, "--time", "1h")
    assert (status, said) == (3, "IOBANDS UNKNOWN: --time has no effect without --measure\n")


def test_a_loss_after_an_upgrade_is_said_with_what_changed_and_an_epoch(
    tmp_path: Path, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = site(tmp_path, now, 0.8)
    past(root, now)
    status, said = at(root, "report")
    assert status == 0
    assert "Changed: disk slower (−2" in " ".join(said.split())
    assert "stripe\\_size: 1048576 → 4194304 (6 of 6 series)" in said
    assert "iobands epoch maintenance-" in said
    assert "said slower on" in said and "confirmed on" in said
    (day,) = (f"{now - timedelta(days=8.5, hours=6):%Y-%m-%d}",)
    assert without_time(at(root, "report", day)[1]) == without_time(said)
    monkeypatch.setattr("iobands.views.maintenance._MOST_CLAIMS", 1)
    monkeypatch.setattr("iobands.views.maintenance._MOST_QUIET", 1)
    page, short = tmp_path / "page.md", at(root, "report")[1]
    assert f"5 more rows: iobands maintenance report {day} --system here --all." in short
    assert at(root, "report", "--all")[1].count("\n|") == short.count("\n|") + 5
    monkeypatch.undo()
    assert at(root, "report", "--output", str(page))[0] == 0
    assert page.read_text("utf-8").splitlines()[0] == said.splitlines()[0]
    done = call("epoch", *_epoch(said), "--perflogs", str(root / "perflogs"),
                "--config", str(root / "config"), "--yes")  # fmt: skip
    assert done[0] == 0, done[1]
    assert "Epochs that began with it: maintenance-" in at(root, "report")[1]


def test_a_day_has_no_leading_zero(tmp_path: Path, now: datetime) -> None:
    root, begin = site(tmp_path, now), "2025-08-04T08:00Z"
    done = at(root, "begin", "--reason", "x", "--since", begin, "--until", "2025-08-04T18:00Z")
    assert "began at 4 Aug 2025 08:00 UTC" in done[1]
    assert "It ended at 4 Aug 2025 18:00 UTC" in done[1]
    assert "\nx. 4 Aug 2025 08:00 to 4 Aug 2025 18:00 UTC; as known on " in at(root, "report")[1]


def _epoch(said: str) -> list[str]:
    (command,) = [each for each in said.splitlines() if each.startswith("iobands epoch")]
    name, since = command.split()[2], command.split()[4]
    return [name, "--since", since, "--system", "here", "--reason", "Lustre 2.17"]


def test_a_sham_upgrade_says_how_large_a_change_is_left(tmp_path: Path, now: datetime) -> None:
    root = site(tmp_path, now)
    past(root, now)
    said = at(root, "report")[1]
    assert "No change larger than" in said
    assert "iobands epoch" not in said


def test_begin_end_and_what_they_refuse(tmp_path: Path, now: datetime) -> None:
    root = site(tmp_path, now)
    status, said = at(root, "end")
    assert (status, "no maintenance of here is open" in said) == (3, True)
    assert (
        "no series of it; known: disk"
        in at(root, "begin", "--reason", "x", "--file-systems", "y")[1]
    )
    status, said = at(root, "begin", "--reason", "new disks", "--file-systems", "disk")
    assert status == 0, said
    assert "The smallest loss that the report will show, with odds of 9 to 1" in said
    assert all(len(line) <= 80 or str(tmp_path) in line for line in said.splitlines())
    assert "?" not in said
    status, again = at(root, "begin", "--reason", "more")
    assert (status, "(new disks); end it first: iobands maintenance end" in again) == (3, True)
    assert "Maintenance" in call("status", "--site", str(root))[1]
    early = utc(now - timedelta(hours=1))
    refused = at(root, "end", "--at", early)[1]
    assert "is before the maintenance began" in refused and refused.endswith("give a later --at\n")
    assert at(root, "end")[0] == 0
    # ended again, as after work that took longer: the message says how to correct the end
    status, said = at(root, "end")
    assert (status, "; if that is wrong, correct it with --at TIME" in said) == (3, True)
    log = (root / "config" / "alerts" / "here.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(each)["action"] for each in log] == ["begin maintenance", "end maintenance"]
    # the end is logged in whole seconds, so a report in the same second finds it over
    assert parse_time(json.loads(log[1])["until"]).microsecond == 0
    status, said = at(root, "report")
    assert "no run after it" in said


def test_measuring_before_it_is_over_before_its_end(
    tmp_path: Path, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = site(tmp_path, now)
    given = ("begin", "--reason", "disks", "--measure")
    status, said = at(root, *given, "--since", utc(now - timedelta(hours=1)))
    assert (status, "give --since or --measure" in said) == (3, True)

    class Later(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime.now(tz) + timedelta(hours=2)

    def measured(*_given: object) -> None:
        monkeypatch.setattr("iobands.commands.maintenance.datetime", Later)

    monkeypatch.setattr("iobands.commands.maintenance._measure", measured)
    status, said = at(root, *given, "--until", utc(now + timedelta(hours=1)))
    assert (status, "UTC is before the maintenance begins" in said) == (3, True)
    assert not (root / "config/alerts/here.jsonl").exists()


def test_a_forgotten_end_is_an_alert_and_silences_nothing(tmp_path: Path, now: datetime) -> None:
    root = site(tmp_path, now)
    begin = now - timedelta(days=3)
    assert at(root, "begin", "--reason", "OSTs", "--since", utc(begin))[0] == 0
    status, said = call("status", "--site", str(root))
    flat = " ".join(said.split())
    assert status == 3
    assert "did not end it (OSTs); it ended by itself on" in flat
    site_now = json.loads(call("status", "--site", str(root), "--format", "json")[1])
    assert site_now["series"][0]["status"]["left_out"] == ""
    assert at(root, "end")[0] == 0
    assert call("status", "--site", str(root))[0] == 0
    late = utc(begin + timedelta(hours=14))
    assert at(root, "end", "--at", late)[0] == 0
    windows = json.loads(call("status", "--site", str(root), "--format", "json")[1])["maintenance"]
    assert datetime.fromisoformat(windows["here"][0]["end"]) == begin + timedelta(hours=14)


@pytest.mark.parametrize("is_open", [True, False])
def test_a_time_is_the_end_of_the_newest_and_of_no_older_one(
    is_open: bool, tmp_path: Path, now: datetime
) -> None:
    root = site(tmp_path, now)
    old, new, end = now - timedelta(days=3), now - timedelta(hours=5), now - timedelta(hours=1)
    assert at(root, "begin", "--reason", "OSTs", "--since", utc(old))[0] == 0
    until = () if is_open else ("--until", utc(now - timedelta(hours=3)))
    assert at(root, "begin", "--reason", "net", "--since", utc(new), *until)[0] == 0
    status, said = at(root, "end", "--at", utc(end))
    assert (status, "had ended by itself Maintenance of" in " ".join(said.split())) == (0, True)
    windows = json.loads(call("status", "--site", str(root), "--format", "json")[1])["maintenance"]
    ends = [datetime.fromisoformat(each["end"]) for each in windows["here"]]
    assert ends == [old + timedelta(hours=12), end]
    # an older one can be corrected later
    assert at(root, "end", "--at", utc(old + timedelta(hours=13)))[0] == 0
    windows = json.loads(call("status", "--site", str(root), "--format", "json")[1])["maintenance"]
    ends = [datetime.fromisoformat(each["end"]) for each in windows["here"]]
    assert ends == [old + timedelta(hours=13), end]


def test_a_snapshot_directory_is_no_system(tmp_path: Path, now: datetime) -> None:
    root = site(tmp_path, now)
    (root / "perflogs" / ".snapshot").mkdir()
    status, said = at(root, "begin", "--reason", "OSTs")
    assert (status, said.startswith("Maintenance of here began")) == (0, True), said


def test_odd_sites(tmp_path: Path, now: datetime) -> None:
    assert at(tmp_path, "report")[0] == 3
    root = site(tmp_path / "one", now)
    status, said = at(root, "report")
    assert (status, "no maintenance so far" in said) == (3, True)
    bands = root / "config" / "bands" / "here.yaml"
    content = bands.read_text()
    bands.write_text("[")
    said = " ".join(at(root, "report")[1].split())
    assert f"maintenances or samples may be missing: bands of here: {bands}" in said
    bands.write_text(content)
    future = utc(now + timedelta(days=2))
    assert at(root, "begin", "--reason", "x", "--since", future)[0] == 3
    assert at(root, "begin", "--reason", "x", "--until", utc(now - timedelta(days=1)))[0] == 3
    # after the clock went back, entries of the future do not count yet, and are named
    ahead = utc(now + timedelta(hours=3))
    alerts = root / "config" / "alerts"
    alerts.mkdir(exist_ok=True)
    (alerts / "here.jsonl").write_text(
        f'{{"schema": 4, "action": "begin maintenance", "when": "{ahead}", "who": "x", '
        '"reason": "y", "series": []}\n'
    )
    status, said = at(root, "end")
    assert status == 3
    assert "is in the future and does not count yet" in said


def test_series_without_a_file_system_are_only_together(tmp_path: Path, now: datetime) -> None:
    root = site(tmp_path, now, 0.8)
    perflog = root / "perflogs" / "here" / "local" / "BenchioFPP.log"
    perflog.write_text(perflog.read_text().replace("|disk|", "|null|"))
    past(root, now)
    report = at(root, "report")[1]
    assert "Changed: everything slower" in report
    assert "None" not in report


def test_a_series_on_one_side_only_is_named(tmp_path: Path, now: datetime) -> None:
    root = site(tmp_path, now)
    rows = [
        line(job_completion_time=utc(now - timedelta(days=ago)), tasks=99, perf_value=2)
        for ago in (3, 2, 1)
    ]
    write_perflog(root / "perflogs", rows, name="New.log")
    past(root, now)
    said = at(root, "report")[1]
    assert "## Not compared" in said
    assert "no run before it: " in said


def test_of_two_file_systems_only_the_slower_one_is_said_to_have_changed(
    tmp_path: Path, now: datetime
) -> None:
    root, random, rows = site(tmp_path, now), np.random.default_rng(6), []
    for ago in range(DAYS, -1, -1):
        for name, pattern in product(("a", "b"), ("fpp", "ssf", "serial")):
            if (name, pattern) == ("a", "serial") or (pattern == "serial" and ago > 11):
                continue
            level = 1.0 if ago < 8.5 and name == "a" else 2.0
            value = level * np.exp(0.03 * random.standard_normal())
            when = utc(now - timedelta(days=ago, minutes=10))
            of = {"file_system": name, "pattern": pattern, "perf_value": value}
            rows.append(line(job_completion_time=when, **of))
    write_perflog(root / "perflogs", rows)
    past(root, now)
    said = at(root, "report")[1]
    assert "| all (4 series) | slower | 0.7" in said  # the root of 1/2
    assert "| b (2 series) | no change larger than " in said
    assert "\nChanged: a slower (−50 %, −5" in said
    assert "everything" not in said
    assert "iobands epoch" not in said
    assert "\n- runs on too few days before it: b serial write\\_bw\n" in said
    (command,) = [each for each in said.splitlines() if each.startswith("iobands rebaseline")]
    assert command.startswith("iobands rebaseline a --all --since ")
    done = call(*shlex.split(command)[1:], "--site", str(root), "--dry-run")
    named = [each for each in ("a fpp", "a ssf", "b fpp", "b ssf") if f"{each} write_bw" in done[1]]
    assert named == ["a fpp", "a ssf"]


def test_the_command_that_is_printed_reports_the_one_that_was_named(
    tmp_path: Path, now: datetime
) -> None:
    root = site(tmp_path, now)
    for hours, reason in ((1, "network"), (30, "disks"), (28, "firmware")):
        begin, end = (utc(now - timedelta(days=5, hours=each)) for each in (hours, hours - 1))
        said = at(root, "begin", "--reason", reason, "--since", begin, "--until", end)[1]
        command = said.splitlines()[-1].partition(": iobands maintenance ")[2]
        assert f"\n{reason}. " in at(root, *command.split())[1]
    # another system may have a maintenance at the same time
    named = at(root, "begin", "--reason", "x", "--since", begin, "--until", end, "--system", "here")
    assert named[1].endswith(" --system here\n")
    # the earlier of two on the same day can be named, too
    earlier = f"{now - timedelta(days=5, hours=30):%Y-%m-%dT%H:%M}"
    assert "\ndisks. " in at(root, "report", earlier)[1]
    assert at(root, "report", "1999-01-01T08:00")[0] == 3


def test_of_several_of_a_day_it_is_said_which_one_is_reported(
    tmp_path: Path, now: datetime
) -> None:
    root, day = site(tmp_path, now), f"{now - timedelta(days=5):%Y-%m-%d}"
    for hour in (8, 12):
        span = ("--since", f"{day}T{hour:02}:00Z", "--until", f"{day}T{hour + 1:02}:00Z")
        assert at(root, "begin", "--reason", f"at {hour}", *span)[0] == 0
    status, said = at(root, "report", day)
    assert status == 0
    note = f"iobands: {day} matches {day}T08:00 and {day}T12:00; the report is about the last one"
    assert said.startswith((f"{note}\n# ", f"# Maintenance {day}T12:00 of here"))
    assert note in said
    assert " names " not in at(root, "report", f"{day}T08:00")[1] + at(root, "report")[1]


def test_maintenances_that_began_in_one_minute_have_a_report_each(
    tmp_path: Path, now: datetime
) -> None:
    root, day = site(tmp_path, now), f"{now - timedelta(days=5):%Y-%m-%d}"
    for minutes, reason in ((10, "disks"), (20, "firmware")):
        span = ("--since", f"{day}T08:00Z", "--until", f"{day}T08:{minutes}Z")
        assert at(root, "begin", "--reason", reason, *span)[0] == 0
    assert (
        f"{day}T08:00 matches {day}T08:00-1 and {day}T08:00-2; "
        in at(root, "report", f"{day}T08:00")[1]
    )
    for number, reason in enumerate(("disks", "firmware"), 1):
        said = at(root, "report", f"{day}T08:00-{number}")[1]
        assert said.startswith(f"# Maintenance {day}T08:00-{number} of here")
        assert f"\n{reason}. " in said
    assert call("report", str(tmp_path / "page"), "--site", str(root))[0] == 0
    pages = [*(tmp_path / "page" / "maintenances").glob("*.html")]
    assert sorted(each.name[-7:] for each in pages) == ["-1.html", "-2.html"]


def test_of_several_systems_it_is_said_whose_is_reported(tmp_path: Path, now: datetime) -> None:
    root = site(tmp_path, now)
    when = utc(now - timedelta(days=1))
    write_perflog(
        root / "perflogs", [line(job_completion_time=when, system="there")], system="there"
    )
    for system, days in (("here", 3), ("there", 2)):
        span = [utc(now - timedelta(days=days, hours=each)) for each in (2, 1)]
        given = ("--reason", "x", "--system", system, "--since", span[0], "--until", span[1])
        assert at(root, "begin", *given)[0] == 0
    said = at(root, "report")[1]
    assert said.startswith(
        "iobands: the report is about there; for another system, give --system NAME"
    )
    assert "the newest" not in at(root, "report", "--system", "here")[1]


def test_what_else_changed_is_said_as_it_was_last_on_each_side(
    tmp_path: Path, now: datetime
) -> None:
    # of 24 runs after it, the last 11 have another stripe size
    root = site(tmp_path, now, since=10.5)
    begin, end = (utc(now - timedelta(days=24, hours=each)) for each in (6, 1))
    assert at(root, "begin", "--reason", "x", "--since", begin, "--until", end)[0] == 0
    assert "\n- stripe\\_size: 1048576 → 4194304 (6 of 6 series)\n" in at(root, "report")[1]


def test_a_window_that_repeats_does_not_take_the_place_of_an_upgrade(
    tmp_path: Path, now: datetime
) -> None:
    root = site(tmp_path, now, 0.8)
    past(root, now)
    path = root / "config" / "bands" / "here.yaml"
    begin, end = (utc(now - timedelta(days=30, hours=each)) for each in (3, 2))
    daily = {"from": begin, "to": end, "reason": "updates", "repeat": "FREQ=DAILY"}
    said = json.loads(path.read_text("utf-8")) | {"schema": 6, "maintenance": [daily]}
    path.write_text(json.dumps(said), "utf-8")
    assert "\nLustre 2.17. " in at(root, "report")[1]
    # it can be named by its day alone, too, and is the newest
    yesterday = f"{now - timedelta(days=1, hours=3):%Y-%m-%d}"
    assert "\nupdates. " in at(root, "report", yesterday)[1]
    # of many, the newest are named, and how many more there are
    names = at(root, "report", "nothing")[1].split("known: ")[1]
    assert re.search(rf"{yesterday}.*, .* and 2\d more\n$", names)
    (root / "config" / "alerts" / "here.jsonl").unlink()
    assert "\nupdates. " in at(root, "report")[1]


def test_the_dashboard_has_a_page_of_it(tmp_path: Path, now: datetime) -> None:
    root = site(tmp_path, now, 0.8)
    past(root, now)
    assert call("report", str(tmp_path / "page"), "--site", str(root))[0] == 0
    (page,) = (tmp_path / "page" / "maintenances").glob("*.html")
    text = page.read_text("utf-8")
    assert "Changed: disk slower" in text
    assert "<table>" in text
    assert "&nbsp;%" in text and " %" not in text  # on a phone, a number is beside its sign
    assert "made-up" not in text


def test_the_page_of_a_made_up_site_says_that_it_is_made_up(now: datetime) -> None:
    about = ("2026-04-04", "made-up-site", now, now, "Lustre 2.17", (), now, False)
    page = page_of_maintenance(BeforeAfter(*about, (), ()))
    assert "<title>Made up · Maintenance " in page
    assert "<strong>A made-up site.</strong> Nothing on this page was measured." in page


def test_of_one_file_system_it_proposes_what_leaves_the_others_alone(
    tmp_path: Path, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = site(tmp_path, now, 0.8)
    begin, end = (utc(now - timedelta(days=8.5, hours=each)) for each in (6, 0))
    words = ("--reason", "OSTs", "--since", begin, "--until", end, "--file-systems", "disk")
    assert at(root, "begin", *words)[0] == 0
    said = at(root, "report")[1]
    (command,) = [each for each in said.splitlines() if each.startswith("iobands rebaseline")]
    done = call(*command.split()[1:], "--site", str(root))
    assert done[0] == 0, done[1]
    again = at(root, "report")[1]
    assert "disk slower" in again
    assert "Epochs that began with it: rebaseline" in again


def test_of_some_file_systems_of_a_system_it_proposes_what_leaves_the_others_alone(
    tmp_path: Path, now: datetime
) -> None:
    root, random, rows = site(tmp_path, now), np.random.default_rng(6), []
    for ago in range(DAYS, -1, -1):
        for name, system in product("abc", ("here", "there")):
            value = (1.0 if ago < 8.5 and name < "c" else 2.0) * random.lognormal(0, 0.03)
            of = {"file_system": name, "stripe_count_asked": -1, "perf_value": value}
            of["job_completion_time"] = utc(now - timedelta(days=ago, minutes=10))
            rows.append((system, line(system=system, **of)))
    for system in ("here", "there"):
        own = [row for name, row in rows if name == system]
        write_perflog(root / "perflogs", own, system=system)
    begin, end = (utc(now - timedelta(days=8.5, hours=each)) for each in (6, 0))
    words = ("--reason", "OSTs", "--since", begin, "--until", end, "--system", "here")
    assert at(root, "begin", *words, *("--file-systems", "a", "--file-systems", "b"))[0] == 0
    said = at(root, "report")[1]
    commands = [each for each in said.splitlines() if each.startswith("iobands rebaseline")]
    assert len(commands) == 2
    for name, command in zip("ab", commands, strict=True):
        done = call(*shlex.split(command)[1:], "--site", str(root), "--dry-run")
        assert re.findall("^(.*): would be", done[1], re.MULTILINE) == [f"{name} fpp write_bw"]
        assert re.findall(r"(\w+)\.jsonl", done[1]) == ["here"]


def page_of(now: datetime, **levels: tuple[ShiftVerdict, float, float, float]) -> str:
    """Return the report on 12 series, given each group's verdict, ratio and interval."""

    def shift(kind: str, name: str, outcome: ShiftVerdict, *ratio: float) -> Shift:
        members = {"series": 1}.get(kind, 12 if name == "all" else 6)
        said = (outcome, Ratio(*ratio), 0.09, 0.1, None)
        return Shift(kind, name, members, *said, (90, 90), (3, 3))

    groups = tuple(shift("site", name, *each) for name, each in levels.items())
    unknown = (ShiftVerdict.UNDECIDED, 0.92, 0.8, 1.1)
    series = tuple(shift("series", f"fpp {number}", *unknown) for number in range(12))
    about = ("2026-04-04", "here", now, now, "Lustre 2.17", (), now, False)
    return written(account(BeforeAfter(*about, groups, series)), "markdown")


def test_a_file_system_that_differs_from_all_is_not_everything(now: datetime) -> None:
    slower, same, open_ = ShiftVerdict.SLOWER, ShiftVerdict.NO_CHANGE, ShiftVerdict.UNDECIDED
    all_of_it = (slower, 0.92, 0.88, 0.96)
    # scratch became 14 % slower; home may have changed, but not by as much as all series
    scratch, home = (slower, 0.86, 0.82, 0.91), (same, 0.98, 0.93, 1.03)
    page = page_of(now, all=all_of_it, home=home, scratch=scratch)
    assert "\nChanged: scratch slower (−14 %, −18 % to −9 %).\n" in page
    assert "iobands epoch" not in page
    assert "\niobands rebaseline scratch --all --since " in page
    # if home may have fallen too, the report names all
    scratch, home = (slower, 0.89, 0.84, 0.94), (open_, 0.95, 0.90, 1.0)
    page = page_of(now, all=all_of_it, home=home, scratch=scratch)
    assert "\nChanged: everything slower (−8 %" in page
    assert "\niobands epoch maintenance-2026-04-04 " in page
