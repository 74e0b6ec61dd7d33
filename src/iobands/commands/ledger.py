"""The command `iobands alerts`: open and past alerts, and how each ended."""

from __future__ import annotations

import sys
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from iobands.commands.options import PastSiteOptions, site_of
from iobands.snapshot import Ledger
from iobands.views.digest import MAIL_WIDTH
from iobands.views.format import percent, plural, printable

_SHOWN: Final = 30
_DAY: Final = len("2026-11-21")
_CHANGE: Final = len("CHANGE")


def alerts(
    every: Annotated[bool, typer.Option("--all", help="List all, not only the newest 30.")] = False,
    *,
    options: PastSiteOptions,
) -> None:
    """List open and past alerts, how each ended, and the precision and delay at this site.

    The precision is the share of alerts that `iobands resolve --verdict` called real.
    """
    site = site_of(options)
    found = site.ledger
    table = Table(box=None, pad_edge=False)
    for heading in ("SINCE", "RAISED", "ENDED"):
        table.add_column(heading, min_width=_DAY, no_wrap=True)
    table.add_column("CHANGE", min_width=_CHANGE, justify="right", no_wrap=True)
    table.add_column("SUBJECT", ratio=3)
    table.add_column("HOW IT ENDED", ratio=2)
    shown = found.entries if every else found.entries[:_SHOWN]
    for entry in shown:
        days = [f"{when:%Y-%m-%d}" if when else "-" for when in (entry.raised, entry.ended)]
        change = percent(entry.ratio) if entry.ratio else "-"
        end = printable(entry.ending)
        table.add_row(f"{entry.since:%Y-%m-%d}", *days, change, printable(entry.subject), end)
    console = Console(width=None if sys.stdout.isatty() else MAIL_WIDTH)
    console.print(table if shown else "No alert so far.")
    if len(found.entries) > len(shown):
        console.print(f"and {len(found.entries) - len(shown)} earlier ones; list them with --all")
    console.print(_figures(found), highlight=False, soft_wrap=True)


def _figures(found: Ledger) -> str:
    judged = found.real + found.false
    precision = (
        f"precision {found.real / judged:.0%} of {plural(judged, 'verdict')}"
        if judged
        else "no verdict yet; give one with `iobands resolve --verdict real|false`"
    )
    delay = "" if found.delay is None else f"; median detection delay {found.delay:g} runs"
    return f"\n{precision}{delay}"
