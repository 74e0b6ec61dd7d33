"""From real times of ranks to the alert: runs on a file system with one slow target.

Lustre is not available here: `lfs` is a stand-in that answers with captured output, and files that
it puts on target 2 are slow to sync and to read. The ranks are on four nodes, but only by name.
"""

import os
import subprocess
from datetime import datetime, timedelta

import pytest

from iobands.judge.site import read_site
from tests.checks.captures import lustre_said
from tests.preloaded import preloaded
from tests.site_copy import BENCHIO, copy_suite

pytestmark = pytest.mark.machine

#: A target or a node may be slow by chance in one night, but not in three. Copies of one night
#: would repeat the chance, which is large on a busy machine.
NIGHTS = 3

#: A file lies on the target of its rank modulo 4.
LFS = r"""#!/bin/bash
case $1 in
osts) cat {answers}/osts ;;
setstripe) ;;
getstripe)
    shift
    for file; do
        [[ $file =~ proc0*([0-9]+).dat$ ]] || exit 1
        target=$((BASH_REMATCH[1] % 4))
        sed -e "s,^/mnt.*,$file," -e "s/offset: .*/offset: $target/" \
            -e "s/^\t  *3\t/\t     $target\t/" {answers}/layout
    done ;;
*) exit 1 ;;
esac
"""


def test_the_slow_target_is_named(tmp_path):
    answers, disk = tmp_path / "answers", tmp_path / "disk"
    for path in (answers, disk):
        path.mkdir()
    for name, command in (
        ("osts", "lfs osts /mnt/lustre"),
        ("layout", "lfs getstripe /mnt/lustre/dc1/f"),
    ):
        (answers / name).write_text(lustre_said(command), encoding="utf-8")
    (answers / "lfs").write_text(LFS.format(answers=answers), encoding="utf-8")
    (answers / "lfs").chmod(0o755)
    df = ["df", "--output=fstype", disk]
    (kind,) = subprocess.run(df, capture_output=True, text=True, check=True).stdout.split()[1:]
    site = copy_suite(tmp_path / "site", *BENCHIO)
    work = {"path": str(disk), "type": "lustre", "medium": "disk", "mounted_as": kind}
    site.add_local_system(
        "here",
        {"work": {**work, "stripe_counts": [1]}},
        {"nodes": 1, "tasks_per_node": 12, "mib_per_task": 1},
    )
    environment = {
        **os.environ,
        "PATH": f"{answers}:{os.environ['PATH']}",
        **preloaded("slow_target", tmp_path),
    }
    for _ in range(NIGHTS):
        done = site.reframe(*("--system=here", "-r", "-n", "BenchioFPP"), env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
    written = [row for row in site.rows("here") if row["perf_var"] == "write_bw"]
    assert [row["targets"] for row in written] == ["0-3:3"] * NIGHTS
    for row in written:
        nodes = row["node_speeds"].split(";")[0].removeprefix("write_bw=").split(",")
        assert [node.split(":")[0] for node in nodes] == ["node0", "node1", "node2", "node3"]
        assert all(0.5 < float(node.split(":")[1]) < 2 for node in nodes)
    ends = [row["job_completion_time"] for row in written]
    (perflog,) = (site.root / "perflogs").glob("here/*/BenchioFPP.log")
    text = perflog.read_text(encoding="utf-8")
    for nights, end in enumerate(reversed(ends)):  # as if each had been a night of its own
        earlier = datetime.fromisoformat(end) - timedelta(days=nights)
        text = text.replace(end, earlier.isoformat())
    perflog.write_text(text, encoding="utf-8")
    today = datetime.fromisoformat(ends[-1])
    found = read_site(site.root / "perflogs", site.root, site.root, now=today)
    (alert,) = [each for each in found.alerts if each.peer]
    assert alert.subject == "OST 2 of work"
    assert set(alert.peer.ratios) == {"write_bw", "read_bw"}
    assert all(each.value < 0.7 for each in alert.peer.ratios.values())
