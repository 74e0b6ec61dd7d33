"""What Frontera and Lonestar6 share: launcher, queue and environment, by TACC's guides."""


def system(name: str, host: str, nodes: dict, extras: dict) -> dict:
    """Return the system of this name, with one partition; `nodes` are entries about its nodes."""
    return {
        "name": name,
        "descr": f"{name.capitalize()}, TACC",
        "hostnames": [rf"^login\d+\.{host}"],
        # The modules are loaded by the environment's commands, as in archer2.py.
        "modules_system": "nomod",
        "partitions": [
            {
                **nodes,
                "name": "compute",
                "scheduler": "slurm",
                "launcher": "ibrun",
                "access": ["--partition=normal"],
                "sched_options": {"use_nodes_option": True},
                "env_vars": [["OMP_NUM_THREADS", "1"]],
                "environs": ["gnu-impi"],
                "max_jobs": 1,
                "features": ["io"],
                "extras": extras,
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
