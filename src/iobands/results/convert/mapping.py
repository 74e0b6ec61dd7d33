"""The mapping: a YAML file with what the results of another tool do not contain."""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

from iobands.model.fields import READ, VARIABLE, VARIABLE_UNITS
from iobands.model.yaml_document import parse_yaml, read_content

_FIELDS: Final[dict[str, Any]] = {
    "description": "fields of contract 2 and their values",
    "type": "object",
    "propertyNames": {"enum": list(READ)},
    "additionalProperties": {"description": "a text or a number", "type": ["string", "number"]},
}
_SCHEMA: Final[dict[str, Any]] = {
    "description": "fields, columns and variables",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "time_zone": {"description": "a time zone", "type": "string"},
        "fields": _FIELDS,
        "columns": _FIELDS,
        "variables": {
            "description": "variables and what they are",
            "type": "object",
            "additionalProperties": {**_FIELDS, "type": ["object", "null"]},
        },
    },
}

Fields = MappingOf[str, str]


@dataclass(frozen=True)
class Mapping:
    """What a mapping file says, as docs/other-results.md has it; None passes a variable over."""

    time_zone: ZoneInfo = ZoneInfo("UTC")  # noqa: RUF009 (immutable)
    fields: Fields = field(default_factory=dict)
    variables: MappingOf[str, Fields | None] = field(default_factory=dict)
    columns: Fields = field(default_factory=dict)


def read_mapping(path: Path) -> Mapping:
    """Return the mapping in the file at `path`.

    Raises:
        FileError: the file cannot be used; the message says where and what to write.
    """
    document = parse_yaml(read_content(path), path)
    document.check(_SCHEMA)
    said = document.value
    try:
        zone = ZoneInfo(said.get("time_zone", "UTC"))
    except (ValueError, OSError, KeyError):  # it depends on what is wrong
        problem = "is no time zone; write one such as 'Europe/London'"
        raise document.error(["time_zone"], problem) from None
    variables = said.get("variables", {})
    for name, fields in variables.items():
        if fields is not None and fields.get(VARIABLE, name) not in VARIABLE_UNITS:
            problem = f"has no {VARIABLE}; write a variable of contract 2 as its {VARIABLE}"
            raise document.error(["variables", name], problem)
    texts = {name: _texts(fields) for name, fields in variables.items()}
    return Mapping(zone, _texts(said.get("fields")) or {}, texts, _texts(said.get("columns")) or {})


def _texts(fields: MappingOf[str, object] | None) -> Fields | None:
    return None if fields is None else {name: str(value) for name, value in fields.items()}
