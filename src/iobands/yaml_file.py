"""What `alarms_file` checks field by field; all else goes by `iobands.model.schema`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import cast

from iobands.model.schema import FileError
from iobands.model.times import parse_time
from iobands.vocabulary import MATCH_FIELDS, NUMERIC_FIELDS, VARIABLE_UNITS, canonical


@dataclass(frozen=True)
class Place:
    """Where in the file we are, for messages; its methods fetch fields and name what is wrong."""

    where: str
    kind: type[FileError] = FileError

    def inside(self, what: str) -> Place:
        """Return the place `what` within this one."""
        return Place(f"{self.where}, {what}", self.kind)

    def error(self, field: str | None, problem: str) -> FileError:
        """Return the error to be raised for `problem`, of `field` if it is of one."""
        return self.kind(f"{self.where}: {f'{field}: ' if field else ''}{problem}")

    def mapping(
        self, value: object, required: Sequence[str], optional: Sequence[str] = ()
    ) -> Mapping[str, object]:
        """Return `value`, a mapping with all keys of `required`, maybe some of `optional`."""
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
        """Return a list."""
        value = fields[key]
        if not isinstance(value, list):
            raise self.error(key, "must be a list; write [] for an empty one")
        return value

    def text(self, fields: Mapping[str, object], key: str) -> str:
        """Return a text that is not empty."""
        value = fields[key]
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, f"must be a text, not {value!r}; put it in quotes")
        return value

    def positive(self, fields: Mapping[str, object], key: str) -> float:
        """Return a finite number above 0."""
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
        """Return a finite number above 0, or None where there is none."""
        return None if fields.get(key) is None else self.positive(fields, key)

    def schema(self, fields: Mapping[str, object], known: Sequence[int]) -> int:
        """Return the schema, which has to be one of `known`."""
        value = fields["schema"]
        if isinstance(value, bool) or not isinstance(value, int) or value not in known:
            numbers = " and ".join(str(number) for number in known)
            schemas = "schema" if len(known) == 1 else "schemas"
            newer = isinstance(value, int) and not isinstance(value, bool) and value > max(known)
            why = "; a newer iobands wrote the file" if newer else ""
            raise self.error("schema", f"is {value!r}; this iobands reads {schemas} {numbers}{why}")
        return value

    def system(self, fields: Mapping[str, object], path: Path) -> str:
        """Return the system, after which the file at `path` has to be named."""
        value = self.text(fields, "system")
        if value != path.stem:
            raise self.error(
                "system", f"is {value!r}; rename the file to {value}.yaml or correct it"
            )
        return value

    def time(self, fields: Mapping[str, object], key: str) -> datetime:
        """Return a moment; a date alone is 00:00 UTC."""
        try:
            return parse_time(fields[key])
        except ValueError as error:
            raise self.kind(f"{self.where}: {key} {error}") from None


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
