"""A job script's handling of its run directory, run by bash: space for its files, and removal."""

import errno
import os
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from checks.base.covariates import Gathered, measure
from checks.base.job import when_submitted
from iobands.measure.processes import Process
from iobands.measure.run_directories import new_note, read_leftovers, sweep
from tests.mounts import mounted
from tests.site_copy import ROOT
from tests.waiting import wait_until

SOURCE = f"source {ROOT / 'checks' / 'base' / 'job.sh'}"

# As `df --output=itotal,iavail` of GNU coreutils 9.1 shows them: CephFS, Btrfs, tmpfs.
HEADER = "Inodes    IFree\n"
CEPH = "     1        -\n"
BTRFS = "     0        0\n"
TMPFS = "  4000     3987\n"


@pytest.mark.parametrize(
    ("line", "files", "said"),
    [
        (CEPH, 4000, ""),
        (BTRFS, 4000, ""),
        (TMPFS, 3987, ""),
        (TMPFS, 3988, "iobands: /scratch: 3987 inodes are free; this run needs 3988\n"),
    ],
)
def test_only_a_number_of_free_inodes_can_be_too_small(tmp_path, line, files, said):
    df = tmp_path / "df"
    df.write_text(f"#!/bin/sh\nprintf '%s' '{HEADER}{line}'\n", encoding="utf-8")
    df.chmod(0o755)
    names = "file_system=/scratch run_directory=/scratch/run"
    script = [SOURCE, names, f"require_inodes {files}", "echo on"]
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("" if said else "on\n", said)
    assert done.returncode == bool(said)


@pytest.mark.parametrize(
    ("needed", "said"),
    [
        ("0.00390625", ""),
        ("1.03", "0.00391 GiB are free; this run needs 1.03 GiB: it writes 0.03, the rest must"),
        ("97658.2290234375", "0.00391 GiB are free; this run needs 97658 GiB: it writes 0.03"),
    ],
)
def test_free_space_is_in_the_unit_of_what_is_needed(tmp_path, needed, said):
    # as job.sh asks df: 4096 KiB are 4096 / 2^20 = 0.00390625 GiB
    (tmp_path / "df.txt").write_text("1K-blocks Used Avail Use%\n8192 4096 4096  50%\n", "utf-8")
    script = [SOURCE, "file_system=/scratch", f"require_space {needed} 0.03", "echo on"]
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == ("" if said else "on\n")
    assert done.stderr.startswith(f"iobands: /scratch: {said}" if said else "")
    assert bool(done.stderr) == bool(said)


def made(directory):
    """Return the lines that make a run directory, which is removed at the end."""
    return f"noted_directory=$(make_marked {directory})", "remove_at_the_end"


@pytest.mark.fault(
    "directories",
    "somebody makes a noted directory first",
    "another name; removed, also by the sweep; theirs stays, and is named",
)
@pytest.mark.needs("other users")
def test_another_name_is_drawn_where_somebody_was_faster(tmp_path, observed):
    disk, notes = tmp_path / "disk", tmp_path / "perflogs" / "here" / "leftovers"
    disk.mkdir()
    process = replace(Process.this(), boot="00000000-0000-0000-0000-000000000000")
    note = replace(new_note(disk, "A", "local", None), process=process, job="1", script=process)
    note.write(notes)
    assert notes.stat().st_mode & 0o777 == 0o700
    note.path.mkdir()
    os.chown(note.path, 1, 1)
    (tmp_path / "run_directory.txt").write_text(f"{note.path}\n")
    script = [SOURCE, f"file_system={disk}", "make_run_directory", 'ls -d "$run_directory"']
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    other, below = os.path.split(done.stdout.strip())
    assert (other[:-10], below) == (f"{note.path}.", "data")
    wait_until(lambda: list(disk.iterdir()) == [note.path])
    # As after a job that was killed together with its guard.
    Path(other, "data").mkdir(parents=True)
    Path(other, f".{Path(other).name}").touch()
    (outcome,) = sweep(notes, {disk: ()})
    assert (outcome.state, list(disk.iterdir())) == ("stays", [note.path])
    (left,) = read_leftovers(tmp_path / "perflogs", None)
    assert left.why.startswith("it is not a directory of ")
    note.path.rmdir()
    sweep(notes, {disk: ()})
    observed(
        message=f"{left.path}: {left.why}",
        exit_status=1,  # the status of `iobands status` for a left-over
        left=[],
        next_run=list(notes.iterdir()) == [],
    )


@pytest.mark.needs("mounts")
def test_a_source_with_blanks_is_no_figure(tmp_path):
    note = new_note(tmp_path / "disk", "BenchioFPP", "local", None)
    (tmp_path / "run_directory.txt").write_text(f"{note.path}\n")
    ask = [f"file_system={note.path.parent}", "make_run_directory"]
    ask += ["require_space 0.004 0", "require_inodes 1000"]
    script = "\n".join([SOURCE, *ask])
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=4m,nr_inodes=99", "my 7 8 9% share"):
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        wait_until(lambda: not list(note.path.parent.iterdir()))
    # 4 MiB are 0.00390625 GiB, and a directory takes no pages there
    assert "0.00391 GiB are free; this run needs 0.004 GiB" in done.stderr
    df = (tmp_path / "df.txt").read_text("utf-8")
    assert measure("fullness_percent", Gathered(1, df=df)) == 0


def test_notes_are_hidden_from_all_but_a_group_that_measures(tmp_path):
    system = tmp_path / "perflogs" / "here"
    system.mkdir(parents=True)
    system.chmod(0o2775)
    notes = system / "leftovers"
    new_note(tmp_path, "A", "local", None).write(notes)
    assert notes.stat().st_mode & 0o007 == 0
    assert notes.stat().st_mode & 0o050 == 0o050
    system.chmod(0o755)
    new_note(tmp_path, "A", "local", None).write(notes)
    assert notes.stat().st_mode & 0o777 == 0o700


def test_a_directory_without_the_mark_is_not_removed(tmp_path):
    results = tmp_path / "results"
    results.mkdir()
    (results / "paper.dat").touch()
    directory = tmp_path / "run"
    taken = f"mv {directory} {tmp_path}/away && mv {results} {directory}"
    for lines in ([*made(directory), taken], ["remove_directory ''"]):
        subprocess.run(["bash", "-c", "\n".join([SOURCE, *lines])], cwd=tmp_path, check=False)
    time.sleep(0.5)  # for the guard
    assert (directory / "paper.dat").exists()


@pytest.mark.parametrize("whom", ["group", "script and then its program"])
@pytest.mark.parametrize("refuses", ["nothing", "guard.fifo"])
def test_a_script_that_is_killed_leaves_nothing(tmp_path, monkeypatch, whom, refuses):
    # As on a stage directory whose file system has no pipes.
    (tmp_path / "bin").mkdir()
    pipes, others = tmp_path / "bin" / "mkfifo", tmp_path / "tmp"
    pipes.write_text(f'#!/bin/sh\ncase "$*" in *{refuses}) exit 1 ;; esac\n')
    with pipes.open("a") as script:
        script.write(f'exec {shutil.which("mkfifo")} "$@"\n')
    pipes.chmod(0o755)
    others.mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(others))
    directory = tmp_path / "run"
    # As a program that does not react to signals, because its file system is slow.
    program = "(trap '' TERM; echo $BASHPID > $noted_directory/pid; exec sleep 1000)"
    script = [SOURCE, *made(directory), program, "echo never"]
    job = subprocess.Popen(["bash", "-c", "\n".join(script)], cwd=tmp_path, start_new_session=True)
    pid = directory / "pid"
    try:
        wait_until(lambda: pid.exists() and pid.read_text())
        # the process that removes the directory reads its pipe, and has removed that
        wait_until(lambda: not any(path.is_fifo() for path in tmp_path.rglob("*")))
        if whom == "group":
            os.killpg(job.pid, signal.SIGTERM)
        else:
            job.kill()
            job.wait()
            assert pid.exists()  # nothing is removed while a program runs
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    wait_until(lambda: not directory.exists())
    assert list(others.iterdir()) == []


@pytest.mark.needs("mount namespaces")
def test_without_dev_fd_the_directory_is_there_until_the_end(tmp_path):
    directory = tmp_path / "run"
    hide = "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3"
    script = [SOURCE, *made(directory), "sleep 0.5", "ls -d run"]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f'{hide} && exec bash -c "$1"', "sh", "\n".join(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("run\n", "")
    assert not directory.exists()


def test_a_job_that_cannot_be_noted_is_cancelled():
    said = []
    job = SimpleNamespace(
        submit=lambda: said.append("submitted"), cancel=lambda: said.append("cancelled")
    )

    def write_a_note():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    when_submitted(job, write_a_note)
    with pytest.raises(OSError, match="No space left"):
        job.submit()
    assert said == ["submitted", "cancelled"]
