"""Mahti, a supercomputer of CSC, as its documentation describes it.

Sources: CSC user guide (docs.csc.fi): "Technical details about Mahti" (cores, network, 24 OSTs for
scratch), "Available batch job partitions", "Example batch job scripts for Mahti", "Compiling on
Mahti" (Open MPI) and "Lustre performance optimization", whose measurement is the scale here. The
guide says that Mahti's compute nodes are retired at the end of August 2026. What it does not say
is marked EDIT.

The account comes from the environment (`export IOBANDS_ACCOUNT=project_...`), and with it the
directories below /scratch and /projappl. The home directory is the user's own.
"""

import runpy
from pathlib import Path

schema = 4  # of contract 4

_csc = runpy.run_path(str(Path(__file__).with_name("_csc.py")))

_nodes = {
    "descr": "Compute nodes: 2 × AMD EPYC 7H12, 128 cores",
    "access": ["--partition=medium"],
    "processor": {"num_cpus": 128, "num_cpus_per_socket": 64, "num_sockets": 2},
}

# Of the storage areas, scratch has 24 OSTs and 2 MDTs, home and projappl 8 OSTs and 1 MDT each.
system = _csc["system"]("mahti", _nodes)

environments = _csc["environments"]
