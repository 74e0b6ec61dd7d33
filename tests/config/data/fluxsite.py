"""A site that exists nowhere, with Flux: what its scripts would be is stored in ../golden."""

import sys
from pathlib import Path

# ReFrame loads its backend for Flux only with Flux's Python module. A test puts a stand-in here.
sys.path.append(str(Path(__file__).resolve().parents[2] / "stand-in"))

system = {
    "name": "fluxsite",
    "hostnames": ["no host is called so"],
    "partitions": [
        {
            "name": "batch",
            "scheduler": "flux",
            "launcher": "local",  # the checks start their program by `flux run`
            "environs": ["mpi"],
            "features": ["io"],
            "extras": {
                "filesystems": {"work": {"path": "/work/io", "type": "posix", "medium": "hdd"}},
                "scales": {
                    "large": {
                        "nodes": 4,
                        "tasks_per_node": 64,
                        "mib_per_task": 16,
                        "time_limit": "1h30m",
                    },
                    "small": {
                        "nodes": 2,
                        "tasks_per_node": 8,
                        "mib_per_task": 64,
                        "exclusive": False,
                    },
                },
                "account": "budget",
            },
        }
    ],
}
environments = [{"name": "mpi", "cc": "mpicc", "cxx": "mpicxx", "ftn": "mpifort"}]
