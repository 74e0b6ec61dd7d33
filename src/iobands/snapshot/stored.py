"""A snapshot in a directory: its typed part as JSON, its history and its arrays as Arrow.

What is read back says the same in every view, on a machine without perflogs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import numpy as np
import polars as pl
from numpy.typing import NDArray

from iobands.model.documents import Document
from iobands.model.files import FileError, read_small, replace_file
from iobands.model.series import slug
from iobands.snapshot.alert import Member
from iobands.snapshot.series import Series
from iobands.snapshot.site import Snapshot

#: The version of the stored form; another one is refused.
SCHEMA: Final = "iobands-snapshot/1"

_TYPED: Final = "snapshot.json"
_ARRAYS: Final = "arrays.arrow"
_FRAMES: Final = ("samples", "speeds")
_LARGEST: Final = 1 << 30
# In a mapping without types: what JSON cannot say.
_TIME: Final = "$time"
# The class of a value, where it is a kind of the class that is declared.
_CLASS: Final = "$class"


def write_snapshot(site: Snapshot, directory: Path) -> None:
    """Write a snapshot to a directory, which is made if necessary.

    Raises:
        OSError: it cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    writer = _Writer()
    typed = {"schema": SCHEMA, **writer.fields_of(site, without=_FRAMES)}
    for name in _FRAMES:
        getattr(site, name).write_ipc(directory / f"{name}.arrow", compression="zstd")
    writer.frame().write_ipc(directory / _ARRAYS, compression="zstd")
    replace_file(directory / _TYPED, json.dumps(typed, allow_nan=False).encode())


def read_snapshot(directory: Path) -> Snapshot:
    """Return the snapshot that a directory has.

    Raises:
        FileError: it is missing, damaged, or of another version.
    """
    path = directory / _TYPED
    try:
        typed = json.loads(read_small(path, _LARGEST))
        if not isinstance(typed, dict) or typed.pop("schema", None) != SCHEMA:
            raise Document(str(path), typed).error(["schema"], f"is not {SCHEMA}")
        frames = {name: pl.read_ipc(directory / f"{name}.arrow") for name in _FRAMES}
        return _Reader(pl.read_ipc(directory / _ARRAYS)).value(Snapshot, {**typed, **frames})
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError, IndexError, pl.exceptions.PolarsError) as error:
        raise FileError(f"{path}: no snapshot: {error}") from error


class _Writer:
    """Values as JSON has them; arrays are put aside and numbered."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []

    def frame(self) -> pl.DataFrame:
        """Return the arrays, a row each."""
        return pl.DataFrame(
            {
                "dtype": [each.dtype.str for each in self.arrays],
                "shape": [list(each.shape) for each in self.arrays],
                "data": [each.tobytes() for each in self.arrays],
            },
            schema={"dtype": pl.String, "shape": pl.List(pl.Int64), "data": pl.Binary},
        )

    def fields_of(self, value: Any, without: tuple[str, ...] = ()) -> dict[str, object]:  # noqa: ANN401
        hints = get_type_hints(type(value))
        return {
            each.name: self.value(hints[each.name], getattr(value, each.name))
            for each in fields(value)
            if each.name not in without
        }

    def value(self, hint: Any, value: Any) -> object:  # noqa: ANN401, PLR0911 (one a type)
        match value:
            case None | bool() | int():
                return value.value if isinstance(value, Enum) else value
            case Enum():
                return value.value
            case str():
                return value
            case float():
                return value if math.isfinite(value) else str(value)
            case datetime():
                text = value.isoformat()
                return {_TIME: text} if _is_open(hint) else text
            case Path():
                return str(value)
            case np.ndarray():
                self.arrays.append(value)
                return len(self.arrays) - 1
            case np.generic():
                return self.value(hint, value.item())
            case Member():  # which names its series
                found = self.fields_of(value, without=("series",))
                return {"series": slug(value.series.key), **found}
            case Mapping():
                of_key, of_value = _arguments(hint, 2)
                pairs = [(key, self.value(of_value, each)) for key, each in value.items()]
                if of_key in (str, Any):
                    return {str(key): each for key, each in pairs}
                return [[self.value(of_key, key), each] for key, each in pairs]
            case tuple() | list() | frozenset():
                return [self.value(_arguments(hint, 1)[0], each) for each in value]
        assert is_dataclass(value), type(value)
        declared = _declared(hint)
        named = {} if type(value) is declared else {_CLASS: type(value).__name__}
        return {**named, **self.fields_of(value)}


class _Reader:
    """Values from JSON, by the types that are declared."""

    def __init__(self, arrays: pl.DataFrame) -> None:
        self.arrays = [
            np.frombuffer(data, dtype).reshape(shape) for dtype, shape, data in arrays.iter_rows()
        ]
        self.series: dict[str, Series] = {}

    def value(self, hint: Any, value: Any) -> Any:  # noqa: ANN401, PLR0911 (one a type)
        declared, origin = _declared(hint), get_origin(_declared(hint))
        if value is None or isinstance(value, pl.DataFrame):
            return value
        if _is_open(declared):
            return datetime.fromisoformat(value[_TIME]) if _is_time(value) else value
        if origin is np.ndarray:
            return self.arrays[value]
        if origin in (tuple, list, frozenset):
            kinds = get_args(declared)
            each_of = [kinds[0]] * len(value) if kinds[-1] is ... or len(kinds) == 1 else kinds
            return origin(self.value(kind, each) for kind, each in zip(each_of, value, strict=True))
        if isinstance(origin, type) and issubclass(origin, Mapping):
            of_key, of_value = get_args(declared)
            pairs = value.items() if isinstance(value, dict) else value
            return {self.value(of_key, key): self.value(of_value, each) for key, each in pairs}
        if declared is datetime:
            return datetime.fromisoformat(value)
        if declared is float:  # a whole number stays one
            return float(value) if isinstance(value, str) else value
        if isinstance(declared, type) and issubclass(declared, Enum | Path):
            return declared(value)
        if is_dataclass(declared):
            return self._object(declared, value)
        return value

    def _object(self, declared: Any, value: dict[str, Any]) -> Any:  # noqa: ANN401
        kinds = {each.__name__: each for each in declared.__subclasses__()}
        kind = kinds[value.pop(_CLASS)] if _CLASS in value else declared
        if kind is Member:
            value = {**value, "series": self.series[value["series"]]}
            return Member(
                value["series"],
                *(self.value(get_type_hints(Member)[name], value[name])
                  for name in ("ratio", "baseline")),
            )  # fmt: skip
        hints = get_type_hints(kind)
        known = {each.name for each in fields(kind)}
        found = kind(**{n: self.value(hints[n], each) for n, each in value.items() if n in known})
        if isinstance(found, Series):
            self.series[slug(found.key)] = found
        return found


def _declared(hint: Any) -> Any:  # noqa: ANN401
    """Return a type without the None that it may be."""
    if get_origin(hint) in (Union, UnionType):
        kinds = [each for each in get_args(hint) if each is not type(None)]
        return kinds[0] if len(kinds) == 1 else Any
    return hint


def _arguments(hint: Any, number: int) -> tuple[Any, ...]:  # noqa: ANN401
    return get_args(_declared(hint))[:number] or (Any,) * number


def _is_open(hint: Any) -> bool:  # noqa: ANN401
    return _declared(hint) in (Any, object)


def _is_time(value: object) -> bool:
    return isinstance(value, dict) and value.keys() == {_TIME}
