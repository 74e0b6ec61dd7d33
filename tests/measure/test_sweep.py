"""Orphans are removed, and nothing else ever is."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from iobands.measure.processes import Process, cluster_of
from iobands.measure.run_directories import (
    Note,
    Stays,
    clean_up,
    new_note,
    read_leftovers,
    read_notes,
    sweep,
)

#: A process of this host before its last restart.
GONE = replace(Process.this(), boot="00000000-0000-0000-0000-000000000000")

needs_mounts = pytest.mark.needs("mounts")


@pytest.fixture
def disk(tmp_path):
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


@pytest.fixture
def notes(tmp_path):
    return tmp_path / "perflogs" / "here" / "leftovers"


def noted(notes: Path, disk: Path, **changes) -> Note:
    """Make a run directory, with its note, of a local job on a machine that has since restarted."""
    changes = {"process": GONE, "job": "1", "script": GONE, **changes}
    note = replace(new_note(disk, "BenchioFPP", "local", None), **changes)
    note.write(notes)
    (note.path / "deep").mkdir(parents=True)
    (note.path / "deep" / "proc000000.dat").write_bytes(b"x" * 4096)
    (note.path / f".{note.name}").touch()
    return note


def states(outcomes):
    return {outcome.note.name: outcome.state for outcome in outcomes}


def test_orphans_of_a_machine_that_restarted_go(disk, notes):
    first, second = noted(notes, disk), noted(notes, disk)
    other = disk / "iobands-BenchioSSF-abcdefghij"  # without a note
    other.mkdir()
    assert states(sweep(notes, {disk: ()}, dry_run=True)) == {
        first.name: "stays",
        second.name: "stays",
    }
    assert first.path.exists()
    assert states(sweep(notes, {disk: ()})) == {first.name: "gone", second.name: "gone"}
    assert list(disk.iterdir()) == [other]
    assert list(notes.iterdir()) == []


def test_a_directory_of_a_live_session_or_job_stays_unmentioned(disk, notes, tmp_path):
    of_session = noted(notes, disk, process=Process.this())
    child = subprocess.Popen(["sleep", "100"])
    try:
        of_job = noted(notes, disk, script=Process.of(child.pid))
        assert sweep(notes, {disk: ()}) == []
        assert of_session.path.exists()
        assert of_job.path.exists()
    finally:
        child.kill()
        child.wait()
    assert states(sweep(notes, {disk: ()})) == {of_job.name: "gone"}
    assert read_leftovers(tmp_path / "perflogs", None) == ()
    # Its own session knows that the run is over.
    assert states(sweep(notes, {disk: ()}, own={of_session.name})) == {of_session.name: "gone"}


def test_processes_that_outlive_the_session_and_its_job_are_named(disk, notes, tmp_path):
    ended = subprocess.Popen(["true"])
    session = Process.of(ended.pid)
    ended.wait()
    child = subprocess.Popen(["sleep", "100"], start_new_session=True)
    try:
        note = noted(notes, disk, process=session, script=Process.of(child.pid))
        assert states(sweep(notes, {disk: ()})) == {note.name: "stays"}
        (left,) = read_leftovers(tmp_path / "perflogs", None)
        assert left.why == f"its job does not end: pid {child.pid}"
    finally:
        child.kill()
        child.wait()
    assert states(sweep(notes, {disk: ()})) == {note.name: "gone"}


def test_a_later_process_group_of_the_same_number_is_a_stranger(disk, notes):
    child = subprocess.Popen(["sleep", "100"], start_new_session=True)
    try:
        script = Process.of(child.pid)
        assert script.group() == [child.pid]
        earlier = noted(notes, disk, script=replace(script, started=script.started - 1))
        assert states(sweep(notes, {disk: ()})) == {earlier.name: "gone"}
    finally:
        child.kill()
        child.wait()


SQUEUE = """\
#!/bin/sh
case "$*" in
*=11) echo RUNNING ;;
*=12) echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1 ;;
*) echo "<html>" ;;
esac
"""


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Fake Slurm programs of the cluster `here`: job 11 runs, 12 is over, others give nonsense."""
    for name, script in (("squeue", SQUEUE), ("scontrol", "#!/bin/sh\necho ClusterName = here\n")):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(script, encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    cluster_of.cache_clear()
    yield
    cluster_of.cache_clear()


@pytest.mark.fault(
    "directories",
    "its job is of another cluster, or its scheduler talks nonsense",
    "stays, and is named with its size and why",
)
def test_the_scheduler_that_has_the_job_is_asked(disk, notes, tmp_path, slurm, observed):
    elsewhere = replace(GONE, host="login9")

    def of_job(job, cluster="here", scheduler="slurm", **changes):
        changes = {"job": job, "cluster": cluster, "scheduler": scheduler, **changes}
        return noted(notes, disk, script=None, **changes)

    running, ended = of_job("11"), of_job("12", process=elsewhere)
    older = of_job("12", cluster=None)  # submitted here
    stay = {
        of_job("12", "there"): "its job 12 is of the cluster there: run iobands clean there",
        of_job("12", None, process=elsewhere): "its job 12 is of login9: run iobands clean there",
        of_job("13"): "the scheduler (slurm) does not say whether its job runs",
        of_job("1", "lsf1", "lsf"): "its job 1 is of the cluster lsf1: run iobands clean there",
        of_job(None): "its job is unknown; if no job uses it, remove it by hand",
    }
    outcomes = states(sweep(notes, {disk: ()}))
    assert outcomes == {
        **{each.name: "gone" for each in (ended, older)},
        **{each.name: "stays" for each in stay},
    }
    assert {*disk.iterdir()} == {running.path, *(each.path for each in stay)}
    left = read_leftovers(tmp_path / "perflogs", "here")
    assert {each.path: each.why for each in left} == {note.path: why for note, why in stay.items()}
    assert all(each.bytes > 4096 for each in left)
    for note in stay:
        replace(note, job="12", cluster="here", scheduler="slurm").write(notes)
    again = states(sweep(notes, {disk: ()}))
    observed(
        message=next(iter(stay.values())),
        exit_status=1,
        left=[note.path for note in stay],
        next_run=set(again.values()) == {"gone"},
    )


def test_a_file_system_that_is_away_keeps_its_notes(disk, notes):
    note = noted(notes, disk)
    other = noted(notes, disk, mounted="lustre /nowhere")
    moved = disk.rename(disk.with_name("moved"))
    assert states(sweep(notes, {disk: ()})) == {note.name: "away", other.name: "away"}
    disk.mkdir()  # a plain directory at the mount point
    assert states(sweep(notes, {disk: ("lustre",)})) == {note.name: "away", other.name: "away"}
    disk.rmdir()
    moved.rename(disk)
    assert states(sweep(notes, {disk: ()})) == {note.name: "gone", other.name: "away"}
    assert other.path.exists()
    ((_, still),) = read_notes(notes)
    assert "it was made on lustre /nowhere" in still.stays.why
    # a job's probe can see it, and removes it there
    assert still.stays.why.endswith("; left to the probe of the next session")


def test_nothing_but_a_directory_of_ours_below_a_configured_root_goes(disk, notes):
    precious = disk / "precious"
    linked, outside = noted(notes, disk), noted(notes, disk)
    linked.path.rename(precious)
    linked.path.symlink_to(precious)
    outcomes = sweep(notes, {disk.parent: ()})
    assert set(states(outcomes).values()) == {"away"}
    outcomes = sweep(notes, {disk: ()})
    assert states(outcomes) == {linked.name: "stays", outside.name: "gone"}
    assert (precious / "deep" / "proc000000.dat").exists()


@pytest.mark.fault(
    "directories",
    "another directory of ours was renamed to the noted name",
    "it stays, and is named",
)
def test_a_directory_without_the_mark_stays(disk, notes, tmp_path, observed):
    note, empty = noted(notes, disk), noted(notes, disk)
    note.path.rename(disk / "moved")
    results = disk / "results"
    results.mkdir()
    (results / "paper.dat").write_bytes(b"x")
    results.rename(note.path)
    # as after a job that was killed between two calls
    empty.path.rename(disk / "other")
    empty.path.mkdir()
    found = {each.note.name: each for each in sweep(notes, {disk: ()})}
    assert (found[note.name].state, found[empty.name].state) == ("stays", "gone")
    assert (note.path / "paper.dat").exists()
    (left,) = read_leftovers(tmp_path / "perflogs", None)
    assert left.why == "it has no mark of a run; if a run made it, remove it by hand"
    note.path.rename(results)
    (disk / "moved").rename(note.path)
    again = sweep(notes, {disk: ()})
    observed(
        message=f"{left.path}: {left.why}",
        exit_status=1,  # the status of `iobands status` for a left-over
        left=[],
        next_run=states(again) == {note.name: "gone"},
    )


@needs_mounts
def test_what_cannot_be_removed_is_left_with_its_size_and_reason(disk, notes, tmp_path):
    note, mounted = noted(notes, disk), noted(notes, disk)
    stuck = note.path / "deep" / "proc000000.dat"
    subprocess.run(["mount", "--bind", mounted.path / "deep", mounted.path / "deep"], check=True)
    immutable = subprocess.run(["chattr", "+i", stuck], check=False, capture_output=True)
    try:
        found = states(sweep(notes, {disk: ()}))
        assert (mounted.path / "deep" / "proc000000.dat").exists()
        assert found[mounted.name] == "stays"
        if immutable.returncode == 0:
            left = {each.path: each for each in read_leftovers(tmp_path / "perflogs", None)}
            assert "Operation not permitted" in left[note.path].why
            assert left[note.path].bytes >= 4096
    finally:
        subprocess.run(["umount", mounted.path / "deep"], check=True)
        subprocess.run(["chattr", "-i", stuck], check=False, capture_output=True)
    sweep(notes, {disk: ()})
    assert list(disk.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe not UTF-8",
        b"/scratch/iobands-BenchioFPP-0123456789\n",
        b'{"schema": 1, "path": "/"}',
        b"[" * 5000,
        b"null",
    ],
)
def test_a_damaged_note_stops_nothing_and_is_named(disk, notes, tmp_path, content):
    note = noted(notes, disk)
    damaged = notes / "iobands-BenchioFPP-0123456789"
    damaged.write_bytes(content)
    assert states(sweep(notes, {disk: ()})) == {note.name: "gone"}
    (left,) = read_leftovers(tmp_path / "perflogs", None)
    assert left.path == damaged


@pytest.mark.parametrize("path", ["/scratch/precious", "iobands-A-0123456789", "/a/../x"])
def test_a_note_cannot_name_anything_else(notes, disk, path):
    note = noted(notes, disk)
    text = (notes / note.name).read_text(encoding="utf-8").replace(str(note.path), path)
    (notes / note.name).write_text(text, encoding="utf-8")
    assert [note for _, note in read_notes(notes)] == [None]


def test_a_note_is_read_as_it_was_written(notes, disk):
    note = noted(
        notes,
        disk,
        session="20261121T053000Z-1",
        mounted="lustre /scratch",
        stays=Stays("busy", "2026-11-21T05:30:00+00:00", 17),
    )
    ((path, read),) = read_notes(notes)
    assert (path.name, read) == (note.name, note)


def test_of_a_partition_the_notes_of_its_system_are_swept(notes, disk, tmp_path):
    noted(notes, disk)
    site = SimpleNamespace(
        partitions={"local": {"filesystems": {"disk": {"path": str(disk), "type": "posix"}}}}
    )
    assert [each.state for each in clean_up(tmp_path, "here:local", lambda _name: site)] == ["gone"]


def test_a_note_is_on_disk_before_its_job_is_submitted(disk, notes, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
    note = noted(notes, disk)
    assert synced[0] == (notes / note.name).stat().st_size
