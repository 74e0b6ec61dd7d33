"""The lines that explanations are made of."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from iobands.snapshot import Snapshot
from iobands.views.format import action_text, day_text, listed, plural, ratio_text
from iobands.views.related import SHARED_FIELDS, Related

_WIDTH: Final = 100
_HEADING: Final = 12
_NAMED: Final = 6


def fact(heading: str, text: str) -> Iterator[str]:
    """Yield a fact under its heading, which may be empty."""
    indent = " " * _HEADING
    yield from textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=f"{heading:{_HEADING}}",
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


def section(heading: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines under a heading."""
    yield from ("", heading)
    for line in list(lines) or ["nothing that is recorded"]:
        yield from textwrap.wrap(
            line, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
        )


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows of a table, indented, with each column as wide as its longest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()


def some(names: Sequence[str]) -> str:
    """Return the first few of many names."""
    hidden = len(names) - _NAMED
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {hidden} more" if hidden > 0 else shown


def move(site: Snapshot, each: Related) -> str:
    """Return how another series moved."""
    shared = (
        f" (same {listed([SHARED_FIELDS[name] for name in each.shared])})" if each.shared else ""
    )
    if change := each.change:
        until = f" to {day_text(change.ended, site.now)}" if change.ended else ""
        since = f"{change.direction} since {day_text(change.since, site.now)}{until}"
        return f"{since}, {ratio_text(change.ratio)}{shared}"
    if each.action:
        ratio = f", {each.action.ratio:.2f} ×" if each.action.ratio else ""
        return f"{each.action.direction}{ratio}; {action_text(each.action)}{shared}"
    assert each.leaning is not None
    others = [alert.subject for alert in site.alerts_on(each.series.key) if alert.certainty]
    where = f"part of '{others[0]}'" if others else "without an alert"
    runs = plural(each.runs, "run")
    return f"{ratio_text(each.leaning)} in its next {runs}, {where}{shared}"
