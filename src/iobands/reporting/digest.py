"""The digest: a site's survey as text for a terminal or a cron mail.

May know: surveys and how they are worded; nothing of files or of the command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import shorten
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from iobands.bands import NO_BAND
from iobands.reporting.concerns import Concern, acknowledged_concerns, concerns, skipped
from iobands.reporting.digest_table import STYLES, band_cell, series_table
from iobands.reporting.format import (
    epoch_text,
    plural,
    printable,
    summary,
    time_text,
)
from iobands.status.states import ENOUGH_RUNS, State
from iobands.status.survey import Series, Survey

#: How many rejected lines are named without being asked.
FIRST_REJECTED: Final = 5
#: What a mail is laid out for.
MAIL_WIDTH: Final = 100

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_ASCII: Final = str.maketrans(
    {"–": "-", "…": "~", "×": "x"} | {b: str(i) for i, b in enumerate(_BLOCKS, 1)}
)
_LONGEST_REASON: Final = 240  # characters: some tell a whole log
_NAMED_UNDER: Final = 8
_EXPLAINED: Final = {State.DEGRADED.value, State.WATCH.value, State.IMPROVED.value}


def digest_text(survey: Survey, console: Console, *, all_rejected: bool = False) -> str:
    """Return the digest of `survey` as `console` can show it: the summary, what is amiss, all."""
    with console.capture() as capture:
        for part in digest(survey, console.width, all_rejected=all_rejected):
            console.print(part, soft_wrap=isinstance(part, Text))
    text = "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"
    return text if is_unicode(console.encoding) else to_ascii(text)


def digest(survey: Survey, width: int, *, all_rejected: bool = False) -> Iterator[Text | Table]:
    """Yield what the digest prints, with a table for terminals of `width` columns."""
    yield Text(summary(survey), style="bold")
    yield Text(f"at {time_text(survey.now)} UTC; all times are UTC")
    needed = concerns(survey)
    if needed:
        yield Text("\nNeeds attention", style="bold")
        for concern in needed:
            yield _concern(concern)
            yield from _under(concern)
        yield from _where_to_look(needed)
    known = acknowledged_concerns(survey)
    if known:
        yield Text("\nAcknowledged", style="bold")
        yield from (_concern(concern, is_quiet=True) for concern in known)
    if survey.series:
        yield Text("")
        yield series_table(survey, width)
        if any(band_cell(series).startswith("~") for series in survey.series):
            yield Text("\n~ a band learnt from the series' own history, provisional")
        if any(series.status.verdict == NO_BAND for series in survey.series):
            yield Text(
                f"\nno band: one is learnt from {ENOUGH_RUNS} runs, unless the bands file has one"
            )
    without = skipped(survey)
    if without:
        yield Text("\nNot measured", style="bold")
        yield from (_concern(concern) for concern in without)
    for epoch in dict.fromkeys(
        epoch_text(series.epoch)
        for series in survey.series
        if series.epoch and series.status.state is State.CALIBRATING and _is_cut(series)
    ):
        yield Text(f"\ncalibrating in the epoch {printable(epoch)}")
    if survey.superseded:
        yield Text("\nSuperseded, as their checks now run at another scale", style="bold")
        for label in survey.superseded:
            yield Text(f"  {printable(label)}")
    if survey.rejected:
        yield from _rejected(survey, all_rejected)


def _is_cut(series: Series) -> bool:
    """Tell whether there are samples of before the epoch, which do not compare."""
    epoch = series.epoch
    return epoch is not None and not epoch.continues and series.history.first < epoch.since


def _concern(concern: Concern, *, is_quiet: bool = False) -> Text:
    text = Text(f"  {printable(concern.who)}: ")
    text.append(concern.word, style="" if is_quiet else STYLES.get(concern.word, "bold"))
    shown = shorten(printable(concern.why), _LONGEST_REASON, placeholder=" …")
    return text.append(f"{concern.joint}{shown}" if shown else "")


def _where_to_look(needed: Sequence[Concern]) -> Iterator[Text]:
    told = next((each for each in needed if each.word in _EXPLAINED), None)
    if told:
        yield Text(f"  What moved with it, and where to look: iobands explain '{told.names[0]}'")


def _under(concern: Concern) -> Iterator[Text]:
    for line in concern.under[:_NAMED_UNDER]:
        yield Text(f"    {printable(line)}")
    hidden = len(concern.under) - _NAMED_UNDER
    if hidden > 0:
        yield Text(f"    and {hidden} more: iobands explain '{printable(concern.who)}'")


def _rejected(survey: Survey, all_rejected: bool) -> Iterator[Text]:
    yield Text(f"\nRejected: {plural(len(survey.rejected), 'line')}", style="bold")
    shown = survey.rejected if all_rejected else survey.rejected[:FIRST_REJECTED]
    for rejected in shown:
        yield Text(f"  {printable(str(rejected))}")
    hidden = len(survey.rejected) - len(shown)
    if hidden:
        yield Text(f"  and {hidden} more; --rejected lists all")


def is_unicode(encoding: str) -> bool:
    """Tell whether blocks and dashes can be written in `encoding`."""
    return encoding.lower().replace("-", "") in {"utf8", "utf16", "utf32"}


def to_ascii(text: str) -> str:
    """Return `text` in ASCII: blocks become the digits 1 to 8, and dashes hyphens."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")
