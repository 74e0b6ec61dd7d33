"""Entries for cron, systemd and scrontab, each run as its daemon would or checked by it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.calling import call

#: What a shell, a crontab and a unit file would each take for something else.
ODD = 'a site\'s $HOME, 5 % "full"'

#: Stands for the program that a session runs.
PROGRAM = """\
#!/bin/sh
printf '%s\\n' "$PWD" "$IOBANDS_ACCOUNT" "$PATH" "$@" > "$PWD/ran"
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with an odd name, and a Python beside which a program iobands keeps how it is run."""
    root = tmp_path / ODD
    (root / "config").mkdir(parents=True)
    (root / "config" / "site.py").touch()
    program = root / "bin" / "iobands"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    monkeypatch.chdir(root)
    return root


def entry(*arguments: str) -> str:
    status, text = call("schedule", *arguments, "--account", "z 19", "--system", "here")
    assert status == 0, text
    return text


def run_as_daemon(command: str, root: Path) -> list[str]:
    """Run a command with the environment that cron gives it; return what the program was given."""
    given = ["HOME=/", "LOGNAME=x", "SHELL=/bin/sh", "PATH=/usr/bin:/bin"]
    subprocess.run(["env", "-i", *given, "/bin/sh", "-c", command], cwd="/", check=True)
    directory, account, path, *rest = (root / "ran").read_text().splitlines()
    assert (directory, account) == (str(root), "z 19")
    assert path.split(":")[0] == str(root / "bin")
    assert {"/usr/bin", "/bin"} <= set(path.split(":"))
    return rest


def test_a_line_of_cron(root: Path) -> None:
    *_, line = entry("cron", "--notify").splitlines()
    time, command = re.fullmatch(r"(\S+ \S+ \* \* \*)  (.*)", line).groups()
    minute, hour = map(int, time.split()[:2])
    assert 5 * 60 <= hour * 60 + minute <= 5 * 60 + 30
    assert not re.search(r"(?<!\\)%", command)  # which cron takes for a line break
    assert run_as_daemon(command.replace(r"\%", "%"), root) == [
        *("run", "--tag", "daily", "--report", "dashboard", "--system", "here", "--notify")
    ]
    crontab = shutil.which("crontab")
    if crontab:  # Debian's cron checks a file without installing it
        (root / "tab").write_text(line + "\n")
        assert subprocess.run([crontab, "-T", "tab"], cwd=root, check=False).returncode == 0


def test_lines_of_scrontab(root: Path) -> None:
    *comments, line = entry("slurm", "--tag", "weekly", "--at", "23:59").splitlines()
    assert "#SCRON --account=z 19" in comments
    time, command = re.fullmatch(r"(\S+ \S+ \* \* 0)  (.*)", line).groups()
    minute, hour = map(int, time.split()[:2])
    assert (hour, 0 <= minute < 60) in {(23, True), (0, True)}
    assert run_as_daemon(command, root)[:3] == ["run", "--tag", "weekly"]


def test_units_of_systemd(root: Path, tmp_path: Path) -> None:
    text = entry("systemd", "--at", "4:05", "--jitter", "20")
    assert "OnCalendar=*-*-* 04:05:00\nRandomizedDelaySec=20min\n" in text
    analyze = shutil.which("systemd-analyze")
    if not analyze:
        pytest.skip("no systemd-analyze")
    _, *parts = re.split(r"^# ~/.config/systemd/user/(\S+)\n", text, flags=re.MULTILINE)
    units = dict(zip(parts[::2], parts[1::2], strict=True))
    assert list(units) == ["iobands-daily.service", "iobands-daily.timer"]
    for name, content in units.items():
        (tmp_path / name).write_text(content)
    done = subprocess.run(
        [analyze, "verify", "--man=no", *(str(tmp_path / name) for name in units)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    calendar = [analyze, "calendar", "*-*-* 04:05:00"]
    assert subprocess.run(calendar, capture_output=True, check=False).returncode == 0


def test_what_cannot_be_scheduled(root: Path) -> None:
    assert call("schedule", "cron", "--at", "25:00")[0] == 3
    assert call("schedule", "cron", "--system", "a\nb")[0] == 3
    assert call("schedule", "cron", "--root", "/nowhere")[0] == 3
    tags = ("smoke", "daily", "weekly", "full")
    begins = {entry("cron", "--tag", tag).split("\n")[1][:5] for tag in tags}
    assert len(begins) > 1  # they do not begin together, whatever the name of this directory
