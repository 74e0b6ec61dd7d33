"""`iobands import`: the files that it writes, its output and its exit statuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from iobands.commands.main import app
from tests.factory import line, write_perflog

TABLE = """job_completion_time,tool,file_system,operation,rate
2017-02-14 17:29:40Z,ior,scratch1,write,7.5
2017-02-14 17:29:40Z,ior,scratch1,read,-1
"""
MAPPING = """
fields: {system: edison, partition: compute, perf_unit: GiB/s}
columns: {perf_var: operation, perf_value: rate}
variables: {write: {perf_var: write_bw}, read: {perf_var: read_bw}}
"""


def call(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["import", *map(str, arguments)])
    return done.exit_code, done.output


def test_a_table_becomes_a_perflog_once(tmp_path: Path) -> None:
    source, mapping, perflogs = tmp_path / "source", tmp_path / "m.yaml", tmp_path / "perflogs"
    source.mkdir()
    (source / "results.csv").write_text(TABLE)
    mapping.write_text(MAPPING)
    arguments = (source, "--mapping", mapping, "--perflogs", perflogs)
    status, said = call(*arguments)
    assert status == 0
    assert f"{source / 'results.csv'}:3: perf_value: '-1' is not above 0" in " ".join(said.split())
    perflog = perflogs / "edison" / "compute" / "imported-results.log"
    written = perflog.read_text().splitlines()
    assert len(written) == 2
    assert call(*arguments)[0] == 0
    assert perflog.read_text().splitlines() == written


@pytest.mark.parametrize("source", ["perflogs", "perflogs/here", "."])
def test_a_site_does_not_import_its_own_perflogs(tmp_path: Path, source: str) -> None:
    write_perflog(tmp_path / "perflogs", [line()])
    (tmp_path / "config" / "systems").mkdir(parents=True)
    status, said = call(tmp_path / source, "--site", tmp_path)
    assert (status, "has perflogs of iobands" in said) == (3, True)
    assert not [*tmp_path.rglob("imported-*")]


def test_where_no_row_can_be_used_nothing_was_imported(tmp_path: Path) -> None:
    source, perflogs = tmp_path / "source", tmp_path / "perflogs"
    source.mkdir()
    (source / "results.csv").write_text(TABLE.replace("7.5", "-7.5"))
    (tmp_path / "m.yaml").write_text(MAPPING)
    status, said = call(source, "--mapping", tmp_path / "m.yaml", "--perflogs", perflogs)
    assert "2 lines rejected" in " ".join(said.split())
    assert said.endswith("IOBANDS UNKNOWN: no row could be used; see above\n")
    assert (status, perflogs.exists()) == (3, False)


@pytest.mark.needs("fewer capabilities")
def test_what_cannot_be_read_is_named_and_unknown(tmp_path: Path) -> None:
    closed = tmp_path / "source" / "closed"
    closed.mkdir(parents=True)
    (closed / "results.csv").write_text(TABLE)
    (tmp_path / "source" / "gone.csv").symlink_to("nowhere")
    closed.chmod(0)
    limited = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", sys.executable)
    try:
        done = subprocess.run(
            [*limited, "-m", "iobands", "import", "source"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        closed.chmod(0o755)
    assert done.returncode == 3
    assert "source/closed: cannot be read: Permission denied" in done.stdout
    assert "source/gone.csv: cannot be read: No such file or directory" in done.stdout


def test_what_cannot_be_imported(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("speed: 1")
    for arguments in ([tmp_path / "nowhere"], [tmp_path, "--mapping", tmp_path / "m.yaml"]):
        status, said = call(*arguments, "--perflogs", tmp_path / "perflogs")
        assert (status, said.startswith("IOBANDS UNKNOWN: ")) == (3, True)
    assert not (tmp_path / "perflogs").exists()


def test_where_nothing_is_to_be_imported(tmp_path: Path) -> None:
    table, level = tmp_path / "a" / "x.csv", tmp_path / "b" / "system" / "x.log"
    for each in (table, level):
        each.parent.mkdir(parents=True)
        each.write_text(TABLE)
    for source, said in (
        (table, "is not a directory; give the one that contains it"),
        (level.parent, "no table *.csv and no SYSTEM/PARTITION/*.log below it"),
    ):
        found = call(source, "--perflogs", tmp_path / "p")
        assert found == (3, f"IOBANDS UNKNOWN: {source}: {said}\n")
