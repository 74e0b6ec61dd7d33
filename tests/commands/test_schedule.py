"""The crontab lines, the script and the units, run like a daemon would or checked by its tools."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from iobands.commands.main import app
from iobands.measure.schedule import MODULES as MODULES_SYSTEMS
from iobands.measure.schedule import Job, is_safe
from tests.commands.calling import call
from tests.conftest import Command
from tests.fault_table import Observed

#: A name with characters that are special to a shell, a crontab or a unit file.
ODD = 'a site\'s $HOME, 5 % "full"'

#: A stand-in for `iobands`, which notes how it was called.
PROGRAM = """\
#!/bin/sh
printf '%s\\n' "$PWD" "$IOBANDS_ACCOUNT" "$PATH" "$@" > "$PWD/ran"
"""


#: A stand-in for the shell function `module`; Debian's packages have real ones.
STAND_IN = """\
module() { [ "$1" != load ] || . "$MODULEPATH/$2"; }
export -f module
export MODULEPATH
"""
MODULES = {
    "a function": None,
    "Environment Modules": Path("/usr/share/modules/init/bash"),
    "Lmod": Path("/usr/share/lmod/lmod/init/profile"),
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with an odd name, and a Python next to a program iobands that notes how it is run."""
    for name in MODULES_SYSTEMS:
        monkeypatch.delenv(name, raising=False)
    root = tmp_path / ODD
    (root / "config").mkdir(parents=True)
    (root / "config" / "systems").mkdir()
    (root / "config" / "notify.yaml").write_text("schema: 1\nchannels: {}\n")
    program = root / "bin" / "iobands"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    monkeypatch.chdir(root)
    return root


def entry(*arguments: str) -> str:
    system = () if "--suspects" in arguments else ("--system", "here")
    command = ["schedule", *arguments, "--account", "z 19", *system]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    return done.stdout


def run_as_daemon(command: str, root: Path, home: str = "/", cwd: Path = Path("/")) -> list[str]:
    """Run a command with the environment that cron gives it; return what the program was given."""
    given = [f"HOME={home}", "LOGNAME=x", "SHELL=/bin/sh", "PATH=/usr/bin:/bin"]
    subprocess.run(["env", "-i", *given, "/bin/sh", "-c", command], cwd=cwd, check=True)
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
    if crontab:  # Debian's crontab can check a file without installing it
        (root / "tab").write_text(line + "\n")
        checks = ([crontab, option, "tab"] for option in ("-T", "-n"))  # by its version
        assert any(subprocess.run(each, cwd=root, check=False).returncode == 0 for each in checks)


def test_a_line_asks_only_for_what_is_installed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the core alone, each session would end before it measures."""
    monkeypatch.setattr("iobands.commands.cli.find_spec", lambda _: None)
    hourly, daily = entry("cron").splitlines()[1::2]
    assert (hourly.partition(" run ")[2], daily.partition(" run ")[2]) == (
        *("--suspects", "--tag daily --system here"),
    )
    status, said = call("schedule", "cron", "--report", "page")
    assert (status, "iobands schedule --report needs " in said) == (3, True)


def test_a_line_that_sends_messages_needs_to_know_to_whom(root: Path) -> None:
    (root / "config" / "notify.yaml").unlink()
    status, said = call("schedule", "cron", "--notify")
    assert (status, "--notify: " in said, "notify.yaml: no such file; write" in said) == (
        *(3, True, True),
    )


@pytest.mark.parametrize("kind", MODULES)
def test_a_line_of_a_shell_with_modules(
    root: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    init = MODULES[kind]
    if init and not init.is_file():
        pytest.skip(f"{init} is not installed")
    home, modulefiles = root / "home", root.parent / "modulefiles"
    home.mkdir()
    (modulefiles / "io").mkdir(parents=True)
    form = "setenv IO_MODULE loaded" if init else "export IO_MODULE=loaded"
    (modulefiles / "io" / "1.0").write_text(f"#%Module1.0\n{form}\n")
    profile = home / ".bash_profile"
    profile.write_text(f"MODULEPATH={modulefiles}\n{f'. {init}' if init else STAND_IN}\n")
    with profile.open("a") as stream:
        stream.write(f"MODULEPATH={modulefiles}\nPATH=$PATH:/of/profile\n")
    program = root / "bin" / "iobands"
    # as in a job, whose shell inherits the environment of the program
    job = "bash -c 'module load io/1.0; echo $IO_MODULE' >> ran"
    program.write_text(f"{PROGRAM.replace('/bin/sh', '/bin/bash')}{job}\n")
    monkeypatch.setenv("LMOD_CMD", "/of/the/shell/that/prints/the/line")
    *_, line = entry("cron").splitlines()
    command = re.fullmatch(r"\d+ 5 \* \* \*  (.*)", line)[1].replace(r"\%", "%")
    assert run_as_daemon(command, root, str(home))[-1] == "loaded"
    assert (root / "ran").read_text().splitlines()[2].endswith(":/of/profile")
    (root / "ran").unlink()
    (root / "script").write_text(entry("script"))
    assert run_as_daemon("/bin/sh script", root, str(home), root)[-1] == "loaded"


def test_a_script(root: Path) -> None:
    script = root / "script"
    script.write_text(entry("script", "--tag", "weekly"))
    assert script.read_text().startswith("#!/bin/sh\n")
    assert run_as_daemon("/bin/sh script", root, cwd=root)[:3] == ["run", "--tag", "weekly"]


def test_lines_of_scrontab(root: Path) -> None:
    lines = entry("scron").splitlines()
    options = [line for line in lines if line.startswith("#SCRON")]
    assert len(options) == 10
    # the job keeps its number, and so the name of its output, from night to night
    assert options.count("#SCRON --open-mode=append") == 2
    assert options[0] == "#SCRON '--account=z 19'"
    assert options[1] == "#SCRON --job-name=iobands-suspects"
    hourly, daily = (line for line in lines if not line.startswith("#"))
    command = re.fullmatch(r"\d+ \* \* \* \*  (.*)", hourly)[1]
    assert run_as_daemon(command, root)[:2] == ["run", "--suspects"]
    command = re.fullmatch(r"\S+ 5 \* \* \*  (.*)", daily)[1]
    given = run_as_daemon(command, root)
    assert given[:3] == ["run", "--tag", "daily"]
    assert given[-2:] == ["--limit", "11h30m"]  # before Slurm ends it


def test_units_of_systemd(root: Path) -> None:
    text = entry("systemd")
    named = re.findall(r"# ~/.config/systemd/user/(\S+)\n(.*?)(?=\n# ~/|\Z)", text, re.DOTALL)
    units = dict(named)
    assert text.count("\n\n# ~/") == 3
    assert list(units) == [
        f"iobands-{name}.{kind}"
        for name in ("suspects", "daily-here")
        for kind in ("service", "timer")
    ]
    assert re.search(r"OnCalendar=\*-\*-\* \*:\d\d:00\n", units["iobands-suspects.timer"])
    assert re.search(r"OnCalendar=\*-\*-\* 05:\d\d:00\n", units["iobands-daily-here.timer"])
    weekly = entry("systemd", "--tag", "weekly", "--at", "23:59", "--jitter", "0")
    assert "OnCalendar=Sun *-*-* 23:59:00\n" in weekly
    # decode the line as in systemd.service(5): C escapes in double quotes, then $$ and %%
    line = re.search(r'ExecStart=/bin/sh -c "(.*)"\n', units["iobands-suspects.service"])[1]
    command = re.sub(r"\\(.)", r"\1", line).replace("$$", "$").replace("%%", "%")
    assert run_as_daemon(command, root)[:2] == ["run", "--suspects"]
    analyze = shutil.which("systemd-analyze")
    if analyze:
        for name, content in units.items():
            (root / name).write_text(content)
        paths = [str(root / name) for name in units]
        done = subprocess.run(
            [analyze, "verify", "--man=no", *paths], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_a_delay_over_midnight_is_on_monday(root: Path) -> None:
    job = Job("x", root, (), {}, "week", at=24 * 60)
    assert job.cron_time() == "0 0 * * 1"
    assert replace(job, at=23 * 60 + 59).cron_time() == "59 23 * * 0"
    assert replace(job, every="day").cron_time() == "0 0 * * *"
    assert replace(job, every="hour").cron_time() == "0 * * * *"


def test_a_session_may_begin_several_times_a_day(root: Path) -> None:
    job = Job("x", root, (), {}, "12h", at=17 * 60 + 5)
    assert job.cron_time() == "5 5,17 * * *"
    assert replace(job, every="6h", at=24 * 60).cron_time() == "0 0,6,12,18 * * *"
    assert "OnCalendar=*-*-* 5,17:05:00" in job.units()
    if analyze := shutil.which("systemd-analyze"):
        shown = subprocess.check_output([analyze, "calendar", "*-*-* 5,17:05:00"], text=True)
        assert "*-*-* 05,17:05:00" in shown


def planted(directory: Path, mode: int) -> Path:
    """Make a program flux in a new directory of a mode, and return the directory."""
    directory.mkdir()
    (directory / "flux").write_text("#!/bin/sh\n")
    (directory / "flux").chmod(0o755)
    directory.chmod(mode)
    return directory


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(name, marks=pytest.mark.fault("people", name, "unknown; no line is printed"))
        for name in ("`.` in the PATH of cron's line", "a PATH where others may write")
    ],
)
def test_no_line_runs_what_others_can_put_there(
    fault: str, root: Path, iobands: Command, observed: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = "/usr/bin:/bin"
    place = planted(root / "theirs", 0o755 if "`.`" in fault else 0o1777)
    command = ("schedule", "cron", "--site", str(root))
    monkeypatch.setenv("PATH", f"{'.' if '`.`' in fault else place}:{usual}")
    done = iobands(*command, cwd=place)
    assert (done.returncode, done.stdout) == (3, "")
    assert "flux would be run from" in done.stderr
    # a program in a directory that nobody else can write to is used instead
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{planted(root / 'ours', 0o775)}")
    again = iobands(*command, cwd=place)
    assert "/ours:/" in again.stdout
    assert "theirs" not in again.stdout
    observed(**done.cells(), next_run=again.returncode == 0)


def test_a_directory_below_one_that_others_can_write_to_is_theirs(root: Path) -> None:
    below = planted(root / "open", 0o777) / "bin"
    below.mkdir(mode=0o755)
    assert not is_safe(below)
    (root / "link").symlink_to(below)
    assert not is_safe(root / "link")
    (root / "open").chmod(0o1777)
    assert is_safe(below)


def test_what_cannot_be_scheduled(root: Path) -> None:
    assert call("schedule", "cron", "--at", "25:00")[0] == 3
    assert call("schedule", "cron", "--system", "a\nb")[0] == 3
    assert call("schedule", "cron", "--site", "/nowhere")[0] == 3
    tags = ("smoke", "daily", "weekly", "full")
    begins = {entry("cron", "--tag", tag).split("\n")[1][:5] for tag in tags}
    assert len(begins) > 1  # they do not begin together, whatever the name of this directory


def test_a_site_file_with_a_mistake_is_named_beside_the_lines(
    tmp_path: Path, iobands: Command
) -> None:
    systems = tmp_path / "config" / "systems"
    systems.mkdir(parents=True)
    (systems / "here.py").write_text("system = {\n")
    done = iobands("schedule", "cron", "--system", "here")
    assert (done.returncode, done.stdout.count("/iobands run ")) == (0, 2)
    mistake = f"{systems}/here.py: SyntaxError: '{{' was never closed (here.py, line 1)"
    assert done.stderr == f"iobands: a session would fail now: {mistake}\n"


def test_the_daily_line_comes_with_one_for_every_hour(root: Path) -> None:
    _, hourly, *_ = entry("cron", "--notify").splitlines()
    time, command = re.fullmatch(r"(\S+ \* \* \* \*)  (.*)", hourly).groups()
    assert 0 <= int(time.split()[0]) < 60
    assert run_as_daemon(command.replace(r"\%", "%"), root) == [
        *("run", "--suspects", "--report", "dashboard", "--notify")
    ]
    (root / "script").write_text(entry("script", "--suspects"))
    assert run_as_daemon("/bin/sh script", root, cwd=root)[:2] == ["run", "--suspects"]
    # another tag gets only its own line, at a time at which the daily session does not run
    _, weekly = entry("cron", "--tag", "weekly").splitlines()
    assert re.match(r"\d+ 17 \* \* 0  ", weekly)
