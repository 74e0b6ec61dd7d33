"""Reads and writes JSON documents as dataclasses, and checks the type of each field."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from iobands.model import Unusable, parse_time, read_small, replace_file

_LARGEST: Final = 1 << 20  # bytes of a document that is read
_MOST: Final = 2**63
_types_of: Final = cache(get_type_hints)
_Kind = TypeVar("_Kind")


def read_object(path: Path, schemas: Sequence[int] | None = None) -> dict[str, Any]:
    """Return the JSON object in a file, whose `schema` must be one of `schemas`, if given.

    Raises OSError if the file cannot be read, and Unusable if it has no object of a known schema.
    """
    try:
        said = json.loads(read_small(path, _LARGEST))
    except (ValueError, RecursionError) as error:
        raise Unusable(f"not JSON: {error}") from error
    if not isinstance(said, dict) or (schemas is not None and said.get("schema") not in schemas):
        raise Unusable("not an object of a known schema")
    return said


def decoded(kind: type[_Kind], said: object) -> _Kind:
    """Return the dataclass `kind` from parsed JSON; keys that it does not declare are ignored.

    Unprintable characters in strings become blanks. Raises Unusable if a field is missing or is not
    of its type.
    """
    try:
        found: _Kind = _value(kind, said)
    except (ValueError, TypeError) as error:  # TypeError: a field is missing
        raise Unusable(str(error)) from error
    return found


def _value(kind: Any, said: Any) -> Any:  # noqa: ANN401
    inner, plain = get_args(kind), get_origin(kind) or kind
    if plain is UnionType:  # with None
        return None if said is None else _value(inner[0], said)
    if isinstance(said, dict) and plain not in (tuple, *_PLAIN):
        if plain in (Mapping, dict):
            return {_value(inner[0], key): _value(inner[1], each) for key, each in said.items()}
        fields = _types_of(kind).items()
        return kind(**{name: _value(type_, said[name]) for name, type_ in fields if name in said})
    if isinstance(said, list) and plain is tuple:
        kinds = inner[:1] * len(said) if inner[-1] is ... else inner
        return tuple(_value(*each) for each in zip(kinds, said, strict=True))
    of_json, read = _PLAIN.get(plain, ((), None))
    if type(said) not in of_json:
        raise ValueError(f"not of the type {kind}")
    return read(said)


def _finite(said: float) -> float:
    if not abs(said) < _MOST:  # nor NaN
        raise ValueError("not a usable number")
    return said


#: By declared type: the types that JSON may give, and the function that converts the value.
_PLAIN: Final[Mapping[Any, tuple[tuple[type, ...], Any]]] = {
    str: ((str,), lambda said: "".join(each if each.isprintable() else " " for each in said)),
    Path: ((str,), Path),
    datetime: ((str,), parse_time),
    int: ((int,), _finite),
    float: ((int, float), _finite),
}


def write_document(path: Path, document: Mapping[str, object], *, durable: bool = False) -> None:
    """Write `document` as JSON, as `replace_file` does, or raise OSError."""
    text = json.dumps(document, indent=1, default=_text)
    replace_file(path, f"{text}\n".encode(), durable=durable)


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
