"""Frontera, a supercomputer of TACC, as its documentation describes it.

Sources: Frontera User Guide (docs.tacc.utexas.edu): "System Architecture" (cores, network),
"Managing Files" (three Lustre scratch file systems on spinning disks; scratch1 and scratch2 have
16 OSTs and 60 GB/s each, scratch3 twice that; files have one stripe of 1 MiB) and "Running Jobs"
(queues, ibrun). The scale is as in the bulk Lustre experiment, whose figures are in
config/bands/frontera.yaml. What the guide does not say is marked EDIT.

The account comes from the environment (`export IOBANDS_ACCOUNT=...`), and the directory from
SCRATCH, which Frontera sets. TACC assigns it to one of the three.
"""

import os
import runpy
from pathlib import Path

schema = 4  # of contract 4

_tacc = runpy.run_path(str(Path(__file__).with_name("_tacc.py")))

# The queue `normal` takes 3 to 512 nodes; for fewer there is `small`.
_nodes = {
    "descr": "Compute nodes: 2 × Intel Xeon Platinum 8280, 56 cores",
    "processor": {"num_cpus": 56, "num_cpus_per_socket": 28, "num_sockets": 2},
}

_extras = {
    "filesystems": {
        "scratch": {
            "path": os.environ.get("SCRATCH", "/scratch1/EDIT"),
            "type": "lustre",
            "medium": "hdd",
            # the guide tells users to take 8 at most, the experiment took 16
            "stripe_counts": [1, 8, 16],
            "min_free_gib": 1024,
        },
    },
    "scales": {
        # 4 processes on each of 16 nodes; 100 GiB, 10 of them in small files.
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
}

system = _tacc["system"]("frontera", "frontera", _nodes, _extras)

environments = _tacc["environments"]
