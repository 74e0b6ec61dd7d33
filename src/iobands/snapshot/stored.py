"""The typed part of a snapshot as JSON, which contract 6 describes.

The typed part is what equality compares. Arrays and frames, declared with `compare=False`, are not
part of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache, partial
from pathlib import Path
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import numpy as np
import polars as pl

from iobands.model import FileError, SeriesKey
from iobands.snapshot import Alert, Columns, Incident, Member, Series, Snapshot

#: The version of the JSON; `from_json` refuses any other.
STATUS_SCHEMA: Final = "iobands-status/5"
#: Properties that the JSON has in addition to the fields. `from_json` ignores them.
DERIVED: Final[Mapping[type, tuple[str, ...]]] = {
    Snapshot: ("exit_status", "rejected_lines"),
    SeriesKey: ("unit",),
    Series: ("name", "in_effect"),
    Alert: ("name", "exit_status", "is_quiet", "ratio"),
    Member: ("unit",),
    Incident: ("name", "is_open"),
}

#: The types of the fields of a class; places in a `Change` are times in a snapshot.
hints_of: Final = cache(partial(get_type_hints, localns={"At": datetime}))
_EMPTY: Final = {
    "samples": Columns([], {}),
    "speeds": pl.DataFrame(),
    "only": None,
    "is_past": False,
}


def to_json(site: Snapshot, **texts: str) -> str:
    """Return the typed part of a snapshot as JSON, with `texts` at its head."""
    typed = {"schema": STATUS_SCHEMA, **texts, **_Writer().fields_of(site)}
    return json.dumps(typed, indent=2, allow_nan=False)


def from_json(text: str | bytes, source: str = "status") -> Snapshot:
    """Return the snapshot that `to_json` wrote, with empty arrays and frames.

    Raises:
        FileError: the text is damaged or of another version; the message begins with `source`.
    """
    try:
        typed = json.loads(text)
        if typed.get("schema") != STATUS_SCHEMA:
            raise ValueError(f"its schema is not {STATUS_SCHEMA}")
        site: Snapshot = _Reader().value(Snapshot, typed)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise FileError(f"{source}: not a snapshot: {error}") from error
    return site


class _Writer:
    """Turns values into JSON values. A series is written in full once, and then as its label."""

    def __init__(self) -> None:
        self.labels: dict[SeriesKey, str] = {}

    def fields_of(self, value: Any) -> dict[str, object]:  # noqa: ANN401
        derived = DERIVED.get(type(value), ())
        found = {name: self.value(getattr(value, name)) for name in derived}
        for each in fields(value):
            if each.compare:
                found[each.name] = self.value(getattr(value, each.name))
        return found

    def value(self, value: Any) -> object:  # noqa: ANN401, PLR0911 (one a type)
        match value:
            case Enum():
                return value.value
            case None | bool() | int() | str():
                return value
            case float():
                return value if math.isfinite(value) else json.dumps(value)
            case datetime():
                return value.isoformat()
            case Path():
                return str(value)
            case np.generic():
                return self.value(value.item())
            case frozenset():
                return [self.value(each) for each in sorted(value, key=SeriesKey.sort_key)]
            case tuple() | list():
                return [self.value(each) for each in value]
            case Mapping():
                return {self.labels.get(key, key): self.value(each) for key, each in value.items()}
            case Series(key=key) if key in self.labels:
                return self.labels[key]
            case Series():
                self.labels[value.key] = value.label
        return self.fields_of(value)


class _Reader:
    """Turns JSON values into values of the declared types, with empty arrays and frames."""

    def __init__(self) -> None:
        self.series: dict[str, Series] = {}

    def value(self, hint: Any, value: Any) -> Any:  # noqa: ANN401, PLR0911 (one a type)
        if value is None:
            return None
        kind = without_none(hint)
        origin, parts = get_origin(kind), get_args(kind)
        if origin in (tuple, frozenset):
            kinds = parts if origin is tuple and parts[-1] is not ... else parts[:1] * len(value)
            return origin(self.value(of, each) for of, each in zip(kinds, value, strict=True))
        if origin is Mapping:
            of_series = parts[0] is SeriesKey
            keys = [self.series[each].key for each in value] if of_series else value
            values = (self.value(parts[1], each) for each in value.values())
            return dict(zip(keys, values, strict=True))
        if kind is datetime:
            return datetime.fromisoformat(value)
        if kind is float:
            return float(value) if isinstance(value, str) else value
        if kind is Series and isinstance(value, str):
            return self.series[value]
        if isinstance(kind, type) and issubclass(kind, Enum | Path):
            return kind(value)
        plain = origin or kind
        return self._object(plain, value) if is_dataclass(plain) else value

    def _object(self, kind: Any, value: dict[str, Any]) -> Any:  # noqa: ANN401
        hints = hints_of(kind)
        found = kind(
            **{
                each.name: self.value(hints[each.name], value[each.name])
                if each.compare
                else _EMPTY.get(each.name, np.empty(0))
                for each in fields(kind)
                if each.name in value or not each.compare  # a later field has a default
            }
        )
        if isinstance(found, Series):
            self.series[found.label] = found
        return found


def without_none(hint: Any) -> Any:  # noqa: ANN401
    """Return the type T of an optional type `T | None`, any other type as it is."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (each for each in get_args(hint) if each is not type(None))
    return hint
