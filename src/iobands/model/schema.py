"""Checking a document against a JSON Schema, with one sentence on what is wrong, where, and why.

The schemas are written for it. `description` is what to write ("a number from 1"), and the first
of `examples` follows it. Of `not`, `contains` and `anyOf` it says what to do ("leave it out").
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

#: The keys and list indices that lead to a value.
Steps = Sequence[str | int]


class FileError(ValueError):
    """A file that cannot be used; the message says where, what is wrong and what to write."""


def _is_finite(_checker: object, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


@cache
def _validator_class() -> type[Validator]:
    from jsonschema import Draft4Validator, Draft202012Validator  # noqa: PLC0415 (slow to load)
    from jsonschema.validators import extend  # noqa: PLC0415

    # As in draft 4, 1.0 is no integer; and NaN and infinities, which JSON has not, are no numbers.
    types = Draft4Validator.TYPE_CHECKER.redefine("number", _is_finite)
    class_: type[Validator] = extend(Draft202012Validator, type_checker=types)  # type: ignore[no-untyped-call]
    return class_


_shortened: Final = reprlib.Repr()
_shortened.maxstring = _shortened.maxother = 60
_shortened.maxlevel = 2


@dataclass(frozen=True)
class Document:
    """What a file says, and the errors about it. `source` names the file at the head of each."""

    source: str
    value: Any
    #: The line of what the steps lead to, where the file has lines.
    line_of: Callable[[Steps], int | None] = lambda _steps: None
    #: Keys that errors leave out, as they would stand in each of them.
    unsaid: frozenset[str] = frozenset()

    def check(self, schema: Mapping[str, Any]) -> None:
        """Check the document, as JSON Schema 2020-12 has it.

        Raises:
            FileError: it breaks `schema`; the message is about a place nearest to the top.
        """
        class_ = _validator_class()
        validator = class_(schema, format_checker=class_.FORMAT_CHECKER)
        try:
            errors = list(validator.iter_errors(self.value))
        except ValueError as error:  # from a number of thousands of digits
            raise FileError(f"{self.source}: {error}") from None
        if errors:
            raise self.error(*_problem(min(errors, key=_depth), validator))

    def error(self, steps: Steps, problem: str) -> FileError:
        """Return the error that `problem`, the rest of a sentence, is of the value at `steps`."""
        line = self.line_of(steps)
        *outer, last = self._words(steps) or ["the file"]
        where = ", ".join(word for word in outer if word not in self.unsaid)
        places = [f"{self.source}, line {line}" if line else self.source, *filter(None, [where])]
        return FileError(f"{': '.join(places)}: {last} {problem}")

    def _words(self, steps: Steps) -> list[str]:
        """Return the words for `steps`: `scale 'small'`, `band 3`, `nodes`."""
        words: list[str] = []
        container = ""
        value: Any = self.value
        for step in steps:
            is_item = isinstance(value, list)
            value = value.get(step) if isinstance(value, dict) else value[step]
            is_plural = container.endswith("s") and container not in self.unsaid
            is_named = isinstance(value, dict) and is_plural
            if is_named:
                name = value.get("name", int(step) + 1) if is_item else step
                words[-1:] = [f"{container.removesuffix('s').replace('_', ' ')} {name!r}"]
            elif is_item:
                words[-1:] = [f"entry {int(step) + 1} of {container}"]
            else:
                words.append(str(step))
            container = words[-1] if is_item else str(step)
        return words


def _depth(error: ValidationError) -> tuple[int, list[str]]:
    """How deep an error is, and its place among those as deep, in an order that stays the same."""
    return len(error.absolute_path), [f"{step!s:>9}" for step in error.absolute_path]


def unknown(value: object, known: Iterable[object]) -> str:
    """Return the rest of a sentence: that `value` is none of `known`, and what may be meant."""
    return f"is {shown(value)}; {one_of(value, known)}"


def one_of(value: object, known: Iterable[object]) -> str:
    """Return what to write in place of `value`: one of `known`, and which one may be meant."""
    words = [str(each) for each in known]
    close = get_close_matches(str(value), words, 1)
    meant = f" (did you mean {close[0]}?)" if close else ""
    return f"write one of {', '.join(words)}{meant}"


def shown(value: object) -> str:
    """Return `value` in a few words at most."""
    if value is None:
        return "empty"
    return value.isoformat() if isinstance(value, date) else _shortened.repr(value)


def _problem(error: ValidationError, validator: Validator) -> tuple[list[str | int], str]:
    """Return what an error is of, and the rest of the sentence."""
    steps = list(error.absolute_path)
    # the parts of a schema are plain data here, which jsonschema declares as anything that JSON is
    schema = cast("Mapping[str, Any]", error.schema)
    value, wanted_by = cast("tuple[Any, Any]", (error.instance, error.validator_value))
    remedy = str(schema.get("description", "something else"))
    if error.validator == "required":
        name = next(name for name in wanted_by if name not in value)
        wanted = schema.get("properties", {}).get(name, {})
        return [*steps, name], f"is missing; add {wanted.get('description', 'it')}{_such(wanted)}"
    if "propertyNames" in error.relative_schema_path:
        rest = one_of(value, wanted_by) if error.validator == "enum" else None
        return [*steps, str(value)], f"is an unknown key; {rest or f'write {remedy}'}"
    if error.validator == "additionalProperties":
        key = next(key for key in value if key not in schema.get("properties", {}))
        return [*steps, str(key)], f"is an unknown key; {one_of(key, schema.get('properties', {}))}"
    if error.validator in {"not", "contains", "anyOf"}:
        return steps, f"is {shown(value)}; {remedy}"
    if error.validator == "enum" and "description" not in schema:
        return steps, unknown(value, wanted_by)
    meant = (each for each in _meant(value) if validator.evolve(schema=schema).is_valid(each))
    example = next(meant, None) if error.validator == "type" else None
    such = _such(schema) if example is None else f", such as {shown(example)}"
    return steps, f"is {shown(value)}; write {remedy}{such}"


def _such(schema: Mapping[str, Any]) -> str:
    return f", such as {schema['examples'][0]!r}" if "examples" in schema else ""


def _meant(value: object) -> Iterator[Any]:
    """Yield what may be meant by a value of the wrong type."""
    if isinstance(value, int | float | str | date) and not isinstance(value, bool):
        yield from ([value], str(value))
        for kind in (int, float):
            with suppress(ValueError):
                yield kind(str(value))
