"""Minisites are really started, killed, broken and ended; in the end nothing is left."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from minisite import disks
from minisite.commands import start
from minisite.place import Place, claim
from tests.minisite.sites import ROOT, limits, loop_numbers
from tests.waiting import wait_until

NODES = ["n1", "n2", "n3", "n4"]
TYPES = {"ceph": "fuse.ceph-fuse", "fast": "ext4", "slow": "ext4"}


def answers(site):
    run = site.shell("srun --nodes=4 --ntasks=4 printenv SLURMD_NODENAME")
    return sorted(run.stdout.split()) == NODES


def kill_daemons(site, name):
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if words[0] == name and f"{site.root}/" in " ".join(words):
            os.kill(int(entry.name), signal.SIGKILL)


def test_a_site_that_is_up(running):
    status, said = running.call("status")
    assert status == 0, said
    assert [line.split("up")[0].strip() for line in said.splitlines()] == [
        "munge",
        "slurm",
        "ceph",
        "ceph mount",
        "fast disk",
        "slow disk",
    ]
    assert answers(running)
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    found = {point: kind for _, point, kind, *_ in mounts if point.startswith(f"{running.root}/")}
    assert found == {f"{running.root}/{name}": kind for name, kind in TYPES.items()}


def test_a_second_up_starts_nothing(running):
    before = {path: path.stat().st_ctime_ns for path in (running.root / "log").glob("*.out")}
    status, said = running.call("up")
    assert status == 0
    assert "is already up" in said
    after = {path: path.stat().st_ctime_ns for path in (running.root / "log").glob("*.out")}
    assert before.keys() == after.keys()
    assert answers(running)


def test_files_are_striped_as_their_directory_says(running):
    directory = running.root / "ceph" / "striped"
    directory.mkdir()
    layout = "setfattr -n ceph.dir.layout.stripe_count -v 4"
    shown = running.shell(
        f"{layout} {directory} && echo x >{directory}/file && "
        f"getfattr --only-values -n ceph.file.layout {directory}/file"
    )
    assert "stripe_count=4" in shown.stdout


def test_the_rate_of_the_slow_disk_is_changed(running):
    (number,) = loop_numbers(running) & {limit.split()[0] for limit in limits()}
    status, said = running.call("throttle", "10M")
    assert (status, said) == (0, "slow disk: 10 MiB/s\n")
    assert f"{number} {10 * 1024 * 1024}" in limits() or (
        f"{number} rbps=10485760 wbps=10485760 riops=max wiops=max" in limits()
    )
    status, said = running.call("throttle", "fast")
    assert status == 1
    assert "such as 20M" in said
    assert running.call("throttle") == (0, "slow disk: 10 MiB/s\n")


def test_nothing_is_left_of_a_second_site_with_a_job_running_and_a_shell_inside(running, fresh):
    status, said = fresh.call("up")
    assert status == 0, said
    assert answers(running)
    (fresh.root / "ceph" / "mine").write_text("mine")
    assert not (running.root / "ceph" / "mine").exists()
    numbers = loop_numbers(fresh)
    assert len(numbers) == 2
    job = "srun --nodes=4 sh -c 'echo here >slow/job.$SLURM_PROCID; exec sleep 600'"
    srun = subprocess.Popen(["sh", "-c", f". {fresh.root}/env; cd {fresh.root}; exec {job}"])
    shell = subprocess.Popen(["sleep", "600"], cwd=fresh.root / "fast")
    try:
        wait_until(lambda: len(list((fresh.root / "slow").glob("job.*"))) == 4)
        status, said = fresh.call("down")
        assert status == 0, said
        # The process does not belong to the site, and is named.
        assert f"{shell.pid} (sleep)" in said
        assert shell.poll() is None
    finally:
        shell.kill()
        shell.wait()
        srun.wait()
    wait_until(lambda: fresh.remains() == [])
    assert not {limit for limit in limits() if limit.split()[0] in numbers}
    assert fresh.call("down") == (0, f"The site in {fresh.root} is removed\n")
    status, said = running.call("status")
    assert status == 0, said
    assert answers(running)


@pytest.mark.parametrize("reached", [".iobands-minisite", "slow.device", "spool/osd3/fsid"])
def test_up_killed_on_its_way(fresh, reached):
    with fresh.start("up") as starting:
        wait_until((fresh.root / reached).exists)
        starting.kill()
    status, said = fresh.call("down")
    assert status == 0, said
    assert fresh.remains() == []
    assert fresh.call("status")[0] == 1


def test_up_after_an_up_that_was_killed_and_one_that_was_interrupted(fresh):
    with fresh.start("up") as starting:
        wait_until((fresh.root / "slurm.conf").exists)
        starting.kill()
    (fresh.root / "slurm.conf").unlink()
    with fresh.start("up") as starting:
        wait_until((fresh.root / "slurm.conf").exists)
        starting.terminate()
    assert starting.returncode != 0
    # Only its logs stay.
    assert {path.name for path in fresh.root.iterdir()} <= {"log", ".iobands-minisite"}
    status, said = fresh.call("up")
    assert status == 0, said
    assert answers(fresh)


def test_up_again_after_daemons_died_and_after_the_directory_was_deleted(fresh):
    assert fresh.call("up")[0] == 0
    kill_daemons(fresh, "ceph-osd")
    kill_daemons(fresh, "slurmctld")
    status, said = fresh.call("status")
    assert status == 1
    assert [line.split()[1] for line in said.splitlines() if line.startswith("slurm")] == ["DOWN"]
    status, said = fresh.call("up")
    assert status == 0, said
    assert "slurm" in said
    assert answers(fresh)
    # As `rm -rf` would do, except for the mount points, which it cannot remove.
    shutil.rmtree(fresh.root / "slow", ignore_errors=True)
    shutil.rmtree(fresh.root / "fast", ignore_errors=True)
    shutil.rmtree(fresh.root, ignore_errors=True)
    assert {path.name for path in fresh.root.iterdir()} == {"ceph", "fast", "slow"}
    status, said = fresh.call("down")
    assert status == 0, said
    assert fresh.remains() == []


def test_up_ends_another_site_whose_directory_was_deleted(fresh, running):
    site = Place(fresh.root)
    claim(site)
    site.fast.mkdir()
    site.logs.mkdir()
    disks.begin(site, site.fast_image, site.fast)
    with start(site, "sleep", ["sleep", "60"]):
        shutil.rmtree(fresh.root, ignore_errors=True)
        subprocess.run(["umount", "--lazy", site.fast], check=True)
        assert len(fresh.remains()) == len(["process", "device", "directory"])
        status, said = running.call("up")
        assert status == 0
        assert str(fresh.root) in said
    assert fresh.remains() == []
    assert answers(running)


def test_the_site_of_a_killed_test_is_ended(fresh):
    claim(Place(fresh.root))
    script = (
        "import pathlib, signal, sys; from tests.minisite.sites import ended\n"
        "with ended(pathlib.Path(sys.argv[1])): print(flush=True); signal.pause()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, fresh.root], cwd=ROOT, stdout=subprocess.PIPE
    ) as test:
        test.stdout.readline()
        test.kill()
    wait_until(lambda: not fresh.root.exists())


def test_a_directory_with_something_else_in_it_is_left_alone(fresh):
    fresh.root.mkdir()
    (fresh.root / "settings.json").write_text("{}")
    try:
        for command, why in (
            ("up", "has files of its own; name another directory"),
            ("down", "has files that do not belong to a site, and stays"),
        ):
            status, said = fresh.call(command)
            assert status == 1
            assert why in said
        assert [path.name for path in fresh.root.iterdir()] == ["settings.json"]
    finally:
        shutil.rmtree(fresh.root)


def test_without_root_one_line_says_so(fresh):
    command = [sys.executable, ROOT / "minisite" / "up"]
    run = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command],
        env={"IOBANDS_MINISITE": str(fresh.root), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert run.stderr.count("\n") == 1
    assert "root" in run.stderr
    assert not fresh.root.exists()


def test_without_the_packages_one_line_names_them(fresh):
    status, said = fresh.call("up", PATH="/nowhere")
    assert status == 1
    assert said.count("\n") == 1
    assert "srun" in said
    assert "setup/system-packages minisite" in said
    assert not fresh.root.exists()
