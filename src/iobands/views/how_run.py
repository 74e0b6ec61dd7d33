"""How a run moved its data, and which published advice it did not follow.

docs/cases.md names the texts that give the advice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from iobands.model import SeriesKey
from iobands.snapshot import in_effect
from iobands.views import plural

_MANY: Final = (
    0.2  # share of the time in opens and closes, from which on transfers alone do not decide
)
_TARGETS_EACH: Final = 4  # targets for an aggregator at the most, by Cray's slides
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
