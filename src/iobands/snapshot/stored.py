"""The snapshot as text and as files: its typed part is JSON, its columns are Arrow.

Equality compares the typed part. A column, an array or a frame, is a field that equality leaves
out. Contract 6 describes the JSON.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import numpy as np
import polars as pl
from numpy.typing import NDArray

from iobands.model import FileError, SeriesKey, read_small, replace_file
from iobands.snapshot import Alert, Incident, Member, Series, Snapshot

#: The version of the JSON; another one is refused.
STATUS_SCHEMA: Final = "iobands-status/4"
#: The properties that the JSON has beside the fields. `from_json` ignores them.
DERIVED: Final[Mapping[type, tuple[str, ...]]] = {
    Snapshot: ("exit_status", "rejected_lines"),
    SeriesKey: ("unit",),
    Series: ("name", "in_effect"),
    Alert: ("name", "exit_status", "is_quiet", "ratio"),
    Member: ("unit",),
    Incident: ("name", "is_open"),
}

_TYPED: Final = "snapshot.json"
_ARRAYS: Final = "arrays.arrow"
_FRAMES: Final = ("samples", "speeds")
_LARGEST: Final = 1 << 30


def to_json(site: Snapshot, **texts: str) -> str:
    """Return the typed part of a snapshot as JSON, with `texts` at its head."""
    return _Writer().text(site, **texts)


def from_json(text: str | bytes, source: str = "status") -> Snapshot:
    """Return the snapshot of which `to_json` wrote the typed part. Its columns are empty.

    Raises:
        FileError: it is damaged, or of another version; the message begins with `source`.
    """
    return _read(text, source, _Reader(None, {}))


def write_snapshot(site: Snapshot, directory: Path) -> None:
    """Write a snapshot to a directory, which is made if necessary.

    Raises:
        OSError: it cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    writer = _Writer()
    text = writer.text(site)
    for name in _FRAMES:
        getattr(site, name).write_ipc(directory / f"{name}.arrow", compression="zstd")
    rows = [(each.dtype.str, list(each.shape), each.tobytes()) for each in writer.arrays]
    arrays = pl.DataFrame(
        rows,
        {"dtype": pl.String, "shape": pl.List(pl.Int64), "data": pl.Binary},
        orient="row",
    )
    arrays.write_ipc(directory / _ARRAYS, compression="zstd")
    replace_file(directory / _TYPED, text.encode())


def read_snapshot(directory: Path) -> Snapshot:
    """Return the snapshot that a directory has.

    Raises:
        FileError: it is missing, damaged, or of another version.
    """
    path = directory / _TYPED
    try:
        text = read_small(path, _LARGEST)
        frames = {name: pl.read_ipc(directory / f"{name}.arrow") for name in _FRAMES}
        arrays = deque(
            np.frombuffer(data, dtype).reshape(shape)
            for dtype, shape, data in pl.read_ipc(directory / _ARRAYS).iter_rows()
        )
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, TypeError, pl.exceptions.PolarsError) as error:
        raise FileError(f"{directory}: not a snapshot: {error}") from error
    return _read(text, str(path), _Reader(arrays, frames))


def _read(text: str | bytes, source: str, reader: _Reader) -> Snapshot:
    try:
        typed = json.loads(text)
        if typed.get("schema") != STATUS_SCHEMA:
            raise ValueError(f"its schema is not {STATUS_SCHEMA}")
        site: Snapshot = reader.value(Snapshot, typed)
        if reader.arrays:
            raise ValueError(f"{len(reader.arrays)} arrays too many")
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise FileError(f"{source}: not a snapshot: {error}") from error
    return site


class _Writer:
    """Values as JSON has them. A series that was written is its label from then on."""

    def __init__(self) -> None:
        self.labels: dict[SeriesKey, str] = {}
        self.arrays: list[NDArray[Any]] = []

    def text(self, site: Snapshot, **texts: str) -> str:
        typed = {"schema": STATUS_SCHEMA, **texts, **self.fields_of(site)}
        return json.dumps(typed, indent=2, allow_nan=False)

    def fields_of(self, value: Any) -> dict[str, object]:  # noqa: ANN401
        derived = DERIVED.get(type(value), ())
        found = {name: self.value(getattr(value, name)) for name in derived}
        for each in fields(value):
            content = getattr(value, each.name)
            if each.compare:
                found[each.name] = self.value(content)
            elif isinstance(content, np.ndarray):
                self.arrays.append(content)
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
    """Values from JSON, by the types that are declared. Without arrays, all of them are empty."""

    def __init__(
        self, arrays: deque[NDArray[Any]] | None, frames: Mapping[str, pl.DataFrame]
    ) -> None:
        self.arrays, self.frames = arrays, frames
        self.series: dict[str, Series] = {}

    def value(self, hint: Any, value: Any) -> Any:  # noqa: ANN401, PLR0911 (one a type)
        kind = without_none(hint)
        origin, parts = get_origin(kind), get_args(kind)
        if value is None:
            return None
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
        return self._object(kind, value) if is_dataclass(kind) else value

    def _object(self, kind: Any, value: dict[str, Any]) -> Any:  # noqa: ANN401
        hints = hints_of(kind)
        found = kind(
            **{
                each.name: self.value(hints[each.name], value[each.name])
                if each.compare
                else self._column(each.name)
                for each in fields(kind)
                if each.name in value or not each.compare  # a later field has a default
            }
        )
        if isinstance(found, Series):
            self.series[found.label] = found
        return found

    def _column(self, name: str) -> NDArray[Any] | pl.DataFrame:
        if name in _FRAMES:
            return self.frames.get(name, pl.DataFrame())
        return np.empty(0) if self.arrays is None else self.arrays.popleft()


@cache
def hints_of(kind: type) -> dict[str, Any]:
    """Return the types of the fields of a dataclass by their names."""
    return get_type_hints(kind)


def without_none(hint: Any) -> Any:  # noqa: ANN401
    """Return a type without the None that a value may be instead."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (each for each in get_args(hint) if each is not type(None))
    return hint
