"""The values that a new site file is filled in with, from real outputs of programs."""

import os
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from iobands.measure import site_directory
from iobands.measure.site_directory import (
    EDIT,
    Machine,
    account_of,
    file_systems_of,
    machine,
    mpi_of,
    partitions_of,
    queues_of,
    site_of_machine,
)
from iobands.model.files import mounts_in


def test_partitions_of_slurm() -> None:
    found = {"standard": 256, "highmem": 128, "old": None}
    assert partitions_of("standard 256\nhighmem 128+\nold\n\n") == found


# From OpenPBS 23.06.
QUEUES = """\
Queue: workq
    queue_type = Execution
    state_count = Transit:0 Queued:0 Held:0 Waiting:0 Running:0 Exiting:0 Begun
\t:0
    enabled = True
    started = True

Queue: old
    queue_type = Execution
    enabled = False
    started = False

Queue: main
    queue_type = Route
    route_destinations = workq
    enabled = True
    started = True

"""
NODE = """\
pn{}
     Mom = pn{}
     pcpus = 2
     resources_available.host = pn1
     resources_available.ncpus = {}
     resources_assigned.ncpus = 0

"""


def test_queues_of_pbs() -> None:
    nodes = "".join(NODE.format(number, number, cores) for number, cores in enumerate((4, 64, 64)))
    assert queues_of(QUEUES, nodes) == {"workq": 64, "main": 64}
    assert queues_of(QUEUES, "") == {"workq": None, "main": None}
    assert queues_of("", "") == {}


def test_a_job_of_pbs_names_its_queue() -> None:
    system, _ = site_of_machine("ada", Machine("login", "pbspro", partitions={"workq": 64}))
    (partition,) = system["partitions"]
    assert (partition["name"], partition["access"]) == ("workq", ["-q workq"])
    assert partition["extras"]["scales"]["standard"]["tasks_per_node"] == 64


def test_an_account_only_if_there_is_one() -> None:
    assert account_of("z19\nz19\n") == "z19"
    assert account_of("z19\ne05\n") is None
    assert account_of("") is None


def test_the_mpi_library() -> None:
    assert mpi_of("mpirun (Open MPI) 4.1.4\n") == "openmpi"
    assert mpi_of("HYDRA build details:\n    Version: 4.0.2\n") == "mpich"
    intel = "Intel(R) MPI Library for Linux* OS, Version 2021.15 Build 20250213 (id: d233448)\n"
    assert mpi_of(intel) == "intel-mpi"
    assert mpi_of("") is None


def test_shared_file_systems_and_where_the_user_can_write(tmp_path: Path) -> None:
    (tmp_path / "work" / "ada").mkdir(parents=True)
    table = (
        f"40 29 0:35 / {tmp_path}/work rw shared:1 - lustre 10.0.0.1@o2ib:/lus rw\n"
        "29 1 254:0 / / rw,noatime - ext4 /dev/sda1 rw\n"
        "41 29 0:36 /export /no\\040such/Home rw shared:2 master:1 - nfs4 home:/export rw\n"
        "42 29 0:37 / /mnt/mdt ro - lustre /dev/sdb ro,svname=lus-MDT0000\n"  # on a server
        "43 29 0:38 / /mnt/ost ro - lustre pool/ost1 ro,svname=lus-OST0001\n"
        "short line\n"
    )
    found = file_systems_of(mounts_in(table), {"USER": "ada"})
    assert [(name, each["path"], each["type"]) for name, each in found.items()] == [
        ("work", f"{tmp_path}/work/ada", "lustre"),
        ("home", f"/no such/Home/{EDIT}", "posix"),
    ]
    assert [each.get("mounted_as") for each in found.values()] == [None, "nfs4"]
    assert [each.get("stripe_counts") for each in found.values()] == [[1, -1], None]


def test_mounts_of_one_name_stay_apart() -> None:
    mounted = [(f"/{each}/data", "nfs") for each in "abc"]
    assert [*file_systems_of(mounted, os.environ)] == ["data", "data-2", "data-3"]


def test_a_file_system_that_hangs_is_left_to_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_directory, "_SECONDS", 0.1)
    monkeypatch.setattr(os, "access", lambda *_: Event().wait())
    found = file_systems_of([("/work", "lustre")], {"USER": "ada"})
    assert found["work"]["path"] == f"/work/{EDIT}"


def test_a_machine_becomes_a_site_file() -> None:
    found = Machine(
        host="login1",
        scheduler="slurm",
        launcher="srun",
        partitions={"standard": 128},
        file_systems={"work": {"path": "/work/ada", "type": "lustre", "medium": "hdd"}},
        mpi="openmpi",
        modules=("gcc/13", "openmpi/5"),
    )
    system, (environment,) = site_of_machine("falcon", found)
    (partition,) = system["partitions"]
    assert partition["access"] == ["--partition=standard"]
    assert partition["extras"]["scales"]["standard"]["tasks_per_node"] == 128
    assert partition["extras"]["filesystems"] == found.file_systems
    assert partition["extras"]["account"] == EDIT
    assert environment["prepare_cmds"] == ["module load gcc/13 openmpi/5"]
    assert environment["extras"] == {"mpi": "openmpi"}
    assert environment["ftn"] == "mpifort"
    (environment,) = site_of_machine("falcon", replace(found, mpi="intel-mpi"))[1]
    assert environment["ftn"] == "mpif90"  # Intel MPI has no mpifort


@pytest.mark.parametrize(
    ("mpirun", "default", "launcher", "pmi"),
    [
        ("Intel(R) MPI Library", "none", "mpirun", None),
        ("Intel(R) MPI Library", "pmi2", "mpirun", None),
        ("mpirun (Open MPI) 5.0.7", "none", "srun", "pmix"),
        ("mpirun (Open MPI) 5.0.7", "pmix_v5", "srun", None),
        ("HYDRA build details:", "(null)", "srun", "pmi2"),
        ("", "none", "srun", None),
    ],
)
def test_the_launcher_of_a_new_site_gives_the_mpi_library_a_pmi(
    mpirun: str,
    default: str,
    launcher: str,
    pmi: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # with the blanks of Slurm 22.05
    said = f"MinJobAge               = 300 sec\nMpiDefault              = {default}"
    programs = {"sbatch": "", "sinfo": "compute 8", "mpirun": mpirun, "scontrol": said}
    for name, words in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{words}'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    for name in ("I_MPI_PMI_LIBRARY", "SLURM_MPI_TYPE"):
        monkeypatch.delenv(name, raising=False)
    expected = [["SLURM_MPI_TYPE", pmi]] if pmi else None
    system, (environment,) = site_of_machine("falcon", machine())
    assert system["partitions"][0]["launcher"] == launcher
    assert environment.get("env_vars") == expected
    if mpirun.startswith("Intel"):
        monkeypatch.setenv("I_MPI_PMI_LIBRARY", "/usr/lib64/libpmi2.so")
        assert machine().launcher == "srun"
        assert machine().pmi == ("pmi2" if default == "none" else None)
    monkeypatch.setenv("SLURM_MPI_TYPE", "pmix")
    assert machine().pmi is None


@pytest.mark.parametrize(
    ("sacct", "scheduler", "account"),
    [
        ("echo Slurm accounting storage is disabled >&2; exit 1", "squeue", None),
        ("echo sacct: error: slurmdbd: Connection refused >&2; exit 1", "slurm", EDIT),
        ("exit 0", "slurm", EDIT),
    ],
)
def test_a_slurm_without_accounting_is_asked_by_squeue(
    sacct: str, scheduler: str, account: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, script in {"sbatch": "exit 1", "sinfo": "echo compute 8", "sacct": sacct}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    found = machine()
    assert found.scheduler == scheduler
    (partition,) = site_of_machine("falcon", found)[0]["partitions"]
    assert partition["scheduler"] == scheduler
    assert partition["access"] == ["--partition=compute"]
    assert partition["extras"].get("account") == account
