"""How tables and figures are written on the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.alarms.measure import Delay


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def delay_text(delay: Delay) -> str:
    """Return mean and 90 % point, and the share that was missed."""
    missed = f", {delay.missed / delay.number:.0%} missed" if delay.missed else ""
    return f"{delay.mean:.1f} ({delay.ninth_decile:.0f}){missed}"
