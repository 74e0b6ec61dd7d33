"""The static page: HTML with figures beside it, which needs no server."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from iobands import __version__
from iobands.model.series import slug
from iobands.reporting import format as texts
from iobands.reporting.digest import details, not_measured, number, sections, subject
from iobands.reporting.figures import MARKS, time_series
from iobands.reporting.table import RECENT, sparkline
from iobands.site.site import Site

_FIGURES: Final = "figures"
_SYMBOLS: Final = {
    "above": "▲",
    "within": "●",
    "below": "▼",
    "collapsed": "✖",
    "no band": "○",
    "healthy": "✔",
    "improved": "▲",
    "watch": "▼",
    "degraded": "✖",
    "incident": "✖",
    "no data": "?",
    "unfit": "?",
    "calibrating": "…",
    "failed": "✖",
}
_PUBLIC: Final = 0o644


def write_page(site: Site, directory: Path) -> Path:
    """Write the page and its figures below `directory`, and return the page's path.

    Each file is replaced at once, and the page comes last: a reader meanwhile finds figures for
    all that it shows.

    Raises:
        OSError: the directory cannot be written.
    """
    figures = directory / _FIGURES
    figures.mkdir(parents=True, exist_ok=True)
    for series in site.series:
        if series.status.runs:
            _replace(figures / f"{slug(series.key)}.svg", time_series(series, site.now))
    page = directory / "index.html"
    _replace(page, render(site))
    return page


def render(site: Site) -> str:
    """Return the page as HTML."""
    environment = Environment(
        loader=PackageLoader("iobands.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        figure=texts.figure,
        time=texts.time_text,
        printable=texts.printable,
        css=lambda word: word.replace(" ", "-"),
    )
    return environment.get_template("page.html").render(
        site=site,
        texts=texts,
        status_word=texts.WORDS[site.exit_status],
        sections=sections(site),
        details=details,
        number=number,
        subject=subject,
        not_measured=not_measured(site),
        quiet={key for alert in site.alerts if alert.is_quiet for key in alert.keys},
        any_in_effect=any(series.in_effect.brief() for series in site.series),
        figures=_FIGURES,
        slug=slug,
        symbols=_SYMBOLS,
        colours={verdict: colour for verdict, (_, colour) in MARKS.items()},
        trend=lambda series: sparkline(series.history.values[-RECENT:].tolist()),
        version=__version__,
    )


def _replace(path: Path, text: str) -> None:
    """Write `text` to `path` so that a reader sees the old file or the new one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as stream:
            stream.write(text)
        temporary.chmod(_PUBLIC)  # mkstemp's own mode hides the page from a web server
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
