"""Remarks besides alerts and rates: what was not measured, and how a run moved its data.

docs/cases.md names the sources of the published advice on runs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from iobands import snapshot
from iobands.snapshot import Leftover, SeriesKey, Snapshot, State, figure
from iobands.views import writing
from iobands.views.writing import due_text, plural, share_text, size_text, time_text

#: The command that shows what the digest leaves out.
SHOW_ALL: Final = "iobands status --all"
_FEW: Final = 3
_REJECTED: Final = 5


@dataclass(frozen=True)
class Remark:
    """A heading and lines: by default `most`; the command `rest` shows all `number` of them."""

    heading: str
    lines: Sequence[str]
    most: int = _FEW
    rest: str = SHOW_ALL
    after: Sequence[str] = ()
    number: int = 0


def remarks_of(site: Snapshot, *, rejected: bool) -> Iterator[Remark]:
    """Yield the remarks on a site, the most urgent first; remarks without lines are not shown."""
    yield Remark("Maintenance", maintenance_lines(site))
    yield Remark("Uneven placement of files on storage targets", unevenly_placed(site))
    planned = [
        f"{writing.asked_text(site, ask)}: next repeat {due_text(ask, site.now)} ({ask.why})"
        for ask in site.planned
    ]
    yield Remark("To be measured again by the hourly `iobands run --suspects`", planned)
    yield Remark("Not measured", not_measured(site))
    if site.future:
        first, newest = site.future[0], site.future[-1]
        options = (writing.view_options(site), f"--at {first.when:%Y-%m-%dT%H:%M:%SZ}")
        discard = writing.command_text("discard", first.label, *options, "--reason TEXT")
        yield Remark(
            "Set aside: dated in the future by a wrong clock",
            [f"{plural(len(site.future), 'sample')}, the newest at {time_text(newest.when)}"],
            after=[f"To discard the first: {discard}"],
        )
    new = dict.fromkeys(
        writing.epoch_text(each.epoch)
        for each in site.series
        if each.status.state is State.CALIBRATING and each.epoch and not each.epoch.continues
        if each.history.first < each.epoch.since
    )
    yield Remark("Calibrating in a new epoch", [*new])
    again = () if all(each.is_closed for each in site.leftovers) else ("Try again: iobands clean",)
    left = [leftover_text(each) for each in site.leftovers]
    yield Remark(leftovers_heading(site.leftovers), left, after=again)
    late, _, why = (site.unpushed or "").partition(": ")
    yield Remark(f"Not pushed to the store {late}", [why] if late else [])
    yield Remark("To check in the bands files", site.warnings)
    yield Remark("Retired: no samples are expected", [each.label for each in site.retired])
    yield Remark("Superseded: their checks now run at another scale", site.superseded)
    heading, number = f"Rejected: {plural(site.rejected_lines, 'line')}", site.rejected_lines
    lines = [*map(str, site.rejected)]
    most = len(lines) if rejected else _REJECTED
    yield Remark(heading, lines, most, "iobands status --rejected", number=number)


def unevenly_placed(site: Snapshot) -> list[str]:
    """Return a line for each file system whose newest files are far from round-robin placement.

    Without a known reason, this may be chance. Then there is a line only if the run is low and its
    files are placed less evenly than is usual for the series. Runs pinned to a target do not count.
    """
    found: dict[str, tuple[float, str]] = {}
    for series in site.series:
        newest, status = series.history.newest, series.status
        text = uneven(newest)
        if text is None or str(series.key.case or "").startswith(f"{snapshot.TARGET} "):
            continue
        usual = median(site.samples["busiest_target"][series.rows].drop_nulls())
        is_low = newest["busiest_target"] >= 2 * usual and (
            status.verdict in (snapshot.BELOW, snapshot.COLLAPSED) or status.state is State.DEGRADED
        )
        if not is_low and (newest["free_spread_percent"] or 0) < _WEIGHTED_PERCENT:
            continue
        if is_low:
            text += f"; this may be why {series.label} is low"
        where = f"{series.key.file_system} of {series.key.system}"
        found[where] = max(found.get(where, (0.0, "")), (newest["busiest_target"], text))
    return [f"{where}: {text}" for where, (_, text) in found.items()]


def not_measured(site: Snapshot) -> list[str]:
    """Return a line for each reason with the names of the checks that were skipped for it."""
    alike: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for skip in site.skipped:
        # Most reasons begin with a few words and a colon, such as `not installed: ior`.
        reason = skip.reason if ": " in skip.reason else f"skipped: {skip.reason}"
        alike[reason][skip.name.split()[0]] = None
    return [f"{', '.join(names)}: {reason}" for reason, names in alike.items()]


def maintenance_lines(site: Snapshot) -> list[str]:
    """Return a line for each maintenance in progress: where, its times, and the next one."""
    return [
        f"{', '.join(window.file_systems) or system}: {writing.maintenance_text(window, site.now)}"
        for system, windows in site.maintenance.items()
        for window in windows
        if any(site.now in span for span in window.spans(site.now)[-1:])
    ]


def leftovers_heading(leftovers: Sequence[Leftover]) -> str:
    """Return how many run directories are left behind, and their total size as far as known."""
    if not (left := [each for each in leftovers if not each.is_closed]):
        return "Left behind: not known"
    seen = [each.bytes for each in left if each.bytes is not None]
    many = "directory" if len(left) == 1 else "directories"
    size = f", {size_text(sum(seen))}" if seen else ""
    unseen = len(left) - len(seen)
    which = f"; {unseen} of them" if seen else " that"
    where = f"{which} cannot be seen from here" if unseen else ""
    return f"Left behind: {len(left)} run {many}{size}{where}"


def leftover_text(left: Leftover) -> str:
    """Return the path of a left-over, its size if known, and why it is left."""
    known = f" ({size_text(left.bytes)})" if left.bytes is not None else ""
    return f"{left.path}{known}: {left.why}"


# Above this share of the time in opens and closes, a rate does not depend on transfers alone.
_MANY: Final = 0.2
_TARGETS_EACH: Final = 4  # targets per aggregator at most, by Cray's slides
_FILES_OF_ITS_OWN: Final = frozenset({"fpp", "fpn"})
# Patterns with one shared file; the others have many files, or no data.
_SHARED: Final = ("ssf", "snapshot", "btio", "strided", "mapped")
_OF_ONE_PROCESS: Final = frozenset({"serial", "aligned-single"})
_MOST_DIGITS: Final = 9  # of a number of processes; int() refuses thousands of them


def how_run(key: SeriesKey, sample: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield facts (heading and text) about how a sample of a series was measured."""
    shares, calls = (_parts(sample, name, key.variable) for name in ("time_shares", "mpiio_calls"))
    if shares:
        yield "Time", ", ".join(f"{part} {share_text(each)}" for part, each in shares.items())
    if calls:
        yield "Calls", _calls_text(calls)
    if movers := _movers(sample, key.variable):
        yield "I/O done by", f"{movers} of {key.tasks or 0:.0f} processes"
    if settings := snapshot.in_effect(sample).text():
        yield "In effect", settings
    for place, text in enumerate(not_followed(key, sample)):
        yield "" if place else "Guidance", text


def not_followed(key: SeriesKey, sample: Mapping[str, Any]) -> Iterator[str]:
    """Yield the published advice, with sources, that a sample did not follow."""
    shares, calls = (_parts(sample, name, key.variable) for name in ("time_shares", "mpiio_calls"))
    tasks, pattern = int(key.tasks or 0), str(key.pattern)
    waited = shares.get("open", 0) + shares.get("close", 0)
    if waited > _MANY:
        files = f" for {plural(tasks, 'file')}" if pattern == "fpp" else ""
        yield (
            "open few files, and each once, as thousands of opens at once can overload a file "
            f"system (ARCHER2, CSC): opens and closes take {share_text(waited)} of the time{files}"
        )
    if pattern in _OF_ONE_PROCESS:
        yield "let several processes do I/O: a single one seldom exceeds 1 GB/s (ARCHER2, Cray)"
        return
    independent = calls.get("independent", 0) > calls.get("collective", 0)
    if independent or (not calls and pattern.endswith("-independent")):
        yield f"use collective calls for a shared file (ARCHER2, Cray): {_calls_text(calls)}"
    count, movers = sample.get("stripe_count"), _movers(sample, key.variable)
    if count and tasks:
        yield from _stripes(key, pattern, count, sample.get("targets_active"), tasks)
    if movers and count and calls.get("collective") and not independent:
        if movers > count:
            yield f"more aggregators than stripes do not help (CSC): {movers} for {count:g}"
        elif movers * _TARGETS_EACH < count:
            most = f"{_TARGETS_EACH} targets at the most (Cray)"
            yield f"give an aggregator {most}: {movers} for {count:g}"


def _stripes(
    key: SeriesKey, pattern: str, count: int, targets: int | None, tasks: int
) -> Iterator[str]:
    """Yield the published advice on stripe counts that a sample did not follow."""
    if pattern in _FILES_OF_ITS_OWN and count > 1 and (targets is None or tasks >= targets):
        yield f"use one stripe for a file per process (ARCHER2, CSC, Cray): it has {count:g}"
    if not pattern.startswith(_SHARED):
        return
    root = math.isqrt(int((key.gib or 0) * 2**30 / 10**9))
    if count == 1 and tasks > 1 and targets != 1:
        yield "stripe a shared file over all targets (ARCHER2): it has 1 stripe"
    elif count < root <= min(targets or root, tasks):
        what = f"{root} stripes, the square root of the size in GB (CSC)"
        yield f"use at least {what}: it has {count:g}"
    if count > tasks:
        yield f"use no more stripes than processes (CSC, Cray): {count:g} for {tasks}"
    elif tasks % count:
        yield f"use a stripe count that divides the processes (CSC): {count:g} for {tasks}"


def _calls_text(calls: Mapping[str, float]) -> str:
    made = [(kind, int(number)) for kind, number in calls.items() if number]
    if len(made) == 1:
        return f"every call was {made[0][0]} ({made[0][1]})"
    return ", ".join(f"{number} {kind}" for kind, number in made) or "by its pattern"


def _movers(sample: Mapping[str, Any], variable: str) -> int | None:
    number = _by_name(sample.get("movers"), ",").get(variable, "")
    return int(number) if number.isdecimal() and len(number) <= _MOST_DIGITS else None


def _parts(sample: Mapping[str, Any], column: str, variable: str) -> dict[str, float]:
    """Return the numbers of `variable` in a column such as `write_bw=open:0.1,close:0.2;…`."""
    of_variable = _by_name(sample.get(column), ";").get(variable)
    pairs = (each.partition(":") for each in of_variable.split(",")) if of_variable else ()
    try:
        found = {what: float(number) for what, _, number in pairs}
        return {what: number for what, number in found.items() if math.isfinite(number)}
    except ValueError:  # the perflog was edited by hand
        return {}


def _by_name(text: object, separator: str) -> dict[str, str]:
    parts = str(text or "").split(separator)
    return {name: rest for name, _, rest in (part.partition("=") for part in parts)}


_FAR: Final = 2.0  # times as many files on the busiest target as with round-robin placement
# With this difference in free space or more, Lustre does not place files round-robin.
_WEIGHTED_PERCENT: Final = 17


def uneven(sample: Mapping[str, Any]) -> str | None:
    """Return how unevenly a run's files are placed, and why if known; None if evenly enough."""
    busiest = sample.get("busiest_target")
    if busiest is None or busiest < _FAR:
        return None
    text = f"the busiest target has {figure(busiest)} × its round-robin share of files"
    reasons = ("free_spread_percent", "fullest_target", "fullest_target_percent")
    spread, fullest, full = map(sample.get, reasons)
    if not fullest or full is None or spread is None or spread < _WEIGHTED_PERCENT:
        return text
    # of two targets of the same size, the fuller one is at least this full
    state = f"{share_text(full / 100)} full" if full + 1 >= spread else "smaller"
    return f"{text}: {fullest} is {state}, and targets with more free space get more files"
