"""How fast each storage target and each node of a run was, over the others of the same run.

Where each process has a file of its own, it waits for no other: its time tells of its node and of
the targets that its file lies on. Standard library only; docs/decisions/0019 has the reasons.
"""

import math
import re
import statistics
from collections import defaultdict
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
    ranks: dict[int, list[int]] = defaultdict(list)
    for place, each in enumerate(timed):
        for target in set(targets[each.file]):
            ranks[target].append(place)
    of_node = {place: each.node for place, each in enumerate(timed)}
    alike: dict[tuple[int, ...], int] = defaultdict(int)
    for places in ranks.values():
        alike[tuple(places)] += 1
    width = max((len(set(targets[each.file])) for each in timed), default=1)
    known = {
        target: places
        for target, places in ranks.items()
        if alike[tuple(places)] == 1 and not _is_of_one(places, of_node)
    }
    rates = [-math.log(each.seconds) for each in timed]
    return _relative(
        {
            target: _quantile([rates[place] for place in places], 1 - 0.5 / width)
            for target, places in known.items()
        }
    )


def node_speeds(
    times: Iterable[RankTime], targets: Mapping[str, Collection[int]]
) -> dict[str, float]:
    """The speed of each node over that of the median node: the median of its ranks' rates.

    Nothing is said of a node half of whose ranks' files or more lie on one target of several and
    nowhere else.
    """
    timed = [each for each in times if each.node and _is_time(each.seconds)]
    ranks: dict[str, list[int]] = defaultdict(list)
    for place, each in enumerate(timed):
        if not _MARKS.search(str(each.node)):
            ranks[str(each.node)].append(place)
    of_target = {
        place: own[0] if len(own := tuple(set(targets.get(each.file, ())))) == 1 else None
        for place, each in enumerate(timed)
    }
    return _relative(
        {
            node: _quantile([-math.log(timed[place].seconds) for place in places], 0.5)
            for node, places in ranks.items()
            if not _is_of_one(places, of_target)
        }
    )


def _is_time(seconds: float) -> bool:
    return math.isfinite(seconds) and seconds > 0


def _is_of_one(places: Sequence[int], others: Mapping[int, object]) -> bool:
    """Whether half of the ranks at `places` share what only some of all ranks have."""
    if len(set(others.values())) == 1:
        return False
    own = [others[place] for place in places if others[place] is not None]
    return any(2 * own.count(other) >= len(places) for other in set(own))


def _quantile(values: Sequence[float], share: float) -> float:
    """The quantile of `values`, between two of them where it lies there."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def _relative(levels: Mapping[Unit, float]) -> dict[Unit, float]:
    """Logarithms of rates as ratios to their median."""
    if len(levels) < _FEWEST:
        return {}
    middle = statistics.median(levels.values())
    return {unit: math.exp(level - middle) for unit, level in levels.items()}


def targets_text(targets: Mapping[str, Collection[int]]) -> str | None:
    """How many files lie on each target: neighbours with as many files are written as one."""
    files: dict[int, int] = defaultdict(int)
    for own in targets.values():
        for target in set(own):
            files[target] += 1
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
