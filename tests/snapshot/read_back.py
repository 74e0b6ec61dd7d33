"""Reads the JSON of `iobands status` back, which shows that it has everything that a view needs."""

from __future__ import annotations

import json
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

from iobands.model import SeriesKey
from iobands.snapshot import Columns, Series, Snapshot

#: The types of the fields of a class; places in a `Change` are times in a snapshot.
hints_of: Final = cache(partial(get_type_hints, localns={"At": datetime}))
_EMPTY: Final = {
    "samples": Columns([], {}),
    "speeds": pl.DataFrame(),
    "only": None,
    "is_past": False,
}


def from_json(text: str | bytes) -> Snapshot:
    """Return the snapshot that `to_json` wrote, with empty arrays and frames."""
    site: Snapshot = _Reader().value(Snapshot, json.loads(text))
    return site


class _Reader:
    """Turns JSON values into values of the declared types, with empty arrays and frames."""

    def __init__(self) -> None:
        self.series: dict[str, Series] = {}

    def value(self, hint: Any, value: Any) -> Any:  # noqa: PLR0911 (one a type)
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

    def _object(self, kind: Any, value: dict[str, Any]) -> Any:
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


def without_none(hint: Any) -> Any:
    """Return the type T of an optional type `T | None`, any other type as it is."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (each for each in get_args(hint) if each is not type(None))
    return hint
