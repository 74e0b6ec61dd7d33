"""The commands with which people influence the judge: answers to alerts, bands and epochs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from iobands import snapshot
from iobands.bands import Epoch, Span, bands_path, epoch_yaml, load_bands, write_epoch
from iobands.commands import cli
from iobands.commands.judging import judgement_of, site_of
from iobands.commands.status import log_news
from iobands.judge import requests
from iobands.judge.calibrate import Learned, epoch_by_hand
from iobands.judge.calibrate import calibrate as learn
from iobands.snapshot import Action, SeriesKey, Snapshot
from iobands.source.action_log import append, deciding, log_path
from iobands.views.alert_lines import command_on
from iobands.views.writing import command_text, no_samples, plural, some, time_text


@dataclass(frozen=True, kw_only=True)
class ActionOptions(cli.SiteOptions):
    """The options of every action; see `SiteOptions`."""

    reason: Annotated[str, "TEXT", "Why: the cause, a ticket, who works on it."]
    by: cli.ByOption = None
    all_: Annotated[bool, "Act on everything that SERIES matches."] = False
    dry_run: cli.DryRunOption = False


_DONE: Final = {
    snapshot.ACKNOWLEDGE: "acknowledged until it recovers or becomes worse",
    snapshot.RESOLVE: "resolved; runs from the change until {} no longer count, later ones do",
    snapshot.REBASELINE: "rebaselined; earlier runs and bands no longer count",
    snapshot.RETIRE: "retired until its next sample; none is expected",
    snapshot.DISCARD: "discarded; the sample stays in the perflog and is not judged",
}
#: Actions at most this far apart came from one call; `undo --all` withdraws those of the last call.
_TOGETHER: Final = timedelta(seconds=1)


def acknowledge(
    options: ActionOptions,
    series: cli.SeriesArgument,
    ticket: Annotated[str | None, "URL", "The ticket about the alert."] = None,
    owner: Annotated[str | None, "NAME", "Who works on the alert."] = None,
) -> None:
    """Acknowledge an alert: from now on it is a warning, and no longer critical.

    If the series recovers and falls again, that is a new, critical alert. The acknowledged alert
    also becomes critical if the level falls further, on as much evidence as a new alert needs. The
    exit status is 0 if the action was logged, and 3 if there is no such alert.
    """
    _act(snapshot.ACKNOWLEDGE, options, series, ticket=ticket, owner=owner)


def resolve(
    options: ActionOptions,
    series: cli.SeriesArgument,
    since: Annotated[
        str | None, "TIME", f"When the cause was repaired: {cli.WHEN}. [default: now]"
    ] = None,
    force: Annotated[bool, "Resolve the alert even if the newest run is low."] = False,
    verdict: Annotated[
        Literal["real", "false"] | None, "Whether the alert was real or false."
    ] = None,
) -> None:
    """Resolve an alert: its cause was repaired, now or at TIME.

    The alert ends. Runs from the change until the repair no longer count for detection or bands.
    Later runs are judged by the same baseline, so the alert returns if the repair did not help.
    """
    _act(snapshot.RESOLVE, options, series, since, force=force, verdict=verdict)


def rebaseline(
    options: ActionOptions,
    series: cli.SeriesArgument,
    since: Annotated[
        str | None, "TIME", f"When the level began: {cli.WHEN}. [default: at the last change]"
    ] = None,
) -> None:
    """Take the level since a change, or since TIME, as the new baseline.

    Earlier runs and bands no longer count for these series. If a whole system has changed, use
    `iobands epoch`. From 20 runs on, `iobands calibrate` proposes a new band.
    """
    _act(snapshot.REBASELINE, options, series, since)


def undo(options: ActionOptions, series: cli.SeriesArgument) -> None:
    """Undo the last action on an alert or a series. The log keeps both actions.

    With --all, undo everything that was logged together last.
    """
    _act(snapshot.UNDO, options, series)


def retire(options: ActionOptions, series: cli.SeriesArgument) -> None:
    """Retire a series that is no longer measured, so that none of its samples counts as missing.

    The series leaves the digest until its next sample.
    """
    _act(snapshot.RETIRE, options, series)


def discard(
    options: ActionOptions,
    series: cli.SeriesArgument,
    at: Annotated[
        str | None,
        "TIME",
        "A day (UTC), or a minute or second with its offset. [default: the newest sample]",
    ] = None,
) -> None:
    """Discard samples of a series, such as those with a wrong time or from a manual test.

    The samples stay in the perflog and are not judged.
    """
    _act(snapshot.DISCARD, options, series, at=_span_of(at) if at else None)


def _span_of(text: str) -> Span:
    """Return the span of the day, minute or second that `text` names."""
    begin = cli.time_of(text, "--at")
    date, clock = len("2023-10-09"), len("T06:00:00")
    said = text.strip()[date : date + clock]  # a blank may stand for the T
    unit = "days" if not said else "seconds" if said.count(":") > 1 else "minutes"
    return Span(begin, begin + timedelta(**{unit: 1}) - timedelta(microseconds=1))


def _recorded(options: cli.SiteOptions) -> Snapshot:
    """Judge the site, append new events to the log of alerts, and return the snapshot.

    All systems are judged, so that the numbers of alerts do not depend on `options.system`.
    """
    judge = partial(judgement_of, replace(options, system=None))
    judged = judge()
    for system, why in judged.known.incomplete.items():
        if options.system in {None, system}:  # see `log_news`
            raise cli.failure(why)
    judged = log_news(options, judged, judge)
    if options.system is not None:
        judged = judgement_of(options, memory=judged.memory)
    return judged.snapshot


def _act(
    kind: str,
    options: ActionOptions,
    words: list[str],
    since: str | None = None,
    **more: Any,  # noqa: ANN401 (fields of a request)
) -> None:
    given = (options.by or cli.login_name(), options.reason)
    who, reason = (" ".join(each.split()) for each in given)
    when = cli.time_of(since) if since else None
    request = requests.Request(kind, who, reason, when, system=options.system, **more)
    directory, written = options.config_of("alerts"), set[Path]()
    with nullcontext() if options.dry_run else deciding(options.perflogs_directory):
        site = site_of(options) if options.dry_run else _recorded(options)
        decided = _decided(site, " ".join(words), request, options.all_)
        for subject, action, did in decided:
            if action is None:
                said = "retired" if kind == snapshot.RETIRE else "acknowledged, for the same reason"
                cli.say(f"{subject.title}: already {said}")
                continue
            number = plural(len(subject.series), "series")
            said = f"{subject.title}: {'would be ' * options.dry_run}{did}"
            if subject.follows:
                said = f"The same for the {number} that fell with it."
            if options.dry_run:
                labels = [each.label for each in subject.series]
                about = f"{number}: {some(labels)}" if labels else subject.name
                cli.say(said, f"  {about}", f"  log: {log_path(directory, subject.system)}")
            else:
                written.add(append(directory, subject.system, [action]))
                cli.say(said)
                alert, count = subject.alert, len(subject.series)
                # not for a slow target or node, which has no series: it stands for its whole alert
                if kind == snapshot.ACKNOWLEDGE and alert and count and alert.members[count:]:
                    command = command_on(alert, site, kind, "--reason TEXT")
                    cli.say(
                        f"Alert {alert.number}, {alert.subject}, stays until most of its series "
                        f"are acknowledged; to acknowledge all at once: {command}"
                    )
        if written:
            _recorded(options)  # log the end of the alert before anything else can join it
    for path in sorted(written):
        cli.say(f"Logged in {path}; commit this file.")
    if written and kind != snapshot.UNDO:
        # name one alert by its number, as others may have the same name
        one = decided[0][0].number if len({each.called for each, *_ in decided}) == 1 else None
        system = f"--system {shlex.quote(options.system)}" if options.system else ""
        more_options = ("--all" * options.all_, system, "--reason TEXT")
        titles = [subject.title.split() for subject, *_ in decided]
        # after the action, an alert of missing samples is over and cannot be named any more
        shared = [word for word in titles[0] if all(word in title for title in titles)]
        several = " ".join(shared if options.all_ and shared else words)
        undo = command_text("undo", str(one) if one else several, *more_options)
        cli.say(f"To withdraw it: {undo}")
    if options.dry_run:
        cli.say("Dry run: nothing was written.")


def _decided(
    site: Snapshot, words: str, request: requests.Request, every: bool
) -> list[tuple[requests.Subject, Action | None, str]]:
    """Return each subject that `words` name, its action or None if in force, and the effect."""
    known, done = (*site.series, *site.retired), site.actions
    future: dict[SeriesKey, list[datetime]] = {}
    for sample in site.future:
        future.setdefault(sample.key, []).append(sample.when)
    subjects = requests.subjects_of(known, site.alerts, site.past)
    chosen = requests.selected(subjects, words, request, every=every, log=done)
    # each action gets a time of its own, to the microsecond: an undo refers to actions by time
    now = datetime.now(timezone.utc)
    each_once = enumerate(dict.fromkeys(each.called for each in chosen))
    times = {called: now + n * timedelta(microseconds=1) for n, called in each_once}
    actions = [
        (each, requests.action_of(each, request, known, done, times[each.called], future))
        for each in chosen
    ]
    if request.kind != snapshot.UNDO:
        until = f"{time_text(request.since)} UTC" if request.since else "now"
        return [(*each, _DONE[request.kind].format(until)) for each in actions]
    undone = [(*each, last) for each in actions if (last := requests.last_action(each[0], done))]
    newest = max(last.when for *_, last in undone)
    return [
        (subject, action, f"undone: {by.kind} of {time_text(by.when)} UTC by {by.who}: {by.reason}")
        for subject, action, by in undone
        if newest - by.when < _TOGETHER
    ]


def calibrate(
    options: cli.SiteOptions,
    series: Annotated[str, "TEXT", "Only series with TEXT in their name."] = "",
    since: Annotated[str | None, "TIME", f"Only runs since: {cli.WHEN}."] = None,
    yes: cli.YesOption = False,
    dry_run: cli.DryRunOption = False,
) -> None:
    """Propose bands from the site's own runs, and write them as a new epoch if you agree.

    A band is provisional from 20 healthy runs at one level, active from 60, and frozen at 200.
    Series with an open alert are left out. The exit status is 0, or 3 after an error.

    A band is the lower quartile, the median and the upper quartile, and a floor below which a
    healthy run hardly ever lies. An epoch is a span of time in which the samples of a series can be
    compared.
    """
    cli.require_report("iobands calibrate")
    judgement = judgement_of(options)
    for name in dict.fromkeys(each.key.system for each in judgement.snapshot.series):
        # an unusable file is left out of the judgement, so no band may be learned from it
        load_bands(options.config_of("bands"), name)
    found = list(learn(judgement, series, cli.time_of(since) if since else None))
    if not found:
        nothing = no_samples(judgement.snapshot)
        raise cli.failure(f"no series with {series!r} in its name" if series else nothing)
    for each in found:
        new, others = plural(len(each.learned), "new band"), plural(len(each.left_out), "series")
        cli.say(f"{each.system}: {new}, {others} unchanged")
        for learned in each.learned:
            _show(learned)
        for label, why in each.left_out:
            cli.say(f"  {label}: {why}")
    epochs = [(each.system, each.epoch) for each in found if each.epoch]
    _write(options.config_of("bands"), epochs, yes, dry_run)


def epoch(
    options: cli.UnjudgedOptions,
    name: Annotated[str, cli.argument("NAME", "The name of the epoch.")],
    reason: Annotated[str, "TEXT", "What has changed."],
    since: Annotated[str | None, "TIME", f"When it begins: {cli.WHEN}. [default: now]"] = None,
    keep_bands: Annotated[bool, "Keep the bands in force."] = False,
    yes: cli.YesOption = False,
    dry_run: cli.DryRunOption = False,
) -> None:
    """Begin an epoch: samples from now, or from TIME on, are not compared with earlier ones.

    Use it for a change that iobands cannot see, such as an upgrade of the file system. A new
    version of benchio, another fsync setting and a new major version of the suite begin an epoch by
    themselves.
    """
    directory, named = options.config_of("bands"), cli.system_of(options)
    begin = cli.time_of(since) if since else datetime.now(timezone.utc).replace(microsecond=0)
    known = load_bands(directory, named)
    for old in known.epochs:
        if name == old.name or begin == old.since:
            said = f"epoch {old.name!r} already begins at {old.since.isoformat()}"
            raise cli.failure(f"{said}; give another name or time")
    found = epoch_by_hand(name, begin, reason, known, keep_bands)
    for old in known.epochs:
        if old.bands and old.is_void([found]):
            cli.say(
                f"The bands of epoch {old.name!r} no longer apply: they were learned from earlier "
                "runs. To learn new ones: iobands calibrate"
            )
    # a system may have bands but no perflogs
    has_runs = (options.perflogs_directory / named).is_dir()
    if has_runs and (options.config is None or options.config.is_dir()):
        alerts = site_of(replace(options, system=named)).alerts
        ending = [f"{e.number} {e.subject}" for e in alerts if e.number and e.has_level]
        if ending:
            cli.say(
                "Runs before the epoch no longer count. Open alerts that end, unless runs of the "
                f"epoch alone show them: {', '.join(ending)}."
            )
    _write(directory, [(named, found)], yes, dry_run)


def _show(learned: Learned) -> None:
    band, before, correlation = learned.band, learned.before, learned.correlation
    runs = f"{band.runs} runs, {band.state}"
    cli.say(f"  {learned.label}: {runs}, in {band.unit}; [95 % interval]")
    for name in ("maximum", "upper_quartile", "median", "lower_quartile", "floor"):
        was = getattr(before, name) if before else None
        pair = band.intervals.get(name)
        interval = f" [{pair[0]:.15g}, {pair[1]:.15g}]" if pair else ""
        old = f", was {was:.15g}" if was is not None else ""
        cli.say(f"    {name.replace('_', ' '):15}{getattr(band, name):.15g}{interval}{old}")
    for note in learned.notes:
        cli.say(f"    {note}")
    if correlation:
        cli.say(f"    serial correlation {correlation:.2f}: the intervals are widened")


def _write(directory: Path, epochs: Sequence[tuple[str, Epoch]], yes: bool, dry_run: bool) -> None:
    if not epochs:
        cli.say("Nothing to write.")
        return
    for system, found in epochs:
        cli.say("", f"{bands_path(directory, system, found)}:")
        cli.show(epoch_yaml(system, found))
    if dry_run:
        cli.say("", "Dry run: nothing was written.")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise cli.failure("nothing was written: there is no terminal; give --yes or --dry-run")
        if not typer.confirm("\nWrite this?"):
            cli.say("Nothing was written.")
            return
    for system, found in epochs:
        cli.say(f"Written: {write_epoch(directory, system, found)}")
