"""A template for a site: copy it to config/systems/<name>.py and change what is marked EDIT.

It matches no host. It has every entry; docs/contracts.md, "Contract 4", says what each means.
Before you submit anything, look at what would be submitted:

    iobands reframe -- --system=<name>:compute -l
    iobands reframe -- --system=<name>:compute -t smoke --dry-run

and read the scripts below stage/. A mistake in this file stops ReFrame with a message that says
where it is.
"""

schema = 4  # the version of contract 4

system = {
    "name": "example",  # EDIT: as the file is called
    "descr": "An example",  # EDIT
    # EDIT: what `hostname` says on the nodes that ReFrame runs on; regular expressions.
    "hostnames": [r"^no host is called so$"],
    # With "nomod" the environments' commands load the modules, and a script shows how. To let
    # ReFrame load them: "lmod", "tmod4", ..., and `modules` in the environments.
    "modules_system": "nomod",
    "partitions": [
        {
            "name": "compute",
            "descr": "Compute nodes: 2 × 64 cores",  # EDIT
            # EDIT: or pbspro, lsf, flux, squeue (Slurm without accounting), local
            "scheduler": "slurm",
            "launcher": "srun",  # EDIT: or mpirun, mpiexec, ...; with Flux, local
            # EDIT: options of the scheduler for every job, in its own syntax. Account, reservation,
            # QoS, nodes, time and exclusive use have entries below, the same for every scheduler.
            "access": ["--partition=standard"],
            "sched_options": {"use_nodes_option": True},  # Slurm: also write --nodes
            "env_vars": [["OMP_NUM_THREADS", "1"]],
            "environs": ["gnu-ofi", "gnu-ucx"],  # the first is the default one
            "max_jobs": 1,
            "features": ["io"],  # the checks run on partitions with this feature
            "extras": {
                # EDIT: each file system, by its name in results. The first stripe count is the
                # default one; leave stripe_counts out if files have no stripes.
                "filesystems": {
                    "scratch": {
                        "path": "/scratch/EDIT",
                        "type": "lustre",  # posix if files have no stripes that users can set
                        "medium": "hdd",  # or nvme, or any word
                        "stripe_counts": [1, -1],  # -1: all targets
                        "min_free_gib": 1024,  # a run that would leave less free is refused
                        # How many OSTs may take no new files, such as drained ones, before checks
                        # with -1 are skipped. Only OSTs that the MDS avoids count: an OST that is
                        # deactivated on the clients alone still gets files.
                        "max_inactive_targets": 0,
                        # If files lie in a pool, even by the directory's default, name it, and say
                        # how many targets -1 stands for there. Give only the number if users
                        # cannot count the targets, as on many CephFS and BeeGFS.
                        # "striping": {"pool": "flash", "targets": 24},
                    },
                    "projects": {
                        "path": "/projects/EDIT",
                        "type": "posix",
                        "medium": "hdd",
                        # Without it, the local disk is measured if nothing is mounted there.
                        "mounted_as": "nfs4",
                        # Limits under which its checks are skipped; these are the defaults.
                        "min_free_inodes": 0,
                        "max_quota_percent": 95,
                    },
                },
                # EDIT: how large the checks are. The first scale is the default one; smoke takes
                # the smallest. A write should take more than a second. `nodes` may be "idle" or
                # "all": as many as the scheduler has then (Slurm only). Each number of nodes makes
                # a series of its own, so give a number for runs that you compare from day to day.
                "scales": {
                    "standard": {
                        "nodes": 16,
                        "tasks_per_node": 128,
                        "mib_per_task": 32,
                        "repeats": 3,  # in one job; 1 without it
                        "time_limit": "20m",  # 30m without it
                    },
                    "small": {
                        "nodes": 1,
                        "tasks_per_node": 8,
                        "mib_per_task": 256,
                        "exclusive": False,  # share the node; True without it
                    },
                },
                # EDIT: environment variables and MPI-IO hints that belong together, under a name.
                # `hints` must be in effect, or the run fails. ROMIO obeys hints and reports them;
                # Open MPI selects ROMIO by itself only on Lustre.
                "hint_presets": {
                    "more-aggregators": {
                        "env_vars": {"OMPI_MCA_io": "^ompio"},
                        "romio_hints": {"cb_config_list": "*:2"},
                        "hints": {"cb_config_list": "*:2"},
                    },
                },
                # EDIT: what you recommend to your users. A field left out matches any value, but
                # a scale left out is the first one. The tag daily selects these settings, and the
                # default settings of the same patterns.
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
                        "hints": "more-aggregators",
                    },
                ],
                # Only if a tag should select something else. weekly always includes daily.
                "selections": {
                    "weekly": [{"scale": "standard", "hints": "default", "transport": "ofi"}],
                },
                # How often you run each tag, so that a missing run is noticed from the first day;
                # without it, the intervals are learned.
                "schedule": {"daily": "1d", "weekly": "7d"},
                # EDIT: where IOR, mdtest and IO500 are if not on PATH: a path, modules, or a Spack
                # spec to install. Without a program, its checks are skipped.
                "programs": {
                    "ior": {"modules": ["ior/4.0.0"]},
                    # "mdtest": {"path": "/opt/ior/bin/mdtest"},
                    # "io500.sh": {"path": "/opt/io500/io500.sh"},
                    # "ior": {"spack": "ior@4.0.0 +hdf5 +ncmpi"},
                },
                # IOBANDS_ACCOUNT, IOBANDS_RESERVATION and IOBANDS_QOS in the environment take
                # precedence over account, reservation and qos.
                "account": "EDIT",  # "" if jobs need none
                # A job that waits longer than this is cancelled; without it, no job is.
                "max_pending_time": "6h",
                "max_clock_skew_seconds": 1,  # of nodes and file systems; more is reported
                # "reservation": "maintenance",
                # "qos": "standard",
            },
        }
    ],
}

# EDIT: one environment for each MPI transport that your users have; the feature says which.
environments = [
    {
        "name": "gnu-ofi",
        "cc": "mpicc",
        "cxx": "mpicxx",
        "ftn": "mpifort",
        "features": ["ofi"],
        "extras": {"mpi": "openmpi"},
        "env_vars": [["OMPI_MCA_pml", "cm"], ["OMPI_MCA_mtl", "ofi"]],
        "prepare_cmds": ["module load gcc openmpi"],
    },
    {
        "name": "gnu-ucx",
        "cc": "mpicc",
        "cxx": "mpicxx",
        "ftn": "mpifort",
        "features": ["ucx"],
        "extras": {"mpi": "openmpi"},
        "env_vars": [["OMPI_MCA_pml", "ucx"]],
        "prepare_cmds": ["module load gcc openmpi"],
    },
]
