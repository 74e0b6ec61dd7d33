"""The bulk Lustre experiment: one process, all processes, or each target from one node."""

import math
import statistics
from dataclasses import replace
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from ..base.file_system import stripe_counts
from ..base.stage import read_output
from . import shapes
from .base import Case, Published
from .compared import ComparedCase

MIB_PER_GIB = 1024

#: The file sizes for which all stripe counts are measured.
FILES_MIB = (64, 1024, 16384, 102400)


#: The file of bulk_lustre.sh with the number of layouts read, and the start and end times in ns.
SCANS_FILE = "scans.txt"
NS = 10**9


class BulkLustreCase(ComparedCase):
    """Files or stripes assigned to processes in one of three ways, against one process for all."""

    source = "bulk-lustre"
    other_layer = "aligned-single"

    #: The assignment: files at random, as the experiment's "all ranks"; stripes at random, which it
    #: does not have; or each target to processes of one node.
    access = parameter(["aligned-files", "aligned-random", "aligned"])

    def layer_of_point(self) -> str:
        return self.access

    @property
    def reads_layout(self) -> bool:
        """Whether the job asks on which targets the stripes are.

        It always does if the layout names the targets, as the layout has the stripe size, too.
        """
        is_aligned = self.access == "aligned"
        return self.striping.names_targets or (is_aligned and self.striping.lists_stripes)

    def lacking(self) -> list[str]:
        reasons = super().lacking()
        if self.access == "aligned" and not self.striping.lists_stripes:
            reasons.append(
                "aligns accesses with storage targets, which only Lustre, BeeGFS and CephFS show: "
                f"{self.file_system} is {self.file_system_type}"
            )
        elif (
            self.reads_layout
            and self.targets_seen is None
            and not (self.striping.names_targets or self.is_dry_run())
        ):
            reasons.append(
                "aligns accesses with storage targets, and the preflight could not see any"
            )
        return reasons

    def common_options(self) -> list[str]:
        options = super().common_options()
        if not self.reads_layout:
            # The other accesses do not need the target of a stripe.
            size = self.asked_striping.size_kib or 1024
            options += [f"--files={self.shape.files}", f"--stripe-size={size}K"]
        return options

    def write_command(self) -> None:
        super().write_command()
        if self.reads_layout:
            self.scripts = (*self.scripts, Path(__file__).with_suffix(".sh"))

    def before_program(self) -> list[str]:
        if not self.reads_layout:
            return super().before_program()
        return [
            *super().before_program(),
            f"number_of_files={self.shape.files}",
            f"bytes_per_file={math.ceil(self.shape.bytes / self.shape.files)}",
        ]

    def further_values(self) -> dict[str, float]:
        """The rate at which file layouts are read, before the files are written."""
        scans = read_output(Path(self.stagedir) / SCANS_FILE).splitlines()
        numbers = (map(int, scan.split()) for scan in scans)
        rates = [files * NS / (end - start) for files, start, end in numbers]
        return {"scan_rate": statistics.median(rates)} if rates and self.shape.files > 1 else {}


@rfm.simple_test
class BulkLustreSmallFiles(BulkLustreCase):
    """10,000 files of 1 MiB: 1310 MiB/s by one writer, 9925 by all, 18,329 aligned."""

    published = Published(nodes=16, tasks_per_node=4, gib=10000 / MIB_PER_GIB)
    stripes = "one"

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        return shapes.stripes(volume, files=None)


@rfm.simple_test
class BulkLustreLargeFile(BulkLustreCase):
    """One file of 100 GiB: 1054 MiB/s by one writer, 962 by all, 5693 aligned."""

    published = Published(nodes=16, tasks_per_node=4, gib=100, stripe_counts=(16,))
    stripes = "published"
    stripe_count_asked = stripe_counts(16)

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        return shapes.stripes(volume)


@rfm.simple_test
class BulkLustreRounds(BulkLustreSmallFiles):
    """Existing files, read in rounds that keep their data in memory."""

    # 11,100 small files of 11,639,193,600 bytes, read by 4 processes on each of 4 nodes
    published = Published(nodes=4, tasks_per_node=4, gib=11100 / MIB_PER_GIB)
    operations = ("read",)
    metrics = ("read_bw",)

    #: The seed of the data, as a read without a write must know the data.
    seed = variable(int, value=1)

    def case_settings(self) -> list[str]:
        return ["cache=kept"]

    def common_options(self) -> list[str]:
        left_out = ("fsync", "--keep")
        options = [each for each in super().common_options() if each not in left_out]
        return [*options, "--no-write", f"--seed={self.seed}", "--cache=none"]

    def write_command(self) -> None:
        super().write_command()
        self.scripts = (*self.scripts, Path(__file__).with_name("reading.sh"))


@rfm.simple_test
class BulkLustreStripeCounts(Case):
    """One file of each size over each stripe count: `iobands advise` gives the best for each."""

    source = "bulk-lustre"
    layer = "mpiio"
    # The experiment names it as its next step; the sizes are this suite's choice.
    published = Published(nodes=16, tasks_per_node=4, gib=100)
    stripes = "each"
    needs_stripes = "compares stripe counts"

    #: The size of the file.
    file_mib = parameter(FILES_MIB)

    sizing = ("scale", "file_mib")

    def size_for(self, nodes: int) -> None:
        self.published = replace(self.published, gib=self.file_mib / MIB_PER_GIB)
        super().size_for(nodes)

    # If the scale has no room for this size, the file would be smaller.
    @run_after("init")
    def leave_out_larger(self) -> None:
        if self.volume_mib < self.file_mib and self.file_mib != FILES_MIB[0]:
            self.valid_systems = []
