"""What a site publishes: rates, settings and advice; and where a published page has drifted."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from html import unescape
from typing import Any, Final

from iobands import snapshot
from iobands.snapshot import Advice, Advised, CaseAdvice, Rates, Recommended, SeriesKey, figure
from iobands.views.writing import (
    Block,
    Bullets,
    Commands,
    Comment,
    Heading,
    Paragraph,
    Table,
    change_text,
    day_text,
    listed,
    plural,
    ratio_text,
)

#: The full names of the patterns, with the usual abbreviations.
_PATTERNS: Final[Mapping[str, str]] = {
    "serial": "Single writer (serial)",
    "fpp": "File per process (FPP)",
    "fpn": "File per node (FPN)",
    "ssf": "Single shared file with collective I/O (SSF)",
    "ssf-independent": "Single shared file without collective I/O",
    "metadata-easy": "Metadata, a directory per process",
    "metadata-hard": "Metadata, one shared directory",
    "metadata-shared": "Metadata, empty files in one shared directory",
    "metadata-sized": "Metadata, small files, a directory per process",
}
_DIRECTIONS: Final = {"write_bw": "write", "read_bw": "read"}
_RATES: Final = (
    "Pattern", "Medium", "Direction", "Unit", "Maximum", "Upper quartile", "Median",
    "Lower quartile", "Median, 95 %", "Runs", "From", "To", "Epoch", "Holds until",
)  # fmt: skip
_TODAY: Final = ("Pattern", "File system", "Direction", "Expect", "Newest run", "Today")
_ADVICE: Final = ("On", "Setting", "Advice", "Ratio", "Interval", "Paired runs", "From", "To")
_CASES: Final = ("Case", "Conclusion", "Ratio", "Interval", "Runs", "From", "To")
_HOW: Final = (
    "Runs at most a day apart are compared in pairs. All intervals together hold with 95 % "
    "confidence. If there are enough pairs, the newer half of them decides."
)
_SHARED: Final = (
    "The file systems are shared. Half of the runs lie in the range to expect, a quarter below it."
)
# Added to advice on a transport, which carries all MPI messages.
_CAVEAT: Final = "a transport carries all messages, so compare the run time of the whole program"
_USUAL: Final = "as usual"
_TOO_NEW: Final = "too new to tell"
_FSYNC: Final[Mapping[object, str]] = {
    "true": "writes end with fsync",
    "false": "writes without fsync",
}


def rates_section(system: str, recommended: Sequence[Recommended], now: datetime) -> list[Block]:
    """Return the settings and rates of a system, or a paragraph that there are none."""
    if not recommended:
        return [Paragraph(f"No run of {system} has a rate to publish.")]
    measured = "Made up, not measured" if system == snapshot.MADE_UP else "Measured by iobands"
    every = [rates for each in recommended for rates in each.rates]
    changed = tuple(
        f"{rates.pattern} {_direction(rates.variable)} on {each.file_system}: {_changed(each)}"
        for rates in every
        for each in rates.changed
    )
    earlier = Paragraph("These rates have changed since; the table has the earlier ones:")
    return [
        Heading(f"I/O performance of {system}", 1),
        Paragraph(
            f"{measured}, as of {now:%Y-%m-%d}. The file systems are shared: expect "
            "a rate between the lower and the upper quartile. A quarter of the runs are slower, "
            "and the maximum is seldom reached. GiB is 2³⁰ bytes."
        ),
        Heading("Settings", 2),
        *(block for each in recommended for block in _settings_section(each)),
        Heading("Rates to expect", 2),
        Table(_RATES, tuple(map(_row, every))),
        *((earlier, Bullets(changed)) if changed else ()),
    ]


def _pattern(key: SeriesKey) -> str:
    return _PATTERNS.get(str(key.pattern), str(key.pattern))


def _name_of(each: Recommended) -> str:
    """Return the full name of the pattern, with what distinguishes these settings from others."""
    words = each.rates[0].pattern.removeprefix(str(each.key.pattern))
    return f"{_pattern(each.key)}{words and ','}{words}"


def _direction(variable: str) -> str:
    return _DIRECTIONS.get(variable, variable.replace("_", " "))


def _scale(key: SeriesKey) -> str:
    """Return the size of the runs of a series, such as `2048 processes on 16 nodes`."""
    tasks = f"{key.tasks:.0f} process{'' if key.tasks == 1 else 'es'}" if key.tasks else ""
    nodes = plural(int(key.nodes), "node") if key.nodes else ""
    return " on ".join(filter(None, (tasks, nodes)))


def _interval(interval: tuple[float, float] | None) -> str:
    return "–" if interval is None else f"{figure(interval[0])}–{figure(interval[1])}"


def _figures(rates: Rates) -> dict[str, str]:
    """Return the figures that a page shows: only the median if there are few runs."""
    is_young = rates.runs < snapshot.ENOUGH_RUNS
    names = ("median",) if is_young else snapshot.FIGURES
    return {name: figure(rates.figures[name]) for name in names}


def _row(rates: Rates) -> tuple[str, ...]:
    shown = _figures(rates)
    return (
        rates.pattern,
        rates.medium,
        _direction(rates.variable),
        rates.unit,
        *(shown.get(name, "–") for name in snapshot.FIGURES),
        _interval(rates.intervals["median"]),
        str(rates.runs),
        f"{rates.first:%Y-%m-%d}",
        f"{rates.last:%Y-%m-%d}",
        rates.epoch or "–",
        f"{rates.holds:%Y-%m-%d}",
    )


def _of_each(said: Mapping[str, str]) -> str:
    """Return the text for each file system, as `TEXT on NAMES`, or one text if all are the same."""
    alike: dict[str, list[str]] = {}
    for where, text in said.items():
        alike.setdefault(text.strip(), []).append(where)
    return ", ".join(f"{t} on {listed(n)}" if len(alike) > 1 else t for t, n in alike.items() if t)


def _settings_section(each: Recommended, at: str = "") -> Iterator[Block]:
    key, newest = each.key, each.newest
    effects = {where: snapshot.in_effect(fields) for where, fields in newest.items()}
    yield Heading(f"{_name_of(each)}{at}", 3)
    media: dict[str, list[str]] = {}
    for rates in each.rates:
        media.setdefault(rates.medium, []).extend(rates.file_systems)
    places = [f"{listed(list(dict.fromkeys(names)))} ({m})" for m, names in media.items()]
    lines = [f"File systems: {'; '.join(places)}"]
    if key.stripe_count_asked is not None:
        is_all = key.stripe_count_asked == snapshot.ALL_TARGETS
        lines.append(f"Stripe count: {'all targets' if is_all else f'{key.stripe_count_asked:g}'}")
    sizes = {w: f"{of.stripe_size / 2**20:g} MiB" for w, of in effects.items() if of.stripe_size}
    if sizes:
        lines.append(f"Stripe size: {_of_each(sizes)}")
    if key.transport:
        caveat = "" if key.transport == "default" else f" ({_CAVEAT})"
        lines.append(f"MPI transport: {key.transport}{caveat}")
    hints = {w: of.hints.replace(",", ", ") if of.hints else "none" for w, of in effects.items()}
    yield Bullets((*lines, f"MPI-IO hints: {_of_each(hints)}"))
    for names, commands in each.commands.items():
        if len(each.commands) > 1:
            yield Paragraph(f"On {listed(names)}:")
        yield Commands(commands)
    if not each.is_asked:
        yield Paragraph("These are the best measured; no recommendation of the site is known.")
    words = [
        _of_each({w: f"{key.tool} {of.get('tool_version') or ''}" for w, of in newest.items()}),
        f"interface {key.interface}" if key.interface else "",
        _scale(key),
        f"{figure(key.gib)} GiB" if key.gib else "",
        f"environment {key.environ}" if key.environ else "",
        _of_each({w: _FSYNC.get(of.get("fsync"), "") for w, of in newest.items()}),
    ]
    caches: dict[str, str] = {}
    for rates in each.rates:
        if rates.variable.startswith("read"):
            caches |= zip(rates.file_systems, rates.caches, strict=False)
    if caches:
        words.append(f"page cache before reads: {_of_each(caches)}")
    yield Paragraph(f"Measured with: {', '.join(filter(None, words))}.")


# The share by which a maximum, or a quartile without an interval, may differ from a published one.
_TOLERANCE: Final = 0.1
_COMMENT: Final = re.compile(r"iobands table (\{.*\})")
_TAG: Final = re.compile(r"<[^<>]*>")


def comment(recommended: Sequence[Recommended]) -> Comment:
    """Return the rates of a system as a comment that `drift` can compare with later runs."""
    rates = [_as_data(rate) for each in recommended for rate in each.rates]
    system = next((each.key.system for each in recommended), None)
    text = json.dumps({"system": system, "rates": rates}, separators=(",", ":"))
    for character in "<>-":  # they could end a comment
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Comment(f"iobands table {text}")


def drift(
    text: str, recommended: Sequence[Recommended], now: datetime, only: str | None = None
) -> list[str]:
    """Return a line for each difference between a page and the runs.

    With `only`, tables of other systems are ignored.

    Raises:
        ValueError: the page has no comment from `iobands table`, or a damaged one.
    """
    shown = _COMMENT.sub("", text)
    shown += f"\n{unescape(_TAG.sub('', shown))}"  # without tags, as a browser shows it
    left = [(each.key.system, _as_data(rate), rate) for each in recommended for rate in each.rates]
    several = len({system for system, *_ in left}) > 1

    def called(system: str | None, said: dict[str, Any]) -> str:
        return f"{system}: {_name(said)}" if system and several else _name(said)

    found: list[str] = []
    try:
        comments = map(json.loads, _COMMENT.findall(text))
        every = [(data.get("system"), row) for data in comments for row in data["rates"]]
        for system, said in every:
            # pages of an earlier version do not name their system
            if only and system not in {None, only}:
                continue
            alike = (e for e in left if system in {None, e[0]} and _name(e[1]) == _name(said))
            mine = next(alike, None)
            left = [each for each in left if each is not mine]
            problems = _differences(said, mine[2], now) if mine else ["no run measures this"]
            hidden = [each for each in said["figures"].values() if not _is_in(shown, each)]
            problems = [*problems, *(f"the page does not show {each}" for each in hidden)]
            found += [f"{called(system, said)}: {problem}" for problem in problems]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        damaged = "the comment from `iobands table` is damaged; insert the output again"
        raise ValueError(damaged) from error
    if not _COMMENT.search(text):
        lacks = "no comment from `iobands table`; insert its output as markdown, rst or html"
        raise ValueError(lacks)
    lines = {line.strip() for line in shown.splitlines()}
    wanted = [line for each in recommended for lines in each.commands.values() for line in lines]
    return [
        *found,
        *(f"{called(of, said)}: measured, but not on the page" for of, said, _ in left),
        *(f"lacks the command: {each}" for each in dict.fromkeys(wanted) if each not in lines),
    ]


def _is_in(text: str, number: str) -> bool:
    """Return whether a text contains a number that is not part of a longer one."""
    return re.search(rf"(?<![\d.]){re.escape(number)}(?!\.?\d)", text) is not None


def _changed(each: snapshot.Changed) -> str:
    change = each.change
    return f"{change_text(change, change.lately)} since {change.began:%Y-%m-%d}"


def _as_data(rates: Rates) -> dict[str, Any]:
    """Return rates in the form of the comment."""
    return {
        "pattern": rates.pattern,
        "direction": _direction(rates.variable),
        "medium": rates.medium,
        "figures": _figures(rates),
        "epoch": rates.epoch,
        "holds": f"{rates.holds:%Y-%m-%d}",
        "changed": {each.file_system: f"{each.change.began:%Y-%m-%d}" for each in rates.changed},
    }


def _name(said: dict[str, Any]) -> str:
    return f"{said['pattern']} {said['direction']} on {said['medium']}"


def _differences(said: dict[str, Any], rates: Rates, now: datetime) -> Iterator[str]:
    for name, shown in said["figures"].items():
        value, known = rates.figures[name], rates.intervals.get(name)
        low, high = known or (value * (1 - _TOLERANCE), value * (1 + _TOLERANCE))
        if not float(figure(low)) <= float(shown) <= float(figure(high)):
            sure = f" (95 %: {_interval(known)})" if known else ""
            is_now = f"now {figure(value)}{sure} in {rates.runs} runs"
            yield f"{name.replace('_', ' ')} {shown}, {is_now}"
    if said["epoch"] != rates.epoch:
        yield f"epoch {said['epoch'] or 'none'}, now {rates.epoch or 'none'}"
    for each in rates.changed:
        if each.file_system not in said["changed"]:
            yield f"{each.file_system} has changed: {_changed(each)}"
    if not rates.changed and date.fromisoformat(said["holds"]) < now.date():
        yield f"held until {said['holds']}"


def advice_lines(advised: Sequence[Advised], cases: Sequence[CaseAdvice]) -> list[str]:
    """Return the advice as lines for a terminal."""
    lines: list[str] = []
    for title, each in _titled(advised):
        lines += ["", title]
        lines += [f"  highest median: {_settings(each, key)}" for key in each.best[:1]]
        for one in each.advice:
            where = "" if one.setting == snapshot.FILE_SYSTEM else f"{one.key.file_system}: "
            runs = plural(one.evidence.pairs, "paired run")
            lines.append(f"  {where}{_advice(one)}, {runs}{_caveat(one)}")
    if cases:
        lines += ["", "Cases: with their setting, against without it"]
    for case in cases:
        found = f"{_finding(case)}: {_evidence(case.evidence)}"
        lines.append(f"  {_case(case)}: {found}, {plural(case.evidence.pairs, 'run')}")
    return lines[1:]


def advice_section(
    system: str, advised: Sequence[Advised], cases: Sequence[CaseAdvice]
) -> list[Block]:
    """Return the advice for a system as a section."""
    blocks: list[Block] = [Heading(f"Settings compared on {system}", 1), Paragraph(_HOW)]
    for title, each in _titled(advised):
        rows = [
            (
                "all" if one.setting == snapshot.FILE_SYSTEM else str(one.key.file_system),
                _setting(one.setting),
                _text(one),
                *_cells(one.evidence),
            )
            for one in each.advice
        ]
        best = (f"Highest median on {key.file_system}: {_settings(each, key)}" for key in each.best)
        blocks += [Heading(title, 2), Bullets(tuple(best)), Table(_ADVICE, tuple(rows))]
        if any(map(_caveat, each.advice)):
            blocks.append(Paragraph(f"Note on transports: {_CAVEAT}."))
    if cases:
        of_cases = tuple((_case(e), _finding(e), *_cells(e.evidence)) for e in cases)
        blocks += [Heading("Cases", 2), Table(_CASES, of_cases)]
    return blocks


def _titled(advised: Iterable[Advised]) -> Iterator[tuple[str, Advised]]:
    """Yield the advice with titles; equal titles get the words that distinguish the series."""
    follow = (name for setting in snapshot.SETTINGS for name in snapshot.COMPARABLE[setting])
    free: dict[str, Any] = dict.fromkeys((snapshot.FILE_SYSTEM, *snapshot.SETTINGS, *follow))
    alike: dict[str, list[tuple[SeriesKey, Advised]]] = {}
    for each in advised:
        key = each.best[0]
        size = f", a file of {figure(key.gib or 0)} GiB" if key.case else ""
        about = (_pattern(key), _direction(key.variable), key.interface, f"{_scale(key)}{size}")
        title = ", ".join(filter(None, about))
        alike.setdefault(title, []).append((replace(key, **free), each))
    for title, several in alike.items():
        words = snapshot.distinctions(key for key, _ in several)
        for key, each in several:
            yield ", ".join([title, *words[key]]), each


def _settings(each: Advised, key: SeriesKey) -> str:
    settings = [
        f"{_setting(name)} {snapshot.value_of(key, name)}"
        for name in (snapshot.FILE_SYSTEM, *snapshot.SETTINGS)
        if getattr(key, name) is not None
    ]
    return f"{', '.join(settings)}: {figure(each.medians[key])} {key.symbol}"


def _setting(name: str) -> str:
    return name.replace("_asked", "").replace("_", " ")


def _advice(one: Advice) -> str:
    return f"{_setting(one.setting)} {_text(one)}: {_evidence(one.evidence)}"


def _text(one: Advice) -> str:
    key, other = (snapshot.value_of(each, one.setting) for each in (one.key, one.other))
    if one.finding is snapshot.Conclusion.BETTER:
        return f"{key} rather than {other}"
    if one.finding is snapshot.Conclusion.WITHDRAWN and one.before:
        before = f"{_evidence(one.before)} until {one.before.last:%Y-%m-%d}"
        return f"{key} rather than {other} is withdrawn (it was {before})"
    return f"{key} or {other}, {_finding(one)}"


def _caveat(one: Advice) -> str:
    is_better = one.setting == "transport" and one.finding is snapshot.Conclusion.BETTER
    return f"; {_CAVEAT}" if is_better else ""


def _finding(one: Advice | CaseAdvice) -> str:
    if not one.more:
        return one.finding.value
    about = "over" if one.more >= snapshot.MOST_MORE else "about"
    return f"{one.finding.value} ({about} {one.more} more)"


def _evidence(evidence: snapshot.PairedEvidence) -> str:
    return ratio_text(snapshot.Ratio(evidence.ratio, *(evidence.interval or (0.0, math.inf))))


def _cells(evidence: snapshot.PairedEvidence) -> tuple[str, ...]:
    return (
        f"{evidence.ratio:.2f}",
        _interval(evidence.interval),
        str(evidence.pairs),
        f"{evidence.first:%Y-%m-%d}",
        f"{evidence.last:%Y-%m-%d}",
    )


def _case(case: CaseAdvice) -> str:
    key = case.key
    return f"{key.case}, {_direction(key.variable).replace(' ratio', '')} on {key.file_system}"


def comparison_lines(comparisons: Sequence[snapshot.Comparison], field: str) -> list[str]:
    """Return a line for each of `comparisons` of `field`, named by what distinguishes it."""
    # The compared field may have any value; system and partition come first in every line.
    free: dict[str, Any] = {**dict.fromkeys(snapshot.COMPARABLE[field]), field: "*"}
    alike = {each.key: replace(each.key, system="", partition="", **free) for each in comparisons}
    names = snapshot.labels(alike.values())
    lines = []
    for each in comparisons:
        case, name = each.key.case, names[alike[each.key]]
        if case and case not in name:
            name = f"{name} of {case}"
        # several environments may have one transport
        one, other = (
            snapshot.value_of(key, field) + (f" ({key.environ})" if field == "transport" else "")
            for key in (each.key, each.against)
        )
        where = f"{each.key.system} {each.key.partition} {name}"
        lines.append(f"{where}: {one} / {other}: {_paired(each.ratio)}")
    return lines


def _paired(ratio: snapshot.PairedRatio | None) -> str:
    if ratio is None:
        return "never measured near each other"
    pairs = plural(ratio.pairs, "pair")
    if ratio.lower is None or ratio.upper is None or ratio.confidence is None:
        return f"{ratio.median:.3g} from {pairs}, too few for an interval"
    note = ", no difference shown" if ratio.lower <= 1 <= ratio.upper else ""
    interval = f"{ratio.lower:.3g} to {ratio.upper:.3g} ({100 * ratio.confidence:.1f} %)"
    return f"{ratio.median:.3g}, {interval}, from {pairs}{note}"


def users_section(
    site: snapshot.Snapshot,
    recommended: Sequence[Recommended],
    advised: Sequence[Advised],
    paths: Mapping[tuple[str, str], str],
) -> list[Block]:
    """Return what users read first: rates to expect and today's, paths, settings and advice.

    `paths` maps each system and file system to the path that users know.
    """
    today = {each.key: _today(site, each) for each in site.series}
    of = {each: f" ({each})" if len(site.systems) > 1 else "" for each in site.systems}
    rows = [
        _row_of_today(_name_of(one), series, of[series.key.system], today[series.key])
        for one in recommended
        for series in site.series
        if series.status.value is not None
        if replace(one.key, file_system=series.key.file_system, variable=series.key.variable)
        == series.key
    ]
    if not rows:
        return []
    named = {(each.key.system, each.key.file_system) for each in site.series}
    where = tuple(
        f"{name}{of[system]}: {path}"
        for (system, name), path in paths.items()
        if (system, name) in named
    )
    lines = tuple(line for each in _titled(advised) for line in _advice_to_users(*each, today))
    return [
        Heading("Rates to expect", 2),
        Paragraph(_SHARED),
        Table(_TODAY, tuple(rows)),
        *([Heading("Where", 2), Bullets(where)] if where else ()),
        Heading("Settings and the commands that set them", 2),
        *(block for each in recommended for block in _settings_section(each, of[each.key.system])),
        *([Heading("Advice", 2), Bullets(lines)] if lines else ()),
    ]


def _row_of_today(name: str, series: snapshot.Series, where: str, today: str) -> tuple[str, ...]:
    key, band, value = series.key, series.status.band, series.status.value
    return (
        name,
        f"{key.file_system}{where}",
        _direction(key.variable),
        f"{_interval((band.lower_quartile, band.upper_quartile))} {key.symbol}" if band else "–",
        f"{figure(value or 0)} {key.symbol}",
        today,
    )


def _advice_to_users(name: str, each: Advised, today: Mapping[SeriesKey, str]) -> Iterator[str]:
    """Yield the advice that matters to users, from `MARGIN` on, with its state today."""
    for one in each.advice:
        if one.finding is snapshot.Conclusion.BETTER and one.evidence.ratio >= snapshot.MARGIN:
            where = "" if one.setting == snapshot.FILE_SYSTEM else f" on {one.key.file_system}"
            setting, now = snapshot.value_of(one.key, one.setting), today.get(one.key, _USUAL)
            state = "" if now in (_USUAL, _TOO_NEW) else f"; {setting} today: {now}"
            yield f"{name}{where}: {_advice(one)}{_caveat(one)}{state}"


def _today(site: snapshot.Snapshot, series: snapshot.Series) -> str:
    if series.status.state is snapshot.State.NO_DATA and series.status.when:
        return f"not measured since {day_text(series.status.when, site.now)}"
    if change := series.status.change:
        return f"{change_text(change, change.lately)} since {day_text(change.began, site.now)}"
    if any(alert.exit_status and alert.has_level for alert in site.alerts_on(series.key)):
        return "slower than usual"
    if series.status.band is None:
        return _TOO_NEW
    return "low in the newest run" if series.status.verdict == snapshot.COLLAPSED else _USUAL
