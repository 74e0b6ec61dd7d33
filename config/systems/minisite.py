"""The minisite: a real site on one machine, which `make minisite` starts.

It has Slurm with four nodes, CephFS with four OSDs, a fast disk and a slow one, and three MPI
stacks over two transports. `. DIRECTORY/env`, which `minisite/up` prints, tells Slurm and this file
where the site is. The environments set more than a real site's, as all nodes share one host.
"""

import os

schema = 4  # of contract 4

_directory = os.environ.get("IOBANDS_MINISITE", "/var/tmp/iobands-minisite")

system = {
    "name": "minisite",
    "descr": "A site of four nodes on this machine",
    "hostnames": [r"^no host is called so$"],
    "partitions": [
        {
            "name": "compute",
            "descr": "Four nodes that share one host",
            "scheduler": "squeue",  # Slurm without accounting: there is no sacct to ask
            "launcher": "srun",
            "access": ["--partition=compute"],
            "sched_options": {"use_nodes_option": True},
            "environs": ["openmpi-ofi", "openmpi-ucx", "mpich-ucx"],
            "max_jobs": 1,
            "features": ["io"],
            "extras": {
                "filesystems": {
                    "ceph": {
                        "path": f"{_directory}/ceph",
                        "type": "cephfs",
                        "medium": "memory",
                        "stripe_counts": [1, 4],
                        # So that a file of the smallest scale has stripes on all four OSDs.
                        "striping": {"size_kib": 1024, "object_size_kib": 4096},
                    },
                    "fast": {"path": f"{_directory}/fast", "type": "posix", "medium": "nvme"},
                    "slow": {"path": f"{_directory}/slow", "type": "posix", "medium": "hdd"},
                },
                "scales": {
                    # Phases take about a second on two cores, and some seconds on the slow disk.
                    "site": {
                        "nodes": 4,
                        "tasks_per_node": 1,
                        "mib_per_task": 16,
                        "time_limit": "5m",
                    },
                    "small": {
                        "nodes": 2,
                        "tasks_per_node": 1,
                        "mib_per_task": 4,
                        "time_limit": "2m",
                    },
                },
                "hint_presets": {
                    # The aggregators and buffers that CSC's guide tries out. ROMIO reads the file;
                    # Open MPI's OMPIO does not.
                    "romio-csc": {
                        "romio_hints": {
                            "cb_config_list": "*:2",
                            "romio_cb_write": "enable",
                            "romio_ds_write": "disable",
                            "striping_unit": "1048576",
                        },
                        "hints": {
                            "cb_config_list": "*:2",
                            "romio_cb_write": "enable",
                            "romio_ds_write": "disable",
                        },
                        "mpi": ["openmpi", "mpich"],
                    },
                },
                "account": "",  # jobs need none
                # Nobody else is there to wait for.
                "max_pending_time": "1m",
                # As on ARCHER2: file per process over OFI, the shared file over UCX with hints.
                "recommended": [
                    {"pattern": "fpp", "transport": "ofi"},
                    {"pattern": "ssf", "transport": "ucx", "hints": "romio-csc"},
                ],
            },
        }
    ],
}

# There are more processes than cores, which Slurm must allow as well.
_common = {"SLURM_OVERCOMMIT": "1"}

_openmpi = {
    **_common,
    "SLURM_MPI_TYPE": "pmix",
    # A process that waits for another gives its core away, which the other may need.
    "OMPI_MCA_mpi_yield_when_idle": "1",
    # The ROMIO in Open MPI honours hints and prints them; OMPIO does neither.
    "OMPI_MCA_io": "romio321",
}
if os.geteuid() == 0:
    _openmpi |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def _environment(name: str, mpi: str, transport: str, env_vars: dict) -> dict:
    return {
        "name": name,
        "cc": f"mpicc.{mpi}",
        "cxx": "",
        "ftn": f"mpifort.{mpi}",
        "features": [transport],
        "extras": {"mpi": mpi},
        "env_vars": [list(item) for item in env_vars.items()],
    }


environments = [
    _environment(
        "openmpi-ofi",
        "openmpi",
        "ofi",
        {**_openmpi, "OMPI_MCA_pml": "cm", "OMPI_MCA_mtl": "ofi"},
    ),
    _environment(
        "openmpi-ucx",
        "openmpi",
        "ucx",
        {
            **_openmpi,
            "OMPI_MCA_pml": "ucx",
            # Without these, Open MPI uses UCX only on fast networks.
            "OMPI_MCA_pml_ucx_tls": "any",
            "OMPI_MCA_pml_ucx_devices": "any",
        },
    ),
    _environment("mpich-ucx", "mpich", "ucx", {**_common, "SLURM_MPI_TYPE": "pmi2"}),
]
