"""Comparisons of series that differ in one field, as lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from iobands.model.ratios import PairedRatio
from iobands.model.series import SeriesKey, labels
from iobands.reporting.format import plural
from iobands.site.compare import FIELDS, Comparison, value_of

#: What a line says of a field that is compared, where it must say something.
_ANY: Final = "*"


def comparison_lines(comparisons: Sequence[Comparison], field: str) -> list[str]:
    """Return a line for each of `comparisons` of `field`, with what tells one from another."""
    # What is compared is any; system and partition come first in every line.
    free: dict[str, Any] = {**dict.fromkeys(FIELDS[field]), field: _ANY}
    alike = {each.key: replace(each.key, system="", partition="", **free) for each in comparisons}
    names = labels(alike.values())
    lines = []
    for each in comparisons:
        case, name = each.key.case, names[alike[each.key]]
        if case and case not in name:
            name = f"{name} of {case}"
        one, other = (_shown(key, field) for key in (each.key, each.against))
        where = f"{each.key.system} {each.key.partition} {name}"
        lines.append(f"{where}: {one} / {other}: {_ratio(each.ratio)}")
    return lines


def _shown(key: SeriesKey, field: str) -> str:
    text = value_of(key, field)
    # several environments may have one transport
    return f"{text} ({key.environ})" if field == "transport" else text


def _ratio(ratio: PairedRatio | None) -> str:
    if ratio is None:
        return "never measured near each other"
    pairs = plural(ratio.pairs, "pair")
    if ratio.lower is None or ratio.upper is None:
        return f"{ratio.median:.3g} from {pairs}, too few for an interval"
    note = "" if ratio.differs else ", no difference shown"
    interval = f"{ratio.lower:.3g} to {ratio.upper:.3g} ({ratio.confidence:.1%})"
    return f"{ratio.median:.3g}, {interval}, from {pairs}{note}"
