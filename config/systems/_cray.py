"""Hint presets of Cray's MPI, for the site files of such systems.

Cray's slides on I/O optimization name these hints; docs/cases.md quotes them. The library displays
all of these hints (MPICH_MPIIO_HINTS_DISPLAY), which proves them.
"""


def hint(name: str, value: str) -> dict:
    """Return the preset of one hint."""
    return {
        "mpi": ["cray-mpich"],
        "env_vars": {"MPICH_MPIIO_HINTS": f"*:{name}={value}"},
        "hints": {name: value},
    }


presets = {
    # Twice the library's own value, as displayed on the slides.
    "buffer": hint("cb_buffer_size", "33554432"),
    "direct-io": hint("direct_io", "true"),
}
