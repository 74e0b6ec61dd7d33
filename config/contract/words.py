"""The words that a site file may use, each of which the checks know what to do with."""

# The striping backends of checks/striping; see there for how to add one.
FILE_SYSTEM_TYPES = ("lustre", "cephfs", "beegfs", "gpfs", "posix")
PROGRAMS = ("ior", "mdtest", "io500.sh")
TOOLS = ("benchio", "ior", "mdtest", "io500")
PATTERNS = (
    *("serial", "fpp", "fpn", "ssf", "ssf-independent"),
    *("strided-47008", "strided-1000000", "strided-10000"),
    *("metadata-easy", "metadata-hard", "io500", "io500-limited"),
)
TRANSPORTS = ("default", "ofi", "ucx")
# What checks/transport.py knows how to ask for the transport in effect.
MPI_LIBRARIES = ("openmpi", "mpich", "cray-mpich", "intel-mpi")
