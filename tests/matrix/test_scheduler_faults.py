"""Faults of the scheduler while `iobands run` measures, on a real Slurm."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from iobands.measure.lock import read_holder
from iobands.measure.processes import processes_of
from minisite.commands import environment
from minisite.place import Place
from tests.fault_table import Observed
from tests.left_behind import Ended
from tests.matrix.conftest import Suite
from tests.matrix.test_site_faults import job_of

pytestmark = pytest.mark.xdist_group("unfit minisite")

#: One small check on the slow disk, without `-n`, which would prevent a second attempt.
CHECK = (
    *("run", "--system", "minisite", "--tag", "full", "--", "-p", "openmpi-ucx"),
    *("-E", 'file_system == "slow" and scale == "small" and pattern == "fpp"'),
)
SLOWLY, QUICKLY = "1M", "20M"


def begun(suite: Suite) -> tuple[subprocess.Popen[str], str]:
    """Start a session whose job writes slowly; return it and the number of the job."""
    suite.site.throttle(SLOWLY)
    child = suite.copy.begin_iobands(*CHECK, env=suite.site.env)
    suite.begun.append(child)
    return child, job_of(suite)


def ended(suite: Suite, child: subprocess.Popen[str]) -> Ended:
    suite.site.throttle(QUICKLY)
    return as_ended(suite, child.returncode, *child.communicate())


def as_ended(suite: Suite, status: int, out: str, err: str) -> Ended:
    done = Ended((), status, out, err)
    done.left = frozenset(suite.site.left_behind())
    return done


def running(suite: Suite) -> list[str]:
    """Return the jobs that run."""
    return suite.site.call("squeue --noheader --states=R --format=%i").split()


def status(suite: Suite) -> dict:
    return json.loads(suite.copy.iobands("status", "--format", "json", env=suite.site.env).stdout)


def runs(suite: Suite) -> int:
    """Return the number of samples of the check."""
    return max((each["status"]["runs"] for each in status(suite)["series"]), default=0)


@contextmanager
def account_required(suite: Suite) -> Iterator[None]:
    """Make Slurm refuse jobs without the account z19, as on sites with accounting."""
    conf = suite.site.root / "slurm.conf"
    before = conf.read_text()
    conf.write_text(f"{before}EnforcePartLimits=ALL\n")
    suite.site.call("scontrol reconfigure")
    suite.site.call("scontrol update partition=compute AllowAccounts=z19")
    try:
        yield
    finally:
        conf.write_text(before)
        suite.site.call("scontrol reconfigure")
        suite.site.call("scontrol update partition=compute AllowAccounts=ALL")


def restart_controller(suite: Suite) -> None:
    """End slurmctld, which saves its jobs, and start it again some seconds later."""
    place = Place(suite.site.root)
    os.kill(int((place.run / "slurmctld.pid").read_text()), signal.SIGTERM)
    time.sleep(5)
    script = f"setsid slurmctld -D -i -f {place.root}/slurm.conf >/dev/null 2>&1 &"
    subprocess.run(["sh", "-c", script], env=environment(place), check=True)


@pytest.mark.fault("session", "Slurm refuses the account", "unknown; its words, what to set")
@pytest.mark.fault("session", "`scancel` of its job", "no rate; who ended it")
@pytest.mark.fault("session", "a node goes down below its job", "run once more; the sample says so")
@pytest.mark.fault("session", "slurmctld restarts below its job", "waited for; the sample is right")
@pytest.mark.fault("session", "SIGKILL with a job in Slurm", "the next one cancels it and says so")
def test_faults_of_slurm(  # noqa: PLR0915  one fault after the other
    suite: Suite, observed: Observed
) -> None:
    site = suite.site
    suite.change_site_file('"mib_per_task": 4,', '"mib_per_task": 4, "repeats": 3,')
    for path in ("cases", "tools/ior", "tools/mdtest", "tools/io500"):  # fewer are sooner loaded
        shutil.rmtree(suite.copy.root / "checks" / path)
    seen: dict[str, Ended] = {}

    with account_required(suite):
        done = suite.copy.iobands(*CHECK, env={**site.env, "IOBANDS_ACCOUNT": "wrong"})
    refused = as_ended(suite, done.returncode, done.stdout, done.stderr)
    assert refused.returncode == 3, refused.stderr
    why = {each["severity"]: each["reason"] for each in status(suite)["alerts"]}["unfit"]
    assert "Invalid account" in why
    assert "set account in the site file, or IOBANDS_ACCOUNT" in why
    assert (refused.returncode, runs(suite)) == (3, 0)
    refused.stderr = why
    seen["Slurm refuses the account"] = refused

    child, job = begun(suite)
    site.call(f"scancel {job}")
    child.wait()
    cancelled = ended(suite, child)
    (alert,) = status(suite)["alerts"]
    # Slurm says it of the job and of its step, in either order
    assert re.search(rf"(JOB {job}|STEP {job}\.\d+) ON n1 CANCELLED AT", alert["reason"])
    assert (cancelled.returncode, runs(suite)) == (3, 0)
    cancelled.stderr = alert["reason"]
    seen["`scancel` of its job"] = cancelled

    child, job = begun(suite)
    site.call("scontrol update nodename=n1 state=down reason=test")
    site.throttle(QUICKLY)
    child.wait()
    again = ended(suite, child)
    assert (again.returncode, runs(suite)) == (0, 1), again.stderr
    assert {row["attempt"] for row in suite.rows if row["perf_value"] != "null"} == {"2"}
    seen["a node goes down below its job"] = again

    child, job = begun(suite)
    restart_controller(suite)
    site.throttle(QUICKLY)
    child.wait()
    waited = ended(suite, child)
    assert (waited.returncode, runs(suite)) == (0, 2), waited.stdout + waited.stderr
    seen["slurmctld restarts below its job"] = waited

    child, job = begun(suite)
    holder = read_holder(suite.copy.root / "perflogs")
    assert holder is not None
    reframe = {each.pid for each in holder.processes} - {child.pid}
    for pid in reframe:  # which would cancel it
        os.kill(pid, signal.SIGSTOP)
    child.kill()
    child.wait()
    for pid in reframe:
        os.kill(pid, signal.SIGKILL)
    killed = as_ended(suite, child.returncode, *child.communicate())
    assert job in running(suite)
    child = suite.copy.begin_iobands(*CHECK, env=site.env)
    suite.begun.append(child)
    while job in running(suite) and child.poll() is None:  # it writes too slowly to end by itself
        time.sleep(1)
    site.throttle(QUICKLY)
    child.wait()
    last = ended(suite, child)
    said = last.stderr.splitlines()[-1]
    assert "its jobs were cancelled" in said
    assert said.endswith(f" {job}")
    assert (last.returncode, runs(suite)) == (0, 3)
    assert processes_of(holder.session) == []
    killed.stderr = f"{said.rpartition(':')[0]}: JOBS (by the next run)"
    seen["SIGKILL with a job in Slurm"] = killed

    for fault, each in seen.items():
        observed(fault, **each.cells(), next_run=last.returncode == 0)


#: Takes the lock under a given host name, prints that it has it, and releases it on request.
HOLD = """\
import socket, sys
from pathlib import Path
from iobands.measure.lock import acquire, new_holder, release
from iobands.measure import SessionError
socket.sethostname(sys.argv[2])
holder = new_holder("iobands run")
try:
    acquire(Path(sys.argv[1]), holder)
except SessionError as error:
    print(error)
else:
    print("held", flush=True)
    sys.stdin.read()
    release(Path(sys.argv[1]), holder.session)
"""


def test_the_lock_holds_for_two_hosts_on_cephfs(suite: Suite, tmp_path: Path) -> None:
    """Each host has its own name, mount and client."""
    site = suite.site
    mine, other = site.root / "ceph" / "perflogs", tmp_path / "mount"
    mine.mkdir()
    other.mkdir()
    site.call(f"ceph-fuse -c {site.root}/ceph.conf {other}")
    try:
        places = {f"host{n}": (mine, other / "perflogs")[n % 2] for n in range(6)}
        contenders = [hold(place, host) for host, place in places.items()]
        said = [each.stdout.readline() for each in contenders if each.stdout]
        assert said.count("held\n") == 1
        winner = list(places)[said.index("held\n")]
        assert all(f"on {winner}, since" in each for each in said if each != "held\n")
        for each in contenders:
            each.communicate()
        # once released, the other host can take it
        with hold(other / "perflogs", "host9") as late:
            assert late.communicate()[0] == "held\n"
        assert list(mine.iterdir()) == []
    finally:
        subprocess.run(["umount", other], check=False)
        mine.rmdir()


def hold(place: Path, host: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["unshare", "--uts", sys.executable, "-c", HOLD, place, host],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
