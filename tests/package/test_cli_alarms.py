"""The commands about alarms, as people call them: names, messages, exit statuses, bad files."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from iobands.alerts.alarms_file import load_acts
from typer.testing import CliRunner

from iobands.commands.main import app
from tests.package.acting_site import levels
from tests.package.conftest import environment
from tests.package.factory import NOW, daily, write_perflog

RAN = timedelta(hours=6)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Perflogs until now, in which one series has dropped, one has risen and one is healthy."""
    last = (NOW - (datetime.now(timezone.utc) - RAN)) / timedelta(days=1)
    rows = daily(levels((105, 1), (15, 0.6)), last=last)
    rows += daily(levels((105, 1), (15, 1.6), seed=2), last=last, perf_var="read_bw")
    rows += daily(levels((120, 1), seed=3), last=last, file_system="home")
    write_perflog(tmp_path / "perflogs", rows)
    (tmp_path / "perflogs" / "there" / "local").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNAME", "jane")
    monkeypatch.delenv("SUDO_USER", raising=False)
    return tmp_path


def call(*arguments: str) -> tuple[int, str]:
    """Call the command, and return its exit status and all that it says."""
    done = CliRunner().invoke(app, list(arguments))
    return done.exit_code, done.output


def acts(site: Path) -> list[tuple[str, str, str]]:
    found = load_acts(site / "config" / "alarms", "here").every
    return [(act.kind, act.who, act.reason) for act in found]


def test_a_person_deals_with_an_alarm(site: Path) -> None:
    assert call("status")[0] == 2
    status, said = call("acknowledge", "disk", "write_bw", "--reason", "ticket  4711,\nrebuilds")
    assert (status, said.splitlines()[-1]) == (
        0,
        "IOBANDS WARNING: 3 series: 1 degraded (acknowledged), 1 improved, 1 healthy",
    )
    assert "Written: config/alarms/here.yaml; commit it" in said
    status, said = call("status")
    assert status == 1
    assert "Acknowledged\n  disk fpp write_bw: degraded since " in said
    assert "by jane: ticket 4711, rebuilds\n" in said
    assert call("close", "disk", "write_bw", "--reason", "rebuilt", "--by", "joe")[0] == 0
    assert call("status")[0] == 0
    assert call("new-normal", "disk", "--reason", "new disks")[0] == 0
    status, said = call("status")
    assert "1 calibrating" in said
    assert "healthy (closed)" in said
    assert call("reopen", "disk", "fpp", "write_bw", "--reason", "slow again")[0] == 0
    assert call("status")[0] == 1  # acknowledged, as before it was closed
    assert acts(site) == [
        ("acknowledge", "jane", "ticket 4711, rebuilds"),
        ("close", "joe", "rebuilt"),
        ("new-normal", "jane", "new disks"),
        ("reopen", "jane", "slow again"),
    ]


def test_the_same_act_twice(site: Path) -> None:
    for _ in range(2):
        status, said = call("acknowledge", "disk fpp write_bw", "--reason", "r")
        assert status == 0
    assert said == "disk fpp write_bw: done already, for the same reason\n"
    assert call("acknowledge", "disk fpp write_bw", "--reason", "ticket 5")[0] == 0
    assert [reason for _, _, reason in acts(site)] == ["r", "ticket 5"]
    assert call("close", "disk fpp write_bw", "--reason", "r")[0] == 0
    status, said = call("close", "disk fpp write_bw", "--reason", "r")
    assert status == 3
    assert "has no open alarm: its state is healthy; close, 20" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("acknowledge", "home", "--reason", "r"), "home fpp write_bw has no open alarm: its sta"),
        (("close", "home", "--reason", "r"), "home fpp write_bw has no open alarm: its state"),
        (("new-normal", "home", "--reason", "r"), "home fpp write_bw has no open alarm: its"),
        (("reopen", "home", "--reason", "r"), "home fpp write_bw: nothing was done that could"),
        (("acknowledge", "nowhere", "--reason", "r"), "no series is called nowhere; there are:"),
        (("acknowledge", "disk", "--reason", "r"), "disk may be any of 2; name one, or give --all"),
        (("acknowledge", "", "--reason", "r"), "no series is called ; there are:"),
        (("acknowledge", "disk fpp write_bw", "--reason", " "), "--reason is empty"),
        (("acknowledge", "disk fpp write_bw", "--reason", "r", "--by", " "), "--by is empty"),
        (("close", "disk fpp write_bw", "--reason", "r", "--since", "2099-01-01"), "is in the fut"),
        (("close", "disk fpp write_bw", "--reason", "r", "--since", "2001-01-01"), "began later"),
        (("close", "disk fpp write_bw", "--reason", "r", "--since", "soon"), "not a time"),
        (("close", "disk fpp write_bw", "--reason", "r", "--since", "0001-01-01"), "the year 1 is"),
        (("close", "disk", "--reason", "r", "--alarms", "nowhere"), "nowhere: no such directory"),
        (("close", "disk", "--reason", "r", "--adapter", "none"), "none"),
    ],
)
def test_what_cannot_be_done_is_said(site: Path, arguments: tuple[str, ...], said: str) -> None:
    status, output = call(*arguments)
    assert (status, (site / "config").exists()) == (3, False)
    assert said in output
    assert "Traceback" not in output


def test_all_at_once_and_a_dry_run(site: Path) -> None:
    status, said = call("acknowledge", "disk", "--reason", "r", "--all", "--dry-run")
    assert (status, (site / "config").exists()) == (0, False)
    assert said.count("+  - act: acknowledge") == 2
    assert call("acknowledge", "disk", "--reason", "r", "--all")[0] == 0
    assert len(acts(site)) == 2
    known = load_acts(site / "config" / "alarms", "here").every
    assert known[0].when < known[1].when  # an act is known by its time


def test_a_file_kept_by_people_stays_as_it_is(site: Path) -> None:
    assert call("acknowledge", "disk fpp write_bw", "--reason", "r")[0] == 0
    path = site / "config" / "alarms" / "here.yaml"
    text = path.read_text().replace("    reason: r\n", "    reason: 'r'  # see the log book\n")
    path.write_text(text)
    path.chmod(0o640)
    assert call("new-normal", "disk fpp read_bw", "--reason", "new disks")[0] == 0
    assert path.read_text().startswith(text)
    assert path.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in path.parent.iterdir()] == ["here.yaml"]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text.replace("schema: 2", "schema: 3"), "a newer iobands wrote the file"),
        (lambda text: text[: len(text) // 2], "here.yaml"),
        (lambda text: text.replace("who: jane", "who: [jane"), "correct the YAML there"),
        (lambda text: text.replace("jane", "j\udcffne"), "is not UTF-8"),
    ],
)
def test_a_damaged_file_is_named_and_left_alone(site: Path, damage, said: str) -> None:
    assert call("acknowledge", "disk fpp write_bw", "--reason", "r")[0] == 0
    path = site / "config" / "alarms" / "here.yaml"
    path.write_bytes(damage(path.read_text()).encode(errors="surrogateescape"))
    before = path.read_bytes()
    for arguments in (
        ("status",),
        ("explain", "home"),
        ("calibrate", "--dry-run"),
        ("close", "disk fpp write_bw", "--reason", "r"),
    ):
        status, output = call(*arguments)
        assert status == 3
        assert "here.yaml" in output
        assert said in output
    assert path.read_bytes() == before


def test_no_right_to_write(site: Path) -> None:
    directory = site / "config" / "alarms"
    directory.mkdir(parents=True)
    directory.chmod(0o555)
    command = [sys.executable, "-m", "iobands", "acknowledge", "disk fpp write_bw", "--reason", "r"]
    is_root = os.getuid() == 0
    done = subprocess.run(
        # root may write anywhere, unless it has to do without that
        ["setpriv", "--bounding-set=-dac_override", "--", *command] if is_root else command,
        env=environment(XDG_CACHE_HOME=str(site / "cache")),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "config/alarms/here.yaml: cannot be written: Permission denied" in done.stderr
    assert list(directory.iterdir()) == []


def test_nobody_s_act_is_lost(site: Path) -> None:
    commands = [
        [sys.executable, "-m", "iobands", "acknowledge", "disk fpp write_bw", "--reason", f"r{n}"]
        for n in range(4)
    ]
    at_once = [subprocess.Popen(command, env=environment()) for command in commands]
    assert [process.wait(timeout=300) for process in at_once] == [0] * 4
    assert {reason for _, _, reason in acts(site)} == {"r0", "r1", "r2", "r3"}
