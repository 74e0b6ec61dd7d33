"""The static page: a site's survey as HTML with its figures beside it, for no server at all.

May know: surveys, how they are worded, and figures.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from iobands import __version__
from iobands.alerts.pools import Pool
from iobands.reporting.collapse_views import LESS_OFTEN, MORE_OFTEN, change_text, name_of, rate_text
from iobands.reporting.concerns import acknowledged_concerns, concerns, skipped
from iobands.reporting.digest_table import sparkline
from iobands.reporting.explain_pool import explain_pool
from iobands.reporting.figures import MARKS, time_series
from iobands.reporting.figures_pool import pool_evidence
from iobands.reporting.format import (
    acts_told,
    band_facts,
    band_text,
    epoch_text,
    figure,
    intervals_text,
    printable,
    state_text,
    summary,
    time_text,
)
from iobands.series import slug
from iobands.status.survey import Survey

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
    "no data": "?",
    "unfit": "?",
    "calibrating": "…",
    "failed": "✖",
    MORE_OFTEN: "▼",
    LESS_OFTEN: "▲",
}
_RECENT: Final = 20
_PUBLIC: Final = 0o644


def write_page(survey: Survey, directory: Path) -> Path:
    """Write the page and its figures below `directory`, and return the page's path.

    Each file takes the place of its former self at once, and the page comes last, so that
    whoever reads it meanwhile finds figures for all that it shows.

    Raises:
        OSError: the directory cannot be written.
    """
    figures = directory / _FIGURES
    figures.mkdir(parents=True, exist_ok=True)
    for series in (each for each in survey.series if each.status.runs):
        _replace(figures / f"{slug(series.key)}.svg", time_series(series, survey.now))
    for pool in _pools(survey):
        drawn = pool_evidence(explain_pool(survey, pool), survey.now).decode()
        _replace(figures / f"{pool.slug}.svg", drawn)
    page = directory / "index.html"
    _replace(page, render(survey))
    return page


def render(survey: Survey) -> str:
    """Return the page as HTML."""
    environment = Environment(
        loader=PackageLoader("iobands.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(figure=figure, time=time_text, printable=printable, css=_css)
    return environment.get_template("index.html").render(
        survey=survey,
        summary=summary(survey),
        status_word=summary(survey).split(":")[0].split()[-1],
        concerns=concerns(survey),
        pools=_pools(survey),
        skipped=skipped(survey),
        acknowledged=acknowledged_concerns(survey),
        any_in_effect=any(series.in_effect.brief() for series in survey.series),
        figures=_FIGURES,
        slug=slug,
        symbols=_SYMBOLS,
        colours={verdict: colour for verdict, (_, colour) in MARKS.items()},
        trend=lambda series: sparkline(series.history.values[-_RECENT:].tolist()),
        band_text=lambda status: band_text(status.band, status.provisional),
        band_facts=lambda status: band_facts(status.band, status.provisional),
        intervals_text=intervals_text,
        epoch_text=epoch_text,
        state_text=state_text,
        acts_told=acts_told,
        rate_text=rate_text,
        change_text=change_text,
        name_of=name_of,
        version=__version__,
    )


def _pools(survey: Survey) -> list[Pool]:
    """Return the pools whose series changed in common, each once."""
    return list({common.name: common.pool for common in survey.common}.values())


def _css(word: str) -> str:
    return word.replace(" ", "-")


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
