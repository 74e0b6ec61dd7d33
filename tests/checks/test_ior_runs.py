"""IOR and mdtest run by ReFrame, also with corrupted data.

They need `ior` on PATH, and mdtest's tests `mdtest`; elsewhere they are skipped.
"""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.preloaded import preloaded
from tests.site_copy import OTHER_TOOLS, copy_suite
from tests.waiting import wait_until

pytestmark = pytest.mark.machine

MIB = 2**20

needs_ior = pytest.mark.skipif(not shutil.which("ior"), reason="ior is not on PATH")
needs_mdtest = pytest.mark.skipif(not shutil.which("mdtest"), reason="mdtest is not on PATH")


@pytest.fixture
def disk(tmp_path_factory):
    return tmp_path_factory.mktemp("disk")


@pytest.fixture
def site(tmp_path, disk):
    copy = copy_suite(tmp_path, *OTHER_TOOLS)
    copy.add_local_system(
        "here",
        {"disk": {"path": str(disk), "type": "posix", "medium": "disk"}},
        {"nodes": 1, "tasks_per_node": 2, "mib_per_task": 4, "repeats": 2, "files_per_task": 50},
    )
    return copy


def run(site, *arguments, env=None):
    return site.reframe("--system=here", "-r", "--exec-policy=serial", *arguments, env=env)


def with_in_front(directory: Path, program: str, body: str) -> dict[str, str]:
    """Return an environment in which a script replaces `program`, known to it as `$real`."""
    path = directory / program
    path.write_text(f"#!/bin/bash\nreal={shutil.which(program)}\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return {**os.environ, "PATH": f"{directory}:{os.environ['PATH']}"}


def cases(site):
    """Return the test cases of the newest report without the preflight checks."""
    return [case for case in site.test_cases("here") if not case["display_name"].startswith("Env")]


def reason(site):
    (case,) = cases(site)
    return case["fail_reason"]


@needs_ior
def test_each_pattern_and_interface(site, disk):
    done = run(site, "-n", "Ior(FPP|SSF)", "-E", "api in ('posix', 'mpiio')")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [row for row in site.rows("here") if row["tool"] in ("ior", "mdtest")]
    assert {(row["pattern"], row["interface"]) for row in rows} == {
        *(("fpp", "posix"), ("fpp", "mpiio"), ("ssf-independent", "posix"), ("ssf", "mpiio"))
    }
    for row in rows:
        assert (row["tool"], row["fsync"], row["gib"]) == ("ior", "true", str(8 / 1024))
        assert float(row["perf_value"]) > 0
        assert row["tool_version"][0].isdecimal()
        # Of two repeats: 0 means that they are equal, 2 that one of them took no time.
        spreads = dict(item.split("=") for item in row["spread"].split(","))
        assert set(spreads) == {"write_bw", "read_bw"}
        assert all(0 <= float(spread) <= 2 for spread in spreads.values())
    assert not list(disk.iterdir())


@needs_ior
def test_records_of_odd_sizes_with_collective_buffering_off(site):
    done = run(site, "-n", "IorStrided", "-E", "record == 47008 and hints == 'cb-off'")
    if "no evidence" in done.stdout:
        pytest.skip("the MPI library here displays no hints")
    assert done.returncode == 0, done.stdout + done.stderr
    row = site.rows("here")[-1]
    assert row["pattern"] == "strided-47008"
    assert row["hints_in_effect"] == "romio_cb_read=disable,romio_cb_write=disable"
    # 4 MiB hold 89 whole records of 47,008 bytes, for each of two processes
    assert float(row["gib"]) == 2 * 89 * 47008 / 2**30


@needs_ior
def test_an_interface_that_ior_lacks_is_skipped(site):
    has = subprocess.run(["ior", "-h"], capture_output=True, text=True, check=False)
    if "HDF5" in (has.stdout + has.stderr).partition("API for I/O")[2].partition("\n")[0]:
        pytest.skip("ior here has HDF5")
    assert run(site, "-n", "IorSSF", "-E", "api == 'hdf5'").returncode == 0
    (case,) = cases(site)
    assert case["result"] == "skip"
    assert case["skip_reason"] == "not installed: ior was built without HDF5"


#: After the write, process 0 corrupts its data: 4 KiB, or all of it.
SPOIL = """
"$real" "$@"; status=$?
case " $* " in *' -w '*)
    if [ "${{OMPI_COMM_WORLD_RANK:-${{PMI_RANK:-0}}}}" = 0 ]; then
        while [ "$1" != -o ]; do shift; done
        for file in "$2".0*; do
            head -c {size} /dev/zero | dd of="$file" conv=notrunc bs=4096 status=none
        done
    fi ;;
esac
exit $status
"""


@needs_ior
@pytest.mark.parametrize("size", [4096, 4 * MIB])
def test_data_that_is_spoilt_between_write_and_read_fails_the_run(site, tmp_path_factory, size):
    # With 64 transfers of each process corrupted, IOR 4 counts 128 errors twice: exit status 0.
    env = with_in_front(tmp_path_factory.mktemp("bin"), "ior", SPOIL.format(size=size))
    chosen = ("-n", "IorFPP", "-E", "api == 'posix'", "-S", "IorFPP.transfer=65536")
    assert run(site, *chosen, env=env).returncode == 1
    assert "verification, repeat 1: incorrect data on read" in reason(site)
    assert {row["perf_value"] for row in site.rows("here")} == {"null"}


@needs_ior
def test_a_write_whose_fsync_fails_fails_the_run(site, tmp_path_factory):
    directory = tmp_path_factory.mktemp("bin")
    library = preloaded("no_fsync", directory)["LD_PRELOAD"]
    body = f'LD_PRELOAD={library} exec "$real" "$@"'
    env = with_in_front(directory, "ior", body)
    assert run(site, "-n", "IorFPP", "-E", "api == 'posix'", env=env).returncode == 1
    assert "a failed call was measured: fsync(" in reason(site)
    assert {row["perf_value"] for row in site.rows("here")} == {"null"}


@needs_ior
def test_a_verification_that_cannot_fail_fails_the_run(site, tmp_path_factory):
    body = 'exec "$real" $(printf "%s\\n" "$@" | grep -vx -- -R)'
    env = with_in_front(tmp_path_factory.mktemp("bin"), "ior", body)
    assert run(site, "-n", "IorFPP", "-E", "api == 'posix'", env=env).returncode == 1
    assert "verification: proves nothing" in reason(site)


@needs_ior
@pytest.mark.parametrize("launch", ["ior-verify-1", "ior-control-2"])
def test_a_verification_that_is_asked_to_end_is_the_last_launch(site, tmp_path_factory, launch):
    # As when Slurm signals only the processes, and not the script, near the time limit.
    body = f'case "$*" in *{launch}.json*) exit 143 ;; esac; exec "$real" "$@"'
    env = with_in_front(tmp_path_factory.mktemp("bin"), "ior", body)
    assert run(site, "-n", "IorFPP", "-E", "api == 'posix'", env=env).returncode == 1
    assert "exit status 143 (asked to end" in reason(site)


@needs_ior
def test_a_stonewall_bounds_the_time(site):
    # Enough that a second is not enough for it, were it written to its end.
    chosen = ("-S", "IorFPP.block=17179869184", "-S", "IorFPP.stonewall_seconds=1")
    done = run(site, "-n", "IorFPP", "-E", "api == 'posix'", *chosen, "-S", "IorFPP.repeats=1")
    assert done.returncode == 0 or "GiB are free" in done.stdout, done.stdout + done.stderr
    if done.returncode == 0:
        assert float(site.rows("here")[-1]["perf_value"]) > 0


@needs_mdtest
def test_each_pattern_of_mdtest(site, disk):
    done = run(site, "-n", "Mdtest", "-S", "Mdtest.repeats=1")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [row for row in site.rows("here") if row["tool"] in ("ior", "mdtest")]
    variables = {"create_rate", "stat_rate", "read_rate", "remove_rate"}
    verified = {f"metadata-{name}" for name in ("hard", "sized")}
    for pattern in {row["pattern"] for row in rows}:
        of_it = [row for row in rows if row["pattern"] == pattern]
        assert {row["perf_var"] for row in of_it} == variables
        assert all(float(row["perf_value"]) > 0 and row["perf_unit"] == "1/s" for row in of_it)
    # mdtest 3.3 does not verify the files of all processes, and those that must are skipped
    skipped = {case["display_name"] for case in cases(site) if case["result"] == "skip"}
    patterns = {"metadata-easy", "metadata-shared", *(() if skipped else verified)}
    assert {row["pattern"] for row in rows} == patterns
    # 50 files of each of two processes, of 3901 bytes or none
    gib = {row["pattern"]: float(row["gib"]) for row in rows}
    assert gib == {name: 100 * 3901 / 2**30 if name in verified else 0 for name in patterns}
    assert not list(disk.iterdir())


@needs_mdtest
def test_a_control_that_is_asked_to_end_is_the_last_launch(site, tmp_path_factory):
    directory = tmp_path_factory.mktemp("bin")
    # Of two repeats, the third read is the one of a spoilt file; each has two processes.
    body = f'''case " $* " in *" -X "*) echo >>{directory}/reads ;; esac
case "$(wc -l <{directory}/reads) $*" in [56]" "*" -X "*) exit 143 ;; esac
exec "$real" "$@"'''
    env = with_in_front(directory, "mdtest", body)
    (directory / "reads").touch()
    assert run(site, "-n", "Mdtest", "-E", "difficulty == 'hard'", env=env).returncode == 1
    assert "exit status 143 (asked to end" in reason(site)


@needs_mdtest
def test_a_tree_is_removed_whatever_happens(site, disk):
    session = site.begin_reframe(
        *("--system=here", "-r", "--exec-policy=serial", "-n", "Mdtest"),
        *("-E", "difficulty == 'easy'", "-S", "Mdtest.repeats=100000"),
    )
    try:
        wait_until(lambda: next(disk.glob("iobands-*/data/tree/**/file.*"), None))
        session.send_signal(signal.SIGTERM)
        session.communicate(timeout=300)
    finally:
        session.kill()
        session.wait()
    wait_until(lambda: not list(disk.iterdir()))


def test_what_is_not_installed_is_skipped_with_one_line(site, tmp_path_factory):
    # A PATH with everything that a job needs, except these programs.
    bare = tmp_path_factory.mktemp("bin")
    for directory in os.environ["PATH"].split(":"):
        for program in Path(directory).glob("*") if Path(directory).is_dir() else ():
            link = bare / program.name
            if program.name not in ("ior", "mdtest", "io500.sh") and not link.is_symlink():
                link.symlink_to(program)
    done = run(site, "-n", "IorFPP|Mdtest|Io500", env={**os.environ, "PATH": str(bare)})
    assert done.returncode == 0, done.stdout + done.stderr
    reasons = {case["display_name"].split()[0]: case["skip_reason"] for case in cases(site)}
    assert {case["result"] for case in cases(site)} == {"skip"}
    for check, program in {"IorFPP": "ior", "Mdtest": "mdtest", "Io500": "io500.sh"}.items():
        assert reasons[check].startswith(f"not installed: {program}: ")
        assert "\n" not in reasons[check]
