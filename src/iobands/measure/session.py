"""Runs a session: its beginning and end, whether all checks were recorded, and repeats.

ReFrame exits with 0 if no check was selected, and if a check could not be loaded, so its output and
its run report are read.
"""

from __future__ import annotations

import re
import shlex
import signal
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from operator import attrgetter
from pathlib import Path

from iobands import model
from iobands.measure import lock, plan, reframe
from iobands.measure.perflogs import (
    open_to_all,
    recent_reports,
    reconcile,
    require_owner,
    require_room,
)
from iobands.measure.processes import Process, cancel_jobs, end_session
from iobands.measure.reframe import Ended, NothingSelectedError, Selection, Workplace
from iobands.measure.run_directories import clean_up, prune
from iobands.measure.run_reports import load_report, read_report, totals_of
from iobands.model import Ask, FileError, LastSession, SessionError, Unusable

#: Judges what was measured so far, and returns what to measure again.
Judge = Callable[[], Sequence[Ask]]


@dataclass(frozen=True)
class SessionOutcome:
    """How a session ended, its numbers of test cases, problems, and notes.

    `seconds` are the times that `totals_of` returns. `measured` are the asks that gave a rate.
    """

    how: str = model.COMPLETED
    counts: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    measured: tuple[Ask, ...] = ()


def measure(
    at: Workplace, selection: Selection, limit: float, judge: Judge = tuple
) -> SessionOutcome:
    """Run the selected checks one after the other, and judge.

    If the session is a scheduled one, measure again what `judge` returns, and judge anew. After
    `limit` seconds the session ends, and orphans are removed. ReFrame's output stays in
    `perflogs/iobands-run.log`, and the record in `perflogs/last-session.json`.

    Raises:
        NothingSelectedError: the selection contains no check; the record stays as it was.
        SessionError: another session runs, ReFrame did not run, or it was interrupted.
    """
    perflogs, end = at.perflogs, time.monotonic() + limit
    require_owner(perflogs, selection.system)
    with open_session(perflogs, f"iobands run --tag {selection.tag}") as (holder, notes):
        with lock.refusing(perflogs):
            begun, outcome = _recorded(at, selection, holder, limit)
        if outcome.how == model.INTERRUPTED:
            raise SessionError("; ".join((*outcome.problems, *outcome.notes)))
        clean_up(at.root, selection.system, at.read_site_file, notes)
        outcome = replace(outcome, notes=(*notes, *outcome.notes))
        asks = judge()
        if asks and outcome.how == model.COMPLETED and selection.purpose == model.SCHEDULED:
            again = _ask_again(at, asks, holder.session, end - time.monotonic())
            number = {"again": len(again.measured)} if again.measured else {}
            outcome = replace(
                outcome,
                counts={**outcome.counts, **number},
                problems=outcome.problems + again.problems,
                notes=outcome.notes + again.notes,
            )
            outcome = _end(perflogs, begun, outcome)
            judge()
    return outcome


def _recorded(
    at: Workplace, selection: Selection, holder: lock.Holder, limit: float
) -> tuple[LastSession, SessionOutcome]:
    """Run the checks of a session, and record how it ended."""
    perflogs = at.perflogs
    clock = lock.clock_problem(perflogs)
    former = lock.read_last_session(perflogs)
    begun = lock.begin_record(perflogs, holder, selection.tag or "", selection.system)
    try:
        with lock.refusing(perflogs):
            outcome = _session(at, selection, holder.session, limit)
        if clock:
            outcome = replace(outcome, problems=(clock, *outcome.problems))
        return begun, _end(perflogs, begun, outcome)
    except NothingSelectedError:
        lock.write_record(perflogs, former)  # as no session took place
        raise
    except BaseException as error:  # also Ctrl-C before ReFrame runs and after it
        how = model.FAILED if isinstance(error, Exception) else model.INTERRUPTED
        _end(perflogs, begun, SessionOutcome(how, problems=(str(error) or "by Ctrl-C",)))
        raise
    finally:
        if not clock:
            prune(at.root)


def _end(perflogs: Path, begun: LastSession, outcome: SessionOutcome) -> SessionOutcome:
    """Record how a session ended; if that fails, return the outcome with one more problem."""
    record = replace(
        begun,
        ended=datetime.now(timezone.utc).replace(microsecond=0),
        how=outcome.how,
        counts=outcome.counts,
        reason="; ".join(outcome.problems) or None,
        seconds=outcome.seconds,
    )
    try:
        lock.write_record(perflogs, record)
    except OSError as error:
        problem = f"the end of the session was not recorded: {error.filename}: {error.strerror}"
        return replace(outcome, problems=(*outcome.problems, problem))
    return outcome


def measure_again(at: Workplace, judge: Judge, limit: float) -> SessionOutcome | None:
    """Measure what `judge` returns, and judge anew; None if another session is measuring.

    It leaves no record, so the next session stays due. It ends early if another session begins.
    Raises SessionError if ReFrame did not run, or nothing can be recorded.
    """
    perflogs = at.perflogs
    session = open_session(perflogs, lock.SUSPECTS)
    with suppress(lock.BusyError), lock.refusing(perflogs), session as (holder, notes):
        try:
            _require_clock(perflogs)
            again = _ask_again(at, _for_this_machine(at, judge()), holder.session, limit)
            if again.measured or again.notes or again.problems:
                clean_up(at.root, None, at.read_site_file, notes)
                judge()
            return replace(again, notes=(*notes, *again.notes))
        except KeyboardInterrupt:  # by the heartbeat, if another session begins
            if not lock.wanted(perflogs).exists():
                raise
    return None


def _for_this_machine(at: Workplace, asks: Sequence[Ask]) -> list[Ask]:
    """Return the asks for this machine's systems, or all if no site file names this host.

    The directory may be shared with another cluster, whose jobs must not run here.
    """
    host = socket.gethostname()
    own = {
        system
        for system, site_file in at.systems()
        if any(re.match(name, host) for name in site_file.hostnames)
    }
    # `local` matches any host
    return [ask for ask in asks if ask.system in own or not own - {"local"}]


def _require_clock(perflogs: Path) -> None:
    if clock := lock.clock_problem(perflogs):
        raise SessionError(clock)


def measure_apart(
    at: Workplace, selections: Sequence[Selection], limit: float
) -> list[SessionOutcome]:
    """Run some checks in a session that leaves no record, and return how each selection ended.

    The next session is due as if this one had not taken place. Raises SessionError if another
    session runs, ReFrame did not run, or it was interrupted.
    """
    perflogs, end = at.perflogs, time.monotonic() + limit
    outcomes: list[SessionOutcome] = []
    with lock.refusing(perflogs), open_session(perflogs, "iobands accept") as (holder, notes):
        _require_clock(perflogs)
        for selection in selections:
            outcomes.append(_session(at, selection, holder.session, end - time.monotonic()))
            if outcomes[-1].how != model.COMPLETED:
                break
        if outcomes[-1].how == model.INTERRUPTED:
            raise SessionError("; ".join((*outcomes[-1].problems, *outcomes[-1].notes)))
        clean_up(at.root, selections[0].system, at.read_site_file, notes)
    outcomes[0] = replace(outcomes[0], notes=(*notes, *outcomes[0].notes))
    return outcomes


def _session(at: Workplace, selection: Selection, session: str, limit: float) -> SessionOutcome:
    perflogs = at.perflogs
    at.step("selecting checks")
    (perflogs / reframe.LOG).write_bytes(b"")
    cut, kept = plan.over_budget(at, selection)
    gone = dict.fromkeys(cost.name for cost in cut if cost.name not in kept)
    without = [word for name in gone for word in ("-x", reframe.exactly(name))]
    partly = [(cost.partition, cost.name) for cost in cut if cost.name in kept]
    ended = reframe.run_checks(at, selection, without, session, limit, partly)
    problems = [f"not loaded: {each}" for each in ended.not_loaded]
    counts: dict[str, int] = {}
    seconds: dict[str, float] = {}
    if ended.reports:
        counts["expected"] = ended.cases or 0
        first = ended.reports[0]
        try:
            found, seconds = totals_of(load_report(first))
            counts |= found
        except Unusable as error:
            why = f"{error}; ReFrame's output is in {perflogs / reframe.LOG}"
            try:
                require_room(first.parent)
            except OSError as full:
                why = full.strerror or str(full)
            problems.append(f"{first}: {why}")
    if ended.repeated:
        counts["repeated"] = len(ended.repeated)
    again = "run again because the infrastructure failed"
    notes = [*ended.untested, *(f"{again}: {why}" for why in sorted({*ended.repeated.values()}))]
    notes += end_rest(perflogs, session, waited=ended.was_complete)
    names = ", ".join([*gone, *(f"{name} on {place}" for place, name in partly)])
    left_out = [f"left out because of the daily budget in the site file: {names}"] if cut else []
    problems += left_out
    reports = dict.fromkeys([*ended.reports, *recent_reports(perflogs)])
    written, lost = reconcile(reports, perflogs)
    notes += written
    problems += lost
    if ended.how != model.COMPLETED:
        what = f"its limit of {limit:g} s" if ended.how == model.LIMIT else "a signal"
        ran = f"{counts.get('ran', 0)} of {ended.cases or 'the'} test cases were begun"
        problems[:0] = [f"the session was ended by {what}: {ran}", *ended.given_up]
    elif not (ended.reports and ended.was_complete) or ended.selected_none:
        raise _why_nothing(at.root, selection, ended, left_out)
    elif counts.get("ran", counts["expected"]) < counts["expected"]:
        why = f": {ended.said}" if "session stopped" in ended.said else ""
        problems.insert(0, f"{counts['ran']} of {counts['expected']} expected test cases ran{why}")
    return SessionOutcome(ended.how, counts, tuple(problems), tuple(notes), seconds)


def _why_nothing(
    root: Path, selection: Selection, ended: Ended, left_out: Sequence[str]
) -> SessionError:
    """Return why ReFrame measured nothing, or did not run to its end."""
    if ended.selected_none and not left_out:
        return NothingSelectedError(why_none(root, selection))
    log = root / "perflogs" / reframe.LOG
    if ended.cases is None:
        unloaded = [f"not loaded: {each}" for each in ended.not_loaded]
        if len(unloaded) > 1:
            unloaded[1:] = [f"{len(unloaded) - 1} more, in {log}"]
        why = ended.said if ended.status else "; ".join([*left_out, *unloaded])
        # without them all arguments are iobands' own, and the next session would fail as well
        is_own = selection.extra or (selection.system and ended.status == reframe.WRONG_ARGUMENT)
        return (NothingSelectedError if is_own else SessionError)(why)
    left = f"ReFrame ended with status {ended.status} and left {len(ended.reports)} run reports"
    return SessionError(f"{left}; its output is in {log}: {ended.said}")


def why_none(root: Path, selection: Selection) -> str:
    """Return why no check was selected, with the known tags."""
    lists = "`iobands reframe -- -L` lists all"
    if selection.tag is None:
        return f"no check was selected: it may be gone or renamed; {lists}"
    everywhere = [each for each in selection.arguments()[2:] if each.startswith("--system=")]
    tags = {tag for check in reframe.describe(root, everywhere) for tag in check["tags"]}
    if selection.tag in tags:
        words = shlex.join(selection.extra)
        return f"no check with the tag {selection.tag} is selected by {words}; {lists}"
    have = f"no check that runs on this system has the tag {selection.tag}"
    return f"{have}; {model.one_of(selection.tag, sorted(tags))}"


def _ask_again(at: Workplace, asks: Sequence[Ask], session: str, limit: float) -> SessionOutcome:
    """Measure `asks` again, as far as the limits of their site files allow.

    A repeat waits until some minutes have passed since its low run. Each ask is recorded in the
    plan first, so that no other host and no later hour asks for the same while its job waits.
    """
    perflogs, end = at.perflogs, time.monotonic() + limit
    now = datetime.now(timezone.utc)
    try:
        limits = {ask: plan.limits_of(at.read_site_file, ask.place) for ask in asks}
    except FileError as error:
        return SessionOutcome(problems=(str(error),))
    chosen = plan.allowed(asks, plan.read_plan(perflogs).asked, limits, now)
    wanted = (ask for ask in asks if limits[ask].allow and limits[ask].repeat)
    left = ", ".join(dict.fromkeys(ask.check for ask in wanted if ask not in chosen))
    why = "not repeated, as `suspects` in the site file allows no more today"
    notes = [f"{why}: {left}"] if left else []
    begin = max((ask.measured + timedelta(hours=limits[ask].repeat) for ask in chosen), default=now)
    how = model.COMPLETED
    problems: list[str] = []
    failed: defaultdict[str, list[str]] = defaultdict(list)
    measured: list[Ask] = []
    reports: list[Path] = []
    try:  # a full disk must not lose the digest of earlier runs
        if chosen and chosen[0].purpose == model.REPEAT and begin > now:
            at.step(f"waiting until {begin.astimezone():%H:%M} for the repeats")
            longest = max(limits[ask].repeat for ask in chosen) * 3600
            how = reframe.pause(at, min((begin - now).total_seconds(), longest), limit)
        for selection, own in _selections(chosen):
            if how != model.COMPLETED:
                break
            plan.note_asked(perflogs, {ask: limits[ask] for ask in own}, datetime.now(timezone.utc))
            ended = reframe.run_checks(at, selection, [], session, end - time.monotonic())
            how = ended.how
            notes += end_rest(perflogs, session, waited=ended.was_complete)
            reports += ended.reports
            problems += [f"not loaded: {each}" for each in ended.not_loaded]
            if how == model.COMPLETED and not ended.reports and ended.cases is not None:
                problems.append(ended.said)
            for ask in own:
                if not (why := _why_not(ask, ended.reports)):
                    measured.append(ask)
                elif how == model.COMPLETED:
                    failed[why].append(ask.check)
    except OSError as error:
        problems.append(f"not measured again: {error.filename}: {error.strerror}")
    notes += [f"not measured again: {', '.join(each)}: {why}" for why, each in failed.items()]
    if how != model.COMPLETED:
        what = "reached the time limit" if how == model.LIMIT else "were interrupted"
        notes.append(f"the repeats {what}; {len(measured)} of {len(chosen)} are done")
    written, lost = reconcile(reports, perflogs)
    return SessionOutcome(
        how, problems=(*problems, *lost), notes=(*notes, *written), measured=tuple(measured)
    )


def _selections(asks: Sequence[Ask]) -> Iterator[tuple[Selection, list[Ask]]]:
    """Yield a selection and its asks for each partition, environment, purpose, target and node."""
    how = attrgetter("place", "environ", "purpose", "target", "node")
    for (place, environ, purpose, target, node), own in model.grouped_by(asks, how).items():
        words: list[str] = []
        for kind, peer in ((model.TARGET, target), (model.NODE, node)):
            words += ["-S", f"{own[0].check.split()[0]}.{kind}={peer}"] if peer else []
        yield reframe.selection_of([ask.check for ask in own], place, environ, purpose, words), own


def _why_not(ask: Ask, reports: Iterable[Path]) -> str:
    """Return why an ask gave no rate, by the run reports; empty if it gave one."""
    for path in reports:
        with suppress(Unusable):
            for run in read_report(path)[1]:
                if run.identity == ask.of_check:
                    return "" if run.recorded else run.reason or run.result
    return "ReFrame finds no such check; if it was removed, retire its series"


@contextmanager
def open_session(perflogs: Path, command: str) -> Iterator[tuple[lock.Holder, list[str]]]:
    """Hold the lock for a session of this process, and end what a killed one left running.

    Yield the holder, and notes on what was found, or raise SessionError as `acquire` does. A signal
    to end raises KeyboardInterrupt, as Ctrl-C does, so that the lock is removed.
    """
    with lock.refusing(perflogs):
        perflogs.mkdir(exist_ok=True)
    holder = lock.new_holder(command)
    former = lock.acquire(perflogs, holder)
    stop_beating = lock.start_beating(perflogs, holder)
    try:
        with reframe.at_signals(_interrupt, signal.SIGTERM, signal.SIGHUP):
            notes = open_to_all(perflogs)
            if former:
                lock.record_killed(perflogs, former.session)
                notes += [f"a session was killed: {former}", *end_rest(perflogs, former.session)]
            yield holder, notes
    finally:
        stop_beating()
        lock.release(perflogs, holder.session)


def _interrupt() -> None:
    raise KeyboardInterrupt("by a signal")


def end_rest(perflogs: Path, session: str, *, waited: bool = False) -> list[str]:
    """End a session's processes, and its jobs unless ReFrame `waited` for them; return notes."""
    number, left = end_session(session)
    processes = f"{number} process{'' if number == 1 else 'es'}"
    notes = [f"ended {processes} that the session left running"] if number else []
    if left:
        pids = ", ".join(str(process.pid) for process in left)
        notes.append(f"could not be killed; probably blocked on a hung file system: pid {pids}")
    with suppress(SessionError):  # without the lock, the noted jobs are another session's
        holder = lock.read_holder(perflogs)
        waited |= holder is not None and Process.this() not in holder.processes
    return notes if waited else [*notes, *cancel_jobs(perflogs)]
