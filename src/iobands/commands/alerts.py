"""The commands by which people change what is judged: answers to alerts, bands and epochs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from enum import Enum
from pathlib import Path
from typing import Annotated, Final

import typer

from iobands.bands import Band, Epoch, Span, bands_path, epoch_yaml, load_bands, write_epoch
from iobands.commands.judging import judgement_of, site_of
from iobands.commands.options import (
    ByOption,
    ConfigOption,
    DryRunOption,
    PerflogsOption,
    SeriesArgument,
    SinceOption,
    SiteOptions,
    YesOption,
    failure,
    login_name,
    system_of,
    time_of,
)
from iobands.commands.status import recorded
from iobands.judge.calibrate import Learned, epoch_by_hand
from iobands.judge.calibrate import calibrate as learn
from iobands.judge.requests import (
    Request,
    RequestError,
    Subject,
    action_of,
    selected,
    subjects_of,
)
from iobands.snapshot import ACKNOWLEDGE, DISCARD, REBASELINE, RESOLVE, RETIRE, UNDO, SeriesKey
from iobands.source.action_log import append, log_path
from iobands.views import fitted, plural, some


class Verdict(str, Enum):
    """Whether a resolved alert was real, by a person's judgement."""

    REAL = "real"
    FALSE = "false"


@dataclass(frozen=True, kw_only=True)
class ActionOptions(SiteOptions):
    """The options of every action; see `SiteOptions`."""

    reason: Annotated[
        str,
        typer.Option("--reason", metavar="TEXT", help="Why: the cause, a ticket, who works on it."),
    ]
    by: ByOption = None
    every: Annotated[bool, typer.Option("--all", help="Everything that SERIES matches.")] = False
    dry_run: DryRunOption = False


_DONE: Final = {
    ACKNOWLEDGE: "acknowledged until it recovers or becomes worse",
    RESOLVE: "resolved; runs from the change until now no longer count, later ones do",
    REBASELINE: "rebaselined; earlier runs and bands no longer count",
    UNDO: "undone",
    RETIRE: "retired; no sample is expected until it is run again",
    DISCARD: "discarded; the sample stays in the perflog and is not judged",
}


def acknowledge(
    series: SeriesArgument,
    ticket: Annotated[
        str | None, typer.Option("--ticket", metavar="URL", help="The ticket about it.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option("--owner", metavar="NAME", help="Who takes care of it.")
    ] = None,
    *,
    options: ActionOptions,
) -> None:
    """Acknowledge an alert: from now on it is a warning, and no longer critical.

    If the series recovers and falls again, the alert is critical again. It also becomes critical if
    the level falls further, on as much evidence as a new alert needs. The exit status is 0 if the
    action was logged, and 3 if there is no such alert.
    """
    _log(replace(_request(ACKNOWLEDGE, options), ticket=ticket, owner=owner), series, options)


def resolve(
    series: SeriesArgument,
    since: SinceOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Resolve it although the newest run is low.")
    ] = False,
    verdict: Annotated[
        Verdict | None, typer.Option("--verdict", help="Whether the alert was real or false.")
    ] = None,
    *,
    options: ActionOptions,
) -> None:
    """Resolve an alert: its cause was repaired, now or at TIME.

    The alert ends. Runs from the change until the repair no longer count for detection or bands.
    Later runs are judged by the same baseline, so the alert returns if the repair did not help.
    """
    request = _request(RESOLVE, options, since)
    said = verdict.value if verdict else None
    _log(replace(request, force=force, verdict=said), series, options)


def rebaseline(
    series: SeriesArgument, since: SinceOption = None, *, options: ActionOptions
) -> None:
    """Take the level since a change, or since TIME, as the new baseline.

    Earlier runs and bands no longer count for these series. If a whole system has changed, use
    `iobands epoch`. Once there are 20 runs, `iobands calibrate` writes a new band.
    """
    _log(_request(REBASELINE, options, since), series, options)


def undo(series: SeriesArgument, *, options: ActionOptions) -> None:
    """Undo the last action on an alert or a series. Both stay in the log."""
    _log(_request(UNDO, options), series, options)


def retire(series: SeriesArgument, *, options: ActionOptions) -> None:
    """Retire a series that is no longer measured, so that no sample of it is missing.

    The series leaves the digest until its next sample.
    """
    _log(_request(RETIRE, options), series, options)


def discard(
    series: SeriesArgument,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="TIME", help="Day, minute or second. [default: the newest sample]"
        ),
    ] = None,
    *,
    options: ActionOptions,
) -> None:
    """Discard samples of a series, such as those with a wrong time or from a manual test.

    They stay in the perflog and are not judged.
    """
    request = replace(_request(DISCARD, options), at=_span_of(at) if at else None)
    _log(request, series, options)


def _span_of(text: str) -> Span:
    """Return the day, minute or second that `text` names."""
    begin = time_of(text, "--at")
    date, clock = len("2023-10-09"), len("T06:00:00")
    colons = text.strip()[date : date + clock].count(":")  # a blank may stand for the T
    length = timedelta(seconds=1) if colons > 1 else timedelta(minutes=1)
    if len(text.strip()) == date:
        length = timedelta(days=1)
    return Span(begin, begin + length - timedelta(microseconds=1))


def _request(kind: str, options: ActionOptions, since: str | None = None) -> Request:
    reason, who = (" ".join(text.split()) for text in (options.reason, options.by or login_name()))
    for option, text in (("--reason", reason), ("--by", who)):
        if not text:
            raise failure(f"{option} is empty; the log needs it")
    return Request(kind, who, reason, time_of(since) if since else None)


def _about(subject: Subject) -> str:
    """Return what an action would name: series, a target or a node."""
    names = [each.label for each in subject.series]
    return f"{plural(len(names), 'series')}: {some(names)}" if names else subject.name


def _log(request: Request, words: list[str], options: ActionOptions) -> None:
    """Log the actions, and print what each of them changed."""
    site = site_of(options) if options.dry_run else recorded(options).snapshot
    known = (*site.series, *site.retired)
    done = site.actions
    subjects = subjects_of(known, site.alerts, site.past)
    future: dict[SeriesKey, list[datetime]] = {}
    for sample in site.future:
        future.setdefault(sample.key, []).append(sample.when)
    try:
        chosen = selected(subjects, " ".join(words), request, every=options.every, log=done)
        # to the microsecond, as an undo names its action by time
        now = datetime.now(timezone.utc)
        actions = [(each, action_of(each, request, known, done, now, future)) for each in chosen]
    except RequestError as error:
        raise failure(str(error)) from error
    directory = options.config_of("alerts")
    written: set[Path] = set()
    for subject, action in actions:
        if action is None:
            known_already = {ACKNOWLEDGE: "already acknowledged, for the same reason"}
            typer.echo(f"{subject.title}: {known_already.get(request.kind, 'already retired')}")
        elif options.dry_run:
            said = f"{subject.title}: would be {_DONE[request.kind]}"
            where = f"  in {log_path(directory, subject.system)}, of {_about(subject)}"
            typer.echo(fitted([said, where]), nl=False)
        else:
            written.add(append(directory, subject.system, [action]))
            typer.echo(f"{subject.title}: {_DONE[request.kind]}")
    for path in sorted(written):
        typer.echo(f"Logged in {path}; commit this file.")
    if written and request.kind != UNDO:
        typer.echo("To withdraw it: iobands undo")
    if options.dry_run:
        typer.echo("Dry run: nothing was written.")


def calibrate(
    series: Annotated[
        str, typer.Option("--series", metavar="TEXT", help="Only series with TEXT in their name.")
    ] = "",
    since: SinceOption = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    *,
    options: SiteOptions,
) -> None:
    """Propose bands from the site's own runs, and write them as a new epoch if you agree.

    A band is provisional from 20 healthy runs at one level, active from 60, and frozen at 200.
    Series with an open alert are left out. The exit status is 0, or 3 after an error.

    A band is the lower quartile, the median and the upper quartile, and a floor below which a
    healthy run hardly ever lies. An epoch is a span of time in which the samples of a series can be
    compared.
    """
    judgement = judgement_of(options)
    for name in dict.fromkeys(each.key.system for each in judgement.snapshot.series):
        # an unusable file is left out of the judgement, so no band may be learned from it
        load_bands(options.config_of("bands"), name)
    found = list(learn(judgement, series, time_of(since) if since else None))
    if not found:
        raise failure("no series" + (f" with {series!r} in its name" if series else ""))
    for each in found:
        new, others = plural(len(each.learned), "new band"), plural(len(each.left_out), "series")
        typer.echo(f"{each.system}: {new}, {others} unchanged")
        for learned in each.learned:
            _show(learned)
        for left_out in each.left_out:
            typer.echo(f"  {left_out.label}: {left_out.why}")
    epochs = [(each.system, each.epoch) for each in found if each.epoch]
    _write(options.config_of("bands"), epochs, yes, dry_run)


def epoch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the epoch.")],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="What has changed.")],
    since: SinceOption = None,
    keep_bands: Annotated[
        bool, typer.Option("--keep-bands", help="Keep the bands in force.")
    ] = False,
    system: Annotated[
        str | None,
        typer.Option(
            "--system", metavar="NAME", help="The system. [default: the only one that ran]"
        ),
    ] = None,
    perflogs: PerflogsOption = None,
    config: ConfigOption = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Begin an epoch: samples from now, or from TIME on, are not compared with earlier ones.

    Use it for a change that iobands cannot see, such as an upgrade of the file system. A new
    version of benchio, another fsync setting and a new major version of the suite begin an epoch by
    themselves.
    """
    places = SiteOptions(perflogs, config)
    directory = places.config_of("bands")
    named = system_of(system, places.perflogs_directory, directory)
    begin = time_of(since) if since else datetime.now(timezone.utc).replace(microsecond=0)
    known = load_bands(directory, named)
    for old in known.epochs:
        if name == old.name or begin == old.since:
            raise failure(f"epoch {old.name!r} already begins at {old.since.isoformat()}")
    found = epoch_by_hand(name, begin, reason, known, keep_bands)
    for old in known.epochs:
        if old.bands and old.is_void([found]):
            typer.echo(
                f"The bands of epoch {old.name!r} no longer apply: they were learned from earlier "
                "runs. To learn new ones: iobands calibrate."
            )
    _write(directory, [(named, found)], yes, dry_run)


def _show(learned: Learned) -> None:
    band, before, correlation = learned.band, learned.before, learned.correlation
    runs = f"{band.runs} runs, {band.state}"
    typer.echo(f"  {learned.label}: {runs}, in {band.unit}; [95 % interval]")
    for name in ("maximum", "upper_quartile", "median", "lower_quartile", "floor"):
        typer.echo(f"    {name.replace('_', ' '):15}{_figure(band, before, name)}")
    for note in learned.notes:
        typer.echo(f"    {note}")
    if correlation:
        typer.echo(f"    serial correlation {correlation:.2f}: the intervals are widened")


def _figure(band: Band, before: Band | None, name: str) -> str:
    pair = band.intervals.get(name)
    interval = f" [{pair[0]:g}, {pair[1]:g}]" if pair else ""
    old = getattr(before, name) if before else None
    was = f", was {old:g}" if old is not None else ""
    return f"{getattr(band, name):g}{interval}{was}"


def _write(directory: Path, epochs: Sequence[tuple[str, Epoch]], yes: bool, dry_run: bool) -> None:
    """Write each epoch into a file of its own once the user agrees."""
    if not epochs:
        typer.echo("Nothing to write.")
        return
    for system, found in epochs:
        typer.echo(
            f"\n{bands_path(directory, system, found)}:\n{epoch_yaml(system, found)}", nl=False
        )
    if dry_run:
        typer.echo("\nDry run: nothing was written.")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise failure("nothing was written: there is no terminal; give --yes or --dry-run")
        if not typer.confirm("\nWrite this?"):
            typer.echo("Nothing was written.")
            return
    for system, found in epochs:
        typer.echo(f"Written: {write_epoch(directory, system, found)}")
