"""Writes an epoch as a bands file of its own: nothing that a person wrote is rewritten."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml

from iobands.bands.band import Band, Judgement, Limit
from iobands.bands.file import parse_bands
from iobands.bands.selection import Epoch
from iobands.model.schema import FileError
from iobands.model.series import path_part
from iobands.model.times import utc_text

_SCHEMA: Final = 4
_SCHEMA_OF_LIMITS: Final = 6


def path_of(directory: Path, system: str, epoch: Epoch) -> Path:
    """Return the file of an epoch of `system`."""
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in epoch.name)
    return directory / path_part(system) / f"{name}.yaml"


def epoch_text(system: str, epoch: Epoch) -> str:
    """Return an epoch as the text of a bands file."""
    fields: dict[str, object] = {
        "name": epoch.name,
        "since": utc_text(epoch.since),
        "source": epoch.source,
    }
    if epoch.reason:
        fields["reason"] = epoch.reason
    if epoch.continues:
        fields["continues"] = True
    if epoch.runs_since:
        fields["runs_since"] = utc_text(epoch.runs_since)
    fields["bands"] = [_fields(each, epoch) for each in (*epoch.bands, *epoch.limits)]
    content = {
        "schema": _SCHEMA_OF_LIMITS if epoch.limits else _SCHEMA,
        "system": system,
        "epochs": [fields],
    }
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)


def write_epoch(directory: Path, system: str, epoch: Epoch) -> Path:
    """Write an epoch into a new file and return its path.

    Raises:
        FileError: the file exists or cannot be written, or the epoch breaks contract 3.
    """
    path = path_of(directory, system, epoch)
    text = epoch_text(system, epoch)
    parse_bands(text.encode(), path, system)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error
    return path


def _fields(band: Judgement, epoch: Epoch) -> dict[str, object]:
    fields: dict[str, object] = {"match": dict(band.match), "unit": band.unit, **_figures(band)}
    fields["runs"] = band.runs
    if isinstance(band, Band):
        fields |= {"state": band.state} if band.state else {}
        if band.intervals:
            fields["intervals"] = {name: list(pair) for name, pair in band.intervals.items()}
    if band.source != epoch.source:
        fields["source"] = band.source
    return fields


def _figures(band: Judgement) -> dict[str, float]:
    if isinstance(band, Limit):
        return {band.kind: band.value}
    names = ("floor", "lower_quartile", "median", "upper_quartile", "maximum")
    figures = {name: getattr(band, name) for name in names}
    return {name: value for name, value in figures.items() if value is not None}
