"""LUMI-C, the processor partition of LUMI, as its documentation describes it.

Sources: LUMI documentation (docs.lumi-supercomputer.eu): "LUMI-C" and "Slurm partitions" (cores,
partitions), "LUMI-C example batch scripts" (`--mem=0`), "Main storage - LUMI-P" (four Lustre file
systems of 32 OSTs, hard disks), "Flash storage - LUMI-F" (58 OSTs, solid state), "Lustre" (stripe
counts) and "Cray programming environment" (modules). What it does not say is marked EDIT.

The account, `project_<number>`, comes from the environment (`export IOBANDS_ACCOUNT=...`); the
project's directory below /scratch and /flash from IOBANDS_LUMI_PROJECT, or is the account.
"""

import os
import runpy
from pathlib import Path

schema = 4  # of contract 4

_cray = runpy.run_path(str(Path(__file__).with_name("_cray.py")))

# EDIT: the project of the support staff. Which of the four file systems of LUMI-P a project's
# /scratch is on depends on the project: to watch all four, add one entry for each.
_project = os.environ.get("IOBANDS_LUMI_PROJECT") or os.environ.get("IOBANDS_ACCOUNT", "EDIT")

system = {
    "name": "lumi",
    "descr": "LUMI-C, HPE Cray EX",
    # EDIT: these are the external names; `hostname` may print uan01, as on ARCHER2's nodes.
    "hostnames": [r"^lumi-uan\d+"],
    # The modules are loaded by the environment's commands, as in archer2.py.
    "modules_system": "nomod",
    "partitions": [
        {
            "name": "compute",
            "descr": "LUMI-C nodes: 2 × AMD EPYC 7763, 128 cores",
            "scheduler": "slurm",
            "launcher": "srun",
            "access": ["--partition=standard", "--mem=0"],
            "sched_options": {"use_nodes_option": True},
            "env_vars": [["OMP_NUM_THREADS", "1"]],
            "environs": ["gnu-ofi"],
            "max_jobs": 1,
            "features": ["io"],
            "processor": {"num_cpus": 128, "num_cpus_per_socket": 64, "num_sockets": 2},
            "extras": {
                "filesystems": {
                    "lumi-p": {
                        "path": f"/scratch/{_project}",
                        "type": "lustre",
                        "medium": "hdd",
                        "stripe_counts": [1, 32, -1],
                        "min_free_gib": 1024,
                    },
                    "lumi-f": {
                        "path": f"/flash/{_project}",
                        "type": "lustre",
                        "medium": "nvme",
                        "stripe_counts": [1, 32, -1],
                        "min_free_gib": 1024,
                    },
                },
                "scales": {
                    # EDIT: our choice. 64 GiB from 2048 processes.
                    "standard": {
                        "nodes": 16,
                        "tasks_per_node": 128,
                        "mib_per_task": 32,
                        "time_limit": "20m",
                    },
                    "small": {
                        "nodes": 1,
                        "tasks_per_node": 128,
                        "mib_per_task": 32,
                        "time_limit": "20m",
                    },
                },
                # Of Cray's slides, to compare; the guide recommends no hints.
                "hint_presets": {
                    **_cray["presets"],
                    # In place of lfs setstripe.
                    "stripes-by-hint": _cray["hint"]("striping_factor", "32"),
                },
                # "Lustre": no striping for a file per process. For a shared file, a stripe count
                # above 1 that divides the number of processes; LUMI-P has 32 OSTs.
                "recommended": [
                    {"pattern": "fpp", "stripe_count": 1, "hints": "default"},
                    {"pattern": "ssf", "stripe_count": 32, "hints": "default"},
                ],
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
