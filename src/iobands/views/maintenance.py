"""The report on a maintenance, a document of one page: what it changed."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from iobands.snapshot import MADE_UP, BeforeAfter, Shift, ShiftVerdict
from iobands.views import writing
from iobands.views.writing import Block, Bullets, Commands, Heading, Paragraph, Table

_HEADINGS: Final = ("Series", "Verdict", "After / before", "95 % interval", "Visible loss", "Runs")
_TOGETHER: Final = (
    "Verdicts hold together: at most one report in twenty has a false one. An interval holds for "
    "its row alone. Visible loss: the smallest that these runs show with odds of 9 to 1. Runs of "
    "one evening share its level, so they count little more than one."
)
#: Rows for claims and for series without a claim, so that the report fits one page.
_MOST_QUIET: Final = 12
_MOST_CLAIMS: Final = 20
_MOST_PARTS: Final = 12
_MOST_IN_SHORT: Final = 4
_FEW: Final = 5
_NAMED: Final = 3
_WHOLE: Final = 0.5


def account(of: BeforeAfter, *, every: bool = False) -> list[Block]:
    """Return the report; `every` gives each group and series a row."""
    times = f"{writing.time_text(of.begin)} to {writing.time_text(of.end)} UTC"
    why = of.reason.removesuffix(".")
    blocks: list[Block] = [
        Heading(title_of_maintenance(of), 1),
        Paragraph(f"{why}. {times}; as known on {writing.time_text(of.now)} UTC."),
        Paragraph(in_short(of)),
    ]
    if of.groups or of.series:
        blocks += [*_rows(of, every), *_stories(of), Paragraph(_TOGETHER)]
    if of.left_out:
        alike: defaultdict[str, list[str]] = defaultdict(list)
        for label, why in of.left_out:
            alike[why].append(label)
        lines = tuple(f"{why}: {writing.some(labels, _FEW)}" for why, labels in alike.items())
        blocks += [Heading("Not compared", 2), Bullets(lines)]
    if of.beside:
        lines = tuple(
            f"{each.column}: {each.before} → {each.after} ({each.series} of {each.of} series)"
            for each in of.beside
        )
        blocks += [Heading("What else changed, by the samples' records", 2), Bullets(lines)]
    elif of.series:
        blocks += [Paragraph("The samples show no other change at that time.")]
    return [*blocks, *_next(of)]


def title_of_maintenance(of: BeforeAfter) -> str:
    """Return the title of the report."""
    where = f": {writing.listed(of.file_systems)}" if of.file_systems else ""
    return f"Maintenance {of.name} of {of.system}{where}"


def page_about(of: BeforeAfter) -> str:
    """Return the path of its page below the dashboard."""
    return f"maintenances/{writing.page_name(of.system)}-{of.name.replace(':', '')}.html"


def page_of_maintenance(of: BeforeAfter, *, several: bool = False) -> str:
    """Return the report as a page of the dashboard, in HTML; `several` links to all sites."""
    return writing.rendered(
        "maintenance.html",
        title=f"{title_of_maintenance(of)} · I/O performance",
        system=of.system,
        several=several,
        made_up=of.system == MADE_UP,
        content=writing.written(account(of), "html"),
    )


def in_short(of: BeforeAfter) -> str:
    """Return the result in a sentence."""
    if of.is_open:
        return "The maintenance is open; there is no run after it yet."
    if not of.series:
        return "No series has comparable runs before and after it, so this report makes no claim."
    if claims := _claims(_uniform(of)) or _claims(of.series) or _claims(of.groups):
        named = [
            f"{_name(each, of)} {each.outcome.value} ({writing.percent(each.ratio.value)}, "
            f"{writing.percent(each.ratio.low)} to {writing.percent(each.ratio.high)})"
            for each in claims[:_MOST_IN_SHORT]
        ]
        hidden = len(claims) - len(named)
        return f"Changed: {writing.listed(named)}{f' and {hidden} more' if hidden else ''}."
    top = next((each for each in of.groups if each.name == "all"), (*of.groups, *of.series)[0])
    if top.outcome is ShiftVerdict.NO_CHANGE:
        where = "overall" if top.name == "all" else f"for {top.name}"
        return f"No change larger than {writing.share_text(top.bound)} {where}."
    more = f"; about {writing.plural(top.more, 'more day')} of runs will decide" if top.more else ""
    return f"Not enough runs to say whether {_name(top, of)} changed{more}."


def _claims(shifts: Sequence[Shift]) -> list[Shift]:
    return [each for each in shifts if each.is_claim]


def _uniform(of: BeforeAfter) -> list[Shift]:
    """Return the groups, without those that claim a change which a part of them contradicts."""
    rows = (*of.groups, *of.series)

    def differs(group: Shift, part: Shift) -> bool:
        is_part = group.members == len(of.series) or part.name.startswith(f"{group.name} ")
        change = abs(group.ratio.value - 1)
        stayed = part.outcome is ShiftVerdict.NO_CHANGE and part.bound < change
        # only file systems: of many smaller parts, some intervals miss the ratio by chance
        is_off = part.kind == "site" and not part.ratio.low <= group.ratio.value <= part.ratio.high
        other = part.is_claim and part.outcome is not group.outcome
        return is_part and (stayed or is_off or other)

    return [
        each for each in of.groups if not (each.is_claim and any(differs(each, e) for e in rows))
    ]


def _name(each: Shift, of: BeforeAfter) -> str:
    if each.name != "all":
        return each.name
    return "everything" if each in _uniform(of) else "all together"


def _urgency(each: Shift) -> tuple[int, float]:
    return [*ShiftVerdict].index(each.outcome), each.ratio.value


def _rows(of: BeforeAfter, every: bool) -> Iterator[Block]:
    """Yield the table: the groups, the claims, and some or `every` other series."""
    parts = sorted((each for each in of.groups if each.kind == "part"), key=_urgency)[:_MOST_PARTS]
    groups = [each for each in of.groups if each.kind != "part" or each in parts]
    series = sorted(of.series, key=_urgency)
    claims = _claims(series)[:_MOST_CLAIMS]
    quiet = [each for each in series if not each.is_claim][: max(0, _MOST_QUIET - len(claims))]
    shown = [*of.groups, *series] if every else [*groups, *claims, *quiet]
    yield Table(_HEADINGS, tuple(map(_row, shown)))
    if (hidden := len(of.groups) + len(of.series) - len(shown)) > 0:
        found = Counter(each.outcome.value for each in of.series)
        counts = ", ".join(f"{number} {name}" for name, number in found.items())
        command = f"iobands maintenance report {of.name} --system {shlex.quote(of.system)} --all"
        yield Paragraph(f"{hidden} more rows: {command}. All series: {counts}.")


def _row(each: Shift) -> tuple[str, ...]:
    verdict = each.outcome.value
    if each.outcome is ShiftVerdict.NO_CHANGE:
        verdict = f"no change larger than {writing.share_text(each.bound)}"
    elif each.outcome is ShiftVerdict.UNDECIDED:
        verdict += f" ({f'about {each.more}' if each.more else 'many'} more)"
    return (
        f"{each.name} ({each.members} series)" if each.kind != "series" else each.name,
        verdict,
        writing.times(each.ratio.value),
        f"{writing.times(each.ratio.low)} to {writing.times(each.ratio.high)}",
        "none yet" if each.visible is None else writing.share_text(each.visible),
        f"{_runs(*each.before)} before, {_runs(*each.after)} after",
    )


def _runs(runs: int, days: int) -> str:
    on = writing.plural(days, "day")
    return on if runs == days else f"{runs} on {on}"


def _stories(of: BeforeAfter) -> Iterator[Block]:
    """Yield a list of the days on which claims were made, confirmed or withdrawn."""
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for each in (*of.groups, *of.series):
        days = (
            f"{what} on {day.day} {day:%b}"
            + (f" from {writing.plural(runs, 'run')}" if what.startswith("said") else "")
            for day, what, runs in each.story
        )
        if each.story:
            alike["; ".join(days)].append(each.name)
    if lines := [f"{writing.some(names, _NAMED)}: {story}" for story, names in alike.items()]:
        yield Bullets(tuple(lines[:_MOST_QUIET]))


def _next(of: BeforeAfter) -> Iterator[Block]:
    claims, groups = _claims(of.series), _claims(_uniform(of))
    system = f"--system {shlex.quote(of.system)}"  # others may have the same file systems
    if of.epochs:
        yield Paragraph(f"Epochs that began with it: {writing.listed(of.epochs)}.")
    elif of.is_open:
        yield Commands((f"iobands maintenance end --measure {system}",))
    elif groups or claims:
        yield Heading("If the new level is normal", 2)
        since = f"--since {of.end:%Y-%m-%dT%H:%M:%SZ}"
        reason = f"--reason {shlex.quote(of.reason)}"
        sites = [each for each in groups if each.kind == "site"]
        is_whole = any(each.members == len(of.series) for each in sites)
        if (is_whole or len(claims) > _WHOLE * len(of.series)) and not of.file_systems:
            yield Paragraph("Begin an epoch, so that later runs compare with the new level alone:")
            name = f"maintenance-{of.name.replace(':', '')}"
            yield Commands((f"iobands epoch {name} {since} {system} {reason}",))
        else:
            yield Paragraph("Begin an epoch of these series, so that the rest goes on:")
            rows = sites or claims or groups
            every = "" if rows[0].kind == "series" else " --all"
            # names of series contain their file system, but not `all`
            whole = {"all": of.file_systems}
            names = dict.fromkeys(name for e in rows for name in whole.get(e.name, (e.name,)))
            yield Commands(
                tuple(
                    f"iobands rebaseline {shlex.quote(name)}{every} {since} {system} {reason}"
                    for name in [*names][:_FEW]
                )
            )
        yield Paragraph("If it is a loss, begin none: its alert stays until it is repaired.")
