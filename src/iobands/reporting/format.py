"""How figures, times and other people's text are written in every view.

May know: bands, states and surveys; nothing of a particular view.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from difflib import get_close_matches
from typing import Final

from iobands.alerts.acknowledged import Acknowledged
from iobands.alerts.acts import ACKNOWLEDGE, ACKNOWLEDGE_COLLAPSES, CLOSE, NEW_NORMAL, REOPEN, Act
from iobands.alerts.nodes import folded
from iobands.bands import PROVISIONAL, Band, Epoch
from iobands.status.following import is_drop
from iobands.status.states import CRITICAL, OK, UNKNOWN, WARNING, State, Status
from iobands.status.survey import Survey

_MOST_NAMES: Final = 30
#: What an act is called once it is done.
_DONE = {
    ACKNOWLEDGE: "Known",
    ACKNOWLEDGE_COLLAPSES: "Known",
    CLOSE: "Closed",
    NEW_NORMAL: "New normal",
    REOPEN: "Reopened",
}
_STATUS_WORDS = {OK: "OK", WARNING: "WARNING", CRITICAL: "CRITICAL", UNKNOWN: "UNKNOWN"}


def figure(value: float) -> str:
    """Return `value` with three significant digits, and all digits before the point."""
    hundred = 100
    return f"{value:.0f}" if abs(value) >= hundred else f"{value:.3g}"


def state_text(status: Status) -> str:
    """Return the state, and whether its alarm is acknowledged or closed, as short as may be."""
    if status.is_quiet:
        return f"{status.state.value} (ack)"
    if status.is_closed and status.state is State.HEALTHY:
        return f"{status.state.value} (closed)"  # whatever the newest sample is
    return status.state.value


def band_text(band: Band, provisional: bool) -> str:
    """Return the quartiles of a band, lower, median, upper; `~` marks a provisional one."""
    quartiles = (band.lower_quartile, band.median, band.upper_quartile)
    is_young = provisional or band.state == PROVISIONAL
    return ("~" if is_young else "") + "–".join(figure(value) for value in quartiles)


def act_text(act: Act) -> str:
    """Return who acted, when and why."""
    return f"{time_text(act.when)} by {act.who}: {act.reason}"


def acts_told(acts: Sequence[Act]) -> list[tuple[str, str]]:
    """Return of each act what it was, and who did it when and why, in the order of time."""
    taken_back = {act.of for act in acts}
    found = []
    for act in acts:
        text = act_text(act)
        if act.kind == ACKNOWLEDGE_COLLAPSES:
            text += "; that the file system collapses more often"
        if act.kind == CLOSE and act.since and act.until:
            text += f"; leaves out {act.since:%Y-%m-%d} to {act.until:%Y-%m-%d}"
        if act.kind == NEW_NORMAL and act.since:
            text += f"; from {act.since:%Y-%m-%d} on"
        if act.on_nodes:
            text += f"; of runs on {folded(act.on_nodes)}"
        if act.when in taken_back:
            text += " (taken back)"
        found.append((_DONE[act.kind], text))
    return found


def answer_text(answer: Acknowledged) -> str:
    """Return who acknowledged an alarm, when and why, and since when it is worse, if it is."""
    known = f"acknowledged {act_text(answer.act)}"
    if answer.worse is None:
        return known
    worse = answer.worse
    return f"worse since {worse.since:%Y-%m-%d}: {worse.ratio.value:.2f} × what was {known}"


def band_facts(band: Band, provisional: bool) -> str:
    """Return how far a band was learnt, from how many runs, and where its figures come from."""
    state = "" if provisional or not band.state else band.state
    runs = f"from {plural(band.runs, 'run')}" if band.runs else ""
    return ", ".join(part for part in (state, runs, band.source or "the bands file") if part)


def intervals_text(band: Band) -> str:
    """Return the 95 % intervals of a band's figures, such as `median 1.4 to 1.6`; maybe empty."""
    order = ("floor", "lower_quartile", "median", "upper_quartile", "maximum")
    return ", ".join(
        f"{name.replace('_', ' ')} {figure(band.intervals[name][0])} to "
        f"{figure(band.intervals[name][1])}"
        for name in order
        if name in band.intervals
    )


def epoch_text(epoch: Epoch) -> str:
    """Return the name of an epoch, when it began and why."""
    since = time_text(epoch.since.astimezone(timezone.utc))
    reason = epoch.reason or epoch.source
    return f"{epoch.name}, since {since}{f': {reason}' if reason else ''}"


def time_text(when: datetime) -> str:
    """Return `when`, which is in UTC, to the minute."""
    return f"{when:%Y-%m-%d %H:%M}"


def plural(count: int, noun: str) -> str:
    """Return `count` with its noun; `series` stays as it is."""
    return f"{count} {noun}" if count == 1 or noun.endswith("s") else f"{count} {noun}s"


def nearest(names: Sequence[str], wanted: str) -> str:
    """Return a line for each of `names`; of many, those most like what was `wanted`."""
    shown = list(names)
    if len(names) > _MOST_NAMES:
        shown = get_close_matches(wanted, names, _MOST_NAMES, cutoff=0)
    more = len(names) - len(shown)
    rest = [f"and {more} more; `iobands status` names every series"] if more else []
    return "".join(f"\n  {line}" for line in (*shown, *rest))


def printable(text: str) -> str:
    """Return `text` without what could upset a terminal: it may come from anywhere."""
    return "".join(c if c.isprintable() else "?" for c in text)


def summary(survey: Survey) -> str:
    """Return the one line that says it all, as monitoring plugins print it."""
    word = _STATUS_WORDS[survey.exit_status]
    if survey.series:
        states = ", ".join(_count(survey, state, n) for state, n in survey.counts().items())
        parts = [f"{plural(len(survey.series), 'series')}: {states}"]
    else:
        parts = ["no samples"]
    loud = (each for each in survey.common if not survey.is_quiet(each))
    fallen = [common.name for common in loud if is_drop(common.change)]
    if fallen:
        parts.append(f"common {'drop' if len(fallen) == 1 else 'drops'}: {', '.join(fallen)}")
    if survey.obstacles:
        stopped = sum(len(each.checks) for each in survey.obstacles)
        unfit = ", ".join(dict.fromkeys(each.subject for each in survey.obstacles))
        parts.append(f"unfit: {unfit}; {plural(stopped, 'check')} not run")
    risen = [each for each in survey.collapses.file_systems if each.is_loud]
    if risen:
        parts.append(f"{plural(len(risen), 'file system')} with more collapses")
    if survey.findings:
        parts.append(f"{plural(len(survey.findings), 'check')} failed without a series")
    if survey.rejected:
        parts.append(f"{plural(len(survey.rejected), 'line')} rejected")
    return f"IOBANDS {word}: {'; '.join(parts)}"


def _count(survey: Survey, state: State, number: int) -> str:
    """Return how many series are in `state`, and of how many somebody knows."""
    known = sum(each.status.is_quiet for each in survey.series if each.status.state is state)
    known_of = "" if not known else f" ({'' if known == number else f'{known} '}acknowledged)"
    return f"{number} {state.value}{known_of}"
