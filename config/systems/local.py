"""This machine: its disk and its memory file system, in sizes that take seconds.

Matches any host, so a fresh clone runs at once. IOBANDS_DISK names another directory on disk.
"""

import os
import subprocess

# /var/tmp outlives a reboot, so it is on a disk where /tmp may be in memory.
_disk = os.environ.get("IOBANDS_DISK", "/var/tmp")
# It may be on the root file system here, which elsewhere means that a file system is not mounted.
_shown = subprocess.run(
    ["df", "--output=fstype", _disk], check=False, capture_output=True, text=True
)
_mounted = {"mounted_as": _shown.stdout.split()[-1]} if _shown.returncode == 0 else {}

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
                        **_mounted,
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
# others': Open MPI 4 the first, Open MPI 5 the second.
_env_vars = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
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
