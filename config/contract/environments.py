"""The programming environments of a site: their MPI library, and its transport."""

from __future__ import annotations

from pathlib import Path

from .fields import SiteConfigurationError, check_choice, check_fields
from .words import MPI_LIBRARIES, TRANSPORTS

_ENVIRONMENT_EXTRAS = {"mpi": (str, None)}


def check_environments(environments: list[dict], path: Path) -> None:
    """Check what iobands reads of the programming environments of a site file.

    Raises:
        SiteConfigurationError: something is unknown, or a transport could not be proven.
    """
    for environment in environments:
        where = f"{path}: environment {environment['name']!r}"
        extras = environment.get("extras", {})
        check_fields(extras, _ENVIRONMENT_EXTRAS, f"{where}: extras")
        if "mpi" in extras:
            check_choice(extras["mpi"], MPI_LIBRARIES, f"{where}: mpi")
        named = [name for name in environment.get("features", []) if name in TRANSPORTS]
        if len(named) > 1:
            raise SiteConfigurationError(
                f"{where}: has the transports {' and '.join(named)}; give each its environment"
            )
        if named and "mpi" not in extras:
            raise SiteConfigurationError(
                f"{where}: the transport {named[0]!r} can be proven only of an MPI library that "
                f"is known; add to it 'extras': {{'mpi': ...}}, one of: {', '.join(MPI_LIBRARIES)}"
            )
