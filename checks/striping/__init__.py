"""Striping backends: how files are striped on each type of file system, and what came of it.

A backend gives the shell commands that stripe the run directory and that read the layout back
into files of the stage directory, and reads those files. A new type of file system is one more
module here, one line below, and its words in config/contract.
"""

from .beegfs import BeegfsStriping
from .cephfs import CephStriping
from .layout import Asked, Layout, Striping, StripingError, Targets
from .lustre import LustreStriping
from .posix import NoStriping
from .presence import mount_names, require_commands

BACKENDS: dict[str, Striping] = {
    "lustre": LustreStriping(),
    "cephfs": CephStriping(),
    "beegfs": BeegfsStriping(),
    "gpfs": NoStriping(mounted_as=("gpfs",)),
    "posix": NoStriping(),
}

__all__ = [
    "BACKENDS",
    "Asked",
    "Layout",
    "StripingError",
    "Targets",
    "mount_names",
    "require_commands",
]
