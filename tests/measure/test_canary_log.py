"""The samples of canaries, and those that a node is compared with."""

import time
from datetime import datetime, timedelta, timezone

import pytest

from iobands.measure import SessionError
from iobands.measure.canary_log import (
    add_rows,
    held_log,
    log_of,
    rows_of_peers,
    samples_of_peers,
)
from iobands.model import PERFLOG_HEADER
from iobands.source.perflog import perflog_files


def row(rate, *, hours=1.0, **fields):
    """A row of a node, some hours old."""
    when = datetime.now(timezone.utc) - timedelta(hours=hours)
    return {
        "job_completion_time": when.isoformat(),
        "system": "site",
        "file_system": "disk",
        "case": "canary",
        "purpose": "manual",
        "perf_var": "write_bw",
        "perf_value": rate,
        "perf_unit": "GiB/s",
        "band_verdict": "write_bw=within",
        **fields,
    }


def write(perflogs, node, *rows):
    path = log_of(perflogs, "site", node)
    with held_log(path, 0) as log:
        add_rows(log, rows)
    return path


def test_only_runs_of_the_same_series_on_other_nodes_count(tmp_path):
    own = write(tmp_path, "n1", row(9.0))
    write(tmp_path, "n2", row(1.0), row(2.0), row(3.0, file_system="other"))
    write(tmp_path, "n3", row(4.0, purpose="repeat"), row(5.0), row(6.0, gib=1))
    peers = rows_of_peers(own, 1)
    samples, slow = samples_of_peers(peers, row(0))
    assert ({node: sorted(rates) for node, rates in samples.items()}, slow) == (
        {"n2": [1.0, 2.0], "n3": [5.0]},
        (),
    )


def test_what_collapsed_is_not_normal_until_it_did_on_three_nodes(tmp_path):
    low = {"band_verdict": "write_bw=collapsed,read_bw=within"}
    own = write(tmp_path, "n1", row(1.0))
    write(tmp_path, "n2", row(1.0), row(0.5, **low))
    write(tmp_path, "n3", row(1.0), row(0.5, hours=25, **low))
    samples, slow = samples_of_peers(rows_of_peers(own, 1), row(0))
    assert (samples, slow) == ({"n2": [1.0], "n3": [1.0]}, ("n2",))
    write(tmp_path, "n4", row(0.5, **low), row(1.0))
    samples, slow = samples_of_peers(rows_of_peers(own, 1), row(0))
    assert sorted(rate for rates in samples.values() for rate in rates) == [0.5] * 3 + [1.0] * 3
    assert slow == ("n2",)


def test_the_newest_runs_of_all_nodes_count(tmp_path):
    own = write(tmp_path, "n1", row(1.0))
    for node in ("n2", "n3"):
        write(tmp_path, node, *(row(rate) for rate in range(1, 301)))
    samples, _ = samples_of_peers(rows_of_peers(own, 1), row(0))
    assert {node: (min(rates), len(rates)) for node, rates in samples.items()} == {
        "n2": (101.0, 200),
        "n3": (101.0, 200),
    }


def test_a_few_long_files_do_not_hide_the_other_nodes(tmp_path):
    own = write(tmp_path, "n1", row(1.0))
    for node in ("n2", "n3", "n4"):
        write(tmp_path, node, *(row(1.0) for _ in range(900)))
    assert len(samples_of_peers(rows_of_peers(own, 1), row(0))[0]) == 3


def test_nothing_else_reads_them(tmp_path):
    write(tmp_path, "n1", row(1.0))
    assert list(tmp_path.rglob("*.log")) != []
    assert perflog_files(tmp_path) == []


def test_damaged_lines_and_files_cost_nothing_else(tmp_path):
    own = write(tmp_path, "n1", row(1.0))
    path = write(tmp_path, "n2", row(1.0))
    with path.open("ab") as stream:
        stream.write(b"torn|line")
    write(tmp_path, "n2", row(2.0))
    (path.parent / "n3.log").write_bytes(bytes(range(256)))
    (path.parent / "n4.log").mkdir()
    samples, _ = samples_of_peers(rows_of_peers(own, 1), row(0))
    assert samples == {"n2": [2.0, 1.0]}


def test_a_long_file_loses_its_oldest_lines(tmp_path):
    path = write(tmp_path, "n1", *(row(rate, spread="x" * 900) for rate in range(1, 1300)))
    write(tmp_path, "n1", row(5000))
    lines = path.read_text().splitlines()
    assert lines[0] == PERFLOG_HEADER
    assert len(lines) == 1 + 1200 + 1
    assert "|5000|" in lines[-1]
    assert "|100|" in lines[1]  # of 1299 rates, 1200 stay: 100 to 1299


def test_columns_of_another_version_begin_anew(tmp_path):
    path = log_of(tmp_path, "site", "n1")
    path.parent.mkdir(parents=True)
    path.write_text("job_completion_time|other\n1|2\n")
    write(tmp_path, "n1", row(1.0))
    first, *rows = path.read_text().splitlines()
    assert first == PERFLOG_HEADER
    assert len(rows) == 1


def test_two_canaries_of_a_node_do_not_disturb_each_other(tmp_path):
    path = log_of(tmp_path, "site", "n1")
    with (
        held_log(path, 0),
        pytest.raises(SessionError, match="another canary"),
        held_log(path, time.monotonic() + 0.3),
    ):
        pass
    with held_log(path, 0):
        pass


def test_a_link_in_place_of_the_file_is_refused(tmp_path):
    path = log_of(tmp_path, "site", "n1")
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"), held_log(path, 0):
        pass
    assert not (tmp_path / "elsewhere").exists()
