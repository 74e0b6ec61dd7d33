"""Reading a YAML file that people write, and saying what is wrong with it and where.

What the files of bands and of alarms have in common. May know: PyYAML and the standard library;
ReFrame checks read bands through it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timezone
from pathlib import Path
from typing import Any, Final, cast

import yaml

REMEDY: Final = "write a date, 2023-10-09, or a time with offset, 2023-10-09T06:00:00+01:00"


_YEARS: Final = range(1900, 2200)


def is_of_this_age(day: date) -> bool:
    """Tell whether `day` can be reckoned with, in every time zone and in nanoseconds."""
    return day.year in _YEARS


class FileError(ValueError):
    """A file that cannot be used; the message says where, what is wrong and what to do."""


def content_of(path: Path, kind: type[FileError] = FileError) -> bytes:
    """Return what is in the file at `path`.

    Raises:
        FileError: the file cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise kind(f"{path}: cannot be read: {error.strerror or error}") from error


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


def parse(content: bytes, path: Path, kind: type[FileError] = FileError) -> object:
    """Return what `content` says, which stands in the file at `path`.

    Raises:
        FileError: it is not UTF-8, not YAML, or gives a key twice.
    """
    try:
        return yaml.load(content.decode("utf-8-sig"), Loader=_Loader)  # a SafeLoader
    except UnicodeDecodeError as error:
        raise kind(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        problem = error.problem or error.context or "not YAML"
        raise kind(f"{path}{line}: {problem}; correct the YAML there") from error
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        problem = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise kind(f"{path}: not readable as YAML: {problem}") from error


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
        value = fields[key]
        if isinstance(value, str):
            try:  # Python 3.10 does not know the suffix Z
                parsed = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
            except ValueError:
                raise self.error(key, f"{value!r} is not a time; {REMEDY}") from None
            is_date = len(value.strip()) == len("2023-10-09")
            value = parsed.date() if is_date else parsed
        if not isinstance(value, date):  # which a datetime is too
            raise self.error(key, f"{value!r} is not a time; {REMEDY}")
        if not is_of_this_age(value):
            raise self.error(key, f"the year {value.year} is none that a run was made in; {REMEDY}")
        if not isinstance(value, datetime):
            return datetime.combine(value, time(), timezone.utc)
        if value.utcoffset() is None:
            raise self.error(key, f"{value.isoformat()} has no UTC offset; {REMEDY}")
        return value
