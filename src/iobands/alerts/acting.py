"""From what a person asks for to the act that is written: is the alarm open, and what is it of.

May know: surveys, what can be acted on and acts; nothing of files or of the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from iobands.alerts.acts import (
    ACKNOWLEDGE,
    ACKNOWLEDGE_COLLAPSES,
    NEW_NORMAL,
    REOPEN,
    Act,
)
from iobands.alerts.file_systems import FileSystem
from iobands.alerts.targets import CannotAct, Request, Target, last_act, together
from iobands.reporting.format import act_text
from iobands.status.following import Change
from iobands.status.states import State
from iobands.status.survey import Series, Survey

#: What comes after the newest sample, whose time may have a fraction.
_NEXT: Final = timedelta(seconds=1)


def act_of(target: Target, request: Request, survey: Survey) -> Act | None:
    """Return the act that is to be written for `request`, or None where it was done already.

    Raises:
        CannotAct: no alarm is open, there is nothing to take back, or the time cannot be.
    """
    if request.since and request.since > survey.now:
        raise CannotAct(f"{request.since.isoformat()} is in the future; act when it has come")
    if request.kind == REOPEN:
        return _reopening(target, request, survey)
    if target.collapsing:
        return _of_collapses(target, target.collapsing, request, survey)
    change = target.change
    if change is None and not (request.kind == NEW_NORMAL and request.since):
        raise CannotAct(_no_alarm(target, survey))
    if request.kind == ACKNOWLEDGE and _is_known(target, request, survey):
        return None
    if change and request.since and request.since < change.since_low and request.kind != NEW_NORMAL:
        raise CannotAct(f"{target.name}: its alarm began later, at {change.since.isoformat()}")
    moved = [each for each in target.series if each.key in target.moved or together(each, change)]
    if request.kind == NEW_NORMAL:
        _refuse_for_nodes(target)
        since = request.since or (change.since if change else None)
        return _act(request, survey, moved if change else target.series, change, since=since)
    own = [each.status.change for each in moved if together(each, change)]
    begins = [each.since_low for each in (change, *own) if each]
    newest = max(each.status.when for each in moved if each.status.when)
    # what has been seen is of the alarm, also where the clock of what measured is ahead of ours
    until = request.since or max(survey.now, newest + _NEXT)
    act = _act(request, survey, target.series, change, since=min(begins), until=until)
    return replace(act, on_nodes=target.nodes)


def _refuse_for_nodes(target: Target) -> None:
    """Refuse a new normal of nodes that others run the series too: it would be of all runs.

    Raises:
        CannotAct: they do.
    """
    if target.pool is None or target.pool.rows is None:
        return
    touched = sum(len(rows) for rows in target.pool.rows.values())
    runs = sum(len(each.history) for each in target.series)
    raise CannotAct(
        f"{target.name}: nodes have no normal of their own. A new one would throw away all {runs} "
        f"runs of {len(target.series)} series, of which {touched} of the newest year touched these "
        "nodes. If they are to stay as they are, `iobands acknowledge`; once they are repaired, "
        "`iobands close`, which leaves out their runs alone"
    )


def _of_collapses(
    target: Target, file_system: FileSystem, request: Request, survey: Survey
) -> Act | None:
    """Return the act about a rate of collapses that has risen.

    Raises:
        CannotAct: it has not, or the act is none of these.
    """
    if request.kind != ACKNOWLEDGE:
        raise CannotAct(f"{target.name}: more collapses can be acknowledged, and no more")
    if not file_system.has_risen:
        raise CannotAct(f"{target.name}: the rate of collapses has not risen")
    known = file_system.known
    if known and known.reason == request.reason:
        return None
    newest = max(each.status.when for each in target.series if each.status.when)
    since, until = file_system.collapses.recent_since, max(survey.now, newest + _NEXT)
    act = _act(request, survey, target.series, None, since=since, until=until)
    # whatever its series are by then
    series = ({"file_system": target.series[0].key.file_system},)
    return replace(act, kind=ACKNOWLEDGE_COLLAPSES, series=series)


def _act(
    request: Request,
    survey: Survey,
    series: Sequence[Series],
    change: Change | None,
    **times: datetime | None,
) -> Act:
    return Act(
        kind=request.kind,
        when=survey.now,
        who=request.who,
        reason=request.reason,
        series=_names(series, survey),
        direction=change.direction if change else None,
        ratio=change.ratio.value if change else None,
        **times,
    )


def _names(series: Sequence[Series], survey: Survey) -> tuple[Mapping[str, object], ...]:
    """Return what names `series`: what they have in common, if no other series has that too."""
    system = series[0].key.system
    fields = [
        {name: value for name, value in each.key.fields().items() if name != "system"}
        for each in series
    ]
    common = {
        name: value
        for name, value in fields[0].items()
        if all(other[name] == value for other in fields)
    }
    alike = [
        each
        for each in survey.series
        if each.key.system == system
        and all(getattr(each.key, name) == value for name, value in common.items())
    ]
    return (common,) if len(alike) == len(series) else tuple(fields)


def _is_known(target: Target, request: Request, survey: Survey) -> bool:
    """Tell whether the alarm is quiet already, for the same reason."""
    known = (
        survey.acknowledged.get(target.name)
        if target.is_shared
        else target.series[0].status.acknowledged
    )
    return known is not None and known.holds and known.act.reason == request.reason


def _no_alarm(target: Target, survey: Survey) -> str:
    shared = [
        each.name for each in survey.common if {one.key for one in target.series} & {*each.keys}
    ]
    if shared and not target.is_shared:
        return f"{target.name} has no alarm of its own; name the one that it shares: {shared[0]}"
    last = last_act(target, survey)
    before = f"; {last.kind}, {act_text(last)}" if last else ""
    if target.is_shared:
        return f"{target.name} has no open alarm{before}"
    state = target.series[0].status.state
    why = ", and no alarm yet: the next runs will tell" if state is State.WATCH else ""
    return f"{target.name} has no open alarm: its state is {state.value}{why}{before}"


def _reopening(target: Target, request: Request, survey: Survey) -> Act:
    last = last_act(target, survey)
    if last is None:
        raise CannotAct(f"{target.name}: nothing was done that could be taken back")
    return _act(request, survey, target.series, None, of=last.when)
