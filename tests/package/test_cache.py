"""The cache of perflogs: what comes from it equals what reading anew gives."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest

from iobands.readers import cache, perflog
from iobands.readers.kinds import ROWS
from iobands.readers.perflog import Perflogs, read_perflogs
from tests.package.factory import COLUMNS, daily, days_ago, line, write_perflog


@pytest.fixture(autouse=True)
def _small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perflog, "WORTH_KEEPING", 1)
    monkeypatch.setattr(perflog, "WORTH_ADDING", 10**9)


def append(path: Path, *lines: str) -> None:
    with path.open("a") as log:
        log.write("".join(f"{text}\n" for text in lines))


def anew(directory: Path) -> Perflogs:
    """Read without the cache that is there."""
    before = os.environ["XDG_CACHE_HOME"]
    os.environ["XDG_CACHE_HOME"] = "/dev/null"
    try:
        return read_perflogs(directory)
    finally:
        os.environ["XDG_CACHE_HOME"] = before


def check_equal(found: Perflogs, expected: Perflogs) -> None:
    for ours, theirs in ((found.samples, expected.samples), (found.misses, expected.misses)):
        pd.testing.assert_frame_equal(ours, theirs, check_categorical=False)
    assert (found.others, found.rejected) == (expected.others, expected.rejected)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    rows = [*daily([1.0, None, 3.0], last=5), line(perf_value="x"), line(perf_var="null",
            perf_value="null")]  # fmt: skip
    write_perflog(tmp_path, rows)
    write_perflog(tmp_path, daily([7.0, 8.0], last=4.5, pattern="ssf"), name="Other.log")
    return tmp_path


def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Return where each perflog will have been read from."""
    seen = []
    original = perflog.read_file

    def read_file(path, format_, place):
        seen.append((path.name, place.offset))
        return original(path, format_, place)

    monkeypatch.setattr(perflog, "read_file", read_file)
    return seen


def test_what_did_not_change_is_not_read(
    logs: Path, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = read_perflogs(logs)
    assert [path.suffix for path in caches.iterdir()] == [".parquet"]
    seen = reads(monkeypatch)
    check_equal(read_perflogs(logs), first)
    assert seen == []
    check_equal(first, anew(logs))


def test_only_what_was_appended_is_read(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_perflogs(logs)
    path = logs / "here" / "local" / "Other.log"
    size = path.stat().st_size
    append(path, *daily([9.0], pattern="ssf"), line(perf_value="y"))
    seen = reads(monkeypatch)
    found = read_perflogs(logs)
    assert seen == [("Other.log", size)]
    assert found.samples["perf_value"].tolist() == [1, 7, 3, 8, 9]
    assert [rejected.line for rejected in found.rejected] == [5, 5]
    check_equal(found, anew(logs))


def test_an_unfinished_line_is_told_until_it_is_finished(logs: Path) -> None:
    path = logs / "here" / "local" / "Other.log"
    read_perflogs(logs)
    text = line(job_completion_time=days_ago(0), perf_value=5)
    for end, samples in ((text[:50], 4), (text[50:], 4), ("\n", 5)):
        with path.open("a") as log:
            log.write(end)
        found = read_perflogs(logs)
        assert len(found.samples) == samples
        check_equal(found, anew(logs))


def test_much_that_was_appended_is_kept(
    logs: Path, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_perflogs(logs)
    (kept,) = caches.iterdir()
    before = kept.read_bytes()
    append(logs / "here" / "local" / "Other.log", *daily([9.0], pattern="ssf"))
    read_perflogs(logs)
    assert kept.read_bytes() == before
    monkeypatch.setattr(perflog, "WORTH_ADDING", 1)
    read_perflogs(logs)
    seen = reads(monkeypatch)
    check_equal(read_perflogs(logs), anew(logs))
    assert {name for name, offset in seen if offset} == set()


def rewritten(path: Path) -> None:
    path.write_text(path.read_text().replace("|7.0|", "|6.5|"))


def rotated(path: Path) -> None:
    path.rename(path.with_name("Other.log.h0"))
    path.write_text(f"new|{COLUMNS}\nx|{line(pattern='ssf', perf_value=9)}\n")


def older(path: Path) -> None:
    append(path, line(job_completion_time=days_ago(900), pattern="ssf", perf_value=9))


def added(path: Path) -> None:
    write_perflog(path.parents[2], daily([9.0], pattern="fpn"), name="New.log")


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 5)


@pytest.mark.parametrize("change", [rewritten, rotated, older, added, cut, Path.unlink])
def test_whatever_happens_to_a_perflog(logs: Path, change) -> None:
    read_perflogs(logs)
    change(logs / "here" / "local" / "Other.log")
    check_equal(read_perflogs(logs), anew(logs))
    check_equal(read_perflogs(logs), anew(logs))


def test_a_damaged_cache_is_written_anew(logs: Path, caches: Path) -> None:
    first = read_perflogs(logs)
    (kept,) = caches.iterdir()
    whole = kept.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 60)):
        kept.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        check_equal(read_perflogs(logs), first)
    for length in (0, 4, len(whole) // 2):
        kept.write_bytes(whole[:length])
        check_equal(read_perflogs(logs), first)
    assert cache.load(kept, ROWS.names) is not None


def test_a_cache_of_another_version_is_written_anew(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = read_perflogs(logs)
    monkeypatch.setattr(cache, "VERSION", cache.VERSION + 1)
    seen = reads(monkeypatch)
    check_equal(read_perflogs(logs), first)
    assert len(seen) == 2


def test_where_no_cache_can_be_written(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    first = read_perflogs(logs)
    check_equal(read_perflogs(logs), first)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/proc/nowhere")
    check_equal(read_perflogs(logs), first)
    assert not Path("relative").exists()


def test_several_readers_at_once(logs: Path, caches: Path) -> None:
    with ThreadPoolExecutor(8) as readers:
        found = list(readers.map(lambda _: read_perflogs(logs), range(16)))
    for each in found:
        check_equal(each, found[0])
    assert [path.suffix for path in caches.iterdir()] == [".parquet"]


def test_systems_and_adapters_have_caches_of_their_own(logs: Path, caches: Path) -> None:
    write_perflog(logs, daily([5.0], system="there"), system="there")
    assert len(read_perflogs(logs).samples) == 5
    assert len(read_perflogs(logs, "here").samples) == 4
    assert len(read_perflogs(logs, "here").samples) == 4
    assert len(list(caches.iterdir())) == 2


def test_fewer_columns_are_the_same_and_keep_all(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = logs / "here" / "local" / "Other.log"
    for minimum in (10**9, 1):
        monkeypatch.setattr(perflog, "WORTH_ADDING", minimum)
        for value in (5, 6):
            few = read_perflogs(logs, columns=())
            whole = anew(logs)
            assert "jobid" not in few.samples.columns
            check = whole.samples[list(few.samples.columns)]
            pd.testing.assert_frame_equal(few.samples, check, check_categorical=False)
            assert few.rejected == whole.rejected
            check_equal(read_perflogs(logs), whole)
            append(path, line(job_completion_time=days_ago(-value - 1 / minimum), perf_value=value))
