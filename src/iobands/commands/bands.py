"""The commands that change bands: `iobands calibrate` and `iobands epoch`.

Each shows what it would write and asks. May know learning and its errors; no analysis here.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iobands.bands import Band
from iobands.commands.options import (
    AdapterOption,
    AlarmsOption,
    BandsOption,
    DryRunOption,
    PerflogsOption,
    SinceOption,
    SystemOption,
    YesOption,
    default_path,
    failure,
    time_of,
)
from iobands.readers.adapters import AdapterError
from iobands.reporting.format import plural
from iobands.yaml_file import FileError

if TYPE_CHECKING:
    from iobands.yaml_change import Change


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command()(calibrate)
    app.command()(epoch)


def calibrate(
    perflogs: PerflogsOption = None,
    bands: BandsOption = None,
    alarms: AlarmsOption = None,
    system: SystemOption = None,
    adapter: AdapterOption = None,
    series: Annotated[
        str, typer.Option("--series", metavar="TEXT", help="Only series with TEXT in their name.")
    ] = "",
    since: SinceOption = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Propose bands from the site's own history, and write them once you agree.

    A band is provisional from 20 healthy runs of one level, active from 60 and frozen at 200.
    Series under an open alarm are left out. The old epochs stay; the new bands hold from now on.

    The exit status is 0, whether something was written or not, and 3 for an error.
    """
    from iobands.learning import calibrate as learn  # noqa: PLC0415 (slow to load)

    begin = time_of(since) if since else None
    logs = perflogs or default_path(Path("perflogs"))
    try:
        found = list(
            learn(
                logs,
                bands or default_path(Path("config/bands")),
                now=_now(),
                system=system,
                part=series,
                since=begin,
                adapter=adapter,
                alarms=alarms or default_path(Path("config/alarms")),
            )
        )
    except FileNotFoundError:
        raise failure(f"{logs}: no perflogs there; measure first with `iobands run`") from None
    except OSError as error:
        raise failure(f"{error.filename}: {error.strerror}") from error
    except (FileError, AdapterError) as error:
        raise failure(str(error)) from error
    if not found:
        raise failure(f"{logs}: no series" + (f" with {series!r} in its name" if series else ""))
    for one in found:
        typer.echo(
            f"{one.system}: {plural(len(one.learnt), 'new band')}"
            f"{' for runs from now on' if one.learnt else ''}, "
            f"{plural(len(one.left_out), 'series')} as before"
        )
        for learnt in one.learnt:
            _show(learnt.label, learnt.band, learnt.before)
            for note in (learnt.proposal.why, *learnt.notes):
                typer.echo(f"    {note}")
            share = learnt.proposal.below_maximum
            typer.echo(f"    at least {share:.1%} of runs stay below the maximum (95 % confidence)")
            if learnt.proposal.correlation:
                phi = learnt.proposal.correlation
                typer.echo(f"    serial correlation {phi:.2f}: the intervals are wider for it")
        for left_out in one.left_out:
            typer.echo(f"  {left_out.label}: {left_out.why}")
    _write([one.change for one in found if one.change], yes, dry_run)


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
    bands: BandsOption = None,
    adapter: AdapterOption = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Begin an epoch: samples from now, or since TIME, are not compared with earlier ones.

    For what iobands cannot see itself: a repair, an upgrade, a new normal. A change of the kernel,
    of fsync or of the suite's first number is seen without it.
    """
    from iobands.learning import epoch_by_hand  # noqa: PLC0415 (slow to load)

    directory = bands or default_path(Path("config/bands"))
    begin = time_of(since) if since else _now()
    runs = _runs(perflogs or default_path(Path("perflogs")), begin, adapter)
    system = _system(system, sorted(path.stem for path in directory.glob("*.yaml")), sorted(runs))
    try:
        change = epoch_by_hand(
            directory, system, name, reason=reason, since=begin, keep_bands=keep_bands
        )
    except FileError as error:
        raise failure(str(error)) from error
    if system in runs:
        before, after = (plural(number, "sample") for number in runs[system])
        typer.echo(f"{system}: {before} from before {begin.isoformat()}, {after} since")
    _write([change], yes, dry_run)


def _runs(perflogs: Path, since: datetime, adapter: str | None) -> dict[str, tuple[int, int]]:
    """Return how many samples each system has on either side of `since`, if any were read."""
    from iobands.learning import runs_by_system  # noqa: PLC0415 (slow to load)

    try:
        return runs_by_system(perflogs, since, adapter)
    except FileNotFoundError:
        return {}  # an epoch may begin before the first run
    except OSError as error:
        raise failure(f"{error.filename}: {error.strerror}") from error
    except AdapterError as error:
        raise failure(str(error)) from error


def _system(wanted: str | None, with_bands: Sequence[str], with_runs: Sequence[str]) -> str:
    """Return the system that is meant, or end with a message that lists the known ones."""
    known = sorted({*with_bands, *with_runs})
    if wanted is None:
        # bands of other sites lie in the repository as examples
        likely = list(with_runs or known)
        if len(likely) == 1:
            return likely[0]
        raise failure(f"name the --system; known are {', '.join(known) or 'none'}")
    if with_runs and wanted not in known:
        raise failure(f"there is no system {wanted}; known are {', '.join(known)}")
    return wanted


def _show(label: str, band: Band, before: Band | None) -> None:
    runs = f"{band.runs} runs, {band.state}"
    typer.echo(f"  {label}: {runs}, in {band.unit}; in brackets 95 %")
    for name in ("maximum", "upper_quartile", "median", "lower_quartile", "floor"):
        figure = getattr(band, name)
        low_high = band.intervals.get(name)
        interval = f" [{low_high[0]:g}, {low_high[1]:g}]" if low_high else ""
        old = getattr(before, name) if before else None
        was = f", was {old:g}" if old is not None else ""
        typer.echo(f"    {name.replace('_', ' '):15}{figure:g}{interval}{was}")


def _write(changes: Sequence[Change], yes: bool, dry_run: bool) -> None:
    if not changes:
        typer.echo("Nothing to write.")
        return
    for change in changes:
        typer.echo(f"\n{change.diff()}", nl=False)
    if dry_run:
        typer.echo("\nNothing was written, as this is a dry run.")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise failure("nothing was written: there is nobody to ask; give --yes or --dry-run")
        if not typer.confirm("\nWrite this?"):
            typer.echo("Nothing was written.")
            return
    for change in changes:
        try:
            change.write()
        except FileError as error:
            raise failure(str(error)) from error
        typer.echo(f"Written: {change.path}")


def _now() -> datetime:
    return datetime.now(timezone.utc).replace(microsecond=0)
