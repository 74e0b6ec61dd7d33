"""Lonestar6, a supercomputer of TACC, as its documentation describes it.

Sources: Lonestar6 User Guide (docs.tacc.utexas.edu): "System Architecture" (cores, network; SCRATCH
is BeeGFS, WORK Lustre) and "Running Jobs" (queues). The bulk Lustre experiment read on WORK from 4
nodes with 4 processes each, which is the scale here; it does not say on which Lonestar. What the
guide does not say is marked EDIT.

The account comes from the environment (`export IOBANDS_ACCOUNT=...`), and the directories from
SCRATCH and WORK, which Lonestar6 sets.
"""

import os

system = {
    "name": "lonestar6",
    "descr": "Lonestar6, TACC",
    "hostnames": [r"^login\d+\.ls6"],
    # The modules are loaded by the environment's commands, as in archer2.py.
    "modules_system": "nomod",
    "partitions": [
        {
            "name": "compute",
            "descr": "Compute nodes: 2 × AMD EPYC 7763, 128 cores",
            "scheduler": "slurm",
            "launcher": "ibrun",
            "access": ["--partition=normal"],
            "sched_options": {"use_nodes_option": True},
            "env_vars": [["OMP_NUM_THREADS", "1"]],
            "environs": ["gnu-impi"],
            "max_jobs": 1,
            "features": ["io"],
            "processor": {"num_cpus": 128, "num_cpus_per_socket": 64, "num_sockets": 2},
            "extras": {
                "filesystems": {
                    # EDIT: the guide names neither the disks nor the stripes that users may set. A
                    # node needs the command beegfs-ctl or beegfs, which says where files lie.
                    "scratch": {
                        "path": os.environ.get("SCRATCH", "/scratch/EDIT"),
                        "type": "beegfs",
                        "medium": "hdd",
                        "min_free_gib": 1024,
                    },
                    # Its quota is 1 TB, and all systems of TACC share it.
                    "work": {
                        "path": os.environ.get("WORK", "/work/EDIT"),
                        "type": "lustre",
                        "medium": "hdd",
                        "stripe_counts": [1, -1],
                        "min_free_gib": 1024,
                    },
                },
                "scales": {
                    # A file of 20 GiB, and 11 of small files.
                    "published": {
                        "nodes": 4,
                        "tasks_per_node": 4,
                        "mib_per_task": 1280,
                        "time_limit": "30m",
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
