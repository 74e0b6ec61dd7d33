"""Covariates: outputs of commands are parsed correctly, and a missing one fails no run."""

import os
import subprocess

import pytest

from checks.base import covariates
from checks.base.covariates import COVARIATES, Gathered, measure
from checks.filesystems import BACKENDS, Targets
from checks.preflight.findings import sections
from tests.checks.captures import (
    beegfs_said,
    captured,
    each_captured,
    gpfs_said,
    lustre_said,
    states,
)
from tests.site_copy import ROOT

# Taken before and after a run on a real Lustre 2.17; before it nothing had been read.
BEFORE, AFTER = each_captured("lctl get_param llite.*.stats", "lfs-2.17.txt")

# The format in the manual of Lustre 2.x: without a sum of squares, and with another time.
OLDER = """\
snapshot_time             1523008010.817348638 secs.nsecs
read_bytes                2048 samples [bytes] 1024 1024 2097152
write_bytes               1 samples [bytes] 1048576 1048576 1048576
"""


@pytest.mark.parametrize(
    ("text", "nodes", "load"),
    [
        ("load 0.52\n", 1, 0.52),
        ("load 2.89\nload 12.07\nload 0.00\n", 3, 12.07),
        ("load 2.89\nsnapshot_time 1.5 secs.nsecs\nload 3\n", 2, 3.0),
        # One node of two did not answer: the largest of the rest is not the largest.
        ("load 0.52\n", 2, None),
        ("", 1, None),
        ("sh: 1: cannot open /proc/loadavg\nload \n", 1, None),
    ],
)
def test_the_largest_load(text, nodes, load):
    assert measure("load_per_node", Gathered(nodes, nodes_before=text)) == load


def test_each_covariate_has_a_function_and_is_unknown_without_evidence():
    assert [name for name in COVARIATES if not callable(getattr(covariates, name, None))] == []
    assert {measure(name, Gathered(nodes=1)) for name in COVARIATES} == {None}


# The script for each node, from where it lies beside what it sources.
LOOK = ROOT / "checks" / "base" / "covariates.sh"


def look(*arguments, cwd, path=""):
    done = subprocess.run(
        ["bash", LOOK, *arguments],
        cwd=cwd,
        env={"PATH": f"{path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_node_prints_its_load(tmp_path):
    before = os.getloadavg()[0]
    found = measure("load_per_node", Gathered(1, nodes_before=look("/mnt", cwd=tmp_path)))
    after = os.getloadavg()[0]
    # The load is updated every five seconds, and changes a lot on a busy machine.
    assert min(before, after) - 1 <= found <= max(before, after) + 1


def moved(before, after, nodes=1):
    gathered = Gathered(nodes, nodes_before=before, nodes_after=after)
    return [measure(f"client_{name}_gib", gathered) for name in ("written", "read")]


def test_what_clients_moved():
    # Written 56623104 and then 85983232 bytes, read none and then 16777216.
    assert moved(BEFORE, AFTER) == [29360128 / 2**30, 16777216 / 2**30]
    # Two nodes: the sum of both. If one of three gave nothing, the sum would lack it.
    assert moved(BEFORE + OLDER, AFTER + OLDER, 2) == moved(BEFORE, AFTER)
    assert moved(BEFORE + OLDER, AFTER + OLDER, 3) == [None, None]
    assert moved("error: get_param: Permission denied\n", AFTER) == [None, None]
    assert moved(BEFORE, "") == moved("", AFTER) == [None, None]
    assert moved(AFTER, BEFORE) == [None, None]  # somebody reset the counters
    # By the form of older versions: 1 MiB written and 2 MiB read, counted from nothing.
    assert moved("snapshot_time 1.5 secs.nsecs\n", OLDER) == [2**20 / 2**30, 2 * 2**20 / 2**30]


def test_the_targets_and_how_full():
    gathered = Gathered(1, df=DF, targets=Targets(active=3, inactive=1))
    assert [measure(name, gathered) for name in list(COVARIATES)[:3]] == [37, 3, 1]


def of_lustre(targets, files):
    lustre = BACKENDS["lustre"]
    gathered = Gathered(1, in_reach=lustre.targets_in_reach(targets), files=files)
    names = ("busiest_target", "free_spread_percent", "fullest_target_percent")
    return [*(measure(name, gathered) for name in names), gathered.fullest]


def test_what_lies_on_the_busiest_target_and_how_full_the_fullest_is():
    said = sections(states("probe answer by hand: full"))
    listed = f"{said['targets']}\n{said['target space']}"
    names = [f"f{n}" for n in range(8)]
    # four are active; two files on each are rotation
    in_turn = dict(zip(names, [(0,), (1,), (2,), (5,)] * 2, strict=True))
    assert of_lustre(listed, in_turn) == [1, 100, 100, "OST0002"]
    weighted = dict(zip(names, [(0,)] + [(1,)] * 3 + [(5,)] * 4, strict=True))
    assert of_lustre(listed, weighted)[0] == 2
    assert of_lustre(listed, dict.fromkeys(names, (1,)))[0] == 4
    assert of_lustre(listed, dict.fromkeys(names, (0, 1, 2, 5)))[0] == 1
    pool = "Pool: lustre.flash\nlustre-OST0000_UUID\nlustre-OST0001_UUID\n"
    halves = dict(zip(names, [(0,), (1,)] * 4, strict=True))
    of_pool = f"{said['targets']}\n{pool}{said['target space']}"
    assert of_lustre(of_pool, halves) == [1, 0, None, None]
    # nothing is known about one target, or about all
    unknown = listed.replace("lustre-OST0005_UUID      3032684", "lustre-OST0005_UUID : gone")
    assert of_lustre(unknown, in_turn) == [1, None, None, None]
    assert of_lustre("", in_turn) == [None, None, None, None]


def test_how_full_targets_of_beegfs_are():
    listing = "beegfs-ctl --listtargets --nodetype=storage"
    states_and_pools = f"{listing} --state --storagepools --pools"
    seven = "pool 1\n" + "".join(
        beegfs_said(command) for command in (states_and_pools, f"{listing} --spaceinfo")
    )
    eight = beegfs_said("beegfs target list --node-type storage --state --capacity --raw")
    # 0.5 of 65536 GiB are free on the fullest and 32768 on the emptiest
    for text, fullest in ((seven, "2102"), (eight, "201")):
        gathered = Gathered(1, in_reach=BACKENDS["beegfs"].targets_in_reach(text))
        assert gathered.fullest == fullest
        assert measure("free_spread_percent", gathered) == 100
        assert measure("fullest_target_percent", gathered) == 100


def test_how_full_disks_of_spectrum_scale_are():
    disks, all_space, of_pool = (
        gpfs_said(command)
        for command in ("mmlsdisk work -Y", "mmdf work -Y", "mmdf work -d -P data -Y")
    )

    def full(text):
        gathered = Gathered(1, in_reach=BACKENDS["gpfs"].targets_in_reach(text))
        names = ("busiest_target", "free_spread_percent", "fullest_target_percent")
        return [gathered.fullest, *(measure(name, gathered) for name in names)]

    # 6242000947 and 4194304 of 31210004736 KiB are free: a spread of 99.93 %, and 99.99 % are used
    assert full(f"pool data\n{disks}{of_pool}") == ["data2", None, 100, 100]
    assert full(f"pool data\n{disks}{all_space}") == ["data2", None, 100, 100]
    suspended = disks.replace("2:No:Yes:ready:up:3", "2:No:Yes:suspended:up:3")
    assert full(f"pool data\n{suspended}{of_pool}") == [None, None, 0, None]
    # as much is free on both of its disks
    assert full(f"pool nvme\n{disks}{all_space}") == [None, None, 0, None]
    # unknown: in which of several pools the files are; or the space of one disk, or of all
    nothing = [None, None, None, None]
    cut = of_pool.partition(":4194304:0:")[0] + ":4194"
    for text in (disks + all_space, f"pool data\n{disks}{cut}", f"pool data\n{disks}", ""):
        assert full(text) == nothing


# As `df -k --output=size,used,avail,pcent` of GNU coreutils 9.1 shows it.
DF = """\
1K-blocks     Used    Avail Use%
 61796348 21559076 37684368  37%
"""


def test_the_statistics_asked_for_are_those_of_the_file_system(tmp_path):
    stand_in(tmp_path, "lfs", 'echo "lustre-ff11000117a50800 $2"')
    right = "get_param -n llite.lustre-ff11000117a50800.stats"
    stand_in(tmp_path, "lctl", f'test "$*" = "{right}" && echo right')
    script = BACKENDS["lustre"].script
    said = look("/mnt/lustre", script.name, cwd=script.parent, path=tmp_path)
    assert said.splitlines()[-1] == "right"


# `squeue --format=%u` on a Slurm with a job of another user and this one's.
SQUEUE = "nobody\nroot\n"

# The form of OpenPBS's `qstat -r`: a heading, and names of at most eight letters.
QSTAT = """
pbs:
                                                            Req'd  Req'd   Elap
Job ID          Username Queue    Jobname    SessID NDS TSK Memory Time  S Time
--------------- -------- -------- ---------- ------ --- --- ------ ----- - -----
1017.pbs        jsmith   workq    rfm_Benc*   21734   4 128    --  00:30 R 00:00
1009.pbs        longname workq    model       20011   8 512    --  12:00 R 03:12
1011[2].pbs     someone  workq    array       20055   1   8    --  12:00 R 01:40
"""


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (f"root\n{SQUEUE}", 1),
        ("root\nroot\nroot\n", 0),
        ("root\n", 0),
        ("a\nab\nb\na\n", 2),
        (f"jsmith\n{QSTAT}", 2),
        (f"longnamed\n{QSTAT}", 2),
        (f"nobody\n{QSTAT}", 3),
        (f"jsmith\n{QSTAT.partition('1017')[0]}", 0),
        ("", None),
    ],
)
def test_jobs_of_others(text, number):
    assert measure("other_jobs", Gathered(1, jobs=text)) == number


def stand_in(directory, name, script):
    path = directory / name
    path.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def lustre_commands(tmp_path_factory):
    """A directory of commands that answer as on the captured Lustre."""
    here = tmp_path_factory.mktemp("lustre")
    outputs = {
        "before": BEFORE,
        "after": AFTER,
        "osts": lustre_said("lfs osts /mnt/lustre"),
        "layout": lustre_said("lfs getstripe /mnt/lustre/dc4S1mi2/f"),
        "space": captured(
            "lfs df /mnt/lustre # full: 8 KiB are left", "lfs-2.17-unfit-targets.txt"
        ),
    }
    for name, text in outputs.items():
        (here / name).write_text(text, encoding="utf-8")
    stand_in(
        here,
        "lfs",
        f'case "$1" in osts) cat {here}/osts ;; getstripe) cat {here}/layout ;; '
        f"df) cat {here}/space ;; "
        'getname) echo "lustre-ff11000117a50800 $2" ;; esac',
    )
    stand_in(here, "lctl", f"cat {here}/before; cp {here}/after {here}/before")
    stand_in(
        here, "df", 'case "$1" in --output=fstype) echo lustre ;; *) exec /bin/df "$@" ;; esac'
    )
    return here


@pytest.fixture
def site_with_a_disk(site_copy, tmp_path_factory):
    disk = tmp_path_factory.mktemp("disk")
    site_copy.add_local_system(
        "around",
        {
            "disk": {"path": str(disk), "type": "posix", "medium": "disk"},
            "lustre": {
                "path": str(disk),
                "type": "lustre",
                "medium": "disk",
                "stripe_counts": [-1],
                "striping": {"size_kib": 1024, "index": 2},
            },
        },
        {"nodes": 1, "tasks_per_node": 2, "mib_per_task": 1},
    )
    return site_copy


def rows_of_a_run(site, file_systems):
    """The two newest lines of each file system."""
    chosen = f"file_system in {file_systems}"
    run = site.reframe(
        "--system=around", "-r", "--exec-policy=serial", "-n", "BenchioFPP", "-E", chosen
    )
    assert run.returncode == 0, run.stdout + run.stderr
    rows = [row for row in site.rows("around") if row["tool"] == "benchio"]
    return {name: [row for row in rows if row["file_system"] == name][-2:] for name in file_systems}


def test_a_run_has_its_covariates_and_does_without_them(
    site_with_a_disk, lustre_commands, tmp_path_factory, monkeypatch
):
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", f"{lustre_commands}:{path}")
    rows = rows_of_a_run(site_with_a_disk, ["disk", "lustre"])
    for row in rows["disk"]:
        assert float(row["load_per_node"]) >= 0
        # This machine has no scheduler, no targets and no Lustre client.
        for name in ("other_jobs", "targets_active", "targets_inactive", "client_written_gib"):
            assert row[name] == "null"
    for row in rows["lustre"]:
        assert (row["stripe_count_asked"], row["stripe_count"]) == ("-1", "4")
        assert (row["targets_active"], row["targets_inactive"]) == ("4", "0")
        # Four stripes on four targets each; one target has 8 KiB left.
        assert (row["busiest_target"], row["targets"]) == ("1.0", f"0-3:{row['tasks']}")
        assert (row["fullest_target"], row["free_spread_percent"]) == ("OST0003", "100")
        assert row["fullest_target_percent"] == "100"
        # 28 and 16 MiB, by the captured counts.
        assert (row["client_written_gib"], row["client_read_gib"]) == ("0.02734375", "0.015625")
    # Without `timeout`, every covariate fails, as each of its commands has a time limit.
    broken = tmp_path_factory.mktemp("bin")
    stand_in(broken, "timeout", "echo gone wrong; exit 125")
    monkeypatch.setenv("PATH", f"{broken}:{path}")
    for row in rows_of_a_run(site_with_a_disk, ["disk"])["disk"]:
        assert (row["result"], row["load_per_node"]) == ("pass", "null")
        assert float(row["perf_value"]) > 0
