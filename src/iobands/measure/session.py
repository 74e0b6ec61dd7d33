"""A session: how it begins and ends, and whether it ran and recorded all its checks.

ReFrame exits with 0 if no check was selected, and if a check could not be loaded, so its output and
its run report are read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

from iobands.measure.lock import (
    SUSPECTS,
    BusyError,
    Holder,
    acquire,
    clock_problem,
    lock_path,
    new_holder,
    read_holder,
    refusal,
    release,
    start_beating,
    wanted,
)
from iobands.measure.perflogs import open_to_all, recent_reports, reconcile, require_room
from iobands.measure.plan import Again, ask_again
from iobands.measure.processes import cancel_jobs, end_session, forget_jobs
from iobands.measure.record import (
    begin_record,
    end_record,
    over_budget,
    read_last_session,
    restore_record,
)
from iobands.measure.reframe import LOG, Ended, Selection, Workplace, describe, exactly, run_checks
from iobands.measure.run_reports import load_report, totals_of
from iobands.measure.sweep import clean_up, prune
from iobands.model import (
    COMPLETED,
    FAILED,
    INTERRUPTED,
    LIMIT,
    SCHEDULED,
    Ask,
    LastSession,
    SessionError,
)

#: Judges what was measured so far, and returns what to measure again.
Judge = Callable[[], Sequence[Ask]]

_stop_beating: dict[str, Callable[[], None]] = {}  # by session


class NothingSelectedError(SessionError):
    """No check has the tag: nothing was measured, and nothing has failed."""


@dataclass(frozen=True)
class SessionOutcome:
    """How a session ended, its numbers of test cases, what is wrong, and notes.

    `seconds` says where its time went, as in the record.
    """

    how: str
    counts: dict[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)


def measure(
    at: Workplace, selection: Selection, limit: float, judge: Judge = tuple
) -> SessionOutcome:
    """Run the selected checks one after the other, and judge.

    Unless a person selected the checks, it then measures again what `judge` returns, and judges
    anew. After `limit` seconds the session ends, and orphans are removed. The output of the last
    session is also kept as `perflogs/iobands-run.log`, and how it ended as
    `perflogs/last-session.json`.

    Raises:
        SessionError: another session runs, no check was selected, ReFrame did not run, or it was
            interrupted.
    """
    perflogs, end = at.perflogs, time.monotonic() + limit
    holder, notes = open_session(perflogs, f"iobands run --tag {selection.tag}")
    try:
        try:
            record, outcome = _recorded(at, selection, holder, limit)
        except OSError as error:
            raise refusal(error, Path(error.filename or perflogs)) from error
        outcome = replace(outcome, notes=(*notes, *outcome.notes))
        if outcome.how == INTERRUPTED:
            raise SessionError("; ".join(outcome.problems))
        clean_up(at.root, selection.system, at.read_site_file)
        asks = judge()
        if asks and outcome.how == COMPLETED and selection.purpose == SCHEDULED:
            again = _asked(at, asks, holder, end - time.monotonic())
            if again.how != COMPLETED:
                end_rest(perflogs, holder.session)
            outcome = _with(outcome, again)
            _end(perflogs, record, outcome)
            judge()
    finally:
        close_session(perflogs, holder.session)
    return outcome


def _recorded(
    at: Workplace, selection: Selection, holder: Holder, limit: float
) -> tuple[LastSession, SessionOutcome]:
    """Run the checks of a session, and record how it ended."""
    perflogs = at.perflogs
    clock = clock_problem(perflogs)
    former = read_last_session(perflogs)
    record = begin_record(perflogs, holder, selection.tag or "", selection.system)
    try:
        outcome = _session(at, selection, holder.session, limit)
    except NothingSelectedError:
        restore_record(perflogs, former)
        raise
    except (SessionError, OSError) as error:
        end_record(perflogs, record, FAILED, {}, str(error))
        raise
    outcome = replace(outcome, problems=(*([clock] if clock else []), *outcome.problems))
    _end(perflogs, record, outcome)
    if not clock:
        prune(at.root)
    return record, outcome


def _end(perflogs: Path, record: LastSession, outcome: SessionOutcome) -> None:
    reason = "; ".join(outcome.problems) or None
    end_record(perflogs, record, outcome.how, outcome.counts, reason, outcome.seconds)


def measure_again(at: Workplace, judge: Judge, limit: float) -> Again | None:
    """Measure what `judge` returns, and judge anew; None if another session is measuring.

    It leaves no record, as the next session is due as if it had not taken place. Another session
    that begins ends it.

    Raises:
        SessionError: ReFrame did not run, or nothing can be recorded.
    """
    perflogs = at.perflogs
    try:
        holder, notes = open_session(perflogs, SUSPECTS)
    except BusyError:
        return None
    try:
        if clock := clock_problem(perflogs):
            raise SessionError(clock)
        again = _asked(at, judge(), holder, limit)
        notes += end_rest(perflogs, holder.session, waited=again.how == COMPLETED)
        if again.measured or again.notes or again.problems:
            clean_up(at.root, None, at.read_site_file)
            judge()
    except OSError as error:
        raise refusal(error, Path(error.filename or perflogs)) from error
    finally:
        close_session(perflogs, holder.session)
    return replace(again, notes=(*notes, *again.notes))


def measure_apart(
    at: Workplace, selections: Sequence[Selection], limit: float
) -> list[SessionOutcome]:
    """Run some checks in a session that leaves no record, and return how each selection ended.

    The next session is due as if this one had not taken place.

    Raises:
        SessionError: another session runs, ReFrame did not run, or it was interrupted.
    """
    perflogs, end = at.perflogs, time.monotonic() + limit
    holder, notes = open_session(perflogs, "iobands accept")
    outcomes: list[SessionOutcome] = []
    try:
        if clock := clock_problem(perflogs):
            raise SessionError(clock)
        for selection in selections:
            outcome = _session(at, selection, holder.session, end - time.monotonic())
            outcomes.append(replace(outcome, notes=(*notes, *outcome.notes)))
            notes = []
            if outcome.how != COMPLETED:
                break
    except OSError as error:
        raise refusal(error, Path(error.filename or perflogs)) from error
    finally:
        close_session(perflogs, holder.session)
    if any(outcome.how == INTERRUPTED for outcome in outcomes):
        raise SessionError("; ".join(outcomes[-1].problems))
    clean_up(at.root, (selections[0].system or "").partition(":")[0] or None, at.read_site_file)
    return outcomes


def _asked(at: Workplace, asks: Sequence[Ask], holder: Holder, limit: float) -> Again:
    """Measure `asks` again, and check that the perflogs have the results."""
    again = ask_again(at, asks, holder.session, limit)
    found = reconcile(again.reports, at.perflogs)
    return replace(
        again, problems=(*again.problems, *found.lost), notes=(*again.notes, *found.notes)
    )


def _with(outcome: SessionOutcome, again: Again) -> SessionOutcome:
    """Return the outcome of a session with what was measured again at its end."""
    number = len(again.measured)
    return replace(
        outcome,
        counts=outcome.counts | ({"again": number} if number else {}),
        problems=(*outcome.problems, *again.problems),
        notes=(*outcome.notes, *again.notes),
    )


def _session(at: Workplace, selection: Selection, session: str, limit: float) -> SessionOutcome:
    """Run ReFrame in a session, and check its results."""
    perflogs = at.perflogs
    at.listener.step("selecting checks")
    (perflogs / LOG).write_bytes(b"")
    cut = over_budget(at.root, selection, at.read_site_file)
    without = [word for cost in cut for word in ("-x", exactly(cost.name))]
    ended = run_checks(at.root, selection, without, session, limit, at.listener)
    problems = [f"not loaded: {each}" for each in ended.not_loaded]
    counts: dict[str, int] = {}
    seconds: dict[str, float] = {}
    if ended.reports:
        counts["expected"] = ended.cases or 0
        first = ended.reports[0]
        try:
            found, seconds = totals_of(load_report(first))
            counts |= found
        except ValueError as error:
            problems.append(f"{first}: {_why_damaged(first, perflogs, error)}")
    if ended.repeated:
        counts["repeated"] = len(ended.repeated)
    notes = [
        *ended.untested,
        *(f"run again because the infrastructure failed: {why}" for why in ended.repeated.values()),
        *end_rest(perflogs, session, waited=ended.was_complete),
    ]
    names = ", ".join(cost.name for cost in cut)
    left_out = f"left out because of the daily budget in the site file: {names}"
    if cut:
        problems.append(left_out)
    for these in (ended.reports, sorted({*recent_reports(perflogs)} - {*ended.reports})):
        reconciled = reconcile(these, perflogs)
        notes += reconciled.notes
        problems += reconciled.lost
    if ended.how != COMPLETED:
        what = f"its limit of {limit:g} s" if ended.how == LIMIT else "a signal"
        ran = f"{counts.get('ran', 0)} of {ended.cases or 'the'} test cases were begun"
        problems[:0] = [f"the session was ended by {what}: {ran}", *ended.given_up]
    elif ended.cases is None and ended.status == 0 and cut and not ended.reports:
        raise SessionError(left_out)
    elif ended.cases is None and ended.status == 0 and not ended.not_loaded:
        raise NothingSelectedError(_why_none(at.root, selection))
    elif not ended.reports or not ended.was_complete:
        raise SessionError(_why_nothing(ended, perflogs))
    elif counts.get("ran", counts["expected"]) < counts["expected"]:
        problems.insert(0, f"{counts['ran']} of {counts['expected']} expected test cases ran")
    return SessionOutcome(ended.how, counts, tuple(problems), tuple(notes), seconds)


def _why_damaged(report: Path, perflogs: Path, error: ValueError) -> str:
    """Return why a run report cannot be read: a full disk, or else `error`."""
    try:
        require_room(report.parent)
    except OSError as why:
        return why.strerror or str(why)
    return f"{error}; ReFrame's output is in {perflogs / LOG}"


def _why_none(root: Path, selection: Selection) -> str:
    """Return why no check was selected, with the tag that is probably meant."""
    if selection.tag is None:
        return "no check was selected: it may be gone or renamed; `iobands reframe -- -L` lists all"
    everywhere = [each for each in selection.arguments()[2:] if each.startswith("--system=")]
    tags = {tag for check in describe(root, everywhere) for tag in check["tags"]}
    close = get_close_matches(selection.tag, sorted(tags), n=1)
    meant = f"did you mean {close[0]}? " if close and selection.tag not in tags else ""
    return (
        f"no check was selected: none has the tag {selection.tag} and runs on this system; "
        f"{meant}`iobands reframe -- -L` lists all"
    )


def _why_nothing(ended: Ended, perflogs: Path) -> str:
    if ended.cases is None and ended.not_loaded and ended.status == 0:
        return "; ".join(f"not loaded: {each}" for each in ended.not_loaded)
    if ended.cases is None:
        return ended.said
    return (
        f"ReFrame ended with status {ended.status} and left {len(ended.reports)} run reports; "
        f"its output is in {perflogs / LOG}: {ended.said}"
    )


def open_session(perflogs: Path, command: str) -> tuple[Holder, list[str]]:
    """Begin a session of this process: take the lock, and end what a killed session left running.

    Return the session, and notes on what was found.

    Raises:
        SessionError: another session runs, or the lock cannot be made.
    """
    try:
        perflogs.mkdir(exist_ok=True)
    except OSError as error:
        raise refusal(error, perflogs) from error
    holder = new_holder(command)
    former = acquire(perflogs, holder)

    def is_ours() -> bool:
        if holder.yields and wanted(perflogs).exists():
            return False
        with suppress(SessionError):
            found = read_holder(perflogs)
            return found is None or found.session == holder.session
        return True

    _stop_beating[holder.session] = start_beating(lock_path(perflogs), is_ours)
    notes = open_to_all(perflogs)
    if former:
        notes += [f"a session was killed: {former}", *end_rest(perflogs, former.session)]
    return holder, notes


def close_session(perflogs: Path, session: str) -> None:
    """End a session, and release its lock."""
    _stop_beating.pop(session)()
    forget_jobs(perflogs)
    release(perflogs, session)


def end_rest(perflogs: Path, session: str, *, waited: bool = False) -> list[str]:
    """End the processes and cancel the jobs that a session left running; return notes on them.

    With `waited`, ReFrame has waited for all jobs.
    """
    number, left = end_session(session)
    notes = [f"it left {number} processes running; they were ended"] if number else []
    if left:
        pids = ", ".join(str(process.pid) for process in left)
        notes.append(f"could not be killed; probably blocked on a hung file system: pid {pids}")
    return notes if waited else [*notes, *cancel_jobs(perflogs)]
