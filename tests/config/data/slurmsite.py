"""A site that exists nowhere, with slurm: what its scripts would be is stored in ../golden."""

system = {
    "name": "slurmsite",
    "hostnames": ["no host is called so"],
    "partitions": [
        {
            "name": "batch",
            "scheduler": "slurm",
            "launcher": "srun",
            "access": ["--partition=batch"],
            "sched_options": {"use_nodes_option": True},
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
