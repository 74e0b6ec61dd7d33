"""What Mahti and Puhti share: storage areas, scales, hint presets and advice of CSC's guide.

Their site files have the rest. What the guide does not say is marked EDIT.
"""

import os
from pathlib import Path

# EDIT: the project of the support staff.
_project = os.environ.get("IOBANDS_ACCOUNT", "EDIT")

# The hints of the guide's measurements of PnetCDF: blocking on two OSTs, and non-blocking.
_blocking = {
    "striping_unit": "1048576",
    "romio_cb_write": "enable",
    "romio_no_indep_rw": "true",
    "romio_ds_write": "disable",
}
_nonblocking = {
    "striping_unit": "1048576",
    "cb_config_list": "*:4",
    "romio_ds_write": "disable",
}


def _preset(hints: dict) -> dict:
    # On Lustre, Open MPI 4 selects ROMIO by itself. Its OMPIO would not read the hints, and the run
    # would fail.
    return {"romio_hints": hints, "hints": hints, "mpi": ["openmpi"]}


def _area(path: str) -> dict:
    # EDIT: the guide does not name the disks
    return {"path": path, "type": "lustre", "medium": "hdd", "stripe_counts": [1]}


# The entries that both partitions share.
_NODES = {
    "scheduler": "slurm",
    "launcher": "srun",
    "sched_options": {"use_nodes_option": True},
    "env_vars": [["OMP_NUM_THREADS", "1"]],
    "environs": ["gnu-ucx"],
    "max_jobs": 1,
    "features": ["io"],
}


def system(name: str, nodes: dict) -> dict:
    """Return the system of this name; `nodes` are the entries about its nodes."""
    common = {**_NODES, **nodes}
    return {
        "name": name,
        "descr": f"{name.capitalize()}, CSC",
        "hostnames": [rf"^{name}-login\d+"],
        # The modules are loaded by the environment's commands, as in archer2.py.
        "modules_system": "nomod",
        "partitions": [
            {
                **common,
                "name": "compute",
                "extras": {
                    "filesystems": {
                        "scratch": {
                            "path": f"/scratch/{_project}",
                            "type": "lustre",
                            "medium": "hdd",  # EDIT: the guide does not name the disks
                            # the guide compares 1 and 2; 16 as recommended below
                            "stripe_counts": [1, 2, 16, -1],
                            "min_free_gib": 512,
                        },
                    },
                    "scales": {
                        # The guide's, on Mahti: 16 processes on each of 16 nodes, 100 GiB in all.
                        "published": {
                            "nodes": 16,
                            "tasks_per_node": 16,
                            "mib_per_task": 400,
                            "time_limit": "30m",
                        },
                        # The guide's peak, a file per process from 64 nodes; this suite chose the
                        # number of processes and the volume. For an idle machine only.
                        "peak": {
                            "nodes": 64,
                            "tasks_per_node": 16,
                            "mib_per_task": 1024,
                            "time_limit": "30m",
                        },
                        "small": {
                            "nodes": 1,
                            "tasks_per_node": 16,
                            "mib_per_task": 400,
                            "time_limit": "15m",
                        },
                    },
                    "hint_presets": {
                        "romio-csc": _preset(_blocking),
                        "romio-csc-nonblocking": _preset(_nonblocking),
                        # The buffer size of a run that the guide shows.
                        "buffer": _preset({"cb_buffer_size": "33554432"}),
                        # As on Cray's slides, in place of lfs setstripe.
                        "stripes-by-hint": _preset({"striping_factor": "16"}),
                    },
                    # The guide: no stripes for a file per process; for a shared file at least the
                    # square root of its size in GB, here of 107, and a divisor of the number of
                    # processes, so 16. It recommends no hints, as the best "are not necessarily the
                    # same" for other applications. It recommends non-blocking I/O: a case, run
                    # every night on one node with 2 stripes, about the root of 6.7.
                    "recommended": [
                        {"pattern": "fpp", "stripe_count": 1, "hints": "default"},
                        {"pattern": "ssf", "stripe_count": 16, "hints": "default"},
                        {"case": "csc-nonblocking", "stripe_count": 2, "scale": "small"},
                    ],
                    "schedule": {"daily": "1d"},
                },
            },
            # The storage areas. Runs on each show whether one disturbs another; they are small, as
            # quotas leave no room for more.
            {
                **common,
                "name": "areas",
                "extras": {
                    "filesystems": {
                        "home": _area(str(Path.home())),
                        "projappl": _area(f"/projappl/{_project}"),
                        "scratch": _area(f"/scratch/{_project}"),
                    },
                    "scales": {
                        "areas": {
                            "nodes": 1,
                            "tasks_per_node": 16,
                            "mib_per_task": 16,
                            "files_per_task": 1000,
                            "time_limit": "15m",
                        },
                    },
                    "selections": {
                        "daily": [{"tool": "mdtest"}, {"pattern": "fpp"}],
                        "smoke": [],
                    },
                    "schedule": {"daily": "1d"},
                },
            },
        ],
    }


environments = [
    {
        "name": "gnu-ucx",
        "cc": "mpicc",
        "cxx": "mpicxx",
        "ftn": "mpif90",
        "features": ["ucx"],  # over the Mellanox InfiniBand
        "extras": {"mpi": "openmpi"},
        "env_vars": [["OMPI_MCA_pml", "ucx"]],
        "prepare_cmds": ["module load gcc openmpi"],  # EDIT: add the versions that you support
    },
]
