"""The guard of a job script that will make many files, run by bash on what df says."""

import os
import subprocess

import pytest

from checks.mixins.run_directory import require_inodes

# As `df -Pi` of GNU coreutils 9.1 shows them: CephFS, Btrfs, tmpfs.
HEADER = "Filesystem       Inodes  IUsed    IFree IUse% Mounted on\n"
CEPH = "ceph-fuse             1      -        -     - /ceph\n"
BTRFS = "/dev/vdb              0      0        0     - /btrfs\n"
TMPFS = "tmpfs              4000     13     3987    1% /dev/shm\n"


@pytest.mark.parametrize(
    ("line", "files", "said"),
    [
        (CEPH, 4000, ""),
        (BTRFS, 4000, ""),
        (TMPFS, 3987, ""),
        (TMPFS, 3988, "iobands: /scratch: 3987 inodes are free, this run needs 3988\n"),
    ],
)
def test_only_a_number_of_free_inodes_can_be_too_small(tmp_path, line, files, said):
    df = tmp_path / "df"
    df.write_text(f"#!/bin/sh\nprintf '%s' '{HEADER}{line}'\n", encoding="utf-8")
    df.chmod(0o755)
    script = ["file_system=/scratch run_directory=/scratch/run", *require_inodes(files), "echo on"]
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("" if said else "on\n", said)
    assert done.returncode == bool(said)
