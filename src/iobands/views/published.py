"""The rates that a site publishes, as a section of its pages, and where a page has drifted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from html import unescape
from typing import Any, Final

from iobands.snapshot import ALL_TARGETS, FIGURES, MADE_UP, Rates, Recommended, SeriesKey, in_effect
from iobands.views import (
    Block,
    Bullets,
    Commands,
    Comment,
    Heading,
    Paragraph,
    Table,
    figure,
    listed,
    percent,
    plural,
)

#: What the patterns are called in full, with the usual abbreviation.
PATTERNS: Final[Mapping[str, str]] = {
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
#: The headings of the table of rates, in their order.
HEADINGS: Final = (
    "Pattern", "Medium", "Direction", "Unit", "Maximum", "Upper quartile", "Median",
    "Lower quartile", "Median, 95 %", "Runs", "From", "To", "Epoch", "Holds until",
)  # fmt: skip
_DIRECTIONS: Final = {"write_bw": "write", "read_bw": "read"}
_MIB: Final = 2**20
DEFAULT_TRANSPORT: Final = "default"
#: The caveat next to advice on a transport.
CAVEAT: Final = (
    "a transport carries all MPI messages, and a program may take longer although its I/O is "
    "faster; compare the time of the whole program, as the check Archer2Program does"
)


def rates_section(system: str, recommended: Sequence[Recommended], now: datetime) -> list[Block]:
    """Return the section of a system; it says if there is no recommendation."""
    if not recommended:
        return [Paragraph(f"No run of {system} has a rate to publish.")]
    measured = "Made up, not measured" if system == MADE_UP else "Measured by iobands"
    blocks: list[Block] = [
        Heading(f"I/O performance of {system}", 1),
        Paragraph(
            f"{measured}, as of {now:%Y-%m-%d}. The file systems are shared: expect "
            "a rate between the lower and the upper quartile. A quarter of the runs are slower, "
            "and the maximum is seldom reached. GiB is 2³⁰ bytes."
        ),
        Heading("Settings", 2),
    ]
    for each in recommended:
        blocks += settings_section(each)
    rows = [_row(rates) for each in recommended for rates in each.rates]
    blocks += [Heading("Rates to expect", 2), Table(HEADINGS, tuple(rows))]
    return [*blocks, *_notes(recommended)]


def direction(variable: str) -> str:
    """Return the name of a variable for readers."""
    return _DIRECTIONS.get(variable, variable.replace("_", " "))


def scale_text(key: SeriesKey) -> str:
    """Return how large the runs of a series are, such as `2048 processes on 16 nodes`."""
    tasks = f"{key.tasks or 0:g} process{'' if key.tasks == 1 else 'es'}"
    return f"{tasks} on {plural(int(key.nodes or 0), 'node')}"


def interval_text(interval: tuple[float, float] | None) -> str:
    """Return an interval such as `9.6–10.2`, and a dash without one."""
    return "–" if interval is None else f"{figure(interval[0])}–{figure(interval[1])}"


def _row(rates: Rates) -> tuple[str, ...]:
    return (
        rates.pattern,
        rates.medium,
        direction(rates.variable),
        rates.unit,
        *(figure(rates.figures[name]) for name in FIGURES),
        interval_text(rates.intervals["median"]),
        str(rates.runs),
        f"{rates.first:%Y-%m-%d}",
        f"{rates.last:%Y-%m-%d}",
        rates.epoch or "–",
        f"{rates.holds:%Y-%m-%d}",
    )


def settings_section(each: Recommended) -> Iterator[Block]:
    """Yield the settings of a pattern and the commands that set them."""
    key, effect = each.key, in_effect(each.newest)
    yield Heading(PATTERNS.get(str(key.pattern), str(key.pattern)), 3)
    media: dict[str, list[str]] = {}
    for rates in each.rates:
        media.setdefault(rates.medium, []).extend(rates.file_systems)
    places = [f"{listed(list(dict.fromkeys(names)))} ({m})" for m, names in media.items()]
    lines = [f"File systems: {'; '.join(places)}"]
    if key.stripe_count_asked is not None:
        count = key.stripe_count_asked
        lines.append(f"Stripe count: {'all targets' if count == ALL_TARGETS else f'{count:g}'}")
    if effect.stripe_size:
        lines.append(f"Stripe size: {effect.stripe_size / _MIB:g} MiB")
    caveat = "" if key.transport == DEFAULT_TRANSPORT else f": {CAVEAT}"
    lines.append(f"MPI transport: {key.transport}{caveat}")
    hints = effect.hints.replace(",", ", ") if effect.hints else "none"
    lines.append(f"MPI-IO hints: {hints}")
    yield Bullets(tuple(lines))
    for names, commands in each.commands.items():
        if len(each.commands) > 1:
            yield Paragraph(f"On {listed(names)}:")
        yield Commands(commands)
    if not each.is_asked:
        yield Paragraph("The site recommends no settings; these are the best measured.")
    yield Paragraph(_configuration(each))


def _configuration(each: Recommended) -> str:
    key, newest = each.key, each.newest
    words = [
        f"{key.tool} {newest.get('tool_version') or ''}".strip(),
        f"interface {key.interface}",
        scale_text(key),
        f"{key.gib or 0:g} GiB",
        f"environment {key.environ}",
        "writes end with fsync" if newest.get("fsync") == "true" else "writes without fsync",
    ]
    cache = newest.get("cache")
    if any(rates.variable.startswith("read") for rates in each.rates):
        words.append(f"page cache before reads: {cache or 'unknown'}")
    return f"Measured with: {', '.join(words)}."


def _notes(recommended: Sequence[Recommended]) -> Iterator[Block]:
    changed = tuple(
        f"{rates.pattern} {direction(rates.variable)} on {each.file_system}: "
        f"{percent(each.ratio)} since {each.since:%Y-%m-%d}"
        for one in recommended
        for rates in one.rates
        for each in rates.changed
    )
    if changed:
        yield Paragraph("These rates have changed since; the table has the earlier ones:")
        yield Bullets(changed)


#: A later maximum may exceed the published one by this share. A quartile without an interval may
#: differ by it.
_TOLERANCE: Final = 0.1
_COMMENT: Final = re.compile(r"iobands table (\{.*\})")
_TAG: Final = re.compile(r"<[^<>]*>")


def comment(recommended: Sequence[Recommended]) -> Comment:
    """Return the rates of a section as a comment, which `drift` compares with later runs."""
    rates = [_said(rate) for each in recommended for rate in each.rates]
    text = json.dumps({"rates": rates}, separators=(",", ":"))
    for character in "<>-":  # they could end a comment
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Comment(f"iobands table {text}")


def drift(text: str, recommended: Sequence[Recommended], now: datetime) -> list[str]:
    """Return where a page differs from the runs, a line each; nothing if it agrees."""
    shown = _COMMENT.sub("", text)
    shown += f"\n{unescape(_TAG.sub('', shown))}"  # as a browser shows it
    left = [rate for each in recommended for rate in each.rates]
    found: list[str] = []
    try:
        every = [row for data in _COMMENT.findall(text) for row in json.loads(data)["rates"]]
        for said in every:
            mine = next((rate for rate in left if _name(_said(rate)) == _name(said)), None)
            problems = ["no run measures this"] if mine is None else _differences(said, mine, now)
            hidden = [each for each in said["figures"].values() if each not in shown]
            problems = [*problems, *(f"the page does not show {each}" for each in hidden)]
            found += [f"{_name(said)}: {problem}" for problem in problems]
            left = [rate for rate in left if rate is not mine]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return ["the comment from `iobands table` is damaged; insert the output again"]
    if not every:
        return ["no comment from `iobands table`; insert its output as markdown, rst or html"]
    lines = {line.strip() for line in shown.splitlines()}
    wanted = [line for each in recommended for lines in each.commands.values() for line in lines]
    return [
        *found,
        *(f"{_name(_said(rate))}: measured, but not on the page" for rate in left),
        *(f"lacks the command: {each}" for each in dict.fromkeys(wanted) if each not in lines),
    ]


def _said(rates: Rates) -> dict[str, Any]:
    """Return some rates as a page has them, as plain data."""
    return {
        "pattern": rates.pattern,
        "direction": direction(rates.variable),
        "medium": rates.medium,
        "figures": {name: figure(rates.figures[name]) for name in FIGURES},
        "epoch": rates.epoch,
        "holds": f"{rates.holds:%Y-%m-%d}",
        "changed": {each.file_system: f"{each.since:%Y-%m-%d}" for each in rates.changed},
    }


def _name(said: dict[str, Any]) -> str:
    return f"{said['pattern']} {said['direction']} on {said['medium']}"


def _differences(said: dict[str, Any], rates: Rates, now: datetime) -> Iterator[str]:
    for name in FIGURES:
        value, known = rates.figures[name], rates.intervals.get(name)
        low, high = known or (value * (1 - _TOLERANCE), value * (1 + _TOLERANCE))
        if not float(figure(low)) <= float(said["figures"][name]) <= float(figure(high)):
            sure = f" (95 %: {interval_text(known)})" if known else ""
            is_now = f"now {figure(value)}{sure} in {rates.runs} runs"
            yield f"{name.replace('_', ' ')} {said['figures'][name]}, {is_now}"
    if said["epoch"] != rates.epoch:
        yield f"epoch {said['epoch'] or 'none'}, now {rates.epoch or 'none'}"
    for each in rates.changed:
        if each.file_system not in said["changed"]:
            since = f"{each.since:%Y-%m-%d}"
            yield f"{each.file_system} has changed by {percent(each.ratio)} since {since}"
    if not rates.changed and date.fromisoformat(said["holds"]) < now.date():
        yield f"held until {said['holds']}"
