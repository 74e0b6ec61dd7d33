"""The commands that add bands: `iobands calibrate` and `iobands epoch`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer

from iobands.bands import Band, Epoch, load_bands
from iobands.bands.file import epoch_text, path_of, write_epoch
from iobands.commands.options import (
    ConfigOption,
    DryRunOption,
    PerflogsOption,
    SinceOption,
    SiteOptions,
    YesOption,
    failure,
    judgement_of,
    time_of,
)
from iobands.judge.calibrate import Learned, epoch_by_hand
from iobands.judge.calibrate import calibrate as learn
from iobands.views.format import plural


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
    """Propose bands from the site's own runs, and write them as a new epoch once you agree.

    A band is provisional from 20 healthy runs of one level, active from 60 and frozen at 200.
    Series with an open alert are left out. The exit status is 0, and 3 for an error.
    """
    judgement = judgement_of(options)
    for name in dict.fromkeys(each.key.system for each in judgement.snapshot.series):
        # the site is judged without a file that cannot be used: nothing may be learned from that
        load_bands(options.config_of("bands"), name)
    found = list(learn(judgement, series, time_of(since) if since else None))
    if not found:
        raise failure("no series" + (f" with {series!r} in its name" if series else ""))
    for each in found:
        new, others = plural(len(each.learned), "new band"), plural(len(each.left_out), "series")
        typer.echo(f"{each.system}: {new}, {others} as before")
        for learned in each.learned:
            _show(learned)
        for left_out in each.left_out:
            typer.echo(f"  {left_out.label}: {left_out.why}")
    epochs = [(each.system, each.epoch) for each in found if each.epoch]
    _write(options.config_of("bands"), epochs, yes, dry_run)


def epoch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the epoch is called.")],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="What has changed.")],
    since: SinceOption = None,
    keep_bands: Annotated[
        bool, typer.Option("--keep-bands", help="The bands in force hold in it too.")
    ] = False,
    system: Annotated[
        str | None,
        typer.Option(
            "--system", metavar="NAME", help="Of this system. [default: the only one that ran]"
        ),
    ] = None,
    perflogs: PerflogsOption = None,
    config: ConfigOption = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Begin an epoch: samples from now, or since TIME, are not compared with earlier ones.

    For what iobands cannot see itself, such as an upgrade of the file system. A change of the
    kernel, of fsync or of the suite's first number is seen without it.
    """
    places = SiteOptions(perflogs, config)
    directory = places.config_of("bands")
    named = _system(system, places.perflogs_directory, directory)
    begin = time_of(since) if since else datetime.now(timezone.utc).replace(microsecond=0)
    known = load_bands(directory, named)
    for old in known.epochs:
        if name == old.name or begin == old.since:
            raise failure(f"there is an epoch {old.name!r} since {old.since.isoformat()} already")
    found = epoch_by_hand(name, begin, reason, known, keep_bands)
    for old in known.epochs:
        if old.bands and old.is_void([found]):
            typer.echo(
                f"The bands of epoch {old.name!r} are void: they were learned from runs of before. "
                "`iobands calibrate` learns others."
            )
    _write(directory, [(named, found)], yes, dry_run)


def _system(wanted: str | None, perflogs: Path, bands: Path) -> str:
    """Return the system that is meant, or end with a message that lists the known ones."""
    ran = [path.name for path in perflogs.glob("*") if path.is_dir()]
    learned = [path.stem for path in bands.glob("*") if path.is_dir() or path.suffix == ".yaml"]
    known = sorted({*ran, *learned})
    # The repository has bands of other sites as examples.
    meant = [wanted] if wanted else ran or known
    if len(meant) != 1:
        raise failure(f"name the --system; known are {', '.join(known) or 'none'}")
    if ran and meant[0] not in known:
        raise failure(f"there is no system {wanted}; known are {', '.join(known)}")
    return meant[0]


def _show(learned: Learned) -> None:
    band, before, correlation = learned.band, learned.before, learned.proposal.correlation
    runs = f"{band.runs} runs, {band.state}"
    typer.echo(f"  {learned.label}: {runs}, in {band.unit}; 95 % in brackets")
    for name in ("maximum", "upper_quartile", "median", "lower_quartile", "floor"):
        typer.echo(f"    {name.replace('_', ' '):15}{_figure(band, before, name)}")
    for note in learned.notes:
        typer.echo(f"    {note}")
    if correlation:
        typer.echo(f"    serial correlation {correlation:.2f}: the intervals are wider for it")


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
        typer.echo(f"\n{path_of(directory, system, found)}:\n{epoch_text(system, found)}", nl=False)
    if dry_run:
        typer.echo("\nNothing was written: this is a dry run.")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise failure("nothing was written: no terminal to ask on; give --yes or --dry-run")
        if not typer.confirm("\nWrite this?"):
            typer.echo("Nothing was written.")
            return
    for system, found in epochs:
        typer.echo(f"Written: {write_epoch(directory, system, found)}")
