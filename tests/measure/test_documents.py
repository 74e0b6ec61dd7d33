"""Reading a JSON document into a dataclass, and documents that do not fit it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from iobands.measure.documents import decoded, read_object, write_document
from iobands.model import Unusable


@dataclass(frozen=True)
class Part:
    number: float | None = None


@dataclass(frozen=True)
class Whole:
    name: str
    when: datetime
    where: Path
    count: int = 0
    part: Part | None = None
    pair: tuple[int, float] = (0, 0.0)
    names: tuple[str, ...] = ()
    rates: Mapping[str, float] = field(default_factory=dict)


WHEN = datetime(2026, 11, 21, 8, 30, tzinfo=timezone(timedelta(hours=1)))
WHOLE = Whole("a", WHEN, Path("/b"), 3, Part(1.5), (7, 0.5), ("c", "d"), {"e": 2.5})
LEAST = {"name": "a", "when": WHEN.isoformat(), "where": "/b"}


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    write_document(tmp_path / "whole.json", {"schema": 2, **asdict(WHOLE)})
    assert decoded(Whole, read_object(tmp_path / "whole.json", range(1, 3))) == WHOLE
    with pytest.raises(Unusable, match="schema"):
        read_object(tmp_path / "whole.json", (1,))


def test_what_is_not_known_is_left_out_and_what_is_missing_has_its_default() -> None:
    assert decoded(Whole, {**LEAST, "colour": "red"}) == Whole("a", WHEN, Path("/b"))


def test_no_text_moves_the_cursor_of_a_terminal() -> None:
    found = decoded(Whole, {**LEAST, "name": "a\x1b[2J\nb\ud800", "where": "/b\t"})
    assert (found.name, found.where) == ("a [2J b ", Path("/b\t"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, None) for name in ("name", "when", "where", "count", "pair", "names", "rates")),
        *(("count", value) for value in (True, 1.0, "1", 2**63, 10**400)),
        *(("part", value) for value in ([], "x", {"number": "1"}, {"number": float("nan")})),
        *(("pair", value) for value in ([1], [1, 2.0, 3], [1.5, 2], {"0": 1})),
        ("names", [1]),
        ("names", "text"),
        ("rates", {"e": float("inf")}),
        ("rates", []),
        ("when", "2026-11-21T08:30:00"),
        ("when", 1),
        ("where", 1),
    ],
)
def test_a_value_of_another_type_is_refused(name: str, value: object) -> None:
    with pytest.raises(Unusable):
        decoded(Whole, {**LEAST, name: value})


@pytest.mark.parametrize("said", [{"name": "a"}, [], None, "a"])
def test_what_lacks_a_field_is_refused(said: object) -> None:
    with pytest.raises(Unusable):
        decoded(Whole, said)


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"null", b"[" * 100_000, b"9" * 5000])
def test_what_is_no_object_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "whole.json"
    path.write_bytes(content)
    with pytest.raises(Unusable):
        read_object(path)


@pytest.mark.parametrize("schema", [None, [], {}, "1", 3])
def test_another_schema_is_refused(tmp_path: Path, schema: object) -> None:
    path = tmp_path / "whole.json"
    path.write_text(json.dumps({"schema": schema}))
    with pytest.raises(Unusable):
        read_object(path, range(1, 3))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "whole.json")
    with pytest.raises(OSError, match="not a regular file"):
        read_object(tmp_path / "whole.json")
