"""The commands that add bands: `iobands calibrate` and `iobands epoch`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer

from iobands.bands import Band, Epoch, bands_path, epoch_yaml, load_bands, write_epoch
from iobands.commands.options import (
    ConfigOption,
    DryRunOption,
    PerflogsOption,
    SinceOption,
    SiteOptions,
    YesOption,
    failure,
    judgement_of,
    system_of,
    time_of,
)
from iobands.judge.calibrate import Learned, epoch_by_hand
from iobands.judge.calibrate import calibrate as learn
from iobands.views import plural


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
    band, before, correlation = learned.band, learned.before, learned.proposal.correlation
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
