"""Cirrus, EPCC's HPE Cray EX4000, as its documentation describes it.

Sources: Cirrus User Guide (docs.cirrus.ac.uk): "Running jobs" (partitions, QoS, srun options),
"Hardware" (cores, network), "Resource management" (default striping), "Data management" (paths)
and "Application development environment" (modules). That guide recommends no striping and no
hints. What it does not say is marked EDIT.

The account comes from the environment (`export IOBANDS_ACCOUNT=...`); the directory below /work
from IOBANDS_CIRRUS_SHARED, and without it nothing can be written.
"""

import os

schema = 4  # of contract 4

# EDIT: a directory below /work that the staff's project may write to.
_shared = os.environ.get("IOBANDS_CIRRUS_SHARED", "EDIT-project-code")

system = {
    "name": "cirrus",
    "descr": "Cirrus, HPE Cray EX4000",
    # EDIT: the guide shows login nodes called login01, which is too common a name to go by.
    # Until then: --system=cirrus:compute
    "hostnames": [r"^EDIT$"],
    # The modules are loaded by the environment's commands, as in archer2.py.
    "modules_system": "nomod",
    "partitions": [
        {
            "name": "compute",
            "descr": "Compute nodes: 2 × AMD EPYC 9825, 288 cores",
            "scheduler": "slurm",
            "launcher": "srun",
            "access": [
                "--partition=standard",
                "--qos=standard",
                "--hint=nomultithread",
                "--distribution=block:block",
            ],
            "sched_options": {"use_nodes_option": True},
            "env_vars": [["OMP_NUM_THREADS", "1"]],
            "environs": ["gnu-ofi"],
            "max_jobs": 1,
            "features": ["io"],
            "processor": {"num_cpus": 288, "num_cpus_per_socket": 144, "num_sockets": 2},
            "extras": {
                "filesystems": {
                    "work": {
                        "path": f"/work/{_shared}",
                        "type": "lustre",
                        "medium": "hdd",  # EDIT: the guide names the E1000, not its disks
                        "stripe_counts": [1, -1],  # 1 is the default
                        "min_free_gib": 1024,
                    },
                },
                "scales": {
                    # EDIT: our choice. 72 GiB from 2304 processes, 288 on each node.
                    "standard": {
                        "nodes": 8,
                        "tasks_per_node": 288,
                        "mib_per_task": 32,
                        "time_limit": "20m",
                    },
                    "small": {
                        "nodes": 1,
                        "tasks_per_node": 288,
                        "mib_per_task": 32,
                        "time_limit": "20m",
                    },
                },
            },
        }
    ],
}

environments = [
    {
        "name": "gnu-ofi",
        "cc": "cc",
        "cxx": "CC",
        "ftn": "ftn",
        "features": ["ofi"],  # craype-network-ofi is loaded from the start
        "extras": {"mpi": "cray-mpich"},
        "prepare_cmds": ["module load PrgEnv-gnu"],
    },
]
