"""Lonestar6, a supercomputer of TACC, as its documentation describes it.

Sources: Lonestar6 User Guide (docs.tacc.utexas.edu): "System Architecture" (cores, network),
"Managing Files" (SCRATCH is BeeGFS, where files have 4 targets and chunks of 512 KB; WORK is
Lustre, where they have one stripe of 1 MiB) and "Running Jobs" (queues); Frontera's guide (WORK has
hundreds of OSTs). The bulk Lustre experiment read on WORK from 4 nodes with 4 processes each, which
is the scale here; it does not say on which Lonestar. What the guides do not say is marked EDIT.

The account comes from the environment (`export IOBANDS_ACCOUNT=...`), and the directories from
SCRATCH and WORK, which Lonestar6 sets.
"""

import os
import runpy
from pathlib import Path

schema = 4  # of contract 4

_tacc = runpy.run_path(str(Path(__file__).with_name("_tacc.py")))

# The queue `normal` takes 1 to 64 nodes.
_nodes = {
    "descr": "Compute nodes: 2 × AMD EPYC 7763, 128 cores",
    "processor": {"num_cpus": 128, "num_cpus_per_socket": 64, "num_sockets": 2},
}

_extras = {
    "filesystems": {
        # EDIT: the guide names neither the disks nor the stripes that users may set. A node needs
        # the command beegfs-ctl or beegfs, which says where files lie.
        "scratch": {
            "path": os.environ.get("SCRATCH", "/scratch/EDIT"),
            "type": "beegfs",
            "medium": "hdd",
            "min_free_gib": 1024,
        },
        # All systems of TACC share it, and 1 TB is the quota. The guide does not intend it for
        # "high-intensity file operations": ask before a run with all stripes.
        "work": {
            "path": os.environ.get("WORK", "/work/EDIT"),
            "type": "lustre",
            "medium": "hdd",  # EDIT: the guide does not name the disks
            "stripe_counts": [1, -1],
            "min_free_gib": 1024,
        },
    },
    "scales": {
        # A file of 20 GiB, and 11 GiB of small files.
        "published": {
            "nodes": 4,
            "tasks_per_node": 4,
            "mib_per_task": 1280,
            "time_limit": "30m",
        },
    },
}

system = _tacc["system"]("lonestar6", "ls6", _nodes, _extras)

environments = _tacc["environments"]
