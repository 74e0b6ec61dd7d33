"""The common parts of the cases of Cray's slides."""

from ..base.file_system import stripe_counts
from . import shapes
from .base import Published
from .compared import ComparedCase

#: The number of targets when a script is only written: as in the slides' example.
EXAMPLE_TARGETS = 8

#: 16 snapshots of 1024 x 1024 x 512 in single precision from 1024 cores.
RTM = Published(nodes=32, tasks_per_node=32, gib=32, stripe_counts=(4, 16))


class CrayCase(ComparedCase):
    """A setting of the slides against another."""

    source = "cray-slides"

    def lacking_cray(self, setting: str) -> list[str]:
        """The reason if the MPI library is not Cray's."""
        mpi = self.current_environ.extras.get("mpi")
        return [] if mpi == "cray-mpich" else [f"sets {setting}, which only Cray's MPI has"]


class CrayRtm(CrayCase):
    """The file of RTM: snapshots, with the published stripe counts."""

    layer = "snapshot"
    published = RTM
    stripes = "published"
    stripe_count_asked = stripe_counts(*RTM.stripe_counts)

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        return shapes.snapshots(volume)
