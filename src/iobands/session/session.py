"""How a session begins and ends, in `iobands run` and in ReFrame's own process."""

from __future__ import annotations

import argparse
import atexit
import ctypes
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from iobands.model.replaced import mask_others, read_small
from iobands.session.heartbeat import start_beating
from iobands.session.jobs import cancel_jobs, forget_jobs
from iobands.session.lock import (
    Holder,
    acquire,
    join,
    new_holder,
    path_of,
    read_holder,
    release,
)
from iobands.session.perflogs import end_lines, open_to_all, require_writable
from iobands.session.processes import VARIABLE, end_session
from iobands.session.reconcile import reconcile
from iobands.session.refusal import SessionRefusedError, refusal
from iobands.session.report import report_files
from iobands.session.workarounds import apply_workarounds

_PR_SET_PDEATHSIG: Final = 1  # prctl(2)
# `env: NAME` in any style of YAML, also in a damaged file
_VARIABLE: Final = re.compile(r"""\benv["']?\s*:\s*(?:[&!>|]\S*\s+)*["']?([^\s"',{}\[\]]+)""")
_stop_beating: dict[str, Callable[[], None]] = {}  # by session


def is_run(arguments: Sequence[str]) -> bool:
    """Whether this is ReFrame, and `arguments` ask it to run checks and not only to list them."""
    if "reframe.frontend.cli" not in sys.modules:
        return False
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-r", "--run", action="store_true")
    for flag in "Rvq":  # which may stand in one word with it
        parser.add_argument(f"-{flag}", action="store_true", dest=flag)
    return parser.parse_known_args(arguments)[0].run


def open_session(perflogs: Path, command: str) -> tuple[Holder, list[str]]:
    """Begin a session of this process: take the lock, and end what a killed session left running.

    Return the session, and notes on what was found.

    Raises:
        SessionRefusedError: another session runs, or the lock cannot be made.
    """
    try:
        perflogs.mkdir(exist_ok=True)
    except OSError as error:
        raise refusal(error, perflogs) from error
    holder = new_holder(command)
    former = acquire(perflogs, holder)

    def is_ours() -> bool:
        with suppress(SessionRefusedError):
            found = read_holder(perflogs)
            return found is None or found.session == holder.session
        return True

    _stop_beating[holder.session] = start_beating(path_of(perflogs), is_ours)
    notes = open_to_all(perflogs)
    if former:
        notes += [f"a session was killed: {former}", *end_rest(perflogs, former.session)]
    return holder, notes


def close_session(perflogs: Path, session: str) -> None:
    """End a session: the lock is free."""
    _stop_beating.pop(session)()
    forget_jobs(perflogs)
    release(perflogs, session)


def end_rest(perflogs: Path, session: str, *, waited: bool = False) -> list[str]:
    """End the processes and cancel the jobs that a session left running; return notes on them.

    With `waited` ReFrame has seen all jobs end.
    """
    number, left = end_session(session)
    notes = [f"it had left {number} processes running, which were ended"] if number else []
    if left:
        pids = ", ".join(str(process.pid) for process in left)
        notes.append(f"not to be ended, as on a file system that hangs: pid {pids}")
    return notes if waited else [*notes, *cancel_jobs(perflogs)]


def drop_secrets(path: Path) -> None:
    """Take the variables that config/notify.yaml names from the environment, which jobs inherit."""
    with suppress(OSError):
        for name in _VARIABLE.findall(read_small(path).decode(errors="replace")):
            os.environ.pop(name, None)


def begin_in_reframe(perflogs: Path, system: str) -> str:
    """Make ReFrame's process part of a session on `system`, and return its identifier.

    That is the session of the `iobands run` that started it, or else one of its own, which ends
    with the process. The perflogs can be written from here on, or the session is refused.

    Raises:
        SessionRefusedError: another session runs, or a sample could not be recorded.
    """
    mask_others()
    drop_secrets(perflogs.parent / "config" / "notify.yaml")
    apply_workarounds()
    holder = read_holder(perflogs)
    if holder and holder.session == os.environ.get(VARIABLE):
        join(perflogs, holder)
        _end_with_parent(holder)
        require_writable(perflogs, system)
        end_lines(perflogs, system)
        return holder.session
    holder, notes = open_session(perflogs, "reframe -r")
    try:
        require_writable(perflogs, system)
    except SessionRefusedError:
        close_session(perflogs, holder.session)
        raise
    end_lines(perflogs, system)
    _say(notes)
    os.environ[VARIABLE] = holder.session  # for its jobs
    atexit.register(_close_by_hand, perflogs, holder.session, frozenset(report_files(perflogs)))
    return holder.session


def _end_with_parent(holder: Holder) -> None:
    """Have the kernel ask this process to end when `iobands run` does, by SIGKILL too."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if not holder.processes[0].is_alive():  # it ended before
        raise SessionRefusedError("iobands run has ended")


def _close_by_hand(perflogs: Path, session: str, before: frozenset[Path]) -> None:
    if session != os.environ.get(VARIABLE):
        return
    for report in sorted(set(report_files(perflogs)) - before):
        found = reconcile([report], perflogs)
        _say([*found.notes, *found.lost])
    close_session(perflogs, session)


def _say(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"iobands: {note}", file=sys.stderr)
