"""Measuring again, with a real ReFrame: at the end of a session, and between sessions."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from iobands.measure import read_plan, write_plan
from iobands.measure.lock import SUSPECTS, acquire, new_holder, read_holder, release
from iobands.measure.plan import Asked
from tests.commands.fake_root import make_root
from tests.conftest import Command, Ended
from tests.factory import COLUMNS, line
from tests.waiting import wait_until

pytestmark = pytest.mark.machine

pytest.importorskip("reframe")

CHECK = """

ROOT = __file__.removesuffix("/checks/trivial.py")


@rfm.simple_test
class Varying(Base):
    file_system = "varying"
    interval_days = variable(float, value=1.0, loggable=True)
    executable_opts = [f"write {open(f'{ROOT}/rate').read().strip()}"]
    prerun_cmds = [f"if [ -e {ROOT}/slow ]; then touch {ROOT}/begun; sleep 60; fi"]
    not_run = variable(str, type(None), value=None, loggable=True)

    @run_after("setup")
    def require_file_system(self):
        if os.path.exists(f"{ROOT}/unfit"):
            self.not_run = "not mounted at /varying"
            self.skip(self.not_run)
"""
SITE = """\
system = {{"name": "here", "partitions": [{{"name": "local", "extras": {{
    "suspects": {suspects},
    "filesystems": {{"varying": {{"path": "/tmp"}}}},
}}}}]}}
"""


def allow(root: Path, **suspects: object) -> None:
    """Write the limits into the site file; by default, they allow everything at once."""
    entry = {"every": "0h1s", "per_day": 100, "repeat_after": "1s", **suspects}
    path = root / "config" / "systems" / "here.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(SITE.format(suspects=entry))


def rate(root: Path, value: float) -> None:
    (root / "rate").write_text(f"{value}\n")


def make_varying(directory: Path) -> Path:
    """Make a root with a check that has 40 days of history around 1.5 GiB/s, and return it."""
    root = make_root(directory)
    rate(root, 1.5)
    checks = root / "checks" / "trivial.py"
    # only this one is measured every day
    text = checks.read_text().replace('    tags = {"daily"}\n', "", 1) + CHECK
    own = '    file_system = "varying"\n'
    checks.write_text(text.replace(own, f'{own}    tags = {{"daily"}}\n'))
    allow(root)
    now = datetime.now(timezone.utc)
    rows = [
        line(
            job_completion_time=(now - timedelta(days=ago)).isoformat(),
            display_name="Varying",
            file_system="varying",
            perf_value=1.5 * (1 + 0.02 * ((ago * 7) % 11 - 5) / 5),
            interval_days=1.0,
            band_verdict="",
            purpose="scheduled",
            fsync="null",
            cache="null",
        )
        for ago in range(40, 0, -1)
    ]
    path = root / "perflogs" / "here" / "local" / "Varying.log"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join([COLUMNS, *rows, ""]))
    return root


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    return make_varying(tmp_path)


@pytest.fixture(scope="module")
def once_collapsed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root after a session that repeated a run of 0.7 GiB/s after 3 s; tests copy it."""
    root = make_varying(tmp_path_factory.mktemp("collapsed"))
    allow(root, repeat_after="3s")
    rate(root, 0.7)
    subprocess.run([sys.executable, "-m", "iobands", "run"], cwd=root, check=False)
    assert purposes(root) == ["scheduled", "repeat"]
    return root


@pytest.fixture
def root(once_collapsed: Path, tmp_path: Path) -> Path:
    """A copy of the root after that session."""
    return shutil.copytree(once_collapsed, tmp_path / "root")


def samples(root: Path) -> list[tuple[str, float, datetime]]:
    """Return purpose, value and time of the samples that the test's sessions added."""
    lines = (root / "perflogs" / "here" / "local" / "Varying.log").read_text().splitlines()
    names = lines[0].split("|")
    rows = [dict(zip(names, each.split("|"), strict=False)) for each in lines[41:]]
    return [
        (
            row["purpose"],
            float(row["perf_value"]),
            datetime.fromisoformat(row["job_completion_time"]),
        )
        for row in rows
    ]


def ask_again(iobands: Command, root: Path, *words: str) -> Ended:
    """Call the hourly command after a second, so that the planned runs are due."""
    time.sleep(1.1)
    return iobands("run", "--suspects", *words, cwd=root)


def purposes(root: Path) -> list[str]:
    return [purpose for purpose, *_ in samples(root)]


def plan_of(root: Path) -> dict:
    return json.loads((root / "perflogs" / "plan.json").read_text())


def test_a_run_that_is_a_little_lower_is_not_repeated(fresh: Path, iobands: Command) -> None:
    rate(fresh, 1.48)
    done = iobands("run", cwd=fresh)
    assert purposes(fresh) == ["scheduled"], done.stdout + done.stderr


def test_a_run_that_collapsed_is_repeated_once(once_collapsed: Path) -> None:
    (_, _, first), (_, _, second) = samples(once_collapsed)
    assert second - first >= timedelta(seconds=3)
    log = json.loads((once_collapsed / "perflogs" / "last-session.json").read_text())
    assert (log["counts"]["ran"], log["counts"]["again"]) == (1, 1)


def test_a_run_by_hand_is_not_repeated(fresh: Path, iobands: Command) -> None:
    rate(fresh, 0.7)
    iobands("run", "--", "-n", "Varying", cwd=fresh)
    assert purposes(fresh) == ["manual"]
    # nor on a site that wants no repeats
    allow(fresh, repeat_after="0m")
    done = iobands("run", cwd=fresh)
    assert purposes(fresh) == ["manual", "scheduled"]
    assert "not repeated" not in done.stderr


def test_a_loss_is_measured_again(root: Path, iobands: Command) -> None:
    (ask,) = plan_of(root)["asks"]
    assert (ask["check"], ask["purpose"]) == ("Varying", "suspect")
    record = (root / "perflogs" / "last-session.json").read_text()
    dry = ask_again(iobands, root, "--dry-run")
    assert dry.returncode == 0
    now, _, line = dry.stdout.splitlines()[1].partition("  ")
    assert (now, line.split("  ")[0]) == ("within the hour", "varying fpp write_bw")
    assert purposes(root) == ["scheduled", "repeat"]
    done = ask_again(iobands, root)
    assert done.stdout.splitlines()[1].startswith(
        "Measured again: varying fpp write_bw, 0.7 GiB/s: "
    )
    assert purposes(root) == ["scheduled", "repeat", "suspect"]
    # it does not count as a scheduled session
    assert (root / "perflogs" / "last-session.json").read_text() == record


#: Runs the command, and prints the files it opened below the root, how, and its imports.
WATCHED = """
import os
import sys
opened = []
def note(event, words):
    if event == "open" and str(words[0]).startswith(ROOT):
        opened.append((str(words[0])[len(ROOT) + 1:], words[2] & os.O_ACCMODE == os.O_RDONLY))
sys.addaudithook(note)
from iobands.commands.main import app
app(["run", "--suspects"], standalone_mode=False)
print(sorted(set(opened)))
print(*sys.modules)
"""


def test_with_nothing_due_it_needs_little_and_leaves_no_trace(root: Path, iobands: Command) -> None:
    allow(root, every="4h")
    iobands("run", "--suspects", cwd=root)
    assert plan_of(root)["asks"]  # in four hours
    before = {each: each.stat().st_mtime_ns for each in (root / "perflogs").rglob("*")}
    script = WATCHED.replace("ROOT", repr(str(root)))
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
    )
    opened, modules = done.stdout.splitlines()
    assert opened == "[('perflogs/plan.json', True)]"
    imported = set(modules.split())
    assert "iobands.measure.plan" in imported
    tops = {each.partition(".")[0] for each in imported}
    assert not tops & {"polars", "numpy", "reframe", "pandas", "rich", "dateutil", "asyncio"}
    packages = {each.split(".")[1] for each in imported if each.startswith("iobands.")}
    assert packages == {"commands", "measure", "model", "version"}
    assert {each: each.stat().st_mtime_ns for each in (root / "perflogs").rglob("*")} == before


def test_an_action_makes_the_plan_anew(root: Path, iobands: Command) -> None:
    allow(root, every="4h")
    iobands("run", "--suspects", cwd=root)
    assert plan_of(root)["asks"]
    retired = iobands("retire", "varying fpp write_bw", "--reason", "gone", cwd=root)
    assert "retired" in retired.stdout.lower(), retired.stderr
    assert ask_again(iobands, root).stdout == ""
    assert plan_of(root)["asks"] == []
    assert purposes(root) == ["scheduled", "repeat"]


@pytest.mark.parametrize(
    "limit",
    [{"per_day": 1}, {"per_day": 0}, {"node_hours_per_day": 0}, {"every": "0h"}, {"every": "9h"}],
)
def test_the_site_limits_what_is_measured_again(root: Path, iobands: Command, limit: dict) -> None:
    allow(root, **limit)
    done = ask_again(iobands, root)
    assert (done.returncode, done.stderr, purposes(root)) == (0, "", ["scheduled", "repeat"])
    dry = iobands("run", "--suspects", "--dry-run", cwd=root).stdout
    is_off = 0 in limit.values() or "0h" in limit.values()
    assert ("switches repeats off" in dry) == is_off
    assert ("varying fpp write_bw" in dry) != is_off


def test_node_hours_of_yesterday_are_not_spent(root: Path, iobands: Command) -> None:
    now = datetime.now(timezone.utc)
    plan, asked = read_plan(root / "perflogs"), ("here:local", "builtin", "Other", "", "")
    past = tuple(Asked(now - timedelta(hours=hours), asked, 3.0) for hours in (30, 20))
    write_plan(root / "perflogs", replace(plan, asked=past), now - timedelta(hours=10))
    dry = iobands("run", "--suspects", "--dry-run", cwd=root).stdout
    assert "20 node hours in 24 hours, 3 of them spent" in " ".join(dry.split())


def test_a_mistake_in_the_site_file_of_another_system_ends_no_session(
    root: Path, iobands: Command
) -> None:
    path = root / "perflogs" / "here" / "local" / "Varying.log"
    there = root / "perflogs" / "there" / "local" / "Varying.log"
    there.parent.mkdir(parents=True)
    there.write_text(path.read_text().replace("|here|", "|there|"))  # in doubt, too
    (root / "config" / "systems" / "there.py").write_text("system = {")
    allow(root, every="4h", repeat_after="0s")
    done = iobands("run", cwd=root)
    assert "IOBANDS" in done.stdout.splitlines()[0]
    assert "there.py: SyntaxError: " in done.stderr
    assert purposes(root) == ["scheduled", "repeat", "scheduled"]
    # series in doubt on this system are still measured again
    assert {each["system"] for each in plan_of(root)["asks"]} == {"here"}
    dry = iobands("run", "--suspects", "--dry-run", cwd=root)
    assert (dry.returncode, dry.stderr.count("SyntaxError")) == (3, 1)


def test_a_check_that_is_gone(root: Path, iobands: Command) -> None:
    allow(root, every="4h")
    checks = root / "checks" / "trivial.py"
    checks.write_text(checks.read_text().replace("class Varying", "class Renamed"))
    assert ask_again(iobands, root).stderr == ""  # not due
    allow(root)
    done = ask_again(iobands, root)
    assert "not measured again: Varying: ReFrame finds no such check; if it was" in done.stderr
    assert purposes(root) == ["scheduled", "repeat"]


def test_a_file_system_that_becomes_unfit_is_asked_until_it_is_fit(
    root: Path, iobands: Command
) -> None:
    (root / "unfit").touch()
    iobands("run", cwd=root)
    for _ in range(2):
        done = ask_again(iobands, root)
        assert "not measured again: Varying: not mounted at /varying" in done.stderr
    (root / "unfit").unlink()
    ask_again(iobands, root)
    assert purposes(root) == ["scheduled", "repeat", "suspect"]


@pytest.mark.parametrize("begins", [True, False], ids=["a session", "a signal"])
def test_an_hourly_run_that_is_interrupted(root: Path, iobands: Command, begins: bool) -> None:
    (root / "slow").touch()
    time.sleep(1.1)
    command = [sys.executable, "-m", "iobands", "run", "--suspects"]
    with subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True) as hourly:
        wait_until((root / "begun").exists)
        (root / "slow").unlink()
        if begins:
            iobands("run", cwd=root)
        else:
            hourly.terminate()
        _, said = hourly.communicate()
    assert "the repeats were interrupted; 0 of 1 are done" in said
    assert "gone" not in said
    assert purposes(root)[:2] == ["scheduled", "repeat"]
    # and it is asked again
    ask_again(iobands, root)
    assert purposes(root)[-1] == "suspect"


def test_of_two_hosts_one_measures(root: Path, iobands: Command) -> None:
    perflogs = root / "perflogs"
    holder = new_holder(SUSPECTS)  # the other one is measuring
    acquire(perflogs, holder)
    done = ask_again(iobands, root)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    release(perflogs, holder.session)
    # the other one has measured since this one read the plan
    allow(root, every="4h")
    ask_again(iobands, root)
    assert purposes(root) == ["scheduled", "repeat"]


def test_a_session_that_is_interrupted_before_its_repeats_is_complete(
    fresh: Path, iobands: Command
) -> None:
    allow(fresh, repeat_after="5m")
    rate(fresh, 0.7)
    command = [sys.executable, "-m", "iobands", "run"]
    with subprocess.Popen(
        command, cwd=fresh, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as session:
        wait_until((fresh / "perflogs" / "plan.json").exists)
        time.sleep(2)
        session.terminate()
        digest, said = session.communicate()
    assert "the repeats were interrupted; 0 of 1 are done" in said
    assert "varying fpp" in digest
    record = json.loads((fresh / "perflogs" / "last-session.json").read_text())
    assert (record["how"], record["reason"]) == ("completed", None)
    # runs that were planned but not repeated are not charged
    assert plan_of(fresh)["asked"] == []


def test_a_plan_that_cannot_be_written_costs_no_digest(fresh: Path, iobands: Command) -> None:
    """As on a disk that is full when the repeats begin."""
    rate(fresh, 0.7)
    (fresh / "perflogs" / "plan.json").mkdir()
    done = iobands("run", cwd=fresh)
    assert "varying fpp" in done.stdout
    assert "IOBANDS UNKNOWN: not measured again: " in done.stderr
    assert purposes(fresh) == ["scheduled"]
    record = json.loads((fresh / "perflogs" / "last-session.json").read_text())
    assert (record["how"], "not measured again" in record["reason"]) == ("completed", True)


def test_a_repeat_that_waits_longer_than_the_interval_is_submitted_once(
    root: Path, iobands: Command
) -> None:
    (root / "slow").touch()
    time.sleep(1.1)
    command = [sys.executable, "-m", "iobands", "run", "--suspects"]
    with subprocess.Popen(command, cwd=root) as first:
        wait_until((root / "begun").exists)
        # two more hours pass
        for _ in range(2):
            done = ask_again(iobands, root)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        asked = plan_of(root)["asked"]
        assert [each["check"][2] for each in asked] == ["Varying"] * 2  # the repeat, and this one
        (root / "slow").unlink()
        # its host goes down: the next call ends the job, and measures again
        first.kill()
    # the kernel signals its ReFrame, whose end takes longer on a busy machine
    wait_until(lambda: read_holder(root / "perflogs").is_alive is False)
    done = ask_again(iobands, root)
    assert "a session was killed" in done.stderr
    assert purposes(root) == ["scheduled", "repeat", "suspect"]


def test_two_hourly_lines_at_the_same_time(root: Path, iobands: Command) -> None:
    allow(root, every="4h")
    hours_pass(root, 4.1)
    command = [sys.executable, "-m", "iobands", "run", "--suspects"]
    both = [subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert {each.wait() for each in both} <= {0, 2}
    assert purposes(root) == ["scheduled", "repeat", "suspect"]


TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:[+-]\d\d:\d\d|Z)")
UNIX = re.compile(r'(?<=_unix": )\d+\.\d+')


def hours_pass(root: Path, hours: float) -> None:
    """Move all recorded times `hours` into the past."""

    def earlier(found: re.Match[str]) -> str:
        moment = datetime.fromisoformat(found[0].replace("Z", "+00:00"))
        return (moment - timedelta(hours=hours)).isoformat()

    for path in (root / "perflogs").rglob("*"):
        if path.suffix in {".log", ".json", ".jsonl"} and path.name != "iobands-run.log":
            text = TIME.sub(earlier, path.read_text())
            path.write_text(UNIX.sub(lambda each: str(float(each[0]) - hours * 3600), text))


def test_a_recovery_is_asked_for_until_the_alert_is_over(root: Path, iobands: Command) -> None:
    allow(root, every="4h", repeat_after="1s")
    for _ in range(12):
        hours_pass(root, 4.1)
        if iobands("run", "--suspects", cwd=root).stdout.startswith("IOBANDS CRITICAL"):
            break
    assert "1 degraded" in iobands("status", cwd=root).stdout
    # repaired: the daily session finds it healthy
    rate(root, 1.5)
    hours_pass(root, 4.1)
    iobands("run", cwd=root)
    (ask,) = plan_of(root)["asks"]
    assert (ask["purpose"], ask["why"]) == ("recovery", "alert 1 may be over")
    for _ in range(12):
        hours_pass(root, 4.1)
        said = iobands("run", "--suspects", cwd=root)
        if not plan_of(root)["asks"]:
            break
    assert "recovery" in purposes(root), said.stdout + said.stderr
    assert said.returncode == 0
    listed = iobands("alerts", cwd=root).stdout
    assert " open" not in listed
    repaired = next(when for _, value, when in samples(root) if value == 1.5)
    assert samples(root)[-1][2] - repaired < timedelta(hours=30)


def test_a_plan_of_a_newer_iobands_is_made_anew(root: Path, iobands: Command) -> None:
    """tests/measure/test_plan.py has the other plans that cannot be read."""
    (root / "perflogs" / "plan.json").write_text('{"schema": 9}')
    ask_again(iobands, root)
    assert purposes(root) == ["scheduled", "repeat", "suspect"]
    assert plan_of(root)["schema"] == 2
