"""The texts of `iobands status` and `iobands explain`, for a terminal or a mail.

By default the digest fits a screen, whatever happened: alerts come first, then rates, then notes.
`--all` shows the rest. A monitoring plug-in gets one line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from rich.console import Console
from rich.text import Text

from iobands import snapshot
from iobands.snapshot import Alert, Series, SeriesKey, Snapshot, State, figure, printable
from iobands.views import alert_lines, writing
from iobands.views.alert_lines import ACKNOWLEDGED, ATTENTION, INFORMATION, sections
from iobands.views.explain_alert import of_alert
from iobands.views.explain_series import of_series
from iobands.views.notes import SHOW_ALL, remarks_of
from iobands.views.writing import GAP, MAIL_WIDTH, folded, summary, time_text

#: How many lines the digest has by default.
SCREEN: Final = 24
# Below this width nothing can be read, and a reason has no room behind its indent.
_NARROWEST: Final = 20
_MOST: Final = {ATTENTION: 8, ACKNOWLEDGED: 3, INFORMATION: 4}
#: How severities, at the beginning of a line, and states, at its end, are coloured.
_STYLES: Final = {
    "bold red": "degraded|incident|mode lost|sliding|unstable",
    "bold magenta": "no data|unfit|failed|flaky",
    "yellow": "watch|collapsed",
    "green": "healthy|improved",
}


@dataclass
class _Section:
    """A heading and rows of one or more lines; the first `shown` rows are shown.

    By default, that is up to `most` and at least `least`. `more` says, for a number of shown rows,
    how to see the others. A section without a shown row is one line.
    """

    heading: str
    rows: Sequence[Sequence[str]]
    more: Callable[[int], str]
    width: int
    most: int
    least: int = 1
    after: Sequence[str] = ()
    shown: int = 0

    def lines(self) -> list[str]:
        """Return an empty line, the heading, the shown rows, and how to see the others."""
        heading, more = self.heading, self.more(self.shown)
        if self.shown or not self.rows:
            rows = [line for row in self.rows[: self.shown] for line in row]
            rest = folded(more, self.width) if more else []
            said = folded(heading, self.width) if heading else []
            return ["", *said, *rows, *rest, *self.after]
        if heading and not any(map(str.isdigit, heading)):
            heading += f" ({len(self.rows)})"
        return folded(f"{heading}: {more}" if heading else more, self.width)


def digest_text(
    site: Snapshot, console: Console, *, every: bool = False, rejected: bool = False
) -> str:
    """Return the digest as `console` can show it, in lines of 80 columns or fewer.

    `every` shows all alerts with their members, and all rates; `rejected` all rejected lines. Only
    on a terminal are long reasons cut, as the reader of a mail cannot ask for the rest, and the
    first line folded, as a monitor needs it whole.
    """
    width, terminal = min(max(console.width, _NARROWEST), MAIL_WIDTH), console.is_terminal
    first, last = summary(site), site.last_session
    age = writing.age_text(site.now - last.began) if last else ""
    newest = f"; newest session {age}: {last.how}" if last else ""
    lines = folded(first, width) if terminal else [first]
    lines += folded(f"at {time_text(site.now)}; all times are UTC{newest}", width)
    if len(options := writing.view_options(site)) > width / 2:  # else each command has three lines
        lines += folded(f"Add to commands: {options}", width)
        site = replace(site, only=None, is_past=False)
    alerts = [*_alerts(site, width, every=every, cut=terminal and not every)]
    notes = [*_notes(site, width, every=every, rejected=rejected)]
    rows = _rows(site)
    for shown in (rows, [row for row in rows if row.has_news] or rows):
        table = _table(site, rows, shown, width)
        by_urgency = [*alerts[:1], *notes, *alerts[1:], table]
        if every or rejected or _fit(by_urgency, SCREEN - len(lines)):
            break
    found = (*alerts, *[table] * bool(rows), *notes)
    ordered = sorted(found, key=lambda each: bool(each.rows) and not each.shown)
    lines += [line for each in ordered for line in each.lines()]
    text = "\n".join(lines) + "\n"
    if terminal:
        with console.capture() as capture:
            console.print(Text("\n").join(_styled(lines)), soft_wrap=True)
        text = capture.get()
    return text.encode(console.encoding, snapshot.PLAIN).decode(console.encoding)


def _fit(sections: Sequence[_Section], room: int) -> bool:
    """Set `shown` of each section to fit `room` lines; return whether the last one is complete."""
    for each in sections:
        each.shown = min(each.least, len(each.rows))
    for each in sections:
        while each.shown < min(each.most, len(each.rows)):
            each.shown += 1
            if sum(len(other.lines()) for other in sections) > room:
                each.shown -= 1
                break
    return sections[-1].shown == len(sections[-1].rows)


def _alerts(site: Snapshot, width: int, *, every: bool, cut: bool) -> Iterator[_Section]:
    for heading, alerts in sections(site).items():
        if not alerts:
            continue
        said = alerts if every else _merged(alerts)
        rows, is_cut = alert_lines.alert_blocks(said, site, width, cut=cut, members=every)
        is_cut |= len(said) < len(alerts)
        change = next((alert for alert in alerts if not alert.reason), None)
        after = []
        if heading == ATTENTION and change:
            command = alert_lines.command_on(change, site, "explain")
            after = folded(f"{GAP}Next step: {command}", width)
        more = partial(_more, len(rows), _rest(site), is_cut=is_cut)
        least = 0 if heading == INFORMATION else 1
        yield _Section(heading, rows, more, width, _MOST[heading], least, after, len(rows))


def _merged(alerts: Sequence[Alert]) -> list[Alert]:
    """Return `alerts`, with checks that failed alike in one phase merged into one."""
    found: defaultdict[object, list[Alert]] = defaultdict(list)
    for each in alerts:
        is_check = each.severity is snapshot.Severity.FAILED and each.since
        found[(each.system, each.failure) if is_check else id(each)].append(each)
    return [
        replace(first, subject=writing.some([first.subject, *(e.subject for e in others)], 1))
        for first, *others in found.values()
    ]


def _notes(site: Snapshot, width: int, *, every: bool, rejected: bool) -> Iterator[_Section]:
    for note in remarks_of(site, rejected=rejected):
        rows = [folded(f"{GAP}{printable(line)}", width) for line in note.lines]
        after = [part for line in note.after for part in folded(f"{GAP}{line}", width)]
        more = partial(_more, note.number or len(rows), _rest(site, note.rest))
        number = len(rows) if every and note.rest == SHOW_ALL else note.most
        if rows:
            yield _Section(note.heading, rows, more, width, number, 0, after, number)


def _rest(site: Snapshot, command: str = SHOW_ALL) -> str:
    """Return the command that shows the rest, for the same systems and time."""
    return f"{command} {writing.view_options(site)}".rstrip()


def _more(number: int, rest: str, shown: int, *, is_cut: bool = False) -> str:
    """Return how to see the rest of `number` rows; empty if all are shown in full."""
    if not shown:
        return rest
    if shown < number:
        return f"{GAP}and {number - shown} more: {rest}"
    return f"{GAP}In full: {rest}" if is_cut else ""


def _styled(lines: Sequence[str]) -> Iterator[Text]:
    heading, before = "", ""
    for line in lines:
        text = Text(line)
        if not before:  # a heading: the first line, and each line after an empty one
            heading = line
            text.stylize("bold")
        elif heading != ACKNOWLEDGED:
            for style, words in _STYLES.items():
                text.highlight_regex(rf"^  ({words})(?=  )|(?<=  )({words})$", style)
        yield text
        before = line


_HEADINGS: Final = ("CHECK", "WRITE", "", "READ", "", "STATE")
_STATES: Final = [*State]
_OF_READS: Final = {"read", "stat", "list", "scan"}
_SIDES: Final = ("write", "read")
_ENDS: Final = ("lower", "upper")


@dataclass(frozen=True)
class _Row:
    """The row of a check at one scale; the cells are the name, write, read and state.

    `worst` is its series in the worst state; if both are in it, the one further below its band.
    """

    worst: Series
    cells: tuple[str, ...]

    @property
    def has_news(self) -> bool:
        """Whether one of its series is neither healthy nor calibrating."""
        return self.worst.status.state not in (State.HEALTHY, State.CALIBRATING)


def _badness(series: Series) -> tuple[int, float]:
    return _STATES.index(series.status.state), _of_usual(series) or 1.0


def _rows(site: Snapshot) -> list[_Row]:
    """Return all series of a site as rows, the worst first."""
    quiet = {key for alert in site.alerts if alert.is_quiet for key in alert.keys}
    known = {series.key: series for series in site.series}
    ends = {end.key for series in site.series for end in _interval(series, known)}
    found: dict[tuple[SeriesKey, str], list[Series | None]] = {}
    for series in site.series:
        if series.key in ends:
            continue
        words = series.key.variable.split("_")
        side = next((each for each in _SIDES if each in words), "")
        name = "_".join(word for word in words if word != side)
        # a rate such as files created per second has no counterpart of the other side
        name = series.key.variable if name == "rate" or not side else name.removeprefix("bw")
        check = replace(series.key, variable="")
        sides = found.setdefault((check, name.strip("_")), [None, None])
        sides[bool(_OF_READS & {*words})] = series
    rows = []
    for (_, name), sides in found.items():
        lead, worst = next(filter(None, sides)), min(filter(None, sides), key=_badness)
        label = lead.label.removesuffix(lead.key.variable) + name
        rates = (text for each in sides for text in _cells(each, known))
        state = writing.state_text(worst.status, worst.key in quiet)
        rows.append(_Row(worst, (printable(writing.cut(label.strip())), *rates, state)))
    return sorted(rows, key=lambda row: _badness(row.worst))


def _table(site: Snapshot, rows: Sequence[_Row], some: Sequence[_Row], width: int) -> _Section:
    """Return the table with `some` of all `rows`, and a count of the others."""
    cells = [_HEADINGS, *(row.cells for row in some)]
    heading, *found = writing.blocks(cells, width, right=(1, 2, 3, 4), indent="")
    news = sum(row.has_news for row in rows)

    def more(shown: int) -> str:
        left = news - sum(row.has_news for row in some[:shown])
        quiet = len(rows) - shown - left
        parts = [f"{writing.plural(left, 'more check')} with news"] if left else []
        noun = "" if left else " check" if quiet == 1 else " checks"
        parts += [f"{quiet}{noun} healthy or calibrating"] if quiet else []
        return f"{', '.join(parts)}: {_rest(site)}" if parts else ""

    number = len(found)
    # on a narrow terminal, rates are below the names, and their headings too
    first, least = GAP.join(map(str.strip, heading)) if some else "", min(2, number)
    return _Section(first, found, more, width, number, least, shown=number)


def _cells(series: Series | None, known: dict[SeriesKey, Series]) -> tuple[str, str]:
    """Return the newest value, and its difference from the median of its band in percent."""
    if series is None or series.status.value is None:
        return "-", ""
    if series.status.missing:  # also of a series that has degraded, whose state stays so
        return "no data", ""
    usual, value = _of_usual(series), figure(series.status.value)
    if ends := _interval(series, known):
        value += f" [{', '.join(figure(end.status.value or 0) for end in ends)}]"
    unit = "" if series.key.unit == snapshot.RATIO_UNIT else f" {series.key.unit}"
    return f"{value}{unit}", "" if usual is None else writing.percent(usual)


def _of_usual(series: Series) -> float | None:
    band, value = series.status.band, series.status.value
    return value / band.median if band and value is not None else None


def _interval(series: Series, known: dict[SeriesKey, Series]) -> Sequence[Series]:
    """Return the two series with the ends of a ratio's interval, if of the same run and state."""
    if series.key.unit != snapshot.RATIO_UNIT:
        return ()
    keys = [replace(series.key, variable=f"{series.key.variable}_{end}") for end in _ENDS]
    ends = [known[key] for key in keys if key in known]
    run = (series.status.when, series.status.state)
    return ends if [(end.status.when, end.status.state) for end in ends] == [run, run] else ()


def plugin_line(site: Snapshot) -> str:
    """Return the summary and, behind a vertical bar, the newest rates as performance data."""
    unread = [str(each) for each in site.rejected if each.is_unread][:1]
    text = printable("; ".join([summary(site), *unread])).replace("|", "/")
    return " | ".join(filter(None, (text, " ".join(performance(site)))))


def performance(site: Snapshot) -> list[str]:
    """Return the newest rate of each series as performance data, with its floor as critical range.

    The format of Nagios and Icinga is `'label'=value;warning;critical;minimum`. A series whose
    samples are missing is left out, as Icinga warns of the value U, though the format allows it.
    """
    found = []
    for each in site.series:
        # a label must not contain = or |, and a quote in it is doubled
        label = printable(each.label).replace("=", " ").replace("|", "/").replace("'", "''")
        critical = f"{each.status.band.floor:.6g}:" if each.status.band else ""
        if each.status.value is not None and not each.status.missing:
            found.append(f"'{label}'={each.status.value:.6g};;{critical};0")
    return found


def chosen(site: Snapshot, wanted: str) -> list[Alert | Series]:
    """Return the alert or series named `wanted`, else those whose names contain all its words.

    If there is none, return the series whose fields have all words as values.
    """
    numbered = [each for each in (*site.alerts, *site.past) if each.number and wanted == each.name]
    if numbered or wanted.isdecimal():  # a number such as 7 is never matched as part of a name
        return [*numbered]
    alerts = {
        (each.subject, each.system): each
        for each in reversed(site.alerts)
        if len(each.members) != 1 or each.peer
    }
    series = {name: each for each in site.series for name in (each.name, each.label)}
    if exact := [each for (name, _), each in alerts.items() if name == wanted]:
        return [*exact]
    if wanted in series:
        return [series[wanted]]
    words = {*wanted.casefold().split()}
    named: list[Alert | Series] = [*alerts.values(), *site.series] if words else []
    names = [(name_of(each, site).casefold(), each) for each in named]
    found = [each for name, each in names if all(word in name for word in words)]
    return found or [
        each
        for each in site.series
        if words and words <= {str(value).casefold() for value in each.key.fields().values()}
    ]


def name_of(found: Alert | Series, site: Snapshot) -> str:
    """Return the title of an alert, or the label of a series."""
    return alert_lines.title(found, site) if isinstance(found, Alert) else found.label


def explanation(
    site: Snapshot,
    found: Alert | Series,
    width: int = MAIL_WIDTH,
    *,
    every: bool = False,
    runs: int = 0,
) -> str:
    """Return an explanation as text; for a series, `runs` is how many runs its table has.

    `every` names all series, not only a few.
    """
    if isinstance(found, Alert):
        return writing.fitted(of_alert(site, found, every=every), width)
    return writing.fitted(of_series(site, found, every=every, runs=runs), width)
