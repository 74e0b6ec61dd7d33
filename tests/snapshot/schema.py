"""The JSON Schema of the typed part of a snapshot, made from the declared types.

`python -m tests.snapshot.schema` writes it; call it after a change of a type.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import iobands.snapshot.stored
from iobands.snapshot import Member, Snapshot
from iobands.snapshot.stored import DERIVED, STATUS_SCHEMA
from tests.snapshot.read_back import hints_of, without_none

FILE = Path(iobands.snapshot.stored.__file__).with_name("status.schema.json")

SIMPLE = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    str: {"type": "string"},
    Path: {"type": "string"},
    datetime: {"type": "string", "format": "date-time"},
    float: {"$ref": "#/$defs/number"},
    Any: {"type": ["string", "number", "boolean", "null"]},
    object: {"type": ["string", "number", "boolean", "null"]},
}
NUMBER = {
    "description": "A number; JSON has none that is not finite, so a word stands for it.",
    "anyOf": [{"type": "number"}, {"enum": ["Infinity", "-Infinity", "NaN"]}],
}


def schema() -> dict[str, Any]:
    """Return the schema of the result of `to_json`."""
    definitions: dict[str, Any] = {"number": NUMBER}
    site = of_class(Snapshot, definitions)
    head = {
        "schema": {"const": STATUS_SCHEMA},
        "summary": {"type": "string", "description": "The first line of the digest."},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "iobands status --format json",
        **site,
        "properties": {**head, **site["properties"]},
        "required": ["schema", *site["required"]],
        "$defs": dict(sorted(definitions.items())),
    }


def of_class(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a dataclass, with the properties that are derived from its fields."""
    derived = {name: returned_by(vars(kind)[name]) for name in DERIVED.get(kind, ())}
    hints = hints_of(kind)
    typed = {each.name: hints[each.name] for each in fields(kind) if each.compare}
    found = {name: of_type(hint, definitions) for name, hint in {**derived, **typed}.items()}
    if kind is Member:
        found["series"] = {"type": "string", "description": "The label of the series."}
    return {
        "description": inspect.cleandoc(kind.__doc__ or ""),
        "type": "object",
        "properties": found,
        "required": list(found),
    }


def returned_by(member: property | cached_property[Any]) -> Any:
    """Return the type of a property."""
    function = member.fget if isinstance(member, property) else member.func
    return get_type_hints(function)["return"]


def of_type(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:  # noqa: PLR0911 (one a type)
    """Return the schema of a type; those of dataclasses and enumerations go to `definitions`."""
    kind = without_none(hint)
    if kind is not hint:
        return {"anyOf": [of_type(kind, definitions), {"type": "null"}]}
    if kind in SIMPLE:
        return SIMPLE[kind]
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(parts)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": of_type(parts[1], definitions)}
    if origin is frozenset or (origin is tuple and parts[-1] is ...):
        return {"type": "array", "items": of_type(parts[0], definitions)}
    if origin is tuple:
        items = [of_type(part, definitions) for part in parts]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "items": False}
    kind = origin or kind
    name = kind.__name__
    if name not in definitions:
        definitions[name] = {}  # until it is complete, as it may refer to itself
        if issubclass(kind, Enum):
            definitions[name] = {"enum": [each.value for each in kind]}
        else:
            assert is_dataclass(kind), kind
            definitions[name] = of_class(kind, definitions)
    return {"$ref": f"#/$defs/{name}"}


def text() -> str:
    """Return the file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
