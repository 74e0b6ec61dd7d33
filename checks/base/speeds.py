"""The speed of each storage target and each node of a run, relative to the others of the run.

If each process has its own file, it waits for no other. Its time depends on its node and on the
targets of its file. Standard library only; docs/decisions/0019 has the reasons.
"""

import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

#: Characters that separate values in the column, and so cannot be in a name.
_MARKS = re.compile(r"[\s|,;:=]")

#: The fewest nodes to compare: of two it is unknown which is slow, but they may differ.
_FEWEST = 2

#: On each side, with more and with fewer bytes, a target is compared with at least this many
#: others, and with all that hold as many bytes to within a tenth (here a logarithm).
_ENOUGH = 3
_CLOSE = math.log(1.1)

#: The possible times of a rank, in seconds; ratios of other times might overflow.
_SHORTEST, _LONGEST = 1e-9, 1e9

Unit = TypeVar("Unit", bound=Hashable)


@dataclass(frozen=True)
class RankTime:
    """The time of a rank for its own file, in seconds; `node` is None if it is not known."""

    seconds: float
    file: str
    node: str | None = None


def target_bandwidths(
    times: Iterable[RankTime], targets: Mapping[str, Collection[int]]
) -> dict[int, float]:
    """The relative speed of each target; `targets` are the targets of each file's stripes.

    A file over several targets is as slow as the slowest of them, so a target is as fast as the
    fastest ranks that use it: with n targets a file, the 1 − 1/2n quantile of their rates. It is
    compared with targets that hold as many bytes; its speed is NaN if the bytes on each explain the
    difference. If each file has one target, a slow target also ends late: of two that end together
    one may have served its files in turn, and the other all at once. Targets that always appear
    together have no speed. Nor has a target if at least half of its ranks are on one node of
    several, as that node may be the slow one.
    """
    known = [each for each in times if targets.get(each.file)]
    held: Counter[int] = Counter()
    for each in known:
        held.update(
            {t: n / len(targets[each.file]) for t, n in Counter(targets[each.file]).items()}
        )
    timed = [each for each in known if _is_time(each.seconds)]
    used = [set(targets[each.file]) for each in timed]
    ranks: dict[int, list[int]] = defaultdict(list)
    for rank, own in enumerate(used):
        for target in own:
            ranks[target].append(rank)
    alike = Counter(map(tuple, ranks.values()))
    apart = {target: own for target, own in ranks.items() if alike[tuple(own)] == 1}
    nodes, width = [each.node for each in timed], max(map(len, used), default=1)
    values = [-math.log(each.seconds) for each in timed]
    rates = _levels(values, apart, nodes, width)
    # what the ranks' rates would be proportional to, if each had its share of its busiest target
    held_most = [-math.log(max(held[target] for target in own)) for own in used]
    shares = _levels(held_most, apart, nodes, width)
    found = _beyond_shares(rates, shares)
    if width > 1:
        return found
    last = {target: min(values[rank] for rank in apart[target]) for target in rates}
    ends = _beyond_shares(last, shares)
    for target, speed in found.items():
        if speed < 1:
            end = ends.get(target, math.nan)
            found[target] = end if math.isnan(end) else max(speed, min(end, 1.0))
    return found


def _beyond_shares(rates: Mapping[int, float], shares: Mapping[int, float]) -> dict[int, float]:
    """The differences between rates that the shares of bytes cannot explain.

    Between two targets, shares explain any difference from none, if nodes limit the rates, up to
    the difference of the shares, if targets do. So the next targets with at least as many bytes
    bound a rate from below and above, and so do the next ones with at most as many.
    """
    found = {}
    for target, rate in rates.items():
        less = {each: shares[target] - shares[each] for each in rates if each != target}
        lows, highs = [], []
        for sign in (1, -1):
            if near := _nearest({each: sign * by for each, by in less.items()}):
                lows.append(statistics.median(rates[each] + min(less[each], 0.0) for each in near))
                highs.append(statistics.median(rates[each] + max(less[each], 0.0) for each in near))
        low, high = max(lows, default=math.nan), min(highs, default=math.nan)
        if high - low <= _CLOSE:
            found[target] = math.exp(rate - (low + high) / 2)
        elif low < high:
            beyond = rate - min(max(rate, low), high)
            found[target] = math.exp(beyond) if beyond else math.nan
    return found if any(map(math.isfinite, found.values())) else {}


def _nearest(away: Mapping[int, float]) -> list[int]:
    """The nearest targets on one side: `_ENOUGH` of them, and all that are as near."""
    side = {each: max(by, 0.0) for each, by in away.items() if by > -_CLOSE}
    farthest = max([*sorted(side.values())[:_ENOUGH], _CLOSE])
    return [each for each, by in side.items() if by <= farthest]


def node_speeds(
    times: Iterable[RankTime], targets: Mapping[str, Collection[int]]
) -> dict[str, float]:
    """The speed of each node relative to the median node: the median of its ranks' rates.

    A node has no speed if at least half of its ranks' files lie only on one target of several.
    """
    timed = [each for each in times if each.node and _is_time(each.seconds)]
    ranks: dict[str, list[int]] = defaultdict(list)
    for rank, each in enumerate(timed):
        if not _MARKS.search(str(each.node)):
            ranks[str(each.node)].append(rank)
    used = [set(targets.get(each.file, ())) for each in timed]
    alone = [min(own) if len(own) == 1 else None for own in used]
    levels = _levels([-math.log(each.seconds) for each in timed], ranks, alone, 1)
    if len(levels) < _FEWEST:
        return {}
    middle = statistics.median(levels.values())
    return {node: math.exp(level - middle) for node, level in levels.items()}


def _is_time(seconds: float) -> bool:
    return _SHORTEST <= seconds <= _LONGEST


def _levels(
    values: Sequence[float],
    ranks: Mapping[Unit, Sequence[int]],
    others: Sequence[object],
    width: int,
) -> dict[Unit, float]:
    """The 1 − 1/2 `width` quantile of the values of each unit's ranks.

    A unit is left out if at least half of its ranks have one of several `others` in common.
    """
    levels = {}
    several = len(set(others)) > 1
    for unit, places in ranks.items():
        shared = Counter(others[place] for place in places if others[place] is not None)
        if several and 2 * max(shared.values(), default=0) >= len(places):
            continue
        own = sorted(values[place] for place in places)
        # The place at which normal values have their quantile on average, for any number of values
        # (Blom, "Statistical Estimates and Transformed Beta-Variables", 1958).
        place = (len(own) + 0.25) * (1 - 0.5 / width) - 0.625
        below = min(max(math.floor(place), 0), len(own) - 1)
        above = min(below + 1, len(own) - 1)
        levels[unit] = own[below] + (own[above] - own[below]) * (place - below)
    return levels


def targets_text(targets: Mapping[str, Collection[int]]) -> str | None:
    """How many files lie on each target; equal neighbours are written as one range."""
    files = Counter(target for own in targets.values() for target in set(own))
    spans = []
    # In a range, the target's number minus its place in the list is constant.
    numbered = enumerate(sorted(files.items()))
    for _, span in groupby(numbered, key=lambda item: (item[1][0] - item[0], item[1][1])):
        members = [target for _, (target, _) in span]
        ends = dict.fromkeys([members[0], members[-1]])
        spans.append(f"{'-'.join(map(str, ends))}:{files[members[0]]}")
    return ",".join(spans) or None


def speeds_text(speeds: Mapping[str, Mapping[Unit, float]]) -> str | None:
    """Speeds by variable, in the form of the columns; None without speeds."""
    parts = [
        f"{name}=" + ",".join(f"{unit}:{ratio:.3g}" for unit, ratio in sorted(of_units.items()))
        for name, of_units in speeds.items()
        if of_units
    ]
    return ";".join(parts) or None
