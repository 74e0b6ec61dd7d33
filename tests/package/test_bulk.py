"""The fast reader agrees with the exact one, whatever is in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from iobands.readers import files
from iobands.readers.bulk import read_block
from iobands.readers.files import Part, read_file
from iobands.readers.lines import Contract
from iobands.readers.table import LINE, concatenated
from tests.package.factory import COLUMNS, ROW, line

NAMES = COLUMNS.split("|")
#: Cells in which the two readers might differ: at the edges of what is a number, a time or null.
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
    "0001-01-01T00:00:00+00:00",
]  # fmt: skip
DAMAGED = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(CELLS), max_size=3).map(
    lambda cells: line(**cells).encode()
)
CUT = st.integers(0, len(line())).map(lambda length: line().encode()[:length])
STRUCK = st.tuples(st.integers(0, len(line()) - 1), st.binary(max_size=2)).map(
    lambda hit: line().encode()[: hit[0]] + hit[1] + line().encode()[hit[0] + 1 :]
)
HEADERS = st.sampled_from(
    [COLUMNS, f"more|{COLUMNS}", COLUMNS.replace("|gib", ""), f"{COLUMNS}|gib", f" {COLUMNS} "]
).map(str.encode)
LINES = st.lists(
    st.one_of(st.just(line().encode()), DAMAGED, DAMAGED, CUT, STRUCK, HEADERS), max_size=12
)


def read(path: Path, monkeypatch: pytest.MonkeyPatch, few: int) -> Part:
    monkeypatch.setattr(files, "FEW_LINES", few)
    monkeypatch.setattr(files, "_MANY", 10**9)
    return read_file(path, Contract())


@settings(max_examples=300)
@given(lines=LINES, end=st.sampled_from([b"\n", b"\r\n"]), unfinished=st.booleans())
@example(lines=[line().encode()] * 3, end=b"\r\n", unfinished=False)
@example(lines=[line(perf_value=cell).encode() for cell in CELLS], end=b"\n", unfinished=True)
@example(lines=[line(stripe_count=c).encode() for c in CELLS], end=b"\n", unfinished=False)
@example(
    lines=[line(job_completion_time=cell).encode() for cell in CELLS], end=b"\n", unfinished=False
)
def test_both_readers_agree(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lines: list[bytes],
    end: bytes,
    unfinished: bool,
) -> None:
    path = tmp_path / "X.log"
    content = end.join([COLUMNS.encode(), *lines, b""])
    path.write_bytes(content[:-1] if unfinished else content)
    exact, fast = read(path, monkeypatch, 10**9), read(path, monkeypatch, 1)
    tables = [concatenated(part.tables) for part in (exact, fast)]
    assert tables[0].to_pylist() == tables[1].to_pylist()
    assert sorted(exact.reasons) == sorted(fast.reasons)
    assert (exact.place, exact.ending) == (fast.place, fast.ending)


def test_good_lines_are_proved_and_not_left_to_the_exact_reader() -> None:
    good = [line(perf_value=value, tasks="4.0") for value in ("1.5", "1e2", "7")]
    block = read_block(
        "".join(f"{text}\n" for text in [*good, line(perf_value="x")]).encode(), NAMES
    )
    assert [number for number, _ in block.doubtful] == [3]
    assert block.table.column(LINE).to_pylist() == [0, 1, 2]
    assert block.table.column("perf_value").to_pylist() == [1.5, 100, 7]
    assert block.table.column("tasks").to_pylist() == [4, 4, 4]


def test_a_file_of_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_BLOCK", 5000)  # about ten lines
    path = tmp_path / "X.log"
    texts = [line(jobid=number) for number in range(1000)]
    texts[500] = line(perf_value="x")
    texts[700] = f"more|{COLUMNS}"
    texts[701:] = [f"y|{text}" for text in texts[701:]]
    path.write_text("".join(f"{text}\n" for text in [COLUMNS, *texts]))
    part = read_file(path, Contract())
    assert part.reasons == [
        (502, "perf_value: 'x' is not a finite number"),
        (702, "another header line amid the file"),
    ]
    rows = concatenated(part.tables)
    expected = [number for number in range(1000) if number not in {500, 700}]
    assert rows.column("jobid").to_pylist() == [str(number) for number in expected]
    assert rows.column(LINE).to_pylist() == [number + 2 for number in expected]
    assert part.place.lines == 1001
    assert ROW["jobid"] == "5649"
