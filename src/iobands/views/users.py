"""What the users of a site read first: how to get good rates, and which to expect today."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from iobands.bands import COLLAPSED
from iobands.snapshot import Advised, Recommended, Series, Snapshot, State
from iobands.views.advice import advice_of
from iobands.views.document import Block, Bullets, Heading, Paragraph, Table
from iobands.views.format import day_text, figure, percent
from iobands.views.published import PATTERNS, direction, settings_section

_HEADINGS: Final = ("Pattern", "File system", "Direction", "Expect", "Newest run", "Today")
_USUAL: Final = "as usual"
_HOW: Final = (
    "The file systems are shared. Half of the runs lie in the range to expect, a quarter below it."
)


def users_section(
    site: Snapshot,
    recommended: Sequence[Recommended],
    advised: Sequence[Advised],
    paths: Mapping[tuple[str, str], str],
) -> list[Block]:
    """Return settings with their commands, the rates of today, and advice.

    `paths` has the paths of the file systems of each system, as users know them.
    """
    rows = [row for each in recommended for row in _rates(site, each)]
    if not rows:
        return []
    blocks: list[Block] = [
        Heading("Rates to expect", 2), Paragraph(_HOW), Table(_HEADINGS, tuple(rows))
    ]  # fmt: skip
    named = {each.key.file_system for each in site.series}
    where = tuple(f"{name}: {path}" for (_, name), path in paths.items() if name in named)
    blocks += [Heading("Where", 2), Bullets(where)] if where else []
    blocks.append(Heading("Settings and the commands that set them", 2))
    for each in recommended:
        blocks += settings_section(each)
    today = {each.key: text for each in site.series if (text := _today(site, each)) != _USUAL}
    if lines := tuple(line for each in advised for line in advice_of(each, today)):
        blocks += [Heading("Advice", 2), Bullets(lines)]
    return blocks


def _rates(site: Snapshot, each: Recommended) -> Iterator[tuple[str, ...]]:
    """Yield a row for each series with the recommended settings."""
    for series in site.series:
        key = series.key
        alike = replace(each.key, file_system=key.file_system, variable=key.variable) == key
        if not alike or series.status.value is None:
            continue
        band, unit = series.status.band, series.key.unit
        yield (
            PATTERNS.get(str(series.key.pattern), str(series.key.pattern)),
            str(series.key.file_system),
            direction(series.key.variable),
            f"{figure(band.lower_quartile)}–{figure(band.upper_quartile)} {unit}" if band else "–",
            f"{figure(series.status.value)} {unit}",
            _today(site, series),
        )


def _today(site: Snapshot, series: Series) -> str:
    """Return how a series does now."""
    if series.status.state is State.NO_DATA and series.status.when:
        return f"not measured since {day_text(series.status.when, site.now)}"
    if change := series.status.change:
        return f"{percent(change.ratio.value)} since {day_text(change.since, site.now)}"
    if any(alert.exit_status for alert in site.alerts_on(series.key)):
        return "slower than usual"
    return "low in the newest run" if series.status.verdict == COLLAPSED else _USUAL
