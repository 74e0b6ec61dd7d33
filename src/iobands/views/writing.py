"""Formats numbers, times, names, lines and documents for all views.

Lines are folded to the width of a terminal: words stay whole, columns stay aligned, and commands
can be pasted. A document consists of headings, texts, commands and tables.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
import shlex
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from difflib import get_close_matches
from functools import cache
from itertools import zip_longest
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from iobands import snapshot
from iobands.snapshot import Alert, Cause, Member, Series, Snapshot, State, figure, printable

if TYPE_CHECKING:
    from jinja2 import Environment

#: The width of mails, and of output to a pipe or a file, in columns.
MAIL_WIDTH: Final = 80
GAP: Final = "  "
#: The names of the exit statuses 0 to 3.
WORDS: Final = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
# Days nearer than this are written without their year.
_THIS_YEAR: Final = timedelta(days=300)
# A repeat that has been due for this long was not made.
_LATE: Final = timedelta(hours=2)
_MOST_NAMES: Final = 30
_MOST_NAME: Final = 240  # characters
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]{1,60}", re.ASCII)
#: How many series a list names before it says `and N more`.
FEW_NAMES: Final = 6


def size_text(size: int) -> str:
    """Return a number of bytes in GiB, or in MiB below 1 GiB."""
    gib = size / 2**30
    return f"{figure(gib)} GiB" if gib >= 1 else f"{figure(size / 2**20)} MiB"


def percent(ratio: float) -> str:
    """Return a ratio of levels as a change, such as `−29 %` for 0.71."""
    share = share_text(abs(ratio - 1))
    return f"{'−' if ratio < 1 and share != '0 %' else '+'}{share}"


def share_text(share: float) -> str:
    """Return a share in percent, with one decimal below 1 % and between 99 % and 100 %.

    A share below 1 is never rounded up to 100 %.
    """
    of_100 = 100 * share
    if 1 <= of_100 <= 99 or of_100 >= 100:  # noqa: PLR2004
        return f"{of_100:.0f} %"
    return f"{min(round(of_100, 1), 99.9):g} %"


def change_text(change: snapshot.Change[datetime], ratio: snapshot.Ratio) -> str:
    """Return a change of level in percent, such as `−29 %`, or the kind of any other change."""
    return percent(ratio.value) if change.is_of_level else change.kind.value


def ratio_text(ratio: snapshot.Ratio) -> str:
    """Return a ratio, with its 95 % interval if known."""
    if not math.isfinite(ratio.value):
        return "not known yet"
    known = 0 < ratio.low < ratio.high < math.inf
    interval = f" ({times(ratio.low)}–{times(ratio.high)})" if known else ""
    return f"{times(ratio.value)} ×{interval}"


def times(ratio: float) -> str:
    """Return a ratio with two decimals, or with three significant digits outside 0.1 to 10."""
    return f"{ratio:.2f}" if 0.1 <= ratio < 10 else figure(ratio)  # noqa: PLR2004


def level_text(member: Member, *, short: bool = False, is_over: bool = False) -> str:
    """Return the level of a member now and before, such as `2.7 GiB/s, was 17.6 (−85 %)`.

    `short` leaves out the level before. For an alert that `is_over`, today's status does not count.
    """
    ratio, baseline, unit = member.ratio, member.baseline, member.unit
    known = None if is_over else member.series.status.change
    if known and known.kind is State.UNSTABLE:
        now, was = ("–".join(map(figure, each)) for each in (known.now, known.was))
        return f"{now} {unit}, was {was}"
    if known and known.kind is State.MODE_LOST:
        return f"{figure(known.level)} {unit}, no longer {figure(known.was[1])}"
    if ratio is None or baseline is None or not math.isfinite(ratio.value):
        value = None if is_over else member.series.status.value
        return "" if value is None else f"{figure(value)} {unit}"
    was = "" if short else f", was {figure(baseline)}"
    return f"{figure(baseline * ratio.value)} {unit}{was} ({percent(ratio.value)})"


def worst_member(alert: Alert) -> Member:
    """Return the member with the largest change in the direction of the alert."""
    known = [each for each in alert.members if each.ratio and math.isfinite(each.ratio.value)]
    furthest = max if alert.severity is snapshot.Severity.IMPROVED else min
    return furthest(known or alert.members[:1], key=snapshot.ratio_of)


def odds_text(cause: Cause, now: datetime) -> str:
    """Return a cause, its date and its odds."""
    odds = f"{figure(cause.odds)} to 1" if cause.odds >= 1 else f"1 to {figure(1 / cause.odds)}"
    return f"{cause_since(cause, now)} (odds {odds})"


def cause_since(cause: Cause, now: datetime, *, short: bool = False) -> str:
    """Return a cause with its date: `transport tcp since 13 Nov, was ucx`.

    `short` leaves out the total number of targets.
    """
    what, was, before = cause.what.partition(", was ")
    if short and cause.kind is snapshot.CauseKind.TARGET_OUT:
        what = what.partition(" (")[0]
    return f"{what} since {day_text(cause.since, now)}{was}{before}"


def time_text(when: datetime) -> str:
    """Return `when`, which is in UTC, to the minute: `4 Aug 2026 03:34`."""
    return f"{_date_text(when)} {when:%H:%M}"


def _date_text(when: datetime) -> str:
    return f"{when.day} {when:%b %Y}"


def due_text(ask: snapshot.Ask, now: datetime) -> str:
    """Return when something is measured again: `within the hour`, `08:00`, `22 Nov 08:00`.

    If that time passed hours ago, nothing measured it: `due since 08:00`.
    """
    if ask.due is None or (ask.is_due(now) and now - ask.due < _LATE):
        return "within the hour"
    day = "" if ask.due.date() == now.date() else f"{day_text(ask.due, now)} "
    return f"{'due since ' if ask.is_due(now) else ''}{day}{ask.due:%H:%M}"


def asked_text(site: Snapshot, ask: snapshot.Ask) -> str:
    """Return what is measured again: series, or a file system with a target or node."""
    if names := [each.label for each in site.series if each.name in ask.series]:
        return some(names, 1)
    pinned = {snapshot.TARGET: ask.target, snapshot.NODE: ask.node}
    return " on ".join([ask.file_system or "a run", *(f"{k} {v}" for k, v in pinned.items() if v)])


def day_text(when: datetime, now: datetime) -> str:
    """Return the day of `when`, with the year if it is far from `now`: `4 Aug`, `4 Aug 2017`."""
    return f"{when.day} {when:%b}" if abs(now - when) < _THIS_YEAR else _date_text(when)


def between_text(low: datetime, high: datetime, now: datetime) -> str:
    """Return `between DAY and DAY`, or `on DAY` if both are the same."""
    first, last = day_text(low, now), day_text(high, now)
    return f"on {first}" if first == last else f"between {first} and {last}"


def age_text(age: timedelta) -> str:
    """Return how long ago, in minutes, hours or days, or `just now`."""
    if age < -snapshot.CLOCK_OFF:
        return "dated in the future"
    minutes, hours = (round(age / timedelta(**{unit: 1})) for unit in ("minutes", "hours"))
    if minutes < 1:
        return "just now"
    if minutes < 60:  # noqa: PLR2004
        return f"{plural(minutes, 'minute')} ago"
    return f"{plural(hours, 'hour')} ago" if hours < 48 else f"{max(age.days, 2)} days ago"  # noqa: PLR2004


def plural(count: int, noun: str) -> str:
    """Return `count` with its noun; `series` stays as it is."""
    return f"{count} {noun}" if count == 1 or noun.endswith("s") else f"{count} {noun}s"


def listed(words: Sequence[str]) -> str:
    """Return `words` as a list in a sentence."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def some(names: Sequence[str], most: int = FEW_NAMES) -> str:
    """Return the first `most` names, and how many more there are."""
    hidden = len(names) - most
    return ", ".join(names[:most]) + (f" and {hidden} more" if hidden > 0 else "")


def nearest(names: Sequence[str], wanted: str, most: int = _MOST_NAMES) -> str:
    """Return a line for each of `names`; of more than `most`, those most similar to `wanted`."""
    shown = get_close_matches(wanted, names, most, cutoff=0) if len(names) > most else names
    more = len(names) - len(shown)
    rest = [f"and {more} more; `iobands status --all` lists every series"] if more else []
    return "".join(f"\n  {line}" for line in (*shown, *rest))


def command_text(command: str, name: str, *options: str) -> str:
    """Return a command about a series or an alert, quoted so that it can be pasted in a shell."""
    quoted = shlex.quote(printable(name))
    words = [*options, "--", quoted] if quoted.startswith(("-", "'-")) else [quoted, *options]
    return " ".join(filter(None, ["iobands", command, *words]))


def at_system(said: str, system: str, site: Snapshot) -> str:
    """Return `said`, cut if long, and its system, if the site has several and it names none."""
    name = cut(said)
    if len(site.systems) < 2 or not system:  # noqa: PLR2004
        return name
    is_named = re.search(rf"\b(system=|on |maintenance of ){re.escape(system)}(?![^\s:])", said)
    return name if is_named else f"{name} system={system}"


def cut(text: str, most: int = _MOST_NAME) -> str:
    """Return a text without its middle if it is long; a name may have thousands of characters."""
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]}"


def page_name(system: str) -> str:
    """Return what stands for a system in the name of a page: itself, or its hash if it is odd."""
    if _PLAIN.fullmatch(system):
        return system
    # ReFrame has no such names, but a directory may; in an address, `#` or `%2e` mean something
    return hashlib.sha256(system.encode("utf-8", "replace")).hexdigest()[:10]


def view_options(site: Snapshot) -> str:
    """Return the options with which another command shows the same systems at the same time."""
    system = f"--system {shlex.quote(site.only)}" if site.only else ""
    # a date alone is the last second of its day
    when = f"--as-of {site.now:%Y-%m-%dT%H:%M:%SZ}".removesuffix("T23:59:59Z")
    return " ".join(filter(None, (system, when if site.is_past else "")))


def state_text(status: snapshot.Status, is_quiet: bool) -> str:
    """Return the state, with `(ack)`, or with why a healthy series' newest sample is not judged."""
    if is_quiet:
        return f"{status.state.value} (ack)"
    if status.left_out and status.state is State.HEALTHY:
        return f"{status.state.value} ({status.left_out.partition(':')[0]})"
    return status.state.value


def band_text(band: snapshot.Band) -> str:
    """Return the quartiles of a band, lower, median, upper; `~` marks a provisional one."""
    quartiles = (band.lower_quartile, band.median, band.upper_quartile)
    is_young = band.is_own or band.state == snapshot.PROVISIONAL
    return ("~" if is_young else "") + "–".join(map(figure, quartiles))


def epoch_text(epoch: snapshot.Epoch) -> str:
    """Return the name of an epoch, when it began and why."""
    since = time_text(epoch.since.astimezone(timezone.utc))
    return ": ".join(filter(None, [f"{epoch.name}, since {since}", epoch.reason or epoch.source]))


def maintenance_text(window: snapshot.Window, now: datetime) -> str:
    """Return the newest and the next occurrence of a window, and why; empty without either."""
    last, following = window.spans(now)[-1:], window.following(now)
    spans = [("now, " if now in span else "", span) for span in last]
    spans += [("next ", following)] if following else []
    texts = [f"{word}{time_text(span.begin)} to {time_text(span.end)}" for word, span in spans]
    return f"{'; '.join(texts)}: {window.reason}" if texts else ""


def action_text(action: snapshot.Action, *, dated: bool = True) -> str:
    """Return what was done, when, by whom and why; the day only if `dated`."""
    span = ""
    if action.kind == snapshot.RESOLVE and action.since and action.until:
        span = f" (runs of {_date_text(action.since)} to {_date_text(action.until)} do not count)"
    if action.kind == snapshot.DISCARD and action.since:
        span = f" (of {time_text(action.since)})"
    if action.kind == snapshot.REBASELINE and action.since:
        span = f" (from {_date_text(action.since)} on)"
    when = time_text(action.when) if dated else f"at {action.when:%H:%M}"
    done = "undone" if action.kind == snapshot.UNDO else f"{action.kind.removesuffix('e')}ed"
    by = f" by {action.who}: {action.reason}" if action.who or action.reason else ""  # hidden
    return f"{done} {when}{by}{span}"


def acknowledgement_text(alert: Alert) -> str:
    """Return who acknowledged an alert, why, and whether it became worse; may be empty."""
    if alert.acknowledgement is None:
        return ""
    action = alert.acknowledgement.action
    worse = alert.worse_since(action.when)
    after = f"worse on {_date_text(worse.when)}, after it was " if worse else ""
    return f"{after}{action_text(action)}"


def summary(site: Snapshot) -> str:
    """Return the state of the site in one line, as monitoring plug-ins print it."""
    parts = [*(["made up, nothing was measured"] if site.is_made_up else []), counts(site)]
    if runs := [series.status.when for series in site.series if series.status.when]:
        parts.append(f"newest run {age_text(site.now - max(runs))}")
    if left := sum(not each.is_closed for each in site.leftovers):
        parts.append(f"{left} left behind")
    if site.rejected:
        parts.append(f"{plural(site.rejected_lines, 'line')} rejected")
    return f"IOBANDS {WORDS[site.exit_status]}: {'; '.join(parts)}"


# The states of series that `counts` gives; the alerts show most of the others.
_COUNTED: Final = {*State} - {State.NO_DATA, State.WATCH, State.IMPROVED, State.HEALTHY}


def counts(site: Snapshot) -> str:
    """Return the number of alerts of each severity, and of series in each state of `_COUNTED`."""
    found = Counter((each.severity, each.is_quiet) for each in site.alerts)
    alerts = [
        f"{found[severity, quiet]} {severity.value}{' (acknowledged)' if quiet else ''}"
        for severity in snapshot.Severity
        for quiet in (False, True)
        if found[severity, quiet] and severity is not snapshot.Severity.COLLAPSED  # needs no action
    ]
    said = [f"alerts: {', '.join(alerts)}"] if alerts else []
    if not site.series:
        nothing = "no samples" if said and not site.retired else no_samples(site)
        return "; ".join([*said, nothing])
    quiet, number, states = "no alerts", plural(len(site.series), "series"), site.counts()
    if states.get(State.CALIBRATING) == len(site.series):
        left = min(map(runs_left, site.series))
        quiet = f"calibrating: at least {'one more run' if left == 1 else f'{left} more runs'}"
    elif shown := [(count, state.value) for state, count in states.items() if state in _COUNTED]:
        (first, worst), *others = shown
        number = ", ".join([f"{first} of {number} {worst}", *(f"{n} {name}" for n, name in others)])
    return "; ".join([*(said or [quiet]), number])


def no_samples(site: Snapshot) -> str:
    """Return what to say of a site without samples, with the command that helps."""
    if site.retired:
        return f"nothing to judge: {plural(len(site.retired), 'series')} retired"
    return f"no samples; {'see: iobands status' if site.alerts else 'measure with: iobands run'}"


def runs_left(series: Series) -> int:
    """Return how many more runs a series needs until a run is judged: it takes 20 earlier ones."""
    history, status = series.history, series.status
    is_usable = bool(len(history)) and history.passed[-1] and not history.asked[-1]
    newest = int(is_usable and not status.left_out)
    return max(1, snapshot.ENOUGH_RUNS + 1 - status.usable - newest)


_BLOCKS: Final = "▁▂▃▄▅▆▇█"  # the middle one is for values that are all equal


def sparkline(values: list[float]) -> str:
    """Return a character for each value, from the lowest to the highest block."""
    least, most = (min(values), max(values)) if values else (0.0, 0.0)
    if least == most:
        return _BLOCKS[3] * len(values)
    steps = ((len(_BLOCKS) - 1) * (each - least) / (most - least) for each in values)
    return "".join(_BLOCKS[round(1 + step) - 1] for step in steps)


_NARROW: Final = 76
# Text is never wrapped to fewer columns than this.
_LEAST: Final = 12
# The further lines of a folded line are indented by this: a heading and two blanks, or 8 blanks.
_HEADED: Final = re.compile(r" *(?:\S+ )*\S+ {2,}(?=\S)| {8,}")
# A command at the end of a line, but no sentence such as `reframe is not on PATH`.
_COMMAND: Final = re.compile(r"(|.*?: |\s*)((?:iobands(?! run has)|reframe(?= -)) .+)")
_UNIT: Final = re.compile(r"(?<=\d) (?=[×%]|[KMGT]iB|1/s|[A-Z][a-z]{2}\b)|(?<=×) (?=\()")
_PATH: Final = re.compile(r"/\S*/")
_HEADED_PATH: Final = re.compile(r"^\S+( +)(?=/\S*/)")
_NO_BREAK: Final = "\u00a0"
# An unpaired quote is an ordinary character, as what looks like a command may be a sentence.
_SHELL_WORD: Final = re.compile(r"""(?:'[^']*'|"[^"]*"|\\.|\S)+""")


def output_width() -> int:
    """Return the width of the terminal, or of a mail if the output is no terminal."""
    return get_terminal_size().columns if sys.stdout.isatty() else MAIL_WIDTH


def fitted(lines: Iterable[str], width: int | None = None) -> str:
    """Return lines as text of `width` columns, without control characters; see `folded`."""
    width = width or output_width()
    return "".join(f"{part}\n" for line in lines for part in folded(printable(line), width))


def folded(line: str, width: int) -> list[str]:
    r"""Return a line as lines of at most `width` columns.

    Only words that are longer than a line are broken, and paths never. A command continues after a
    backslash, so that it can be pasted into a shell; its words are never broken.
    """
    if len(line) <= width:
        return [line.rstrip()]
    headed = _HEADED.match(line)
    blank = len(line) - len(line.lstrip())
    hang = " " * (headed.end() if headed and headed.end() < width / 2 else blank + len(GAP))
    if not (found := _COMMAND.fullmatch(line)):
        return _wrapped(line, width, hang)
    said, command = found[1].rstrip(), found[2]
    lines = _wrapped(said, width, hang) if said else []
    if lines and len(lines[-1]) + 1 + len(command) <= width:
        return [*lines[:-1], f"{lines[-1]} {command}"]
    first, *words = _SHELL_WORD.findall(command)
    lines.append((hang if lines else hang[len(GAP) :]) + first)
    for word in words:
        if len(lines[-1]) + len(word) + len("  \\") > width:
            lines[-1] += " \\"
            lines.append(f"{hang}{GAP}{word}")
        else:
            lines[-1] += f" {word}"
    return lines


def _wrapped(text: str, width: int, hang: str) -> list[str]:
    """Return wrapped text; numbers stay with units, days with months, and paths in one line.

    A path that follows the first word stays on its line, so that `grep` finds both.
    """
    glued, breaks = _UNIT.sub(_NO_BREAK, text), not _PATH.search(text)
    glued = _HEADED_PATH.sub(lambda head: head[0].rstrip() + _NO_BREAK * len(head[1]), glued)
    lines = wrap(
        glued, width, subsequent_indent=hang, break_on_hyphens=False, break_long_words=breaks
    )
    return [line.replace(_NO_BREAK, " ") for line in lines]


def blocks(
    rows: Iterable[Sequence[str]],
    width: int,
    *,
    wrapped: Collection[int] = (0,),
    right: Collection[int] = (),
    indent: str = GAP,
) -> Iterator[list[str]]:
    """Yield the lines of each row of a table; cells in the columns `wrapped` may take several.

    The first of these columns is the name of a row. If a word of a name would break, or on a narrow
    terminal a name, the other cells are below the name.
    """
    table = [*rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    over = sum(each + len(GAP) for each in widths if each) - len(GAP) + len(indent) - width
    while over > 0 and max(widths[place] for place in wrapped) > _LEAST:
        widths[max(wrapped, key=widths.__getitem__)] -= 1
        over -= 1
    name = min(wrapped)
    is_broken = over > 0 or widths[name] < max(len(row[name]) for row in table)
    words = [len(word) for row in table for word in row[name].split()]
    breaks_word = any(widths[name] < each <= width / 2 for each in words)
    if is_broken and (width < _NARROW or breaks_word):
        end = name + (name <= 1)
        for each in table:
            head, rest = (GAP.join(filter(None, e)) for e in (each[:end], each[end:]))
            below = folded(f"{GAP * 3}{rest}", width) if rest else []
            yield [*folded(f"{indent}{head}", width), *below]
        return
    cells = [
        [
            _wrapped(cell, widths[place], GAP) if cell and place in wrapped else [cell]
            for place, cell in enumerate(row)
        ]
        for row in table
    ]
    widths = [max(max(map(len, cell)) for cell in column) for column in zip(*cells, strict=True)]
    sides = [str.rjust if place in right else str.ljust for place in range(len(widths))]
    for row in cells:
        lines: list[str] = []
        for texts in zip_longest(*row, fillvalue=""):
            columns = zip(sides, texts, widths, strict=True)
            said = GAP.join(side(text, room) for side, text, room in columns if room)
            lines += folded(f"{indent}{said}".rstrip(), width)
        yield lines


#: A format of documents.
DocumentFormat = Literal["markdown", "rst", "html", "csv"]


class Heading(NamedTuple):
    """A heading of level 1, 2, …."""

    text: str
    level: int


class Paragraph(NamedTuple):
    """A paragraph."""

    text: str


class Bullets(NamedTuple):
    """A list of short lines."""

    lines: tuple[str, ...]


class Commands(NamedTuple):
    """Shell commands, a line each."""

    lines: tuple[str, ...]


class Table(NamedTuple):
    """A table; each row has as many cells as there are headings."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Comment(NamedTuple):
    """A line for programs, hidden from readers."""

    text: str


Block = Comment | Heading | Paragraph | Bullets | Commands | Table

_FORMULA: Final = re.compile(r"(?![-+]?\d+(\.\d+)?$)[=+\-@\t\r]")  # a number is no formula
_MARKDOWN: Final = str.maketrans({c: f"\\{c}" for c in "\\`*_[]|#"} | {"<": "&lt;", "&": "&amp;"})
_RST: Final = str.maketrans({c: f"\\{c}" for c in "\\`*_|"})


def written(blocks: Sequence[Block], form: DocumentFormat) -> str:
    """Return the document in a format; CSV has only its tables, with formulas made harmless.

    If it has several tables, each row of the CSV begins with the headings above its table.
    """
    if form != "csv":
        named = [(type(each).__name__, each) for each in blocks]
        return rendered(f"document.{form}", blocks=named)
    above: list[Heading] = []
    rows: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for each in blocks:
        if isinstance(each, Heading):
            above = [*(upper for upper in above if upper.level < each.level), each]
        elif isinstance(each, Table):
            section = ": ".join(upper.text for upper in above)
            known = rows.setdefault(("Section", *each.headings), [])
            known += [(section, *row) for row in each.rows]
    first = 0 if sum(isinstance(each, Table) for each in blocks) > 1 else 1
    lines = (line[first:] for headings, under in rows.items() for line in (headings, *under))
    safe = ([f"'{cell}" if _FORMULA.match(cell) else cell for cell in line] for line in lines)
    return "".join(f"{_csv_line(cells)}\n" for cells in safe)


def markdown_text(text: str) -> str:
    """Return a text with what Markdown would interpret escaped."""
    return printable(text).translate(_MARKDOWN)


def rendered(template: str, **values: object) -> str:
    """Return a template filled with `values` and our version, which are escaped in HTML."""
    page = _environment(template.endswith(".html")).get_template(template)
    return f"{page.render(values, version=snapshot.__version__).strip()}\n"


@cache
def _environment(escapes: bool) -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 ([report] only)

    environment = Environment(
        loader=PackageLoader("iobands.views"),
        autoescape=escapes,  # noqa: S701 (the others have filters of their own)
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        markdown=markdown_text,
        rst=lambda text: printable(text).translate(_RST),
        printable=printable,
        # as in text.js; a page gets word joiners when it is written
        glued=lambda text: _UNIT.sub(_NO_BREAK, printable(text)),
        underline=lambda heading: "=-~^"[heading.level - 1] * len(printable(heading.text)),
        csv=lambda row: _csv_line([printable(cell).translate(_RST) for cell in row]),
    )
    return environment


def _csv_line(cells: Sequence[str]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="").writerow(cells)
    return stream.getvalue()
