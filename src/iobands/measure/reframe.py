"""Runs ReFrame as a process: the selected checks, its output, its time limit and its end.

The suite is what a release brings: checks, the general configuration, benchio's source. A site is
what its staff keep: site files, bands, actions, perflogs. In a clone both are the clone.

Test cases that the infrastructure spoilt, as by a failed launch or a lost node, are run once more.
A case with a rate is not repeated, however low the rate.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

from iobands import model
from iobands.measure.run_reports import SILENT, load_report, report_files
from iobands.model import INTERRUPTED, MANUAL, SCHEDULED, SESSION_ENV, FileError, SessionError

#: The environment variable with the purpose of the runs, which each sample records.
PURPOSE_ENV: Final = "IOBANDS_PURPOSE"
#: The environment variable with the number of the attempt, which each sample records.
ATTEMPT_ENV: Final = "IOBANDS_ATTEMPT"
#: The environment variable with checks to leave out, in lines of `system:partition check`.
LEFT_OUT_ENV: Final = "IOBANDS_LEFT_OUT"


@dataclass(frozen=True)
class Selection:
    """What to measure: the checks with `tag`, on `system` or the one that ReFrame detects.

    `extra` are further arguments for ReFrame. `why` is the purpose, if the caller sets one.
    """

    tag: str | None
    system: str | None = None
    extra: tuple[str, ...] = ()
    why: str | None = None

    def arguments(self) -> list[str]:
        """Return the selection as arguments of ReFrame."""
        tag = ["-t", self.tag] if self.tag else []
        system = [f"--system={self.system}"] if self.system else []
        return [*tag, *system, *self.extra]

    @property
    def purpose(self) -> str:
        """The purpose of the runs; further arguments come from a person, as no schedule has any."""
        return self.why or os.environ.get(PURPOSE_ENV) or (MANUAL if self.extra else SCHEDULED)


def exactly(name: str) -> str:
    """Return the pattern of `reframe -n` for one check; ReFrame matches names without blanks."""
    return f"^{re.escape(name.replace(' ', ''))}$"


def selection_of(
    names: Iterable[str], place: str, environ: str, why: str, more: Sequence[str] = ()
) -> Selection:
    """Select the checks with these names on a partition, `system:partition`, in an environment."""
    named = (word for name in dict.fromkeys(names) for word in ("-n", exactly(name)))
    return Selection(None, place, (*named, "-p", f"^{re.escape(environ)}$", *more), why)


class NothingSelectedError(SessionError):
    """The arguments of ReFrame select no check: nothing was measured, and nothing has failed."""


class DeclaredPartitions(Protocol):
    """The entries of a site file that a session needs."""

    @property
    def partitions(self) -> Mapping[str, Mapping[str, Any]]:
        """The `extras` of each partition, by its name."""

    @property
    def hostnames(self) -> Sequence[str]:
        """Patterns of the machines on which ReFrame takes this system."""


#: Reads the site file of a system; raises FileError.
ReadSiteFile = Callable[[str], DeclaredPartitions]


@dataclass(frozen=True)
class Workplace:
    """What a session works with: the site's directory, the reader of site files, and callbacks.

    `line` gets ReFrame's lines, `step` a short text at each step.
    """

    root: Path
    read_site_file: ReadSiteFile
    line: Callable[[str], object] = lambda _: None
    step: Callable[[str], object] = lambda _: None

    @property
    def perflogs(self) -> Path:
        """The directory of the perflogs."""
        return self.root / "perflogs"

    def systems(self) -> Iterator[tuple[str, DeclaredPartitions]]:
        """Yield each system and its site file; skip unreadable ones, which ReFrame reports."""
        for path in (self.root / "config" / "systems").glob("[!._]*.py"):
            with suppress(FileError):
                yield path.stem, self.read_site_file(path.stem)


#: The environment variable with the site's directory, for ReFrame and its checks.
SITE_ENV: Final = "IOBANDS_SITE"
_PACKAGE: Final = Path(__file__).resolve().parents[1]
_INSTALLED: Final = _PACKAGE / "suite"
_CLONE: Final = _PACKAGE.parents[1]


def suite_of(site: Path) -> Path:
    """Return the suite for a site: its own in a clone, else the one of this installation."""
    return site if (site / "checks").is_dir() else installed_suite()


def installed_suite() -> Path:
    """Return the suite of this installation."""
    return _INSTALLED if _INSTALLED.is_dir() else _CLONE


def site_of_suite(suite: Path) -> Path:
    """Return the site's directory: the one in `SITE_ENV`, else `suite`, which then is a clone."""
    return Path(os.environ.get(SITE_ENV) or suite).resolve()


def require_plain(directory: Path) -> None:
    """Raise FileError if the path has characters that ReFrame's shell commands do not quote."""
    if not re.fullmatch(r"[\w./@+~,:=-]+", str(directory)):
        needs = "ReFrame needs a path of letters, digits and ./@+~,:=_-"
        raise FileError(f"{needs}, not {str(directory)!r}: choose another place")


_ERRORS: Final = ("ERROR", "reframe: error: ")  # the latter about arguments
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_PROGRESS: Final = re.compile(r"\(\s*(\d+)/(\d+)\) (\S+)")
# "skipping test 'X': ..." and "skipping test file ...": ReFrame warns, and goes on without
_NOT_LOADED: Final = re.compile(r"(skipping test.*?):?$")
# in the traceback of an exception that ReFrame does not handle
_PLACE: Final = re.compile(r'^File "(.+)", (line \d+)')
_RAISED: Final = re.compile(r"^[\w.]*(?:Error|Exception)\b.*")
_UNTESTED: Final = re.compile(r"iobands: (ReFrame \S+ is not tested;.*)")
_GIVEN_UP: Final = re.compile(f"iobands: ({SILENT}.*)")
#: The output of the last session, below the perflogs.
LOG: Final = "iobands-run.log"
_FAILED_CASES: Final = 1  # ReFrame's exit status when some case failed
_TAIL: Final = 5  # lines of the output in a message
_GRACE_SECONDS: Final = 180  # to cancel jobs, and for these to clean up
_LISTING_SECONDS: Final = 1800  # to list the checks; some thousand take a minute
#: ReFrame's exit status after a wrong argument, which comes from argparse.
WRONG_ARGUMENT: Final = 2
_PHASES: Final = frozenset({"run", "run_complete", "run_wait", "sanity"})
# Messages about the infrastructure, by Slurm (slurmctld, slurmstepd, srun) and MPI's daemons.
_SPOILT: Final = re.compile(
    r"DUE TO NODE FAILURE|Node failure on|NODE_FAIL|BOOT_FAIL|Unable to create step"
    r"|Task launch for \S+ failed|Socket timed out on send/recv|Unable to contact slurm"
    r"|(ORTE|PRTE) has lost communication|(ORTE|PRTE) daemon has unexpectedly failed"
    # iobands' own, about the files of a job that do not appear here, and a silent Slurm
    r"|the job left no output \(COMPLETED\)|" + SILENT,
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Ended:
    """How a ReFrame process ended; `how` is `completed`, `limit` or `interrupted`.

    `cases` is the number of its test cases, None if it selected none. `not_loaded` are messages
    about checks that it could not load, and `said` its first error, the end of its traceback, or
    its last lines. `given_up` are messages about jobs whose state the scheduler did not report, and
    `untested` warnings about a ReFrame outside of the tested range. `reports` are its run reports.
    `repeated` maps ReFrame's hash of each case that was run once more to the reason.
    """

    status: int
    how: str
    cases: int | None
    not_loaded: tuple[str, ...]
    said: str
    given_up: tuple[str, ...]
    untested: tuple[str, ...]
    reports: tuple[Path, ...] = ()
    repeated: Mapping[str, str] = field(default_factory=dict)

    @property
    def was_complete(self) -> bool:
        """Whether it ended by itself after running its checks, passed or failed."""
        return self.how == model.COMPLETED and self.status in {0, _FAILED_CASES}

    @property
    def selected_none(self) -> bool:
        """Whether it succeeded and loaded all checks, but selected none of them."""
        return self.cases is None and self.status == 0 and not self.not_loaded


def reframe_command(root: Path) -> list[str]:
    """Return the command of ReFrame with the configuration and the checks for the site at `root`.

    The program is the one on PATH, else the one beside this Python. Raises SessionError if it is
    not installed, or this installation has no checks.
    """
    beside = Path(sys.executable).with_name("reframe")
    found = shutil.which("reframe") or (str(beside) if beside.is_file() else None)
    if found is None:
        remedy = "load its module, or pip install 'iobands[checks]'"
        raise SessionError(f"reframe is not on PATH; {remedy}")
    suite = suite_of(root)
    if not (suite / "checks").is_dir():
        raise SessionError(f"{suite}: no checks; install iobands again, or unset PYTHONPATH")
    return [found, "-C", str(suite / "config" / "site.py"), "-c", str(suite / "checks"), "-R"]


def describe(root: Path, arguments: Sequence[str]) -> list[dict[str, Any]]:
    """Return ReFrame's description of each selected check.

    Raises:
        NothingSelectedError: an argument is wrong.
        SessionError: ReFrame fails otherwise, or does not answer.
        OSError: it cannot be started.
    """
    command = [*reframe_command(root), *arguments, "--describe"]
    options = {"timeout": _LISTING_SECONDS, **_options(root)}
    try:
        done = subprocess.run(command, capture_output=True, check=False, **options)
    except subprocess.TimeoutExpired:
        said = f"{command[0]} does not list the checks within {_LISTING_SECONDS // 60} minutes"
        raise SessionError(said) from None
    if done.returncode:
        failed = NothingSelectedError if done.returncode == WRONG_ARGUMENT else SessionError
        raise failed(_reason(f"{done.stdout}\n{done.stderr}".splitlines()))
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise SessionError(f"ReFrame's list of checks cannot be read: {error}") from error


def _options(root: Path, **more: str) -> dict[str, Any]:
    """Return the options of `subprocess` for ReFrame; RFM_ variables could move the results."""
    names = [each for each in os.environ if each == "RFM_SYSTEM" or not each.startswith("RFM_")]
    environment = {name: os.environ[name] for name in names} | {SITE_ENV: str(root)} | more
    return {"cwd": root, "env": environment, "stdin": subprocess.DEVNULL, "errors": "replace"}


def run_checks(
    at: Workplace,
    selection: Selection,
    arguments: Sequence[str],
    session: str,
    limit: float,
    left_out: Sequence[tuple[str, str]] = (),
) -> Ended:
    """Run the selected checks, and once more the cases that the infrastructure spoilt.

    `left_out` are pairs of a `system:partition` and the name of a check that does not run there.
    At the `limit` in seconds, and at a signal to this process, ReFrame is asked to end: it cancels
    its jobs and writes its report. Its output is appended to `LOG`.

    Raises:
        SessionError: there is no ReFrame.
        OSError: it cannot be started, or the log cannot be opened.
    """
    command = [*reframe_command(at.root), "-r", "--exec-policy=serial", *selection.arguments()]
    command += arguments
    until = time.monotonic() + limit

    def attempt(number: int, more: Iterable[str] = ()) -> Ended:
        before = {*report_files(at.perflogs)}
        said = {SESSION_ENV: session, ATTEMPT_ENV: str(number), PURPOSE_ENV: selection.purpose}
        said[LEFT_OUT_ENV] = "\n".join(" ".join(each) for each in left_out)
        ended = _run([*command, *more], at, max(until - time.monotonic(), 0), **said)
        return replace(ended, reports=tuple(sorted({*report_files(at.perflogs)} - before)))

    ended = attempt(1)
    # names among the arguments would be selected again, besides the hashes below
    is_named = any(word.startswith(("-n", "--name")) for word in selection.extra)
    if ended.how != model.COMPLETED or is_named:
        return ended
    again = {code: why for report in ended.reports for code, why in _spoilt(report).items()}
    if not again:
        return ended
    at.step(f"repeating {len(again)}")
    second = attempt(2, [word for code in again for word in ("-n", f"/{code}")])
    reports = ended.reports + second.reports
    return replace(ended, how=second.how, reports=reports, repeated=again)


def pause(at: Workplace, seconds: float, limit: float) -> str:
    """Sleep, and return how the sleep ended; a signal or the `limit` in seconds ends it early."""
    return _run(["sleep", f"{seconds:.1f}"], at, limit).how


def _run(command: Sequence[str], at: Workplace, limit: float, **environment: str) -> Ended:
    """Run a command for at most `limit` seconds of the monotonic clock, and read its output."""
    lines: list[str] = []
    cases = None
    # Ctrl-C in a terminal reaches only this process, which then asks ReFrame to end
    options = {**_options(at.root, **environment), "start_new_session": True}
    pipe, into = subprocess.PIPE, subprocess.STDOUT
    with (
        (at.perflogs / LOG).open("ab", buffering=0) as kept,
        subprocess.Popen(command, stdout=pipe, stderr=into, **options) as child,
        _ended_orderly(child, limit) as asked,
    ):
        for coloured in child.stdout or ():
            line = _COLOURS.sub("", coloured)
            with suppress(OSError):  # without the log, samples may still be recorded
                kept.write(line.encode())
            lines.append(line.strip())
            at.line(line.rstrip("\n"))
            if step := _PROGRESS.search(line):
                cases = int(step[2])
                at.step(f"{step[1]}/{step[2]} {step[3]}")
        status = child.wait()
    not_loaded, given_up, untested = (
        tuple(found[1] for line in lines if (found := pattern.search(line)))
        for pattern in (_NOT_LOADED, _GIVEN_UP, _UNTESTED)
    )
    how = asked[0] if asked else model.COMPLETED
    return Ended(status, how, cases, not_loaded, _reason(lines), given_up, untested)


def _reason(lines: Iterable[str]) -> str:
    """Return the first error of ReFrame, else its exception with the place, else its last lines."""
    said = [plain for line in lines if (plain := _COLOURS.sub("", line).strip())]
    errors = [line.removeprefix("ERROR: ") for line in said if line.startswith(_ERRORS)]
    places = [", ".join(found.groups()) for line in said if (found := _PLACE.match(line))]
    raised = [line for line in said if _RAISED.match(line)]
    traceback = [f"{places[-1]}: {raised[-1]}"] if places and raised else []
    return " / ".join(errors[:1] or traceback or said[-_TAIL:]) or "no output"


@contextmanager
def at_signals(call: Callable[[], None], *numbers: int) -> Iterator[None]:
    """Call `call` at these signals; one that is ignored, as under nohup, stays ignored."""
    heeded = [each for each in numbers if signal.getsignal(each) != signal.SIG_IGN]
    before = {each: signal.signal(each, lambda *_: call()) for each in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _ended_orderly(child: subprocess.Popen[str], limit: float) -> Iterator[list[str]]:
    """Terminate a process at the limit or a signal, later kill it; yield the list of reasons."""
    reasons: list[str] = []

    def ask(how: str) -> None:
        reasons.append(how)
        if len(reasons) > 1:  # asked again
            child.kill()
            return
        child.terminate()
        _timer(_GRACE_SECONDS, child.kill)

    timer = _timer(limit, lambda: ask(model.LIMIT))  # waits by the monotonic clock
    try:
        with at_signals(lambda: ask(INTERRUPTED), signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            yield reasons
    finally:
        timer.cancel()


def _timer(seconds: float, call: Callable[[], None]) -> threading.Timer:
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()
    return timer


def _spoilt(report: Path) -> dict[str, str]:
    """Return the reasons, by hash, of cases that the infrastructure or a spoilt fixture stopped."""
    try:
        cases = load_report(report).cases
        found = {
            case["hashcode"]: " ".join(str(case["fail_reason"]).split())
            for case in cases
            if case["result"] == "fail" and case["fail_phase"] in _PHASES
            if all(figures[0] is None for figures in (case.get("perfvalues") or {}).values())
            if _SPOILT.search(str(case["fail_reason"]))
        }
        fixtures = [found.pop(each["hashcode"], None) for each in cases if each["fixture"]]
        for why in filter(None, fixtures):
            stopped = (case for case in cases if case["result"] == "fail_deps")
            found |= {case["hashcode"]: why for case in stopped if not case["fixture"]}
        return found
    except (model.Unusable, KeyError, TypeError, IndexError):
        return {}
