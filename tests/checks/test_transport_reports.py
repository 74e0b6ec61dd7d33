"""MPI libraries' reports of their transport, and why they do not start, in their own formats.

The lines of Open MPI 4.1 and MPICH 4.0 were captured; the reports of Cray's libraries and Intel's
have the form that their users published.
"""

import pytest

from checks.base.failure import reason_in
from checks.base.transport_reports import in_effect

OPENMPI_OFI = """\
[n1:231] mca: base: components_open: found loaded component cm
[n1:231] mca: base: components_open: component ob1 open function successful
[n1:231] select: component ofi selected
[n1:231] select: component monitoring not in the include list
[n1:231] select: component cm selected
[n1:231] select: component romio321 selected
[n2:97] select: component ofi selected
[n2:97] select: component cm selected
"""
CRAY_OFI = """\
PE 0: MPICH/SMP environment settings =================================
PE 0: MPICH/OFI environment settings =================================
PE 0:   MPICH_OFI_USE_PROVIDER                         = verbs;ofi_rxm
PE 0: MPICH MPIIO environment settings ===============================
PE 0:   MPICH_MPIIO_OFI_STARTUP_CONNECT                = disable
"""
MPICH_UCX_LIBRARIES = """\
	libmpich.so.12 => /lib/x86_64-linux-gnu/libmpich.so.12 (0x00007f84a3000000)
	libucp.so.0 => /lib/x86_64-linux-gnu/libucp.so.0 (0x00007f84a2ef0000)
	libucs.so.0 => /lib/x86_64-linux-gnu/libucs.so.0 (0x00007f84a2e80000)
"""
CRAY_OFI_LIBRARIES = """\
	libmpi_gnu_91.so.12 => /opt/cray/pe/lib64/libmpi_gnu_91.so.12 (0x00007f1be1a00000)
	libfabric.so.1 => /opt/cray/libfabric/1.12.1/lib64/libfabric.so.1 (0x00007f1be0e00000)
"""
OPENMPI_LIBRARIES = """\
	libmpi.so.40 => /usr/lib/libmpi.so.40 (0x00007f6ad9000000)
	libfabric.so.1 => /usr/lib/libfabric.so.1 (0x00007f6ad8000000)
"""


@pytest.mark.parametrize(
    ("mpi", "said", "listing", "expected"),
    [
        ("openmpi", OPENMPI_OFI, "", "ofi"),
        ("openmpi", "[n1:5] select: component ucx selected\n", OPENMPI_LIBRARIES, "ucx"),
        ("openmpi", "[n1:5] select: component ob1 selected\n", OPENMPI_LIBRARIES, "ob1"),
        # The upper layer is known, but not the transport below it.
        ("openmpi", "[n1:5] select: component cm selected\n", OPENMPI_LIBRARIES, None),
        ("mpich", "==== UCX netmod Capability ====\n", "", "ucx"),
        ("mpich", "libfabric provider: tcp - 10.0.0.0/24\n", "", "ofi"),
        ("mpich", "", MPICH_UCX_LIBRARIES, "ucx"),
        ("cray-mpich", CRAY_OFI, "", "ofi"),
        ("cray-mpich", CRAY_OFI, CRAY_OFI_LIBRARIES, "ofi"),
        ("cray-mpich", "", CRAY_OFI_LIBRARIES, "ofi"),
        ("cray-mpich", CRAY_OFI, MPICH_UCX_LIBRARIES, "ofi and ucx"),
        # A libfabric that has a provider of UCX.
        ("mpich", "", CRAY_OFI_LIBRARIES + MPICH_UCX_LIBRARIES, None),
        ("intel-mpi", "[0] MPI startup(): libfabric provider: mlx\n", "", "ofi"),
        # The library is not named, but the loaded libraries may still show the transport.
        (None, OPENMPI_OFI, MPICH_UCX_LIBRARIES, "ucx"),
        (None, OPENMPI_OFI, OPENMPI_LIBRARIES, None),
        ("mpich", "", "\tnot a dynamic executable\n", None),
    ],
)
def test_transport_in_effect(mpi, said, listing, expected):
    assert in_effect(mpi, said, listing) == expected


NO_COMPONENT = """\
--------------------------------------------------------------------------
A requested component was not found, or was unable to be opened.  This
means that this component is either not installed or is unable to be
used on your system (e.g., sometimes this means that shared libraries
that the component requires are unable to be found/loaded).

Host:      n1
Framework: pml
Component: yalla
--------------------------------------------------------------------------
--------------------------------------------------------------------------
It looks like MPI_INIT failed for some reason; your parallel process is
likely to abort.
"""
NO_UCX = """\
No components were able to be opened in the pml framework.
[n1:23154] PML ucx cannot be selected
"""
MPICH_STACK = """\
Abort(672779919): Fatal error in internal_Init: Other MPI error, error stack:
internal_Init(59)........: MPI_Init(argc=(nil), argv=(nil)) failed
MPII_Init_thread(209)....:
MPIDI_UCX_init_local(252):  ucx function returned with failed status(ucx_init.c 252)
Abort(672779919): Fatal error in internal_Init: Other MPI error, error stack:
internal_Init(59)........: MPI_Init(argc=(nil), argv=(nil)) failed
"""


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (NO_UCX, "PML ucx cannot be selected"),
        (MPICH_STACK, "ucx function returned with failed status(ucx_init.c 252)"),
        # UCX's message is closer to the cause than MPICH's, and the program's is the closest.
        (
            MPICH_STACK + "[17.25] [n1:7 :0] ucp_context.c:1276 UCX  ERROR no usable transports\n",
            "UCX ERROR no usable transports",
        ),
        (NO_UCX + "benchio: rank 3: open: No space left\n", "benchio: rank 3: open: No space left"),
        (
            "benchio: error while loading shared libraries: libucp.so.0: cannot open\n",
            "benchio: error while loading shared libraries: libucp.so.0: cannot open",
        ),
        (
            "/opt/benchio: error while loading shared libraries: libucp.so.0: cannot open\n",
            "error while loading shared libraries: libucp.so.0: cannot open",
        ),
        ("slurmstepd: noise\nsrun: fatal: no such plug-in\n", "srun: fatal: no such plug-in"),
        ("all is well\n", None),
        ("", None),
    ],
)
def test_why_it_failed_in_one_line(said, reason):
    assert reason_in(said) == reason


def test_a_component_that_is_not_there_is_named():
    assert reason_in(NO_COMPONENT) == (
        "A requested component was not found Framework: pml Component: yalla"
    )
