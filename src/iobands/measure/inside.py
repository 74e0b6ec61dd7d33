"""The part of a session in ReFrame's own process, with workarounds for faults of ReFrame 4.10.

1. At a signal it raises an `Exception`, which its logging swallows, and goes on.
2. It computes its sleeps from the machine's clock: if that is set back an hour, it sleeps an hour.
3. If the offset of the local time has seconds, it writes times that are not RFC 3339.
4. It waits for ever if Slurm hangs or does not report a job, even when it was asked to end.
5. For each check that it creates, it inspects the whole stack twice, reads its source files, and
   describes the variables of its class again.
6. It imports check modules a second time if they are installed beside it, with different classes.
7. It copies read-only sources with their modes, so that it cannot write into the copies.
8. A signal while it restores the environment leaves it incomplete, for example without PATH.
9. Its message about a wrong value of `-S` does not name the variable.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import functools
import os
import re
import shutil
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, Final

from iobands.measure.lock import join, read_holder
from iobands.measure.perflogs import end_lines, reconcile, require_writable
from iobands.measure.run_reports import SILENT, report_files
from iobands.measure.session import open_session
from iobands.model import NO_ACCOUNTS, SESSION_ENV, SessionError, mask_others, printable, read_small

_PR_SET_PDEATHSIG: Final = 1  # prctl(2)
# `env: NAME` in any style of YAML, also in a damaged file
_ENV: Final = re.compile(r"""\benv["']?\s*:\s*(?:[&!>|]\S*\s+)*["']?([^\s"',{}\[\]]+)""")
_VERSION: Final = "4.10."
#: The other short options of ReFrame, without and with a value.
_FLAGS: Final = "RVhqv"
_WITH_VALUE: Final = "CEJLMPSTclmnopstux"
_MEASURE_TIME: Final = ("reframe.frontend.executors.policies", "reframe.core.schedulers.local")
_ANSWER: Final = 60  # seconds for an answer of Slurm
_SILENCE: Final = 600  # seconds after which a job that Slurm does not mention is given up
_ENDING: Final = 10  # seconds for either, when this ReFrame was asked to end
_asked_to_end: list[str] = []
_Reframe = SimpleNamespace  # stands for ReFrame's objects, whose types mypy does not know


def is_run(arguments: Sequence[str]) -> bool:
    """Whether this is ReFrame, and `arguments` ask it to run checks and not just to list them."""
    parser = argparse.ArgumentParser(add_help=False)  # accepts abbreviations, as ReFrame does
    parser.add_argument("-r", "--run", action="store_true")
    for letter in _FLAGS:  # several in one word, as in `-vr`
        parser.add_argument(f"-{letter}", action="store_true")
    for letter in _WITH_VALUE:
        parser.add_argument(f"-{letter}", nargs="?")
    return "reframe.frontend.cli" in sys.modules and parser.parse_known_args(arguments)[0].run


def drop_secrets(path: Path) -> None:
    """Remove the variables that config/notify.yaml names from the environment of the jobs."""
    with suppress(OSError):
        for name in _ENV.findall(read_small(path).decode(errors="replace")):
            os.environ.pop(name, None)


def begin_in_reframe(perflogs: Path, system: str) -> str:
    """Make ReFrame's process part of a session on `system`, and return its identifier.

    It joins the session of the `iobands run` that started it, or else begins one, which ends with
    the process. On return, the perflogs are known to be writable. Raises SessionError if another
    session runs, or a sample could not be recorded.
    """
    mask_others()
    drop_secrets(perflogs.parent / "config" / "notify.yaml")
    apply_workarounds()
    found = read_holder(perflogs)
    parent = found if found and found.session == os.environ.get(SESSION_ENV) else None
    if parent:
        join(perflogs, parent)
        # the kernel ends this process when `iobands run` ends, even by SIGKILL
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if not parent.processes[0].is_alive():  # it ended before prctl
            raise SessionError("iobands run has ended")
    with ExitStack() as stack:
        holder, notes = parent, list[str]()
        if holder is None:
            holder, notes = stack.enter_context(open_session(perflogs, "reframe -r"))
        require_writable(perflogs, system)
        end_lines(perflogs, system)
        _say(*notes)
        if not parent:
            os.environ[SESSION_ENV] = holder.session  # for its jobs
            stack.callback(_record_missing, perflogs, {*report_files(perflogs)})
            atexit.register(stack.pop_all().close)
    return holder.session


def _record_missing(perflogs: Path, before: set[Path]) -> None:
    for notes in reconcile(sorted({*report_files(perflogs)} - before), perflogs):
        _say(*notes)


class ForceExitError(KeyboardInterrupt):
    """A request to end, which passes every `except Exception`, as Ctrl-C does.

    ReFrame reports both as cancelled by a user, so this names the signal.
    """

    def __init__(self, said: str) -> None:
        """Report the signal at once, unbuffered: the interrupted code may be using a stream."""
        super().__init__(said)
        _asked_to_end.append(said)
        _say(said)


def _say(*notes: str) -> None:
    with suppress(OSError):  # its reader may have ended
        for note in notes:
            os.write(sys.stderr.fileno(), f"iobands: {printable(note)}\n".encode())


def apply_workarounds() -> None:
    """Patch ReFrame so that every signal ends it, and clock changes do not affect its polls."""
    if time.localtime().tm_gmtoff % 60:
        os.environ["TZ"] = "UTC"
        time.tzset()
    if not _is_known():
        version = import_module("reframe").VERSION
        tested = f"iobands is tested with {_VERSION}x, and does not patch this one"
        _say(f"ReFrame {version} is not tested; {tested}")
        return
    vars(import_module("reframe.frontend.executors"))["ForceExitError"] = ForceExitError
    began = time.time() - time.monotonic()
    steady = SimpleNamespace(time=lambda: began + time.monotonic(), sleep=time.sleep)
    for name in _MEASURE_TIME:
        vars(import_module(name))["time"] = steady
    osext = import_module("reframe.utility.osext")
    vars(osext)["shutil"] = SimpleNamespace(**{**vars(shutil), "copytree": _copy_tree})
    saved = import_module("reframe.core.environments")._EnvironmentSnapshot
    saved.restore = functools.partialmethod(_restore_whole, saved.restore)
    _give_up_silent_jobs()


def _restore_whole(saved: _Reframe, restore: Callable[[_Reframe], None]) -> None:
    try:
        restore(saved)
    except KeyboardInterrupt:  # by a signal; from then on ReFrame ignores further ones
        restore(saved)
        raise


def _copy_tree(source: str, copy: str, *more: Any, **options: Any) -> str:  # noqa: ANN401
    """Copy a directory tree as shutil does, but let its owner write into the copies."""
    made = shutil.copytree(source, copy, *more, **options)
    for directory, _, _ in os.walk(made):
        Path(directory).chmod(Path(directory).stat().st_mode | stat.S_IWUSR)
    return made


def _is_known() -> bool:
    return bool(import_module("reframe").VERSION.startswith(_VERSION))


def mend_loading() -> None:
    """Patch ReFrame to import check modules once, name wrong variables, and list checks quickly.

    ReFrame always passes `force`, which imports a check module that is installed beside it a second
    time. Modules that have imported it before, which depends on the order of files, then refer to
    the classes of the first import. To warn of its deprecated alias `variables`, ReFrame reads the
    sources of every stack frame twice for each check: most of the time to list some thousand. For
    each point of a class it describes all variables of the class again: half of what remains.
    """
    if "reframe.frontend.loader" not in sys.modules or not _is_known():
        return
    loader = sys.modules["reframe.frontend.loader"].RegressionCheckLoader
    load_from_file = loader.load_from_file
    loader.load_from_file = lambda self, filename, force=False: load_from_file(self, filename)
    field: _Reframe = import_module("reframe.core.fields").TypedField
    set_value = field.__set__

    def set_named(self: _Reframe, check: object, value: object) -> object:
        try:
            return set_value(self, check, value)
        except ValueError as error:
            raise ValueError(f"failed to set variable {self._name!r}: {error}") from None

    field.__set__ = set_named
    vars(import_module("reframe.core.warnings"))["inspect"] = SimpleNamespace(
        stack=_frames, getmodule=lambda frame: sys.modules.get(frame.f_globals.get("__name__"))
    )
    space = import_module("reframe.core.variables").VarSpace
    describe_and_set, described = space._inject, set[type]()

    def set_variables(self: _Reframe, check: _Reframe, cls: type) -> None:
        if cls not in described:
            described.add(cls)
            describe_and_set(self, check, cls)
            return
        for name, var in self.items():
            if var.is_defined():
                check.__dict__[name] = var.default_value

    space._inject = set_variables


def _frames() -> Iterator[_Reframe]:
    frame: FrameType | None = sys._getframe(1)  # where inspect.stack begins
    while frame:
        yield SimpleNamespace(frame=frame)
        frame = frame.f_back


def _within(seconds: int) -> int:
    return min(seconds, _ENDING) if _asked_to_end else seconds


def _give_up_silent_jobs() -> None:
    """Patch ReFrame to cancel jobs that Slurm has long not reported, and fail their checks."""
    slurm = import_module("reframe.core.schedulers.slurm")
    failed: Any = import_module("reframe.core.exceptions")
    run = slurm.osext.run_command
    last = [""]

    def says(name: str, done: _Reframe) -> str:
        said = " ".join(f"{done.stdout} {done.stderr}".split())[:100]
        return f"`{name}` says {said!r}"

    def run_within(command: str, **options: object) -> _Reframe:
        name = command.split(maxsplit=1)[0]
        last[0] = f"`{name}` does not answer"
        limit = options.pop("timeout", None)
        if name != "sbatch":  # it may have submitted a job that would be lost
            limit = limit or _within(_ANSWER)
        try:
            done: _Reframe = run(command, **options, timeout=limit)
        except failed.SpawnedProcessError as error:
            if not isinstance(error, failed.SpawnedProcessTimeout):
                last[0] = says(name, error)
            raise
        last[0] = says(name, done)
        return done

    def patient(poll: Callable[..., None]) -> Callable[..., None]:
        def poll_and_judge(scheduler: _Reframe, *jobs: _Reframe) -> None:
            waiting = {
                job: job.state for job in jobs if job is not None and not scheduler.finished(job)
            }
            for job in waiting:
                job._state = None
            with suppress(failed.SpawnedProcessError):
                poll(scheduler, *waiting)
            for job, before in waiting.items():
                now = time.monotonic()
                if job.state is not None:
                    job.heard = now
                    continue
                job._state = before
                job.heard = getattr(job, "heard", now)
                is_mute = NO_ACCOUNTS in last[0]
                if now - job.heard < (0 if is_mute else _within(_SILENCE)):
                    continue
                why = f"{SILENT} {job.jobid} has ended: {last[0]}"
                if is_mute:
                    why = f"{last[0]}: write 'squeue' as the scheduler in the site file"
                with suppress(failed.SpawnedProcessError):
                    scheduler.cancel(job)
                job._state = "CANCELLED"
                if _asked_to_end:  # an error would keep ReFrame from writing its report
                    _say(why)
                else:
                    job._exception = failed.JobSchedulerError(why)

        return poll_and_judge

    vars(slurm)["_run_strict"] = functools.partial(run_within, check=True)
    vars(slurm)["osext"] = SimpleNamespace(**{**vars(slurm.osext), "run_command": run_within})
    for scheduler in (slurm.SlurmJobScheduler, slurm.SqueueJobScheduler):
        scheduler.poll = patient(scheduler.poll)
