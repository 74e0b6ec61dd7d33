"""The commands that push to a store and read one, as somebody types them."""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import duckdb
import polars as pl
import pytest

from iobands.commands import export
from iobands.source.store import open_store, read_stored
from iobands.views.dashboard.write import directory_of
from tests.commands.calling import alike, call
from tests.commands.small_site import site, unknown
from tests.factory import case, daily, write_perflog, write_report
from tests.mounts import fill, in_memory, unanswered
from tests.site_copy import ROOT
from tests.sites import whole_demo
from tests.source.engines import ENGINES


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Keep the cache of a reader out of the home directory of whoever runs the tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def site_of(system: str, above: Path, ago: int = 0) -> tuple[Path, Path]:
    """Make a site whose only system has this name; return its directory and its perflog."""
    root = site(above / system, ago=ago)
    (root / "perflogs" / "here").rename(root / "perflogs" / system)
    log = root / "perflogs" / system / "local" / "BenchioFPP.log"
    log.write_text(log.read_text().replace("|here|", f"|{system}|"))
    return root, log


def test_a_cluster_pushes_and_anybody_reads(iobands, tmp_path):
    site(tmp_path)
    (tmp_path / "config" / "store.yaml").write_text(f"url: {tmp_path}/store\n")
    first = iobands("push")
    assert first.stdout == "Pushed 10 samples and 3 documents\n"
    assert iobands("push").stdout == "Pushed 0 samples and 0 documents\n"
    status = partial(iobands, "status", "--store", f"{tmp_path}/store")
    assert status().returncode == 0
    assert alike(lambda: status().stdout, lambda: iobands("status").stdout)
    for words in (("table",), ("export", "--format", "csv"), ("export", "--format", "openmetrics")):
        read = iobands(*words, "--store", f"{tmp_path}/store")
        assert (read.returncode, read.stdout) == (0, iobands(*words).stdout)
    for words in (("advise",), ("compare", "transport")):
        said = unknown(iobands(*words, "--store", f"{tmp_path}/store")).stderr
        assert f"{tmp_path}/store: no two series differ in only" in said
    read = iobands("status", "--store", f"{tmp_path}/store")
    assert iobands("pull", f"{tmp_path}/copy").stdout == "here: 10 samples\n"
    said = unknown(iobands("pull", "--system", "x", f"{tmp_path}/again")).stderr
    assert f"{tmp_path}/store: no samples of x; systems there: here" in said
    named = iobands("pull", "--store", f"{tmp_path}/copy", f"{tmp_path}/again")
    assert named.stdout == "here: 10 samples\n"
    read = iobands("status", "--store", f"{tmp_path}/copy", "--format", "json")
    of_store = iobands("status", "--store", f"{tmp_path}/store", "--format", "json")
    assert without_time(read.stdout) == without_time(of_store.stdout)


def test_what_is_said_of_alerts_does_not_show_where_the_samples_lie(iobands, tmp_path):
    cluster, store = tmp_path / "cluster", f"{tmp_path}/store"
    whole_demo(cluster, datetime(2026, 6, 1, 12, tzinfo=timezone.utc))
    for root in (cluster, site(tmp_path / "other")):
        assert iobands("push", "--store", store, cwd=root).returncode == 0
    read = ("--store", store, "--system", "made-up-site", "--as-of", "2026-06-01")
    for words in (
        ("status",),
        ("status", "--all"),
        ("explain", "2"),
        ("explain", "3"),
        ("alerts",),
    ):
        said = iobands(*words, "--as-of", "2026-06-01", cwd=cluster).stdout
        assert iobands(*words, *read).stdout == said != ""


def test_a_store_beside_the_site_is_one_by_whatever_name_from_wherever(iobands, tmp_path):
    root = site(tmp_path / "cluster")
    (root / "config" / "systems").mkdir()
    (root / "config" / "store.yaml").write_text("url: ../store\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    first = iobands("push", "--site", str(root), cwd=elsewhere)
    assert first.stdout == "Pushed 10 samples and 3 documents\n"
    names = ("../store", f"{tmp_path}/store", f"{tmp_path}/elsewhere/../store")
    for store in (*names, f"file://{tmp_path}/store", "~/store"):
        call = partial(iobands, cwd=elsewhere, HOME=str(tmp_path))
        again = call("push", "--site", str(root), "--store", store)
        assert again.stdout == "Pushed 0 samples and 0 documents\n"
        assert call("status", "--store", store).returncode == 0
        itself = unknown(call("pull", "--store", f"{tmp_path}/store", store)).stderr
        assert f"{tmp_path}/store: a store cannot be copied into itself" in itself
    assert iobands("pull", "--store", f"{tmp_path}/store", "~/copy", HOME=str(tmp_path)).stdout
    assert (tmp_path / "copy" / "iobands-store").exists()
    shutil.rmtree(tmp_path / "copy")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cluster", "elsewhere", "store"]


def test_a_store_of_several_sites_has_a_line_and_a_dashboard_for_each(
    iobands, tmp_path, monkeypatch
):
    store = f"{tmp_path}/store"
    for name in ("one", "two"):
        root, log = site_of(name, tmp_path)
        if name == "two":  # what fell by three quarters
            log.write_text(re.sub(r"\|1\.5\|(?=[^\n]*\n\Z)", "|0.1|", log.read_text()))
            began = datetime.now(timezone.utc) - timedelta(days=3)
            times = [f"{began + timedelta(hours=hours):%FT%TZ}" for hours in (0, 1)]
            held = ("begin", "--reason", "new disks", "--since", times[0], "--until", times[1])
            assert iobands("maintenance", *held, cwd=root).returncode == 0
        assert iobands("push", "--store", store, cwd=root).returncode == 0
    done = iobands("status", "--store", store)
    assert [line.split(" IOBANDS ")[0] for line in done.stdout.splitlines()] == ["one:", "two:"]
    assert iobands("status", "--store", store, "--system", "one").stdout.startswith("IOBANDS OK")
    said = unknown(iobands("explain", "fpp", "--store", store))
    assert "2 sites; choose with --system: one, two" in said.stderr
    report = ("maintenance", "report", "--store", store)
    assert "2 sites; choose with --system: one, two" in unknown(iobands(*report)).stderr
    assert "new disks" in iobands(*report, "--system", "two").stdout
    figures = unknown(iobands("report", "pages", "--store", store, "--format", "svg"))
    assert "2 sites; choose with --system: one, two" in figures.stderr
    assert iobands("report", "pages", "--store", store).returncode == 0
    page = (tmp_path / "pages" / "index.html").read_text()
    assert all(f'<a href="{name}/index.html">{name}</a>' in page for name in ("one", "two"))
    assert "benchio fpp posix write_bw" in page
    assert (tmp_path / "pages" / "two" / "index.html").exists()
    (link,) = re.findall(r'<a href="(two/maintenances/[^"]+)">Maintenance [^<]* of two<', page)
    assert "new disks" in (tmp_path / "pages" / link).read_text()
    users = iobands("report", "open", "--public", "--store", store)  # which has no site files
    assert "iobands: one, two: no site file in config/systems: commands that " in users.stderr
    assert users.stderr.count("no site file") == 1
    assert "maintenance" not in (tmp_path / "open" / "index.html").read_text().lower()
    read = read_stored

    def failing(opened, systems, **options):
        if systems == ["one"]:
            raise ArithmeticError("a bug")
        return read(opened, systems, **options)

    with monkeypatch.context() as patch:
        patch.setattr("iobands.source.store.read_stored", failing)
        lines = iobands("status", "--store", store).stdout.splitlines()
        assert (
            "one: IOBANDS UNKNOWN: ArithmeticError: a bug; see iobands status --system one" in lines
        )
        assert len(lines) == 2
    # an odd directory or file that somebody made does not affect other sites
    odd = tmp_path / "store" / "samples" / "system=%2E%2E" / "month=2026-11" / "edited.parquet"
    odd.parent.mkdir(parents=True)
    odd.write_bytes(b"edited")
    done = iobands("status", "--store", store)
    assert "..: IOBANDS UNKNOWN: no samples of .." in done.stdout
    assert (done.returncode, len(done.stdout.splitlines())) == (3, 3)
    assert iobands("report", "odd", "--store", store).returncode == 0
    page = (tmp_path / "odd" / "index.html").read_text()
    assert "no samples of .." in page and "one/index.html" in page


def unreadable_sites(iobands, tmp_path, monkeypatch):
    """Return a store of the sites `here` and `two`, which cannot be read."""
    store = f"{tmp_path}/store"
    iobands("push", "--store", store, cwd=site(tmp_path / "one"))
    with open_store(store) as opened:
        rows = opened.samples("here")[0].frame
        opened.add("two", rows.with_columns(system=pl.lit("two", pl.Categorical())), [])
    monkeypatch.setattr("iobands.source.store.read_stored", None)
    return store


@pytest.mark.machine
@pytest.mark.needs("other users")
def test_in_a_shared_directory_nobody_writes_to_the_systems_of_others(tmp_path):
    howto = (ROOT / "docs" / "howto" / "keep-in-a-store.md").read_text()
    (made,) = re.findall(r"```\n(mkdir -p results/.*?)```", howto, re.DOTALL)
    made = made.replace(" io ", " 1234 ")
    subprocess.run(["sh", "-e", "-c", f"umask 022; {made}"], cwd=tmp_path, check=True)
    rights = ("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search")
    for user, name in ("1", "one"), ("2", "two"):
        root, _ = site_of(name, tmp_path, ago=100)
        subprocess.run(["chown", "-R", user, root], check=True)
        as_user = ("setpriv", "--reuid", user, "--regid", "1234", "--clear-groups", *rights)
        for _ in range(2):
            push = (sys.executable, "-m", "iobands", "push", "--store", "../results")
            subprocess.run([*as_user, *push], cwd=root, check=True)
    store = tmp_path / "results"
    for theirs in (store / "samples" / "system=one", store / "iobands-store"):
        refused = subprocess.run([*as_user, "rm", "-rf", theirs], check=False)
        assert refused.returncode
    with open_store(str(store)) as opened:
        assert opened.systems() == ["one", "two"]
        assert len(opened.samples("one")[0]) == 10
    old = ("forget", "--store", "../results", "--older-than", "30d")
    forget = [*as_user, sys.executable, "-m", "iobands", *old]
    done = subprocess.run(forget, cwd=root, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("two: 10 samples before ")
    assert done.returncode == 3
    assert f"not everything was deleted:\n  one: {store}: " in done.stderr


@pytest.mark.machine
@pytest.mark.needs("fewer capabilities")
@pytest.mark.parametrize(
    "closed", ["samples/system=here", "documents/system=here", "documents/new"]
)
def test_a_system_that_others_may_not_read_hides_no_other(closed, iobands, tmp_path):
    """As where one of several clusters pushes to a shared directory with umask 077."""
    store = f"{tmp_path}/store"
    for name in ("here", "two"):
        root, _ = site_of(name, tmp_path)
        assert iobands("push", "--store", store, cwd=root).returncode == 0
    place = tmp_path / "store" / closed.replace("new", "system=new")
    place.mkdir(exist_ok=True)
    limited = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", sys.executable)
    place.chmod(0)
    try:
        done = subprocess.run(
            [*limited, "-m", "iobands", "status", "--store", store],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        place.chmod(0o755)
    said = sorted(done.stdout.splitlines())
    unread = place.name.removeprefix("system=")
    assert [each.partition(":")[0] for each in said] == sorted({"here", "two", unread})
    (why,) = (each for each in said if "UNKNOWN" in each)
    assert why.startswith(f"{unread}: IOBANDS UNKNOWN: {store}: ")
    assert why.endswith("Permission denied")


def test_to_users_the_state_of_an_unread_site_is_not_known(iobands, tmp_path, monkeypatch):
    store = unreadable_sites(iobands, tmp_path, monkeypatch)
    for option, word in ((), "UNKNOWN"), (("--public",), "not known"):
        iobands("report", "pages", "--store", store, *option)
        page = (tmp_path / "pages" / "index.html").read_text()
        assert page.count(f'<span class="tag unknown">{word}</span>') == 2


@pytest.mark.parametrize("words", ["--all", "--rejected", "--format json"])
def test_what_shows_one_site_asks_for_it_before_all_are_judged(
    words, iobands, tmp_path, monkeypatch
):
    store = unreadable_sites(iobands, tmp_path, monkeypatch)
    said = unknown(iobands("status", *words.split(), "--store", store)).stderr
    assert said.endswith(f"{store}: the store has 2 sites; choose with --system: here, two\n")


def test_a_cluster_that_is_renamed_begins_anew_and_keeps_its_past(iobands, tmp_path):
    root, store = site(tmp_path / "site"), f"{tmp_path}/store"
    assert iobands("push", "--store", store, cwd=root).stdout.startswith("Pushed 10 samples")
    old = root / "perflogs" / "here" / "local" / "BenchioFPP.log"
    new = root / "perflogs" / "there" / "local" / "BenchioFPP.log"
    new.parent.mkdir(parents=True)
    header, *lines = old.read_text().splitlines(keepends=True)
    new.write_text(header + lines[-1].replace("|here|", "|there|"))
    assert iobands("push", "--store", store, cwd=root).stdout.startswith("Pushed 1 sample ")
    for name, runs in (("here", 10), ("there", 1)):
        pulled = iobands("pull", "--store", store, "--system", name, f"{tmp_path}/{name}")
        assert pulled.stdout.startswith(f"{name}: {runs} sample"), pulled.stderr
    # one site, judged together as its files are
    status = partial(iobands, "status", "--store", store)
    assert status().returncode == 0
    assert alike(lambda: status().stdout, lambda: iobands("status", cwd=root).stdout)


def test_rows_in_a_directory_of_another_name_are_pushed_as_their_own_system(iobands, tmp_path):
    root, store = site(tmp_path / "site"), f"{tmp_path}/store"
    (root / "perflogs" / "here").rename(root / "perflogs" / "there")
    assert iobands("push", "--store", store, cwd=root).stdout.startswith("Pushed 10 samples")
    pulled = iobands("pull", "--store", store, "--system", "here", f"{tmp_path}/here")
    assert pulled.stdout.startswith("here: 10 samples"), pulled.stderr
    log = root / "perflogs" / "there" / "local" / "BenchioFPP.log"
    *_, last = log.read_text().splitlines(keepends=True)
    with log.open("a") as lines:
        lines.write(last.replace("|1.5|", "|1.6|"))
    assert iobands("push", "--store", store, cwd=root).stdout.startswith("Pushed 1 sample ")


def test_a_reader_goes_on_from_its_own_memory_and_needs_no_right_to_write(iobands, tmp_path):
    site(tmp_path)
    iobands("push", "--store", f"{tmp_path}/store")
    there = {path: path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file()}
    words = ("status", "--store", f"{tmp_path}/store", "--format", "json")
    cache = tmp_path / "cache"
    first = iobands(*words, XDG_CACHE_HOME=str(cache))
    (memory,) = cache.glob("iobands/*/here/judged.memory")
    assert memory.parent.stat().st_mode & 0o77 == 0
    again = iobands(*words, XDG_CACHE_HOME=str(cache))
    assert without_time(again.stdout) == without_time(first.stdout)
    # each budget has its own memory, so that two readers do not replace each other's
    iobands(*words, "--false-alarms", "2", XDG_CACHE_HOME=str(cache))
    assert len([*cache.glob("iobands/*/here/judged.memory")]) == 2
    (tmp_path / "file").touch()
    iobands(*words, cwd=tmp_path, HOME=f"{tmp_path}/home", XDG_CACHE_HOME="relative")
    assert len([*tmp_path.glob("home/.cache/iobands/*/here/judged.memory")]) == 1
    nowhere = iobands(*words, XDG_CACHE_HOME=f"{tmp_path}/file")
    assert (nowhere.returncode, nowhere.stderr) == (0, "")
    assert without_time(nowhere.stdout) == without_time(first.stdout)
    assert there == {
        path: path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file()
    }


def test_a_push_that_does_not_find_the_configuration_removes_nothing(iobands, tmp_path):
    root, elsewhere, store = site(tmp_path / "site"), tmp_path / "elsewhere", f"{tmp_path}/store"
    assert iobands("push", "--store", store, cwd=root).returncode == 0
    elsewhere.mkdir()
    words = ("push", "--perflogs", f"{root}/perflogs", "--store", store)
    for _ in range(2):
        said = unknown(iobands(*words, cwd=elsewhere)).stderr
        assert "config: no such directory, but the store has config/bands/here.yaml of" in said
    done = iobands(*words, "--config", f"{root}/config", cwd=elsewhere)
    assert done.stdout == "Pushed 0 samples and 0 documents\n"
    # files that were removed are not missed
    (root / "config" / "bands" / "here.yaml").unlink()
    assert iobands("push", "--store", store, cwd=root).stdout == "Pushed 0 samples and 1 document\n"
    assert iobands(*words, cwd=elsewhere).stdout == "Pushed 0 samples and 0 documents\n"


@pytest.mark.machine
@pytest.mark.needs("fewer capabilities")
@pytest.mark.parametrize("closed", ["config/bands/here", "perflogs/here/reports"])
def test_what_cannot_be_listed_is_not_removed_from_a_store(closed, iobands, tmp_path):
    site(tmp_path)
    write_report(tmp_path / "perflogs", [case()])
    epoch = {"name": "new", "since": "2025-01-01", "source": "a test", "bands": []}
    learned = tmp_path / "config" / "bands" / "here" / "new.yaml"
    learned.parent.mkdir()
    learned.write_text(json.dumps({"schema": 1, "system": "here", "epochs": [epoch]}))
    words = ("push", "--store", f"{tmp_path}/store")
    assert iobands(*words).returncode == 0
    limited = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", sys.executable)
    (tmp_path / closed).chmod(0)
    try:
        done = subprocess.run(
            [*limited, "-m", "iobands", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        (tmp_path / closed).chmod(0o755)
    assert f"UNKNOWN: {closed}: cannot be read: Permission denied; the last push was" in done.stderr
    assert iobands(*words).stdout == "Pushed 0 samples and 0 documents\n"


def test_what_is_old_is_forgotten_after_a_dry_run(iobands, tmp_path):
    site(tmp_path, ago=100)
    store = f"{tmp_path}/store"
    iobands("push", "--store", store)
    words = ("forget", "--store", store, "--older-than", "30d")
    tried = iobands(*words, "--dry-run").stdout
    assert "numbers, as the store has no log of them" in tried
    (tmp_path / "perflogs" / "here" / "alerts.jsonl").write_text("an event\n")
    iobands("push", "--store", store)
    assert "here: 10 samples before " in (tried := iobands(*words, "--dry-run").stdout)
    assert "numbers" not in tried
    said = unknown(iobands(*words, "--system", "hree")).stderr
    assert f"{store}: no samples of hree; systems there: here" in said
    assert tried.replace("would be deleted", "deleted") == iobands(*words).stdout
    assert iobands(*words).stdout == "The store has no samples\n"
    assert iobands(*words, "--system", "here").stdout == "The store has no samples\n"
    assert "no such file; write `url: …`" in unknown(iobands(*words[:1], *words[3:])).stderr


def test_a_name_in_a_store_neither_upsets_a_terminal_nor_forges_a_line(iobands, tmp_path):
    site(tmp_path)
    store, evil = f"{tmp_path}/store", "x\a\nIOBANDS OK: forged\n"
    iobands("push", "--store", store)
    with open_store(store) as opened:
        rows = opened.samples("here")[0].frame
        opened.add(evil, rows.with_columns(system=pl.lit(evil, pl.Categorical())), [])
    for words in (
        ("status", "--store", store),
        ("status", "--store", store, "--system", "nowhere"),
        ("explain", "x", "--store", store),
        ("report", f"{tmp_path}/pages", "--store", store),
        ("pull", "--store", store, f"{tmp_path}/copy"),
        ("forget", "--store", store, "--older-than", "30d", "--dry-run"),
    ):
        done = iobands(*words)
        said = done.stdout + done.stderr
        assert said
        assert "\a" not in said
        assert not re.search("^IOBANDS OK: forged", said, re.MULTILINE)


def test_no_name_of_a_site_is_in_the_way_of_the_page_of_all(iobands, tmp_path):
    site(tmp_path)
    store, pages = f"{tmp_path}/store", tmp_path / "pages"
    iobands("push", "--store", store)
    names = ("index.html", "data", "app", "clusters.css", "clusters.js", "..", "a b, c")
    with open_store(store) as opened:
        rows = opened.samples("here")[0].frame
        for each in names:
            opened.add(each, rows.with_columns(system=pl.lit(each, pl.Categorical())), [])
    for _ in range(2):
        done = iobands("report", str(pages), "--store", store)
        assert (done.returncode, done.stderr) == (0, "")
    linked = re.findall(r'href="([^"#]+)/index.html"', (pages / "index.html").read_text())
    fronts = {*map(unquote, linked)}
    assert len(fronts) == 1 + len([each for each in names if each != ".."])
    assert all((pages / each / "index.html").is_file() for each in fronts)
    assert {"here", "a b, c"} <= fronts
    assert len(directory_of("é" * 150)) == 12  # which no file system takes


def test_a_site_whose_dashboard_cannot_be_written_costs_its_line_alone(iobands, tmp_path):
    store, pages = f"{tmp_path}/store", tmp_path / "pages"
    for name in ("one", "two"):
        root = site(tmp_path / name, system=name)
        shutil.move(root / "perflogs" / "here", root / "perflogs" / name)
        iobands("push", "--store", store, cwd=root)
    pages.mkdir()
    (pages / "one").write_text("not a directory")
    done = iobands("report", str(pages), "--store", store)
    assert done.returncode == 3
    assert re.search("^IOBANDS UNKNOWN: one: .*pages/one", done.stderr)
    assert done.stderr.count("\n") == 1
    page = (pages / "index.html").read_text()
    assert 'href="two/index.html"' in page
    assert 'href="one/index.html"' not in page


def without_time(text):
    return {name: each for name, each in json.loads(text).items() if name != "now"}


def test_a_reader_makes_no_store(iobands, tmp_path):
    said = unknown(iobands("status", "--store", f"{tmp_path}/nowhere"))
    assert f"{tmp_path}/nowhere: no store there; check the URL, or push first" in said.stderr
    assert not (tmp_path / "nowhere").exists()
    with open_store(f"{tmp_path}/empty", new=True):
        pass
    for words in (("status",), ("pull", f"{tmp_path}/copy"), ("export", "--format", "csv")):
        said = unknown(iobands(*words, "--store", f"{tmp_path}/empty")).stderr
        assert said.endswith(f"{tmp_path}/empty: the store has no samples yet; measure and push\n")
    assert not (tmp_path / "copy").exists()


def test_no_store_is_made_among_the_files_of_a_site(iobands, tmp_path):
    root = site(tmp_path / "site")
    (root / "config" / "systems").mkdir()
    assert iobands("push", "--store", f"{tmp_path}/store", cwd=root).returncode == 0
    before = {*root.rglob("*")}
    for store in (".", "perflogs", "perflogs/store", "config"):
        for words in (("push", "--store", store), ("pull", "--store", "../store", store)):
            said = unknown(iobands(*words, cwd=root)).stderr
            assert "has files of a site; name another directory for the store" in said
    assert {*root.rglob("*")} == before


@pytest.mark.needs("mounts")
@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="no FUSE")
def test_a_store_on_a_hung_disk_holds_up_no_digest(tmp_path, monkeypatch):
    root = site(tmp_path / "site")
    (root / "config" / "systems").mkdir()
    (root / "config" / "store.yaml").write_text("url: ../hung/store\n")
    monkeypatch.setattr("iobands.model.files._ANSWER", 1)
    why = "../hung/store: no answer within 1 s; check its file system"
    with unanswered(tmp_path / "hung"):
        status, digest = call("status", "--site", str(root))
        refused, said = call("push", "--site", str(root))
    assert (status, refused) == (0, 3)
    assert f"Not pushed to the store yet {why}" in " ".join(digest.split())
    assert why in " ".join(said.split())


@pytest.mark.needs("mounts")
@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="no FUSE")
@pytest.mark.parametrize("part", ["samples", "documents"])
def test_a_disk_that_hangs_in_the_middle_of_a_push_is_named(part, tmp_path, monkeypatch):
    root, store = site(tmp_path / "site"), tmp_path / "store"
    (root / "config" / "systems").mkdir()
    with open_store(str(store), new=True):
        pass
    monkeypatch.setattr("iobands.source.objects._SILENCE", 1)
    with unanswered(store / part):
        status, said = call("push", "--site", str(root), "--store", str(store))
    assert (status, f"{store}: no answer within 1 s; check its file" in said) == (3, True)


def put_back(pushed, age):
    """Set the recorded age of all pushes so far."""
    when = f"{datetime.now(timezone.utc) - age:%FT%TZ}"
    pushed.write_text(re.sub(r'"when":"[^"]*"', f'"when":"{when}"', pushed.read_text()))


def test_what_cannot_be_pushed_is_said_once_with_its_age(iobands, tmp_path):
    site(tmp_path)
    (tmp_path / "file").write_text("")
    assert "no such file; write `url: …`" in unknown(iobands("push")).stderr
    said = unknown(iobands("push", "--store", f"{tmp_path}/file"))
    assert said.stderr.endswith("the store must be a directory; no push there has finished yet\n")
    assert iobands("push", "--store", f"{tmp_path}/store").returncode == 0
    pushed = tmp_path / "perflogs" / "pushed.json"
    settings = tmp_path / "config" / "store.yaml"
    settings.write_text(f"url: {tmp_path}/store\n")
    assert "Not pushed" not in iobands("status").stdout
    put_back(pushed, timedelta(days=3, hours=2))
    assert "Not pushed" not in iobands("status").stdout  # there is nothing new
    next((tmp_path / "perflogs").rglob("*.log")).touch()
    said = "Not pushed to the store for 3 days\n  no push has finished\n"
    assert said in iobands("status").stdout
    put_back(pushed, -timedelta(days=30))  # by a clock that was ahead
    said = "Not pushed to the store since a push dated in the future\n  no push has finished\n"
    assert said in iobands("status").stdout
    secret = "postgresql://me:very-secret@localhost:1/io?connect_timeout=1"
    said = unknown(iobands("push", "--store", secret))
    assert "postgresql://me@localhost:1/io: " in said.stderr
    assert "secret" not in said.stderr + pushed.read_text()
    settings.write_text("uri: x\n")
    assert "store.yaml, line 1" in unknown(iobands("push")).stderr


def test_a_file_that_no_push_can_read_is_in_the_digest(iobands, tmp_path):
    root = site(tmp_path)
    (root / "config" / "store.yaml").write_text("url: store\n")
    assert iobands("push").returncode == 0
    put_back(root / "perflogs" / "pushed.json", timedelta(days=3, hours=2))
    loop = root / "perflogs" / "last-session.json"
    loop.symlink_to(loop.name)
    why = "perflogs/last-session.json: Too many levels of symbolic links; nothing is lost"
    assert why in unknown(iobands("push")).stderr
    digest = " ".join(iobands("status").stdout.split())
    assert f"Not pushed to the store for 3 days {why}" in digest


def test_a_perflog_that_no_push_can_read_makes_no_push_late(iobands, tmp_path):
    root = site(tmp_path)
    (root / "config" / "store.yaml").write_text("url: store\n")
    log = next(root.glob("perflogs/here/*/*.log"))
    log.with_name(f"{log.name}.1.zst").touch()
    assert iobands("push").returncode == 0
    put_back(root / "perflogs" / "pushed.json", timedelta(days=3, hours=2))
    assert "zst files are not supported" in (digest := iobands("status").stdout)
    assert "Not pushed" not in digest
    log.touch()
    assert "Not pushed to the store for 3 days" in " ".join(iobands("status").stdout.split())


def test_a_server_that_takes_no_end_holds_no_push_for_ever(iobands, tmp_path, monkeypatch):
    site(tmp_path)
    with ENGINES["postgres"]() as url:
        with open_store(url, new=True) as store:
            store._do(
                "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN PERFORM pg_sleep(1000); RETURN NEW; END $$",
                "CREATE TRIGGER wait BEFORE INSERT ON iobands.samples EXECUTE FUNCTION wait()",
            )
        monkeypatch.setattr(export, "_LONGEST_PUSH", 2.0)
        said = unknown(iobands("push", "--store", url)).stderr
        assert "the store has not taken a push within 2 s; no push there has finished yet" in said
        with open_store(url) as store:
            assert store.systems() == []


@pytest.mark.machine
@pytest.mark.needs("mounts")
def test_a_full_disk_at_the_cluster_names_the_file_and_loses_nothing(iobands, tmp_path):
    with in_memory(tmp_path / "perflogs", "size=64k"):
        site(tmp_path)
        store, filler = f"{tmp_path}/store", tmp_path / "perflogs" / "filler"
        for name in ("site.id", "pushed.json"):
            fill(filler)
            said = unknown(iobands("push", "--store", store)).stderr
            assert f"perflogs/{name}: No space left on device; nothing is lost" in said
            filler.unlink()
            if name == "site.id":
                (tmp_path / "perflogs" / name).write_text("abc\n")
        past = ("status", "--as-of", "2026-11-21")  # a fixed time, so that two outputs agree
        read = iobands(*past, "--store", store)
        assert read.stdout == iobands(*past).stdout
        assert iobands("push", "--store", store).stdout == "Pushed 10 samples and 0 documents\n"
        assert iobands("push", "--store", store).stdout == "Pushed 0 samples and 0 documents\n"
        assert iobands(*past, "--store", store).stdout == read.stdout


@pytest.mark.parametrize("words", [("status", "--store", "store"), ("import", "results")])
def test_a_full_scratch_directory_is_named(iobands, tmp_path, monkeypatch, words):
    write_perflog(tmp_path / "results", daily([1.5, 1.4]))
    iobands("push", "--store", "store", cwd=site(tmp_path))
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", f"{tmp_path}/scratch")
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
    try:
        said = unknown(iobands(*words)).stderr
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    assert re.search(rf"{tmp_path}/scratch/iobands-\S+: File too large\n$", said)


def test_another_store_gets_everything_and_each_has_its_own_age(iobands, tmp_path):
    """The site's store changes and comes back, and somebody pushes to another one by hand."""
    root = site(tmp_path / "site")
    log = root / "perflogs" / "here" / "local" / "BenchioFPP.log"
    settings = root / "config" / "store.yaml"

    def run_once():
        *_, last = log.read_text().splitlines()
        moment = datetime.fromisoformat(last.split("|")[0]) + timedelta(minutes=1)
        with log.open("a") as lines:
            lines.write("|".join([moment.isoformat(), *last.split("|")[1:]]) + "\n")

    for url, rows in (("one", 10), ("two", 11), ("one", 2), ("two", 2), ("one", 2)):
        settings.write_text(f"url: {tmp_path}/{url}\n")
        assert iobands("push", cwd=root).stdout.startswith(f"Pushed {rows} sample")
        run_once()
    # a push by hand to another store does not count for the site's own
    pushed = root / "perflogs" / "pushed.json"
    put_back(pushed, timedelta(days=3, hours=2))
    assert iobands("push", "--store", f"{tmp_path}/three", cwd=root).returncode == 0
    assert "Not pushed to the store for 3 days" in iobands("status", cwd=root).stdout
    # samples that were rotated away meanwhile are only in the old store, and copied to the new one
    header, *lines = log.read_text().splitlines(keepends=True)
    log.write_text(header + lines[-1])
    settings.write_text(f"url: {tmp_path}/four\n")
    iobands("pull", "--store", f"{tmp_path}/one", f"{tmp_path}/four")
    assert iobands("push", cwd=root).returncode == 0
    pulled = iobands("pull", "--store", f"{tmp_path}/four", f"{tmp_path}/all")
    assert pulled.stdout == f"here: {len(lines)} samples\n"


def test_duckdb_reads_the_files_as_the_howto_says(iobands, tmp_path, monkeypatch):
    site(tmp_path)
    iobands("push", "--store", f"{tmp_path}/results")
    text = (ROOT / "docs" / "howto" / "keep-in-a-store.md").read_text()
    query = re.search(r"```sql\n(SELECT .*?)```", text, re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)
    (row,) = duckdb.sql(query).fetchall()
    assert row == ("here", "disk", "fpp", "write_bw", 10, 1.5)
