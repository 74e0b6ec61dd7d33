"""Which transport carried the messages of an MPI program, by its output and its libraries.

Two sources serve any program, outside of every clock: what the library prints while it starts,
and the libraries that the loader resolves for the program.
"""

import re

#: Variables that make each MPI library name its transport. Only Open MPI prints it on all ranks.
REPORT_VARIABLES = {
    # The point-to-point layer and, below its layer `cm`, the one that matches messages.
    "openmpi": {"OMPI_MCA_pml_base_verbose": "10", "OMPI_MCA_mtl_base_verbose": "10"},
    "mpich": {"MPIR_CVAR_DEBUG_SUMMARY": "1"},
    "cray-mpich": {"MPICH_ENV_DISPLAY": "1"},
    "intel-mpi": {"I_MPI_DEBUG": "1"},
}

# MPICH and its derivatives are built for one transport, and only its code prints these.
_REPORTS = {
    "mpich": {"ucx": r"== UCX netmod Capability ==", "ofi": r"libfabric provider: \S"},
    "cray-mpich": {
        "ucx": r"PE \d+: MPICH/UCX environment settings|PE \d+: +MPICH_UCX_\w+ +=",
        "ofi": r"PE \d+: MPICH/OFI environment settings|PE \d+: +MPICH_OFI_\w+ +=",
    },
    "intel-mpi": {"ofi": r"MPI startup\(\): libfabric provider: \S"},
}

# The point-to-point layers, and the ones below the layer `cm`, which carries nothing by itself.
_OPENMPI_COMPONENTS = {"ucx", "ob1", "yalla", "ofi", "psm", "psm2", "portals4"}

# The MPI libraries with MPICH's binary interface, by their names for the loader. Others load
# their transports as plug-ins, or load more of them than they use.
_MPICH_LIBRARY = re.compile(r"\blibmpi\w*\.so\.12\b")
_TRANSPORT_LIBRARIES = {"ofi": r"\blibfabric\.so", "ucx": r"\blibucp\.so"}


def reported(mpi: str | None, said: str) -> set[str]:
    """The transports that the MPI library `mpi` named in the program's output."""
    if mpi == "openmpi":
        # Open MPI also opens components that it does not select, so only these lines count. Other
        # frameworks print the same words, so the ones that carry messages are picked out.
        selected = re.findall(r"select: component (\w+) selected", said)
        return _OPENMPI_COMPONENTS.intersection(selected)
    patterns = _REPORTS.get(mpi, {})
    return {transport for transport, pattern in patterns.items() if re.search(pattern, said)}


def linked(listing: str) -> set[str]:
    """The transport of an MPICH by the output of `ldd`; empty if that is no evidence."""
    if not _MPICH_LIBRARY.search(listing):
        return set()
    found = {
        transport
        for transport, pattern in _TRANSPORT_LIBRARIES.items()
        if re.search(pattern, listing)
    }
    # libfabric may load UCX for itself, so both together are no evidence.
    return found if len(found) == 1 else set()


def in_effect(mpi: str | None, said: str, listing: str) -> str | None:
    """The transport by all sources, or the name of another component of Open MPI.

    `None` stands for no evidence; contradicting sources are all named.
    """
    return " and ".join(sorted(reported(mpi, said) | linked(listing))) or None
