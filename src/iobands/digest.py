"""The digest: a site's survey as text for a terminal or a cron mail, or as JSON.

May know: surveys and how they are worded; nothing of files or of the command line.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text
from sparklines import sparklines

from iobands.states import State
from iobands.survey import Finding, Series, Survey
from iobands.words import band_text, figure, plural, printable, summary, time_text

#: How many values a sparkline shows, and how many rejected lines are named without being asked.
RECENT: Final = 20
FIRST_REJECTED: Final = 5
#: What a mail is laid out for.
MAIL_WIDTH: Final = 100

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_ASCII: Final = str.maketrans({"–": "-", "…": "~"} | {b: str(i) for i, b in enumerate(_BLOCKS, 1)})
_STYLES: Final = {
    "healthy": "green",
    "improved": "green",
    "watch": "yellow",
    "degraded": "bold red",
    "no data": "bold magenta",
    "collapsed": "bold red",
    "below": "yellow",
}
_ATTENTION: Final = (State.DEGRADED, State.NO_DATA, State.WATCH, State.IMPROVED)
_THIS_YEAR_DAYS: Final = 300
_FIXED_WIDTH: Final = 76  # of all columns of the table but the label and the trend


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
    attention = [*_attention(survey)]
    if attention:
        yield Text("\nNeeds attention", style="bold")
        yield from attention
    if survey.series:
        yield Text("")
        yield _table(survey, width)
        if any(series.status.provisional for series in survey.series):
            yield Text("\n~ a band learnt from the series' own history, provisional")
    if survey.superseded:
        yield Text("\nSuperseded, as their checks now run at another scale", style="bold")
        for label in survey.superseded:
            yield Text(f"  {printable(label)}")
    if survey.rejected:
        yield from _rejected(survey, all_rejected)


def _attention(survey: Survey) -> Iterator[Text]:
    for state in _ATTENTION:
        for series in survey.series:
            if series.status.state is state:
                yield _item(series.label, state.value, series.status.why)
    for series in survey.series:
        status = series.status
        if status.verdict == "collapsed" and status.value is not None and status.band:
            why = (
                f"{figure(status.value)} {series.key.unit} is under the floor of "
                f"{figure(status.band.floor)} {series.key.unit}"
            )
            yield _item(series.label, "collapsed", why)
    for finding in survey.findings:
        yield _item(finding.name, "failed", _finding(finding))


def _finding(finding: Finding) -> str:
    where = f"{finding.system}:{finding.partition}"
    return f"on {where} in {finding.phase}, {time_text(finding.when)}: {finding.reason}"


def _item(what: str, state: str, why: str) -> Text:
    text = Text(f"  {printable(what)}: ")
    text.append(state, style=_STYLES.get(state, "bold"))
    return text.append(f": {printable(why)}" if why else "")


def _rejected(survey: Survey, all_rejected: bool) -> Iterator[Text]:
    yield Text(f"\nRejected: {plural(len(survey.rejected), 'line')}", style="bold")
    shown = survey.rejected if all_rejected else survey.rejected[:FIRST_REJECTED]
    for rejected in shown:
        yield Text(f"  {printable(str(rejected))}")
    hidden = len(survey.rejected) - len(shown)
    if hidden:
        yield Text(f"  and {hidden} more; --rejected lists all")


def _table(survey: Survey, width: int) -> Table:
    longest = max(len(series.label) for series in survey.series)
    trend = max(RECENT // 2, min(RECENT, width - _FIXED_WIDTH - longest))
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("SERIES", overflow="fold")
    table.add_column("NEWEST", justify="right", no_wrap=True)
    for heading in ("VERDICT", "BAND"):
        table.add_column(heading, no_wrap=True)
    table.add_column("RUNS", justify="right", no_wrap=True)
    for heading in ("TREND", "STATE", "WHEN"):
        table.add_column(heading, no_wrap=True)
    for series in survey.series:
        table.add_row(*_row(series, survey.now, trend))
    return table


def _row(series: Series, now: datetime, trend: int) -> Iterator[Text]:
    status = series.status
    yield Text(printable(series.label))
    yield Text("-" if status.value is None else f"{figure(status.value)} {series.key.unit}")
    yield Text(status.verdict, style=_STYLES.get(status.verdict, ""))
    yield Text(_band(series))
    yield Text(str(status.runs))
    yield Text(sparkline(series.samples["perf_value"].tolist()[-trend:]))
    yield Text(status.state.value, style=_STYLES.get(status.state.value, ""))
    yield Text(_when(status.when, now))


def _band(series: Series) -> str:
    status = series.status
    if status.band:
        return band_text(status.band, status.provisional)
    return status.why if status.state is State.CALIBRATING else "-"


def _when(when: datetime | None, now: datetime) -> str:
    if when is None:
        return "never"
    recent = abs((now - when).days) < _THIS_YEAR_DAYS
    return f"{when:%m-%d %H:%M}" if recent else f"{when:%Y-%m-%d}"


def sparkline(values: list[float]) -> str:
    """Return a character a value, from the lowest to the highest block."""
    return str(sparklines(values)[0]) if values else ""


def is_unicode(encoding: str) -> bool:
    """Tell whether blocks and dashes can be written in `encoding`."""
    return encoding.lower().replace("-", "") in {"utf8", "utf16", "utf32"}


def to_ascii(text: str) -> str:
    """Return `text` in ASCII: blocks become the digits 1 to 8, and dashes hyphens."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def as_json(survey: Survey) -> dict[str, object]:
    """Return the survey as plain data; values are in the unit beside them, times ISO 8601."""
    return {
        "schema": "iobands-status/1",
        "status": survey.exit_status,
        "summary": summary(survey),
        "time": survey.now.isoformat(),
        "series": [_series_as_json(series) for series in survey.series],
        "superseded": list(survey.superseded),
        "findings": [
            {**vars(finding), "when": finding.when.isoformat()} for finding in survey.findings
        ],
        "rejected": [
            {"path": str(item.path), "line": item.line, "reason": item.reason}
            for item in survey.rejected
        ],
    }


def _series_as_json(series: Series) -> dict[str, object]:
    status, band = series.status, series.status.band
    return {
        "label": series.label,
        **series.key.fields(),
        "state": status.state.value,
        "why": status.why,
        "value": status.value,
        "unit": series.key.unit,
        "when": status.when.isoformat() if status.when else None,
        "verdict": status.verdict,
        "runs": status.runs,
        "band": band
        and {
            "lower_quartile": band.lower_quartile,
            "median": band.median,
            "upper_quartile": band.upper_quartile,
            "maximum": band.maximum,
            "floor": band.floor,
            "runs": band.runs,
            "epoch": band.epoch or None,
            "source": band.source,
            "provisional": status.provisional,
        },
    }
