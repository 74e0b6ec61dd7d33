"""Advice and comparisons, for a terminal or a page, and the section that users read first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from iobands.snapshot import (
    COLLAPSED,
    COMPARABLE,
    FILE_SYSTEM,
    MARGIN,
    MOST_MORE,
    SETTINGS,
    Advice,
    Advised,
    CaseAdvice,
    Comparison,
    Conclusion,
    PairedEvidence,
    PairedRatio,
    Ratio,
    Recommended,
    Series,
    SeriesKey,
    Snapshot,
    State,
    labels,
    value_of,
)
from iobands.views import (
    Block,
    Bullets,
    Heading,
    Paragraph,
    Table,
    day_text,
    figure,
    percent,
    plural,
    ratio_text,
)
from iobands.views.published import (
    CAVEAT,
    PATTERNS,
    direction,
    interval_text,
    scale_text,
    settings_section,
)

_NAMES = {FILE_SYSTEM: "file system", "stripe_count_asked": "stripe count"}
_HEADINGS = ("On", "Setting", "Advice", "Ratio", "Interval", "Paired runs", "From", "To")
_CASES = ("Case", "Conclusion", "Ratio", "Interval", "Runs", "From", "To")
_HOW = (
    "Runs of one day are compared in pairs. All intervals together hold with 95 % confidence. "
    "If there are enough pairs, the newer half of them decides."
)


def advice_lines(advised: Sequence[Advised], cases: Sequence[CaseAdvice]) -> list[str]:
    """Return the advice for a terminal."""
    lines: list[str] = []
    for each in advised:
        lines += [*([""] if lines else []), _title(each)]
        lines += [f"  highest median: {_settings(each, key)}" for key in each.best[:1]]
        for one in each.advice:
            where = "" if one.setting == FILE_SYSTEM else f"{one.key.file_system}: "
            text = f"{where}{_name(one.setting)} {_text(one)}: {_evidence(one.evidence)}"
            lines.append(f"  {text}, {plural(one.evidence.pairs, 'paired run')}{_caveat(one)}")
    if cases:
        lines += ["", "Cases: with their setting, against without it"]
    for case in cases:
        runs = plural(case.evidence.pairs, "run")
        lines.append(
            f"  {_case(case)}: {_finding(case.finding, case.more)}: {_evidence(case.evidence)}, "
            f"{runs}"
        )
    return lines


def advice_section(
    system: str, advised: Sequence[Advised], cases: Sequence[CaseAdvice]
) -> list[Block]:
    """Return the advice for a system as a section."""
    blocks: list[Block] = [Heading(f"Settings compared on {system}", 1), Paragraph(_HOW)]
    for each in advised:
        rows = [
            (
                "all" if one.setting == FILE_SYSTEM else str(one.key.file_system),
                _name(one.setting),
                _text(one),
                *_cells(one.evidence),
            )
            for one in each.advice
        ]
        best = tuple(
            f"Highest median on {key.file_system}: {_settings(each, key)}" for key in each.best
        )
        blocks += [Heading(_title(each), 2), Bullets(best), Table(_HEADINGS, tuple(rows))]
        if any(map(_caveat, each.advice)):
            blocks.append(Paragraph(f"Note on transports: {CAVEAT}."))
    if cases:
        rows = [
            (_case(case), _finding(case.finding, case.more), *_cells(case.evidence))
            for case in cases
        ]
        blocks += [Heading("Cases", 2), Table(_CASES, tuple(rows))]
    return blocks


def advice_of(each: Advised, today: Mapping[SeriesKey, str]) -> list[str]:
    """Return what to choose, for users: only what matters to them.

    `today` says how the series do that are not as usual.
    """
    pattern = PATTERNS.get(str(each.best[0].pattern), str(each.best[0].pattern))
    name = f"{pattern}, {direction(each.best[0].variable)}"
    return [
        f"{name}{'' if one.setting == FILE_SYSTEM else f' on {one.key.file_system}'}: "
        f"{_name(one.setting)} {_text(one)}: {_evidence(one.evidence)}{_caveat(one)}"
        + (f"; today it is {today[one.key]}" if one.key in today else "")
        for one in each.advice
        if one.finding is Conclusion.BETTER and one.evidence.ratio >= MARGIN
    ]


def _title(each: Advised) -> str:
    key = each.best[0]
    pattern = PATTERNS.get(str(key.pattern), str(key.pattern))
    size = f", a file of {figure(key.gib or 0)} GiB" if key.case else ""
    return f"{pattern}, {direction(key.variable)}, {key.interface}, {scale_text(key)}{size}"


def _settings(each: Advised, key: SeriesKey) -> str:
    settings = [f"{_name(name)} {value_of(key, name)}" for name in (FILE_SYSTEM, *SETTINGS)
                if getattr(key, name) is not None]  # fmt: skip
    return f"{', '.join(settings)}: {figure(each.medians[key])} {key.unit}"


def _name(setting: str) -> str:
    return _NAMES.get(setting, setting)


def _text(one: Advice) -> str:
    key, other = (value_of(each, one.setting) for each in (one.key, one.other))
    if one.finding is Conclusion.BETTER:
        return f"{key} rather than {other}"
    if one.finding is Conclusion.WITHDRAWN and one.before:
        before = f"{_evidence(one.before)} until {one.before.last:%Y-%m-%d}"
        return f"{key} rather than {other} is withdrawn (it was {before})"
    return f"{key} or {other}, {_finding(one.finding, one.more)}"


def _caveat(one: Advice) -> str:
    """Return the caveat if a transport is advised."""
    is_better = one.setting == "transport" and one.finding is Conclusion.BETTER
    return f"; {CAVEAT}" if is_better else ""


def _finding(finding: Conclusion, more: int | None) -> str:
    if not more:
        return finding.value
    return f"{finding.value} ({'over' if more >= MOST_MORE else 'about'} {more} more)"


def _evidence(evidence: PairedEvidence) -> str:
    return ratio_text(Ratio(evidence.ratio, *(evidence.interval or (0.0, math.inf))))


def _cells(evidence: PairedEvidence) -> tuple[str, ...]:
    return (
        f"{evidence.ratio:.2f}",
        interval_text(evidence.interval),
        str(evidence.pairs),
        f"{evidence.first:%Y-%m-%d}",
        f"{evidence.last:%Y-%m-%d}",
    )


def _case(case: CaseAdvice) -> str:
    key = case.key
    return f"{key.case}, {direction(key.variable).replace(' ratio', '')} on {key.file_system}"


#: The word of a line for a compared field that must be named.
_ANY: Final = "*"


def comparison_lines(comparisons: Sequence[Comparison], field: str) -> list[str]:
    """Return a line for each of `comparisons` of `field`, with what distinguishes it."""
    # The compared field may have any value; system and partition come first in every line.
    free: dict[str, Any] = {**dict.fromkeys(COMPARABLE[field]), field: _ANY}
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


_RATE_HEADINGS: Final = ("Pattern", "File system", "Direction", "Expect", "Newest run", "Today")
_USUAL: Final = "as usual"
_WHAT_RATES: Final = (
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
        Heading("Rates to expect", 2), Paragraph(_WHAT_RATES), Table(_RATE_HEADINGS, tuple(rows))
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
