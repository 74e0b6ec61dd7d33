"""Where programs come from that this suite does not build: IOR, mdtest and IO500.

Pure functions of an entry of `programs` in the site configuration (contract 4); knows no ReFrame.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Found:
    """The command that runs a program, and the modules that must be loaded for it."""

    command: str
    modules: tuple[str, ...] = ()


def find(name: str, entry: Mapping, on_path: Callable[[str], str | None]) -> Found | None:
    """Where `name` is: as the site's `entry` says, else on PATH; None where it is not.

    What the site names is not looked for here: it may be there on the compute nodes alone.
    """
    if "path" in entry or "modules" in entry:
        return Found(entry.get("path", name), tuple(entry.get("modules", ())))
    path = on_path(name)
    return Found(path) if path else None


def how_to_provide(name: str) -> str:
    """What is missing and what helps, in one line."""
    return (
        f"{name}: put it on PATH, or name its path, modules or Spack spec as 'programs': "
        f"{{'{name}': ...}} in the partition's extras"
    )
