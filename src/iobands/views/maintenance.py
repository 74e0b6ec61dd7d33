"""The account of a maintenance as a document: on one page, what it changed."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from iobands.snapshot import BeforeAfter, Shift, ShiftVerdict, path_part
from iobands.views import (
    Block,
    Bullets,
    Commands,
    DocumentFormat,
    Heading,
    Paragraph,
    Table,
    listed,
    percent,
    plural,
    rendered,
    written,
)

_HEADINGS: Final = ("", "Verdict", "After / before", "95 % interval", "Visible loss", "Runs")
#: How many series without a claim have a row: the page is one page.
_MOST_QUIET: Final = 12
_MOST_CLAIMS: Final = 20
_MOST_PARTS: Final = 12
_FEW: Final = 5
_NAMED: Final = 3
_WHOLE: Final = 0.5
_WORST: Final = (
    ShiftVerdict.SLOWER,
    ShiftVerdict.FASTER,
    ShiftVerdict.UNDECIDED,
    ShiftVerdict.NO_CHANGE,
)


def account(of: BeforeAfter) -> list[Block]:
    """Return the account as a page."""
    times = f"{of.begin:%d %b %Y %H:%M} to {of.end:%d %b %H:%M} UTC"
    blocks: list[Block] = [
        Heading(title_of_maintenance(of), 1),
        Paragraph(f"{of.reason}. {times}; as known on {of.now:%d %b %Y %H:%M} UTC."),
        Paragraph(in_short(of)),
    ]
    if of.groups or of.series:
        blocks += [
            Table(_HEADINGS, tuple(map(_row, _shown(of)))),
            *_rest(of),
            *_stories(of),
            Paragraph(
                "Verdicts hold together: at most one report in twenty has a false one. An interval "
                "holds for its row alone. Visible loss: the smallest that these runs show with "
                "odds of 9 to 1. Runs of one evening share its level, so they count little more "
                "than one."
            ),
        ]
    if of.left_out:
        blocks += [Heading("Not compared", 2), Bullets(tuple(_left_out(of)))]
    if of.beside:
        lines = [
            f"{each.column}: {each.before} → {each.after} ({each.series} of {each.of} series)"
            for each in of.beside
        ]
        blocks += [Heading("What else changed, by the samples' records", 2), Bullets(tuple(lines))]
    elif of.series:
        blocks += [Paragraph("Nothing else that the samples record has changed beside it.")]
    return [*blocks, *_next(of)]


def _left_out(of: BeforeAfter) -> Iterator[str]:
    for why in dict.fromkeys(why for _, why in of.left_out):
        labels = [label for label, each in of.left_out if each == why]
        more = f" and {len(labels) - _FEW} more" if len(labels) > _FEW else ""
        yield f"{why}: {', '.join(labels[:_FEW])}{more}"


def title_of_maintenance(of: BeforeAfter) -> str:
    """Return what a maintenance is called."""
    where = f": {listed(of.file_systems)}" if of.file_systems else ""
    return f"Maintenance {of.name} of {of.system}{where}"


def page_about(of: BeforeAfter) -> str:
    """Return the file of its page below the dashboard."""
    return f"maintenances/{path_part(of.system)}-{of.name.replace(':', '')}.html"


def page_of_maintenance(of: BeforeAfter) -> str:
    """Return its page in the dashboard."""
    content = written(account(of), DocumentFormat.HTML)
    return rendered(
        "maintenance.html",
        title=f"{title_of_maintenance(of)} · I/O performance",
        system=of.system,
        content=content,
    )


def in_short(of: BeforeAfter) -> str:
    """Return the answer in a sentence or two."""
    if of.is_open:
        return "The maintenance is open; there is no run after it yet."
    if not of.series:
        return "No series has runs before and after it that compare, so nothing can be said."
    claims = [each for each in of.groups if each.is_claim] or [
        each for each in of.series if each.is_claim
    ]
    if claims:
        named = [f"{_name(each)} {each.outcome.value} ({_percent(each)})" for each in claims[:4]]
        more = f" and {len(claims) - 4} more" if len(claims) > len(named) else ""
        return f"Changed: {listed(named)}{more}."
    top = of.groups[0] if of.groups else of.series[0]
    top = next((each for each in of.groups if each.name == "all"), top)
    if top.outcome is ShiftVerdict.NO_CHANGE:
        return f"No change larger than {_share(top.bound)}, over {_name(top)}."
    more = f"; about {plural(top.more, 'more day')} of runs decide" if top.more else ""
    return f"Not enough runs to say whether {_name(top)} changed{more}."


def _name(each: Shift) -> str:
    return "everything" if each.name == "all" else each.name


def _percent(each: Shift) -> str:
    low, high = percent(each.ratio.low), percent(each.ratio.high)
    return f"{percent(each.ratio.value)}, {low} to {high}"


def _shown(of: BeforeAfter) -> list[Shift]:
    """Return the rows of one page: the groups, the claims, and some other series."""
    parts = sorted((each for each in of.groups if each.kind == "part"), key=_urgency)[:_MOST_PARTS]
    groups = [each for each in of.groups if each.kind != "part" or each in parts]
    series = sorted(of.series, key=_urgency)
    claims = [each for each in series if each.is_claim][:_MOST_CLAIMS]
    quiet = [each for each in series if not each.is_claim][: max(0, _MOST_QUIET - len(claims))]
    return [*groups, *claims, *quiet]


def _urgency(each: Shift) -> tuple[int, float]:
    return _WORST.index(each.outcome), each.ratio.value


def _share(share: float) -> str:
    return f"{100 * share:.0f} %"


def _row(each: Shift) -> tuple[str, ...]:
    name = f"{each.name} ({each.members} series)" if each.kind != "series" else each.name
    return (
        name,
        _verdict(each),
        f"{each.ratio.value:.2f}",
        f"{each.ratio.low:.2f} to {each.ratio.high:.2f}",
        "none yet" if each.visible is None else _share(each.visible),
        f"{_runs(each.before)} before, {_runs(each.after)} after",
    )


def _runs(side: tuple[int, int]) -> str:
    runs, days = side
    return plural(days, "day") if runs == days else f"{runs} on {plural(days, 'day')}"


def _verdict(each: Shift) -> str:
    if each.outcome is ShiftVerdict.NO_CHANGE:
        return f"no change larger than {_share(each.bound)}"
    if each.outcome is ShiftVerdict.UNDECIDED:
        more = f"about {each.more} more" if each.more else "many more"
        return f"{each.outcome.value} ({more})"
    return each.outcome.value


def _rest(of: BeforeAfter) -> Iterator[Block]:
    hidden = len(of.groups) + len(of.series) - len(_shown(of))
    if hidden > 0:
        found = Counter(each.outcome.value for each in of.series)
        counts = ", ".join(f"{number} {name}" for name, number in found.items())
        yield Paragraph(f"{plural(hidden, 'more series')} not shown. All series: {counts}.")


def _stories(of: BeforeAfter) -> Iterator[Block]:
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for each in (*of.groups, *of.series):
        alike["; ".join(_story(each.story))].append(each.name)
    alike.pop("", None)
    lines = [
        f"{', '.join(names[:_NAMED])}"
        + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
        + f": {story}"
        for story, names in alike.items()
    ]
    if lines:
        yield Bullets(tuple(lines[:_MOST_QUIET]))


def _story(story: Iterable[tuple[object, str, int]]) -> Iterator[str]:
    for day, what, runs in story:
        how = f" from {plural(runs, 'run')}" if what.startswith("said") else ""
        yield f"{what} on {day:%d %b}{how}"


def _next(of: BeforeAfter) -> Iterator[Block]:
    claims = [each for each in of.series if each.is_claim]
    groups = [each for each in of.groups if each.is_claim]
    if of.epochs:
        yield Paragraph(f"Epochs that began with it: {listed(of.epochs)}.")
    elif of.is_open:
        yield Commands(("iobands maintenance end --measure",))
    elif groups or claims:
        yield Heading("If the new level is normal", 2)
        since, reason = f"{of.end:%Y-%m-%dT%H:%M:%SZ}", shlex.quote(of.reason)
        whole = any(each.members == len(of.series) for each in groups if each.kind == "site")
        if (whole or len(claims) > _WHOLE * len(of.series)) and not of.file_systems:
            yield Paragraph("Begin an epoch, so that later runs compare with the new level alone:")
            yield Commands(
                (
                    f"iobands epoch maintenance-{of.name.replace(':', '')} --since {since} "
                    f"--system {of.system} --reason {reason}",
                )
            )
        else:
            yield Paragraph("Begin an epoch of these series, so that the rest goes on:")
            places = [each for each in groups if each.kind == "site"]
            yield Commands(tuple(_rebaseline(places or claims or groups, since, reason)))
        yield Paragraph("If it is a loss, begin none: its alert stays until it is repaired.")


def _rebaseline(claims: Sequence[Shift], since: str, reason: str) -> Iterator[str]:
    for each in claims[:_FEW]:
        every = "" if each.kind == "series" else " --all"
        yield (
            f"iobands rebaseline {shlex.quote(each.name)}{every} --since {since} --reason {reason}"
        )
