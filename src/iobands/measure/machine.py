"""What this machine says of itself for a new site file: scheduler, file systems, MPI, modules."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from iobands.model import mounts

#: What a person has to replace; ReFrame does not start before.
EDIT: Final = "EDIT"

# The scheduler of ReFrame and its launcher, by the program that submits; the first found counts.
_SCHEDULERS: Final = {
    "sbatch": ("slurm", "srun"),
    "bsub": ("lsf", "mpirun"),
    "qsub": ("pbspro", "mpirun"),
    "flux": ("flux", "local"),
}
# The type of contract 4 by the type that a mount has; of others, users set no stripes.
_PARALLEL: Final = {
    "lustre": "lustre",
    "beegfs": "beegfs",
    "ceph": "cephfs",
    "fuse.ceph-fuse": "cephfs",
    "gpfs": "gpfs",
    "nfs": "posix",
    "nfs4": "posix",
    "panfs": "posix",
    "wekafs": "posix",
}
_STRIPED: Final = frozenset({"lustre", "beegfs"})
_SECONDS: Final = 20


@dataclass(frozen=True)
class Partition:
    """A partition of the scheduler: its name there, and the cores of its nodes if known."""

    name: str
    cores: int | None = None


@dataclass(frozen=True)
class FoundFileSystem:
    """A mounted file system: its name in results, its type, and where this user can write."""

    name: str
    path: str
    kind: str
    mounted_as: str

    @property
    def has_stripes(self) -> bool:
        """Whether users choose its stripe counts, and -1 means all targets."""
        return self.kind in _STRIPED


@dataclass(frozen=True)
class Machine:
    """What was found; empty where nothing was."""

    host: str
    scheduler: str | None = None
    launcher: str = "mpirun"
    partitions: tuple[Partition, ...] = ()
    file_systems: tuple[FoundFileSystem, ...] = ()
    mpi: str | None = None
    modules: tuple[str, ...] = ()
    account: str | None = None


def machine() -> Machine:
    """Look at this machine; a program that fails or hangs counts as missing."""
    partitions = partitions_of(_said("sinfo", "-h", "-o", "%R %c"))
    installed = {name for name in _SCHEDULERS if shutil.which(name)}
    if not partitions:  # a node with Slurm's programs, but not of a cluster
        installed.discard("sbatch")
    found = next((each for name, each in _SCHEDULERS.items() if name in installed), None)
    scheduler, launcher = found or (None, "mpirun")
    return Machine(
        host=socket.gethostname().partition(".")[0],
        scheduler=scheduler,
        launcher=launcher,
        partitions=partitions,
        file_systems=file_systems_of(mounts(), os.environ),
        mpi=mpi_of(_said("mpirun", "--version")),
        modules=tuple(filter(None, os.environ.get("LOADEDMODULES", "").split(":"))),
        account=account_of(_said("sacctmgr", "-nP", "show", "assoc", f"user={_user()}",
                                 "format=account")) if partitions else None,
    )  # fmt: skip


def partitions_of(sinfo: str) -> tuple[Partition, ...]:
    """Return the partitions in the output of `sinfo -h -o "%R %c"`."""
    found = {}
    for line in sinfo.splitlines():
        name, _, cores = line.strip().partition(" ")
        least = re.match(r"\d+", cores.strip())
        if name:
            found[name] = Partition(name, int(least[0]) if least else None)
    return tuple(found.values())


def account_of(sacctmgr: str) -> str | None:
    """Return the account of a user who has just one."""
    found = {line.strip() for line in sacctmgr.splitlines() if line.strip()}
    return found.pop() if len(found) == 1 else None


def mpi_of(version: str) -> str | None:
    """Return the MPI library by what its mpirun says, in the words of contract 4."""
    if "Open MPI" in version or "open-mpi" in version or "prterun" in version:
        return "openmpi"
    return "mpich" if re.search(r"HYDRA|MPICH|Intel\(R\) MPI", version) else None


def file_systems_of(
    mounted: Iterable[tuple[str, str]], environment: Mapping[str, str]
) -> tuple[FoundFileSystem, ...]:
    """Return the shared file systems among mounts, by point and type."""
    found: dict[str, FoundFileSystem] = {}
    for point, kind in mounted:
        if kind not in _PARALLEL:
            continue
        name = re.sub(r"[^a-z0-9]+", "-", Path(point).name.lower()).strip("-") or "root"
        while name in found:
            name += "-2"
        path = _writable(Path(point), environment.get("USER", ""))
        found[name] = FoundFileSystem(name, path, _PARALLEL[kind], kind)
    return tuple(found.values())


def _writable(point: Path, user: str) -> str:
    """Return the user's directory on a file system, else one for a person to name."""
    own = [point / user, point / "users" / user, point / "scratch" / user] if user else []
    path = next((each for each in (*own, point) if os.access(each, os.W_OK | os.X_OK)), None)
    return str(path or point / EDIT)


def _user() -> str:
    return os.environ.get("USER", "")


def _said(*command: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""


def site_of_machine(name: str, found: Machine) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return `system` and `environments` of contract 4 for a machine with a scheduler."""
    partitions = [
        _partition(each, found)
        for each in found.partitions or (Partition(EDIT),)
    ]  # fmt: skip
    commands = [f"module load {' '.join(found.modules)}"] if found.modules else []
    environment: dict[str, Any] = {
        "name": "mpi",
        "cc": "mpicc",
        "cxx": "mpicxx",
        "ftn": "mpifort",
        **({"extras": {"mpi": found.mpi}} if found.mpi else {}),
        **({"prepare_cmds": commands} if commands else {}),
    }
    system = {
        "name": name,
        "hostnames": [f"^{re.escape(found.host)}"],
        "modules_system": "nomod",
        "partitions": partitions,
    }
    return system, [environment]


def _partition(partition: Partition, found: Machine) -> dict[str, Any]:
    cores = partition.cores or EDIT
    is_slurm = found.scheduler == "slurm"
    return {
        "name": re.sub(r"[^\w.-]", "-", partition.name),
        "scheduler": found.scheduler or "local",
        "launcher": found.launcher,
        "access": [f"--partition={partition.name}"] if is_slurm else [],
        **({"sched_options": {"use_nodes_option": True}} if is_slurm else {}),
        "environs": ["mpi"],
        "max_jobs": 1,
        "features": ["io"],
        "extras": {
            "filesystems": {
                each.name: {
                    "path": each.path,
                    "type": each.kind,
                    "medium": "hdd",
                    **({"stripe_counts": [1, -1]} if each.has_stripes else {}),
                    **({"mounted_as": each.mounted_as} if each.kind == "posix" else {}),
                    "min_free_gib": 1024,
                }
                for each in found.file_systems
            },
            "scales": {
                "standard": {"nodes": 2, "tasks_per_node": cores, "mib_per_task": 64, "repeats": 3}
            },
            "schedule": {"daily": "1d"},
            **({"account": found.account or EDIT} if found.scheduler else {}),
        },
    }
