"""benchio overwrites only its own files, waits for no pipe, and leaves no files if it is ended."""

import os
import re
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.kernel.conftest import MPI_SETTINGS, SOURCES
from tests.waiting import wait_until

# Layers whose files are opened without O_EXCL, for reasons that docs/security.md gives.
SHARED = {"aligned", "aligned-single", "aligned-files", "aligned-random", "strided-posix"}


def test_files_are_created_anew_and_no_link_is_followed(benchio):
    wrapper = ["strace", "-f", "-o", "opens.txt", "-e", "trace=open,openat,creat"]
    layers = [name for name in benchio.layers() if name != "adios"]
    done = benchio.run(
        4, 4, 4, "local", *layers, "unstriped", "--steps=2", "--compute=0", wrapper=wrapper
    )
    assert done.status == 0, done.err
    text = (benchio.cwd / "opens.txt").read_text(encoding="utf-8")
    opens = re.findall(r'"[^"]*unstriped/([a-z0-9-]+?)\d*\.dat", ([A-Z_|]+)', text)
    created = {(layer, flags) for layer, flags in opens if "O_CREAT" in flags}
    assert {layer for layer, _ in created} >= {"proc", "serial", "node", "mpiio", "strided-posix"}
    for layer, flags in created:
        if "netcdf" not in layer:
            assert ("O_NOFOLLOW" if layer in SHARED else "O_EXCL") in flags, (layer, flags)


def test_a_directory_that_others_may_write_to_is_refused_unless_it_is_sticky(benchio, says):
    where = benchio.cwd / "unstriped"
    where.chmod(0o777)
    done = benchio.run(4, 4, 4, "local", "proc", "unstriped", ranks=2)
    assert done.status == 1
    says(done)
    where.chmod(0o1777)
    assert benchio.run(4, 4, 4, "local", "proc", "unstriped").status == 0


@pytest.mark.parametrize("name", ["--result", "--ranks", "ROMIO_HINTS"])
def test_a_pipe_is_not_waited_for(benchio, name):
    os.mkfifo(benchio.cwd / "pipe")
    options = [f"{name}=pipe"] if name.startswith("--") else []
    done = benchio.run(4, 4, 4, "local", "mpiio", "unstriped", *options, env={name: "pipe"})
    assert done.status == 1
    assert "pipe" in done.messages[0]


@pytest.fixture
def in_memory():
    """A directory in memory, because the launcher may kill before a slow disk is done."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        yield Path(name)


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(
            each,
            marks=pytest.mark.fault(
                "kernel",
                f"{each.name} by hand",
                "ended; finished repeats alone have rates; no file",
            ),
        )
        for each in (signal.SIGTERM, signal.SIGINT)
    ],
)
def test_a_signal_leaves_no_file(benchio, in_memory, observed, number):
    where = in_memory
    (benchio.cwd / "unstriped").rmdir()
    (benchio.cwd / "unstriped").symlink_to(where)
    available = benchio.layers()
    layers = ("proc", "serial", "mpiio", "hdf5", "strided-posix", "aligned")
    for layer in layers if number == signal.SIGTERM else layers[:1]:
        if layer not in available:
            continue
        job = subprocess.Popen(
            [
                *("mpirun", "-n", "2", benchio.program, "16", "16", "16", "local", layer),
                *("unstriped", "--repeats=1000000", "--files=3" if layer == "aligned" else "fsync"),
            ],
            cwd=benchio.cwd,
            # Kill late enough for a busy machine, which needs over a second to clean up.
            env={**os.environ, **MPI_SETTINGS, "OMPI_MCA_odls_base_sigkill_timeout": "4"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            wait_until(lambda: any(where.glob("*.dat")))
            job.send_signal(number)
            _, said = job.communicate(timeout=300)
        finally:
            job.kill()
            job.wait()
        assert job.returncode != 0
        # Open MPI leaves its lock files.
        assert list(where.glob("*.dat")) == [], layer
        for path in where.iterdir():
            path.unlink()
    done = benchio.run(16, 16, 16, "local", "proc", "unstriped", "--verify", ranks=2)
    observed(message=said, exit_status=job.returncode, left=[], next_run=done.status == 0)


def test_a_reader_of_its_messages_that_is_gone_leaves_no_file(benchio):
    job = subprocess.Popen(
        # Enough repeats for a file to be there when the signal comes.
        [benchio.program, "512", "512", "64", "local", "proc", "unstriped", "--repeats=1000000"],
        cwd=benchio.cwd,
        env={**os.environ, **MPI_SETTINGS},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with job:
        while "Writing to" not in job.stdout.readline():
            pass
        job.stdout.close()
        assert job.wait(timeout=300) == -signal.SIGPIPE
    assert list((benchio.cwd / "unstriped").iterdir()) == []


@pytest.mark.parametrize("name", ["QUIT", "USR1", "USR2", "XCPU"])
def test_other_signals_that_end_a_process_leave_no_file(benchio, name):
    # Without --seccomp-bpf, with which strace 6.1 sends no signal.
    wrapper = ["strace", "-f", "-o", "/dev/null", "-e", f"inject=fsync:signal={name}:when=1"]
    done = benchio.run(4, 4, 4, "local", "proc", "unstriped", "fsync", wrapper=wrapper)
    assert done.status == 128 + signal.Signals[f"SIG{name}"]
    assert list((benchio.cwd / "unstriped").iterdir()) == []


def test_a_signal_leaves_no_file_of_the_test_whether_one_can_be_created(benchio):
    data = "unstriped/mpiio.dat"
    # Without --seccomp-bpf, with which strace 6.1 sends no signal.
    wrapper = ["strace", "-f", "-o", "/dev/null", "-P", data, "-e", "trace=openat"]
    wrapper += ["-e", "inject=openat:signal=TERM:when=1"]
    done = benchio.run(4, 4, 4, "local", "mpiio", "unstriped", wrapper=wrapper)
    assert done.status == 128 + signal.SIGTERM
    assert not (benchio.cwd / data).exists()


PROGRAM = """
#include "posix_shim.c"
#include <stdio.h>
int main(void)
{
    char name[32];
    mkdir("adios.dat", 0700);
    for (int at = 0; at < 1500; at++) {
        snprintf(name, sizeof name, "adios.dat/data.%d", at);
        close(open(name, O_CREAT | O_WRONLY, 0600));
    }
    benchio_guard("adios.dat", 2);
    return raise(SIGTERM);
}
"""


def test_a_signal_removes_the_directory_of_a_library_without_another_process(tmp_path):
    (tmp_path / "ended.c").write_text(PROGRAM, encoding="utf-8")
    compiler = ["cc", "-std=c11", f"-I{SOURCES / 'io'}", "-o", "ended", "ended.c"]
    subprocess.run(compiler, cwd=tmp_path, check=True)
    trace = ["strace", "-f", "-o", "calls.txt", "-e", "trace=%process,unlinkat,brk"]
    done = subprocess.run([*trace, "./ended"], cwd=tmp_path, check=False)
    assert done.returncode == -signal.SIGTERM
    assert not (tmp_path / "adios.dat").exists()
    handler = (tmp_path / "calls.txt").read_text(encoding="utf-8").partition("SIGTERM")[2]
    assert handler.count("unlinkat") >= 1500
    assert not re.search(r"clone|fork|exec|brk", handler)
