"""This machine: its disk and its file system in memory, with sizes that take seconds.

It matches any host, so it runs at once. IOBANDS_DISK names another directory on disk.
"""

import os
from pathlib import Path
from threading import Thread

schema = 4  # of contract 4

# /var/tmp outlives a reboot, so it is on a disk, while /tmp may be in memory.
_disk = os.environ.get("IOBANDS_DISK", "/var/tmp")


def _resolved(path: str) -> str:
    """Return the path without links, or as it is if its file system does not answer in 5 s."""
    # A site keeps this file for years, so it uses nothing of iobands, whose functions may change.
    found = [path]
    thread = Thread(target=lambda: found.append(os.path.realpath(path)), daemon=True)
    thread.start()
    thread.join(5)
    return found[-1]


def _mounted_as(path: str) -> dict[str, str]:
    """Return the entry with the type of the directory's file system; empty if it is unknown.

    It permits the root file system, which elsewhere means that a file system is not mounted.
    """
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    # the table writes a blank in a path as \040
    place = Path(_resolved(path))
    mounts = ([word.replace("\\040", " ") for word in line.split()[1:3]] for line in lines)
    found = [mount for mount in mounts if place.is_relative_to(mount[0])]
    # of several mounts at one place, the last covers the others
    return {"mounted_as": max(reversed(found), key=lambda each: len(each[0]))[1]} if found else {}


# Two to four processes, so that a shared file is shared and a small machine is not overrun.
_processes = min(4, max(2, os.cpu_count() or 2))

system = {
    "name": "local",
    "descr": "This machine",
    "hostnames": [".*"],
    "partitions": [
        {
            "name": "node",
            "descr": "This machine, without a scheduler",
            "scheduler": "local",
            "launcher": "mpirun",
            "environs": ["mpi"],
            "max_jobs": 1,
            "features": ["io"],
            "extras": {
                "filesystems": {
                    "disk": {
                        "path": _disk,
                        "type": "posix",
                        **_mounted_as(_disk),
                        "medium": "disk",
                        "min_free_gib": 2,
                    },
                    "memory": {
                        "path": "/dev/shm",
                        "type": "posix",
                        "medium": "memory",
                        "min_free_gib": 1,
                    },
                },
                "scales": {
                    "machine": {
                        "nodes": 1,
                        "tasks_per_node": _processes,
                        "mib_per_task": 256 // _processes,
                        "repeats": 3,
                        "time_limit": "5m",
                    },
                },
            },
        }
    ],
}

# More processes than cores are fine here. Each MPI library reads its own names and ignores the
# others': Open MPI 4 the first, 5 the second, and 6 the third.
_env_vars = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_mapby": ":oversubscribe",
    # A process that waits for another gives its core away, which the other may need.
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
if os.geteuid() == 0:
    # Containers and fresh virtual machines: Open MPI refuses to run as root without these.
    _env_vars |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

environments = [
    {
        "name": "mpi",
        "cc": "mpicc",
        "cxx": "",
        "ftn": "mpifort",
        "env_vars": [list(item) for item in _env_vars.items()],
    }
]
