"""Collective buffering on and off, as hint presets that any check may have of its own."""

# ROMIO's words, which Cray's and Intel's libraries have from it. Open MPI's own MPI-IO knows no
# such hint, and displays none, so that ROMIO is asked for there.
_ROMIO = {"OMPI_MCA_io": "^ompio", "ROMIO_PRINT_HINTS": "1"}


def _preset(value: str) -> dict:
    hints = {"romio_cb_write": value, "romio_cb_read": value}
    return {"env_vars": _ROMIO, "romio_hints": hints, "hints": hints}


#: By name, in the form of a site's hint presets (contract 4).
COLLECTIVE_BUFFERING = {"cb-on": _preset("enable"), "cb-off": _preset("disable")}
