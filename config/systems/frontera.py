"""Frontera, a supercomputer of TACC, as its documentation describes it.

Sources: Frontera User Guide (docs.tacc.utexas.edu): "System Architecture" (cores, network),
"Managing Files" (three scratch file systems of Lustre; scratch1 and scratch2 have 16 OSTs each, and
files one stripe of 1 MiB) and "Running Jobs" (queues, ibrun). The scale is that of the bulk Lustre
experiment, whose figures are in config/bands/frontera.yaml. What the guide does not say is marked
EDIT.

The account comes from the environment (`export IOBANDS_ACCOUNT=...`), and the directory from
SCRATCH, which Frontera sets.
"""

import os

system = {
    "name": "frontera",
    "descr": "Frontera, TACC",
    "hostnames": [r"^login\d+\.frontera"],
    # The modules are loaded by the environment's commands, as in archer2.py.
    "modules_system": "nomod",
    "partitions": [
        {
            "name": "compute",
            "descr": "Compute nodes: 2 × Intel Xeon Platinum 8280, 56 cores",
            "scheduler": "slurm",
            "launcher": "ibrun",
            # EDIT: of 3 to 512 nodes; one node is for the queue `small`
            "access": ["--partition=normal"],
            "sched_options": {"use_nodes_option": True},
            "env_vars": [["OMP_NUM_THREADS", "1"]],
            "environs": ["gnu-impi"],
            "max_jobs": 1,
            "features": ["io"],
            "processor": {"num_cpus": 56, "num_cpus_per_socket": 28, "num_sockets": 2},
            "extras": {
                "filesystems": {
                    "scratch": {
                        "path": os.environ.get("SCRATCH", "/scratch1/EDIT"),
                        "type": "lustre",
                        "medium": "hdd",  # EDIT: the guide does not name the disks
                        "stripe_counts": [1, 16],
                        "min_free_gib": 1024,
                    },
                },
                "scales": {
                    # 4 processes on each of 16 nodes; 100 GiB, of which the small files take 10.
                    "published": {
                        "nodes": 16,
                        "tasks_per_node": 4,
                        "mib_per_task": 1600,
                        "time_limit": "30m",
                    },
                    "small": {
                        "nodes": 3,
                        "tasks_per_node": 4,
                        "mib_per_task": 256,
                        "time_limit": "15m",
                    },
                },
            },
        }
    ],
}

environments = [
    {
        "name": "gnu-impi",
        "cc": "mpicc",
        "cxx": "mpicxx",
        "ftn": "mpif90",
        "features": ["ofi"],  # Intel MPI has no other
        "extras": {"mpi": "intel-mpi"},
        "prepare_cmds": ["module load gcc impi"],  # EDIT: add the versions that you support
    },
]
