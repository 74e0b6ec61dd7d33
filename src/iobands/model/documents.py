"""Reads, checks and writes documents, times and numbers.

An error says in one sentence what is wrong in a document, and where, in the words of its schema:
`description` says what to write ("a number from 1"), and the first of `examples` follows it. For
`not`, `contains` and `anyOf`, it says what to do ("leave it out"). A value with `writeOnly` may be
a secret, so no error shows it.
"""

from __future__ import annotations

import codecs
import re
import reprlib
import sys
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Context, Decimal
from difflib import get_close_matches
from functools import cache, reduce
from operator import getitem
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import yaml

from iobands.model.files import FileError, read_small

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

#: The keys and list indices that lead to a value.
Steps = Sequence[str | int]


def _is_finite(_checker: object, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


@cache
def _validator_class() -> type[Validator]:
    from jsonschema import Draft4Validator, Draft202012Validator  # noqa: PLC0415 (slow to load)
    from jsonschema.validators import extend  # noqa: PLC0415

    # As in draft 4, 1.0 is not an integer. NaN and infinities, which JSON lacks, are not numbers.
    types = Draft4Validator.TYPE_CHECKER.redefine("number", _is_finite)
    class_: type[Validator] = extend(Draft202012Validator, type_checker=types)  # type: ignore[no-untyped-call]
    return class_


_shortened: Final = reprlib.Repr()
_shortened.maxstring = _shortened.maxother = 60
_shortened.maxlevel = 2


@dataclass(frozen=True)
class Document:
    """The content of a file, which makes the errors about it; `source` names the file in them."""

    source: str
    value: Any
    #: The YAML nodes, from which errors take line numbers; None if these are not known.
    root: yaml.Node | None = None
    #: Keys that errors do not name, as nearly every error would.
    unsaid: frozenset[str] = frozenset()

    def check(self, schema: Mapping[str, Any]) -> None:
        """Check the document against `schema`, in JSON Schema 2020-12.

        Raises:
            FileError: the document breaks it; the message is about the outermost place.
        """
        class_ = _validator_class()
        validator = class_(schema, format_checker=class_.FORMAT_CHECKER)
        if errors := self._errors(validator):
            raise self.error(*_problem(min(errors, key=_depth), validator))

    def _errors(self, validator: Validator) -> list[ValidationError]:
        try:
            return list(validator.iter_errors(self.value))
        except ValueError as error:  # an integer with thousands of digits
            raise FileError(f"{self.source}: {error}") from None

    def at(self, steps: Steps) -> Any:  # noqa: ANN401
        """Return the value at the end of the steps."""
        return reduce(getitem, steps, self.value)

    def known_part(
        self, newest: int, schema: Mapping[str, Any], parts: Collection[str] = ()
    ) -> tuple[Document, list[str]]:
        """Return the part of the document that this version knows, and a sentence per omission.

        If the document's `schema` is at most `newest`, this is all of it. From a newer one, unknown
        keys are removed, then each entry of the lists in `parts` that still breaks `schema`. The
        result has no line numbers.
        """
        if not is_newer(self.value, newest):
            return self, []
        why = f"is of schema {self.value['schema']}, which is newer than {newest}; it is left out"
        known, left = replace(self, value=deepcopy(self.value), root=None), []

        def leave_out(steps: Steps) -> None:
            left.append(str(self.error(steps, why)))
            del known.at(steps[:-1])[steps[-1]]

        known.value["schema"], validator = newest, _validator_class()(schema)
        for error in sorted(known._errors(validator), key=_depth):
            for steps in _unknown_keys(error):
                leave_out(steps)
        broken = {
            tuple(steps[: place + 2])
            for steps in (list(error.absolute_path) for error in known._errors(validator))
            for place, step in enumerate(steps[:-1])
            if step in parts
        }
        for entry in sorted(broken, reverse=True):  # from the end, as deleting moves later ones
            leave_out(entry)
        return known, left

    def error(self, steps: Steps, problem: str) -> FileError:
        """Return an error about the value at `steps`; `problem` completes its sentence."""
        line = _line(self.root, steps)
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
            if isinstance(value, dict) and is_plural:
                name = value.get("name", int(step) + 1) if is_item else step
                words[-1:] = [f"{container.removesuffix('s').replace('_', ' ')} {name!r}"]
            elif is_item:
                words[-1:] = [f"entry {int(step) + 1} of {container}"]
            else:
                words.append(str(step))
            container = words[-1] if is_item else str(step)
        return words


_MOST_VERSIONS: Final = 100  # a larger `schema` is a mistake, not a newer version


def is_newer(value: object, newest: int) -> bool:
    """Whether a document says that it is of a later version than `newest`."""
    schema = value.get("schema") if isinstance(value, dict) else None
    return type(schema) is int and newest < schema < _MOST_VERSIONS


def _unknown_keys(error: ValidationError) -> list[list[str | int]]:
    """Return the steps to the unknown keys that an error is about; [] for any other error."""
    steps = list(error.absolute_path)
    if "propertyNames" in error.relative_schema_path:
        return [[*steps, str(error.instance)]]
    if error.validator != "additionalProperties":
        return []
    known = cast("Mapping[str, Any]", error.schema).get("properties", {})
    keys = cast("Mapping[str, Any]", error.instance).keys() - known.keys()
    return [[*steps, key] for key in sorted(keys, key=str)]


def _depth(error: ValidationError) -> tuple[int, list[str]]:
    """Return a sort key: the depth of an error, then the steps to it."""
    return len(error.absolute_path), [f"{step!s:>9}" for step in error.absolute_path]


def unknown(value: object, known: Iterable[object]) -> str:
    """Return the rest of an error: what `value` is, and to write one of `known` instead."""
    return f"is {shown(value)}; {one_of(value, known)}"


def one_of(value: object, known: Iterable[object]) -> str:
    """Return the advice to write one of `known`, with the one that is most like `value`."""
    if not (words := [str(each) for each in known]):
        return "there is none to choose from"
    close = get_close_matches(str(value), words, 1)
    meant = f" (did you mean {close[0]}?)" if close else ""
    return f"write one of {', '.join(words)}{meant}"


def shown(value: object) -> str:
    """Return `value` as a short text for a message."""
    if value is None:
        return "empty"
    return value.isoformat() if isinstance(value, date) else _shortened.repr(value)


# Letters and marks that show nothing; two names may differ in them alone.
_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def printable(text: str) -> str:
    """Return `text` with ? for control and invisible characters.

    Text from outside could upset a terminal, or look like another text.
    """
    said = text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)
    return said if said.isascii() else _INVISIBLE.sub("?", said)


_THREE_DIGITS: Final = Context(prec=3, rounding=ROUND_HALF_UP)


def figure(value: float) -> str:
    """Return `value` with three significant digits, and from 100 to 9999 with no decimals.

    A half is rounded up, as in a browser. No number has an exponent.
    """
    hundred, ten_thousand = 100, 10_000
    exact = Decimal(value)
    if hundred <= abs(value) < ten_thousand:
        return f"{exact.to_integral_value(ROUND_HALF_UP):.0f}"
    rounded = float(_THREE_DIGITS.plus(exact))
    return f"{Decimal(f'{rounded:.3g}'):f}" if abs(rounded) < hundred else f"{rounded:.0f}"


#: The name of `_plain` as an error handler, for characters that a stream cannot encode.
PLAIN: Final = "iobands-plain"
_INSTEAD: Final = {
    **{"–": "-", "−": "-", "…": "~", "×": "x", "→": "->", "│": "|", "³": "^3", "⁰": "0"},
    **{block: str(level) for level, block in enumerate("▁▂▃▄▅▆▇█", 1)},
}


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Return ASCII in place of the characters that cannot be encoded, and where these end."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_INSTEAD.get(each, "?") for each in lacking), error.end


codecs.register_error(PLAIN, _plain)


def _problem(error: ValidationError, validator: Validator) -> tuple[list[str | int], str]:
    """Return the steps to the value that is wrong, and the rest of the sentence about it."""
    steps = list(error.absolute_path)
    # the parts of a schema are plain data here; jsonschema declares them as any JSON
    schema, kind = cast("Mapping[str, Any]", error.schema), error.validator
    value, wanted_by = cast("tuple[Any, Any]", (error.instance, error.validator_value))
    remedy = str(schema.get("description", "something else"))
    if schema.get("writeOnly"):
        return steps, f"cannot be used; write {remedy}{_such(schema)}"
    if kind == "required":
        name = next(name for name in wanted_by if name not in value)
        wanted = schema.get("properties", {}).get(name, {})
        return [*steps, name], f"is missing; add {wanted.get('description', 'it')}{_such(wanted)}"
    for place in _unknown_keys(error):
        names = schema.get("properties", {}) if kind == "additionalProperties" else wanted_by
        is_listed = kind in {"additionalProperties", "enum"}
        rest = one_of(place[-1], names) if is_listed else f"write {remedy}"
        return place, f"is an unknown key; {rest}"
    if kind in {"not", "contains", "anyOf"}:
        return steps, f"is {shown(value)}; {remedy}"
    if kind == "enum" and "description" not in schema:
        return steps, unknown(value, wanted_by)
    such = _such(schema)
    if kind == "type":
        is_valid = validator.evolve(schema=schema).is_valid
        such = next((f", such as {shown(each)}" for each in _meant(value) if is_valid(each)), such)
    return steps, f"is {shown(value)}; write {remedy}{such}"


def _such(schema: Mapping[str, Any]) -> str:
    return f", such as {schema['examples'][0]!r}" if "examples" in schema else ""


def _meant(value: object) -> Iterator[Any]:
    """Yield what may be meant by a value of the wrong type: a list with it, its text, a number."""
    if isinstance(value, int | float | str | date) and not isinstance(value, bool):
        yield from ([value], str(value))
        for kind in (int, float):
            with suppress(ValueError):
                yield kind(str(value))


_WANTED: Final = "write a date such as 2023-10-09, or a time such as 2023-10-09T06:00:00+01:00"
_MOST_DAYS: Final = 10_000
_YEARS: Final = range(1900, 2200)  # valid in every time zone, and in 64-bit nanoseconds


def interval_of(days: object) -> timedelta | None:
    """Return the interval that a check declares in `days`, or None."""
    if isinstance(days, int | float) and 0 < days < _MOST_DAYS:
        return timedelta(days=days)
    return None


def from_unix(seconds: float | None) -> datetime | None:
    """Return the moment `seconds` after 1970, to the second; None if it is out of range."""
    try:
        found = None if seconds is None else datetime.fromtimestamp(seconds // 1, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None
    return found if found and found.year in _YEARS else None


def utc_text(when: datetime) -> str:
    """Return a moment as ISO 8601 in UTC, with the suffix Z."""
    return when.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def seconds_of(duration: str) -> float:
    """Return the seconds of a duration as ReFrame writes them: 1d2h3m4s.

    Raises:
        ValueError: it is not a duration.
    """
    found = re.fullmatch(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", duration, re.ASCII)
    if not (found and duration):
        raise ValueError("not a duration; write for example 90m, 4h or 1d")
    units = (86_400, 3600, 60, 1)
    return sum(int(number or 0) * unit for number, unit in zip(found.groups(), units, strict=True))


def parse_time(value: object) -> datetime:
    """Return the moment of a `value` from YAML or JSON; a date alone is 00:00 UTC.

    Raises:
        ValueError: it is not a time; the message says what to write.
    """
    text = str(value.isoformat() if isinstance(value, date) else value).strip()
    try:  # Python 3.10 does not know the suffix Z
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise ValueError(f"is {shown(value)}; {_WANTED}") from None
    if found.year not in _YEARS:
        raise ValueError(f"is in the year {found.year}; write one from {_YEARS[0]} to {_YEARS[-1]}")
    if len(text) == len("2023-10-09"):
        return found.replace(tzinfo=timezone.utc)
    if found.utcoffset() is None:
        raise ValueError(f"is {shown(value)}, which has no UTC offset; {_WANTED}")
    return found


_MOST_VALUES: Final = 1_000_000
_MOST_MIB: Final = 4  # four times the bands of 5000 series; it takes six seconds to read

# libyaml if PyYAML was built with it: ten times as fast
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):  # type: ignore[misc]
    """A safe loader that refuses keys that YAML may misread.

    YAML uses the last of two equal keys, and reads `no` and `1` as a boolean and a number.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            key, kind = key_node.value, key_node.tag.removeprefix("tag:yaml.org,2002:")
            if kind == "merge":
                continue
            if kind != "str" or key in seen:
                why = f"{key!r} is given twice" if kind == "str" else f"{shown(key)} needs quotes"
                mark = key_node.start_mark
                raise yaml.constructor.ConstructorError(None, None, f"the key {why}", mark)
            seen.add(key)
        return cast(dict[Hashable, Any], super().construct_mapping(node, deep))


def read_content(path: Path) -> bytes:
    """Return the content of the file at `path`.

    Raises:
        FileError: it cannot be read.
    """
    try:
        return read_small(path)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from error


def parse_yaml(content: bytes, path: Path) -> Document:
    """Return the document in `content`, the text of the file at `path`.

    Raises:
        FileError: it is not UTF-8, not YAML, too large, has a key twice, or contains itself.
    """
    try:
        if len(content) > _MOST_MIB << 20:
            raise yaml.YAMLError(f"it has more than {_MOST_MIB} MiB")
        loader = _Loader(content.decode("utf-8-sig"))
        root = loader.get_single_node()
        value = loader.construct_document(root) if root else None
        if _count(value, {}) > _MOST_VALUES:
            raise yaml.YAMLError(f"its aliases stand for more than {_MOST_VALUES} values")
    except UnicodeDecodeError as error:
        raise FileError(
            f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8"
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        problem = error.problem or error.context or "not YAML"
        raise FileError(f"{path}{line}: {problem}; correct the YAML there") from error
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        problem = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FileError(f"{path}: not readable as YAML: {problem}") from error
    return Document(str(path), value, root)


@cache
def load_schema(path: Path) -> dict[str, Any]:
    """Return the JSON Schema in one of our YAML files."""
    return cast(dict[str, Any], yaml.load(path.read_bytes(), Loader=_SafeLoader))  # noqa: S506


def _count(value: object, counts: dict[int, float]) -> float:
    """Return the number of values in `value`; each alias counts as a copy."""
    if not isinstance(value, list | dict):
        return 1
    if id(value) not in counts:
        counts[id(value)] = float("inf")  # found while it is counted, it contains itself
        inside = value.values() if isinstance(value, dict) else value
        counts[id(value)] = 1 + sum(_count(each, counts) for each in inside)
    return counts[id(value)]


def _line(node: yaml.Node | None, steps: Steps) -> int | None:
    """Return the line of the value at `steps`, or of the last step that exists."""
    key = node
    for step in steps:
        if isinstance(node, yaml.SequenceNode):
            key = node = node.value[step]
        elif isinstance(node, yaml.MappingNode):
            pairs = (pair for pair in node.value if pair[0].value == step)
            key, node = next(pairs, (key, None))
    return None if key is None else key.start_mark.line + 1
