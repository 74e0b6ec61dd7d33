"""Reading `config/bands/<system>.yaml` (contract 3), and saying what is wrong with it.

Both ReFrame checks and iobands' analysis read the bands here. May know: PyYAML, the standard
library, bands and the contracts' vocabulary; nothing of ReFrame, pandas or perflogs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations, combinations_with_replacement, pairwise
from pathlib import Path
from typing import Final, cast

from iobands.bands import ACTIVE, FROZEN, PROVISIONAL, Band, Bands, Epoch, log_fence
from iobands.vocabulary import MATCH_FIELDS, NUMERIC_FIELDS, VARIABLE_UNITS, canonical
from iobands.yaml_file import FileError, Place, content_of, parse

#: What a file becomes at the least that is added to; those of every schema in `SCHEMAS` are read.
SCHEMA: Final = 2
SCHEMAS: Final = (1, 2, 3)

_FILE_KEYS: Final = ("schema", "system", "epochs")
_EPOCH_KEYS: Final = ("name", "since", "source", "bands")
_BAND_KEYS: Final = ("match", "unit", "lower_quartile", "median", "upper_quartile")
_BAND_OPTIONS: Final = ("maximum", "floor", "runs")
# what schema 2 added
_EPOCH_OPTIONS_2: Final = ("reason", "continues")
_BAND_OPTIONS_2: Final = ("state", "intervals", "source")
# what schema 3 added
_FILE_OPTIONS_3: Final = ("least_change_percent",)
_STATES: Final = (PROVISIONAL, ACTIVE, FROZEN)
_FIGURES: Final = ("floor", "lower_quartile", "median", "upper_quartile", "maximum")


class BandsError(FileError):
    """A bands file that cannot be used; the message says where, what is wrong and what to do."""


def load_bands(path: Path) -> Bands:
    """Read the bands of the system after which the file at `path` is named.

    Raises:
        BandsError: the file cannot be read, or breaks contract 3 in any way. Whatever can be
            wrong with bands is found here, and not when a sample meets them.
    """
    return parse_bands(content_of(path, BandsError), path)


def parse_bands(content: bytes, path: Path) -> Bands:
    """Return the bands that `content` says, which stands or shall stand in the file at `path`.

    Raises:
        BandsError: as of `load_bands`.
    """
    at = Place(str(path), BandsError)
    top = at.mapping(parse(content, path, BandsError), _FILE_KEYS, _FILE_OPTIONS_3)
    schema = at.schema(top, SCHEMAS)
    if schema < 3:  # noqa: PLR2004
        at.mapping(top, _FILE_KEYS)
    system = at.system(top, path)
    epochs = [
        _epoch(item, at, index, system, schema)
        for index, item in enumerate(at.items(top, "epochs"), 1)
    ]
    _refuse_twins(epochs, at)
    ordered = tuple(sorted(epochs, key=lambda epoch: epoch.since))
    return Bands(system, ordered, least_change=_least_change(top, at))


def _least_change(fields: Mapping[str, object], at: Place) -> float | None:
    """Return by which share a level must differ to matter, None where it does not say."""
    name = "least_change_percent"
    percent = fields.get(name)
    if percent is None:
        return None
    if isinstance(percent, bool) or not isinstance(percent, int | float) or not 0 <= percent < 100:  # noqa: PLR2004
        raise at.error(name, f"must be a number from 0 to below 100, not {percent!r}")
    return percent / 100


def _epoch(item: object, at: Place, index: int, system: str, schema: int) -> Epoch:
    place = at.inside(f"epoch {index}")
    fields = place.mapping(item, _EPOCH_KEYS, _EPOCH_OPTIONS_2 if schema > 1 else ())
    name = place.text(fields, "name")
    place = at.inside(f"epoch {name!r}")
    since = place.time(fields, "since")
    source = place.text(fields, "source")
    reason = place.text(fields, "reason") if fields.get("reason") is not None else ""
    continues = fields.get("continues", False)
    if not isinstance(continues, bool):
        raise place.error("continues", f"must be true or false, not {continues!r}")
    options = (*_BAND_OPTIONS, *(_BAND_OPTIONS_2 if schema > 1 else ()))
    bands = [
        _band(band, place.inside(f"band {number}"), Epoch(name, since, source, ()), system, options)
        for number, band in enumerate(place.items(fields, "bands"), 1)
    ]
    _refuse_ambiguity(bands, place)
    return Epoch(name, since, source, tuple(bands), reason, continues)


def _band(item: object, at: Place, epoch: Epoch, system: str, options: Sequence[str]) -> Band:
    fields = at.mapping(item, _BAND_KEYS, options)
    match = parse_match(fields["match"], at.inside("match"), system)
    unit = at.text(fields, "unit")
    variable = match.get("variable")
    units = set(VARIABLE_UNITS.values()) if variable is None else {VARIABLE_UNITS[str(variable)]}
    if unit not in units:
        raise at.error("unit", f"is {unit!r}; the variable's unit is {' or '.join(sorted(units))}")
    lower = at.positive(fields, "lower_quartile")
    median = at.positive(fields, "median")
    upper = at.positive(fields, "upper_quartile")
    maximum = at.optional_positive(fields, "maximum")
    floor = at.optional_positive(fields, "floor")
    figures = dict(zip(_FIGURES, (floor, lower, median, upper, maximum), strict=True))
    given = [(name, figure) for name, figure in figures.items() if figure is not None]
    for (low_name, low), (high_name, high) in pairwise(given):
        if low > high:
            raise at.error(low_name, f"{low:g} is above {high_name} {high:g}; put them in order")
    if floor is None:
        floor = log_fence(lower, upper)
        if floor <= 0:
            raise at.error("floor", "too small to compute from these quartiles; give one")
        figures["floor"] = floor
    state = fields.get("state")
    if state is not None and state not in _STATES:
        raise at.error("state", f"is {state!r}; known are {', '.join(_STATES)}")
    return Band(
        match=match,
        unit=unit,
        lower_quartile=lower,
        median=median,
        upper_quartile=upper,
        maximum=maximum,
        floor=floor,
        runs=_runs(fields, at),
        epoch=epoch.name,
        source=at.text(fields, "source") if fields.get("source") is not None else epoch.source,
        state=cast("str | None", state),
        intervals=_intervals(fields.get("intervals"), at.inside("intervals"), figures),
    )


def _intervals(
    value: object, at: Place, figures: Mapping[str, float | None]
) -> dict[str, tuple[float, float]]:
    """Return the intervals, each of which must hold the figure that it is of."""
    found: dict[str, tuple[float, float]] = {}
    for name, pair in (at.mapping(value, (), _FIGURES) if value is not None else {}).items():
        figure = figures[name]
        if not isinstance(pair, list) or len(pair) != len(("low", "high")):
            raise at.error(name, f"must be a list of two numbers, [low, high], not {pair!r}")
        low, high = (at.positive({name: end}, name) for end in pair)
        if figure is None or not low <= figure <= high:
            raise at.error(name, f"{low:g} to {high:g} does not hold the {name} itself")
        found[name] = (low, high)
    return found


def _runs(fields: Mapping[str, object], at: Place) -> int | None:
    runs = fields.get("runs")
    if runs is None:
        return None
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise at.error("runs", f"must be a whole number from 1, or null, not {runs!r}")
    return runs


def parse_match(
    value: object, at: Place, system: str, known: Sequence[str] = MATCH_FIELDS
) -> dict[str, object]:
    """Return the fields of `known`, at least one, that series of `system` have to agree with."""
    match = dict(at.mapping(value, (), known))
    if not match:
        raise at.error(None, f"names no field; name some of {', '.join(known)}")
    for field, wanted in match.items():
        # YAML reads a bare `no` as a boolean and a bare 2023-10-09 as a date
        if isinstance(wanted, bool) or not isinstance(wanted, str | int | float | None):
            raise at.error(field, f"must be a text or a number, not {wanted!r}; put it in quotes")
        if isinstance(wanted, float) and not math.isfinite(wanted):
            raise at.error(field, f"must be finite, not {wanted:g}")
        if field in NUMERIC_FIELDS and isinstance(canonical(wanted), str):
            raise at.error(field, f"must be a number, not {wanted!r}")
    if "variable" in match and match["variable"] not in VARIABLE_UNITS:
        raise at.error(
            "variable", f"{match['variable']!r} is unknown; known are {', '.join(VARIABLE_UNITS)}"
        )
    if canonical(match.get("system", system)) != canonical(system):
        raise at.error("system", f"is {match['system']!r}, in the file of {system}; leave it out")
    return match


def _refuse_ambiguity(bands: Sequence[Band], at: Place) -> None:
    """Refuse two equally specific bands that one series could meet both."""
    # by what they name: few kinds, where there is a band for each of hundreds of series
    kinds: defaultdict[tuple[int, str, frozenset[str]], list[int]] = defaultdict(list)
    for number, band in enumerate(bands, 1):
        kinds[len(band.wanted), band.unit, frozenset(band.wanted)].append(number)
    for one, other in combinations_with_replacement(kinds, 2):
        if one[:2] != other[:2]:
            continue
        shared = sorted(one[2] & other[2])
        known: dict[tuple[object, ...], int] = {}
        for number in kinds[one]:
            known.setdefault(tuple(bands[number - 1].wanted[k] for k in shared), number)
        for number in kinds[other]:
            first = known.get(tuple(bands[number - 1].wanted[k] for k in shared), number)
            if first != number:
                low, high = sorted((first, number))
                raise at.error(
                    f"bands {low} and {high}",
                    f"both can apply to one series and name {one[0]} fields each; "
                    "name one field more in one of them",
                )


def _refuse_twins(epochs: Sequence[Epoch], at: Place) -> None:
    for one, other in combinations(epochs, 2):
        if one.name == other.name:
            raise at.error(f"epoch {one.name!r}", "is given twice; names must differ")
        if one.since == other.since:
            raise at.error(
                f"epochs {one.name!r} and {other.name!r}",
                f"both begin at {one.since.isoformat()}; one of them has to begin later",
            )
