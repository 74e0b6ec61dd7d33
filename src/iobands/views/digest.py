"""The digest: what is known of a site as text for a terminal or a mail."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from statistics import median
from textwrap import wrap
from typing import Final

from rich.console import Console
from rich.text import Text

from iobands.bands import BELOW, COLLAPSED, NO_BAND
from iobands.model import OK, Leftover
from iobands.snapshot import ENOUGH_RUNS, Alert, Certainty, Series, Severity, Snapshot, State
from iobands.views.format import (
    acknowledgement_text,
    age_text,
    command_text,
    day_text,
    epoch_text,
    level_text,
    maintenance_text,
    plural,
    printable,
    ratio_text,
    size_text,
    summary,
    time_text,
    worst_member,
)
from iobands.views.related import WEIGHTED_PERCENT, sharing, uneven
from iobands.views.table import BLOCKS, STYLES, band_cell, series_table

#: The headings of alerts.
ATTENTION: Final = "Needs attention"
ACKNOWLEDGED: Final = "Acknowledged"
INFORMATION: Final = "For information"

#: How wide a mail is.
MAIL_WIDTH: Final = 80
#: How many alerts that need attention, other alerts and rejected lines are shown by default. The
#: alerts that need attention fit on a screen of 24 lines.
MOST_ATTENTION: Final = 16
MOST_OTHERS: Final = 4
#: Up to this many series, all are shown by default; of more, this many with news, the worst first.
MOST_SERIES: Final = 16
MOST_NEWS: Final = 8
_NO_NEWS: Final = (State.HEALTHY, State.CALIBRATING)
FIRST_REJECTED: Final = 5
FIRST_LEFT: Final = 3

_ASCII: Final = str.maketrans(
    {"–": "-", "−": "-", "…": "~", "×": "x"} | {b: str(i) for i, b in enumerate(BLOCKS, 1)}
)
# ReFrame's names contain every parameter, also those without a choice at the site.
_IDLE_PARAMETERS: Final = re.compile(r" %\w+=(null|default)\b")
# The case of runs with all files on one target.
_PINNED: Final = "target "
_LEAST_SUBJECT: Final = 20
_LEAST_REASON: Final = 40
_GAP: Final = "  "


def digest_text(
    site: Snapshot, console: Console, *, every: bool = False, rejected: bool = False
) -> str:
    """Return the digest as `console` can show it.

    `every` shows all alerts with their members, and all series; `rejected` all rejected lines. A
    long reason is cut on a terminal only, as the reader of a mail cannot ask for the rest.
    """
    with console.capture() as capture:
        cut = console.is_terminal and not every
        for part in digest(site, console.width, every=every, rejected=rejected, cut=cut):
            console.print(part, soft_wrap=True)
    first, *lines = (line.rstrip() for line in capture.get().splitlines())
    if not console.is_terminal:  # a monitor takes the first line as it is
        lines = [each for line in lines for each in _folded(line, console.width)]
    text = "\n".join([first, *lines]) + "\n"
    return text if is_unicode(console.encoding) else to_ascii(text)


def _folded(line: str, width: int) -> list[str]:
    """Return a line as lines of at most `width` columns, as far as its words allow.

    A line with a command stays whole: it is there to be pasted.
    """
    if len(line) <= width or "iobands " in line:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + len(_GAP))
    return wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def digest(
    site: Snapshot, width: int, *, every: bool, rejected: bool, cut: bool = False
) -> Iterator[Text]:
    """Yield the parts of the digest for a terminal of `width` columns; `cut` cuts long reasons."""
    yield Text(summary(site), style="bold")
    last = site.last_session
    newest = f"; newest session {age_text(site.now - last.began)}: {last.how}" if last else ""
    yield Text(f"at {time_text(site.now)}; all times are UTC{newest}")
    for heading, alerts in sections(site).items():
        if alerts:
            yield Text(f"\n{heading}", style="bold")
            most = MOST_ATTENTION if heading == ATTENTION else MOST_OTHERS
            yield from _alerts(alerts, None if every else most, site, width, cut=cut)
            change = next((alert for alert in alerts if not alert.reason), None)
            if heading == ATTENTION and change:
                yield Text(f"{_GAP}Next step: {command_text('explain', change.name)}")
    if site.series:
        yield Text("")
        yield from _series(site, width, every)
    if found := unevenly_placed(site):
        yield Text("\nUneven placement of files on storage targets", style="bold")
        yield from (Text(f"  {printable(where)}: {printable(text)}") for where, text in found)
    without = not_measured(site)
    if without:
        yield Text("\nNot measured", style="bold")
        yield from (Text(f"  {printable(': '.join(line))}") for line in without)
    for where, text in maintenance_lines(site):
        yield Text(f"\nMaintenance of {printable(where)}: {printable(text)}")
    if site.future:
        first, newest_ahead = site.future[0], site.future[-1]
        yield Text("\nSet aside: dated in the future by a wrong clock", style="bold")
        samples = plural(len(site.future), "sample")
        yield Text(
            f"  {samples}, the newest at {time_text(newest_ahead.when)}; to discard the first:"
        )
        options = f"--at {first.when:%Y-%m-%dT%H:%M:%SZ} --reason TEXT"
        yield Text(f"  {command_text('discard', first.label, options)}")
    if site.retired:
        yield Text("\nRetired: no samples are expected", style="bold")
        yield from (Text(f"  {printable(each.label)}") for each in site.retired)
    if site.superseded:
        yield Text("\nSuperseded: their checks now run at another scale", style="bold")
        yield from (Text(f"  {printable(label)}") for label in site.superseded)
    yield from _warnings(site.warnings, None if every else FIRST_LEFT)
    if site.leftovers:
        yield from _leftovers(site, None if every else FIRST_LEFT)
    if site.rejected:
        yield from _rejected(site, rejected)


def sections(site: Snapshot) -> dict[str, list[Alert]]:
    """Return the alerts by heading; those of `INFORMATION` do not change the exit status."""
    found: dict[str, list[Alert]] = {ATTENTION: [], ACKNOWLEDGED: [], INFORMATION: []}
    for alert in site.alerts:
        heading = INFORMATION if alert.exit_status == OK else ATTENTION
        found[ACKNOWLEDGED if alert.is_quiet else heading].append(alert)
    found[INFORMATION].sort(key=lambda alert: alert.severity is Severity.COLLAPSED)
    return found


def details(alert: Alert, site: Snapshot, *, short: bool = False) -> list[str]:
    """Return what the digest shows of an alert after severity and subject.

    Either its level, what to do, since when, how certain and who acknowledged it, or its reason.
    """
    if alert.acknowledgement and alert.is_quiet:
        action = alert.acknowledgement.action
        level, since, _ = finding(alert, site, short=True)
        ticket = f" ({action.ticket})" if action.ticket else ""
        who = action.owner or action.who
        who = f"{who}, {day_text(action.when, site.now)}: {action.reason}{ticket}"
        return [f"{level} {since}; {who}"]
    if alert.reason:
        return [alert.reason]
    level, *others = finding(alert, site, short=short)
    if alert.peer:
        level += ": confirm it" if alert.certainty is Certainty.POSSIBLE else ": drain it"
    return [level, *others, acknowledgement_text(alert)]


def finding(alert: Alert, site: Snapshot, *, short: bool = False) -> tuple[str, str, str]:
    """Return the level of an alert that has no reason, since when it holds, and how certain."""
    if alert.peer:
        level = f"{alert.peer.ratio.value:.2f} × the others"
    else:
        level = level_text(worst_member(alert), short=short)
    since = ""
    if alert.since:
        word = "on" if alert.severity is Severity.COLLAPSED else "since"
        since = f"{word} {day_text(alert.since, site.now)}"
    return level, since, alert.certainty.value if alert.certainty else ""


def subject(alert: Alert) -> str:
    """Return the number of an alert and what it is about.

    Parameters of a check that say nothing are left out.
    """
    about = _IDLE_PARAMETERS.sub("", alert.subject)
    return about if alert.number is None else f"{alert.number} {about}"


def counted_members(alert: Alert, site: Snapshot) -> str:
    """Return how many of the series with its subject an alert has, such as `2 of 4 series`.

    Empty for an alert of one series.
    """
    if alert.peer and alert.members:
        return f"with {len(alert.members)} series"
    if len(alert.members) < 2 or alert.reason:  # noqa: PLR2004
        return ""
    variables = {member.series.key.variable for member in alert.members}
    every = [each for each in sharing(site, alert)[1] if each.key.variable in variables]
    return f"{len(alert.members)} of {len(every)} series"


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


def _warnings(warnings: Sequence[str], most: int | None) -> Iterator[Text]:
    if warnings:
        yield Text("\nPublished bands that judge runs of any size", style="bold")
    yield from (Text(f"  {printable(each)}") for each in warnings[:most])
    if len(warnings[:most]) < len(warnings):
        yield Text(f"  and {len(warnings) - len(warnings[:most])} more: iobands status --all")


def _alerts(
    alerts: Sequence[Alert], most: int | None, site: Snapshot, width: int, *, cut: bool
) -> Iterator[Text]:
    shown = alerts[:most]
    names = [printable(subject(alert)) for alert in shown]
    numbers = [
        f" ({each})" if each else "" for each in (counted_members(alert, site) for alert in shown)
    ]
    first = max(len(alert.severity.value) for alert in shown)
    for short, counted in ((False, True), (True, True), (True, False)):
        rows = [details(alert, site, short=short) for alert in shown]
        room = width - first - 2 * len(_GAP) - _taken(rows)
        ends = numbers if counted else [""] * len(names)
        longest = max(len(name + end) for name, end in zip(names, ends, strict=True))
        if longest <= room:
            break
    second = min(longest, max(room, _LEAST_SUBJECT))
    columns = _widths(rows)
    is_cut = False
    for alert, name, end, row in zip(shown, names, ends, rows, strict=True):
        style = "" if alert.is_quiet else STYLES.get(alert.severity.value, "bold")
        line = Text(_GAP).append(f"{alert.severity.value:{first}}", style=style)
        line.append(f"{_GAP}{_squeezed(name, second - len(end)) + end:{second}}")
        if len(row) == 1:
            reason = printable(row[0])
            left = width - line.cell_len - len(_GAP)
            # the remedy is at the end, so the reason is not cut
            is_whole = not cut or (alert.severity is Severity.FAILED and not alert.since)
            is_cut |= len(reason) > left and not is_whole
            if is_whole:
                line = _wrapped(line, reason, width)
            else:
                line.append(f"{_GAP}{_cut(reason, left)}")
        else:
            for cell, column in zip(row, columns, strict=True):
                line.append(f"{_GAP}{printable(cell):{column}}" if column else "")
        line.rstrip()
        yield line
        if most is None and len(alert.members) > 1:
            yield from _members(alert)
    hidden = len(alerts) - len(shown)
    if hidden or is_cut:
        yield Text(f"{_GAP}{f'and {hidden} more' if hidden else 'In full'}: iobands status --all")


def _wrapped(line: Text, reason: str, width: int) -> Text:
    """Return a line with the whole reason after it, or below it if too little room is left."""
    left = width - line.cell_len - len(_GAP)
    indent = line.cell_len + len(_GAP) if left >= _LEAST_REASON else len(_GAP) * 3
    lines = wrap(reason, max(width - indent, _LEAST_REASON), break_on_hyphens=False)
    first = [line.append(f"{_GAP}{lines.pop(0)}")] if lines and left >= _LEAST_REASON else [line]
    return Text("\n").join([*first, *(Text(" " * indent + each) for each in lines)])


def _members(alert: Alert) -> Iterator[Text]:
    for member in alert.members:
        ratio = f": {ratio_text(member.ratio)}" if member.ratio else ""
        yield Text(f"{_GAP * 3}{printable(member.series.label)}{ratio}")


def _taken(rows: Sequence[Sequence[str]]) -> int:
    """Return how many columns all but severity and subject take, gaps included."""
    return sum(width + len(_GAP) for width in _widths(rows) if width)


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    longer = [row for row in rows if len(row) > 1]
    return [max(map(len, column)) for column in zip(*longer, strict=True)]


def _squeezed(name: str, width: int) -> str:
    """Return a name cut to `width` columns, with its last word, which is the variable."""
    if len(name) <= width:
        return name
    first, _, last = name.rpartition(" ")
    return f"{_cut(first, max(width - len(last) - 1, 2))} {last}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width, 2) - 1].rstrip()}…"


def _series(site: Snapshot, width: int, every: bool) -> Iterator[Text]:
    """Yield the table of the series; if there are more than `MOST_SERIES`, only those with news."""
    every = every or len(site.series) <= MOST_SERIES
    news = [each for each in site.series if each.status.state not in _NO_NEWS]
    news.sort(key=lambda each: [*State].index(each.status.state))
    shown = list(site.series) if every else news[:MOST_NEWS]
    if shown:
        yield series_table(site, shown, width)
    rest = [f"{len(news) - len(shown)} more with news"] if len(news) > len(shown) else []
    if healthy := len(site.series) - max(len(news), len(shown)):
        rest.append(f"{healthy} healthy or calibrating")
    if rest:
        yield Text(f"{' and '.join(rest)} series: iobands status --all")
    yield from _notes(shown)


def _notes(shown: Sequence[Series]) -> Iterator[Text]:
    if any(band_cell(series).startswith("~") for series in shown):
        yield Text("\n~ provisional band, learned from the series' own runs")
    if any(series.status.verdict == NO_BAND for series in shown):
        text = f"it is learned after {ENOUGH_RUNS} runs, unless the bands file has one"
        yield Text(f"\nno band: {text}")
    epochs = [
        epoch_text(series.epoch)
        for series in shown
        if series.epoch and series.status.state is State.CALIBRATING and _is_new(series)
    ]
    for epoch in dict.fromkeys(epochs):
        yield Text(f"\ncalibrating in the epoch {printable(epoch)}")


def maintenance_lines(site: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield where each maintenance is, and its last and next time."""
    for system, windows in site.maintenance.items():
        for window in windows:
            if any(site.now in span for span in window.spans(site.now)[-1:]):
                where = ", ".join(window.file_systems) or system
                text = maintenance_text(window, site.now)
                yield where, text


def _is_new(series: Series) -> bool:
    """Return whether there are samples from before the epoch, which cannot be compared."""
    epoch = series.epoch
    return epoch is not None and not epoch.continues and series.history.first < epoch.since


def _leftovers(site: Snapshot, most: int | None) -> Iterator[Text]:
    left = site.leftovers
    yield Text(f"\n{leftovers_heading(left)}", style="bold")
    for each in left[:most]:
        yield Text(f"  {printable(leftover_text(each))}")
    if len(left) > len(left[:most]):
        yield Text(f"  and {len(left) - len(left[:most])} more: iobands status --all")
    if not all(each.is_closed for each in left):
        yield Text("  Try again: iobands clean")


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


def _rejected(site: Snapshot, every: bool) -> Iterator[Text]:
    yield Text(f"\nRejected: {plural(site.rejected_lines, 'line')}", style="bold")
    shown = site.rejected if every else site.rejected[:FIRST_REJECTED]
    for rejected in shown:
        yield Text(f"  {printable(str(rejected))}")
    hidden = site.rejected_lines - sum(each.lines for each in shown)
    if hidden:
        yield Text(f"  and {hidden} more: iobands status --rejected")


def is_unicode(encoding: str) -> bool:
    """Return whether blocks and dashes can be written in `encoding`."""
    return encoding.lower().replace("-", "") in {"utf8", "utf16", "utf32"}


def to_ascii(text: str) -> str:
    """Return `text` in ASCII: blocks become the digits 1 to 8, and dashes hyphens."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")
