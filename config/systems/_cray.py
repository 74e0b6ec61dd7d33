"""Hint presets of Cray's MPI, for the site files of such systems.

Cray's slides on I/O optimization name these hints, and docs/cases.md has what they say. The library
displays all of them (MPICH_MPIIO_HINTS_DISPLAY), which proves them.
"""


def hint(name: str, value: str) -> dict:
    """Return the preset of one hint."""
    return {
        "mpi": ["cray-mpich"],
        "env_vars": {"MPICH_MPIIO_HINTS": f"*:{name}={value}"},
        "hints": {name: value},
    }


presets = {
    # Twice what the library displays of itself on the slides.
    "buffer": hint("cb_buffer_size", "33554432"),
    "direct-io": hint("direct_io", "true"),
}
