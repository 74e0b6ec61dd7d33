"""Where a published page has drifted from the runs: rates, dates and commands.

Reads the comment that `iobands table` leaves in its section, and requires that the page around it
still shows the figures and the commands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from html import unescape
from typing import Any, Final

from iobands.reporting.document import Comment
from iobands.reporting.format import figure, percent
from iobands.reporting.published import direction, interval_text
from iobands.site.published import FIGURES, Rates, Recommended

#: A maximum may be exceeded by this share; without an interval a quartile may be off by it.
_TOLERANCE: Final = 0.1
_COMMENT: Final = re.compile(r"iobands table (\{.*\})")
_TAG: Final = re.compile(r"<[^<>]*>")


def comment(recommended: Sequence[Recommended]) -> Comment:
    """Return what a section says, for `drift` to compare with later runs."""
    rates = [_said(rate) for each in recommended for rate in each.rates]
    text = json.dumps({"rates": rates}, separators=(",", ":"))
    for character in "<>-":  # could end a comment
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Comment(f"iobands table {text}")


def drift(text: str, recommended: Sequence[Recommended], now: datetime) -> list[str]:
    """Return what is wrong with a page now, a line of text each; nothing if it agrees."""
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
        return ["the comment of `iobands table` is damaged; insert its output again"]
    if not every:
        return ["no comment of `iobands table`; insert its output as markdown, rst or html"]
    lines = {line.strip() for line in shown.splitlines()}
    wanted = [line for each in recommended for lines in each.commands.values() for line in lines]
    return [
        *found,
        *(f"{_name(_said(rate))}: measured, and not on the page" for rate in left),
        *(f"lacks the command: {each}" for each in dict.fromkeys(wanted) if each not in lines),
    ]


def _said(rates: Rates) -> dict[str, Any]:
    """Return what a page says of some rates, as plain data."""
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
            is_now = f"is {figure(value)}{sure} in {rates.runs} runs"
            yield f"{name.replace('_', ' ')} {said['figures'][name]}, {is_now}"
    if said["epoch"] != rates.epoch:
        yield f"epoch {said['epoch'] or 'none'}, is {rates.epoch or 'none'}"
    for each in rates.changed:
        if each.file_system not in said["changed"]:
            since = f"{each.since:%Y-%m-%d}"
            yield f"{each.file_system} has changed by {percent(each.ratio)} since {since}"
    if not rates.changed and date.fromisoformat(said["holds"]) < now.date():
        yield f"held until {said['holds']}"
