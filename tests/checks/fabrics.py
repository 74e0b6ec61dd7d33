"""MPI transports that a single machine can use, each as an environment in a site file."""

import runpy
from pathlib import Path

LOCAL = Path(__file__).resolve().parents[2] / "config" / "systems" / "local.py"

# What lets Open MPI run on this machine at all.
_LOCAL_VARIABLES = dict(runpy.run_path(str(LOCAL))["environments"][0]["env_vars"])

# Without UCX's fabrics, Open MPI refuses it where there is no fast network.
_OPENMPI = {
    "ofi": {"OMPI_MCA_pml": "cm", "OMPI_MCA_mtl": "ofi"},
    "ucx": {
        "OMPI_MCA_pml": "ucx",
        "OMPI_MCA_pml_ucx_tls": "any",
        "OMPI_MCA_pml_ucx_devices": "any",
    },
}


def _environment(mpi, transport, variables):
    return {
        "name": f"{mpi}-{transport}",
        "cc": f"mpicc.{mpi}",
        "cxx": "",
        "ftn": f"mpifort.{mpi}",
        "features": [transport],
        "extras": {"mpi": mpi},
        # The speed of the program does not matter to the tests, but the speed of its build does.
        "env_vars": [list(item) for item in {**variables, "CMAKE_BUILD_TYPE": "Debug"}.items()],
    }


def environments(programs: Path) -> list[dict]:
    """openmpi-ofi, openmpi-ucx and mpich-ucx; `programs` becomes a directory of MPICH's mpirun."""
    programs.mkdir()
    # Not a link: MPICH's launcher looks for a second program in its own directory.
    launcher = programs / "mpirun"
    launcher.write_text('#!/bin/sh\nexec mpirun.mpich "$@"\n', encoding="utf-8")
    launcher.chmod(0o755)
    made = [
        _environment(
            "openmpi", transport, {**_LOCAL_VARIABLES, **variables, "OMPI_MCA_io": "romio321"}
        )
        for transport, variables in _OPENMPI.items()
    ]
    return [*made, _environment("mpich", "ucx", {"PATH": f"{programs}:$PATH"})]
