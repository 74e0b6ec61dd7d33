"""The state of a site as monitoring plug-ins print it: one line, with performance data."""

from __future__ import annotations

from iobands.snapshot import Series, Snapshot
from iobands.views.format import printable, summary


def plugin_line(site: Snapshot) -> str:
    """Return the first line of the digest, and the newest rates behind a vertical bar."""
    text = printable(summary(site)).replace("|", "/")
    return " | ".join(filter(None, (text, " ".join(performance(site)))))


def performance(site: Snapshot) -> list[str]:
    """Return the newest rate of each series, in its unit, and its floor as the critical range.

    They have the form of Nagios and Icinga: `'label'=value;warning;critical;minimum`.
    """
    return [_datum(series) for series in site.series if series.status.value is not None]


def _datum(series: Series) -> str:
    # a label has no equals sign, a quote in it is doubled, and a bar would end the text
    label = printable(series.label).replace("=", " ").replace("|", "/").replace("'", "''")
    status = series.status
    critical = f"{status.band.floor:.6g}:" if status.band else ""
    return f"'{label}'={status.value:.6g};;{critical};0"
