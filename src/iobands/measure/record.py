"""What is kept of a session: its record, `perflogs/last-session.json`, and what it costs of a day.

The record is written when a session begins and again when it ends. One without an end is of a
session that was killed, or lost with its machine. A cost is an upper bound, known before anything
is submitted: the volume of the scale times the repeats, and the nodes times the time limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime, timezone
from math import inf
from pathlib import Path
from typing import Any, Final

from iobands.measure.documents import decoded, read_object, write_document
from iobands.measure.lock import Holder, read_holder
from iobands.measure.reframe import ReadSiteFile, Selection, describe
from iobands.model import (
    KILLED,
    LastSession,
    Rejected,
    SessionError,
    Unusable,
    not_read,
    parse_time,
)

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
class _Reserved:
    """What is reserved on a day: GiB and node hours of each partition."""

    day: str
    spent: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if any(each < 0 for pair in self.spent.values() for each in pair):
            raise ValueError("not a cost")


def costs_of(described: Iterable[Mapping[str, Any]]) -> list[Cost]:
    """Return the cost of each check that `reframe --describe` prints; preflight costs nothing."""
    found = []
    for check in described:
        if not (check.get("tool") and "gib" in check):
            continue
        tags = [n for n, tag in enumerate(_PRIORITY) if tag in check["tags"]]
        runs = len(check["valid_prog_environs"])
        gib = check["gib"] * max(check["repeats"], 1) * runs
        hours = check["nodes"] * (check["time_limit"] or 0) / 3600 * runs
        what, priority = check["file_system"], min(tags, default=len(_PRIORITY))
        found += [
            Cost(check["display_name"], place, what, priority, gib, hours)
            for place in check["valid_systems"]
        ]
    return found


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
            f"{system}:{name}": extras[_BUDGET]
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
    perflogs: Path, costs: Sequence[Cost], budgets: Mapping[str, Mapping[str, float]], day: date
) -> list[Cost]:
    """Reserve what the checks may cost on `day`, and return those that exceed the budgets.

    `budgets` is by `system:partition`. Smoke and daily checks are reserved first. If it cannot be
    recorded, it raises OSError.
    """
    path, today, cut = perflogs / BUDGET_NAME, _Reserved(day.isoformat()), []
    try:
        found = decoded(_Reserved, read_object(path))
    except (OSError, Unusable):
        found = today
    spent = {**(found if found.day == today.day else today).spent}
    for cost in sorted(costs, key=lambda each: each.priority):
        if (budget := budgets.get(cost.partition)) is None:
            continue
        written, hours = spent.get(cost.partition, (0.0, 0.0))
        total = (written + cost.written_gib, hours + cost.node_hours)
        most = (budget.get("written_tib", inf) * GIB_PER_TIB, budget.get("node_hours", inf))
        if total[0] <= most[0] and total[1] <= most[1]:
            spent[cost.partition] = total
        else:
            cut.append(cost)
    write_document(path, {"day": today.day, "spent": spent})
    return cut


RECORD_NAME: Final = "last-session.json"
_SCHEMA: Final = 1
_LATER: Final = range(_SCHEMA, 100)  # what a newer iobands says more is left out


def begin_record(perflogs: Path, holder: Holder, tag: str, system: str | None) -> LastSession:
    """Record that a session has begun, or raise OSError."""
    began = parse_time(holder.began)
    return _write(perflogs, LastSession(holder.session, tag, system, holder.host, began))


def end_record(
    perflogs: Path,
    record: LastSession,
    how: str,
    counts: Mapping[str, int],
    reason: str | None,
    seconds: Mapping[str, float] | None = None,
) -> None:
    """Record how a session ended, or raise OSError."""
    now = datetime.now(timezone.utc).replace(microsecond=0)
    ended = replace(record, ended=now, how=how, counts=counts, reason=reason)
    _write(perflogs, replace(ended, seconds=seconds or {}))


def restore_record(perflogs: Path, former: LastSession | None) -> None:
    """Put the former record back, as no session took place, or raise OSError."""
    if former:
        _write(perflogs, former)
    else:
        (perflogs / RECORD_NAME).unlink()


def read_last_session(perflogs: Path, rejected: list[Rejected] | None = None) -> LastSession | None:
    """Return the record, None if it does not exist or is damaged; `rejected` gets the reason.

    A session without an end whose processes have ended, as far as is known here, was `killed`.
    """
    path = perflogs / RECORD_NAME
    failed = [] if rejected is None else rejected
    try:
        record = decoded(LastSession, read_object(path, _LATER)) if path.exists() else None
    except OSError as error:
        failed.append(not_read(path, error))
        return None
    except Unusable:
        why = "not the record of a session; the next session replaces it"
        failed.append(Rejected(path, 0, why))
        return None
    if record and record.ended is None and not _runs(perflogs, record):
        return replace(record, how=KILLED, reason=f"by a signal, or {record.host} restarted")
    return record


def _runs(perflogs: Path, record: LastSession) -> bool:
    try:
        holder = read_holder(perflogs)
    except SessionError:
        return False
    return bool(holder and holder.session == record.session and holder.is_alive is not False)


def _write(perflogs: Path, record: LastSession) -> LastSession:
    write_document(perflogs / RECORD_NAME, {"schema": _SCHEMA, **asdict(record)})
    return record
