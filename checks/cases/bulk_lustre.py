"""The bulk Lustre experiment: one process, all at random, or each target from one node."""

from pathlib import Path

import reframe as rfm
from reframe.core.builtins import parameter

from . import shapes
from .base import Published
from .compared import ComparedCase

# A target's number is that of a stripe, where the file system does not show the real one.
ASSUMED_TARGETS = 4

MIB_PER_GIB = 1024


class BulkLustreCase(ComparedCase):
    """Stripes dealt to the processes in one of three ways, against one process for all."""

    source = "bulk-lustre"
    other_layer = "aligned-single"

    #: How the stripes are dealt: at random, or each target to processes of one node.
    access = parameter(["aligned-random", "aligned"])

    def layer_of_point(self) -> str:
        return self.access

    @property
    def reads_layout(self) -> bool:
        """Whether the file system shows on which targets the stripes are."""
        return self.file_system_type == "lustre"

    def common_options(self) -> list[str]:
        options = super().common_options()
        if not self.reads_layout:
            # As a file system would have it that puts the stripes on its targets in turn.
            size = self.asked_striping.size_kib or 1024
            options += [
                f"--files={self.shape.files}",
                f"--stripe-size={size}K",
                f"--stripe-count={self.asked_targets}",
            ]
        return options

    @property
    def asked_targets(self) -> int:
        """On how many targets the stripes are assumed to be."""
        return max(self.stripe_count_asked or 0, ASSUMED_TARGETS)

    def write_command(self) -> None:
        super().write_command()
        if self.reads_layout:
            self.scripts = (*self.scripts, Path(__file__).with_suffix(".sh"))

    def before_program(self) -> list[str]:
        files = [f"number_of_files={self.shape.files}"] if self.reads_layout else []
        return [*super().before_program(), *files]


@rfm.simple_test
class BulkLustreSmallFiles(BulkLustreCase):
    """10,000 files of 1 MiB: 1310 MB/s by one writer, 9925 by all, 18,329 aligned."""

    published = Published(nodes=16, tasks_per_node=4, gib=10000 / MIB_PER_GIB)
    stripes = "one"

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        return shapes.stripes(volume, files=None)


@rfm.simple_test
class BulkLustreLargeFile(BulkLustreCase):
    """One file of 100 GB: 1054 MB/s by one writer, 962 by all, 5693 aligned."""

    published = Published(nodes=16, tasks_per_node=4, gib=100)
    stripes = "all"

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        return shapes.stripes(volume)
