"""The pieces of a canary: its samples, the build it uses, whom it waits for, and who runs it."""

import hashlib
import json
import os
import threading
import time
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from iobands.measure import SessionError
from iobands.measure.canary import (
    add_rows,
    await_session,
    become_owner,
    has_build,
    held_log,
    log_of,
    rows_of_peers,
    samples_of_peers,
    take_build,
    within,
)
from iobands.measure.lock import lock_path, new_holder
from iobands.model import PERFLOG_HEADER
from iobands.source.perflog import perflog_files

PLACE = ("site", "part", "env")
KEY = "0123456789abcdef" * 2


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


# The build


@pytest.fixture
def built(tmp_path):
    """A site with a kept build, as kept.sh writes it."""
    kept = tmp_path / "builds" / KEY
    kept.mkdir(parents=True)
    kept.parent.chmod(0o700)
    (kept.parent / "site.part.env").write_text(f"{KEY}\n")
    sums = ""
    contents = ("program", "said", "MPI=a b\0PATH=/x=y\0", "identity", "libraries")
    names = ("benchio", "build.out", "environment", "identity", "libraries")
    for name, content in zip(names, contents, strict=True):
        (kept / name).write_text(content)
        sums += f"{hashlib.sha256(content.encode()).hexdigest()}  {name}\n"
    (kept / "SHA256SUMS").write_text(sums)
    return tmp_path


def test_a_proven_build_is_copied_with_its_environment(built):
    program = built / "program"
    assert has_build(built, *PLACE)
    assert take_build(built, PLACE, program) == {"MPI": "a b", "PATH": "/x=y"}
    assert program.read_text() == "program"
    assert program.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["benchio", "environment", "SHA256SUMS"])
def test_a_damaged_build_is_not_used(built, name):
    with (built / "builds" / KEY / name).open("a") as stream:
        stream.write("x")
    with pytest.raises(SessionError, match="damaged or replaced; `iobands run`"):
        take_build(built, PLACE, built / "program")
    assert not (built / "program").exists()


@pytest.mark.parametrize("key", ["../../etc", "", f"{KEY}/..\n", f"{KEY}\n\n"])
def test_a_pointer_names_nothing_but_a_build(built, key):
    (built / "builds" / "site.part.env").write_text(key)
    with pytest.raises(SessionError, match="is damaged"):
        take_build(built, PLACE, built / "program")


def test_a_build_that_others_could_have_changed_is_not_used(built):
    (built / "builds").chmod(0o770)
    with pytest.raises(SessionError, match="of mode 0700"):
        take_build(built, PLACE, built / "program")
    (built / "builds").chmod(0o700)
    (built / "builds").rename(built / "elsewhere")
    (built / "builds").symlink_to(built / "elsewhere")
    with pytest.raises(SessionError, match="of mode 0700"):
        take_build(built, PLACE, built / "program")


# Waiting


def test_it_waits_for_a_session_and_says_so_once(tmp_path):
    holder = new_holder("iobands run --tag daily")
    lock_path(tmp_path).write_text(json.dumps(asdict(holder)))
    said: list[str] = []
    with pytest.raises(SessionError, match="a session is measuring: `iobands run --tag daily`"):
        await_session(tmp_path, time.monotonic() + 0.3, said.append)
    assert len(said) == 1
    timer = threading.Timer(0.3, lock_path(tmp_path).unlink)
    timer.start()
    await_session(tmp_path, time.monotonic() + 30, said.append)
    timer.join()


def test_it_does_not_wait_for_one_that_was_killed(tmp_path):
    said = json.loads(json.dumps(asdict(new_holder("iobands run"))))
    said["processes"][0]["started"] -= 1
    lock_path(tmp_path).write_text(json.dumps(said))
    await_session(tmp_path, 0, print)


def test_a_child_that_hangs_is_given_up():
    status, line = within(0.3, lambda: time.sleep(600) or (0, ""))
    assert (status, "no answer within 0.3 s" in line) == (3, True)
    assert within(60, lambda: (2, "IOBANDS UNFIT: ü")) == (2, "IOBANDS UNFIT: ü")
    assert within(60, lambda: os._exit(9))[0] == 3


# Who runs it


def test_a_link_and_the_directory_of_another_user_are_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(SessionError, match="is a link"):
        become_owner(tmp_path / "link")
    if os.geteuid():
        with pytest.raises(SessionError, match="belongs to user 0"):
            become_owner(Path("/"))
    become_owner(tmp_path)


@pytest.mark.needs("other users")
def test_root_becomes_the_owner_for_good(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    os.chown(site, 1, 1)
    tmp_path.chmod(0o711)

    def work():
        try:
            become_owner(site)
        except OSError as error:  # pytest's own directories are closed to others
            assert error.filename == str(site) or error.strerror == "Permission denied"
        try:
            os.setresuid(0, 0, 0)
        except PermissionError:
            return 0, f"{os.getresuid()} {os.getresgid()} {sorted(os.getgroups())}"
        return 2, "root again"

    status, said = within(60, work)
    assert status == 0
    assert said.startswith("(1, 1, 1) (1, 1, 1) ")
    assert "0" not in said.rpartition(")")[2]


@pytest.mark.needs("other users")
def test_root_runs_nothing_that_others_may_write(tmp_path):
    tmp_path.chmod(0o775)
    with pytest.raises(SessionError, match="others may write there"):
        become_owner(tmp_path)
