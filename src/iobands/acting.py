"""From what a person asks for to the act that is written: which alarm is meant, and is it open.

May know: surveys and acts; nothing of files, of the command line or of how it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from iobands.acts import (
    ACKNOWLEDGE,
    ACKNOWLEDGE_COLLAPSES,
    NEW_NORMAL,
    REOPEN,
    Act,
    standing,
)
from iobands.collapse_views import name_of
from iobands.file_systems import FileSystem
from iobands.following import Change
from iobands.pools import Pool
from iobands.series import SeriesKey, slug
from iobands.states import State
from iobands.survey import Series, Survey
from iobands.words import act_text, nearest

#: What comes after the newest sample, whose time may have a fraction.
_NEXT: Final = timedelta(seconds=1)


class CannotAct(ValueError):
    """There is nothing to act on; the message says why and what to do."""


@dataclass(frozen=True)
class Target:
    """What can be acted on: one series, or those that are pooled, under a name.

    `change` is what lasts of it, None where nothing does, and `moved` the series it was seen in.
    With `nodes` it is of the runs alone that touched these, `pool` is what is shared, and
    `collapsing` the file system whose rate of collapses is meant.
    """

    name: str
    series: tuple[Series, ...]
    change: Change | None
    moved: frozenset[SeriesKey]
    nodes: tuple[str, ...] = ()
    pool: Pool | None = None
    collapsing: FileSystem | None = None

    @property
    def is_shared(self) -> bool:
        """Whether it is of what several series share."""
        return self.pool is not None

    @property
    def system(self) -> str:
        """The system that it is of."""
        return self.series[0].key.system


@dataclass(frozen=True)
class Request:
    """What a person asks for; `since` is None unless it was given."""

    kind: str
    who: str
    reason: str
    since: datetime | None = None


def chosen(survey: Survey, wanted: str, request: Request, *, every: bool) -> list[Target]:
    """Return the targets that `wanted` means: one, or all that are like it with `every`.

    It may be a name as `iobands explain` takes it, or that of a shared cause. Words that several
    names have mean those that can be acted on; where a shared cause is meant, no series of it.

    Raises:
        CannotAct: it means none, or several without `every`.
    """
    known = _targets(survey)
    exact = [each for each in known if wanted == each.name or wanted == _slug(each)]
    if exact:
        return exact
    words = wanted.casefold().split()
    like = [each for each in known if all(word in each.name.casefold() for word in words)]
    if not like or not words:
        names = nearest([each.label for each in survey.series], wanted)
        raise CannotAct(f"no series is called {wanted}; there are:{names}")
    able = [each for each in like if _able(each, request, survey)]
    shared = [each for each in able if each.is_shared]
    able = [
        each for each in able if not any(_is_part(each, one, request, survey) for one in shared)
    ]
    if not able:
        if len(like) == 1:
            return like  # of which it can be said why not
        what = "has anything to take back" if request.kind == REOPEN else "has an open alarm"
        names = nearest([each.name for each in like], wanted)
        raise CannotAct(f"none of what {wanted} may be {what}:{names}")
    if len(able) > 1 and not every:
        names = "".join(f"\n  {each.name}{_what(each, request, survey)}" for each in able)
        raise CannotAct(f"{wanted} may be any of {len(able)}; name one, or give --all:{names}")
    return able


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
    moved = [each for each in target.series if each.key in target.moved or _together(each, change)]
    if request.kind == NEW_NORMAL:
        _refuse_for_nodes(target)
        since = request.since or (change.since if change else None)
        return _act(request, survey, moved if change else target.series, change, since=since)
    own = [each.status.change for each in moved if _together(each, change)]
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


def _targets(survey: Survey) -> list[Target]:
    """Return all that can be acted on, shared causes first."""
    by_key = {each.key: each for each in survey.series}
    common = {each.name: each for each in survey.common}
    shared = []
    for pool in survey.pools:
        found = common.get(pool.name)
        change, moved = (found.change, found.keys) if found else (None, ())
        series = tuple(by_key[key] for key in pool.keys)
        target = Target(pool.name, series, change, frozenset(moved), pool.nodes, pool)
        shared.append(target)
    alone = [
        Target(each.label, (each,), each.status.change, frozenset([each.key]))
        for each in survey.series
    ]
    return [*shared, *alone, *_collapsing(survey)]


def _collapsing(survey: Survey) -> Iterator[Target]:
    """Yield each file system whose rate of collapses has risen, or was acknowledged."""
    for each in survey.collapses.file_systems:
        series = tuple(
            one
            for one in survey.series
            if (one.key.system, one.key.file_system or "none") == (each.system, each.name)
        )
        name = f"{name_of(each, survey)} collapses"
        target = Target(name, series, None, frozenset(), collapsing=each)
        if each.has_risen or _last(target, survey):
            yield target


def _slug(target: Target) -> str | None:
    return None if target.is_shared or target.collapsing else slug(target.series[0].key)


def _able(target: Target, request: Request, survey: Survey) -> bool:
    """Tell whether there is something to do for `request`."""
    if request.kind == REOPEN:
        return _last(target, survey) is not None
    if target.collapsing:
        return request.kind == ACKNOWLEDGE and target.collapsing.has_risen
    return target.change is not None or (request.kind == NEW_NORMAL and request.since is not None)


def _what(target: Target, request: Request, survey: Survey) -> str:
    """Return what would be taken back of `target`, if anything is to be."""
    last = _last(target, survey) if request.kind == REOPEN else None
    return f": {last.kind}, {act_text(last)}" if last else ""


def _is_part(target: Target, shared: Target, request: Request, survey: Survey) -> bool:
    """Tell whether `target` is of a series that `shared` has, with the same alarm or act."""
    if target.is_shared or target.collapsing or target.series[0] not in shared.series:
        return False
    if request.kind == REOPEN:
        return _last(target, survey) == _last(shared, survey)
    return _together(target.series[0], shared.change)


def _together(series: Series, change: Change | None) -> bool:
    """Tell whether the series changed as `change` says, at the same time."""
    own = series.status.change
    return (
        own is not None
        and change is not None
        and own.direction == change.direction
        and own.since_low <= change.since_high
        and own.since_high >= change.since_low
    )


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
    last = _last(target, survey)
    before = f"; {last.kind}, {act_text(last)}" if last else ""
    if target.is_shared:
        return f"{target.name} has no open alarm{before}"
    state = target.series[0].status.state
    why = ", and no alarm yet: the next runs will tell" if state is State.WATCH else ""
    return f"{target.name} has no open alarm: its state is {state.value}{why}{before}"


def _reopening(target: Target, request: Request, survey: Survey) -> Act:
    last = _last(target, survey)
    if last is None:
        raise CannotAct(f"{target.name}: nothing was done that could be taken back")
    return _act(request, survey, target.series, None, of=last.when)


def _last(target: Target, survey: Survey) -> Act | None:
    """Return the newest act about all series of `target` that makes a difference, or None."""
    every = [
        [act for act in standing(each.acts, survey.now) if act.on_nodes == target.nodes]
        for each in target.series
    ]
    answers = [each.status.acknowledged for each in survey.series] + [*survey.acknowledged.values()]
    known = [answer.act for answer in answers if answer]
    able = [
        act
        for act in every[0]
        if all(act in others for others in every)
        if (act.kind == ACKNOWLEDGE_COLLAPSES) == (target.collapsing is not None)
        if act.kind != ACKNOWLEDGE or act in known
    ]
    return able[-1] if able else None
