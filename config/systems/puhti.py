"""Puhti, a supercomputer of CSC, as its documentation describes it.

Sources: CSC user guide (docs.csc.fi): "Technical details about Puhti" (cores, network, 24 OSTs
shared by all areas), "Available batch job partitions", "Example batch job scripts for Puhti",
"Compiling on Puhti" (Open MPI) and "Lustre performance optimization", whose measurement on Mahti is
the scale here. The guide says that Puhti's compute nodes were retired in July 2026. What it does
not say is marked EDIT.

The account comes from the environment (`export IOBANDS_ACCOUNT=project_...`), and with it the
directory below /scratch.
"""

import os

# EDIT: the project of the support staff.
_project = os.environ.get("IOBANDS_ACCOUNT", "EDIT")

_romio_hints = {
    "striping_unit": "1048576",
    "romio_cb_write": "enable",
    "romio_no_indep_rw": "true",
    "romio_ds_write": "disable",
}

system = {
    "name": "puhti",
    "descr": "Puhti, CSC",
    "hostnames": [r"^puhti-login\d+"],
    # The modules are loaded by the environment's commands, as in archer2.py.
    "modules_system": "nomod",
    "partitions": [
        {
            "name": "compute",
            "descr": "Compute nodes: 2 × Intel Xeon Gold 6230, 40 cores",
            "scheduler": "slurm",
            "launcher": "srun",
            # Memory has to be asked for, with whole nodes too; one process holds its data twice.
            "access": ["--partition=large", "--mem-per-cpu=4000"],
            "sched_options": {"use_nodes_option": True},
            "env_vars": [["OMP_NUM_THREADS", "1"]],
            "environs": ["gnu-ucx"],
            "max_jobs": 1,
            "features": ["io"],
            "processor": {"num_cpus": 40, "num_cpus_per_socket": 20, "num_sockets": 2},
            "extras": {
                "filesystems": {
                    "scratch": {
                        "path": f"/scratch/{_project}",
                        "type": "lustre",
                        "medium": "hdd",  # EDIT: the guide does not name the disks
                        "stripe_counts": [1, 2, -1],  # 1 and 2 are what the guide compares
                        "min_free_gib": 512,
                    },
                },
                "scales": {
                    # The guide's on Mahti: 16 processes on each of 16 nodes, 100 GiB in all.
                    "published": {
                        "nodes": 16,
                        "tasks_per_node": 16,
                        "mib_per_task": 400,
                        "time_limit": "30m",
                    },
                    "small": {
                        "nodes": 1,
                        "tasks_per_node": 16,
                        "mib_per_task": 400,
                        "time_limit": "15m",
                    },
                },
                # The guide's hints for a shared file on two targets. Open MPI 4 takes ROMIO by
                # itself on Lustre; its OMPIO would not read them, and the run would fail.
                "hint_presets": {
                    "romio-csc": {
                        "romio_hints": _romio_hints,
                        "hints": _romio_hints,
                        "mpi": ["openmpi"],
                    },
                },
                "recommended": [
                    {"pattern": "fpp", "stripe_count": 1, "hints": "default"},
                    {"pattern": "ssf", "stripe_count": 2, "hints": "romio-csc"},
                ],
            },
        }
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
