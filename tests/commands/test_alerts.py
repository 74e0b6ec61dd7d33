"""The commands with which people answer alerts: their log entries and exit statuses."""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path

import pytest

from iobands.commands.cli import SiteOptions
from iobands.commands.judging import judgement_of, site_of
from iobands.commands.status import log_news
from iobands.notify.changes import changes
from iobands.snapshot import OPENED, REBASELINE, RESOLVE, UP, Action
from iobands.source.action_log import ALERT_LOG, append, log_path, read_alert_log, read_log
from tests.commands.calling import call
from tests.factory import NOW, daily, line, write_perflog
from tests.sites import DAY, SiteFiles, levels, whole_demo

RAN = timedelta(hours=6)
LOG = log_path(Path("config/alerts"), "here")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Perflogs up to now, in which one series has dropped, one has risen and one is healthy."""
    last = (NOW - (datetime.now(timezone.utc) - RAN)) / timedelta(days=1)
    rows = daily(levels((105, 1), (15, 0.6)), last=last)
    rows += daily(levels((105, 1), (15, 1.6), seed=2), last=last, perf_var="read_bw")
    rows += daily(levels((120, 1), seed=3), last=last, file_system="home")
    write_perflog(tmp_path / "perflogs", rows)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNAME", "jane")
    monkeypatch.delenv("SUDO_USER", raising=False)
    return tmp_path


def status() -> int:
    return site_of(SiteOptions()).exit_status


def logged() -> tuple[Action, ...]:
    found = read_log(LOG.parent, "here", datetime.now(timezone.utc))
    assert found.rejected == ()
    return found.actions


@pytest.mark.parametrize("broken", ["bands/here.yaml", "alerts/here.jsonl"])
def test_nothing_is_logged_of_a_system_whose_files_cannot_be_read(site: Path, broken: str) -> None:
    """Without its epochs and actions, its alerts would get other numbers from then on."""
    path, options = site / "config" / broken, SiteOptions()
    path.mkdir(parents=True)
    judged = judgement_of(options)
    assert log_news(options, judged, partial(judgement_of, options)) is judged
    status, said = call("acknowledge", "disk", "write_bw", "--reason", "a switch")
    assert (status, f"config/{broken}" in said) == (3, True)
    assert not (site / "perflogs" / "here" / "alerts.jsonl").exists()
    path.rmdir()
    assert call("acknowledge", "disk", "write_bw", "--reason", "a switch")[0] == 0


@pytest.mark.parametrize("lost", ["all", "the beginning of an alert"])
def test_alerts_have_no_numbers_while_their_log_cannot_be_read(site: Path, lost: str) -> None:
    """Numbers given anew could be those of other alerts, in messages and in what people logged."""
    options, severities = SiteOptions(), frozenset({"degraded", "improved"})
    assert call("acknowledge", "disk", "read_bw", "--reason", "a switch")[0] == 0
    before = judgement_of(options).snapshot
    topics, begun = changes([], before, severities)
    assert [each.kind for each in begun] == ["began"]
    log = site / "perflogs" / "here" / "alerts.jsonl"
    content = log.read_bytes()
    if lost == "all":
        log.unlink()
        log.mkdir()
    else:
        assert b'"number": 1' in content.splitlines()[0]
        log.write_bytes(b"#" + content)
    judged = judgement_of(options).snapshot
    drop, rise = (each for each in judged.alerts if each.has_level or each.direction == UP)
    assert (drop.number, drop.is_quiet) == (None, False)
    assert (rise.number, rise.is_quiet) == (None, True)
    assert sum("here/alerts.jsonl" in each.subject for each in judged.alerts) == 1
    during, said = changes(topics, judged, severities)
    assert said == []
    if lost == "all":
        log.rmdir()
    else:
        assert call("acknowledge", "disk", "write_bw", "--reason", "a switch")[0] == 3
        assert log.read_bytes() == b"#" + content
    log.write_bytes(content)
    after = judgement_of(options).snapshot
    assert [each.number for each in after.alerts] == [each.number for each in before.alerts]
    assert changes(during, after, severities)[1] == []


def test_while_the_log_of_alerts_cannot_be_read_their_pages_stay(site: Path) -> None:
    """A message may have linked to them."""
    assert call("acknowledge", "disk", "read_bw", "--reason", "a switch")[0] == 0
    pages = {site / "page" / "alerts" / f"here-{number}.html" for number in (1, 2)}
    call("report", "page")
    assert {*(site / "page" / "alerts").iterdir()} == pages
    log = site / "perflogs" / "here" / "alerts.jsonl"
    log.unlink()
    log.mkdir()
    call("report", "page")
    assert {*(site / "page" / "alerts").iterdir()} == pages
    why = "alerts of here have no numbers and are not listed: perflogs/here/alerts.jsonl: cannot"
    for command in ("alerts",), ("explain", "1"):
        assert why in call(*command)[1]
    call("report", "page", "--public")
    assert not any((site / "page" / "alerts").iterdir())


def test_an_alert_stays_while_its_perflog_cannot_be_read(site: Path) -> None:
    """A brief failure of the file system must not withdraw alerts or open them again."""
    other = daily(levels((60, 1)), file_system="work")
    write_perflog(site / "perflogs", other, "Other.log")
    options = SiteOptions()
    before = log_news(options, judgement_of(options), partial(judgement_of, options)).snapshot
    log = site / "perflogs" / "here" / "alerts.jsonl"
    events = log.read_bytes()
    perflog = site / "perflogs" / "here" / "local" / "BenchioFPP.log"
    kept = perflog.rename(site / "kept")
    perflog.symlink_to("/proc/self/mem")  # reading it fails with EIO
    judged = judgement_of(options)
    log_news(options, judged, partial(judgement_of, options))
    numbers = [each.number for each in judged.snapshot.alerts if each.number]
    assert sorted(numbers) == sorted(each.number for each in before.alerts if each.number) != []
    assert judged.snapshot.past == ()
    assert log.read_bytes() == events
    kept.replace(perflog)
    again = judgement_of(options)
    assert (again.news.get("here"), again.snapshot.alerts) == ([], before.alerts)


def test_broken_bands_of_another_system_stop_no_answer(site: Path) -> None:
    write_perflog(site / "perflogs", daily([1.5] * 30, system="here2"), system="here2")
    (site / "config" / "bands").mkdir(parents=True)
    (site / "config" / "bands" / "here2.yaml").write_text("schema: [")
    answer = ("acknowledge", "disk", "write_bw", "--reason", "a switch")
    assert call(*answer, "--system", "here2")[0] == 3
    assert call(*answer, "--system", "here")[0] == 0


def test_the_list_says_who_acknowledged_an_alert_when_and_why(site: Path) -> None:
    assert "no verdict yet" in call("alerts")[1]
    known = ("--reason", "a switch", "--owner", "joe")
    assert call("acknowledge", "disk", "write_bw", *known)[0] == 0
    today = datetime.now(timezone.utc)
    assert f"\n       joe, {today.day} {today:%b}: a switch\n" in call("alerts")[1]


def test_an_alert_of_another_system_with_the_same_number_is_open(site: Path) -> None:
    for ago, system in enumerate(("here", "there"), 1):
        last = (NOW - (datetime.now(timezone.utc) - ago * RAN)) / timedelta(days=1)
        rows = [
            row
            for seed, pattern in enumerate(("fpp", "ssf"))
            for row in daily(
                levels((105, 1), (15, 0.6), seed=seed), last=last, system=system, pattern=pattern
            )
        ]
        write_perflog(site / "perflogs", rows, system=system)
    call("alerts")
    assert call("acknowledge", "1", "--system", "here", "--reason", "x")[0] == 0
    words = [line.split() for line in call("alerts")[1].splitlines() if "disk writes" in line]
    assert sorted((each[0], each[-1]) for each in words) == [("1", "acknowledged"), ("1", "open")]


def test_an_unknown_name_gets_the_open_alerts_and_the_closest_series(site: Path) -> None:
    done, said = call("explain", "home fqq")
    assert done == 3
    first, *names = said.splitlines()
    assert first.endswith("named home fqq; open alerts, and the series with the closest names:")
    assert sorted(name.split()[0] for name in names[:2]) == ["1", "2"]
    assert "  home fpp write_bw" in names[2:]


def test_no_verdict_is_asked_for_without_an_alert(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.5]))
    said = call("alerts", "--perflogs", str(tmp_path / "perflogs"))[1]
    assert said == "No alert so far.\n"


def test_a_person_deals_with_an_alert(site: Path) -> None:
    assert status() == 2
    reason = ("--reason", "ticket  4711,\nrebuilds")
    done, said = call("acknowledge", "disk", "write_bw", *reason)
    assert done == 0
    assert said.endswith("\nTo withdraw it: iobands undo 2 --reason TEXT\n")
    assert status() == 1
    repaired = ("--reason", "rebuilt", "--by", "joe", "--force")
    assert call("resolve", "disk", "write_bw", *repaired)[0] == 0
    assert status() == 0
    # of the two series of disk, only the reads have an alert
    assert call("rebaseline", "disk", "--reason", "new disks")[0] == 0
    assert site_of(SiteOptions()).alerts == ()
    assert call("undo", "disk", "fpp", "write_bw", "--reason", "slow again")[0] == 0
    assert status() == 1  # acknowledged, as before it was resolved
    assert [(each.kind, each.who, each.reason) for each in logged()] == [
        ("acknowledge", "jane", "ticket 4711, rebuilds"),
        ("resolve", "joe", "rebuilt"),
        ("rebaseline", "jane", "new disks"),
        ("undo", "jane", "slow again"),
    ]


def test_an_answer_is_withdrawn_by_the_command_that_it_prints(site: Path) -> None:
    last = (NOW - (datetime.now(timezone.utc) - RAN)) / timedelta(days=1)
    values = levels((105, 1), (15, 0.6))
    write_perflog(Path("perflogs"), daily(values, last=last, file_system="-x"), "Other.log")
    said = call("acknowledge", "--all", "--reason", "r", "--", "-x")[1]
    _, *undo = shlex.split(said.partition("To withdraw it: ")[2])
    assert call(*undo)[0] == 0
    assert [each.kind for each in logged()] == ["acknowledge", "undo"]


def test_the_same_twice_is_logged_once(site: Path) -> None:
    for reason in ("r", "r", "ticket 5"):
        assert call("acknowledge", "disk fpp write_bw", "--reason", reason)[0] == 0
    assert [each.reason for each in logged()] == ["r", "ticket 5"]
    # its owner and its ticket stay until somebody names others
    for said in (("--owner", "io", "--ticket", "t/1"), (), ("--owner", "hw")):
        assert call("acknowledge", "disk fpp write_bw", "--reason", "r", *said)[0] == 0
    known = [(each.owner, each.ticket) for each in logged()[2:]]
    assert known == [("io", "t/1"), ("hw", "t/1")]
    assert call("resolve", "disk fpp write_bw", "--reason", "r", "--force")[0] == 0
    assert call("resolve", "disk fpp write_bw", "--reason", "r", "--force")[0] == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("acknowledge", "home", "--reason", "r"),  # healthy
        ("resolve", "home", "--reason", "r"),
        ("rebaseline", "home", "--reason", "r"),
        ("undo", "home", "--reason", "r"),  # nothing was done
        ("acknowledge", "nowhere", "--reason", "r"),
        ("acknowledge", "disk", "--reason", "r"),  # may mean two
        ("acknowledge", "", "--reason", "r"),
        ("acknowledge", "disk fpp write_bw", "--reason", " "),
        ("acknowledge", "disk fpp write_bw", "--reason", "r", "--by", " "),
        ("resolve", "disk fpp write_bw", "--reason", "r"),  # its newest runs are low
        ("resolve", "disk fpp write_bw", "--reason", "r", "--since", "2099-01-01", "--force"),
        ("resolve", "disk fpp write_bw", "--reason", "r", "--since", "2001-01-01", "--force"),
        ("resolve", "disk fpp write_bw", "--reason", "r", "--since", "soon", "--force"),
        ("resolve", "disk fpp write_bw", "--reason", "r", "--since", "0001-01-01", "--force"),
        ("resolve", "disk fpp write_bw", "--reason", "r", "--since", "2026-01-01T00:00"),
        ("acknowledge", "disk fpp write_bw", "--reason", "r", "--config", "nowhere"),
        ("acknowledge", "disk fpp write_bw", "--reason", "r", "--perflogs", "nowhere"),
        ("acknowledge", "disk fpp write_bw", "--reason", "r", "--system", "nowhere"),
    ],
)
def test_what_cannot_be_done_is_unknown_and_logs_nothing(
    site: Path, arguments: tuple[str, ...]
) -> None:
    found, said = call(*arguments)
    assert (found, LOG.parent.exists()) == (3, False)
    assert said.startswith("IOBANDS UNKNOWN: ")


def test_a_repair_before_now_is_named(site: Path) -> None:
    when = (NOW - DAY).replace(hour=12, minute=0, second=0, microsecond=0)
    given = ("--reason", "r", "--force", "--dry-run")
    said = call("resolve", "disk fpp write_bw", *given, "--since", f"{when:%Y-%m-%dT%H:%M}Z")[1]
    until = f"{when.day} {when:%b %Y} 12:00 UTC"
    assert f"runs from the change until {until} no longer count" in " ".join(said.split())
    said = call("resolve", "disk fpp write_bw", *given)[1]
    assert "runs from the change until now no longer count" in " ".join(said.split())


def test_a_reason_is_needed(site: Path) -> None:
    assert call("acknowledge", "disk fpp write_bw")[0] != 0
    assert not LOG.exists()


def test_an_epoch_says_first_which_open_alerts_it_ends(site: Path) -> None:
    said = " ".join(call("epoch", "upgrade", "--reason", "why", "--dry-run")[1].split())
    names = "2 disk fpp write_bw, 1 disk fpp read_bw"
    note = f"Open alerts that end, unless runs of the epoch alone show them: {names}."
    assert note in said
    assert said.index(note) < said.index("epochs:")
    assert call("resolve", "2", "--force", "--reason", "why")[0] == 0
    assert "alone show them: 1 disk fpp read_bw." in call(
        "epoch", "upgrade", "--reason", "why", "--yes"
    )[1].replace("\n", " ")


def test_an_alert_did_not_begin_after_it_was_raised_whatever_epoch_began_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole_demo(tmp_path / "demo", datetime.now(timezone.utc))
    monkeypatch.chdir(tmp_path / "demo")
    assert call("acknowledge", "4", "--reason", "why")[0] == 0
    newest = max(each.history.last for each in site_of(SiteOptions()).series)
    day = f"{newest - 2 * DAY:%Y-%m-%d}"
    assert call("epoch", "new", "--reason", "why", "--since", day, "--yes")[0] == 0
    (alert,) = (each for each in site_of(SiteOptions()).alerts if each.number == 4)
    assert alert.subject == "OST 7 of fast"
    assert alert.since <= alert.raised


def test_all_at_once_and_a_dry_run(site: Path) -> None:
    everything = ("acknowledge", "disk", "--reason", "r", "--all")
    found, said = call(*everything, "--dry-run")
    assert (found, LOG.parent.exists()) == (0, False)
    shown = [line for line in said.splitlines() if ": would be acknowledged until" in line]
    assert f"  1 series: disk fpp write_bw\n  log: {LOG}\n" in said
    done, listed = call(*everything)
    assert done == 0
    assert [line.replace("would be ", "") for line in shown] == listed.splitlines()[:2]
    assert len(shown) == len(logged()) == 2
    assert status() == 1


def test_what_people_wrote_into_the_log_stays(site: Path) -> None:
    assert call("acknowledge", "disk fpp write_bw", "--reason", "r")[0] == 0
    before = LOG.read_bytes() + b'{"schema": 1, "action": "resol'
    LOG.write_bytes(before)
    LOG.chmod(0o640)
    assert status() == 1
    assert call("rebaseline", "disk fpp read_bw", "--reason", "new disks")[0] == 0
    assert LOG.read_bytes().startswith(before + b"\n")
    assert LOG.stat().st_mode & 0o777 == 0o640
    last = json.loads(LOG.read_text().splitlines()[-1])
    assert last["action"] == "rebaseline"


def test_a_log_that_cannot_be_written(site: Path) -> None:
    LOG.parent.mkdir(parents=True)
    LOG.parent.chmod(0o555)
    is_root = os.getuid() == 0
    script = (
        "from tests.commands.calling import call; import sys;"
        "status, said = call('acknowledge', 'disk fpp write_bw', '--reason', 'r');"
        "print(said); sys.exit(status)"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        # root may write anywhere, unless it drops that capability
        ["setpriv", "--bounding-set=-dac_override", "--", *command] if is_root else command,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "Permission denied" in done.stdout
    assert list(LOG.parent.iterdir()) == []


def test_a_log_that_cannot_be_read(site: Path) -> None:
    LOG.mkdir(parents=True)
    assert call("acknowledge", "disk fpp write_bw", "--reason", "r")[0] == 3


def test_a_sample_is_discarded_by_its_day_or_minute(site: Path) -> None:
    (home,) = (each for each in site_of(SiteOptions()).series if each.key.file_system == "home")
    second = f"{home.history.last:%Y-%m-%dT%H:%M:%SZ}"
    blank = f"{second[:10]} {second[11:16]}+00:00"
    for at in (second, second[:16] + "Z", blank, second[:10]):
        assert call("discard", "home", "--at", at, "--reason", "r")[0] == 0
    assert call("discard", "home", "--at", "2020-01-01", "--reason", "r")[0] == 3
    assert call("retire", "home", "--reason", "r")[0] == 0
    assert "already retired" in call("retire", "home", "--reason", "r")[1]
    assert "home" not in {each.key.file_system for each in site_of(SiteOptions()).series}
    status, said = call("explain", "home fpp write_bw")
    undo = "iobands undo 'home fpp write_bw' --reason TEXT"
    assert (status, "is retired until its next sample" in said, undo in said) == (3, True, True)
    assert call("undo", "home", "--reason", "r")[0] == 0
    assert {each.kind for each in logged()} == {"discard", "retire", "undo"}
    lengths = [each.until - each.since for each in logged() if each.kind == "discard"]
    assert [round(each.total_seconds()) for each in lengths] == [1, 60, 60, 86_400]


def test_an_undo_withdraws_one_of_several_answers(site: Path) -> None:
    assert call("acknowledge", "disk", "--all", "--reason", "known")[0] == 0
    assert len({each.when for each in logged()}) == 2
    reads, writes = (f"disk fpp {name}" for name in ("read_bw", "write_bw"))
    assert call("undo", writes, "--reason", "wrong")[0] == 0
    quiet = {
        each.subject: each.acknowledgement is not None
        for each in site_of(SiteOptions()).alerts
        if each.number
    }
    assert quiet == {reads: True, writes: False}
    # written by one person at the same time, they still count as two verdicts
    now = datetime.now(timezone.utc)
    resolved = [replace(each, kind=RESOLVE, verdict="real", when=now) for each in logged()[:2]]
    LOG.unlink()
    append(LOG.parent, "here", [replace(e, since=NOW - 9 * DAY, until=now) for e in resolved])
    assert site_of(SiteOptions()).ledger.real == 2


def test_an_undo_of_all_withdraws_what_was_done_together_last_and_names_it(site: Path) -> None:
    def undone() -> list[str]:
        done, said = call("undo", "fpp", "--all", "--reason", "x")
        assert done == 0
        return re.findall(r"^(.*): undone: (.*) of .* UTC by jane: (.*)$", said, re.MULTILINE)

    assert call("acknowledge", "disk", "--all", "--reason", "old")[0] == 0
    time.sleep(1)  # two calls of a person are at least that far apart
    assert call("retire", "home", "--reason", "gone")[0] == 0
    assert undone() == [("home fpp write_bw", "retire", "gone")]
    names = ("1 disk fpp read_bw", "2 disk fpp write_bw")
    assert sorted(undone()) == [(name, "acknowledge", "old") for name in names]


def test_two_answers_at_once_are_one_after_the_other(site: Path) -> None:
    command = [sys.executable, "-m", "iobands", "acknowledge", "disk", "write_bw", "--reason", "x"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = sorted(each.communicate()[0] for each in both)
    assert "already acknowledged" in said[0] + said[1]
    assert len(logged()) == 1
    events = [*map(json.loads, Path("perflogs/here/alerts.jsonl").read_text().splitlines())]
    assert len([each for each in events if each["event"] == "opened"]) == 2


def test_a_wrong_clock_dates_no_alert(site: Path) -> None:
    options = SiteOptions()
    judged = judgement_of(options)
    off = replace(judged, snapshot=replace(judged.snapshot, clock="it is 40 years ahead"))
    assert judged.news["here"]
    log_news(options, off, partial(pytest.fail, "it is not logged"))
    assert not Path("perflogs/here/alerts.jsonl").exists()


def test_one_number_is_given_to_one_alert(site: Path) -> None:
    """Even if a session adds samples after another command has judged the site without them."""
    options, late = SiteOptions(), Path("perflogs/here/local/Late.log")
    log = late.with_name("BenchioFPP.log")
    header, *lines = log.read_text().splitlines()
    mine = [each for each in lines if "|read_bw|" in each]
    log.write_text("\n".join([header, *(e for e in lines if e not in mine), ""]))
    before = judgement_of(options)
    late.write_text("\n".join([header, *mine, ""]))
    log_news(options, judgement_of(options), partial(pytest.fail, "nobody was in between"))
    assert log_news(options, before, partial(judgement_of, options)).news == {"here": []}
    found = read_alert_log(Path("perflogs"), "here", datetime.now(timezone.utc))[0]
    opened = [each for each in found if each.kind == OPENED]
    assert sorted(each.number for each in opened) == [1, 2]


def test_a_log_of_alerts_that_cannot_be_rebuilt_stays(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("acknowledge", "disk", "write_bw", "--reason", "x")[0] == 0
    log = Path("perflogs/here/alerts.jsonl")
    before = log.read_bytes()
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
    try:
        with pytest.raises(OSError, match="File too large"):
            ALERT_LOG.rewrite(log, [])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    assert log.read_bytes() == before
    assert call("alerts", "--rebuild")[0] == 0
    assert log.with_suffix(".old").read_bytes() == before
    monkeypatch.undo()


@pytest.mark.parametrize("ahead", [timedelta(), timedelta(minutes=30)])
def test_the_log_is_rebuilt_in_the_second_of_an_action_and_under_a_clock_that_is_behind(
    site: Path, ahead: timedelta
) -> None:
    assert call("rebaseline", "disk", "write_bw", "--reason", "new disks")[0] == 0
    when = datetime.now(timezone.utc) + ahead
    (action,) = logged()
    (site / "config" / "alerts" / "here.jsonl").unlink()
    append(site / "config" / "alerts", "here", [replace(action, when=when)])
    done, said = call("alerts", "--rebuild")
    assert done == 0, said
    assert "rebaselined by" in call("alerts")[1]


def test_a_log_of_alerts_is_not_rebuilt_as_of_the_past(site: Path) -> None:
    assert call("acknowledge", "disk", "write_bw", "--reason", "x")[0] == 0
    log = Path("perflogs/here/alerts.jsonl")
    before = log.read_bytes()
    done, said = call("alerts", "--rebuild", "--as-of", "60d")
    assert (done, log.read_bytes()) == (3, before)
    assert "--as-of has no effect with --rebuild" in said


def test_a_log_of_alerts_is_not_rebuilt_without_perflogs_that_cannot_be_read(site: Path) -> None:
    """Their alerts would be lost, and a second call would lose the old log, too."""
    assert call("acknowledge", "disk", "write_bw", "--reason", "x")[0] == 0
    log, perflog = (site / "perflogs" / "here" / name for name in ("alerts.jsonl", "local"))
    before = log.read_bytes()
    perflog = (perflog / "BenchioFPP.log").rename(perflog / "BenchioFPP.log.1")
    perflog.with_name("BenchioFPP.log").symlink_to("BenchioFPP.log")
    done, said = call("alerts", "--rebuild")
    assert (done, log.read_bytes()) == (3, before)
    assert "BenchioFPP.log: cannot be read: Too many levels of symbolic links; a new log" in said
    perflog.replace(perflog.with_name("BenchioFPP.log"))
    assert call("alerts", "--rebuild")[0] == 0


def test_of_one_series_of_an_alert_of_several_it_is_said_that_the_alert_stays(site: Path) -> None:
    last = (NOW - (datetime.now(timezone.utc) - RAN)) / timedelta(days=1)
    rows = [
        row
        for number, pattern in enumerate(("fpp", "ssf", "serial"))
        for row in daily(levels((105, 1), (15, 0.6), seed=number), last=last, pattern=pattern)
    ]
    write_perflog(Path("perflogs"), rows)
    said = " ".join(call("acknowledge", "disk ssf write_bw", "--reason", "x")[1].split())
    assert "Alert 1, disk writes, stays until most of its series are acknowledged" in said
    assert "to acknowledge all at once: iobands acknowledge 1 --reason TEXT" in said
    assert "stays until" not in call("acknowledge", "1", "--reason", "x")[1]


@pytest.fixture
def two_systems(tmp_path: Path) -> Path:
    """A site of two systems, each with an alert 1, `disk writes`."""
    now = datetime.now(timezone.utc)
    for system in ("here", "there"):
        rows = [
            line(
                job_completion_time=(now - timedelta(days=days + 0.1)).isoformat(),
                perf_value=value * (0.5 if days < 15 else 1),
                system=system,
                pattern=pattern,
            )
            for seed, pattern in enumerate(("fpp", "ssf"))
            for days, value in enumerate(levels((80, 1), seed=seed))
        ]
        write_perflog(tmp_path / "perflogs", rows, system=system)
    (tmp_path / "config" / "systems").mkdir(parents=True)
    return tmp_path


def test_alerts_of_two_systems_with_one_number_are_told_apart(two_systems: Path) -> None:
    tmp_path = two_systems
    site, why = ("--site", str(tmp_path)), ("--reason", "a spare part is ordered")
    _, said = call("status", *site)
    for system in ("here", "there"):
        assert f"1 disk writes system={system} " in said
    assert re.search(r"Next step: iobands explain 1 --system (here|there)\n", said)
    status, said = call("explain", "1", *site)
    assert status == 3
    assert "1 matches 2 names; give --system NAME:" in said
    assert "1 disk writes system=there\n" in said
    # an answer to one does not answer the other
    status, said = call("acknowledge", "1", *why, *site)
    assert status == 3
    names = "1 disk writes system=here; 1 disk writes system=there"
    assert f"'1' matches {names}; name one, or give --system or --all" in said
    status, said = call("acknowledge", "disk fpp", *why, *site)
    names = "disk fpp system=here write_bw; disk fpp system=there write_bw"
    assert f"'disk fpp' matches {names}; name one" in said
    status, said = call("acknowledge", "1", *why, "--system", "there", *site)
    assert status == 0
    assert "To withdraw it: iobands undo 1 --system there --reason TEXT" in said
    assert not (tmp_path / "config" / "alerts" / "here.jsonl").exists()
    _, said = call("alerts", *site)
    rows = {row.split()[-2]: row for row in said.splitlines() if "system=" in row}
    assert rows["system=here"].endswith("open")
    assert rows["system=there"].endswith("acknowledged")
    status, said = call("status", *site)
    assert status == 2
    assert "alerts: 1 degraded, 1 degraded (acknowledged)" in said


@pytest.mark.parametrize(
    "name", ["1 disk writes system=there", "Disk Writes system=there", "1 disk system=there"]
)
def test_an_answer_takes_the_names_that_other_commands_print(name: str, two_systems: Path) -> None:
    site = ("--site", str(two_systems))
    assert call("acknowledge", *name.split(), "--reason", "x", *site)[0] == 0
    assert not (two_systems / "config" / "alerts" / "here.jsonl").exists()


def test_commands_about_an_alert_of_one_system_name_it(two_systems: Path) -> None:
    site = ("--site", str(two_systems), "--system", "here")
    status, said = call("explain", "1", *site)
    assert status == 0
    found = re.findall(r"iobands \w+ 1 .*TEXT", said)
    assert found == [
        f"iobands {command} 1 --system here --reason TEXT"
        for command in ("acknowledge", "resolve", "rebaseline")
    ]
    assert "Next step: iobands explain 1 --system here\n" in call("status", *site)[1]
    assert "iobands explain 1 --system here\n" in call("explain", "disk fpp write_bw", *site)[1]
    why = ("--reason", "x")
    for command in ("acknowledge", "resolve"):
        assert call(command, "1", *why, *site, *["--force"] * (command == "resolve"))[0] == 0
    said = " ".join(call("resolve", "1", *why, *site)[1].split())
    assert "it is over; see `iobands explain 1 --system here`" in said


def test_the_past_is_explained_as_it_was_and_not_acted_on(two_systems: Path) -> None:
    site, then = ("--site", str(two_systems)), datetime.now(timezone.utc) - timedelta(days=2)
    day = f"{then:%Y-%m-%d}"
    _, said = call("status", "--as-of", day, "--system", "here", *site)
    assert f"Next step: iobands explain 1 --system here --as-of {day}\n" in said
    _, said = call("status", "--as-of", f"{then:%Y-%m-%dT%H:%M:%SZ}", *site)
    assert re.search(rf"explain 1 --system \w+ --as-of {then:%Y-%m-%dT%H:%M:%SZ}\n", said)
    status, said = call("explain", "1", "--as-of", day, "--system", "here", *site)
    assert (status, "1 disk writes: degraded" in said) == (0, True)
    assert ("What to type next" in said, "--reason TEXT" in said) == (False, False)


def falling(answered: datetime) -> list[str]:
    """Runs of a series that fell twelve days before `answered`, and next ran after that time."""
    runs = [*zip(range(-100, -12), levels((88, 1), seed=4), strict=True)]
    runs += [(day, 0.6) for day in (-12, -11, *range(1, 6))]
    return [
        line(
            job_completion_time=(answered + timedelta(days=day - 0.1)).isoformat(),
            perf_value=value,
            pattern="ssf",
        )
        for day, value in runs
    ]


def test_what_falls_after_an_answer_is_another_alert(site: Path) -> None:
    now = datetime.now(timezone.utc)
    rows = falling(now)
    write_perflog(site / "perflogs", rows[:-5], "BenchioSSF.log")
    assert call("rebaseline", "disk fpp write_bw", "--reason", "new disks")[0] == 0
    write_perflog(site / "perflogs", rows, "BenchioSSF.log")
    files = SiteFiles(site)
    files.bands, files.alerts = site / "config" / "bands", site / "config" / "alerts"
    later = files.read(now + timedelta(days=5))
    (lost,) = [each for each in later.alerts if each.direction == "down"]
    assert (lost.number, lost.subject) == (3, "disk ssf write_bw")
    assert {each.number: each.end for each in later.past} == {2: "rebaselined"}


def test_a_rebuilt_log_knows_what_an_answer_ended(site: Path) -> None:
    when = datetime.now(timezone.utc) - timedelta(days=6)
    rows = daily(levels((105, 1), (15, 0.6)), last=(NOW - when) / DAY + 0.25)
    write_perflog(site / "perflogs", [*rows, *falling(when)])
    begin, only = when - timedelta(days=14.5), ({"pattern": "fpp", "variable": "write_bw"},)
    action = Action(REBASELINE, when, "jane", "new disks", only, since=begin, direction="down")
    append(LOG.parent, "here", [action])
    assert call("alerts", "--rebuild")[0] == 0
    said = call("alerts")[1]
    assert re.search(r"^ +1 .* disk writes\n +rebaselined by jane: new disks$", said, re.M)
    assert re.search(r"^ +2 .* disk ssf write_bw  open$", said, re.M)
