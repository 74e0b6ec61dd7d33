"""`iobands doctor`: each fault is injected for real, and named with its remedy."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from iobands import measure
from iobands.commands import checkup
from iobands.commands.checkup import Level, Line
from iobands.commands.doctor import is_within, report_of
from iobands.measure import SessionError
from iobands.measure.schedule import Job
from iobands.model import in_time
from iobands.notify.outbox import secret
from iobands.source.push import Pushed, write_pushed
from tests.commands.calling import call
from tests.factory import line as row
from tests.factory import write_perflog
from tests.mounts import unanswered
from tests.site_copy import ROOT

pytestmark = pytest.mark.machine  # it calls ReFrame
PACKAGE = ROOT / "src"

HOST = socket.gethostname()


def doctor(site: Path, before: Sequence[object] = (), **environment: str) -> tuple[int, str]:
    """Call the command in a site; `before` is the command line of a program that wraps it."""
    command = [*map(str, before), sys.executable, "-m", "iobands", "doctor"]
    paths = [environment.pop("PYTHONPATH", ""), str(PACKAGE)]
    done = subprocess.run(
        command,
        cwd=site,
        env={**os.environ, "PYTHONPATH": ":".join(filter(None, paths)), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, " ".join(done.stdout.split())


@pytest.fixture
def new_site(tmp_path: Path) -> Path:
    """A new site of one machine, with directories of the test as file systems."""
    place = tmp_path / "site"
    status, said = call("init", str(place), "--from", "local")
    assert status == 0, said
    return place


@pytest.fixture
def site(new_site: Path) -> Path:
    """The same with a suite of its own: of all checks, ReFrame loads benchio's alone."""
    others = ("__pycache__", "systems", "bands", "cases", "ior", "mdtest", "io500")
    for name in ("config", "checks"):
        ignored = shutil.ignore_patterns(*others)
        shutil.copytree(ROOT / name, new_site / name, ignore=ignored, dirs_exist_ok=True)
    (new_site / "src").symlink_to(PACKAGE)
    return new_site


@pytest.fixture
def accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace ReFrame, which takes long to start, by what it says about a good site file."""
    found = [{"system": "local", "gib": 1.0}] * 2
    monkeypatch.setattr("iobands.measure.describe", lambda *_: found)
    monkeypatch.setattr("iobands.commands.doctor._reframe", lambda: Line("ReFrame", "accepts all"))


@pytest.fixture
def without_reframe(accepted: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace ReFrame by an error."""

    def refused(*_: object) -> None:
        raise SessionError("no ReFrame here")

    monkeypatch.setattr("iobands.measure.describe", refused)


def doctor_here(site: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Call the command in this process."""
    monkeypatch.chdir(site)
    status, said = call("doctor")
    return status, " ".join(said.split())


@pytest.mark.parametrize("why", ["ReFrame 4.9.3 is too old", "reframe is not on PATH"])
def test_reframe_is_no_mistake_of_the_site_file(
    why: str, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise SessionError(why)

    monkeypatch.setattr("iobands.measure.describe", refused)
    status, said = doctor_here(site, monkeypatch)
    assert (status, f"FAIL site file: {why}" in said) == (3, True)
    assert "correct config/systems" not in said


def test_no_line_is_wider_than_a_mail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Except for a wider path, which stays whole. The remedy is below the finding."""
    path = "/long-path" * 9
    found = Line("another iobands", f"{path} {'word ' * 20}", "do this " * 12, Level.WARN)
    monkeypatch.setattr("iobands.commands.doctor.all_lines", lambda _: iter([found]))
    status, said = call("doctor")
    lines = said.splitlines()
    assert status == 1
    assert f"      {path}" in lines  # it can be pasted
    assert max(len(line) for line in lines if path not in line) <= 80
    assert all(line.startswith("      ") for line in lines[1:])


def change(site: Path, before: str, after: str) -> None:
    path = site / "config" / "systems" / "local.py"
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")


def test_a_new_site_lacks_only_a_session_and_a_schedule(
    new_site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, said = doctor_here(new_site, monkeypatch)
    assert status == 1
    assert "OK site file: local, 2 smoke checks" in said
    assert "OK environment mpi: /" in said
    assert "WARN session: none by iobands run yet measure once by hand: iobands run" in said
    assert "WARN schedule: this user has none" in said
    assert "FAIL" not in said


@pytest.mark.usefixtures("accepted")
def test_bands_that_end_every_check(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (site / "config" / "bands" / "local.yaml").write_text("epochs: [")
    status, said = doctor_here(site, monkeypatch)
    assert status == 3
    assert "config/bands/local.yaml" in said
    assert "correct it: every check fails until it can be read" in said


@pytest.mark.usefixtures("accepted")
def test_a_maintenance_that_repeats_on_no_day(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (site / "config" / "bands" / "local.yaml").write_text(
        "schema: 5\nsystem: local\nepochs: []\nmaintenance:\n- {from: 2026-08-01, to: 2026-08-02, "
        "reason: why, repeat: 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=31'}\n"
    )
    status, said = doctor_here(site, monkeypatch)
    assert (status, "repeat is 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=31'" in said) == (3, True)
    assert "correct it: its maintenances do not count" in said


@pytest.mark.usefixtures("accepted")
def test_an_environment_may_name_no_compiler(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(site, '"ftn": "mpifort"', '"ftn": ""')
    assert "OK environment mpi: names no Fortran compiler" in doctor_here(site, monkeypatch)[1]


@pytest.mark.usefixtures("accepted")
def test_a_compiler_and_cmake_may_be_of_prepare_cmds(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `iobands init` writes them for the modules that are loaded."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "ourfort").symlink_to("/bin/true")
    before = f'"ftn": "ourfort", "prepare_cmds": ["PATH={own}"],'
    change(site, '"ftn": "mpifort",', before)
    assert "FAIL environment mpi: not found: cmake" in doctor_here(site, monkeypatch)[1]
    (own / "cmake").symlink_to("/bin/true")
    assert f"OK environment mpi: {own}/ourfort" in doctor_here(site, monkeypatch)[1]


@pytest.mark.usefixtures("without_reframe")
def test_no_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, said = doctor_here(tmp_path, monkeypatch)
    assert status == 3
    assert "no config/systems cd to a site's directory, give --site DIR, or make one" in said


def test_a_site_with_many_faults_has_a_line_for_each(site: Path, tmp_path: Path) -> None:
    change(site, '"ftn": "mpifort"', '"ftn": "no-such-compiler"')
    change(site, '"/var/tmp"', f'"{tmp_path}/gone"')
    other = tmp_path / "other" / "iobands"
    other.mkdir(parents=True)
    (other / "version.py").write_text('__version__ = "0.0.1"\n')
    (other.parent / "sitecustomize.py").write_text(
        "import errno, fcntl\n"
        'def refuse(*_): raise OSError(errno.ENOSYS, "no locks here")\n'
        "fcntl.flock = fcntl.lockf = refuse\n"
    )
    perflogs = site / "perflogs" / "local"
    perflogs.mkdir(parents=True)
    perflogs.chmod(0o777)
    (site / "builds").mkdir(mode=0o755)
    lock = '{"session": "x", "command": "iobands run", "user": "ada", "began": "2026-11-20", '
    lock += f'"processes": [{{"host": "{socket.gethostname()}", "boot": "gone", "pid": 4, '
    (site / "perflogs" / ".session.json").write_text(lock + '"started": 5}]}')
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (site / "config" / "notify.yaml").write_text(
        "schema: 1\nchannels:\n"
        f"  team: {{type: mail, from: a@b.org, to: [c@d.org], server: 127.0.0.1, port: {port}}}\n"
        "  chat: {type: webhook, url: {env: NO_SUCH_VARIABLE}}\n"
        "  script: {type: command, command: [/no/such/program]}\n"
    )
    paths = f"{PACKAGE}:{other.parent}"
    status, said = doctor(site, PYTHONPATH=paths)
    assert status == 3
    for line in (
        f"FAIL another iobands: {other} unset PYTHONPATH",
        "FAIL environment mpi: not found: no-such-compiler install it, or correct ftn",
        f"WARN file system disk: {tmp_path}/gone: not on this host make it",
        "WARN locks: the file system of the perflogs has no file locks",
        "all users may write there: chmod -R o-w",
        f"WARN builds: {site / 'builds'}: others can enter it, so no build in it is used",
        "WARN session: killed: ",
        f"FAIL channel team: 127.0.0.1, port {port}: Connection refused",
        "FAIL channel chat: the variable NO_SUCH_VARIABLE is empty or not set",
        "FAIL channel script: /no/such/program: no such program",
    ):
        assert line in said, line


@pytest.mark.usefixtures("without_reframe")
def test_channel_monitor_and_ping_of_one_name_have_a_line_each(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site / "config" / "notify.yaml").write_text(
        "schema: 1\nping: {env: NO_ADDRESS}\nchannels:\n"
        "  ping: {type: command, command: [/no/such/bell]}\n"
        "  team: {type: command, command: [/no/such/program]}\n"
        "monitors:\n"
        "  team: {type: nrdp, url: 'https://127.0.0.1', host: me, token: {env: NO_TOKEN}}\n"
    )
    said = doctor_here(site, monkeypatch)[1]
    for line in (
        "FAIL channel ping: /no/such/bell: no such program",
        "FAIL channel ping: the variable NO_ADDRESS is empty or not set",
        "FAIL channel team: /no/such/program: no such program",
        "FAIL channel team: the variable NO_TOKEN is empty or not set",
    ):
        assert line in said, line


@pytest.mark.usefixtures("without_reframe")
def test_a_link_to_this_iobands_is_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "iobands").symlink_to(PACKAGE / "iobands")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert "another iobands" not in call("doctor")[1]


def test_half_upgraded_and_an_unknown_reframe(site: Path, tmp_path: Path) -> None:
    old = tmp_path / "old" / "iobands-0.0.1.dist-info"
    old.mkdir(parents=True)
    (old / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: iobands\nVersion: 0.0.1\nRequires-Dist: rich<100,>=99\n"
        "Requires-Dist: no-such-package>=1\nProvides-Extra: checks\n"
        "Requires-Dist: reframe-hpc<4.3,>=4.2; extra == 'checks'\n"
    )
    status, said = doctor(site, PYTHONPATH=str(old.parent))
    assert status == 3
    assert "FAIL packages: the package is 0.0.1, its files are " in said
    assert "half upgraded; rich " in said
    assert "no-such-package is missing" in said
    # and not PyPI's, as this is a clone
    assert f"install it again: pip install --editable {ROOT}" in said
    assert "not tested; iobands is tested with reframe-hpc<4.3,>=4.2" in said


def test_a_mistake_in_the_site_file(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(site, '"partitions": [', '"partition": [')
    status, said = doctor_here(site, monkeypatch)
    assert status == 3
    assert "FAIL site file: " in said
    assert "local.py" in said


def test_a_site_file_that_does_not_end_can_be_renewed(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The template `local` once looked at its disk, and waited if that did not answer."""
    systems = site / "config" / "systems"
    os.mkfifo(systems / "pipe")
    change(site, "schema = 4", f"open({str(systems / 'pipe')!r})\nschema = 4")
    quick = "import iobands.model.files\niobands.model.files._ANSWER = 1\nraise ValueError"
    systems.joinpath("a.py").write_text(quick)  # it is read first
    monkeypatch.setenv("RFM_SYSTEM", "local")
    status, said = doctor_here(site, monkeypatch)
    assert (status, "local.py: did not end within 1 s it may wait" in said) == (3, True)
    said = said.replace(" \\", "")  # where a long line is broken
    assert f"its template may have changed: iobands init {site} --check" in said


def test_a_site_where_reframe_cannot_run_is_to_be_moved(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = tmp_path / "my site"
    shutil.copytree(site, moved)
    status, said = doctor_here(moved, monkeypatch)
    path = "letters, digits and ./@+~,:=_-"
    assert (status, f"FAIL site file: ReFrame needs a path of {path}, not" in said) == (3, True)
    assert "my site': choose another place" in said
    assert "correct config/systems" not in said


def test_what_reframe_says_in_red_is_plain(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(site)
    red = "IOBANDS UNKNOWN: run session stopped: reframe error: invalid regex: '('\n"
    assert call("cost", "--tag", "(") == (3, red)


@pytest.mark.parametrize("command", ["run", "cost", "schedule cron"])
def test_a_system_without_a_site_file_is_named_with_those_that_have_one(
    command: str, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(site)
    none = "no site file in config/systems has the system nosuch; write one of local"
    assert call(*command.split(), "--system", "nosuch") == (3, f"IOBANDS UNKNOWN: {none}\n")
    assert not (site / "perflogs" / "last-session.json").exists()


def test_a_site_file_of_another_host(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(site, '"hostnames": [".*"]', '"hostnames": ["^no-such-host$"]')
    status, said = doctor_here(site, monkeypatch)
    assert status == 3
    why = f"no site file in config/systems matches this host, {HOST}"
    assert f"FAIL site file: {why} correct its hostnames" in said


def test_a_mistake_that_hides_the_host_is_named(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(site, '"hostnames":', '"hostname":')
    status, said = doctor_here(site, monkeypatch)
    assert status == 3
    assert "local.py: hostname is an unknown key" in said


@pytest.mark.needs("mounts", "mount namespaces")
def test_a_read_only_installation_is_enough_and_read_only_perflogs_are_not(site: Path) -> None:
    perflogs = site / "perflogs"
    (perflogs / "local").mkdir(parents=True, exist_ok=True)
    for place, wanted, text in (
        (PACKAGE, 1, "OK perflogs: writable"),
        (perflogs, 3, "FAIL perflogs: "),
    ):
        script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
        before = ("unshare", "--mount", "sh", "-c", script, place)
        status, said = doctor(site, before=before)
        assert (status, text in said) == (wanted, True), said


@pytest.mark.needs("mounts", "mount namespaces")
def test_a_full_file_system(site: Path) -> None:
    (site / "perflogs").mkdir(exist_ok=True)
    script = 'mount -t tmpfs -o size=64k none "$0" && head -c 60k /dev/zero >"$0/x"; exec "$@"'
    before = ("unshare", "--mount", "sh", "-c", script, site / "perflogs")
    status, said = doctor(site, before=before)
    assert status == 3
    assert "FAIL perflogs: " in said
    assert "free space there" in said


@pytest.mark.skipif(shutil.which("faketime") is None, reason="faketime is not installed")
def test_a_wrong_clock(site: Path) -> None:
    (site / "perflogs" / "local").mkdir(parents=True, exist_ok=True)
    before = ("faketime", "-f", "+2d")
    status, said = doctor(site, before=before, NO_FAKE_STAT="1")
    assert status == 3
    assert "FAIL clock: the clock of" in said
    assert "2 days ahead of" in said
    assert "correct it: timedatectl" in said


@pytest.mark.parametrize(
    ("line", "is_schedule"),
    [
        ("cd SITE && iobands run --tag daily", True),
        ("cd LINK && /opt/iobands/bin/iobands run", True),
        ("cd 'SITE' && iobands run && iobands push", True),
        ("SITE/nightly-iobands.sh", True),
        ("cd SITE && IOBANDS_PURPOSE=scheduled iobands reframe -- -r -t daily", True),
        ("cd SITE2 && iobands run --tag daily", False),
        ("cd /mntSITE && iobands run --tag daily", False),
        ("cd SITE && iobands run --suspects", False),
        ("cd SITE && iobands status", False),
        ("cd SITE && PATH=/opt/iobands/bin:/bin /opt/iobands/bin/iobands push", False),
        ("cd SITE && iobands clean; iobands report dashboard", False),
    ],
)
def test_a_line_that_measures_this_site_is_its_schedule(
    line: str, is_schedule: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, link = tmp_path / "site", tmp_path / "link"
    site.mkdir()
    link.symlink_to(site)
    entry = f"17 5 * * * {line}".replace("SITE", str(site)).replace("LINK", str(link))
    monkeypatch.setattr(measure, "output_of", lambda *of: entry if of == ("crontab", "-l") else "")
    found = checkup._schedule(site)
    assert (found.level is Level.OK) == is_schedule, found.found


@pytest.mark.needs("mounts")
@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="no FUSE")
def test_a_schedule_may_name_a_directory_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site := tmp_path / "site").mkdir()
    entry = f"17 5 * * * iobands run --report {tmp_path}/hung/page; iobands status {site}"
    monkeypatch.setattr(measure, "output_of", lambda *of: entry if of == ("crontab", "-l") else "")
    monkeypatch.setattr("iobands.model.files._ANSWER", 1)
    with unanswered(tmp_path / "hung"):
        found = in_time(60, lambda: checkup._schedule(site), TimeoutError())
    assert found.found == "crontab: 17 5 * * *"


@pytest.mark.needs("mounts")
@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="no FUSE")
def test_a_secret_on_a_disk_that_does_not_answer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkup, "_SERVER_SECONDS", 1)
    (settings := tmp_path / "notify.yaml").write_text(
        f"{{schema: 1, channels: {{a: {{type: webhook, url: {{file: {tmp_path}/hung/url}}}}}}}}"
    )
    with unanswered(tmp_path / "hung"):
        (found,) = in_time(60, lambda: [*checkup._channels(settings)], TimeoutError())
    assert (found.level, found.found) == (Level.FAIL, "no answer within 1 s")


@pytest.mark.parametrize("place", ["site", "other"])
def test_a_timer_is_the_schedule_of_the_site_in_its_service(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job("iobands-daily", tmp_path / place, ("iobands", "run"), {}, "day", 317)
    timer = "Mon 2026-11-30 05:17:00 UTC 10h left - - iobands-daily.timer iobands-daily.service"

    def answer(*command: str) -> str:
        if command[0] != "systemctl":
            return ""
        return job.units() if command[-2:] == ("cat", "iobands-daily.service") else timer

    monkeypatch.setattr(measure, "output_of", answer)
    assert (checkup._schedule(tmp_path / "site").level is Level.OK) == (place == "site")


@pytest.mark.usefixtures("accepted")
def test_a_schedule_and_a_channel_that_answers(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    crontab = programs / "crontab"
    lines = ("12 * * * * cd {} && iobands run --suspects", "17 5 * * * cd {} && iobands run")
    echoed = "\n".join(lines).format(site, site)
    crontab.write_text(f"#!/bin/sh\ncat <<'END'\n{echoed}\nEND\n")
    crontab.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        url = f"http://127.0.0.1:{port}/hook"
        text = f"schema: 1\nchannels: {{chat: {{type: webhook, url: '{url}'}}}}\n"
        (site / "config" / "notify.yaml").write_text(text)
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        status, said = doctor_here(site, monkeypatch)
    assert status == 1  # no session yet
    assert "OK schedule: crontab: 17 5 * * *" in said
    assert f"OK channel chat: 127.0.0.1, port {port}, answers" in said


@pytest.mark.usefixtures("without_reframe")
def test_an_issue_tracker_without_a_url_is_the_public_one(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: socket.socket())
    monkeypatch.setenv("TRACKER_TOKEN", "tr4cker-t0ken")
    rest = "project: storage/io, token: {env: TRACKER_TOKEN}"
    (site / "config" / "notify.yaml").write_text(
        f"schema: 1\nchannels:\n  lab: {{type: gitlab, {rest}}}\n  hub: {{type: github, {rest}}}\n"
    )
    said = doctor_here(site, monkeypatch)[1]
    assert "OK channel lab: gitlab.com, port 443, answers" in said
    assert "OK channel hub: api.github.com, port 443, answers" in said


@pytest.mark.usefixtures("without_reframe")
def test_an_address_that_no_server_can_have_is_named(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site / "config" / "notify.yaml").write_text(
        "schema: 1\nchannels:\n"
        "  far: {type: webhook, url: 'https://127.0.0.1:99999/hook'}\n"
        "  odd: {type: webhook, url: 'https://[127.0.0.1/hook'}\n"
    )
    said = doctor_here(site, monkeypatch)[1]
    assert "FAIL channel far: Port out of range 0-65535" in said
    assert "FAIL channel odd: Invalid IPv6 URL" in said


@pytest.mark.usefixtures("without_reframe")
def test_the_store_has_a_line(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, settings = tmp_path / "store", site / "config" / "store.yaml"

    def line(text: str = "") -> str:
        """Return the line about the store, from its level on."""
        if text:
            settings.write_text(text)
        before, _, after = doctor_here(site, monkeypatch)[1].partition(" store: ")
        return f"{before.rpartition(' ')[2]} {after.partition(' OK notif')[0]}"

    assert line() == "OK none named in config/store.yaml"
    said = line("uri: x\n")
    assert (said.startswith("FAIL "), "store.yaml, line 1" in said) == (True, True)
    said = line(f"url: {store}\n")
    there_is_none = f"WARN {store}: no store there; check the URL, or push first the first push"
    assert (said.startswith(there_is_none), store.exists()) == (True, False)
    now = datetime.now(timezone.utc)
    write_perflog(site / "perflogs", [row(job_completion_time=now.isoformat(), system="local")])
    assert call("push")[0] == 0
    assert line() == f"OK {store} answers, schema 1; the last push was just now"
    write_pushed(site / "perflogs", str(store), Pushed(when=now - timedelta(days=3, hours=1)))
    said = line()
    assert said.startswith("WARN ")
    assert said.endswith("it lacks what is new for 3 days: no push has finished iobands push")
    (store / "iobands-store").write_text("9\n")
    said = line()
    assert said.startswith("FAIL ")
    assert "a store of schema 9; this version knows up to 1" in said
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    settings.chmod(0o644)
    for url in (f"me:very-secret@127.0.0.1:{port}/io", f"me@127.0.0.1:{port}/io?password=secret"):
        said = line(f"url: postgresql://{url}\n")
        assert said.startswith(f"WARN everybody can read the password in {settings} move it to ~")
        assert f"store: postgresql://me@127.0.0.1:{port}/io: " in said
    settings.chmod(0o640)
    said = line()
    assert said.startswith(f"FAIL postgresql://me@127.0.0.1:{port}/io: ")
    assert ("secret" in said, "never pushed correct it, then try" in said) == (False, True)
    monkeypatch.setattr("iobands.commands.checkup._SERVER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        said = line(f"url: postgresql://127.0.0.1:{port}/io?connect_timeout=2\n")
    assert f"postgresql://127.0.0.1:{port}/io: no answer within 0.2 s" in said


SECRETS = (
    "s3cr3t-of-mail",
    "hunter2",
    "glpat-abcdef",
    "eyJhbGciOi.xyz",
    "/home/ada",
    "k3y",
    "B0/abcDEF",
    "ghp_A1b2C3",
    "s3ss10n",
    "b3BlbnNzaC1r",
)


def test_a_report_has_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "gone" / "home"))
    monkeypatch.setenv("HOOK", "https://hooks.slack.com/services/T0")
    secret({"env": "HOOK"})  # a prefix of another variable's name
    perflogs = tmp_path / "perflogs"
    perflogs.mkdir()
    (perflogs / "iobands-run.log").write_text(
        "curl https://ada:hunter2@git.example.org/x\n"
        "password: s3cr3t-of-mail\nGITLAB_TOKEN=glpat-abcdef\n"
        "Authorization: Bearer eyJhbGciOi.xyz\n"
        "/home/ada/iobands/checks: no such file\n"
        f"{tmp_path}/gone/home/site: kept\n"
        "{'api_key': 'k3y'}\n"
        "posted to https://hooks.slack.com/services/T0/B0/abcDEF\n"
        "cloned with ghp_A1b2C3\nCookie: session=s3ss10n\n"
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r\n-----END OPENSSH PRIVATE KEY-----\n"
        "scratch fpp write_bw 4.01 GiB/s\n"
    )
    text = report_of([Line("site", "/home/ada/site: no config/systems")], tmp_path)
    assert [each for each in SECRETS if each in text] == []
    assert "gone/home" not in text
    assert "scratch fpp write_bw 4.01 GiB/s" in text
    assert "~/site: no config/systems" in text
    assert "https://…@git.example.org/x" in text


@pytest.mark.parametrize("home", ["/", None])
def test_a_report_of_a_user_without_a_home(
    home: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if home:
        monkeypatch.setenv("HOME", home)
    else:
        monkeypatch.delenv("HOME")
        monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)  # as for a user id without a name
    assert "site: /opt/site: no config" in report_of([Line("site", "/opt/site: no config")], None)


@pytest.mark.parametrize(
    ("version", "requirement", "wanted"),
    [
        ("4.10.4", "reframe-hpc<4.11,>=4.10", True),
        ("4.10", "reframe-hpc<4.11,>=4.10", True),
        ("4.11.0", "reframe-hpc<4.11,>=4.10", False),
        ("4.9.2", "reframe-hpc<4.11,>=4.10", False),
        ("2026.3", "tzdata>=2024.1", True),
        ("4.11.0.dev1", "reframe-hpc<4.11,>=4.10", False),
    ],
)
def test_ranges(version: str, requirement: str, wanted: bool) -> None:
    assert is_within(version, requirement) is wanted


@pytest.mark.usefixtures("accepted")
def test_a_directory_of_the_root_file_system_is_warned_of(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = site / "config" / "systems" / "local.py"
    file.write_text(file.read_text().replace("**_mounted_as(_disk),", '"path": "/var/tmp",'))
    is_there = Path("/var/tmp").stat().st_dev == Path("/").stat().st_dev
    said = "WARN file system disk: /var/tmp is on the root file system; iobands canary calls it"
    assert (said in doctor_here(site, monkeypatch)[1]) == is_there


@pytest.mark.usefixtures("accepted")
@pytest.mark.needs("mounts")
@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="no FUSE")
def test_a_file_system_that_does_not_answer_holds_up_nothing(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkup, "_FILE_SYSTEM_SECONDS", 1)
    file = site / "config" / "systems" / "local.py"
    with unanswered(tmp_path / "disk") as disk:
        text = file.read_text().replace("**_mounted_as(_disk),", f'"path": "{disk}",')
        file.write_text(text)
        status, said = doctor_here(site, monkeypatch)
    assert status == 3
    assert f"FAIL file system disk: {disk}: no answer within 1 s check its servers" in said
    assert "OK file system memory: /dev/shm" in said


def test_a_file_system_of_two_partitions_has_one_line(
    new_site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = new_site / "config" / "systems" / "local.py"
    more = 'system["partitions"] += [{**system["partitions"][0], "name": "other"}]'
    path.write_text(f"{path.read_text('utf-8')}\n{more}\n", encoding="utf-8")
    _, said = doctor_here(new_site, monkeypatch)
    assert said.count("file system disk: ") == 1
    assert said.count("file system memory: ") == 1


@pytest.mark.usefixtures("without_reframe")
def test_a_damaged_record_of_the_last_session_is_named(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site / "perflogs").mkdir(exist_ok=True)
    record = site / "perflogs" / "last-session.json"
    record.write_text('{"schema": 1, "ses')
    _, said = doctor_here(site, monkeypatch)
    assert f"WARN session: {record}: not the record of a session; the next session" in said
    assert "none by iobands run" not in said


@pytest.mark.needs("other users")
def test_a_colleague_hears_whose_site_it_is(site: Path) -> None:
    (site / "perflogs").mkdir(exist_ok=True)
    rights = ("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search")
    before = ("setpriv", "--reuid", "1", "--regid", "1", "--clear-groups", *rights)
    status, said = doctor(site, before)
    assert status == 3
    assert "OK site file: local, 2 smoke checks" in said
    assert re.search(r"it belongs to (\S+); run iobands as \1: sudo -u \1 ", said)
    assert "chown" not in said
    assert not (site / "reframe.log").exists()


def test_another_host_is_told_how_to_name_the_system(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(site, '"hostnames": [".*"]', '"hostnames": ["^no-such-host$"]')
    assert "or set RFM_SYSTEM=NAME" in doctor_here(site, monkeypatch)[1]
    monkeypatch.setenv("RFM_SYSTEM", "local")
    assert "OK site file: local, 2 smoke checks" in doctor_here(site, monkeypatch)[1]


@pytest.mark.usefixtures("without_reframe")
def test_the_last_session_has_an_age(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began = (datetime.now(timezone.utc) - timedelta(hours=5, minutes=5)).isoformat()
    last = {"schema": 1, "session": "a", "tag": "daily", "system": "local", "host": "login1"}
    last |= {"began": began, "ended": began, "how": "completed"}
    (site / "perflogs" / "last-session.json").write_text(json.dumps(last))
    _, said = doctor_here(site, monkeypatch)
    assert "OK session: the last one began 5 hours ago: completed" in said
