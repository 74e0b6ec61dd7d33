"""A session: how it begins and ends, and whether it ran and recorded all that it should have.

ReFrame exits with 0 when no check was selected, and when a check could not be loaded, so its
output and its run report are looked at. Calls its command line, and imports nothing of it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from iobands.measure.cost import Cost, DailyBudget, costs_of, reserve
from iobands.measure.jobs import cancel_jobs, forget_jobs
from iobands.measure.lock import (
    Holder,
    SessionRefusedError,
    acquire,
    clock_problem,
    new_holder,
    path_of,
    read_holder,
    refusal,
    release,
    start_beating,
)
from iobands.measure.perflogs import open_to_all, recent_reports, reconcile, require_room
from iobands.measure.processes import ATTEMPT_ENV, SESSION_ENV, end_session
from iobands.measure.record import begin_record, end_record, read_last_session, restore_record
from iobands.measure.reframe import (
    Ended,
    RunError,
    describe,
    reframe_command,
    run_reframe,
    spoilt,
)
from iobands.measure.run_reports import case_counts, load, report_files, seconds_spent
from iobands.measure.sweep import prune
from iobands.model.session import COMPLETED, FAILED, INTERRUPTED, LIMIT

_FAILED_CASES: Final = 1  # ReFrame's exit status when some case failed
_LOG: Final = "iobands-run.log"
#: The entry of a partition in a site file.
DAILY_BUDGET: Final = "daily_budget"
#: Gives the budgets of systems by `system:partition`. Only with one is ReFrame asked for the costs.
DailyBudgets = Callable[[Iterable[str]], Mapping[str, DailyBudget]]
_stop_beating: dict[str, Callable[[], None]] = {}  # by session


class NothingSelectedError(RunError):
    """No check has the tag: nothing was measured, and nothing has failed."""


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
    """What came of a session: how it ended, the number of test cases, what is wrong, and notes.

    `seconds` says where its time went, as the record has it.
    """

    how: str
    counts: dict[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)


def measure(
    root: Path,
    selection: Selection,
    *,
    budgets: DailyBudgets | None,
    limit: float,
    show: Callable[[str], None],
    progress: Callable[[str], None],
) -> Outcome:
    """Run the selected checks one after the other, and return what came of it.

    After `limit` seconds the session ends. `show` is given each line of ReFrame's output, and
    `progress` a short text at each step. The output of the last session is also kept as
    `perflogs/iobands-run.log`, and how it ended as `perflogs/last-session.json`.

    Raises:
        RunError: another session runs, no check was selected, ReFrame did not run, or it was
            interrupted.
    """
    perflogs = root / "perflogs"
    try:
        holder, notes = open_session(perflogs, f"iobands run --tag {selection.tag}")
    except SessionRefusedError as error:
        raise RunError(str(error)) from error
    try:
        clock = clock_problem(perflogs)
        former = read_last_session(perflogs)
        record = begin_record(perflogs, holder, selection.tag, selection.system)
        try:
            outcome = _session(root, selection, budgets, holder, limit, show, progress)
        except NothingSelectedError:
            restore_record(perflogs, former)
            raise
        except (RunError, OSError) as error:
            end_record(perflogs, record, FAILED, {}, str(error))
            raise
        problems = (*([clock] if clock else []), *outcome.problems)
        outcome = replace(outcome, problems=problems, notes=(*notes, *outcome.notes))
        reason = "; ".join(outcome.problems) or None
        end_record(perflogs, record, outcome.how, outcome.counts, reason, outcome.seconds)
        if not clock:
            prune(root)
    except OSError as error:
        raise RunError(str(refusal(error, Path(error.filename or perflogs)))) from error
    finally:
        close_session(perflogs, holder.session)
    if outcome.how == INTERRUPTED:
        raise RunError("; ".join(outcome.problems))
    return outcome


def _session(
    root: Path,
    selection: Selection,
    budgets: DailyBudgets | None,
    holder: Holder,
    limit: float,
    show: Callable[[str], None],
    progress: Callable[[str], None],
) -> Outcome:
    """Run ReFrame in the session of `holder`, and look at what it left."""
    perflogs = root / "perflogs"
    command = [*reframe_command(root), "-r", "--exec-policy=serial", *selection.arguments()]
    progress("selecting checks")
    (perflogs / _LOG).write_bytes(b"")
    cut = _over_budget(root, selection, budgets) if budgets else []
    command += [word for cost in cut for word in ("-x", _exactly(cost.name))]
    until = time.monotonic() + limit

    def attempt(arguments: Sequence[str], number: int) -> tuple[Ended, list[Path]]:
        before = set(report_files(perflogs))
        ended = run_reframe(
            [*command, *arguments],
            root,
            environment={SESSION_ENV: holder.session, ATTEMPT_ENV: str(number)},
            limit=max(until - time.monotonic(), 0),
            log=perflogs / _LOG,
            show=show,
            progress=progress,
        )
        return ended, sorted(set(report_files(perflogs)) - before)

    ended, reports = attempt([], 1)
    problems = [f"not loaded: {each}" for each in ended.not_loaded]
    seconds: dict[str, float] = {}
    counts = {"expected": ended.cases or 0} if reports else {}
    if reports:
        try:
            report = load(reports[-1])
            counts |= case_counts(report)
            seconds = seconds_spent(report)
        except ValueError as error:
            problems.append(f"{reports[-1]}: {_why_damaged(reports[-1], perflogs, error)}")
    again = _spoilt(reports, selection) if ended.how == COMPLETED else {}
    if again:
        counts["repeated"] = len(again)
        progress(f"repeating {len(again)}")
        second, more = attempt([word for code in again for word in ("-n", f"/{code}")], 2)
        ended = replace(ended, how=second.how)
        reports += more
    waited = ended.how == COMPLETED and ended.status in {0, _FAILED_CASES}
    notes = [
        *(f"run once more, as infrastructure failed: {why}" for why in again.values()),
        *end_rest(perflogs, holder.session, waited=waited),
    ]
    if cut:
        names = ", ".join(cost.name for cost in cut)
        problems.append(f"left out, as over the daily budget of the site file: {names}")
    for these in (reports, sorted({*recent_reports(perflogs)} - {*reports})):
        found = reconcile(these, perflogs)
        notes += found.notes
        problems += found.lost
    if ended.how != COMPLETED:
        what = f"its limit of {limit:g} s" if ended.how == LIMIT else "a signal"
        ran = f"{counts.get('ran', 0)} of {ended.cases or 'the'} test cases were begun"
        problems[:0] = [f"the session was ended by {what}: {ran}", *ended.given_up]
    elif cut and not reports and ended.cases is None and ended.status == 0:
        raise RunError(problems[-1])
    elif ended.cases is None and ended.status == 0 and not ended.not_loaded:
        raise NothingSelectedError(_why_none(root, selection))
    elif not reports or ended.status not in {0, _FAILED_CASES}:
        raise RunError(_why_nothing(ended, len(reports), perflogs))
    elif counts.get("ran", counts["expected"]) < counts["expected"]:
        problems.insert(0, f"{counts['ran']} of {counts['expected']} expected test cases ran")
    return Outcome(ended.how, counts, tuple(problems), tuple(notes), seconds)


def _over_budget(root: Path, selection: Selection, budgets: DailyBudgets) -> list[Cost]:
    """Reserve what the selection may cost today, and return what exceeds the daily budgets."""
    try:
        costs = costs_of(describe(root, selection.arguments()))
        allowed = budgets({cost.partition.partition(":")[0] for cost in costs})
    except ValueError as error:
        raise RunError(str(error)) from error
    return reserve(root / "perflogs", costs, allowed, datetime.now(timezone.utc).date())


def _spoilt(reports: Iterable[Path], selection: Selection) -> dict[str, str]:
    """Return what is to be run once more; names among the arguments would select other checks."""
    if any(word.startswith(("-n", "--name")) for word in selection.extra):
        return {}
    return {code: why for report in reports for code, why in spoilt(report).items()}


def _exactly(name: str) -> str:
    """Return the pattern of `reframe -x` for one check, whose name it reads without blanks."""
    return f"^{re.escape(name.replace(' ', ''))}$"


def _why_damaged(report: Path, perflogs: Path, error: ValueError) -> str:
    """Return why a run report cannot be read: a full disk, or else by `error`."""
    try:
        require_room(report.parent)
    except OSError as why:
        return why.strerror or str(why)
    return f"{error}; ReFrame's output is in {perflogs / _LOG}"


def _why_none(root: Path, selection: Selection) -> str:
    """Return why no check was selected, with the tag that may be meant."""
    everywhere = [each for each in selection.arguments()[2:] if each.startswith("--system=")]
    tags = {tag for check in describe(root, everywhere) for tag in check["tags"]}
    close = get_close_matches(selection.tag, sorted(tags), n=1)
    meant = f"did you mean {close[0]}? " if close and selection.tag not in tags else ""
    return (
        f"no check was selected: none has the tag {selection.tag} and runs on this system; "
        f"{meant}`reframe -C config/site.py -c checks -R -L` lists all"
    )


def _why_nothing(ended: Ended, reports: int, perflogs: Path) -> str:
    if ended.cases is None and ended.not_loaded and ended.status == 0:
        return "; ".join(f"not loaded: {each}" for each in ended.not_loaded)
    if ended.cases is None:
        return ended.said
    return (
        f"ReFrame ended with status {ended.status} and left {reports} run reports; "
        f"its output is in {perflogs / _LOG}: {ended.said}"
    )


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
