"""Measuring: one ReFrame session under a lock, and whether it ran all that it should have.

ReFrame exits with 0 when no check was selected, and when a check could not be loaded. So the
cases are counted before and after. Calls ReFrame's command line, and imports nothing of it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import FrameType
from typing import Final

from filelock import FileLock, Timeout

from iobands.results.run_reports import number_of_checks, report_files

_CONCRETIZED: Final = re.compile(r"Concretized (\d+) test case")
# "skipping test 'X': ..." and "skipping test file ...": ReFrame warns, and goes on without
_NOT_LOADED: Final = re.compile(r"skipping test.*")
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_PROGRESS: Final = re.compile(r"\(\s*(\d+/\d+)\) (\S+)")
_FAILED_CASES: Final = 1  # ReFrame's exit status when some case failed
_TAIL: Final = 5  # lines of ReFrame's output in a message
_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)


class RunError(Exception):
    """Nothing was measured; the message says why and what to do."""


@dataclass(frozen=True)
class Selection:
    """What to measure: the checks with `tag`, on `system` or where ReFrame finds itself to be.

    `extra` are further arguments for ReFrame.
    """

    tag: str
    system: str | None = None
    extra: tuple[str, ...] = ()

    def arguments(self) -> list[str]:
        """Return the selection as arguments of ReFrame."""
        system = [f"--system={self.system}"] if self.system else []
        return ["-t", self.tag, *system, *self.extra]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a session: how many cases were expected and ran, and what is wrong."""

    expected: int
    ran: int
    problems: tuple[str, ...]


def find_reframe() -> Path:
    """Return the command `reframe`: the one on PATH, else the one beside this Python.

    Raises:
        RunError: there is none.
    """
    beside = Path(sys.executable).with_name("reframe")
    found = shutil.which("reframe")
    if found:
        return Path(found)
    if beside.is_file():
        return beside
    raise RunError("reframe is not on PATH; load its module, or pip install 'iobands[checks]'")


def measure(
    root: Path,
    selection: Selection,
    *,
    show: Callable[[str], None],
    progress: Callable[[str], None],
) -> Outcome:
    """Run the selected checks one after the other, and return what came of it.

    `show` is given each line of ReFrame's output, and `progress` a short text at each step. The
    output of the last session is also kept as `perflogs/iobands-run.log`.

    Raises:
        RunError: another run holds the lock, no check was selected, or ReFrame did not run.
    """
    perflogs = root / "perflogs"
    command = _command(find_reframe(), root)
    try:
        perflogs.mkdir(exist_ok=True)
    except OSError as error:
        raise RunError(f"{perflogs}: {error.strerror}") from error
    with _lock(perflogs):
        progress("selecting checks")
        expected, problems = _expected(command, root, selection)
        before = set(report_files(perflogs))
        status = _session(
            [*command, "-r", "--exec-policy=serial", *selection.arguments()],
            root,
            perflogs / "iobands-run.log",
            show,
            progress,
        )
        new = sorted(set(report_files(perflogs)) - before, key=lambda path: path.stat().st_mtime)
    if not new or status not in {0, _FAILED_CASES}:
        raise RunError(
            f"ReFrame ended with status {status} and left {len(new)} run reports; "
            f"its output is in {perflogs / 'iobands-run.log'}"
        )
    try:
        ran = number_of_checks(new[-1])
    except ValueError as error:
        raise RunError(f"{new[-1]}: {error}") from error
    if ran < expected:
        problems = (*problems, f"{ran} of {expected} expected test cases ran")
    return Outcome(expected, ran, problems)


def _command(reframe: Path, root: Path) -> list[str]:
    return [str(reframe), "-C", str(root / "config" / "site.py"), "-c", str(root / "checks"), "-R"]


def _expected(
    command: Sequence[str], root: Path, selection: Selection
) -> tuple[int, tuple[str, ...]]:
    """Return how many test cases are selected, and what ReFrame could not load."""
    try:
        listing = subprocess.run(
            [*command, "-lC", *selection.arguments()],
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise RunError(f"{command[0]}: {error.strerror}") from error
    output = _COLOURS.sub("", listing.stdout)
    counts = _CONCRETIZED.findall(output)
    if listing.returncode or not counts:
        said = [line.strip() for line in output.splitlines() if line.strip()]
        why = [line for line in said if line.startswith("ERROR")][:1] or said[-_TAIL:]
        raise RunError(f"ReFrame could not list the checks: {' / '.join(why) or 'no output'}")
    problems = tuple(f"not loaded: {line}" for line in _NOT_LOADED.findall(output))
    if not int(counts[-1]):
        why = "; ".join(problems) or f"no check has the tag {selection.tag} and runs on this system"
        raise RunError(
            f"no check was selected: {why}; `reframe -C config/site.py -c checks -R -L` lists all"
        )
    return int(counts[-1]), problems


def _session(
    command: Sequence[str],
    root: Path,
    log: Path,
    show: Callable[[str], None],
    progress: Callable[[str], None],
) -> int:
    """Run ReFrame to its end and return its exit status."""
    with (
        log.open("w", encoding="utf-8") as kept,
        subprocess.Popen(
            command,
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as child,
        _passed_on(child),
    ):
        for coloured in child.stdout or ():
            line = _COLOURS.sub("", coloured)
            kept.write(line)
            kept.flush()
            show(line.rstrip("\n"))
            step = _PROGRESS.search(line)
            if step:
                progress(f"{step[1]} {step[2]}")
        return child.wait()


@contextmanager
def _passed_on(child: subprocess.Popen[str]) -> Iterator[None]:
    """Pass on what asks us to end, so that ReFrame cancels its jobs and they clean up."""

    def end(_number: int, _frame: FrameType | None) -> None:
        child.terminate()

    before = {number: signal.signal(number, end) for number in _SIGNALS}
    try:
        yield
    except KeyboardInterrupt:
        child.wait()  # the terminal has sent it the same signal
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _lock(perflogs: Path) -> Iterator[None]:
    """Hold the lock of the root; the kernel releases it however we end.

    Raises:
        RunError: another run holds it.
    """
    holder = perflogs / ".iobands-run.holder"
    try:
        with FileLock(perflogs / ".iobands-run.lock", timeout=0):
            holder.write_text(
                json.dumps(
                    {
                        "pid": os.getpid(),
                        "host": socket.gethostname(),
                        "since": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                    }
                ),
                encoding="utf-8",
            )
            yield
    except Timeout:
        raise RunError(
            f"another run holds the lock ({_holder(holder)}); wait for it to end"
        ) from None
    except OSError as error:
        raise RunError(f"{error.filename or perflogs}: {error.strerror or error}") from error


def _holder(path: Path) -> str:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        return f"pid {said['pid']} on {said['host']} since {said['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "it has not said who it is"
