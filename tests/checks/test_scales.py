"""A site with several scales and partitions, and one that takes its nodes from the scheduler."""

import os
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"
DISK = {"type": "posix", "medium": "disk"}

PARTITIONS = """
partitions = [
    {
        "name": name,
        "scheduler": "local",
        "launcher": "mpirun",
        "environs": ["mpi"],
        "features": ["io"],
        "extras": {
            "filesystems": {
                file_system: {"path": "/tmp", "type": "posix", "medium": medium}
                for file_system, medium in file_systems.items()
            },
            "scales": {
                scale: {"nodes": nodes, "tasks_per_node": 2, "mib_per_task": 512}
                for scale, nodes in scales.items()
            },
        },
    }
    for name, file_systems, scales in (
        ("first", {"both": "hdd"}, {"pair": 2, "single": 1}),
        ("second", {"both": "hdd", "extra": "nvme"}, {"single": 1, "eight": 8}),
    )
]
system = {"name": "parts", "hostnames": ["no host is called so"], "partitions": partitions}
environments = [{"name": "mpi", "cc": "mpicc", "cxx": "mpicxx", "ftn": "mpifort"}]
"""


def cases(site, *arguments):
    """The test cases of BenchioFPP that are selected: file system, scale and partition."""
    run = site.reframe("--system=parts", "-lC", "-n", "BenchioFPP", *arguments)
    assert run.returncode == 0, run.stdout + run.stderr
    found = set()
    for line in run.stdout.splitlines():
        if line.startswith("- BenchioFPP"):
            fields = dict(word[1:].split("=") for word in line.split() if word.startswith("%"))
            partition = line.split("@parts:")[1].split("+")[0]
            found.add((fields["file_system"], fields["scale"], partition))
    return found


@pytest.fixture
def parts(site_copy):
    path = site_copy.root / "config" / "systems" / "parts.py"
    path.write_text(PARTITIONS, encoding="utf-8")
    return site_copy


def test_a_check_runs_where_its_scale_and_its_file_system_are(parts):
    assert cases(parts) == {
        ("both", "pair", "first"),
        ("both", "single", "first"),
        ("both", "single", "second"),
        ("both", "eight", "second"),
        ("extra", "single", "second"),
        ("extra", "eight", "second"),
    }
    # 8 nodes × 2 processes × 512 MiB
    chosen = "gib == 8 or tasks == 4 or nodes < 3 and medium == 'nvme'"
    assert cases(parts, "-E", chosen) == {
        ("both", "pair", "first"),
        ("both", "eight", "second"),
        ("extra", "single", "second"),
        ("extra", "eight", "second"),
    }


def test_the_first_scale_is_the_default_one_of_each_partition(parts):
    assert cases(parts, "-t", "smoke") == {
        ("both", "single", "first"),
        ("both", "single", "second"),
        ("extra", "single", "second"),
    }


def test_the_scheduler_says_how_many_nodes_there_are(site_copy, tmp_path_factory):
    disk = tmp_path_factory.mktemp("disk")
    scale = {"nodes": "idle", "tasks_per_node": 2, "mib_per_task": 3}
    site_copy.add_local_system("flexible", {"disk": {"path": str(disk), **DISK}}, scale)
    # 0 means that the number is not known yet.
    run = site_copy.reframe(
        *("--system=flexible", "-r", "--exec-policy=serial"),
        *("-n", "BenchioFP[PN]", "-E", "nodes == 0"),
    )
    assert run.returncode == 0, run.stdout + run.stderr
    # This machine is the one node that ReFrame's local scheduler has.
    rows = site_copy.rows("flexible")
    rows = [row for row in rows if row["tool"] == "benchio"]
    assert {row["pattern"] for row in rows} == {"fpp", "fpn"}
    for row in rows:
        assert row["result"] == "pass"
        assert (row["nodes"], row["tasks"], float(row["gib"])) == ("1", "2", 6 / 1024)


SLURM_SITE = """
system = {
    "name": "slurmsite",
    "hostnames": ["no host is called so"],
    "partitions": [
        {
            "name": "batch",
            "scheduler": "squeue",
            "launcher": "srun",
            "access": ["--partition=batch"],
            "sched_options": {"use_nodes_option": True},
            "environs": ["mpi"],
            "features": ["io"],
            "extras": {
                "filesystems": {"work": {"path": "/work", "type": "posix", "medium": "hdd"}},
                "scales": {
                    nodes: {"nodes": nodes, "tasks_per_node": 2, "mib_per_task": 512}
                    for nodes in ("idle", "all")
                },
            },
        }
    ],
}
environments = [{"name": "mpi", "cc": "mpicc", "cxx": "mpicxx", "ftn": "mpifort"}]
"""


# It is asked for all nodes, for the nodes n1 of the reservation, and for the reservation.
SCONTROL = """#!/bin/sh
case "$*" in
  *reservations*) cat {data}/scontrol-reservation-22.05.txt ;;
  *"nodes n1") grep "^NodeName=n1 " {data}/scontrol-nodes-22.05.txt ;;
  *) cat {data}/scontrol-nodes-22.05.txt ;;
esac
"""


@pytest.mark.parametrize(
    ("reservation", "idle", "available"),
    # n1 is reserved and idle, n2 drained, n3 runs a job on one of its two cores, n4 is idle.
    [(None, 1, 2), ("maint", 1, 1)],
)
def test_slurm_says_how_many_nodes_there_are(
    site_copy, tmp_path, monkeypatch, reservation, idle, available
):
    # What scontrol of Slurm 22.05 printed of a cluster of four nodes.
    scontrol = tmp_path / "bin" / "scontrol"
    scontrol.parent.mkdir()
    scontrol.write_text(
        SCONTROL.format(data=DATA),
        encoding="utf-8",
    )
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", str(scontrol.parent), prepend=os.pathsep)
    monkeypatch.delenv("IOBANDS_RESERVATION", raising=False)
    if reservation:
        monkeypatch.setenv("IOBANDS_RESERVATION", reservation)
    path = site_copy.root / "config" / "systems" / "slurmsite.py"
    path.write_text(SLURM_SITE, encoding="utf-8")
    limit = ("-S", "BenchioFPP.time_limit=7m")
    run = site_copy.reframe("--system=slurmsite", "--dry-run", "-n", "BenchioFPP", *limit)
    assert run.returncode == 0, run.stdout + run.stderr
    found = site_copy.scripts("job")
    for case in site_copy.test_cases("slurmsite"):
        number = {"idle": idle, "all": available}.get(case.get("scale"))
        if number and case["display_name"].startswith("BenchioFPP"):
            script = found.pop(Path(case["stagedir"]).name)
            assert "#SBATCH --time=0:7:0\n" in script
            assert f"#SBATCH --nodes={number}\n#SBATCH --partition" in script
            assert f"#SBATCH --ntasks={2 * number}\n" in script
            assert f"require_space {number} {number}\n" in script
    assert found == {}


def test_the_command_line_says_how_many_nodes_there_are(site_copy):
    scale = {"nodes": "all", "tasks_per_node": 2, "mib_per_task": 512}
    site_copy.add_local_system("flexible", {"disk": {"path": "/tmp", **DISK}}, scale)
    run = site_copy.reframe(
        "--system=flexible", "--dry-run", "-n", "BenchioFPP", "--flex-alloc-nodes=3"
    )
    assert run.returncode == 0, run.stdout + run.stderr
    (script,) = site_copy.scripts("job").values()
    assert "mpirun -np 6 " in script
    assert "require_space 3 3\n" in script  # 6 × 512 MiB
