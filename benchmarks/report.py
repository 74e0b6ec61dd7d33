"""The table, on the terminal and as `docs/benchmarks.md`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.table import Table

from benchmarks.measure import Finding
from benchmarks.pages import rendered
from benchmarks.workload import GIB, MIB, Workload

MEMORY_AIM: Final = 1.25


@dataclass(frozen=True)
class MemoryFinding:
    """The peak memory of a rank over its share of the data."""

    layer: str
    ratio: float | None
    missing: str = ""

    @property
    def verdict(self) -> str:
        """Whether the aim was reached."""
        if self.ratio is None:
            return f"left out: {self.missing}"
        return "reached" if self.ratio <= MEMORY_AIM else "over"


def terminal_table(findings: Sequence[Finding], memory: Sequence[MemoryFinding]) -> Table:
    """Return the table for the terminal."""
    table = Table("what", "against", "GiB/s", "ratio", "quartiles", "aim", "verdict")
    for found in findings:
        what = f"{found.title}, {found.operation}, {found.place}"
        if found.ratio is None:
            table.add_row(what, "", "", "", "", _aim(found), found.verdict)
            continue
        table.add_row(
            what,
            found.against,
            f"{found.ours:.2f} / {found.theirs:.2f}",
            f"{found.ratio.median:.2f}",
            f"{found.ratio.lower:.2f}–{found.ratio.upper:.2f}",
            _aim(found),
            found.verdict,
        )
    for peak in memory:
        ratio = "" if peak.ratio is None else f"{peak.ratio:.2f}"
        table.add_row(f"memory, {peak.layer}", "", "", ratio, "", f"{MEMORY_AIM}", peak.verdict)
    return table


def _aim(found: Finding) -> str:
    """Return the aim as the tables show it."""
    return "" if found.aim is None else f"{found.aim:.2f}"


def page(
    findings: Sequence[Finding],
    memory: Sequence[MemoryFinding],
    facts: dict[str, str],
    workload: Workload,
    pairs: int,
    date: str,
) -> str:
    """Return the page for the documentation, in Markdown."""
    return rendered(
        "benchmarks.md",
        findings=findings,
        memory=memory,
        memory_aim=MEMORY_AIM,
        facts=facts,
        ranks=workload.ranks,
        volume=f"{workload.volume / GIB:g} GiB",
        share=f"{workload.share / MIB:g} MiB",
        block=" × ".join(str(length) for length in workload.block),
        row=f"{workload.row * 8 / 1024:g} KiB",
        pairs=pairs,
        date=date,
    )
