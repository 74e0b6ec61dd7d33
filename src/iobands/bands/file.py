"""Reads `config/bands/<system>.yaml` (contract 3): a schema, and rules that it cannot express."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import combinations, combinations_with_replacement, pairwise
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import yaml

from iobands.bands.band import Band, Bands, Epoch, Judgement, Limit, Window, log_fence
from iobands.model import (
    MATCH_FIELDS,
    NUMERIC_FIELDS,
    RATIO_UNIT,
    VARIABLE_UNITS,
    Document,
    FileError,
    Steps,
    canonical,
    load_schema,
    one_of,
    parse_time,
    parse_yaml,
    path_part,
    read_content,
    unknown,
    utc_text,
)

_SCHEMA_FILE: Final = Path(__file__).with_name("bands.schema.yaml")
_LIMITS: Final = ("at_most", "at_least", "about")
#: The size of the runs behind a document's figure: without it, a band judges runs of any size.
_SIZES: Final = ("nodes", "tasks", "gib")
_OF_SIZE: Final = ("GiB/s", RATIO_UNIT)
_FIGURES: Final = ("floor", "lower_quartile", "median", "upper_quartile", "maximum")


def load_bands(directory: Path, system: str) -> Bands:
    """Read the bands of a system; without a file there is no epoch.

    They are in `<system>.yaml`, which people write, and in the files of `<system>/`, which
    `iobands calibrate` and `iobands epoch` add.

    Raises:
        FileError: a file cannot be read, or breaks contract 3 in any way.
    """
    own = directory / f"{path_part(system)}.yaml"
    # A file that begins with .# is the lock of an editor.
    found = (directory / path_part(system)).glob("*.yaml")
    others = sorted(path for path in found if not path.name.startswith(".#"))
    paths = [*([own] if own.exists() else []), *others]
    parts = [parse_bands(read_content(path), path, system) for path in paths]
    each = zip(parts, paths, strict=True)
    every = [(epoch, path) for part, path in each for epoch in part.epochs]
    for (one, first), (other, second) in combinations(every, 2):
        if first != second and (one.name == other.name or one.since == other.since):
            raise FileError(
                f"{second}: epoch {other.name!r} since {other.since.isoformat()} has the same name "
                f"or beginning as {one.name!r} in {first}; correct one"
            )
    least = next((part.least_change for part in parts if part.least_change is not None), None)
    windows = tuple(window for part in parts for window in part.maintenance)
    epochs = sorted((epoch for epoch, _ in every), key=lambda epoch: epoch.since)
    valid = (replace(each, bands=()) if each.is_void(epochs) else each for each in epochs)
    warnings = tuple(each for part in parts for each in part.warnings)
    return Bands(system, tuple(valid), least_change=least, maintenance=windows, warnings=warnings)


def parse_bands(content: bytes, path: Path, system: str | None = None) -> Bands:
    """Return the bands in `content`, which belongs in the file at `path`.

    They belong to `system`, or to the system in the file's name.

    Raises:
        FileError: as of `load_bands`.
    """
    schema = load_schema(_SCHEMA_FILE)
    newest = max(schema["properties"]["schema"]["enum"])
    document, left = parse_yaml(content, path).known_part(newest, schema, ("bands", "maintenance"))
    document.check(schema)
    named, system = document.value["system"], system or path.stem
    if named != system:
        problem = f"is {named!r}; rename the file to {named}.yaml, or correct it"
        raise document.error(["system"], problem)
    epochs = [_epoch(document, number) for number in range(len(document.value["epochs"]))]
    _refuse_twins(epochs, document)
    percent = document.value.get("least_change_percent")
    ordered = tuple(sorted(epochs, key=lambda epoch: epoch.since))
    least = None if percent is None else percent / 100
    entries = range(len(document.value.get("maintenance", [])))
    windows = tuple(_window(document, number) for number in entries)
    warnings = (*left, *_without_size(document))
    return Bands(system, ordered, least_change=least, maintenance=windows, warnings=warnings)


def _without_size(document: Document) -> Iterator[str]:
    """Yield a sentence for each epoch with published rates of runs of any size."""
    for number, epoch in enumerate(document.value["epochs"]):
        steps = ("epochs", number, "bands")
        for index, band in enumerate(epoch["bands"]):
            missing = [name for name in _SIZES if name not in band["match"]]
            if band.get("state") is None and band["unit"] in _OF_SIZE and missing:
                problem = f"does not name {', '.join(missing)}; add the values of the source"
                yield str(document.error([*steps, index, "match"], problem))


def _window(document: Document, number: int) -> Window:
    steps = ("maintenance", number)
    fields = document.value["maintenance"][number]
    begin, end = (_time(document, [*steps, name]) for name in ("from", "to"))
    if end <= begin:
        raise document.error([*steps, "to"], f"is not after from, {begin.isoformat()}; correct one")
    zone = fields.get("zone", "")
    if zone:
        try:
            ZoneInfo(zone)
        except (KeyError, ValueError, OSError):  # which it is depends on the text
            problem = f"is {zone!r}; write a time zone, such as Europe/Paris"
            raise document.error([*steps, "zone"], problem) from None
    names = tuple(fields.get("file_systems", ()))
    return Window(begin, end, fields["reason"], fields.get("repeat", ""), zone, names)


def _epoch(document: Document, number: int) -> Epoch:
    steps = ("epochs", number)
    fields = document.value["epochs"][number]
    since = _time(document, [*steps, "since"])
    judgements = [
        _judgement(document, (*steps, "bands", index), fields, band)
        for index, band in enumerate(fields["bands"])
    ]
    _refuse_ambiguity(judgements, document, steps)
    bands = tuple(each for each in judgements if isinstance(each, Band))
    limits = tuple(each for each in judgements if isinstance(each, Limit))
    reason, continues = fields.get("reason") or "", fields.get("continues", False)
    runs_since = _time(document, [*steps, "runs_since"]) if fields.get("runs_since") else None
    return Epoch(
        fields["name"], since, fields["source"], bands, reason, continues, runs_since, limits
    )


def _time(document: Document, steps: Sequence[str | int]) -> datetime:
    value = document.value
    for step in steps:
        value = value[step]
    try:
        return parse_time(value)
    except ValueError as error:
        raise document.error(list(steps), str(error)) from None


def _judgement(
    document: Document, steps: Steps, epoch: Mapping[str, Any], band: dict[str, Any]
) -> Judgement:
    check_match(document, [*steps, "match"], band["match"])
    variable = band["match"].get("variable")
    units = set(VARIABLE_UNITS.values()) if variable is None else {VARIABLE_UNITS[variable]}
    if band["unit"] not in units:
        raise document.error([*steps, "unit"], unknown(band["unit"], sorted(units)))
    fields: dict[str, Any] = {name: band.get(name) for name in ("match", "unit", "runs")}
    fields |= {"epoch": epoch["name"], "source": band.get("source") or epoch["source"]}
    for kind in _LIMITS:
        if kind in band:
            return Limit(**fields, kind=kind, value=float(band[kind]))
    figures = {name: float(band[name]) for name in _FIGURES if band.get(name) is not None}
    for (low_name, low), (high_name, high) in pairwise(figures.items()):
        if low > high:
            problem = f"is {low:g}, above {high_name} {high:g}; put them in order"
            raise document.error([*steps, low_name], problem)
    figures.setdefault("floor", log_fence(figures["lower_quartile"], figures["upper_quartile"]))
    if figures["floor"] <= 0:
        problem = "is too small to compute from these quartiles; give one"
        raise document.error([*steps, "floor"], problem)
    pairs = (band.get("intervals") or {}).items()
    intervals = {name: (float(low), float(high)) for name, (low, high) in pairs}
    for name, (low, high) in intervals.items():
        if name not in figures or not low <= figures[name] <= high:
            problem = f"is {low:g} to {high:g}, which does not contain the {name}"
            raise document.error([*steps, "intervals", name], problem)
    return Band(
        **fields,
        state=band.get("state"),
        lower_quartile=figures["lower_quartile"],
        median=figures["median"],
        upper_quartile=figures["upper_quartile"],
        maximum=figures.get("maximum"),
        floor=figures["floor"],
        intervals=intervals,
    )


def check_match(document: Document, steps: Steps, match: Mapping[str, object]) -> None:
    """Check the fields of a `match` and their values.

    Raises:
        FileError: a field is unknown, or has an impossible value.
    """
    system = document.value["system"]
    for name, wanted in match.items():
        problem = None
        if name not in MATCH_FIELDS:
            problem = f"is not a field; {one_of(name, MATCH_FIELDS)}"
        elif name in NUMERIC_FIELDS and isinstance(canonical(wanted), str):
            problem = f"is {wanted!r}; write a number"
        elif name == "variable" and wanted not in VARIABLE_UNITS:
            problem = unknown(wanted, VARIABLE_UNITS)
        elif name == "system" and canonical(wanted) != canonical(system):
            problem = f"is {wanted!r}, in the file of {system}; leave it out"
        if problem:
            raise document.error([*steps, name], problem)


def _refuse_ambiguity(bands: Sequence[Judgement], document: Document, steps: Steps) -> None:
    """Refuse two equally specific bands that can both apply to one series."""
    # grouped by the names that they match: few, even with a band for each of hundreds of series
    kinds: defaultdict[tuple[int, str, frozenset[str]], list[int]] = defaultdict(list)
    for number, band in enumerate(bands):
        kinds[len(band.wanted), band.unit, frozenset(band.wanted)].append(number)
    for one, other in combinations_with_replacement(kinds, 2):
        if one[:2] != other[:2]:
            continue
        shared = sorted(one[2] & other[2])
        known: dict[tuple[object, ...], int] = {}
        for number in kinds[one]:
            known.setdefault(tuple(bands[number].wanted[k] for k in shared), number)
        for number in kinds[other]:
            first = known.get(tuple(bands[number].wanted[k] for k in shared), number)
            if first != number:
                low, high = sorted((first, number))
                problem = f"and band {high + 1} can both apply to one series; name one field more"
                raise document.error([*steps, "bands", low], f"{problem} in one of them")


def _refuse_twins(epochs: Sequence[Epoch], document: Document) -> None:
    for (first, one), (second, other) in combinations(enumerate(epochs), 2):
        steps: Steps = ["epochs", second]
        if one.name == other.name:
            raise document.error(
                steps, f"is given twice, first as epoch {first + 1}; names must differ"
            )
        if one.since == other.since:
            problem = f"begins with epoch {one.name!r}, at {one.since.isoformat()}; correct one"
            raise document.error(steps, problem)


_SCHEMA: Final = 4
_SCHEMA_OF_LIMITS: Final = 6


def bands_path(directory: Path, system: str, epoch: Epoch) -> Path:
    """Return the file of an epoch of `system`."""
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in epoch.name)
    return directory / path_part(system) / f"{name}.yaml"


def epoch_yaml(system: str, epoch: Epoch) -> str:
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
    path = bands_path(directory, system, epoch)
    text = epoch_yaml(system, epoch)
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
