"""Reads `config/bands/<system>.yaml` (contract 3), with rules that a schema cannot express."""

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

from iobands import model
from iobands.bands.band import Band, Bands, Epoch, Judgement, Limit, Window, log_fence
from iobands.model import Document, FileError, Steps, canonical

_SCHEMA_FILE: Final = Path(__file__).with_name("bands.schema.yaml")
_LIMITS: Final = ("at_most", "at_least", "about")
#: The size of a run, which a published rate depends on; a band without it judges runs of any size.
_SIZES: Final = ("nodes", "tasks", "gib")
_OF_SIZE: Final = ("GiB/s", model.RATIO_UNIT)
_FIGURES: Final = ("floor", "lower_quartile", "median", "upper_quartile", "maximum")


def load_bands(directory: Path, system: str) -> Bands:
    """Read the bands of a system; without a file, it has no epochs.

    They are in `<system>.yaml`, which people write, and in the files of `<system>/`, which
    `iobands calibrate` and `iobands epoch` add. Raises FileError if one cannot be read, or breaks
    contract 3.
    """
    own = directory / f"{model.path_part(system)}.yaml"
    # A file that begins with .# is the lock of an editor.
    unread: list[model.Rejected] = []
    found = model.entries(directory / model.path_part(system), unread)
    for each in unread:
        raise FileError(str(each))
    others = [path for path in found if path.suffix == ".yaml" and path.name[:2] != ".#"]
    paths = [*([own] if own.exists() or own.is_symlink() else []), *others]
    parts = {path: parse_bands(model.read_content(path), path, system) for path in paths}
    every = [(epoch, path) for path, part in parts.items() for epoch in part.epochs]
    for (one, first), (other, second) in combinations(every, 2):
        if first != second and _are_twins(one, other):
            raise FileError(
                f"{second}: epoch {other.name!r} since {other.since.isoformat()} has the same name "
                f"or beginning as {one.name!r} in {first}; correct one"
            )
    least = [part.least_change for part in parts.values() if part.least_change is not None]
    epochs = sorted((epoch for epoch, _ in every), key=lambda epoch: epoch.since)
    return Bands(
        system,
        tuple(replace(each, bands=()) if each.is_void(epochs) else each for each in epochs),
        least_change=least[0] if least else None,
        maintenance=tuple(window for part in parts.values() for window in part.maintenance),
        warnings=tuple(each for part in parts.values() for each in part.warnings),
    )


def parse_bands(content: bytes, path: Path, system: str | None = None) -> Bands:
    """Return the bands in `content`, which belongs in the file at `path`.

    They belong to `system`, or to the system in the file's name. Raises FileError if the content
    breaks contract 3, or is about another system.
    """
    schema = model.load_schema(_SCHEMA_FILE)
    newest = max(schema["properties"]["schema"]["enum"])
    document, left = model.parse_yaml(content, path).known_part(
        newest, schema, ("bands", "maintenance")
    )
    document.check(schema)
    said, system = document.value, system or path.stem
    if said["system"] != system:
        problem = f"is {said['system']!r}; rename the file to {said['system']}.yaml, or correct it"
        raise document.error(["system"], problem)
    epochs = [_epoch(document, number) for number in range(len(said["epochs"]))]
    for (first, one), (second, other) in combinations(enumerate(epochs), 2):
        if _are_twins(one, other):
            problem = f"has the name or beginning of epoch {one.name!r} since"
            problem += f" {one.since.isoformat()}, which is epoch {first + 1}; correct one"
            raise document.error(["epochs", second], problem)
    percent = said.get("least_change_percent")
    windows = range(len(said.get("maintenance", [])))
    return Bands(
        system,
        tuple(sorted(epochs, key=lambda epoch: epoch.since)),
        least_change=None if percent is None else percent / 100,
        maintenance=tuple(_window(document, number) for number in windows),
        warnings=(*left, *_without_size(document)),
    )


def _are_twins(one: Epoch, other: Epoch) -> bool:
    return one.name == other.name or one.since == other.since


def _without_size(document: Document) -> Iterator[str]:
    """Yield a warning for each published band that does not name the size of its runs."""
    for number, epoch in enumerate(document.value["epochs"]):
        steps = ("epochs", number, "bands")
        for index, band in enumerate(epoch["bands"]):
            missing = [name for name in _SIZES if name not in band["match"]]
            if band.get("state") is None and band["unit"] in _OF_SIZE and missing:
                problem = f"does not name {', '.join(missing)}; add the values of the source"
                yield str(document.error([*steps, index, "match"], problem))


def _window(document: Document, number: int) -> Window:
    steps = ("maintenance", number)
    said = document.at(steps)
    begin, end = (_time(document, (*steps, name)) for name in ("from", "to"))
    if end <= begin:
        raise document.error([*steps, "to"], f"is not after from, {begin.isoformat()}; correct one")
    if zone := said.get("zone", ""):
        try:
            ZoneInfo(zone)
        except (KeyError, ValueError, OSError):  # depends on the text
            problem = f"is {zone!r}; write a time zone, such as Europe/Paris"
            raise document.error([*steps, "zone"], problem) from None
    names = tuple(said.get("file_systems", ()))
    return Window(begin, end, said["reason"], said.get("repeat", ""), zone, names)


def _epoch(document: Document, number: int) -> Epoch:
    steps = ("epochs", number)
    said = document.at(steps)
    judgements = [
        _judgement(document, (*steps, "bands", index), said) for index in range(len(said["bands"]))
    ]
    _refuse_ambiguity(judgements, document, steps)
    return Epoch(
        said["name"],
        _time(document, (*steps, "since")),
        said["source"],
        bands=tuple(each for each in judgements if isinstance(each, Band)),
        reason=said.get("reason") or "",
        continues=said.get("continues", False),
        runs_since=_time(document, (*steps, "runs_since")) if said.get("runs_since") else None,
        limits=tuple(each for each in judgements if isinstance(each, Limit)),
    )


def _time(document: Document, steps: Steps) -> datetime:
    try:
        return model.parse_time(document.at(steps))
    except ValueError as error:
        raise document.error(steps, str(error)) from None


def _judgement(document: Document, steps: Steps, epoch: Mapping[str, Any]) -> Judgement:
    band = document.at(steps)
    check_match(document, [*steps, "match"], band["match"])
    variable = band["match"].get("variable")
    known = model.VARIABLE_UNITS
    units = {*known.values()} if variable is None else {known[variable]}
    if band["unit"] not in units:
        raise document.error([*steps, "unit"], model.unknown(band["unit"], sorted(units)))
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
    intervals = {
        name: (float(a), float(b)) for name, (a, b) in (band.get("intervals") or {}).items()
    }
    for name, (low, high) in intervals.items():
        if name not in figures or not low <= figures[name] <= high:
            problem = f"is {low:g} to {high:g}, which does not contain the {name}"
            raise document.error([*steps, "intervals", name], problem)
    fields |= {"maximum": None, **figures, "state": band.get("state"), "intervals": intervals}
    return Band(**fields)


def check_match(document: Document, steps: Steps, match: Mapping[str, object]) -> None:
    """Check the fields of a `match` and their values, or raise FileError."""
    system = document.value["system"]
    for name, wanted in match.items():
        problem = None
        if name not in model.MATCH_FIELDS:
            problem = f"is not a field; {model.one_of(name, model.MATCH_FIELDS)}"
        elif name in model.NUMERIC_FIELDS and isinstance(canonical(wanted), str):
            problem = f"is {wanted!r}; write a number"
        elif name == "variable" and wanted not in model.VARIABLE_UNITS:
            problem = model.unknown(wanted, model.VARIABLE_UNITS)
        elif name == "system" and canonical(wanted) != canonical(system):
            problem = f"is {wanted!r}, in the file of {system}; leave it out"
        if problem:
            raise document.error([*steps, name], problem)


def _refuse_ambiguity(bands: Sequence[Judgement], document: Document, steps: Steps) -> None:
    """Refuse two equally specific bands that can both apply to one series."""
    # grouped by the names that they match: few, even with a band for each of hundreds of series
    kinds: defaultdict[tuple[int, str, bool, frozenset[str]], list[int]] = defaultdict(list)
    for number, band in enumerate(bands):
        is_of_case = band.wanted.get("case") is not None  # else without a case
        kinds[len(band.wanted), band.unit, is_of_case, frozenset(band.wanted)].append(number)
    for one, other in combinations_with_replacement(kinds, 2):
        if one[:3] != other[:3]:
            continue
        shared = sorted(one[3] & other[3])
        known: dict[tuple[object, ...], int] = {}
        for number in kinds[one]:
            known.setdefault(tuple(bands[number].wanted[k] for k in shared), number)
        for number in kinds[other]:
            first = known.get(tuple(bands[number].wanted[k] for k in shared), number)
            if first != number:
                low, high = sorted((first, number))
                problem = f"and band {high + 1} can both apply to one series; name one field more"
                raise document.error([*steps, "bands", low], f"{problem} in one of them")


_SCHEMA: Final = 4
_SCHEMA_OF_LIMITS: Final = 6


def bands_path(directory: Path, system: str, epoch: Epoch) -> Path:
    """Return the file of an epoch of `system`."""
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in epoch.name)
    return directory / model.path_part(system) / f"{name}.yaml"


def epoch_yaml(system: str, epoch: Epoch) -> str:
    """Return an epoch as the text of a bands file."""
    said = {
        "name": epoch.name,
        "since": model.utc_text(epoch.since),
        "source": epoch.source,
        "reason": epoch.reason,
        "continues": epoch.continues,
        "runs_since": epoch.runs_since and model.utc_text(epoch.runs_since),
    }
    given = {name: value for name, value in said.items() if value}
    bands = [_entry(each, epoch) for each in (*epoch.bands, *epoch.limits)]
    content = {
        "schema": _SCHEMA_OF_LIMITS if epoch.limits else _SCHEMA,
        "system": system,
        "epochs": [{**given, "bands": bands}],
    }
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)


def write_epoch(directory: Path, system: str, epoch: Epoch) -> Path:
    """Write an epoch into a new file and return its path.

    Raises FileError if the file exists or cannot be written, or the epoch breaks contract 3.
    """
    path = bands_path(directory, system, epoch)
    text = epoch_yaml(system, epoch)
    parse_bands(text.encode(), path, system)
    if path.exists():
        raise FileError(f"{path}: already exists; choose another name")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        model.replace_file(path, text.encode())
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error
    return path


def _entry(band: Judgement, epoch: Epoch) -> dict[str, object]:
    said: dict[str, object]
    if isinstance(band, Limit):
        said = {band.kind: band.value, "runs": band.runs}
    else:
        names = (*_FIGURES, "runs", "state", "intervals")
        said = {name: getattr(band, name) for name in names if getattr(band, name)}
    said |= {} if band.source == epoch.source else {"source": band.source}
    return {"match": dict(band.match), "unit": band.unit, **said}
