"""What the series of a pool have in common: who moved and who did not, since when, and with what.

For a person who shall tell a colleague what happened without opening a log. May know: surveys
and how they are worded; nothing of files or of the command line.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from iobands.alerts.pools import FILE_SYSTEM, NODES, PARTITION, TRANSPORT, Pool
from iobands.alerts.shared import Common, Member, Pooled, member_since
from iobands.detection import DOWN
from iobands.reporting.covariates import covariates
from iobands.reporting.explain import listed
from iobands.reporting.format import plural, printable, time_text
from iobands.status.following import Change, change_of, is_drop, ratio_text
from iobands.status.states import state_of
from iobands.status.survey import Series, Survey

_MOST_LISTED: Final = 40
_MOST_OTHERS: Final = 12
_INDENT: Final = "  "
_SHARE: Final = 0.5  # of the series that moved: from then on a covariate moved with them
_WHERE: Final = {
    FILE_SYSTEM: "at the file system itself: its servers, targets and how full they are",
    TRANSPORT: "at what the transport is made of: fabric, drivers, MPI library and environment",
    PARTITION: "at what all runs of the partition share: clients, network, system software",
    NODES: "at these nodes: hold a rerun on them against one on others",
}


@dataclass(frozen=True)
class PoolExplanation:
    """What is known of a pool; `common` is the open change that is told under it, if any.

    `changed`, `moved` and `still` are sentences on the facts that changed, on the figures that
    moved, and on the rest.
    """

    pool: Pool
    common: Common | None
    series: tuple[Series, ...]
    pooled: tuple[Pooled, ...]
    changed: tuple[str, ...]
    moved: tuple[str, ...]
    still: tuple[str, ...]


def chosen_pools(survey: Survey, wanted: str) -> list[Pool]:
    """Return the pools that `wanted` may mean: the one of that name, else all with its words."""
    exact = [pool for pool in survey.pools if pool.name == wanted]
    words = wanted.casefold().split()
    return exact or [
        pool
        for pool in survey.pools
        if words and all(word in pool.name.casefold().split() for word in words)
    ]


def explain_pool(survey: Survey, pool: Pool) -> PoolExplanation:
    """Return what is known of `pool`, from a survey with all columns of the samples."""
    of_pool = [each for each in survey.common if each.pool is pool]
    # a drop goes before a rise
    common = min(of_pool, key=lambda each: not is_drop(each.change), default=None)
    series = tuple(each for each in survey.series if each.key in set(pool.keys))
    changed, moved, still = _covariates(common, series) if common else ((), (), ())
    pooled = tuple(each for each in survey.pooled if each.pool is pool)
    return PoolExplanation(pool, common, series, pooled, changed, moved, still)


def pool_text(told: PoolExplanation, survey: Survey) -> str:
    """Return an explanation as lines of text."""
    lines = [*_head(told, survey), "", *_evidence(told)]
    if told.common:
        taking = [member for member in told.common.members if member.took_part]
        others = [member for member in told.common.members if not member.took_part]
        leaning = [member for member in others if _leans(member, told.common.change)]
        others = [member for member in others if member not in leaning]
        lines += ["", f"Moved together, about {told.common.change.since:%Y-%m-%d}"]
        lines += _members(taking, survey)
        lines += [f"{_INDENT}{line}" for line in (*told.changed, *told.moved)]
        if leaning:
            lines += ["", "Moved too, on too little evidence to be counted"]
            lines += _members(leaning, survey)
        lines += ["", "Did not move"]
        lines += _members(others, survey)
        lines += [f"{_INDENT}{line}" for line in (*_elsewhere(told, survey), *told.still)]
    else:
        lines += ["", "Series"]
        lines += [f"{_INDENT}{each.label}: {each.status.state.value}" for each in told.series]
    lines += ["", f"Look next: {_advice(told, survey)}"]
    return "\n".join(printable(line) for line in lines) + "\n"


def _head(told: PoolExplanation, survey: Survey) -> Iterator[str]:
    pool, common = told.pool, told.common
    if common:
        state = state_of(common.change)
        yield f"{pool.name}: {state.value} {common.text()}"
    else:
        yield f"{pool.name}: nothing that lasts has happened to its series in common"
    yield f"at {time_text(survey.now)} UTC; all times are UTC"
    runs = "" if pool.rows is None else ", of which only the runs of a year that touched them count"
    what = "one set of nodes" if pool.kind == NODES else f"one {pool.kind}"
    yield f"Pool        {plural(len(told.series), 'series')} of {what}{runs}"


def _evidence(told: PoolExplanation) -> Iterator[str]:
    if not told.pooled:
        yield "Evidence    none: of no variable two series can be judged yet"
    for each in told.pooled:
        chart = each.chart
        limit = told.series[0].status.following
        over = f"; alarm from {limit.budget.limit:g}" if limit else ""
        yield (
            f"Evidence    {each.variable}: {chart.down[-1]:.1f} for a drop, {chart.up[-1]:.1f} for "
            f"a rise{over}, in {plural(len(chart.sessions), 'round')} of a run each"
        )
        yield (
            f"Dependence  {each.variable}: correlation {chart.depends.shared:.2f} between the "
            f"series of a round; evidence is divided by {chart.depends.scale:.2f} as rounds depend "
            "on rounds"
        )
    for each in told.pooled:
        for change in _past(each, told):
            yield (
                f"Earlier     {each.variable}: {change.direction} from {change.since:%Y-%m-%d} to "
                f"{change.ended:%Y-%m-%d}: {change.ratio.value:.2f} ×"
            )


def _past(pooled: Pooled, told: PoolExplanation) -> Iterator[Change]:
    following = told.series[0].status.following
    for alarm in pooled.chart.alarms if following else ():
        if not alarm.alarm.is_open and following:
            yield change_of(alarm.alarm, pooled.times, following.budget)


def _members(members: Sequence[Member], survey: Survey) -> list[str]:
    """Return a line for each series, the names in one column."""
    series = {each.key: each for each in survey.series}
    shown = members[:_MOST_LISTED]
    width = max((len(series[member.key].label) for member in shown), default=0)
    lines = [
        f"{_INDENT}{series[member.key].label:{width}}  {ratio_text(member.ratio)}, on its own "
        f"{series[member.key].status.state.value}"
        for member in shown
    ]
    hidden = len(members) - len(shown)
    return [*lines, f"{_INDENT}and {plural(hidden, 'series')} more"] if hidden else lines


def _leans(member: Member, change: Change) -> bool:
    """Tell whether a series moved in the direction of `change`, as far as its interval tells."""
    return member.ratio.high < 1 if is_drop(change) else member.ratio.low > 1


def _elsewhere(told: PoolExplanation, survey: Survey) -> Iterator[str]:
    """Yield what other pools of the kind did since the change, in all else but this pool."""
    assert told.common is not None
    others = sorted(
        (name, [member.ratio.value for member in members if np.isfinite(member.ratio.value)])
        for name, members in _others(told, survey).items()
    )
    for name, ratios in others[:_MOST_OTHERS]:
        if ratios:
            middle = float(np.median(ratios))
            yield f"{name}: {middle:.2f} ×, the middle of {plural(len(ratios), 'series')}"
    if len(others) > _MOST_OTHERS:
        yield f"and {len(others) - _MOST_OTHERS} more pools of its kind"


def _others(told: PoolExplanation, survey: Survey) -> Mapping[str, list[Member]]:
    """Return by name what the other pools of the kind did, in runs that the pool does not have."""
    common = told.common
    assert common is not None
    when = np.datetime64(common.change.since.replace(tzinfo=None))
    mine = {
        key: part.sessions
        for each in told.pooled
        for key, part in zip(each.keys, each.parts, strict=True)
    }
    found: defaultdict[str, list[Member]] = defaultdict(list)
    for each in survey.pooled:
        alike = each.pool.kind == told.pool.kind and each.variable in common.changes
        later = np.flatnonzero(each.times >= when)
        if alike and each.pool is not told.pool and later.size:
            since = int(each.chart.sessions[later[0]])
            for key, part in zip(each.keys, each.parts, strict=True):
                rest = part.only(~np.isin(part.sessions, mine.get(key, ())))
                found[each.pool.name].append(
                    member_since(key, rest, since, common.change.direction)
                )
    return found


def _covariates(
    common: Common, series: Sequence[Series]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return what changed and what moved with most of the series, and what did with none."""
    told: tuple[defaultdict[str, Counter[str]], ...] = tuple(defaultdict(Counter) for _ in range(3))
    keys = set(common.keys)
    for each in series:
        if each.key in keys:
            for found, into in zip(
                covariates(each.samples, common.change.since), told, strict=True
            ):
                for sentence in found:
                    name, _, what = sentence.partition(": ")
                    into[name][what] += 1
    changed, moved, still = told
    none = [
        f"{name} ({next(iter(found))})" if len(found) == 1 else name
        for name, found in still.items()
        if name not in {*changed, *moved}
    ]
    as_before = (f"as before: {', '.join(none)}",) if none else ()
    return _with_most(changed, len(keys)), _with_most(moved, len(keys)), as_before


def _with_most(found: Mapping[str, Counter[str]], series: int) -> tuple[str, ...]:
    """Return what is to be said of all that was so for half of the series or more."""
    return tuple(
        f"{name}: {each.most_common(1)[0][0]} (in {each.total()} of {series} series)"
        for name, each in found.items()
        if each.total() >= _SHARE * series
    )


def _advice(told: PoolExplanation, survey: Survey) -> str:
    common = told.common
    if common is None:
        others = [each.name for each in survey.common if set(each.keys) & set(told.pool.keys)]
        if others:
            return f"at {listed(others)}, under which a change of some of its series is told"
        moved = [each.label for each in told.series if each.status.change]
        return f"at {listed(moved)}, each on its own" if moved else "nowhere"
    if told.changed:
        return f"at what changed with them ({_names(told.changed)}), before the rest"
    also = f"; and at the {_names(told.moved)}, which moved with them" if told.moved else ""
    if common.change.direction != DOWN:
        return f"at what was changed on that day, to know that the rise is real{also}"
    return f"{_WHERE[told.pool.kind]}{also}"


def _names(sentences: Sequence[str]) -> str:
    return listed([sentence.split(":", maxsplit=1)[0] for sentence in sentences])
