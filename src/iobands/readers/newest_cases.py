"""The cases of run reports that a survey needs, kept so that a report is read once.

Ten years of reports are gigabytes, and a survey asks little of them: what became of each case
last, and when it last failed to record a variable. May know: the run reports and caches.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from iobands.readers.cache import cache_file, replace
from iobands.readers.rejected import Rejected, Unusable
from iobands.readers.run_report import RunCase, RunReports, read_report, report_files
from iobands.vocabulary import VARIABLE_UNITS

#: Goes up whenever what is kept, or what a report is read as, changes.
VERSION: Final = 3
#: Less than this is read as fast as a cache of it.
WORTH_KEEPING: Final = 2**20  # bytes


@dataclass(frozen=True)
class _Kept:
    """What is known of reports: their time of change and size, and what they told.

    `newest` is the report whose session ended last, and when; `rejected` are names and reasons.
    """

    reports: Mapping[str, tuple[int, int]]
    newest: tuple[str, datetime] | None
    cases: tuple[RunCase, ...]
    rejected: Mapping[str, str]


_NOTHING: Final = _Kept({}, None, (), {})


def read_newest_cases(directory: Path, system: str | None = None) -> RunReports:
    """Read the reports as `read_run_reports` does, but return of each case the newest runs alone.

    These are, of each case with the same series fields, the newest run, and for each variable the
    newest one that did not record it.
    """
    found = {}
    for path in report_files(directory, system):
        try:
            status = path.stat()
        except OSError:
            found[path] = (0, 0)  # reading it tells what is wrong
        else:
            found[path] = (status.st_mtime_ns, status.st_size)
    where = cache_file(directory, f"reports\0{system or ''}", ".json")
    worth = sum(size for _, size in found.values()) >= WORTH_KEEPING
    old = _still_right(_load(where, directory), directory, found) if worth else _NOTHING
    new = _read_on(old, directory, found)
    if worth and new.reports != old.reports:
        replace(where, lambda path: path.write_text(_as_json(new, directory), encoding="utf-8"))
    rejected = tuple(Rejected(directory / name, 0, why) for name, why in new.rejected.items())
    newest = new.newest[1] if new.newest else None
    return RunReports(new.cases, newest, tuple(sorted(rejected, key=lambda item: item.path)))


def newest_of(cases: Iterable[RunCase]) -> tuple[RunCase, ...]:
    """Return of `cases`, which are in the order of time, those that a survey needs."""
    kept: dict[tuple[object, ...], tuple[int, RunCase]] = {}
    for number, case in enumerate(cases):
        which = (case.identity, tuple(sorted(case.fields.items())))
        kept[which] = (number, case)
        for variable in VARIABLE_UNITS:
            without = (*which, variable)
            # of several at one time the first counts, as it does for a survey
            known = kept.get(without)
            if variable not in case.recorded and (not known or known[1].when < case.when):
                kept[without] = (number, case)
    by_number = dict(kept.values())
    return tuple(by_number[number] for number in sorted(by_number))


def _still_right(
    kept: _Kept | None, directory: Path, found: Mapping[Path, tuple[int, int]]
) -> _Kept:
    """Return what is kept if all that it rests on is there as it was, else nothing.

    Old reports may be deleted: what others told stands without them.
    """
    if kept is None:
        return _NOTHING
    needed = {case.report for case in kept.cases}
    if kept.newest:
        needed.add(directory / kept.newest[0])
    here = {name: seen for name, seen in kept.reports.items() if directory / name in found}
    changed = any(found[directory / name] != seen for name, seen in here.items())
    if changed or not needed <= {directory / name for name in here}:
        return _NOTHING
    rejected = {name: why for name, why in kept.rejected.items() if name in here}
    return _Kept(here, kept.newest, kept.cases, rejected)


def _read_on(old: _Kept, directory: Path, found: Mapping[Path, tuple[int, int]]) -> _Kept:
    reports, rejected = dict(old.reports), dict(old.rejected)
    cases, newest = list(old.cases), old.newest
    for path, seen in found.items():
        name = str(path.relative_to(directory))
        if name in reports:
            continue
        reports[name] = seen
        try:
            report = read_report(path)
        except Unusable as reason:
            rejected[name] = str(reason)
            continue
        if report:
            end, told = report
            if newest is None or end > newest[1]:
                newest = (name, end)
            # at once, because ten years of cases would fill the memory
            cases = [*newest_of(sorted([*cases, *told], key=lambda case: case.when))]
    return _Kept(reports, newest, tuple(cases), rejected)


def _as_json(kept: _Kept, directory: Path) -> str:
    cases = [
        asdict(case)
        | {
            "recorded": sorted(case.recorded),
            "when": case.when.isoformat(),
            "report": str(case.report.relative_to(directory)),
        }
        for case in kept.cases
    ]
    newest = kept.newest and (kept.newest[0], kept.newest[1].isoformat())
    return json.dumps(
        {
            "version": VERSION,
            "reports": kept.reports,
            "newest": newest,
            "cases": cases,
            "rejected": kept.rejected,
        }
    )


def _load(path: Path, directory: Path) -> _Kept | None:
    try:
        said = json.loads(path.read_bytes())
        if said["version"] != VERSION:
            return None
        newest = said["newest"]
        return _Kept(
            {name: (seen[0], seen[1]) for name, seen in said["reports"].items()},
            newest and (newest[0], datetime.fromisoformat(newest[1])),
            tuple(_case(case, directory) for case in said["cases"]),
            dict(said["rejected"]),
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None  # not there, or damaged: it is written anew


def _case(said: Mapping[str, Any], directory: Path) -> RunCase:
    return RunCase(
        **{
            **said,
            "recorded": frozenset(said["recorded"]),
            "when": datetime.fromisoformat(said["when"]),
            "report": directory / said["report"],
        }
    )
