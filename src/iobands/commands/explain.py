"""The command `iobands explain`: why a series is in its state, or what an alert consists of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iobands.commands.options import (
    PastSiteOptions,
    SeriesArgument,
    failure,
    require_report,
    site_of,
)
from iobands.model import NODE, naming
from iobands.views.explain import chosen, explanation, name_of
from iobands.views.format import nearest
from iobands.views.layout import output_width


def explain(
    words: SeriesArgument,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", metavar="FILE", help="Also draw a figure, .svg or .png."),
    ] = None,
    *,
    options: PastSiteOptions,
) -> None:
    """Explain the state of a series or an alert: since when, how certain, what else moved.

    For an alert shared by several series, the output lists which of them moved and which did not.
    The exit status is 0, or 3 if SERIES matches nothing or several.

    Evidence is a logarithm: n nats for a drop mean that the runs are e^n times as likely after a
    drop as without one. Power is how soon a drop would be reported. The floor is the rate below
    which a healthy run hardly ever lies. An epoch is a span of time in which the samples of a
    series can be compared.
    """
    form = figure.suffix[1:].lower() if figure else ""
    if figure and form not in {"svg", "png"}:
        raise failure(f"{figure}: give --figure a file that ends in .svg or .png")
    if figure:
        require_report("iobands explain --figure")
    site = site_of(options, with_power=True)
    wanted = " ".join(words)
    found = chosen(site, wanted)
    if len(found) > 1:
        names = nearest([name_of(each) for each in found], wanted)
        raise failure(f"{wanted} matches {len(found)} names; give more words:{names}")
    if not found and not site.series:
        raise failure(f"there are no samples before {site.now:%Y-%m-%d %H:%M} UTC")
    if not found and wanted.isdecimal():
        raise failure(f"no alert has the number {wanted}; list all with: iobands alerts --all")
    if not found:
        for place in site.places:
            if wanted in map(place.name_of, place.peers()):
                nodes = " --nodes" if place.kind == NODE else ""
                raise failure(f"{wanted} has no alert; list all with: iobands targets{nodes}")
        names = nearest([series.label for series in site.series], wanted)
        raise failure(f"no series or alert is named {wanted}; the series are:{names}")
    typer.echo(explanation(site, found[0], output_width()), nl=False)
    if figure:
        from iobands.views.figures import evidence  # noqa: PLC0415 (matplotlib is slow to load)

        drawn = evidence(site, found[0], form)
        if drawn is None:
            raise failure(f"{wanted} has no sample to draw")
        with naming(figure):
            figure.write_bytes(drawn)
        typer.echo(f"Figure: {figure.resolve()}")
