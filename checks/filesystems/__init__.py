"""Types of file systems: how each stripes files, and how their layout is read back.

A type is a module that reads layouts back, a script of bash for jobs, and a line below.
"""

from .beegfs import BeegfsStriping
from .cephfs import CephStriping
from .gpfs import GpfsStriping
from .layout import (
    Asked,
    Layout,
    Striping,
    StripingError,
    TargetFaults,
    Targets,
    mount_asked,
    mount_names,
    uneven,
)
from .lustre import LustreStriping

BACKENDS: dict[str, Striping] = {
    "lustre": LustreStriping(),
    "cephfs": CephStriping(),
    "beegfs": BeegfsStriping(),
    "gpfs": GpfsStriping(),
    "posix": Striping(),
}

__all__ = [
    "BACKENDS",
    "Asked",
    "Layout",
    "Striping",
    "StripingError",
    "TargetFaults",
    "Targets",
    "mount_asked",
    "mount_names",
    "uneven",
]
