"""Finds programs that this suite does not build: IOR, mdtest and IO500.

Pure functions of an entry of `programs` in the site configuration (contract 4); knows no ReFrame.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

#: IOR and mdtest treat it as the end of a path, and write to the part before it.
PATH_SEPARATOR = "@"

OnPath = Callable[[str], str | None]


@dataclass(frozen=True)
class Found:
    """The command that runs a program, and the modules or the Spack spec that bring it."""

    command: str
    modules: tuple[str, ...] = ()
    spack: str | None = None


def find(name: str, entry: Mapping, on_path: OnPath) -> Found | None:
    """The program `name`: by the site's `entry`, else on PATH, else from Spack; None if missing.

    A path in the site file is not checked here, as it may exist on the compute nodes only.
    """
    if "path" in entry or "modules" in entry:
        return Found(entry.get("path", name), tuple(entry.get("modules", ())))
    path = on_path(name)
    if path:
        return Found(path)
    return Found(name, spack=entry["spack"]) if "spack" in entry else None


def how_to_provide(name: str) -> str:
    """What is missing and the remedy, in one line."""
    return (
        f"{name}: put it on PATH, or name its path, modules or Spack spec in the site "
        f"configuration, under 'programs'"
    )


def how_to_name(name: str, path: str) -> str:
    """Why the program cannot write to this path, and the remedy, in one line."""
    return (
        f"unusable path: {name} would cut {path} at the {PATH_SEPARATOR}: name another path of the "
        "file system in the site configuration, such as a link"
    )
