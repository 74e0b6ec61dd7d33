"""Reading `config/bands/<system>.yaml` (contract 3), and saying what is wrong with it.

Both ReFrame checks and iobands' analysis read the bands here. May know: PyYAML, the standard
library, bands and the contracts' vocabulary; nothing of ReFrame, pandas or perflogs.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timezone
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Final, cast

import yaml

from iobands.bands import ACTIVE, FROZEN, PROVISIONAL, Band, Bands, Epoch, log_fence
from iobands.vocabulary import MATCH_FIELDS, NUMERIC_FIELDS, VARIABLE_UNITS, canonical

#: What is written; files of every schema in `SCHEMAS` are read.
SCHEMA: Final = 2
SCHEMAS: Final = (1, 2)

_FILE_KEYS: Final = ("schema", "system", "epochs")
_EPOCH_KEYS: Final = ("name", "since", "source", "bands")
_BAND_KEYS: Final = ("match", "unit", "lower_quartile", "median", "upper_quartile")
_BAND_OPTIONS: Final = ("maximum", "floor", "runs")
# what schema 2 added
_EPOCH_OPTIONS_2: Final = ("reason", "continues")
_BAND_OPTIONS_2: Final = ("state", "intervals", "source")
_STATES: Final = (PROVISIONAL, ACTIVE, FROZEN)
_FIGURES: Final = ("floor", "lower_quartile", "median", "upper_quartile", "maximum")


class BandsError(ValueError):
    """A bands file that cannot be used; the message says where, what is wrong and what to do."""


def load_bands(path: Path) -> Bands:
    """Read the bands of the system after which the file at `path` is named.

    Raises:
        BandsError: the file cannot be read, or breaks contract 3 in any way. Whatever can be
            wrong with bands is found here, and not when a sample meets them.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BandsError(f"{path}: cannot be read: {error.strerror or error}") from error
    return parse_bands(content, path)


def parse_bands(content: bytes, path: Path) -> Bands:
    """Return the bands that `content` says, which stands or shall stand in the file at `path`.

    Raises:
        BandsError: as of `load_bands`.
    """
    document = _parse(content, path)
    at = _Place(str(path))
    top = at.mapping(document, _FILE_KEYS)
    schema = top["schema"]
    if isinstance(schema, bool) or not isinstance(schema, int) or schema not in SCHEMAS:
        known = " and ".join(str(number) for number in SCHEMAS)
        raise at.error("schema", f"is {schema!r}; this iobands reads schemas {known}")
    system = at.text(top, "system")
    if system != path.stem:
        raise at.error("system", f"is {system!r}; rename the file to {system}.yaml or correct it")
    epochs = [
        _epoch(item, at, index, system, schema)
        for index, item in enumerate(at.items(top, "epochs"), 1)
    ]
    _refuse_twins(epochs, at)
    return Bands(system, tuple(sorted(epochs, key=lambda epoch: epoch.since)))


class _Loader(yaml.SafeLoader):
    """SafeLoader that refuses a key given twice, where YAML quietly takes the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable):
                if key in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key!r} is given twice", key_node.start_mark
                    )
                seen.add(key)
        return cast(dict[Hashable, Any], super().construct_mapping(node, deep))


def _parse(content: bytes, path: Path) -> object:
    try:
        return yaml.load(content.decode("utf-8-sig"), Loader=_Loader)  # a SafeLoader
    except UnicodeDecodeError as error:
        raise BandsError(
            f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8"
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        problem = error.problem or error.context or "not YAML"
        raise BandsError(f"{path}{line}: {problem}; correct the YAML there") from error
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        problem = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BandsError(f"{path}: not readable as YAML: {problem}") from error


@dataclass(frozen=True)
class _Place:
    """Where in the file we are, for messages; its methods fetch fields and name what is wrong."""

    where: str

    def inside(self, what: str) -> _Place:
        return _Place(f"{self.where}, {what}")

    def error(self, field: str | None, problem: str) -> BandsError:
        return BandsError(f"{self.where}: {f'{field}: ' if field else ''}{problem}")

    def mapping(
        self, value: object, required: Sequence[str], optional: Sequence[str] = ()
    ) -> Mapping[str, object]:
        known = (*required, *optional)
        if not isinstance(value, dict):
            raise self.error(None, f"must be a mapping with the keys {', '.join(known)}")
        for key in value:
            if key not in known:
                raise self.error(str(key), f"unknown key; known here are {', '.join(known)}")
        for key in required:
            if key not in value:
                raise self.error(key, "missing; add it")
        return cast(Mapping[str, object], value)

    def items(self, fields: Mapping[str, object], key: str) -> Sequence[object]:
        value = fields[key]
        if not isinstance(value, list):
            raise self.error(key, "must be a list; write [] for an empty one")
        return value

    def text(self, fields: Mapping[str, object], key: str) -> str:
        value = fields[key]
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, f"must be a text, not {value!r}; put it in quotes")
        return value

    def positive(self, fields: Mapping[str, object], key: str) -> float:
        value = fields[key]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(key, f"must be a number, not {value!r}; write it in plain decimals")
        try:
            figure = float(value)
        except OverflowError:
            figure = math.inf
        if not math.isfinite(figure) or figure <= 0:
            raise self.error(key, f"must be finite and above 0, not {figure:g}")
        return figure

    def optional_positive(self, fields: Mapping[str, object], key: str) -> float | None:
        return None if fields.get(key) is None else self.positive(fields, key)


def _epoch(item: object, at: _Place, index: int, system: str, schema: int) -> Epoch:
    place = at.inside(f"epoch {index}")
    fields = place.mapping(item, _EPOCH_KEYS, _EPOCH_OPTIONS_2 if schema > 1 else ())
    name = place.text(fields, "name")
    place = at.inside(f"epoch {name!r}")
    since = _since(fields["since"], place)
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


def _since(value: object, at: _Place) -> datetime:
    """Return when an epoch begins; a date alone begins at 00:00 UTC."""
    remedy = "write a date, 2023-10-09, or a time with offset, 2023-10-09T06:00:00+01:00"
    if isinstance(value, str):
        try:  # Python 3.10 does not know the suffix Z
            parsed = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
        except ValueError:
            raise at.error("since", f"{value!r} is not a time; {remedy}") from None
        is_date = len(value.strip()) == len("2023-10-09")
        value = parsed.date() if is_date else parsed
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise at.error("since", f"{value.isoformat()} has no UTC offset; {remedy}")
        return value
    if isinstance(value, date):
        return datetime.combine(value, time(), timezone.utc)
    raise at.error("since", f"{value!r} is not a time; {remedy}")


def _band(item: object, at: _Place, epoch: Epoch, system: str, options: Sequence[str]) -> Band:
    fields = at.mapping(item, _BAND_KEYS, options)
    match = _match(fields["match"], at.inside("match"), system)
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
    value: object, at: _Place, figures: Mapping[str, float | None]
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


def _runs(fields: Mapping[str, object], at: _Place) -> int | None:
    runs = fields.get("runs")
    if runs is None:
        return None
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise at.error("runs", f"must be a whole number from 1, or null, not {runs!r}")
    return runs


def _match(value: object, at: _Place, system: str) -> dict[str, object]:
    match = dict(at.mapping(value, (), MATCH_FIELDS))
    if not match:
        raise at.error(None, f"names no field; name some of {', '.join(MATCH_FIELDS)}")
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
        raise at.error("system", f"is {match['system']!r}, in the bands of {system}; leave it out")
    return match


def _refuse_ambiguity(bands: Sequence[Band], at: _Place) -> None:
    """Refuse two equally specific bands that one series could meet both."""
    for (i, one), (j, other) in combinations(enumerate(bands, 1), 2):
        shared = one.match.keys() & other.match.keys()
        if (
            len(one.match) == len(other.match)
            and one.unit == other.unit
            and all(canonical(one.match[k]) == canonical(other.match[k]) for k in shared)
        ):
            raise at.error(
                f"bands {i} and {j}",
                f"both can apply to one series and name {len(one.match)} fields each; "
                "name one field more in one of them",
            )


def _refuse_twins(epochs: Sequence[Epoch], at: _Place) -> None:
    for one, other in combinations(epochs, 2):
        if one.name == other.name:
            raise at.error(f"epoch {one.name!r}", "is given twice; names must differ")
        if one.since == other.since:
            raise at.error(
                f"epochs {one.name!r} and {other.name!r}",
                f"both begin at {one.since.isoformat()}; one of them has to begin later",
            )
