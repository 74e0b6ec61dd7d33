"""Striping backends: how files are striped on each type of file system, and what came of it.

A backend gives the shell commands that stripe the run directory and that read the layout back
into files of the stage directory, and reads those files. A new type of file system is one more
module here, one line below, and one in config/contract.py.
"""

from . import lustre, posix
from .layout import Layout, StripingError

BACKENDS = {"lustre": lustre.LustreStriping(), "posix": posix.PosixStriping()}

__all__ = ["BACKENDS", "Layout", "StripingError"]
