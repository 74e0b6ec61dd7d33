"""The reader agrees with a simple one that reads cell by cell."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from iobands.model import READ, SPEEDS
from iobands.source import lines as lines_
from iobands.source import perflog
from iobands.source.perflog import read_perflogs
from tests.factory import COLUMNS, line
from tests.source import oracle

NAMES = COLUMNS.split("|")
#: Cells that are barely, or barely not, a number, a time or null.
CELLS = [
    "", "null", "None", " null ", "NULL", "nan", "NaN", "inf", "-inf", "Infinity", "0", "-0", "-1",
    "0.0", "1.", ".5", "+1.5", "1e3", "1E-3", "1e400", "1e-400", "4.0", "4.5", "0x10", "1_5",
    "9007199254740991", "9007199254740992", "99999999999999999999", "1,5", "true", "\u0661", "x y",
    " 1 ", "\t2\t", "3\r", "\x0b4", "5\x1f", "\xa06", '"7"', "~", "}", "a\\b", "write_bw",
    "read_bw", "speed", "GiB/s", "GB/s", "pass", "fail", "2026-02-29T00:00:00+00:00",
    "2024-02-29T00:00:00+00:00", "2026-11-31T00:00:00+00:00", "2026-12-31T23:59:60+00:00",
    "2026-11-20T01:29:12", "2026-11-20 01:29:12Z", "2026-11-20t01:29:12z",
    "2026-11-20T01:29:12.5+00:00", "2026-11-20T24:00:00+00:00", "2026-11-20T01:29:12+23:59",
    "2026-11-20T01:29:12-14:00", "2026-11-20T01:29:12+0000", "1969-12-31T23:59:59+00:00",
    "1970-01-01T00:30:00+01:00", "2199-12-31T23:59:59-01:00", "2200-01-01T00:00:00+00:00",
    "0001-01-01T00:00:00+00:00", "job_completion_time", "perf_value",
]  # fmt: skip
DAMAGED = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(CELLS), max_size=3).map(
    lambda cells: line(**cells).encode()
)
CUT = st.integers(0, len(line())).map(lambda length: line().encode()[:length])
STRUCK = st.tuples(st.integers(0, len(line()) - 1), st.binary(max_size=2)).map(
    lambda hit: line().encode()[: hit[0]] + hit[1] + line().encode()[hit[0] + 1 :]
)
HEADERS = st.sampled_from(
    [
        COLUMNS,
        f"more|{COLUMNS}",
        COLUMNS.replace("|gib", ""),
        f"{COLUMNS}|gib",
        f"{COLUMNS}|targets",
        f"{COLUMNS}|",
    ]
).map(str.encode)
LINES = st.lists(
    st.one_of(st.just(line().encode()), DAMAGED, DAMAGED, CUT, STRUCK, HEADERS), max_size=12
)


@settings(max_examples=100)
@given(
    lines=LINES,
    end=st.sampled_from([b"\n", b"\r\n"]),
    unfinished=st.booleans(),
    block=st.sampled_from([1, 1000, 2**23]),
)
@example([line().encode()] * 3, b"\r\n", False, 1)
@example([line(perf_value=cell).encode() for cell in CELLS], b"\n", True, 5000)
@example([line(stripe_count=cell).encode() for cell in CELLS], b"\n", False, 2**23)
@example([line(nodes=cell).encode() for cell in CELLS], b"\n", False, 2**23)
@example([line(gib=cell).encode() for cell in CELLS], b"\n", False, 2**23)
@example([line(targets_active=cell).encode() for cell in CELLS], b"\n", False, 2**23)
@example([line(load_per_node=cell).encode() for cell in CELLS], b"\n", False, 2**23)
@example([line(job_completion_time=cell).encode() for cell in CELLS], b"\n", False, 2**23)
@example([line(system=cell).encode() for cell in CELLS], b"\n", False, 2**23)
def test_both_readers_agree(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lines: list[bytes],
    end: bytes,
    unfinished: bool,
    block: int,
) -> None:
    content = end.join([COLUMNS.encode(), *lines, b""])
    content = content[:-1] if unfinished else content
    rows, rejected = oracle.read(content)
    path = tmp_path / "here" / "local" / "X.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    monkeypatch.setattr(perflog, "_BLOCK", block)
    monkeypatch.setattr(lines_, "_BLOCK", 2 * block)
    found = read_perflogs(tmp_path)
    runs = [row for row in rows if row["perf_var"] is not None]
    runs = [row for row in runs if row["perf_value"] is not None or row["result"] != "pass"]
    distinct: dict[tuple[object, ...], oracle.Row] = {}
    for row in runs:
        distinct.setdefault(tuple(row[name] for name in perflog._SAME), row)
    expected = sorted(distinct.values(), key=lambda row: row["job_completion_time"])
    assert found.measured.rows(named=True) == [r for r in expected if r["perf_value"] is not None]
    assert found.missed.rows(named=True) == [r for r in expected if r["perf_value"] is None]
    repeats = [each for each in found.rejected if each.reason.startswith("repeats ")]
    assert len(repeats) == len(runs) - len(distinct)
    no_speeds = tuple(f"{name}: " for name in SPEEDS)  # a line without valid speeds still counts
    lost = [each for each in found.rejected if not each.reason.startswith(no_speeds)]
    others = [each.line for each in lost if each not in repeats]
    assert others == sorted(rejected)
    assert found.measured.columns == list(READ)
