"""A store gives the same digest as the files, whatever was pushed to it, and when."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import polars as pl
import pytest
from obstore.store import S3Store

from iobands.judge.site import judge
from iobands.model import TIME, FileError
from iobands.snapshot.stored import to_json
from iobands.source import objects
from iobands.source import push as push_of
from iobands.source.kept import Reach
from iobands.source.known import Known, read_known
from iobands.source.push import (
    Cursor,
    Pushed,
    Seen,
    copy,
    gather,
    push_new,
    read_pushed,
    write_pushed,
)
from iobands.source.store import (
    CONTENT,
    EVER,
    SAMPLES,
    SITE,
    STORE_SCHEMA,
    Store,
    StoredDocument,
    StoreError,
    document_of,
    located,
    open_store,
    read_stored,
    sites_of,
)
from tests.factory import (
    COLUMNS,
    NOW,
    case,
    daily,
    line,
    write_bands,
    write_perflog,
    write_report,
    write_session,
)
from tests.site_copy import ROOT
from tests.source.engines import ENGINES, directory

NOTHING = Pushed()
KEYS = {"region": "x", "access_key_id": "x", "secret_access_key": "x"}  # of a bucket


# Each engine has a process of its own: together they would be the last to end.
GROUPS = [pytest.param(name, marks=pytest.mark.xdist_group(f"store: {name}")) for name in ENGINES]


@pytest.fixture(scope="module", params=GROUPS)
def engine(request):
    with ENGINES[request.param]() as url:
        yield url


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch) -> Path:
    """Keep the readers' cache separate from the user's own."""
    place = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    return place


@pytest.fixture
def store(engine) -> Iterator[Store]:
    with open_store(engine, new=True) as opened:
        empty(opened)
        yield opened


@pytest.fixture
def site(tmp_path, monkeypatch) -> Path:
    """Make a site with a fall, bands, a failure, a damaged line, actions and targets' speeds."""
    write_site(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_site(root: Path, system: str = "here") -> None:
    values = [1.5 + 0.01 * (n % 7) for n in range(60)] + [0.8 + 0.01 * n for n in range(6)]
    speeds = "write_bw=0:1.02,1:0.5,2:1.0"
    rows = daily(values, system=system, target_bandwidths=speeds)
    rows += daily(values, system=system, pattern="ssf", perf_var="read_bw")
    rows += [line(system=system, perf_value="-1"), rows[5], "cut off"]
    write_perflog(root / "perflogs", rows, system=system)
    write_bands(root / "config" / "bands")
    learned = {"name": "learned", "since": "2025-01-01", "source": "a test", "bands": []}
    added = root / "config" / "bands" / system / "learned.yaml"
    added.parent.mkdir(exist_ok=True)
    added.write_text(json.dumps({"schema": 1, "system": system, "epochs": [learned]}))
    write_report(root / "perflogs", [case(system=system, display_name="Other")], days=0.2)
    write_session(root / "perflogs", NOW - timedelta(hours=6))
    log = root / "config" / "alerts" / f"{system}.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    said = {
        "schema": 1,
        "action": "acknowledge",
        "when": (NOW - timedelta(hours=1)).isoformat(),
        "who": "ada",
        "reason": "a disk is replaced; | and ' and \u2028 stay",
        "series": [{"pattern": "fpp"}],
        "since": (NOW - timedelta(days=6)).isoformat(),
        "until": NOW.isoformat(),
        "direction": "down",
    }
    log.write_text(json.dumps(said) + "\n")


def from_files(root: Path, now: datetime = NOW, *, as_of: bool = False) -> str:
    config = Path("config")
    return shown(
        read_known(Path("perflogs"), config / "bands", config / "alerts", now=now, as_of=as_of)
    )


def from_store(store: Store, now: datetime = NOW, *, as_of: bool = False) -> str:
    return shown(read_stored(store, store.systems(), now=now, as_of=as_of))


def shown(known: Known) -> str:
    site = judge(known).snapshot
    assert site.series and site.alerts and site.rejected
    return to_json(site, summary="")


def push(store: Store, before: Pushed = NOTHING) -> Pushed:
    return push_new(store, Path("perflogs"), Path("config"), before, datetime.now(timezone.utc))[0]


def empty(store: Store) -> None:
    """Empty a store, as the engine is shared by the module's tests."""
    files, connection = getattr(store, "_files", None), getattr(store, "_connection", None)
    if files is not None:
        import obstore  # noqa: PLC0415

        for path in store._list(""):
            obstore.delete(files, path)
        store._put("iobands-store", b"%d\n" % STORE_SCHEMA)
    if connection is not None:
        store._do(
            "TRUNCATE iobands.samples",
            "TRUNCATE iobands.documents",
            f"UPDATE iobands.about SET schema = {STORE_SCHEMA}",  # noqa: S608
        )
    if data := getattr(store, "_data", None):  # the engine of docs/howto/add-an-engine.md
        data.execute("DELETE FROM samples")
        data.execute("DELETE FROM documents")


def test_an_epoch_that_was_added_and_one_that_was_withdrawn_reach_the_store(store, site):
    """Epochs are files that `iobands epoch` and `iobands calibrate` write."""
    before = push(store)
    assert '"learned"' in from_store(store) == from_files(site)
    (site / "config" / "bands" / "here" / "learned.yaml").unlink()
    push(store, before)
    assert '"learned"' not in from_store(store) == from_files(site)


def test_the_snapshot_is_that_of_the_files(store, site):
    push(store)
    assert from_store(store) == from_files(site)
    past = NOW - timedelta(days=3)
    assert from_store(store, past, as_of=True) == from_files(site, past, as_of=True)


def test_what_comes_twice_late_or_in_another_order_is_there_once(store, site):
    every = gather(Path("perflogs"), Path("config"), NOTHING)
    rows, documents = (
        every.samples.sample(fraction=1, shuffle=True, seed=1),
        every.documents["here"],
    )
    for part in (rows[40:], rows[:90], rows[:0], rows[20:60]):
        store.add("here", part, documents[: len(part)])
    store.add(
        "here",
        rows,
        [
            StoredDocument(each.path, each.changed - timedelta(days=1), b"old")
            for each in documents
            if "/alerts/" in each.path
        ],
    )
    assert from_store(store) == from_files(site)
    assert store.samples("here")[0].frame.n_unique(CONTENT) == rows.n_unique(CONTENT)


def test_a_later_session_adds_what_is_new(store, site):
    first = push(store)
    path = site / "perflogs" / "here" / "local" / "BenchioFPP.log"
    with path.open("a") as perflog:
        perflog.write(line(perf_value="0.7", job_completion_time=NOW.isoformat()) + "\n")
    (site / "config" / "alerts" / "here.jsonl").unlink()
    files, now = (Path("perflogs"), Path("config")), datetime.now(timezone.utc)
    after, rows, _ = push_new(store, *files, first, now)
    assert rows == 1
    assert from_store(store) == from_files(site)
    assert push_new(store, *files, after, now)[1:] == (0, 0)


def test_whatever_happens_to_perflogs_only_new_lines_are_read_where_that_suffices(site):
    log = site / "perflogs" / "here" / "local" / "BenchioFPP.log"
    (site / "perflogs" / ".snapshot" / "hourly").mkdir(parents=True)  # of a file server
    old = log.with_name("BenchioFPP.log.1")
    fresh = (NOW + timedelta(minutes=n) for n in range(1, 99))
    header = log.read_text().splitlines()[0]

    def new() -> str:
        return line(perf_value="1.4", job_completion_time=next(fresh).isoformat()) + "\n"

    def add(*lines: str, to: Path = log) -> None:
        with to.open("a") as perflog:
            perflog.writelines(lines)

    def rotated() -> None:
        log.rename(old)
        log.write_text(f"{header}\n{new()}")

    def edited() -> None:
        text = log.read_text()
        log.write_text(text.replace("|vm|", "|wm|", 1))
        assert len(log.read_text()) == len(text)

    def packed() -> None:
        Path(f"{old}.gz").write_bytes(gzip.compress(old.read_bytes()))
        old.unlink()

    copied, link = Path(f"{log}-20261101"), log.with_name("Gone.log")
    at_the_end, late = new(), new()
    steps = [  # what happens, the rows that are pushed, and whether only new lines are read
        (lambda: add(new(), new()), 2, True),
        (lambda: None, 0, True),
        (lambda: add(late), 1, False),  # older than what was pushed
        (lambda: add(late), 1, False),  # it repeats a line
        (lambda: add(at_the_end[:40]), 0, False),
        (lambda: add(at_the_end[40:]), 1, False),  # the other half was rejected
        (lambda: add(new()), 1, True),
        (lambda: add("cut off\n"), 0, False),
        (rotated, 1, False),
        (lambda: add(new()), 1, True),
        (packed, 139, False),
        (lambda: add(f"{header}|more\n", new().replace("\n", "|x\n")), 1, False),
        (lambda: add(new().replace("\n", "|x\n")), 1, True),  # there are two headers
        (lambda: add(f"{header}\n", new(), to=log.with_name("Another.log")), 1, True),
        (lambda: shutil.copy(log, copied), 0, False),  # whose lines repeat others
        (lambda: add(new().replace("\n", "|x\n")), 1, True),
        (lambda: link.symlink_to("nowhere"), 0, False),
        (link.unlink, 0, False),  # the file that could not be read is no longer reported
        (lambda: add(new().replace("\n", "|x\n")), 1, True),
        (lambda: log.write_text(f"{header}\n"), 0, False),
        (lambda: add(new()), 1, False),  # there was only a header
        (edited, 1, False),
    ]
    with directory() as url, open_store(url, new=True) as store:
        before, now = push(store), NOW + timedelta(days=1)
        for number, (work, rows, quick) in enumerate(steps):
            work()
            found = gather(Path("perflogs"), Path("config"), before)
            assert quick == (not any("rejected" in e.path for e in found.documents["here"])), number
            places = ("file", "line")
            whole = gather(Path("perflogs"), Path("config"), NOTHING).samples
            assert len(found.samples.join(whole, on=places)) == len(found.samples) == rows, number
            before = push(store, before)
            if number in {5, 9, 13, 14, 16, 17}:
                assert from_store(store, now) == from_files(site, now), number


@pytest.mark.parametrize("is_full", [False, True])
def test_a_perflog_that_is_rotated_during_a_push_loses_no_line(is_full, site, monkeypatch):
    log = site / "perflogs" / "here" / "local" / "BenchioFPP.log"
    header, real = log.read_text().splitlines()[0], push_of._added
    if is_full:  # so that the names stay the same, and the oldest lines go
        old = line(job_completion_time=(NOW - timedelta(days=300)).isoformat())
        Path(f"{log}.1").write_text(f"{header}\n{old}\n")

    def added(*given):
        monkeypatch.setattr(push_of, "_added", real)
        log.rename(f"{log}.1")
        log.write_text(f"{header}\n{line(job_completion_time=NOW.isoformat())}\n")
        return real(*given)

    with directory() as url, open_store(url, new=True) as store:
        before = push(store)
        monkeypatch.setattr(push_of, "_added", added)
        push(store, push(store, before))
        assert NOW in store.samples("here")[0][TIME].to_list()
        assert is_full or from_store(store) == from_files(site)


def test_a_store_that_was_emptied_or_restored_from_a_backup_is_filled_again(store, site):
    first = push(store)
    empty(store)
    assert push(store, first) != first
    assert from_store(store) == from_files(site)
    with directory() as backup, open_store(backup, new=True) as older:
        copy(store, older, "here")
        write_session(site / "perflogs", NOW - timedelta(hours=5))
        with (site / "perflogs" / "here" / "local" / "BenchioFPP.log").open("a") as perflog:
            perflog.write(line(perf_value="0.7", job_completion_time=NOW.isoformat()) + "\n")
        second = push(store, first)
        empty(store)
        copy(older, store, "here")
        assert len(store.samples("here")[0]) == len(older.samples("here")[0])
    push(store, second)
    assert from_store(store) == from_files(site)


@pytest.mark.parametrize("what", ["an action", "an empty log", "an epoch", "a run by hand"])
def test_what_a_restored_backup_lacks_beyond_sessions_is_pushed_again(what, store, site):
    first = push(store)
    with directory() as backup, open_store(backup, new=True) as older:
        copy(store, older, "here")
        log = site / "config" / "alerts" / "here.jsonl"
        if what == "an action":
            log.write_text(log.read_text() * 2)
        if what == "an empty log":
            log.write_text("")
        if what == "an epoch":
            learned = site / "config" / "bands" / "here" / "learned.yaml"
            learned.write_text(learned.read_text().replace("learned", "again"))
        if what == "a run by hand":
            write_report(site / "perflogs", [case(display_name="By hand")], days=0.1)
        second = push(store, first)
        empty(store)
        copy(older, store, "here")
        assert from_store(store) != from_files(site)
    third = push(store, second)
    assert from_store(store) == from_files(site)
    # rows that are in the store are found there, and not sent again
    sent = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "add", lambda *given: sent.append(given))
        push(store, third)
    assert not sent


def test_a_clock_that_was_ahead_keeps_no_later_document_out(store, site):
    log, ahead = site / "config" / "alerts" / "here.jsonl", (NOW + timedelta(days=400)).timestamp()
    before, written = NOTHING, log.read_text()
    for text, when in (("", ahead), (written, None), (written + written, None)):
        log.write_text(text)
        if when:
            os.utime(log, (when, when))
        before = push(store, before)
        assert from_store(store) == from_files(site)


@pytest.mark.parametrize("seconds", [-5, 10**10, 2**34 - 1])
def test_a_document_with_a_time_that_no_clock_gives_is_read(seconds, store, site):
    """Some file servers and archives give files such times."""
    log = site / "config" / "alerts" / "here.jsonl"
    os.utime(log, (seconds,) * 2)
    before = push(store)
    assert "a disk is replaced" in from_store(store) == from_files(site)
    assert push(store, before).documents == before.documents
    log.write_text("")
    push(store, before)
    assert "a disk is replaced" not in from_store(store) == from_files(site)


def test_a_log_that_was_away_for_a_push_comes_back(store, site):
    """It comes back with its old time, after the store has noticed its absence."""
    log = site / "config" / "alerts" / "here.jsonl"
    os.utime(log, (NOW.timestamp(),) * 2)
    away = log.rename(site / "away")
    before = push(store)
    for _ in range(2):
        away.rename(log)
        before = push(store, before)
        assert "a disk is replaced" in from_store(store) == from_files(site)
        log.rename(away)
        before = push(store, before)
        assert "a disk is replaced" not in from_store(store) == from_files(site)
        assert push(store, before).documents == before.documents


def test_names_of_files_that_are_no_text_reach_the_store_with_question_marks(store, site):
    """A file server may name files in another encoding."""
    log = site / "perflogs" / "here" / "local" / "BenchioFPP.log"
    copied = log.with_name("f\udce9.log")
    shutil.copy(log, copied)
    for place in ("perflogs/here/leftovers", "perflogs/here/reports", "config/bands/here"):
        (site / place).mkdir(exist_ok=True)
        (site / place / "f\udce9.json").write_text("[]")
    before = push(store)
    assert len(push(store, before).perflogs) == 2
    written = (each.path for each in store.documents("here", EVER))
    assert sorted(path for path in written if "?" in path) == [
        "config/bands/here/f?.json",
        "perflogs/here/leftovers/f?.json",
        "perflogs/here/reports/f?.json",
    ]
    read, files = (json.loads(each) for each in (from_store(store), from_files(site)))
    assert len(read["rejected"]) == len(files["rejected"])
    for each in (read, files):
        del each["rejected"]
    assert read == files
    write_pushed(Path("perflogs"), "url", before)


def test_what_is_empty_or_cut_off_is_said_as_of_the_files(store, site):
    """As a full disk or a killed session may leave a file."""
    perflogs = site / "perflogs" / "here"
    (perflogs / "leftovers").mkdir()
    for name in ("leftovers/iobands-X-abcdefghij", "reports/run-report-8.json"):
        (perflogs / name).touch()
    (site / "config" / "bands" / "here.yaml").write_text("")
    (perflogs / "reports" / "run-report-9.json").write_text('{"session_info": {}, "runs": [' * 9999)
    pushed = push(store)
    assert from_store(store) == from_files(site)
    odd = perflogs / "reports" / "odd.json"
    for work in (odd.mkdir, odd.rmdir, lambda: odd.symlink_to("nowhere"), odd.unlink):
        work()
        pushed = push(store, pushed)
    os.mkfifo(odd)
    push(store, pushed)


@pytest.mark.parametrize("lost", ["nothing", "the note of pushes", "a day of the log"])
def test_a_second_copy_of_a_site_replaces_no_log_of_the_first(lost, store, site):
    """Such as a copy for tests, or one restored from a backup."""
    log = site / "config" / "alerts" / "here.jsonl"
    before, common = push(store), log.read_text()
    first, second = (common + common.replace('"ada"', f'"{who}"') for who in ("bob", "cid"))
    log.write_text(first)
    push(store, before)
    expected = from_store(store)
    log.write_text(common if lost == "a day of the log" else second)
    if lost == "the note of pushes":
        before = NOTHING
    said = "config/alerts/here.jsonl: lacks lines that the store has from another copy of this site"
    for _ in range(2):
        with pytest.raises(StoreError, match=said):
            push(store, before)
    assert '"bob"' in from_store(store) == expected
    log.write_text(second + first[len(common) :])
    push(store, before)
    assert '"bob"' in from_store(store) == from_files(site)


def test_samples_dated_ahead_count_when_their_time_has_come(store, site):
    before = push(store)
    ahead = [NOW + timedelta(days=n) for n in (2, 400)]
    with (site / "perflogs" / "here" / "local" / "BenchioFPP.log").open("a") as perflog:
        for when in ahead:
            perflog.write(line(perf_value="0.7", job_completion_time=when.isoformat()) + "\n")
    before = push(store, before)
    assert "in the future" in from_store(store)
    for now in (NOW, *(when + timedelta(hours=1) for when in ahead)):
        assert from_store(store, now) == from_files(site, now)
    assert from_store(store, NOW, as_of=True) == from_files(site, NOW, as_of=True)
    # they do not keep out samples from after the clock was set back
    with (site / "perflogs" / "here" / "local" / "BenchioFPP.log").open("a") as perflog:
        perflog.write(line(perf_value="1.5", job_completion_time=NOW.isoformat()) + "\n")
    push(store, before)
    assert from_store(store) == from_files(site)


def test_a_renamed_cluster_is_judged_with_its_past(store, site):
    before = push(store)
    write_perflog(site / "perflogs", daily([1.5, 1.4], last=0, system="there"), system="there")
    push(store, before)
    assert store.systems() == ["here", "there"]
    assert from_store(store) == from_files(site)


def test_a_system_whose_checks_have_all_failed_so_far_is_read(store, tmp_path, monkeypatch):
    """Its runs left no line in a perflog, but the reports say that they failed, and why."""
    monkeypatch.chdir(tmp_path)
    report = write_report(Path("perflogs"), [case(system="new")], days=0.2, system="new")
    os.utime(report, (NOW.timestamp(),) * 2)
    Path("perflogs", "old").mkdir()  # which has nothing to tell
    push(store)
    assert store.systems() == ["new"]
    read = judge(read_stored(store, ["new"], now=NOW)).snapshot
    files = judge(read_known(Path("perflogs"), Path("bands"), Path("alerts"), now=NOW)).snapshot
    (alert,) = read.alerts
    assert alert.reason == "on new:local in setup: oserror: no such file system"
    assert to_json(read, summary="") == to_json(files, summary="")
    with directory() as other, open_store(other, new=True) as target:
        assert copy(store, target, "new") == 0
        assert target.systems() == ["new"]
    write_perflog(Path("perflogs"), daily([1.5, 1.4], system="here"))
    push(store)
    assert store.systems() == ["here", "new"]
    assert sites_of(store) == [["here", "new"]]
    assert store.forget("new", NOW + timedelta(days=40), dry_run=False) == 0
    assert store.systems() == ["here"]


def test_a_system_whose_lines_are_all_rejected_is_read(store, site):
    write_perflog(site / "perflogs", ["cut off"], system="there")
    push(store)
    assert store.systems() == ["here", "there"]
    assert from_store(store) == from_files(site)
    (site / "perflogs" / "there" / "local" / "BenchioFPP.log").unlink()
    push(store)
    assert store.systems() == ["here"]


def test_rejected_lines_of_two_systems_come_in_the_order_of_the_files(store, site):
    write_site(site, "there")
    log = site / "perflogs" / "there" / "local" / "BenchioFPP.log"
    os.utime(log, (NOW.timestamp() - 9,) * 2)  # the system that ran first is the last by name
    log.with_name("Z.log.1.zst").touch()  # what cannot be read is named beside its neighbours
    push(store)
    assert from_store(store) == from_files(site)


def test_a_copy_mixes_no_two_systems_of_one_name(store, site):
    push(store)
    with directory() as other, open_store(other, new=True) as target:
        copy(store, target, "here")
        assert copy(store, target, "here")  # which it has already
        (site / "perflogs" / "site.id").write_text("another\n")
        empty(store)
        push(store)
        with pytest.raises(StoreError, match=r"'here' of another site; .* restore"):
            copy(store, target, "here")
        assert document_of(target, "here", SITE).content != b"another\n"


def test_a_copy_of_a_store_says_the_same(store, site):
    push(store)
    with directory() as other, open_store(other, new=True) as target:
        assert copy(store, target, "here") == len(store.samples("here")[0])
        assert from_store(target) == from_files(site)


def test_an_edited_row_is_rejected_and_said(store, site):
    push(store)
    before = len(store.samples("here")[0])
    if hasattr(store, "_connection"):
        store._do("UPDATE iobands.samples SET perf_value = 99 WHERE line = 7 AND pattern = 'fpp'")
        lost, said = 1, "edited in the store"
    else:
        path = next(iter(store._list("samples/")))
        frame = store._rows(path)
        stream = io.BytesIO()
        frame.with_columns(perf_value=99.0).write_parquet(stream)
        store._put(path, stream.getvalue())
        lost, said = len(frame), "does not match its name"
    rows, rejected = store.samples("here")
    assert len(rows) == before - lost
    assert said in str(rejected[0])
    assert said in from_store(store)
    with (
        directory() as other,
        open_store(other, new=True) as target,
        pytest.raises(StoreError, match=f"{before - lost} samples were copied, but not .*{said}"),
    ):
        copy(store, target, "here")
    if hasattr(store, "_connection"):  # as the how-to says
        store._do("DELETE FROM iobands.samples WHERE system = 'here' AND line = 7")
    push(store)
    assert from_store(store) == from_files(site)


def test_an_edited_document_is_rejected_and_said_until_it_is_pushed_again(store, site):
    push(store)
    path = "config/alerts/here.jsonl"
    if hasattr(store, "_connection"):
        store._do("UPDATE iobands.documents SET content = 'x' WHERE path LIKE '%/alerts/%'")
    else:
        store._put(next(iter(store._list(f"documents/system=here/{path}/"))), b"x")
    read = from_store(store)
    (lost,) = [each for each in json.loads(read)["rejected"] if each["path"] == path]
    assert lost["reason"].startswith("edited in the store") and "a disk is replaced" not in read
    with directory() as other, open_store(other, new=True) as target:
        with pytest.raises(StoreError, match=f"but not {path}: edited"):
            copy(store, target, "here")
        assert json.loads(read)["series"] == json.loads(from_store(target))["series"]
    push(store)
    assert from_store(store) == from_files(site)


@pytest.mark.parametrize("name", ["directory", "s3"])
def test_a_reader_takes_files_of_others_and_vanishing_files_as_they_are(name, site):
    log = site / "config" / "alerts" / "here.jsonl"
    with ENGINES[name]() as url, open_store(url, new=True) as store:
        empty(store)
        before = push(store)
        for place in ("config/bands/here.yaml/README", "perflogs/here/reports/x/README", "README"):
            store._put(f"documents/system=here/{place}", b"for people")
        assert store.forget("here", NOW - timedelta(days=999), dry_run=False) == 0
        assert from_store(store) == from_files(site)
        frame = store._rows(next(iter(store._list("samples/system=here/"))))
        store._put_rows("samples/system=here/month=2026-01", frame.with_columns(system=pl.lit("x")))
        assert str(store.samples("here")[1][0]).endswith("has rows of another system")
        rows = store.forget("here", NOW, dry_run=True)
        for foreign in ("month=2026-01/cut-off", f"month=2026-01/{'0' * 64}", "backup"):
            store._put(f"samples/system=here/{foreign}.parquet", b"PAR1")
        store._put("samples/lost+found/x", b"")
        store._put("documents/system=%2E%2E/x", b"")
        assert store.systems() == ["here"]
        assert store.forget("here", NOW, dry_run=True) == rows
        gone = [*store._list("samples/system=here/month=2026-01/")]
        store.forget("here", datetime(2026, 2, 1, tzinfo=timezone.utc), dry_run=False)
        left = {*store._list("samples/system=here/")}.intersection(gone)
        assert left == {"samples/system=here/month=2026-01/cut-off.parquet"}
        store._remove([*left, "samples/system=here/backup.parquet"])
        strange = [
            f"documents/system=here/config/bands/here.yaml%00/0000000001.000000-{'0' * 64}",
            f"documents/system=here/config/bands/here.yaml/{'9' * 120}.0-{'0' * 64}",
        ]
        for path in strange:
            store._put(path, b"")
        listed = store._list

        def replaced(prefix: str) -> dict[str, str]:
            found = listed(prefix)
            if prefix.startswith("documents/"):
                log.write_text(log.read_text() + "\n")
                store._list = listed
                push(store, before)
            return found

        store._list = replaced
        assert from_store(store) == from_files(site)


def test_rows_of_another_system_are_not_joined_with_the_ones_of_this(site):
    """A reader would reject a file that has rows of both."""
    rows = gather(Path("perflogs"), Path("config"), NOTHING).samples
    month = rows.filter(pl.col(TIME).dt.strftime("%Y-%m") == "2026-11").unique(CONTENT)
    with directory() as url, open_store(url, new=True) as store:
        foreign = month[:1].with_columns(system=pl.lit("x", pl.Categorical()))
        store._put_rows("samples/system=here/month=2026-11", foreign)
        for each in range(20):
            store.add("here", month[each : each + 1], ())
        assert len(store.samples("here")[0]) == 20


def test_what_a_cluster_puts_into_a_directory_is_in_no_other_ones_way(site):
    with directory() as url, open_store(url, new=True) as store:
        push(store)
        expected, whole = from_store(store), len(store.samples("here")[0])
        samples, documents = Path(url, "samples"), Path(url, "documents")
        for name in ("system=\udcff", "system=a\x1b[2J\nhere: OK"):
            (samples / name).mkdir()
        (samples / "loop").symlink_to("loop")
        (samples / "system=loop").symlink_to(".")
        (samples / "system=holes").mkdir()
        with (samples / "system=holes" / "file").open("wb") as file:
            file.truncate(2**40)
        assert shown(read_stored(store, ["here"], now=NOW)) == expected
        assert {*store.systems()} == {"a\x1b[2J\nhere: OK", "here", "holes", "loop", "?"}
        assert ["here"] in sites_of(store)
        with pytest.raises(StoreError, match="samples/system=loop: is a symbolic link; "):
            store.samples("loop")
        with pytest.raises(StoreError, match=r"samples/system=holes/ has more than 2 GiB$"):
            store.samples("holes")
        # what a system has of its own is named, and the rest counts
        month = samples / "system=here" / "month=2000-01"
        month.mkdir()
        for name in ("loop", "link", "a\nb", "\udcff"):
            (month / name).symlink_to("." if name == "loop" else "/dev/zero")
        os.mkfifo(month / f"{'0' * 64}.parquet")
        pipe = documents / "system=here" / "config" / f"0000000001.000000-{'0' * 64}"
        os.mkfifo(pipe)
        rows, rejected = store.samples("here")
        assert (len(rows), len(rejected)) == (whole, 5)
        assert all(each.reason == "is not a regular file" for each in rejected)
        assert [each.is_edited for each in store.documents("here", EVER)].count(True) == 1


def test_old_months_of_another_system_are_not_forgotten_through_a_link(site):
    with directory() as url, open_store(url, new=True) as store:
        push(store)
        before = [*store._list("samples/")]
        (month, *_) = Path(url, "samples", "system=here").iterdir()
        other = Path(url, "samples", "system=other")
        other.mkdir()
        (other / "month=2000-01").symlink_to(month)
        assert store.forget("other", datetime(2020, 1, 1, tzinfo=timezone.utc), dry_run=False) == 0
        assert {*before} <= {*store._list("samples/")}


def test_a_packed_file_of_too_many_rows_is_not_unpacked(site, monkeypatch):
    with directory() as url, open_store(url, new=True) as store:
        push(store)
        rows = store.samples("here")[0].frame
        monkeypatch.setattr("iobands.source.objects._MOST_ROWS", 2**20)
        many = pl.concat([rows] * (2**20 // len(rows) + 1))
        path = store._put_file("samples/system=here/month=2026-11", many)
        assert Path(url, path).stat().st_size < len(many)
        with pytest.raises(StoreError, match=r"\.parquet: more rows than 1,048,576 of one system$"):
            store.samples("here")


@pytest.mark.parametrize("name", ["directory", "s3"])
def test_a_reader_fetches_a_file_of_samples_once(name, site, cache):
    with ENGINES[name]() as url, open_store(url, new=True) as store:
        empty(store)
        before = push(store)
        fetched: list[str] = []
        get = store._get
        store._get = lambda path: fetched.append(path) or get(path)

        def read() -> int:
            """Return how many files of samples a digest fetches; it is right."""
            fetched.clear()
            assert from_store(store) == from_files(site)
            return sum(path.startswith("samples/") for path in fetched)

        every = len(store._list("samples/"))
        assert (read(), read()) == (every, 0)
        with (site / "perflogs" / "here" / "local" / "BenchioFPP.log").open("a") as perflog:
            perflog.write(line(perf_value="1.25") + "\n")
        push(store, before)
        assert read() == 1
        (memory,) = (path for path in cache.rglob("*") if path.is_file())
        memory.write_bytes(memory.read_bytes()[:-1])  # as a full disk leaves it
        assert (read(), read()) == (every + 1, 0)
        store._remove(joined := [*store._list("samples/")])
        push(store, NOTHING)
        assert joined != [*store._list("samples/")]
        assert (read(), read()) == (every, 0)


def test_no_cluster_writes_another_ones_documents(store, site):
    push(store)
    when = NOW + timedelta(days=1)
    is_database = hasattr(store, "_connection")  # a bucket takes no such path
    store.add(
        "here",
        pl.DataFrame(schema=SAMPLES),
        [
            StoredDocument("config/bands/there.yaml", when, b"not: [bands"),
            StoredDocument("config/bands/there/epoch.yaml", when, b"not: [bands"),
            StoredDocument("perflogs/there/alerts.jsonl", when, b"{}"),
            *(
                [StoredDocument("perflogs/here/../../../escaped", when, b"x")]
                if is_database
                else []
            ),
        ],
    )
    assert from_store(store) == from_files(site)


def test_a_document_with_a_name_that_no_file_can_have_is_ignored(store, site):
    push(store)
    path, none = f"config/bands/here/{'é' * 150}.yaml", pl.DataFrame(schema=SAMPLES)
    with suppress(StoreError):  # a directory refuses it
        store.add("here", none, [StoredDocument(path, NOW, b"epochs: []")])
    assert from_store(store) == from_files(site)


def test_a_system_whose_name_is_too_long_for_a_directory_is_named(site):
    write_site(site, name := 60 * "é")
    with directory() as url, open_store(url, new=True) as store:
        why = f"the name {name!r} takes 360 characters there, of at most 248"
        assert f"{why}; choose a shorter one" in push(store).failed
        assert store.systems() == ["here"]


def test_a_full_disk_leaves_no_site_without_an_identity(store, site):
    (site / "perflogs" / "site.id").touch()  # as a full disk leaves it
    push(store)
    assert sites_of(store) == [["here"]]
    assert len((site / "perflogs" / "site.id").read_text()) == 33
    assert store.documents("here", NOW, "perflogs/site.id")


def test_a_first_push_to_a_directory_that_was_broken_off_goes_on(site):
    for left in (b"", b"\n"):  # of its first file, by a full disk or a power failure
        with directory() as url:
            Path(url).mkdir()
            (Path(url) / "iobands-store").write_bytes(left)
            with open_store(url, new=True) as store:
                push(store)
                assert from_store(store) == from_files(site)
            assert (Path(url) / "iobands-store").read_bytes() == b"%d\n" % STORE_SCHEMA


def test_a_missing_bucket_is_named_in_one_line():
    missing = pytest.raises(StoreError, match=r"^s3://no-such-bucket/x: no such bucket$")
    with ENGINES["s3"](), missing, open_store("s3://no-such-bucket/x", new=True):
        pass


def test_where_no_file_can_be_made_nothing_waits():
    refused = pytest.raises(StoreError, match=r"^/proc/self/task: \S")
    with refused, open_store("/proc/self/task", new=True):
        pass


def test_a_refused_system_keeps_no_other_out(store, site):
    push(store)
    identity, said = site / "perflogs" / "site.id", "the store has a system 'here' of another site"
    own, pushed = identity.read_text(), Pushed()
    identity.write_text("another\n")
    write_site(site, "there")
    write_site(site, "a-third")
    for sent in ({"a-third", "here", "there"}, {"here"}):
        assert {*gather(Path("perflogs"), Path("config"), pushed).samples["system"]} == sent
        pushed = push(store, pushed)
        assert re.match(f"{said}; .*; not pushed: here$", pushed.failed)
        assert store.systems() == ["a-third", "here", "there"]
        assert sites_of(store) == [["a-third", "there"], ["here"]]
    identity.write_text(own)
    assert push(store, pushed).failed is None
    assert from_store(store) == from_files(site)


def test_what_a_store_did_not_take_is_pushed_again(store, site, monkeypatch):
    write_site(site, "there")
    add = store.add

    def add_others(system, *parts):
        if system == "there":
            raise StoreError("it went away")
        add(system, *parts)

    monkeypatch.setattr(store, "add", add_others)
    pushed = push(store)
    assert (pushed.failed, store.systems()) == ("it went away; not pushed: there", ["here"])
    assert [*pushed.documents] == ["here"]
    monkeypatch.undo()
    monkeypatch.chdir(site)
    push(store, pushed)
    assert from_store(store) == from_files(site)


def test_systems_that_a_store_refuses_are_named_but_not_by_the_thousand(store, site, monkeypatch):
    for number in range(6):
        write_site(site, f"more-{number}")

    def refuse(system, *parts):
        raise StoreError("not yours")

    monkeypatch.setattr(store, "add", refuse)
    named = "here, more-0, more-1, more-2, more-3 and 2 more"
    with pytest.raises(StoreError, match=f"^not yours; not pushed: {named}$"):
        push(store)


def test_two_sites_with_one_name_are_told_apart(store, site):
    first = push(store)
    assert sites_of(store) == [["here"]]
    (site / "perflogs" / "site.id").write_text("another\n")
    with pytest.raises(StoreError, match="'here' of another site"):
        push(store)
    # a site that has pushed before is recognised
    assert push(store, first).documents["here"]


@pytest.mark.parametrize("name", ENGINES)
def test_a_reader_makes_no_store(name):
    with ENGINES[name]() as place:
        url = place if name == "postgres" else f"{place}/new"
        for _ in range(2):
            with pytest.raises(StoreError, match="no store there; check the URL"), open_store(url):
                pass
        assert name != "directory" or not Path(url).exists()
        with (
            open_store(url, new=True) as store,
            pytest.raises(FileNotFoundError, match="the store has no samples yet"),
        ):
            from_store(store)


@pytest.mark.parametrize("version", ["2\u00b2", "-1", "x" * 50, "9" * 50])
def test_a_damaged_version_is_named(version, tmp_path):
    (tmp_path / "iobands-store").write_text(version)
    said = r": damaged: its version is '.{1,20}'; restore a backup$"
    with pytest.raises(StoreError, match=said), open_store(str(tmp_path)):
        pass


@pytest.mark.parametrize("url", ["memory:///", "ftp://host/x", "s4://bucket"])
def test_what_keeps_no_samples_is_no_store(url):
    """A store in memory would accept a push and vanish with the process."""
    said = f"^{url}: unknown kind of store; give a directory, or a URL that begins with s3://, "
    with pytest.raises(StoreError, match=said), open_store(url, new=True):
        pass


@pytest.mark.machine
@pytest.mark.needs("fewer capabilities")
@pytest.mark.parametrize(
    ("closed", "words"),
    [
        ("", "status --store closed/store"),
        ("store/samples", "status --store closed/store"),
        ("", "doctor"),
        ("store/iobands-store", "doctor"),
    ],
)
def test_a_store_that_may_not_be_read_is_named(closed, words, site, tmp_path):
    """The doctor names it, too; its thread must not print a traceback or wait for an answer."""
    place = tmp_path / "closed" / "store"
    with open_store(str(place), new=True) as opened:
        push(opened)
    (tmp_path / "config" / "store.yaml").write_text(f"url: {place}\n")
    (tmp_path / "config" / "systems").mkdir()
    without_rights = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    (tmp_path / "closed" / closed).chmod(0)
    try:
        done = subprocess.run(
            [*without_rights, sys.executable, "-m", "iobands", *words.split()],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        (tmp_path / "closed" / closed).chmod(0o700)
    assert "Permission denied" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "os error" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("scheme", "asked", "name"),
    [
        ("s3", {"AWS_METADATA_ENDPOINT": "http://{}"}, "AWS_ACCESS_KEY_ID"),
        (
            "az",
            {
                "AZURE_STORAGE_ACCOUNT_NAME": "site",
                "AZURE_MSI_ENDPOINT": "http://{}/metadata/identity/oauth2/token",
            },
            "AZURE_STORAGE_ACCOUNT_KEY",
        ),
    ],
)
def test_credentials_that_nobody_has_are_named(scheme, asked, name, monkeypatch):
    class Refusing(BaseHTTPRequestHandler):
        def do_PUT(self):
            self.send_error(403)

        do_GET = do_PUT

        def log_message(self, *_):
            pass

    for each in (name, "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(each, raising=False)
    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for setting, text in asked.items():
            monkeypatch.setenv(setting, text.format(f"127.0.0.1:{server.server_port}"))
        said = f"^{scheme}://bucket/x: the environment lacks credentials, such as {name}$"
        with pytest.raises(StoreError, match=said), open_store(f"{scheme}://bucket/x", new=True):
            pass
        server.shutdown()


@pytest.mark.parametrize(
    ("url", "endpoint", "said"),
    [
        ("az://bucket/x", "", "the environment lacks AZURE_STORAGE_ACCOUNT_NAME"),
        (
            "s3://bucket/x",
            "http://127.0.0.1:1",
            "the environment lacks AWS_ALLOW_HTTP=true, which an endpoint without TLS needs",
        ),
        (
            "s3://bucket/x",
            "https://127.0.0.1:1",
            "Error performing GET https://127.0.0.1:1/bucket/x/iobands-store - "
            "HTTP error: error sending request: Connection refused",
        ),
        (
            "postgresql://me@127.0.0.1:1/io",
            "",
            'connection to server at "127.0.0.1", port 1 failed: Connection refused; '
            "Is the server running on that host and accepting TCP/IP connections?",
        ),
    ],
)
def test_a_store_that_no_request_reaches_says_why(url, endpoint, said, monkeypatch):
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AWS_ALLOW_HTTP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT", endpoint or "https://s3.example.org")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    with pytest.raises(StoreError) as failed, open_store(url):
        pass
    assert str(failed.value) == f"{url}: {said}"


def test_a_bucket_that_does_not_answer_says_that_time_ran_out(tmp_path):
    quick = {"max_retries": 0, "retry_timeout": timedelta(seconds=1)}
    options = {"timeout": "200ms", "allow_http": True}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"http://127.0.0.1:{silent.getsockname()[1]}"
        hung = S3Store("b", endpoint=place, client_options=options, retry_config=quick, **KEYS)
        with (
            open_store(str(tmp_path), new=True) as store,
            pytest.raises(StoreError, match=r"HTTP error: error sending request: Timeout$"),
            store._errors(),
        ):
            hung.get("x")


def test_a_bucket_that_does_not_answer_is_given_up_after_a_minute(monkeypatch):
    """The library waits 30 s for an answer, and by itself retries for three minutes."""
    monkeypatch.setattr(objects, "_PATIENCE", {"retry_timeout": timedelta(0)})
    asked = []
    with socket.create_server(("127.0.0.1", 0)) as silent:

        def take():
            with suppress(OSError):
                while True:
                    asked.append(silent.accept())

        threading.Thread(target=take, daemon=True).start()
        for name, value in {
            "AWS_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
            "AWS_TIMEOUT": "200ms",
        }.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(StoreError, match=r"Timeout$"), open_store("s3://bucket/x"):
            pass
    assert len(asked) == 1


@pytest.mark.parametrize("break_", ["", "\n"])
def test_why_a_bucket_refuses_is_a_word(break_, tmp_path):
    """Amazon and Ceph answer with XML of one line, Azure of several."""
    answer = f'<?xml version="1.0"?>{break_}<Error><Code>SignatureDoesNotMatch</Code></Error>'

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(403)
            self.end_headers()
            self.wfile.write(answer.encode())

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{server.server_port}"
        closed = S3Store("b", endpoint=place, client_options={"allow_http": True}, **KEYS)
        with (
            open_store(str(tmp_path), new=True) as store,
            pytest.raises(StoreError, match=r"403 Forbidden: SignatureDoesNotMatch$"),
            store._errors(),
        ):
            closed.get("x")
        server.shutdown()


def test_a_newer_store_is_left_alone(engine, store):
    if hasattr(store, "_connection"):
        store._do("UPDATE iobands.about SET schema = 99")
    else:
        store._put("iobands-store", b"99\n")
    with pytest.raises(StoreError, match="99"), open_store(engine, new=True):
        pass
    empty(store)


def test_an_older_store_is_migrated_and_a_copy_is_kept(engine, store, site):
    push(store)
    rows = len(store.samples("here")[0])
    lacks = "free_spread_percent"  # a column that no sample here has
    if hasattr(store, "_connection"):
        names = ", ".join(f'"{name}"' for name in CONTENT if name != lacks)
        before = f"sha256(convert_to(ROW({names})::text, 'UTF8'))"
        store._do(
            f"ALTER TABLE iobands.samples DROP COLUMN {lacks}",
            f"UPDATE iobands.samples SET id = {before}",  # noqa: S608
            "UPDATE iobands.samples SET id = 'edited' WHERE line = 7 AND pattern = 'fpp'",
            "UPDATE iobands.about SET schema = 0",
        )
    else:
        path = next(iter(store._list("samples/")))
        stream = io.BytesIO()
        pl.read_parquet(store._get(path)).drop(lacks).write_parquet(stream)
        place, _, _ = path.rpartition("/")
        store._put(
            f"{place}/{hashlib.sha256(stream.getvalue()).hexdigest()}.parquet", stream.getvalue()
        )
        store._remove([path])
        store._put("iobands-store", b"0\n")
    with open_store(engine, new=True) as opened:
        if hasattr(store, "_connection"):
            assert "edited in the store" in str(opened.samples("here")[1])
            kept = opened._read(
                "SELECT count(*) AS n, max(length(id)) AS id FROM iobands.samples_of_schema_0"
            )
            assert kept.row(0) == (rows, 32)
            opened._do(
                "DROP TABLE iobands.samples_of_schema_0",
                "DELETE FROM iobands.samples WHERE id = 'edited'",
            )
        else:
            assert opened._get("iobands-store") == b"%d\n" % STORE_SCHEMA
        push(opened)
        assert from_store(opened) == from_files(site)


def test_a_new_column_makes_a_new_version_of_stores():
    # PostgreSQL hashes all columns of a row, so an older iobands must not push any more
    names = hashlib.sha256(" ".join(CONTENT).encode()).hexdigest()
    assert (STORE_SCHEMA, names[:8]) == (1, "b29f2460")


def test_rows_that_are_in_two_files_are_counted_once(store, site):
    push(store)
    with (site / "perflogs" / "here" / "local" / "BenchioFPP.log").open("a") as perflog:
        perflog.write(line(perf_value="0.7", job_completion_time=NOW.isoformat()) + "\n")
    push(store)
    every = gather(Path("perflogs"), Path("config"), NOTHING).samples
    count = store.forget("here", NOW + timedelta(days=40), dry_run=True)
    assert count == every.n_unique(CONTENT) < len(every)


def test_old_months_are_forgotten_after_a_dry_run(store, site):
    log = site / "perflogs" / "here" / "local" / "BenchioFPP.log"
    log.write_text("".join(dict.fromkeys(log.read_text().splitlines(keepends=True))))
    push(store)
    month = NOW.replace(day=1, hour=0, minute=0, second=0)
    rows = store.samples("here")[0]
    old = int((rows["job_completion_time"] < month).sum())
    assert 0 < old < len(rows)
    assert store.forget("here", month, dry_run=True) == old
    assert len(store.samples("here")[0]) == len(rows)
    assert store.forget("here", month, dry_run=False) == old
    left = store.samples("here")[0]["job_completion_time"]
    assert (len(left), left.min() >= month) == (len(rows) - old, True)
    assert store.forget("here", month, dry_run=False) == 0
    assert store.forget("here", NOW + timedelta(days=40), dry_run=False) == len(left)
    assert store.systems() == ["here"]  # for its rejected lines


def test_a_file_at_which_polars_panics_is_rejected(site, monkeypatch):
    def panic(*_given, **_options):
        raise pl.exceptions.PanicException("assertion failed")

    with directory() as url, open_store(url, new=True) as store:
        push(store)
        monkeypatch.setattr(pl, "read_parquet", panic)
        rows, rejected = store.samples("here")
        assert len(rows) == 0
        assert all("not a file of samples: assertion failed" in str(each) for each in rejected)
        assert store.forget("here", NOW, dry_run=True) == 0


def test_a_file_is_no_store(tmp_path):
    (tmp_path / "file").touch()
    said = r"file: a file; the store must be a directory$"
    with pytest.raises(StoreError, match=said), open_store(str(tmp_path / "file"), new=True):
        pass


def test_what_was_forgotten_stays_away_from_the_next_push(store, site):
    first = push(store)
    store.forget("here", NOW + timedelta(days=40), dry_run=False)
    with (site / "perflogs" / "here" / "local" / "BenchioFPP.log").open("a") as perflog:
        perflog.write(line(perf_value="0.7", job_completion_time=NOW.isoformat()) + "\n")
    push(store, first)
    assert len(store.samples("here")[0]) == 1


def test_the_logs_of_a_system_of_any_name_are_no_run_reports(store):
    old, none = datetime(2020, 1, 1, tzinfo=timezone.utc), pl.DataFrame(schema=SAMPLES)
    log = StoredDocument("perflogs/reports/alerts.jsonl", old, b"{}\n")
    report = StoredDocument("perflogs/reports/reports/run.json", old, b"{}")
    store.add("reports", none, [log, report])
    assert [each.path for each in store.documents("reports", NOW)] == [log.path]
    store.forget("reports", NOW, dry_run=False)
    assert [each.path for each in store.documents("reports", EVER)] == [log.path]


def test_a_damaged_note_of_what_was_pushed_costs_a_push(tmp_path):
    url = "postgresql://host/database"
    cursors, seen = (
        {"a.log": Cursor(Reach(9, 2, ("a", "b"), 5, whole=False), "e", 7, is_open=True)},
        {"here": {"b": Seen("c", 1, 2, 3)}},
    )
    whole = Pushed(cursors, NOW, seen, NOW)
    write_pushed(tmp_path, url, whole)
    assert read_pushed(tmp_path, url) == whole
    assert read_pushed(tmp_path, "postgresql://other/database").perflogs == {}
    text = (tmp_path / "pushed.json").read_text()
    # the last is of an earlier version, which knew one store
    older = '{"store":"ab","perflogs":{},"newest":null,"documents":{},"schema":3}'
    for damaged in ("{", "[]", '{"ab": 3}', text.replace('"a.log":{', '"a.log":3,"b":{'), older):
        (tmp_path / "pushed.json").write_text(damaged)
        assert read_pushed(tmp_path, url) == Pushed()


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("~/store", "{home}/store"),
        ("file://~/store", "{home}/store"),
        ("file:///srv/store", "/srv/store"),
        ("file:///srv/the%20store", "/srv/the store"),
        ("/srv/100%25", "/srv/100%25"),
        ("../store", "{home}/store"),
        ("a: b", "{home}/site/a: b"),
        ("./s3:/b", "{home}/site/s3:/b"),
        ("postgresql://host/database", "postgresql://host/database"),
    ],
)
def test_a_store_has_one_name_wherever_one_is(url, place, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert located(url, tmp_path / "site") == place.format(home=tmp_path)


@pytest.mark.parametrize("url", ["~nobody-of-this-name/store", "a\0b", "s3:/bucket", "postgres:x"])
def test_a_store_that_can_be_nowhere_is_named(url, tmp_path):
    with pytest.raises(FileError, match=f"^{url}: "):
        located(url, tmp_path)


def test_each_store_has_a_note_of_its_own(tmp_path):
    """There may be many, as each token in a URL makes it another store."""
    for number in range(20):
        when = NOW + timedelta(days=number)
        write_pushed(tmp_path, f"s3://bucket/{number % 10}", Pushed(when=when))
        assert read_pushed(tmp_path, f"s3://bucket/{number % 10}").when == when
    known = [read_pushed(tmp_path, f"s3://bucket/{number}").when for number in range(10)]
    assert known == [None, None, *(NOW + timedelta(days=number) for number in range(12, 20))]
    assert "bucket" not in (tmp_path / "pushed.json").read_text()


@pytest.fixture(scope="module")
def database():
    with ENGINES["postgres"]() as url:
        yield url


def test_a_cluster_may_only_push_and_a_page_only_read(database, site):
    with open_store(database, new=True) as owner:
        push(owner)
        howto = (ROOT / "docs" / "howto" / "keep-in-a-store.md").read_text()
        rights = re.search(r"```sql\n(CREATE ROLE .*?)```", howto, re.DOTALL)[1]
        owner._do(*rights.replace("DATABASE io", "DATABASE postgres").strip().split("\n"))
        owner._do(*(f"CREATE ROLE {name} LOGIN IN ROLE cluster" for name in ("here", "other")))
    as_cluster, as_other, as_reader = (
        database.replace("iobands@", f"{name}@") for name in ("here", "other", "reader")
    )
    log = site / "perflogs" / "here" / "local" / "BenchioFPP.log"
    with log.open("a") as perflog:
        perflog.write(line(perf_value="0.7", job_completion_time=NOW.isoformat()) + "\n")
    rows = gather(Path("perflogs"), Path("config"), NOTHING)
    # as from PGUSER, or an option
    with open_store(f"{database.replace('iobands@', '')}&user=other") as store:
        for part in ((rows.samples, ()), (rows.samples[:0], rows.documents["here"])):
            refused = r"^postgresql:[^ ]+ as role other: new row violates row-level security .*$"
            with pytest.raises(StoreError, match=refused):
                store.add("here", *part)
    denied = "^postgresql://[a-z]+@/postgres[^ ]+: permission denied for table samples$"
    # nor does it become part of the other site
    forbid = re.search(r"```sql\n(CREATE UNIQUE INDEX .*?)```", howto, re.DOTALL)[1]
    taken = [each for each in rows.documents["here"] if each.path == SITE]
    with open_store(database) as owner, open_store(as_other) as store:
        owner._do(forbid)
        with pytest.raises(StoreError, match=r'violates unique constraint "own_site"$'):
            store.add("other", rows.samples[:0], taken)
    with open_store(as_cluster) as store:
        push(store)
        for command in ("DELETE FROM iobands.samples", "UPDATE iobands.samples SET perf_value = 9"):
            with pytest.raises(StoreError, match=denied):
                store._do(command)
    with open_store(as_reader) as store:
        assert from_store(store) == from_files(site)
        with pytest.raises(StoreError, match=f"{denied[:-1]}; not pushed: here$"):
            push(store)
        assert store.systems() == ["here"]
    # a site of two systems, until it leaves
    centre = re.search(r"```sql\n(CREATE ROLE centre .*?)```", howto, re.DOTALL)[1]
    leaves = re.search(r"```sql\n((DELETE [^\n]*'archer2';\n){2})```", howto)[1]
    with open_store(database) as owner:
        owner._do(*centre.strip().split("\n"))
        with open_store(database.replace("iobands@", "centre@")) as store:
            documents = [each for each in rows.documents["here"] if each.path != SITE]
            for name in ("one", "two"):
                of_system = pl.lit(name).cast(SAMPLES["system"]).alias("system")
                store.add(name, rows.samples.with_columns(of_system), documents)
            with pytest.raises(StoreError, match="new row violates row-level security policy"):
                store.add("here", rows.samples, ())
        assert owner.systems() == ["here", "one", "two"]
        for name in ("one", "two"):
            owner._do(*leaves.replace("archer2", name).strip().split("\n"))
        assert owner.systems() == ["here"]
    with open_store(database) as owner:
        owner._do("UPDATE iobands.about SET schema = 0")
        older = pytest.raises(StoreError, match="older schema: let the owner of its tables read it")
        with older, open_store(as_reader):
            pass
        owner._do(
            f"UPDATE iobands.about SET schema = {STORE_SCHEMA}",  # noqa: S608
            "DROP INDEX iobands.own_site",
        )


def test_first_pushes_at_once_all_go_through(database):
    def first(_):
        with open_store(database, new=True) as store:
            return store.systems()

    for _ in range(5):
        with open_store(database, new=True) as owner:
            owner._do("DROP SCHEMA iobands CASCADE")
        with ThreadPoolExecutor(4) as pool:
            assert [*pool.map(first, range(4))] == [[]] * 4


def test_a_role_with_settings_of_its_own_reads_the_same(database, site):
    log = site / "perflogs" / "here" / "local" / "BenchioFPP.log"
    with log.open("a") as perflog:
        value = "0.30000000000000004"  # of 17 digits
        perflog.write(line(perf_value=value, job_completion_time=NOW.isoformat()) + "\n")
    with open_store(database, new=True) as owner:
        empty(owner)
        push(owner)
        owner._do(
            "CREATE ROLE settled LOGIN",
            "ALTER ROLE settled SET extra_float_digits TO 0",
            "ALTER ROLE settled SET timezone TO 'Asia/Kolkata'",
            "ALTER ROLE settled SET datestyle TO 'German'",
            "GRANT USAGE ON SCHEMA iobands TO settled",
            "GRANT SELECT ON ALL TABLES IN SCHEMA iobands TO settled",
        )
    with open_store(database.replace("iobands@", "settled@")) as store:
        assert from_store(store) == from_files(site)


def test_a_function_that_somebody_made_is_never_called(database, site):
    """Up to PostgreSQL 14, every role may make functions in `public`."""
    # it would be called, as it fits the arguments better than PostgreSQL's own
    function = "FUNCTION public.convert_to(text, text)"
    body = "'BEGIN RAISE ''called as %'', current_user; END'"
    with open_store(database, new=True) as store:
        empty(store)
        store._do(f"CREATE {function} RETURNS bytea LANGUAGE plpgsql AS {body}")
        try:
            push(store)
            assert from_store(store) == from_files(site)
        finally:
            store._do(f"DROP {function}")


@pytest.mark.parametrize("when", ["infinity", "-infinity", "200000-01-01", "0044-03-15 BC"])
def test_a_time_that_somebody_wrote_into_the_database_is_in_nobodys_way(when, database, site):
    with open_store(database, new=True) as store:
        empty(store)
        before = push(store)
        edit = "UPDATE iobands.documents SET changed = $1::text::timestamptz WHERE path LIKE 'co%'"
        store._do(edit, values=[when])
        assert from_store(store) == from_files(site)
        log = site / "config" / "alerts" / "here.jsonl"
        log.write_text(log.read_text() * 2)
        push(store, push(store, before))
        assert from_store(store) == from_files(site)


def test_a_server_that_never_answers_ends_a_push(monkeypatch):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/io"
        for given, patience in (
            ("?connect_timeout=2", "connect_timeout=99"),
            ("", "connect_timeout=2"),
        ):
            monkeypatch.setattr("iobands.source.postgres._PATIENCE", patience)
            with pytest.raises(StoreError, match="timeout expired"), open_store(url + given):
                pass


@pytest.mark.parametrize("call", ["cursor", "rollback", "commit"])
def test_a_server_that_goes_away_is_said_at_any_call(call, database, site):
    with open_store(database, new=True) as store, pytest.MonkeyPatch.context() as patch:
        empty(store)
        own = store._read("SELECT pg_backend_pid() AS pid")["pid"][0]
        work = getattr(store._connection, call)

        def after_its_end():
            with open_store(database) as other:
                other._read("SELECT pg_terminate_backend($1::integer, 9999)", own)
            patch.undo()
            return work()

        patch.setattr(store._connection, call, after_its_end)
        with pytest.raises(StoreError, match=r"server closed the connection|terminating"):
            push(store)


def test_a_dump_of_the_database_is_restored(database, site):
    tools = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1:] or [Path("/usr/bin")]
    with open_store(database, new=True) as store:
        empty(store)
        push(store)
    dump = [tools[0] / "pg_dump", "--schema=iobands", "--no-owner", "--no-acl", database]
    text = subprocess.run(dump, check=True, capture_output=True).stdout
    psql = [tools[0] / "psql", "--quiet", "--set=ON_ERROR_STOP=1", database]
    said = b"DROP SCHEMA iobands CASCADE;\n" + text
    subprocess.run(psql, check=True, input=said, stdout=subprocess.DEVNULL)
    with open_store(database, new=True) as store:
        assert from_store(store) == from_files(site)


@pytest.mark.parametrize("severity", ["ERROR", "FEHLER", "ERREUR", "错误"])
def test_a_server_may_say_what_is_wrong_in_any_language(severity):
    from adbc_driver_manager import AdbcStatusCode, ProgrammingError  # noqa: PLC0415

    from iobands.source.postgres import PostgresStore  # noqa: PLC0415

    store = PostgresStore.__new__(PostgresStore)
    store._name = "postgresql://db"
    text = (
        "UNAUTHORIZED: [libpq] Failed to execute query 'INSERT INTO samples SELECT ROW(a)::text': "
        f"{severity}:  neue Zeile verletzt Policy\n. SQLSTATE: 42501"
    )
    with pytest.raises(StoreError) as said, store._errors():
        raise ProgrammingError(text, status_code=AdbcStatusCode.UNAUTHORIZED)
    assert str(said.value) == "postgresql://db: neue Zeile verletzt Policy"


def test_a_wrong_password_is_named_and_never_printed(database):
    place = Path(database.partition("host=")[2])
    rules = place / "data" / "pg_hba.conf"
    rules.write_text(f"local all locked scram-sha-256\n{rules.read_text()}")
    with open_store(database, new=True) as store:
        store._do("CREATE ROLE locked LOGIN PASSWORD 'right'", "SELECT pg_reload_conf()")
    url = f"postgresql://locked:very-secret@/postgres?host={place}"
    with (
        pytest.raises(StoreError, match="password authentication failed") as said,
        open_store(url, new=True),
    ):
        pass
    assert "secret" not in str(said.value)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://me:p@ss-secret@localhost:1/io", "postgresql://me@localhost:1/io"),
        ("postgresql://me:a/secret@localhost:1/io", "postgresql://me@localhost:1/io"),
        ("postgresql://me:a#secret@localhost:1/io", "postgresql://me@localhost:1/io"),
        ("postgresql://me:a%zsecret@localhost:1/io", "postgresql://me@localhost:1/io"),
        ("postgresql://me:secret@[bad/io", "postgresql://me@[bad/io"),
        ("postgresql://me:12/secret@h/x", "postgresql://me@h/x"),
        ("postgresql://localhost:1/io?user=a@b&password=secret", "postgresql://localhost:1/io"),
        ("odd://me:secret@localhost:1/x?sig=secret", "odd://me@localhost:1/x"),
        ("odd:///x?host=db1&password=secret&port=1", "odd:///x?host=db1&port=1"),
        ("odd:///x?host=a@b&Host=secret&host=c?password=secret", "odd:///x"),
        ("odd://me:p?host=secret@h/x?host=db1", "odd://me@h/x?host=db1"),
    ],
)
def test_no_form_of_a_password_in_a_url_is_printed(url, name):
    with pytest.raises(StoreError) as said, open_store(url):
        pass
    assert str(said.value).startswith(f"{name}: ")
    assert "secret" not in str(said.value)


def test_a_certificate_that_does_not_match_is_named_and_no_password():
    with ENGINES["postgres"]() as url, socket.socket() as free:
        place = Path(url.partition("host=")[2])
        data, key, certificate = place / "data", place / "key", place / "certificate"
        with open_store(url, new=True) as store:
            store._do("ALTER ROLE iobands PASSWORD 'very-secret'")
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other.example"
        subprocess.run(
            [*make.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True
        )
        about = data.stat()
        for path in (key, certificate):
            os.chown(path, about.st_uid, about.st_gid)
            path.chmod(0o600)
        free.close()
        as_user = ["setpriv", "--reuid", "nobody", "--clear-groups"] if os.getuid() == 0 else []
        tools = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1:] or [Path("/usr/bin")]
        call = [*as_user, tools[0] / "pg_ctl", "--silent", "-D", data, "-w"]
        subprocess.run([*call, "stop", "-m", "fast"], check=True)
        server = f"-k {place} -p {port} -c listen_addresses=127.0.0.1 -c ssl=on"
        server += f" -c ssl_key_file={key} -c ssl_cert_file={certificate}"
        subprocess.run([*call, "start", "-o", server, "-l", place / "log"], check=True)
        there = f"postgresql://iobands:very-secret@127.0.0.1:{port}/postgres"
        there += f"?sslrootcert={certificate}&sslmode="
        with open_store(f"{there}verify-ca") as store:
            assert store.systems() == []
        with (
            pytest.raises(StoreError, match=r'"other.example" does not match host name') as said,
            open_store(f"{there}verify-full"),
        ):
            pass
        assert "secret" not in str(said.value)


def test_a_bucket_or_directory_that_is_copied_says_the_same(site, tmp_path):
    with directory() as url, open_store(url, new=True) as store:
        push(store)
        shutil.copytree(url, tmp_path / "backup")
    with open_store(str(tmp_path / "backup"), new=True) as store:
        assert from_store(store) == from_files(site)


def test_a_row_that_no_perflog_can_have_is_rejected_and_said(store, site):
    push(store)
    row = gather(Path("perflogs"), Path("config"), NOTHING).samples[:1]
    odd = {
        "job_completion_time": [datetime(year, 1, 1, tzinfo=timezone.utc) for year in (2, 9999)],
        "perf_value": [float("nan"), float("inf"), -3.0, 0.0],
        "file": [None],
        "gib": [float("nan"), float("-inf")],
        "stripe_count": [2**53],
        "partition": ["..", None],
        "hints": ["\x1b[31m", "a|b", "null"],
        "target_bandwidths": ["write_bw=0:1\n"],
        "perf_var": ["no_bw", None],
        "perf_unit": ["km"],
    }
    rows = [
        row.with_columns(pl.lit(value).cast(SAMPLES[name]).alias(name), version=pl.lit(f"odd {n}"))
        for name, values in odd.items()
        for n, value in enumerate(values)
    ]
    store.add("here", pl.concat(rows).cast(SAMPLES), ())
    read, files = (json.loads(each) for each in (from_store(store), from_files(site)))
    said = [each["reason"] for each in read.pop("rejected")]
    assert said.count("not a sample that a perflog can have") == sum(map(len, odd.values()))
    for each in (read, files):
        each.pop("rejected_lines")
    files.pop("rejected")
    assert read == files


def test_hostile_text_in_any_cell_comes_back_as_it_was(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hostile = "'; DROP TABLE iobands.samples; -- \\N \u202e<b>%s{}\"(,)\\x00 é"
    texts = [n for n, t in SAMPLES.items() if t == pl.Categorical() and n in COLUMNS.split("|")]
    places = {"system", "partition", "result", "perf_var", "perf_unit", "purpose", "fail_phase"}
    cells = {name: f"{hostile}{name}" for name in texts if name not in places}
    system = "no\u00a0break"
    rows = daily([1.5 + 0.01 * (n % 7) for n in range(30)], system=system, **cells)
    write_perflog(Path("perflogs"), [*rows, "cut off"], system=system)
    push(store)
    files = read_known(Path("perflogs"), Path("bands"), Path("alerts"), now=NOW)
    stored = read_stored(store, store.systems(), now=NOW)
    assert stored.samples.measured.equals(files.samples.measured)
    assert {hostile in str(stored.samples.measured[name][0]) for name in cells} == {True}
    assert [each.reason for each in stored.rejected] == [each.reason for each in files.rejected]
    assert stored.rejected


class Gone(Exception):
    """Raised where the process or the engine ends."""


def stopping_after(store: Store, calls: int, patch: pytest.MonkeyPatch) -> None:
    """Make the engine end after this many of its own calls, as if the process were killed."""
    left = iter([True] * calls)

    def counted(work):
        def call(*arguments, **options):
            if not next(left, False):
                raise Gone
            return work(*arguments, **options)

        return call

    if (connection := getattr(store, "_connection", None)) is None:
        for name in ("_put", "_remove", "_list", "_get"):
            patch.setattr(store, name, counted(getattr(store, name)))
    else:
        cursor = connection.cursor

        def opened():
            found = cursor()
            for name in ("execute", "adbc_ingest"):
                setattr(found, name, counted(getattr(found, name)))
            return found

        patch.setattr(connection, "cursor", opened)
        patch.setattr(connection, "commit", counted(connection.commit))


def test_what_ends_at_any_instant_loses_and_doubles_nothing(store, site):
    whole = gather(Path("perflogs"), Path("config"), NOTHING).samples
    for instant in range(200):
        with pytest.MonkeyPatch.context() as patch:
            stopping_after(store, instant, patch)
            try:
                push(store)
                break
            except Gone:
                if connection := getattr(store, "_connection", None):
                    connection.rollback()  # the server does so when the client is gone
    assert instant > 4
    push(store)
    assert from_store(store) == from_files(site)
    assert store.samples("here")[0].frame.n_unique(CONTENT) == whole.n_unique(CONTENT)
