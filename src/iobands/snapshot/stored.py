"""The typed part of a snapshot as JSON, which contract 6 describes.

The typed part is what equality compares. Arrays and frames, declared with `compare=False`, are not
part of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any, Final

import numpy as np

from iobands.model import SeriesKey
from iobands.snapshot import Alert, Incident, Member, Series, Snapshot

#: The version of the JSON.
STATUS_SCHEMA: Final = "iobands-status/5"
#: Properties that the JSON has in addition to the fields.
DERIVED: Final[Mapping[type, tuple[str, ...]]] = {
    Snapshot: ("exit_status", "rejected_lines"),
    SeriesKey: ("unit",),
    Series: ("name", "in_effect"),
    Alert: ("name", "exit_status", "is_quiet", "ratio"),
    Member: ("unit",),
    Incident: ("name", "is_open"),
}


def to_json(site: Snapshot, **texts: str) -> str:
    """Return the typed part of a snapshot as JSON, with `texts` at its head."""
    typed = {"schema": STATUS_SCHEMA, **texts, **_Writer().fields_of(site)}
    return json.dumps(typed, indent=2, allow_nan=False)


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
