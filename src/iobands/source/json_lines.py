"""Append-only logs with one JSON object a line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from iobands.model import Rejected, Unusable, held, is_of_this_age, leave_out, naming, read_small

_LOCK_SECONDS: Final = 10
_Item = TypeVar("_Item")


def read_lines(
    path: Path, newest: int, known: Collection[str], item_of: Callable[[dict[str, Any]], _Item]
) -> tuple[list[_Item], list[Rejected]]:
    """Return the items of a log, and the lines that are rejected or lack what is not known here.

    `item_of` makes an item of an object, or raises `Unusable`; a newer object has its `known`
    fields alone.

    Raises:
        OSError: the file cannot be read.
    """
    items, rejected = [], []
    for number, line in _numbered_lines(path):
        try:
            said, left = object_of(line, newest, known)
            items.append(item_of(said))
            rejected += [Rejected(path, number, left)] if left else []
        except Unusable as error:
            rejected.append(Rejected(path, number, str(error)))
    return items, rejected


def _numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a log that are not empty, with their numbers; none without a file.

    Raises:
        OSError: the file cannot be read.
    """
    if path.exists():
        for number, line in enumerate(read_small(path).splitlines(), start=1):
            if line.strip():
                yield number, line


def object_of(line: bytes, newest: int, known: Collection[str]) -> tuple[dict[str, Any], str]:
    """Return the object on a line, with a `schema` from 1 to `newest`, and what was left out of it.

    Of a newer object, only the `known` fields are left.

    Raises:
        Unusable: the line is not such an object; the message says why.
    """
    try:
        said = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"not JSON: {error}") from None
    if not isinstance(said, dict):
        raise Unusable("not an object")
    left = leave_out(said, newest, known)
    schema = said.get("schema")
    if schema not in range(1, newest + 1) or isinstance(schema, bool):
        raise Unusable(f"schema is {schema!r}, not a number from 1")
    unknown = sorted(said.keys() - set(known))
    if unknown:
        raise Unusable(f"unknown field {unknown[0]!r}")
    return said, left


def time_in(fields: Mapping[str, Any], name: str) -> datetime:
    """Return the time in a field.

    Raises:
        Unusable: it is not a time with an offset, of this age.
    """
    text = fields[name]
    try:
        found = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        raise Unusable(f"{name} is {text!r}, not a time") from None
    if not is_of_this_age(found):
        raise Unusable(f"{name} is in the year {found.year}, which is impossible")
    if found.utcoffset() is None:
        raise Unusable(f"{name} {text!r} has no UTC offset")
    return found


def append_lines(path: Path, lines: Sequence[str]) -> Path:
    """Append `lines` to a log and return its path.

    Raises:
        OSError: the file cannot be written, and is unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = held(path.with_name(f"{path.name}.lock"), _LOCK_SECONDS)
    with naming(path), lock, path.open("a+b", buffering=0) as stream:
        size = stream.seek(0, os.SEEK_END)
        rest = "".join(f"{line}\n" for line in lines).encode(errors="replace")
        if size:
            stream.seek(size - 1)
            if stream.read(1) != b"\n":  # saved so by an editor, or a torn line
                rest = b"\n" + rest
        try:
            while rest:
                rest = rest[stream.write(rest) :]
            os.fsync(stream.fileno())
        except OSError:
            stream.truncate(size)  # what was not logged must not count
            raise
    return path


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")
