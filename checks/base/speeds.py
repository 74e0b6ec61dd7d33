"""How fast each storage target and each node of a run was, over the others of the same run.

Where each process has a file of its own, it waits for no other: its time tells of its node and of
the targets that its file lies on. Standard library only; docs/decisions/0019 has the reasons.
"""

import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

#: A name with one of these would run into what is around it in the column.
_MARKS = re.compile(r"[\s|,;:=]")

#: Of two, nobody knows which one is the slow one, but a column can say how far they are apart.
_FEWEST = 2

Unit = TypeVar("Unit", bound=Hashable)


@dataclass(frozen=True)
class RankTime:
    """How long a rank took for its own file, in seconds; `node` is None where it is not known."""

    seconds: float
    file: str
    node: str | None = None


def target_speeds(
    times: Iterable[RankTime], targets: Mapping[str, Collection[int]]
) -> dict[int, float]:
    """The speed of each target over that of the median target; `targets` are those of each file.

    A file over several targets is as slow as the slowest of them, so a target is as fast as the
    fastest ranks that use it: of n targets a file, the 1 − 1/2n quantile of their rates. Nothing
    is said of targets that always appear together, nor of one half of whose ranks or more are on
    one node of several: that may be the slow one.
    """
    timed = [each for each in times if targets.get(each.file) and _is_time(each.seconds)]
    used = [set(targets[each.file]) for each in timed]
    ranks: dict[int, list[int]] = defaultdict(list)
    for rank, own in enumerate(used):
        for target in own:
            ranks[target].append(rank)
    alike = Counter(map(tuple, ranks.values()))
    apart = {target: own for target, own in ranks.items() if alike[tuple(own)] == 1}
    return _speeds(timed, apart, [each.node for each in timed], max(map(len, used), default=1))


def node_speeds(
    times: Iterable[RankTime], targets: Mapping[str, Collection[int]]
) -> dict[str, float]:
    """The speed of each node over that of the median node: the median of its ranks' rates.

    Nothing is said of a node half of whose ranks' files or more lie on one target of several and
    nowhere else.
    """
    timed = [each for each in times if each.node and _is_time(each.seconds)]
    ranks: dict[str, list[int]] = defaultdict(list)
    for rank, each in enumerate(timed):
        if not _MARKS.search(str(each.node)):
            ranks[str(each.node)].append(rank)
    used = [set(targets.get(each.file, ())) for each in timed]
    return _speeds(timed, ranks, [min(own) if len(own) == 1 else None for own in used], 1)


def _is_time(seconds: float) -> bool:
    return math.isfinite(seconds) and seconds > 0


def _speeds(
    timed: Sequence[RankTime],
    ranks: Mapping[Unit, Sequence[int]],
    others: Sequence[object],
    width: int,
) -> dict[Unit, float]:
    """The 1 − 1/2 `width` quantile of the rates of each unit's ranks, over the median unit's.

    Nothing is said of a unit half of whose ranks or more have one of several `others` in common.
    """
    levels = {}
    several = len(set(others)) > 1
    for unit, places in ranks.items():
        shared = Counter(others[place] for place in places if others[place] is not None)
        if several and 2 * max(shared.values(), default=0) >= len(places):
            continue
        rates = [-math.log(timed[place].seconds) for place in places]
        # of one value there is no quantile, of two the same
        levels[unit] = statistics.quantiles(
            rates if len(rates) > 1 else rates * 2, n=2 * width, method="inclusive"
        )[-1]
    if len(levels) < _FEWEST:
        return {}
    middle = statistics.median(levels.values())
    return {unit: math.exp(level - middle) for unit, level in levels.items()}


def targets_text(targets: Mapping[str, Collection[int]]) -> str | None:
    """How many files lie on each target: neighbours with as many files are written as one."""
    files = Counter(target for own in targets.values() for target in set(own))
    spans = []
    # Neighbours differ from their place in the list by the same number.
    numbered = enumerate(sorted(files.items()))
    for _, span in groupby(numbered, key=lambda item: (item[1][0] - item[0], item[1][1])):
        members = [target for _, (target, _) in span]
        ends = dict.fromkeys([members[0], members[-1]])
        spans.append(f"{'-'.join(map(str, ends))}:{files[members[0]]}")
    return ",".join(spans) or None


def speeds_text(speeds: Mapping[str, Mapping[Unit, float]]) -> str | None:
    """Speeds by variable, as the columns have them; None if there are none."""
    parts = [
        f"{name}=" + ",".join(f"{unit}:{ratio:.3g}" for unit, ratio in sorted(of_units.items()))
        for name, of_units in speeds.items()
        if of_units
    ]
    return ";".join(parts) or None
