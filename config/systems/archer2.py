"""ARCHER2, the UK's national supercomputer, as its documentation describes it.

Sources: ARCHER2 User Guide, "I/O performance and tuning" (file systems, scale, stripe counts,
environment settings, transports) and "Application development environment" (modules).

The account comes from the environment (`export IOBANDS_ACCOUNT=...`, or SBATCH_ACCOUNT); the
directory on /work from IOBANDS_ARCHER2_SHARED, by default the one of the support staff's project.
"""

import os
import runpy
from pathlib import Path

schema = 4  # of contract 4

_cray = runpy.run_path(str(Path(__file__).with_name("_cray.py")))

_shared = os.environ.get("IOBANDS_ARCHER2_SHARED", "work/z19/z19/shared")


def _lustre(name: str, medium: str) -> dict:
    return {
        "path": f"/mnt/lustre/{name}/{_shared}",
        "type": "lustre",
        "medium": medium,
        "stripe_counts": [1, -1],
        "striping": {"size_kib": 1024},
        "min_free_gib": 1024,
    }


system = {
    "name": "archer2",
    "descr": "ARCHER2, HPE Cray EX",
    "hostnames": [r"^uan\d+$", r"^ln\d+$", r"^dvn\d+$"],
    # The modules are loaded by the environments' commands below: a script then shows the order,
    # which matters for the transport, and can be written on a machine without Lmod.
    "modules_system": "nomod",
    "partitions": [
        {
            "name": "compute",
            "descr": "Compute nodes: 2 × AMD EPYC 7742, 128 cores",
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
            "environs": ["gnu-ofi", "gnu-ucx"],
            "max_jobs": 1,
            "features": ["io"],
            "processor": {"num_cpus": 128, "num_cpus_per_socket": 64, "num_sockets": 2},
            "extras": {
                "filesystems": {
                    "work1": _lustre("a2fs-work1", "hdd"),
                    "work2": _lustre("a2fs-work2", "hdd"),
                    "work3": _lustre("a2fs-work3", "hdd"),
                    "work4": _lustre("a2fs-work4", "hdd"),
                    "nvme": _lustre("a2fs-nvme", "nvme"),
                },
                "scales": {
                    # 2048 processes, 65,536 MiB in all: the scale of the published figures.
                    "published": {
                        "nodes": 16,
                        "tasks_per_node": 128,
                        "mib_per_task": 32,
                        "time_limit": "20m",
                    },
                },
                # The settings of the page together, and each alone, to show its effect;
                # docs/cases.md says what they do. The presets of Cray's slides are not on the page.
                "hint_presets": {
                    **_cray["presets"],
                    "sar-limit": {
                        "mpi": ["cray-mpich"],
                        "transports": ["ofi"],  # libfabric's variable
                        "env_vars": {"FI_OFI_RXM_SAR_LIMIT": "64K"},
                    },
                    "lock-mode": _cray["hint"]("cray_cb_write_lock_mode", "2"),
                    "nodes-multiplier": _cray["hint"]("cray_cb_nodes_multiplier", "4"),
                    "archer2-ssf": {
                        "mpi": ["cray-mpich"],
                        "env_vars": {
                            "FI_OFI_RXM_SAR_LIMIT": "64K",
                            "MPICH_MPIIO_HINTS": (
                                "*:cray_cb_write_lock_mode=2,*:cray_cb_nodes_multiplier=4"
                            ),
                        },
                        # Read back from the open file, or from what MPICH_MPIIO_HINTS_DISPLAY
                        # shows. EDIT: if cray-mpich shows them in neither, leave them out;
                        # the settings are then unproven.
                        "hints": {
                            "cray_cb_write_lock_mode": "2",
                            "cray_cb_nodes_multiplier": "4",
                        },
                    },
                },
                # The published bands are for these settings. The default settings of both patterns
                # are measured daily as well.
                "recommended": [
                    {
                        "pattern": "fpp",
                        "stripe_count": 1,
                        "transport": "ofi",
                        "hints": "default",
                    },
                    {
                        "pattern": "ssf",
                        "stripe_count": -1,
                        "transport": "ucx",
                        "hints": "archer2-ssf",
                    },
                ],
            },
        }
    ],
}


def _environment(transport: str, *modules: str) -> dict:
    return {
        "name": f"gnu-{transport}",
        "cc": "cc",
        "cxx": "CC",
        "ftn": "ftn",
        "features": [transport],
        "extras": {"mpi": "cray-mpich"},
        "prepare_cmds": [f"module load {' '.join(('PrgEnv-gnu', *modules))}"],
    }


environments = [
    _environment("ofi"),
    _environment("ucx", "craype-network-ucx", "cray-mpich-ucx"),
]
