"""What the digest says besides alerts and rates, such as what was not measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from iobands.bands import BELOW, COLLAPSED, Epoch
from iobands.model import NODE, TARGET, Ask, Leftover, slug
from iobands.snapshot import Snapshot, State
from iobands.views import (
    command_text,
    due_text,
    epoch_text,
    maintenance_text,
    plural,
    size_text,
    time_text,
)
from iobands.views.related import WEIGHTED_PERCENT, uneven

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
