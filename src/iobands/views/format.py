"""How every view writes numbers, times and text from outside."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from difflib import get_close_matches
from typing import Final

from iobands.snapshot import (
    ACKNOWLEDGE,
    CLOCK_OFF,
    CRITICAL,
    DISCARD,
    ENOUGH_RUNS,
    OK,
    PROVISIONAL,
    REBASELINE,
    RESOLVE,
    RETIRE,
    UNDO,
    UNKNOWN,
    WARNING,
    Action,
    Alert,
    Ask,
    Band,
    Cause,
    Epoch,
    Limit,
    Member,
    Ratio,
    Series,
    Severity,
    SlowPeer,
    Snapshot,
    State,
    Status,
    Window,
)
from iobands.views.document import printable

#: More recent times are written without their year.
THIS_YEAR: Final = timedelta(days=300)
#: A repeat that is due for so long was not taken.
_LATE: Final = timedelta(hours=2)
#: What the exit statuses are called.
WORDS: Final = {OK: "OK", WARNING: "WARNING", CRITICAL: "CRITICAL", UNKNOWN: "UNKNOWN"}
_MOST_NAMES: Final = 30
_DONE: Final = {
    ACKNOWLEDGE: "acknowledged",
    RESOLVE: "resolved",
    REBASELINE: "rebaselined",
    UNDO: "undone",
    RETIRE: "retired",
    DISCARD: "discarded",
}
# A level this close to the others', as a logarithm, counts as theirs.
_ALIKE: Final = 0.05
# The first line does not count these, as they need no action.
_UNCOUNTED: Final = (Severity.COLLAPSED,)


def figure(value: float) -> str:
    """Return `value` with three significant digits; below 10,000 all digits before the point."""
    hundred, ten_thousand = 100, 10_000
    if abs(value) < hundred:
        return f"{value:.3g}"
    return f"{value if abs(value) < ten_thousand else float(f'{value:.3g}'):.0f}"


def size_text(size: int) -> str:
    """Return a number of bytes in GiB, or in MiB where that is below one."""
    gib = size / 2**30
    return f"{figure(gib)} GiB" if gib >= 1 else f"{figure(size / 2**20)} MiB"


def percent(ratio: float) -> str:
    """Return a ratio of levels as a change, such as `−29 %` for 0.71."""
    change = round(100 * (ratio - 1))
    return f"{'−' if change < 0 else '+'}{abs(change)} %"


def ratio_text(ratio: Ratio) -> str:
    """Return a ratio, with its 95 % interval if known."""
    if not math.isfinite(ratio.value):
        return "not known yet"
    known = 0 < ratio.low < ratio.high < math.inf
    interval = f" ({ratio.low:.2f}–{ratio.high:.2f})" if known else ""
    return f"{ratio.value:.2f} ×{interval}"


def speed_text(peer: SlowPeer) -> str:
    """Return how fast a slow peer is: over its own level, if this is not about the others'."""
    if not peer.is_slow:
        return "no longer slow"
    worst = next((name for name, each in peer.ratios.items() if each == peer.ratio), "")
    own = peer.own.get(worst, 1.0)
    if abs(math.log(own)) < _ALIKE:
        return f"{peer.ratio.value:.2f} × the others"
    return f"{peer.ratio.value / own:.2f} × its level"


def level_text(member: Member, *, short: bool = False) -> str:
    """Return the level of a member now and before, such as `2.7 GiB/s, was 17.6 (−85 %)`."""
    ratio, baseline, unit = member.ratio, member.baseline, member.series.key.unit
    known = member.series.status.change
    if known and known.kind is State.UNSTABLE:
        now, was = ("–".join(map(figure, each)) for each in (known.now, known.was))
        return f"{now} {unit}, was {was}"
    if known and known.kind is State.MODE_LOST:
        return f"{figure(known.level)} {unit}, no longer {figure(known.was[1])}"
    if ratio is None or baseline is None or not math.isfinite(ratio.value):
        value = member.series.status.value
        return "" if value is None else f"{figure(value)} {unit}"
    now = f"{figure(baseline * ratio.value)} {unit}"
    change = percent(ratio.value)
    return f"{now} ({change})" if short else f"{now}, was {figure(baseline)} ({change})"


def worst_member(alert: Alert) -> Member:
    """Return the member with the largest change in the direction of the alert."""
    known = [each for each in alert.members if each.ratio and math.isfinite(each.ratio.value)]
    furthest = max if alert.severity is Severity.IMPROVED else min
    if not known:
        return alert.members[0]
    return furthest(known, key=lambda each: each.ratio.value if each.ratio else 1.0)


def odds_text(cause: Cause, now: datetime) -> str:
    """Return a cause, since when it holds, and its odds."""
    odds = f"{figure(cause.odds)} to 1" if cause.odds >= 1 else f"1 to {figure(1 / cause.odds)}"
    return f"{cause_since(cause, now)} (odds {odds})"


def cause_since(cause: Cause, now: datetime) -> str:
    """Return a cause and since when it holds: `transport tcp since 13 Nov, was ucx`."""
    what, was, before = cause.what.partition(", was ")
    return f"{what} since {day_text(cause.since, now)}{was}{before}"


def time_text(when: datetime) -> str:
    """Return `when`, which is in UTC, to the minute: `4 Aug 2026 03:34`."""
    return f"{_date_text(when)} {when:%H:%M}"


def _date_text(when: datetime) -> str:
    return f"{when.day} {when:%b %Y}"


def due_text(ask: Ask, now: datetime) -> str:
    """Return when something is measured again: `within the hour`, `08:00`, `22 Nov 08:00`.

    Nothing measures it if its time was hours ago.
    """
    if ask.due is None or (ask.is_due(now) and now - ask.due < _LATE):
        return "within the hour"
    day = "" if ask.due.date() == now.date() else f"{day_text(ask.due, now)} "
    return f"{'due since ' if ask.is_due(now) else ''}{day}{ask.due:%H:%M}"


def day_text(when: datetime, now: datetime) -> str:
    """Return the day of `when`, with its year if that is not clear: `4 Aug`, `4 Aug 2017`."""
    year = "" if abs(now - when) < THIS_YEAR else f" {when:%Y}"
    return f"{when.day} {when:%b}{year}"


def hour_text(when: datetime, now: datetime) -> str:
    """Return the time of a moment of today or yesterday, else its day."""
    days = (now.date() - when.date()).days
    word = ("today", "yesterday")[days] if days in (0, 1) else day_text(when, now)
    return f"{when:%H:%M} {word}" if days in (0, 1) else word


def between_text(low: datetime, high: datetime, now: datetime) -> str:
    """Return an interval of days, as one day where both are the same."""
    first, last = day_text(low, now), day_text(high, now)
    return f"on {first}" if first == last else f"between {first} and {last}"


def age_text(age: timedelta) -> str:
    """Return how long ago, in minutes, hours or days."""
    if age < -CLOCK_OFF:
        return "dated in the future"
    minutes = max(0, round(age / timedelta(minutes=1)))
    if minutes < 60:  # noqa: PLR2004
        return f"{plural(minutes, 'minute')} ago"
    hours = round(age / timedelta(hours=1))
    return f"{plural(hours, 'hour')} ago" if hours < 48 else f"{age.days} days ago"  # noqa: PLR2004


def plural(count: int, noun: str) -> str:
    """Return `count` with its noun; `series` stays as it is."""
    return f"{count} {noun}" if count == 1 or noun.endswith("s") else f"{count} {noun}s"


def listed(words: Sequence[str]) -> str:
    """Return `words` as a list in a sentence."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def nearest(names: Sequence[str], wanted: str) -> str:
    """Return a line for each of `names`; of many, the ones most similar to `wanted`."""
    shown = list(names)
    if len(names) > _MOST_NAMES:
        shown = get_close_matches(wanted, names, _MOST_NAMES, cutoff=0)
    more = len(names) - len(shown)
    rest = [f"and {more} more; `iobands status --all` lists every series"] if more else []
    return "".join(f"\n  {line}" for line in (*shown, *rest))


def command_text(command: str, name: str, options: str = "") -> str:
    """Return a command about a series or an alert, quoted so that it can be pasted in a shell."""
    words = ["iobands", command]
    quoted = shlex.quote(printable(name))
    words += [options, "--", quoted] if quoted.startswith(("-", "'-")) else [quoted, options]
    return " ".join(filter(None, words))


def state_text(status: Status, is_quiet: bool = False) -> str:
    """Return the state, and whether its alert is acknowledged or its newest sample not judged."""
    if is_quiet:
        return f"{status.state.value} (ack)"
    if status.left_out and status.state is State.HEALTHY:
        return f"{status.state.value} ({status.left_out.partition(':')[0]})"
    return status.state.value


def band_text(band: Band, provisional: bool) -> str:
    """Return the quartiles of a band, lower, median, upper; `~` marks a provisional one."""
    quartiles = (band.lower_quartile, band.median, band.upper_quartile)
    is_young = provisional or band.state == PROVISIONAL
    return ("~" if is_young else "") + "–".join(figure(value) for value in quartiles)


def limit_text(limit: Limit) -> str:
    """Return a single published figure, such as `at most 9.31`."""
    return f"{limit.kind.replace('_', ' ')} {figure(limit.value)}"


def band_source(band: Band, provisional: bool) -> str:
    """Return the stage of a band, the number of its runs, and its source."""
    state = "" if provisional or not band.state else band.state
    runs = f"from {plural(band.runs, 'run')}" if band.runs else ""
    return ", ".join(part for part in (state, runs, band.source or "the bands file") if part)


def intervals_text(band: Band) -> str:
    """Return the 95 % intervals of a band's figures, such as `median 1.4 to 1.6`, or nothing."""
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


def maintenance_text(window: Window, now: datetime) -> str:
    """Return the last maintenance of a window that began by `now`, and the next; may be empty."""
    last, following = window.spans(now)[-1:], window.following(now)
    spans = [("now, " if now in span else "", span) for span in last]
    spans += [("next ", following)] if following else []
    times = [f"{word}{time_text(span.begin)} to {time_text(span.end)}" for word, span in spans]
    return f"{'; '.join(times)}: {window.reason}" if times else ""


def action_text(action: Action, *, dated: bool = True) -> str:
    """Return what was done, when, by whom and why; without the day if that is not `dated`."""
    span = ""
    if action.kind == RESOLVE and action.since and action.until:
        span = f" (runs of {_date_text(action.since)} to {_date_text(action.until)} do not count)"
    if action.kind == DISCARD and action.since:
        span = f" (of {time_text(action.since)})"
    if action.kind == REBASELINE and action.since:
        span = f" (from {_date_text(action.since)} on)"
    when = time_text(action.when) if dated else f"at {action.when:%H:%M}"
    return f"{_DONE[action.kind]} {when} by {action.who}: {action.reason}{span}"


def acknowledgement_text(alert: Alert) -> str:
    """Return who acknowledged an alert, why, and whether it became worse; may be empty."""
    known = alert.acknowledgement
    if known is None:
        return ""
    text = action_text(known.action)
    worse = alert.worse_since(known.action.when)
    return f"worse on {_date_text(worse.when)}, after it was {text}" if worse else text


def summary(site: Snapshot) -> str:
    """Return the first line: the state of the site now, as monitoring plug-ins print it."""
    word = WORDS[site.exit_status]
    parts = [*(["made up, nothing was measured"] if site.is_made_up else []), counts(site)]
    times = [series.status.when for series in site.series if series.status.when]
    if times:
        parts.append(f"newest run {age_text(site.now - max(times))}")
    if left := sum(not each.is_closed for each in site.leftovers):
        parts.append(f"{left} left behind")
    if site.rejected:
        parts.append(f"{plural(site.rejected_lines, 'line')} rejected")
    return f"IOBANDS {word}: {'; '.join(parts)}"


def counts(site: Snapshot) -> str:
    """Return how many alerts of each severity there are, and how many series."""
    return "; ".join([*_alert_counts(site), _series_counts(site)])


def _alert_counts(site: Snapshot) -> Iterable[str]:
    found = []
    for severity in Severity:
        if severity not in _UNCOUNTED:
            alike = [alert for alert in site.alerts if alert.severity is severity]
            quiet = sum(alert.is_quiet for alert in alike)
            loud = len(alike) - quiet
            found += [f"{loud} {severity.value}"] if loud else []
            found += [f"{quiet} {severity.value} (acknowledged)"] if quiet else []
    if found:
        yield ", ".join(found)
    elif site.series:
        calibrating = set(site.counts()) == {State.CALIBRATING}
        yield _calibrating(site) if calibrating else "no alerts"


def _calibrating(site: Snapshot) -> str:
    left = min(map(runs_left, site.series))
    return f"calibrating: {plural(left, 'more run')}" if left else "calibrating: one more run"


def _series_counts(site: Snapshot) -> str:
    if not site.series:
        return "no samples"
    number = plural(len(site.series), "series")
    calibrating = site.counts().get(State.CALIBRATING, 0)
    some = 0 < calibrating < len(site.series)
    return f"{number}, {calibrating} of them calibrating" if some else number


def runs_left(series: Series) -> int:
    """Return how many runs a series lacks for a band."""
    newest = int(series.history.passed[-1]) if len(series.history) else 0
    return max(0, ENOUGH_RUNS - series.status.usable - newest)


#: The characters of a sparkline, from low to high, and the one for values that are all equal.
_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_MIDDLE: Final = 3


def sparkline(values: list[float]) -> str:
    """Return a character for each value, from the lowest to the highest block."""
    least, most = (min(values), max(values)) if values else (0.0, 0.0)
    if least == most:
        return _BLOCKS[_MIDDLE] * len(values)
    steps = (1 + (len(_BLOCKS) - 1) * (each - least) / (most - least) for each in values)
    return "".join(_BLOCKS[round(step) - 1] for step in steps)


_NAMED: Final = 6


def some(names: Sequence[str]) -> str:
    """Return the first few of many names."""
    hidden = len(names) - _NAMED
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {hidden} more" if hidden > 0 else shown
