"""What is noted besides alerts and rates: what was not measured, and how a run moved its data.

docs/cases.md names the texts that give the advice on runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from iobands.snapshot import (
    BELOW,
    COLLAPSED,
    NODE,
    TARGET,
    Ask,
    Epoch,
    Leftover,
    SeriesKey,
    Snapshot,
    State,
    in_effect,
    slug,
)
from iobands.views.format import (
    command_text,
    due_text,
    epoch_text,
    figure,
    maintenance_text,
    plural,
    size_text,
    time_text,
)

# The case of runs with all files on one target.
_PINNED: Final = "target "
_FEW: Final = 3
_REJECTED: Final = 5
#: The command that shows what the digest leaves out.
SHOW_ALL: Final = "iobands status --all"


@dataclass(frozen=True)
class Remark:
    """A heading and its lines; by default `most` are shown, and `rest` shows all `number`."""

    heading: str
    lines: Sequence[str]
    most: int = _FEW
    rest: str = SHOW_ALL
    after: Sequence[str] = ()
    number: int = 0


def remarks_of(site: Snapshot, *, rejected: bool) -> Iterator[Remark]:
    """Yield what there is to note of a site, the most urgent first."""
    lines = [": ".join(each) for each in unevenly_placed(site)]
    yield Remark("Uneven placement of files on storage targets", lines)
    yield Remark("To be measured again by the hourly `iobands run --suspects`", [*_planned(site)])
    lines = [": ".join(each) for each in not_measured(site)]
    yield Remark("Not measured", lines)
    yield Remark("Maintenance", [": ".join(each) for each in maintenance_lines(site)])
    yield _of_future(site)
    yield Remark("Calibrating in a new epoch", [*dict.fromkeys(map(epoch_text, _new_epochs(site)))])
    again = () if all(each.is_closed for each in site.leftovers) else ("Try again: iobands clean",)
    left = [leftover_text(each) for each in site.leftovers]
    yield Remark(leftovers_heading(site.leftovers), left, after=again)
    late, _, why = (site.unpushed or "").partition(": ")
    yield Remark(f"Not pushed to the store {late}", [why] if late else [])
    yield Remark("Odd in the files of bands", site.warnings)
    yield Remark("Retired: no samples are expected", [each.label for each in site.retired])
    yield Remark("Superseded: their checks now run at another scale", site.superseded)
    heading, number = f"Rejected: {plural(site.rejected_lines, 'line')}", site.rejected_lines
    lines = [*map(str, site.rejected)]
    most = len(lines) if rejected else _REJECTED
    yield Remark(heading, lines, most, "iobands status --rejected", number=number)


def _planned(site: Snapshot) -> Iterator[str]:
    """Yield what is measured again between sessions, and when."""
    for ask in site.planned:
        yield f"{asked_text(site, ask)}: next repeat {due_text(ask, site.now)} ({ask.why})"


def asked_text(site: Snapshot, ask: Ask) -> str:
    """Return what is measured again: the series in doubt, or a target or node."""
    names = [each.label for each in site.series if slug(each.key) in ask.series]
    more = f" and {len(names) - 1} more" if names[1:] else ""
    pinned = {TARGET: ask.target, NODE: ask.node}
    where = " on ".join([ask.file_system or "a run", *(f"{k} {v}" for k, v in pinned.items() if v)])
    return f"{names[0]}{more}" if names else where


def _of_future(site: Snapshot) -> Remark:
    if not site.future:
        return Remark("", ())
    first, newest = site.future[0], site.future[-1]
    options = f"--at {first.when:%Y-%m-%dT%H:%M:%SZ} --reason TEXT"
    return Remark(
        "Set aside: dated in the future by a wrong clock",
        [f"{plural(len(site.future), 'sample')}, the newest at {time_text(newest.when)}"],
        after=[f"To discard the first: {command_text('discard', first.label, options)}"],
    )


def _new_epochs(site: Snapshot) -> Iterator[Epoch]:
    """Yield the epochs of series that calibrate although they have earlier samples."""
    for each in site.series:
        epoch = each.epoch
        is_new = epoch and not epoch.continues and each.history.first < epoch.since
        if epoch and is_new and each.status.state is State.CALIBRATING:
            yield epoch


def unevenly_placed(site: Snapshot) -> list[tuple[str, str]]:
    """Return how far the newest files of each file system are from round-robin placement.

    Without a known reason it may be chance. Then a line is given only to low runs with files placed
    less evenly than in the other runs of their series. Runs pinned to a target are left out.
    """
    found: dict[str, tuple[float, str]] = {}
    for series in site.series:
        newest, status = series.history.newest, series.status
        text = uneven(newest)
        if text is None or str(series.key.case or "").startswith(_PINNED):
            continue
        usual = median(site.samples_of(series)["busiest_target"].drop_nulls())
        is_low = newest["busiest_target"] >= 2 * usual and (
            status.verdict in (BELOW, COLLAPSED) or status.state is State.DEGRADED
        )
        if not is_low and (newest["free_spread_percent"] or 0) < WEIGHTED_PERCENT:
            continue
        if is_low:
            text += f"; this may be why {series.label} is low"
        where = f"{series.key.file_system} of {series.key.system}"
        found[where] = max(found.get(where, (0.0, "")), (newest["busiest_target"], text))
    return [(where, text) for where, (_, text) in found.items()]


def not_measured(site: Snapshot) -> list[tuple[str, ...]]:
    """Return what was skipped and why, with one entry for checks of one kind and reason."""
    alike: dict[str, dict[str, None]] = {}
    for skip in site.skipped:
        alike.setdefault(skip.reason, {})[skip.name.split()[0]] = None
    # A reason begins with a few words and a colon, as in `not installed: ior`.
    return [
        (", ".join(names), *(reason.split(": ", 1) if ": " in reason else ("skipped", reason)))
        for reason, names in alike.items()
    ]


def maintenance_lines(site: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield where each maintenance is, and its last and next time."""
    for system, windows in site.maintenance.items():
        for window in windows:
            if any(site.now in span for span in window.spans(site.now)[-1:]):
                where = ", ".join(window.file_systems) or system
                text = maintenance_text(window, site.now)
                yield where, text


def leftovers_heading(leftovers: Sequence[Leftover]) -> str:
    """Return how many run directories are left, and their known size."""
    left = [each for each in leftovers if not each.is_closed]
    if not left:
        return "Left behind: not known"
    seen = [each.bytes for each in left if each.bytes is not None]
    many = "directory" if len(left) == 1 else "directories"
    size = f", {size_text(sum(seen))}" if seen else ""
    unseen = len(left) - len(seen)
    where = f"; {unseen} of them cannot be seen from here" if unseen else ""
    return f"Left behind: {len(left)} run {many}{size}{where}"


def leftover_text(left: Leftover) -> str:
    """Return which run directory is left, its size where known, and why."""
    known = f" ({size_text(left.bytes)})" if left.bytes is not None else ""
    return f"{left.path}{known}: {left.why}"


_MANY: Final = (
    0.2  # share of the time in opens and closes, from which on transfers alone do not decide
)
_TARGETS_EACH: Final = 4  # at most, for an aggregator, by Cray's slides
_FILES_OF_ITS_OWN: Final = frozenset({"fpp", "fpn"})
# The rest has many files, or no data.
_SHARED: Final = ("ssf", "snapshot", "btio", "strided", "mapped")
_OF_ONE_PROCESS: Final = frozenset({"serial", "aligned-single"})
_GB: Final = 10**9
_GIB: Final = 2**30


def how_run(key: SeriesKey, sample: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield headings and texts about the newest sample of a series."""
    shares, calls = (_parts(sample, name, key.variable) for name in ("time_shares", "mpiio_calls"))
    if shares:
        yield "Time", ", ".join(f"{part} {100 * share:.0f} %" for part, share in shares.items())
    if calls:
        yield "Calls", _calls_text(calls)
    if movers := _movers(sample, key.variable):
        yield "Moved by", f"{movers} of {key.tasks or 0:g} processes"
    effect = in_effect(sample)
    if settings := list(filter(None, [effect.brief(), effect.hints])):
        yield "In effect", "; ".join(settings)
    heading = "Guidance"
    for text in not_followed(key, sample):
        yield heading, text
        heading = ""


def not_followed(key: SeriesKey, sample: Mapping[str, Any]) -> Iterator[str]:
    """Yield the published advice that a sample did not follow, with its source."""
    shares, calls = (_parts(sample, name, key.variable) for name in ("time_shares", "mpiio_calls"))
    tasks = int(key.tasks or 0)
    waited = shares.get("open", 0) + shares.get("close", 0)
    if waited > _MANY:
        files = f" for {plural(tasks, 'file')}" if key.pattern == "fpp" else ""
        yield (
            "open few files, and each once, as thousands of opens at once can overload a file "
            f"system (ARCHER2, CSC): they take {100 * waited:.0f} % of the time{files}"
        )
    if key.pattern in _OF_ONE_PROCESS:
        yield "let several processes do I/O: a single one seldom exceeds 1 GB/s (ARCHER2, Cray)"
        return
    independent = calls.get("independent", 0) > calls.get("collective", 0)
    if independent or (not calls and str(key.pattern).endswith("-independent")):
        yield f"use collective calls for a shared file (ARCHER2, Cray): {_calls_text(calls)}"
    yield from _stripes(key, sample, tasks)
    count, movers = sample.get("stripe_count"), _movers(sample, key.variable)
    if movers and count and calls.get("collective") and not independent:
        if movers > count:
            yield f"more aggregators than stripes do not help (CSC): {movers} for {count:g}"
        elif movers * _TARGETS_EACH < count:
            yield (
                f"give an aggregator {_TARGETS_EACH} targets at the most (Cray): {movers} for "
                f"{count:g}"
            )


def _stripes(key: SeriesKey, sample: Mapping[str, Any], tasks: int) -> Iterator[str]:
    """Yield the published advice on stripes that was not followed."""
    count, targets = sample.get("stripe_count"), sample.get("targets_active")
    if not count or not tasks:
        return
    if key.pattern in _FILES_OF_ITS_OWN:
        if count > 1 and (targets is None or tasks >= targets):
            yield f"use one stripe for a file per process (ARCHER2, CSC, Cray): it has {count:g}"
        return
    if not str(key.pattern).startswith(_SHARED):
        return
    if count == 1 and tasks > 1 and targets != 1:
        yield "stripe a shared file over all targets (ARCHER2): it has 1 stripe"
    elif (
        count
        < (rule := math.isqrt(int((key.gib or 0) * _GIB / _GB)))
        <= min(targets or rule, tasks)
    ):
        yield (
            f"use at least {rule} stripes, the square root of the size in GB (CSC): it has "
            f"{count:g}"
        )
    if count > tasks:
        yield f"use no more stripes than processes (CSC, Cray): {count:g} for {tasks}"
    elif tasks % count:
        yield f"use a stripe count that divides the processes (CSC): {count:g} for {tasks}"


def _calls_text(calls: Mapping[str, float]) -> str:
    """Return how many MPI-IO calls of each kind moved data."""
    made = {kind: int(number) for kind, number in calls.items() if number}
    if len(made) == 1:
        ((kind, number),) = made.items()
        return f"every call was {kind} ({number})"
    return ", ".join(f"{number} {kind}" for kind, number in made.items()) or "by its pattern"


def _movers(sample: Mapping[str, Any], variable: str) -> int | None:
    found = dict(part.split("=", 1) for part in _split(sample.get("movers"), ",") if "=" in part)
    number = found.get(variable, "")
    return int(number) if number.isdecimal() else None


def _parts(sample: Mapping[str, Any], column: str, variable: str) -> dict[str, float]:
    """Return the numbers of a variable in a column such as `write_bw=open:0.1,close:0.2;…`."""
    for part in _split(sample.get(column), ";"):
        name, _, rest = part.partition("=")
        if name == variable:
            pairs = (each.partition(":") for each in rest.split(","))
            try:
                return {what: float(number) for what, _, number in pairs}
            except ValueError:  # the perflog was edited by hand
                return {}
    return {}


def _split(text: object, separator: str) -> list[str]:
    return text.split(separator) if isinstance(text, str) else []


_FAR: Final = 2.0  # times as many files on the busiest target as with round-robin placement

#: From this difference in free space on, Lustre no longer places files round-robin.
WEIGHTED_PERCENT: Final = 17


def uneven(sample: Mapping[str, Any]) -> str | None:
    """Return how far the files of a run are from round-robin placement, and why if known."""
    busiest = sample.get("busiest_target")
    if busiest is None or busiest < _FAR:
        return None
    text = f"the busiest target has {figure(busiest)} × its round-robin share of files"
    spread, fullest = sample.get("free_spread_percent"), sample.get("fullest_target")
    if spread is None or spread < WEIGHTED_PERCENT or not fullest:
        return text
    full = f"{fullest} is {sample['fullest_target_percent']:.0f} % full"
    return f"{text}: {full}, and targets with more free space get more files"
