"""The command `iobands`: exit statuses and messages, as cron and people see them."""

from __future__ import annotations

import configparser
import json
import os
import re
import subprocess
import sys
import sysconfig
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import iobands
from iobands import __version__
from tests.commands.calling import alike
from tests.commands.small_site import unknown
from tests.conftest import Command
from tests.factory import COLUMNS, daily, line, write_bands, write_perflog, write_session
from tests.sites import whole_demo
from tests.views.sites import site


def hours_ago(hours: float) -> str:
    when = datetime.now(timezone.utc) - timedelta(hours=hours)
    return when.isoformat(timespec="seconds")


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """Perflogs with a healthy series and one that is calibrating."""
    rows = [line(job_completion_time=hours_ago(1))]
    rows += [line(job_completion_time=hours_ago(1), perf_var="read_bw", perf_value=2)]
    write_bands(tmp_path / "config" / "bands")
    write_perflog(tmp_path / "perflogs", rows)
    return tmp_path


def test_ok(good: Path, iobands: Command) -> None:
    done = iobands("status")
    assert (done.returncode, done.stderr) == (0, "")
    first = done.stdout.splitlines()[0]
    assert first.startswith("IOBANDS OK: ")
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("redirected", [">&-", "2>&-", "| true"])
def test_the_exit_status_does_not_depend_on_who_reads(good: Path, redirected: str) -> None:
    write_perflog(good / "perflogs", daily([1.5] * 5, last=4))
    status = f"{sys.executable} -m iobands status {redirected}"
    done = subprocess.run(
        ["bash", "-c", f"{status}; exit ${{PIPESTATUS[0]}}"],
        cwd=good,
        env={**os.environ, "PYTHONPATH": str(Path(iobands.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (3, "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise ImportError('cannot import name X')\n", "cannot import name X"),
        ("print 'Python 2'\n", "Missing parentheses in call to 'print'"),
    ],
)
def test_a_half_upgraded_installation_is_named(good: Path, text: str, said: str) -> None:
    broken = good / "other" / "msgspec"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "iobands", "status"],
        cwd=good,
        env={
            **os.environ,
            "PYTHONPATH": f"{broken.parent}:{Path(iobands.__file__).parents[1]}",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr.startswith(f"IOBANDS UNKNOWN: {said}")
    # the doctor needs the same packages
    assert done.stderr.endswith(
        ": half upgraded or damaged; unset PYTHONPATH, or see iobands doctor\n"
    )
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("iobands", "No module named 'iobands.commands'"),
        ("typer", "No module named 'typer.core'"),
    ],
)
def test_an_incomplete_installation_is_unknown_in_one_line(
    missing: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / missing).mkdir()
    (tmp_path / missing / "__init__.py").touch()
    here = Path(iobands.__file__).parent
    program = configparser.ConfigParser()
    program.read(here.parents[1] / "setup.cfg")
    called = program["options.entry_points"]["console_scripts"].split()[-1]
    module, function = called.split(":")
    # -S, because the finder of an editable installation would add what another iobands lacks
    paths = (tmp_path, here.parent, sysconfig.get_path("purelib"))
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"from {module} import {function}; {function}()", "status"],
        env={**os.environ, "PYTHONPATH": ":".join(map(str, paths))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, "")
    place = tmp_path / "iobands" if missing == "iobands" else here
    assert done.stderr == (
        f"IOBANDS UNKNOWN: {place} is incomplete: {said}; "
        "unset PYTHONPATH, or install iobands again\n"
    )


def started_with(module: str, text: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Start `iobands status` with `text` in place of a module that it imports."""
    (directory / f"{module}.py").write_text(text)
    paths = (directory, Path(iobands.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-c", "import iobands_program; iobands_program.entry()", "status"],
        env={**os.environ, "PYTHONPATH": ":".join(map(str, paths))},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_package_of_an_old_python_is_unknown_in_one_line(tmp_path: Path) -> None:
    done = started_with("yaml", "print 'Python 2'\n", tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert "; unset PYTHONPATH, or install iobands again\n" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_interrupt_while_it_starts_ends_it_without_a_traceback(tmp_path: Path) -> None:
    text = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)\n"
    done = started_with("yaml", text, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_home_that_cannot_be_written_is_unknown_in_one_line(tmp_path: Path) -> None:
    # typer looks for a shell among the processes above it
    command = f"{sys.executable} -m iobands --install-completion bash; exit $?"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env={
            **os.environ,
            "HOME": "/dev/null",
            "PYTHONPATH": str(Path(iobands.__file__).parents[1]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("IOBANDS UNKNOWN: /dev/null")
    assert len(done.stderr.splitlines()) == 1


def test_found_from_within_the_repository(good: Path, iobands: Command) -> None:
    (good / "config" / "systems").mkdir(parents=True)
    deep = good / "checks" / "mixins"
    deep.mkdir(parents=True)
    assert iobands("status", cwd=deep).stdout.startswith("IOBANDS OK: ")


def test_a_missing_sample_is_unknown(tmp_path: Path, iobands: Command) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.5] * 5, last=4))  # days before a day of 2026
    done = iobands("status")
    assert done.returncode == 3
    assert done.stdout.startswith("IOBANDS UNKNOWN: ")


def test_no_perflogs(tmp_path: Path, iobands: Command) -> None:
    done = iobands("status")
    assert (done.returncode, done.stdout) == (3, "")
    remedy = "cd into it, or give --site DIR or --store URL"
    outside = f"IOBANDS UNKNOWN: not in the directory of a site: {remedy}\n"
    assert done.stderr == outside
    assert iobands("compare", "transport").stderr == outside
    (tmp_path / "config" / "systems").mkdir(parents=True)
    done = iobands("status")
    assert done.stderr.replace(f"{tmp_path}/", "") == (
        "IOBANDS UNKNOWN: perflogs: there are no perflogs; measure first with `iobands run`, or "
        "give their directory with --perflogs\n"
    )


@pytest.mark.parametrize("words", [("report", "loop"), ("import", "loop")])
def test_a_link_to_itself_is_unknown_in_one_line(
    good: Path, iobands: Command, words: tuple[str, ...]
) -> None:
    (good / "loop").symlink_to("loop")
    assert "loop" in unknown(iobands(*words)).stderr


def test_empty_perflogs(tmp_path: Path, iobands: Command) -> None:
    (tmp_path / "perflogs").mkdir()
    done = iobands("status")
    assert done.returncode == 3
    nothing = "no samples; measure with: iobands run"
    assert done.stdout.startswith(f"IOBANDS UNKNOWN: {nothing}\n")
    assert done.stdout.endswith("all times are UTC\n")
    for command in (("table",), ("calibrate",), ("explain", "disk")):
        said = iobands(*command).stderr
        assert (said.startswith("IOBANDS UNKNOWN: "), said.endswith(f"{nothing}\n")) == (True, True)
    # an alert that says why
    write_session(tmp_path / "perflogs", datetime(2099, 1, 1, tzinfo=timezone.utc))
    assert iobands("table").stderr == "IOBANDS UNKNOWN: no samples; see: iobands status\n"


def test_broken_bands(good: Path, iobands: Command) -> None:
    (good / "config" / "bands" / "here.yaml").write_text("schema: 1\nsystem: here\n")
    done = iobands("status")
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.startswith("IOBANDS UNKNOWN: alerts: 1 failed; ")
    assert "  failed  bands of here  config/bands/here.yaml, line 1: epochs is" in done.stdout


def test_missing_bands(good: Path, iobands: Command) -> None:
    done = iobands("status", "--config", "nowhere")
    assert done.returncode == 3
    assert "nowhere: no such directory" in done.stderr


def test_systems(good: Path, iobands: Command) -> None:
    assert iobands("status", "--system", "here").returncode == 0
    done = iobands("status", "--system", "there")
    assert done.returncode == 3
    assert "no perflogs of system there; systems there: here" in done.stderr


def test_json(good: Path, iobands: Command) -> None:
    done = iobands("status", "--format", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["exit_status"] == 0


def test_rejected_lines_are_counted(good: Path, iobands: Command) -> None:
    path = write_perflog(good / "perflogs", ["x"] * 8, name="Bad.log")
    assert path.read_text().startswith(COLUMNS)
    done = iobands("status")
    assert done.returncode == 0
    assert "; 8 lines rejected" in done.stdout.splitlines()[0]
    assert done.stdout.count("Bad.log:") == 5
    assert iobands("status", "--rejected").stdout.count("Bad.log:") == 8


def test_ascii_where_nothing_else_can_be_sent(good: Path, iobands: Command) -> None:
    write_perflog(good / "perflogs", daily([1.5] * 5 + [0.3]))
    assert "(\N{MINUS SIGN}80 %)" in iobands("status").stdout
    done = iobands("status", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.stdout.isascii()
    assert "(-80 %)" in done.stdout


def test_every_command_writes_what_the_locale_has(tmp_path: Path, iobands: Command) -> None:
    whole_demo(tmp_path, datetime.now(timezone.utc))
    for words in ("alerts", "targets", "explain 2", "explain 3", "advise", "table"):
        done = iobands(*words.split(), PYTHONIOENCODING="latin-1")
        assert done.returncode == 0, done.stderr
        assert "?" not in done.stdout
    said = iobands("explain", "2", PYTHONIOENCODING="latin-1").stdout
    level, ratio = r"GiB/s, was [\d.]+ \(-\d\d %\)", r"0\.\d\d × \(0\.\d\d-0\.\d\d\)"
    assert re.search(rf"  [1-8]+\|[1-8]+  [\d.]+ {level}  {ratio}", said)


@pytest.mark.parametrize(("form", "last"), [("html", "writing"), ("svg", "drawing")])
def test_report_says_on_a_terminal_that_it_works(form: str, last: str, good: Path) -> None:
    """With thousands of series, it takes a while."""
    ours, terminal = os.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "iobands", "report", "new", "--format", form],
        cwd=good,
        env={**os.environ, "PYTHONPATH": str(Path(iobands.__file__).parents[1]), "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=terminal,
        check=True,
    )
    os.close(terminal)  # then reading does not wait
    said = os.read(ours, 1 << 16).decode()
    assert ("iobands report: judging" in said, f"iobands report: {last}" in said) == (True, True)
    assert f"{good}/new".encode() in done.stdout  # where it may be redirected


def test_report(good: Path, iobands: Command) -> None:
    done = iobands("report", "dashboard")
    assert done.returncode == 0
    assert f"{good.resolve()}/dashboard/index.html" in done.stdout
    assert (good / "dashboard" / "index.html").is_file()
    assert iobands("report", "figures", "--format", "pdf").returncode == 0
    assert {each.read_bytes()[:5] for each in (good / "figures").iterdir()} == {b"%PDF-"}
    # a mistake in a site file hides the paths, but does not prevent the page
    (good / "config" / "systems").mkdir()
    (good / "config" / "systems" / "here.py").write_text("system = {")
    done = iobands("report", "new")
    assert (done.returncode, (good / "new" / "index.html").is_file()) == (0, True)
    assert "here.py: SyntaxError: " in done.stderr
    # users need what it says, so a page for them is not written
    assert "here.py: SyntaxError: " in unknown(iobands("report", "users", "--public")).stderr
    (good / "file").write_text("")
    done = iobands("report", "file")
    assert done.returncode == 3
    assert "\nIOBANDS UNKNOWN: file" in done.stderr
    done = iobands("report", "/proc/dashboard")
    said = "IOBANDS UNKNOWN: /proc/dashboard: No such file or directory\n"
    assert (done.returncode, done.stderr.endswith(said)) == (3, True)


@pytest.mark.parametrize(
    "arguments",
    [("nonsense",), ("status", "--nonsense"), ("status", "--false-alarms", "x"), ("report",)],
)
def test_usage_errors_are_unknown_and_not_critical(
    arguments: tuple[str, ...], iobands: Command
) -> None:
    done = iobands(*arguments)
    assert done.returncode == 3
    assert "Usage:" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_usage_error_says_what_was_meant_in_words_of_its_own(iobands: Command) -> None:
    # releases of click differ in what they suggest
    assert "Error: No such command 'stauts'." in iobands("stauts").stderr
    assert iobands("status", "--format", "jsn").stderr.endswith(
        "Error: Invalid value for '--format': 'jsn' is not one of 'text', 'json', 'plugin'.\n"
    )
    assert iobands("schedule", "cron", "--jitter", "x").stderr.endswith(
        "Invalid value for '--jitter': x is not a duration; write for example 90m, 4h or 1d\n"
    )


def test_an_option_of_reframe_goes_after_two_dashes(iobands: Command) -> None:
    said = "\niobands: options of ReFrame go after --, as in: iobands "
    assert iobands("run", "-n", "BenchioFPP").stderr.endswith(f"{said}run -- -n\n")
    assert iobands("reframe", "-n", "x").stderr.endswith(f"{said}reframe -- -n\n")
    # a command that passes no arguments on, and a misspelt option of its own
    assert "after --" not in iobands("status", "-n").stderr
    assert "after --" not in iobands("run", "--tga", "x").stderr


def test_help_and_version(iobands: Command) -> None:
    done = iobands("--help")
    assert done.returncode == 0
    for word in ("status", "report", "run", "0 all is well, 1 an"):
        assert word in done.stdout
    for command in ("status", "report", "run"):
        assert iobands(command, "--help").returncode == 0
    assert iobands("--version").stdout == f"iobands {__version__}\n"


def test_explain(tmp_path: Path, iobands: Command) -> None:
    site(tmp_path, "a fpp", "a ssf", "b fpp", factors={"a fpp": 0.6, "a ssf": 0.6})
    done = iobands("explain", "a fpp", "--figure", "f.svg")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("a fpp write_bw: ")
    assert (tmp_path / "f.svg").read_text().startswith("<?xml")
    several = iobands("explain", "fpp")
    assert several.returncode == 3
    assert "  a fpp write_bw\n  b fpp write_bw" in several.stderr
    assert iobands("explain", "nothing").returncode == 3
    assert iobands("explain", "a fpp", "--figure", "f.pdf").returncode == 3


def test_compare(tmp_path: Path, iobands: Command) -> None:
    rows = [*daily([2.0] * 6, environ="gnu-ofi"), *daily([4.0] * 6, environ="gnu-ucx")]
    write_perflog(tmp_path / "perflogs", rows)
    done = iobands("compare", "environ")
    assert (done.returncode, done.stderr) == (0, "")
    assert "gnu-ucx / gnu-ofi: 2, 2 to 2" in done.stdout
    assert iobands("compare", "tool").stderr.endswith(" in only tool; values there: benchio\n")
    assert iobands("compare", "nonsense").returncode == 3


def test_a_system_that_is_not_there_is_named_whatever_else_is_wrong(
    tmp_path: Path, iobands: Command
) -> None:
    site(tmp_path, "a fpp", factors={})
    (tmp_path / "perflogs" / "new").mkdir()  # the first session there was killed
    assert "no samples; measure" in iobands("status", "--system", "new").stdout
    write_session(tmp_path / "perflogs", datetime(2099, 1, 1, tzinfo=timezone.utc))
    assert "1 failed" in iobands("status").stdout
    exports = [("export", "--format", form) for form in ("csv", "json", "openmetrics")]
    of_samples = [*exports[:2], ("advise",), ("compare", "tool")]
    for command in (("status",), ("explain", "fpp"), ("alerts",), ("report", "page"), ("table",),
                    *exports[2:], *of_samples):  # fmt: skip
        said = unknown(iobands(*command, "--system", "nope")).stderr
        assert said.endswith("no perflogs of system nope; systems there: here, new\n")
    assert iobands("push", "--store", "store").returncode == 0
    for command in (("status",), *of_samples):
        said = unknown(iobands(*command, "--system", "nope", "--store", "store")).stderr
        assert said.endswith("store: no samples of nope; systems there: here\n")


def test_as_of_a_day_in_the_past(tmp_path: Path, iobands: Command) -> None:
    site(tmp_path, "a fpp", factors={"a fpp": 0.6})
    states = {}
    for day in ("2026-11-01", "2026-11-20"):
        done = iobands("status", "--as-of", day, "--format", "json")
        found = json.loads(done.stdout)
        assert found["now"] == f"{day}T23:59:59+00:00"
        states[day] = (done.returncode, found["series"][0]["status"]["state"])
    assert states == {"2026-11-01": (0, "healthy"), "2026-11-20": (2, "degraded")}
    assert iobands("explain", "a fpp", "--as-of", "2026-11-01").stdout.startswith(
        "a fpp write_bw: h"
    )
    for text in ("yesterday", "7", "99999999d"):
        said = unknown(iobands("status", "--as-of", text)).stderr
        assert said.startswith(f"IOBANDS UNKNOWN: --as-of is '{text}'; write a date such as ")
        assert said.endswith("; or an age, such as 7d\n")
    assert iobands("push", "--store", "store").returncode == 0
    for words in ((), ("--system", "here"), ("--store", "store")):
        for command in (("status",), ("explain", "fpp"), ("alerts",), ("report", "page")):
            said = unknown(iobands(*command, *words, "--as-of", "2020-01-01")).stderr
            assert said == "IOBANDS UNKNOWN: no samples before 2020-01-01 23:59 UTC\n"
    for text in ("2026-11-20T09:00:00+05:30", "2026-11-20 03:30", "2026-11-20T03:30:00Z"):
        said = json.loads(iobands("status", "--as-of", text, "--format", "json").stdout)
        assert said["now"] == "2026-11-20T03:30:00+00:00"

    def of_now() -> str:  # without the time in the commands that it prints
        said = iobands("status", "--as-of", "0d").stdout
        assert "iobands explain 1 --as-of 20" in said
        return re.sub(r" --as-of \S+Z", "", said)

    assert alike(of_now, lambda: iobands("status").stdout)
    for command in (("status",), ("explain", "a fpp"), ("report", "page")):
        done = iobands(*command, "--as-of", "2099-01-01")
        said = "IOBANDS UNKNOWN: --as-of 2099-01-01: in the future; nothing is known then\n"
        assert (done.returncode, done.stdout, done.stderr) == (3, "", said)


def test_a_file_system_of_their_own_for_perflogs(tmp_path: Path, iobands: Command) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.5] * 3))
    # what fsck found there; if this directory is read, it is unreadable to all but root
    write_perflog(tmp_path / "perflogs", daily([1.5] * 3, system="there"), system="lost+found")
    done = iobands("status", "--system", "nope")
    assert done.stderr.endswith("no perflogs of system nope; systems there: here\n")
    assert "there" not in iobands("status", "--all").stdout
    assert iobands("push", "--store", "store").returncode == 0
    assert [each.name for each in (tmp_path / "store" / "samples").iterdir()] == ["system=here"]
