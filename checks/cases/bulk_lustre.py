"""The bulk Lustre experiment: one process, all at random, or each target from one node."""

import reframe as rfm
from reframe.core.builtins import parameter

from . import shapes
from .base import Published
from .compared import ComparedCase

# A target's number is that of a stripe, where the file system does not tell the real one.
ASSUMED_TARGETS = 4

MIB_PER_GIB = 1024

# For each file `path stripe_size ost ...`, from `lfs getstripe` of files with a plain layout.
_TABLE = (
    'find "$run_directory" -type f | sort | xargs lfs getstripe | awk '
    '\'/^[^[:space:]]/ && NF == 1 {if (osts) print path, size osts; path = $1; osts = ""} '
    "/stripe_size/ {size = $2} "
    '$1 ~ /^[0-9]+$/ {osts = osts " " $1} '
    'END {if (osts) print path, size osts}\' > "$run_directory.table"'
)


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
        """Whether the file system tells on which targets the stripes are."""
        return self.file_system_type == "lustre"

    @property
    def place(self) -> str:
        return '--layout="$run_directory.table"' if self.reads_layout else super().place

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
        """How many targets the stripes are taken to be on."""
        return max(self.stripe_count_asked or 0, ASSUMED_TARGETS)

    def before_each(self) -> list[str]:
        if not self.reads_layout:
            return []
        # benchio wants them empty; they keep their layout.
        names = f"seq -f '%06g' 1 {self.shape.files}"
        return [
            f'if [ ! -e "$run_directory.table" ]; then {names} | '
            f'(cd "$run_directory" && xargs touch) && {_TABLE}; '
            'else find "$run_directory" -type f -exec truncate -s 0 {} +; fi',
        ]


@rfm.simple_test
class BulkLustreSmallFiles(BulkLustreCase):
    """10,000 files of 1 MiB: 1310 MB/s by one writer, 9925 by all, 18,329 aligned."""

    descr = "Bulk Lustre: many small files, read and written by all processes or aligned"
    published = Published(nodes=16, tasks_per_node=4, gib=10000 / MIB_PER_GIB)
    stripes = "one"

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        return shapes.stripes(volume, files=None)


@rfm.simple_test
class BulkLustreLargeFile(BulkLustreCase):
    """One file of 100 GB: 1054 MB/s by one writer, 962 by all, 5693 aligned."""

    descr = "Bulk Lustre: one large striped file, read and written by all processes or aligned"
    published = Published(nodes=16, tasks_per_node=4, gib=100)
    stripes = "all"

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        return shapes.stripes(volume)
