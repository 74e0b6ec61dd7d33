"""What is kept of a session: its record, `perflogs/last-session.json`, and what it costs of a day.

The record is written when a session begins and again when it ends. One without an end is of a
session that was killed, or lost with its machine. A cost is an upper bound, known before anything
is submitted: the volume of the scale times the repeats, and the nodes times the time limit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import date, datetime, timezone
from math import inf
from pathlib import Path
from typing import Any, Final

from iobands.measure.lock import Holder, read_holder
from iobands.measure.reframe import ReadSiteFile, Selection, describe
from iobands.model import (
    KILLED,
    LastSession,
    Rejected,
    SessionError,
    not_read,
    parse_time,
    read_small,
    replace_file,
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


RECORD_NAME: Final = "last-session.json"
_SCHEMA: Final = 1
_LARGEST: Final = 1e15


def begin_record(perflogs: Path, holder: Holder, tag: str, system: str | None) -> LastSession:
    """Record that a session has begun.

    Raises:
        OSError: the record cannot be written.
    """
    began = parse_time(holder.began)
    record = LastSession(holder.session, tag, system, holder.host, began)
    _write(perflogs, record)
    return record


def end_record(
    perflogs: Path,
    record: LastSession,
    how: str,
    counts: Mapping[str, int],
    reason: str | None,
    seconds: Mapping[str, float] | None = None,
) -> None:
    """Record how a session ended.

    Raises:
        OSError: the record cannot be written.
    """
    now = datetime.now(timezone.utc).replace(microsecond=0)
    ended = replace(record, ended=now, how=how, counts=counts, reason=reason)
    _write(perflogs, replace(ended, seconds=seconds or {}))


def restore_record(perflogs: Path, former: LastSession | None) -> None:
    """Put the former record back: no session took place.

    Raises:
        OSError: the record cannot be written.
    """
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
    if not path.exists():
        return None
    try:
        record = _record(json.loads(read_small(path)))
    except OSError as error:
        failed.append(not_read(path, error))
        return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        failed.append(
            Rejected(path, 0, "not the record of a session; the next session replaces it")
        )
        return None
    if record.ended is None and not _runs(perflogs, record):
        return replace(record, how=KILLED, reason=f"by a signal, or {record.host} restarted")
    return record


def _record(said: dict[str, Any]) -> LastSession:
    """Return the record with these fields; raise any error if they are not valid."""
    if said["schema"] < _SCHEMA:
        raise ValueError("of another version")
    said = {each.name: said[each.name] for each in fields(LastSession) if each.name in said}
    ended = said.pop("ended")
    record = LastSession(
        **{**said, "began": parse_time(said["began"])}, ended=parse_time(ended) if ended else None
    )
    texts = (record.session, record.tag, record.host, record.how)
    may_lack = (record.system, record.reason)
    numbers = [*record.counts.values(), *record.seconds.values()]
    if not (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(text, str | None) for text in may_lack)
        and all(type(number) in (int, float) and abs(number) < _LARGEST for number in numbers)
    ):
        raise ValueError("of another form")
    return record


def _runs(perflogs: Path, record: LastSession) -> bool:
    try:
        holder = read_holder(perflogs)
    except SessionError:
        return False
    return holder is not None and holder.session == record.session and not holder.is_stale


def _write(perflogs: Path, record: LastSession) -> None:
    times = {
        "began": record.began.isoformat(),
        "ended": record.ended.isoformat() if record.ended else None,
    }
    text = json.dumps({"schema": _SCHEMA, **asdict(record), **times}, indent=2)
    replace_file(perflogs / RECORD_NAME, f"{text}\n".encode("utf-8", "replace"))
