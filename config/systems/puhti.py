"""Puhti, a supercomputer of CSC, as its documentation describes it.

Sources: CSC user guide (docs.csc.fi): "Technical details about Puhti" (cores, network, 24 OSTs
shared by all areas), "Available batch job partitions", "Example batch job scripts for Puhti",
"Compiling on Puhti" (Open MPI) and "Lustre performance optimization", whose measurement on Mahti is
the scale here. The guide says that Puhti's compute nodes were retired in July 2026. What it does
not say is marked EDIT.

The account comes from the environment (`export IOBANDS_ACCOUNT=project_...`), and with it the
directories below /scratch and /projappl. The home directory is the user's own.
"""

import runpy
from pathlib import Path

schema = 4  # of contract 4

_csc = runpy.run_path(str(Path(__file__).with_name("_csc.py")))

_nodes = {
    "descr": "Compute nodes: 2 × Intel Xeon Gold 6230, 40 cores",
    # Memory must be requested, even with whole nodes; a process holds its data twice.
    "access": ["--partition=large", "--mem-per-cpu=4000"],
    "processor": {"num_cpus": 40, "num_cpus_per_socket": 20, "num_sockets": 2},
}

# The storage areas share 24 OSTs and 4 MDTs: load on one disturbs all.
system = _csc["system"]("puhti", _nodes)

environments = _csc["environments"]
