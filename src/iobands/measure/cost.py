"""The cost of checks in volume and node hours, and the budget of a day.

A cost is an upper bound, known before anything is submitted: the volume of the scale times the
repeats, and the nodes times the time limit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from math import inf
from pathlib import Path
from typing import Any, Final

from iobands.measure.reframe import ReadSiteFile, Selection, describe
from iobands.model import SessionError, read_small, replace_file

BUDGET_NAME: Final = ".budget.json"
GIB_PER_TIB: Final = 1024
_BUDGET: Final = "daily_budget"  # of a partition in a site file
#: Which checks are kept first, by tag.
_PRIORITY: Final = ("smoke", "daily", "weekly")


@dataclass(frozen=True)
class Cost:
    """The most that a check costs on one partition: GiB written, and node hours.

    Both are 0 if the scheduler chooses the number of nodes.
    """

    name: str
    partition: str
    file_system: str
    priority: int
    written_gib: float
    node_hours: float


@dataclass(frozen=True)
class DailyBudget:
    """The most that a partition may spend a day; None is no limit."""

    written_tib: float | None = None
    node_hours: float | None = None

    def allows(self, written_gib: float, node_hours: float) -> bool:
        """Whether these totals are within the budget."""
        return (self.written_tib is None or written_gib <= self.written_tib * GIB_PER_TIB) and (
            self.node_hours is None or node_hours <= self.node_hours
        )


def costs_of(described: Iterable[Mapping[str, Any]]) -> list[Cost]:
    """Return the cost of each check that `reframe --describe` prints; preflight costs nothing."""
    return [
        Cost(
            name=check["display_name"],
            partition=partition,
            file_system=check["file_system"],
            priority=min(
                (n for n, tag in enumerate(_PRIORITY) if tag in check["tags"]),
                default=len(_PRIORITY),
            ),
            written_gib=check["gib"] * max(check["repeats"], 1) * len(check["valid_prog_environs"]),
            node_hours=check["nodes"]
            * (check["time_limit"] or 0)
            / 3600
            * len(check["valid_prog_environs"]),
        )
        for check in described
        if check.get("tool") and "gib" in check
        for partition in check["valid_systems"]
    ]


def over_budget(root: Path, selection: Selection, read_site_file: ReadSiteFile) -> list[Cost]:
    """Reserve what a selection may cost today, and return what exceeds the budgets of site files.

    Without a budget in any of them, ReFrame is not asked what the selection is.

    Raises:
        SessionError: the costs or a site file cannot be read.
        OSError: the reservation cannot be recorded.
    """
    files = (root / "config" / "systems").glob("*.py")
    if not any(_BUDGET in path.read_text(encoding="utf-8", errors="replace") for path in files):
        return []
    try:
        costs = costs_of(describe(root, selection.arguments()))
        budgets = {
            f"{system}:{name}": DailyBudget(**extras[_BUDGET])
            for system in {cost.partition.partition(":")[0] for cost in costs}
            for name, extras in read_site_file(system).partitions.items()
            if _BUDGET in extras
        }
    except ValueError as error:
        raise SessionError(str(error)) from error
    return reserve(root / "perflogs", costs, budgets, datetime.now(timezone.utc).date())


def capacities(partitions: Iterable[str], read_site_file: ReadSiteFile) -> dict[str, float]:
    """Return the declared capacities of the file systems of these partitions, in TiB."""
    return {
        file_system: entry["capacity_tib"]
        for system, name in (each.split(":") for each in sorted(partitions))
        for file_system, entry in read_site_file(system).partitions[name]["filesystems"].items()
        if "capacity_tib" in entry
    }


def reserve(
    perflogs: Path, costs: Sequence[Cost], budgets: Mapping[str, DailyBudget], day: date
) -> list[Cost]:
    """Reserve what the checks may cost on `day`, and return those that exceed the budgets.

    `budgets` is by `system:partition`. Smoke and daily checks are reserved first.

    Raises:
        OSError: the reservation cannot be recorded.
    """
    spent = _spent(perflogs, day)
    cut = []
    for cost in sorted(costs, key=lambda each: each.priority):
        budget = budgets.get(cost.partition)
        if budget is None:
            continue
        written, hours = spent.get(cost.partition, (0.0, 0.0))
        total = (written + cost.written_gib, hours + cost.node_hours)
        if budget.allows(*total):
            spent[cost.partition] = total
        else:
            cut.append(cost)
    text = json.dumps({"day": day.isoformat(), "spent": spent})
    replace_file(perflogs / BUDGET_NAME, f"{text}\n".encode())
    return cut


def _spent(perflogs: Path, day: date) -> dict[str, tuple[float, float]]:
    """Return the GiB and node hours of each partition that are reserved on `day` so far."""
    try:
        said = json.loads(read_small(perflogs / BUDGET_NAME))
        if said["day"] != day.isoformat():
            return {}
        spent = {name: (float(gib), float(hours)) for name, (gib, hours) in said["spent"].items()}
    except (OSError, ValueError, OverflowError, TypeError, KeyError, AttributeError):
        return {}
    return spent if all(0 <= each < inf for pair in spent.values() for each in pair) else {}
