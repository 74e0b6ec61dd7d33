"""The common part of the sites of the tests, which differ only in their scheduler."""


def batch_system(
    name: str, scheduler: str, access: list[str], launcher: str, **more: object
) -> dict:
    """A system of one partition: two scales and an account."""
    return {
        "name": name,
        "hostnames": ["no host is called so"],
        "partitions": [
            {
                "name": "batch",
                "scheduler": scheduler,
                "launcher": launcher,
                "access": access,
                "environs": ["mpi"],
                "features": ["io"],
                "extras": {
                    "filesystems": {
                        "scratch": {"path": "/scratch/io", "type": "posix", "medium": "hdd"}
                    },
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
                **more,
            }
        ],
    }


environments = [{"name": "mpi", "cc": "mpicc", "cxx": "mpicxx", "ftn": "mpifort"}]
