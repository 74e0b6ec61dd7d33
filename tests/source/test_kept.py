"""The cache that a session keeps of perflogs: reading always gives the same as without it."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import sleep

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import MonkeyPatch

from iobands.source import kept, perflog
from iobands.source.kept import read_sealed, write_sealed
from iobands.source.perflog import read_perflogs
from tests.factory import COLUMNS, line

FIRST = datetime(2026, 3, 1, tzinfo=timezone.utc)
NAME = "read.memory"
#: No less than the tick (ns) by which a kernel dates files.
TICK = 10**7


def a_run(draw: Random) -> str:
    when = FIRST + timedelta(days=draw.randrange(40), seconds=draw.randrange(3))
    return line(
        job_completion_time=when.isoformat(),
        perf_value=str(draw.choice((1, 1.5, 2))),
        file_system=draw.choice(("disk", "work")),
        target_speeds=draw.choice(("null", "write_bw=0:1,1:0.5", "write_bw=0:far")),
    )


def append(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text(f"{COLUMNS}\n", encoding="utf-8")
    with path.open("a", encoding="utf-8") as stream:
        stream.write(text)


def add(path: Path, draw: Random) -> None:
    append(path, "".join(f"{a_run(draw)}\n" for _ in range(draw.randrange(1, 9))))


def damage(path: Path, draw: Random) -> None:
    append(path, draw.choice(("no line\n", "\n", f"{COLUMNS}\n", "a|b\r\n", "\0\n")))


def cut(path: Path, draw: Random) -> None:
    append(path, a_run(draw)[: draw.randrange(1, 90)])


def rotate(path: Path, _: Random) -> None:
    if path.exists():
        path.rename(path.with_name(f"{path.name}.{len(list(path.parent.iterdir()))}"))


def pack(path: Path, _: Random) -> None:
    if path.exists():
        path.with_name(f"{path.name}-20260301.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()


def edit(path: Path, draw: Random) -> None:
    if path.exists():
        content = bytearray(path.read_bytes())
        content[draw.randrange(len(content))] = draw.choice(b"123|\nx")
        path.write_bytes(content)


def shorten(path: Path, draw: Random) -> None:
    if path.exists():
        path.write_bytes(path.read_bytes()[: -draw.randrange(1, 400)])


def delete(path: Path, _: Random) -> None:
    path.unlink(missing_ok=True)


def spoil(path: Path, draw: Random) -> None:
    memory = path.parents[1] / NAME
    if memory.exists():
        content = bytearray(memory.read_bytes())
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        memory.write_bytes(content)


EVENTS: tuple[Callable[[Path, Random], None], ...] = (
    *(add, add, add, damage, cut, rotate, pack, edit, shorten, delete, spoil),
)


@given(st.lists(st.sampled_from(EVENTS), min_size=2, max_size=12), st.integers(0, 2**32))
@settings(max_examples=20)
def test_perflogs_are_read_as_if_nothing_had_been_kept(
    events: list[Callable[[Path, Random], None]], seed: int
) -> None:
    draw = Random(seed)
    with TemporaryDirectory() as scratch, MonkeyPatch.context() as patch:
        patch.setattr(kept, "_TICK", TICK)  # so that lists of compared perflogs are used
        root, anew = Path(scratch, "perflogs"), Path(scratch, "anew")
        for system in ("here", "there"):
            add(root / system / "local" / "X.log", draw)
        for event in events:
            system, name = draw.choice(("here", "there")), draw.choice("XY")
            event(root / system / "local" / f"{name}.log", draw)
            sleep(2 * TICK / 1e9)
            shutil.copytree(root, anew, ignore=shutil.ignore_patterns(NAME))
            expected, found = read_perflogs(anew), read_perflogs(root, keeps=draw.random() < 0.7)
            assert found.measured.equals(expected.measured)
            assert found.missed.equals(expected.missed)
            assert found.speeds.equals(expected.speeds)
            assert [str(each).replace(f"{root}/", "") for each in found.rejected] == [
                str(each).replace(f"{anew}/", "") for each in expected.rejected
            ]
            shutil.rmtree(anew)


def test_only_new_lines_are_parsed(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "here" / "local" / "X.log"
    draw = Random(1)
    append(path, "".join(f"{a_run(draw)}\n" for _ in range(50)))
    before = read_perflogs(tmp_path, keeps=True).measured
    late = line(job_completion_time="2026-05-01T00:00:00+00:00", perf_value="7")
    append(path, f"{late}\n")
    parsed: list[bytes] = []

    class Watched(perflog.Layout):
        def add(self, text: bytes, file: int, first: int) -> int:
            parsed.append(text)
            assert (file, first) == (0, 52)
            return super().add(text, file, first)

    monkeypatch.setattr(perflog, "Layout", Watched)
    after = read_perflogs(tmp_path).measured
    assert parsed == [f"{late}\n".encode()]
    assert after.head(len(before)).equals(before)
    assert after.tail(1)["perf_value"].to_list() == [7]


def bytes_read(directory: Path) -> int:
    """Return how many bytes this process reads while it reads the perflogs."""

    def so_far() -> int:
        said = Path("/proc/self/io").read_text(encoding="ascii")
        return int(said.partition("rchar: ")[2].split()[0])

    before = so_far()
    read_perflogs(directory)
    return so_far() - before


def test_a_perflog_that_a_session_compared_is_not_read_until_it_changes(
    tmp_path: Path, monkeypatch
) -> None:
    path, seen = tmp_path / "here" / "local" / "X.log", tmp_path / "here" / "seen.memory"
    draw = Random(8)
    append(path, "".join(f"{a_run(draw)}\n" for _ in range(20_000)))
    size = path.stat().st_size
    read_perflogs(tmp_path, keeps=True)
    assert bytes_read(tmp_path) > size
    read_perflogs(tmp_path, keeps=True)
    assert seen.exists()
    assert bytes_read(tmp_path) > size, "another change may have the same date"
    monkeypatch.setattr(kept, "_TICK", 0)
    assert bytes_read(tmp_path) < size / 2
    about = path.stat()
    content = path.read_bytes()
    path.write_bytes(content.replace(b"|2|", b"|3|"))  # as many bytes, and dated as before
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert path.stat().st_mtime_ns == about.st_mtime_ns
    assert 3 in read_perflogs(tmp_path).measured["perf_value"]


def test_a_packed_perflog_becomes_a_link_to_nothing(tmp_path: Path) -> None:
    path = tmp_path / "here" / "local" / "X.log"
    add(path, Random(6))
    pack(path, Random(6))
    (packed,) = path.parent.glob("*.gz")
    assert len(read_perflogs(tmp_path, keeps=True).measured)
    packed.unlink()
    packed.symlink_to("nothing.gz")
    logs = read_perflogs(tmp_path)
    assert (len(logs.measured), len(logs.rejected)) == (0, 1)


def test_a_perflog_whose_name_is_no_text_is_read_and_not_kept(tmp_path: Path) -> None:
    draw = Random(7)
    add(tmp_path / "here" / "local" / "X.log", draw)
    add(tmp_path / "here" / "local" / "f\udce9.log", draw)
    expected = read_perflogs(tmp_path, keeps=True).measured
    assert (tmp_path / "here" / NAME).exists()
    assert read_perflogs(tmp_path).measured.equals(expected)


def test_a_reader_keeps_nothing(tmp_path: Path) -> None:
    add(tmp_path / "here" / "local" / "X.log", Random(2))
    read_perflogs(tmp_path)
    assert not (tmp_path / "here" / NAME).exists()


def test_a_little_that_is_new_is_not_worth_writing(tmp_path: Path) -> None:
    path, memory = tmp_path / "here" / "local" / "X.log", tmp_path / "here" / NAME
    draw = Random(3)
    append(path, "".join(f"{a_run(draw)}\n" for _ in range(100)))
    read_perflogs(tmp_path, keeps=True)
    first = memory.read_bytes()
    append(path, f"{a_run(draw)}\n")
    read_perflogs(tmp_path, keeps=True)
    assert memory.read_bytes() == first
    append(path, "".join(f"{a_run(draw)}\n" for _ in range(10)))
    read_perflogs(tmp_path, keeps=True)
    assert memory.read_bytes() != first


def test_what_another_version_sealed_counts_as_missing(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "sealed"
    write_sealed(path, b"content")
    assert read_sealed(path, bytes.decode) == "content"
    monkeypatch.setattr(kept, "_version", lambda: b"another")
    assert read_sealed(path, bytes.decode) is None


def test_what_somebody_else_sealed_counts_as_missing(tmp_path: Path) -> None:
    add(tmp_path / "here" / "local" / "X.log", Random(5))
    expected = read_perflogs(tmp_path, keeps=True).measured
    stored = kept.read_sealed(tmp_path / "here" / NAME, kept._decoded)
    assert stored is not None
    for content in (
        b"",
        b"\xc1",
        msgspec.msgpack.encode({"files": 1}),
        msgspec.msgpack.encode(replace(stored, rows=stored.said)),
        msgspec.msgpack.encode(replace(stored, rows=b"PAR1")),
        msgspec.msgpack.encode(replace(stored, said=b"PAR1")),
        msgspec.msgpack.encode(replace(stored, files=[])),
        msgspec.msgpack.encode(replace(stored, files=[replace(stored.files[0], number=7)])),
    ):
        write_sealed(tmp_path / "here" / NAME, content)
        assert read_perflogs(tmp_path).measured.equals(expected)
