"""What a person can act on, and which of it is meant by some words.

May know: surveys and acts; nothing of files, of the command line or of how it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from iobands.alerts.acts import (
    ACKNOWLEDGE,
    ACKNOWLEDGE_COLLAPSES,
    NEW_NORMAL,
    REOPEN,
    Act,
    standing,
)
from iobands.alerts.file_systems import FileSystem
from iobands.alerts.pools import Pool
from iobands.reporting.collapse_views import name_of
from iobands.reporting.format import act_text, nearest
from iobands.series import SeriesKey, slug
from iobands.status.following import Change
from iobands.status.survey import Series, Survey


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
        if each.has_risen or last_act(target, survey):
            yield target


def _slug(target: Target) -> str | None:
    return None if target.is_shared or target.collapsing else slug(target.series[0].key)


def _able(target: Target, request: Request, survey: Survey) -> bool:
    """Tell whether there is something to do for `request`."""
    if request.kind == REOPEN:
        return last_act(target, survey) is not None
    if target.collapsing:
        return request.kind == ACKNOWLEDGE and target.collapsing.has_risen
    return target.change is not None or (request.kind == NEW_NORMAL and request.since is not None)


def _what(target: Target, request: Request, survey: Survey) -> str:
    """Return what would be taken back of `target`, if anything is to be."""
    last = last_act(target, survey) if request.kind == REOPEN else None
    return f": {last.kind}, {act_text(last)}" if last else ""


def _is_part(target: Target, shared: Target, request: Request, survey: Survey) -> bool:
    """Tell whether `target` is of a series that `shared` has, with the same alarm or act."""
    if target.is_shared or target.collapsing or target.series[0] not in shared.series:
        return False
    if request.kind == REOPEN:
        return last_act(target, survey) == last_act(shared, survey)
    return together(target.series[0], shared.change)


def together(series: Series, change: Change | None) -> bool:
    """Tell whether the series changed as `change` says, at the same time."""
    own = series.status.change
    return (
        own is not None
        and change is not None
        and own.direction == change.direction
        and own.since_low <= change.since_high
        and own.since_high >= change.since_low
    )


def last_act(target: Target, survey: Survey) -> Act | None:
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
