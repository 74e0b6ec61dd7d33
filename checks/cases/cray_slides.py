"""Cray's slides on I/O optimization: stripes, writers, snapshots; cray_hints.py has the rest."""

from dataclasses import replace

import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from ..base.file_system import stripe_counts
from ..filesystems.layout import ALL_TARGETS
from . import shapes
from .base import Case, Published
from .compared import AgainstFewestStripes, ByNumberOfTargets, Setting
from .cray_base import EXAMPLE_TARGETS, RTM, CrayCase, CrayRtm

#: What each process writes to its own file.
MIB_PER_PROCESS = 128

#: The parts of all processes that write, as 1/n, from few to many.
PARTS = (16, 4, 1)


@rfm.simple_test
class CraySingleWriter(AgainstFewestStripes, CrayCase):
    """One writer over more and more stripes against one stripe: it gains nothing from them."""

    published = Published(nodes=1, tasks_per_node=1, gib=5)
    layer = "serial"
    stripes = "each but one"
    needs_stripes = "compares stripe counts"


@rfm.simple_test
class CraySharedHdf5(CrayCase):
    """One HDF5 file over all stripes against four: 625 s against 1800 s, reading and writing."""

    # 377 GB from 6000 cores
    published = Published(nodes=188, tasks_per_node=32, gib=351)
    layer = "hdf5"
    stripes = "all"
    needs_stripes = "compares stripe counts"

    #: The default of the slides' file system.
    few = 4

    def lacking(self) -> list[str]:
        reasons = super().lacking()
        if self.stripe_count_asked == self.few:
            reasons.append(f"compares all stripes with {self.few}: the site file has no more")
        return reasons

    def sides(self) -> tuple[Setting, Setting]:
        return self.plain(stripe_count=self.few), self.plain()


@rfm.simple_test
class CrayNode(CrayCase):
    """One node with four targets against one: about 1500 MB/s, and 375 from a target."""

    # 32-core nodes; the slides have no volume.
    published = Published(nodes=1, tasks_per_node=32, gib=8, stripe_counts=(4,))
    layer = "mpiio"
    stripes = "published"
    stripe_count_asked = stripe_counts(4)
    needs_stripes = "compares stripe counts"

    def sides(self) -> tuple[Setting, Setting]:
        return self.plain(stripe_count=1), self.plain()


@rfm.simple_test
class CrayOneFile(ByNumberOfTargets, CrayCase):
    """One file over all targets, or as many as processes, against the fewest stripes."""

    # The slides have no sizes for their rules: the sizes are from the snapshots below.
    published = Published(nodes=32, tasks_per_node=32, gib=32)
    layer = "mpiio"
    needs_stripes = "stripes by the number of targets"

    @property
    def by_rule(self) -> int:
        return min(self.number_of_targets or EXAMPLE_TARGETS, self.tasks)


@rfm.simple_test
class CrayFewFiles(ByNumberOfTargets, CrayCase):
    """Fewer files than targets, over all of them together, against the fewest stripes each."""

    # The slides' example: 4 files at the same time on 8 OSTs.
    published = Published(nodes=4, tasks_per_node=1, gib=4)
    layer = "proc"
    needs_stripes = "stripes by the number of targets"

    @property
    def by_rule(self) -> int:
        return max(1, (self.number_of_targets or EXAMPLE_TARGETS) // self.tasks)


@rfm.simple_test
class CrayTargetsPerAggregator(CrayCase):
    """Four targets an aggregator against one, two and eight."""

    published = Published(nodes=32, tasks_per_node=32, gib=32, stripe_counts=(16,))
    layer = "mpiio"
    stripes = "published"
    stripe_count_asked = stripe_counts(16)
    needs_stripes = "compares numbers of aggregators for a number of stripes"

    #: The number of targets for each aggregator, in place of four.
    targets_each = parameter([1, 2, 8])

    def case_settings(self) -> list[str]:
        return [f"against {self.targets_each}"]

    @property
    def aggregators(self) -> tuple[int, int]:
        """The number of aggregators with this many targets each, and with four."""
        count = self.stripe_count_asked or 1
        stripes = (self.number_of_targets or EXAMPLE_TARGETS) if count == ALL_TARGETS else count
        return max(1, stripes // self.targets_each), max(1, stripes // 4)

    def lacking(self) -> list[str]:
        reasons = super().lacking()
        other, four = (min(each, self.tasks) for each in self.aggregators)
        if other == four and not reasons:
            reasons.append(f"has {four} aggregators on both sides: too few stripes or processes")
        return reasons

    def sides(self) -> tuple[Setting, Setting]:
        other, four = self.aggregators
        return self.hinted(self.through(other)), self.hinted(self.through(four))


class ByCores(rfm.RegressionTestPlugin):
    """Runs with parts of the scale's processes: `iobands compare tasks` compares them."""

    #: The part of the scale's processes that write.
    part = parameter(PARTS, fmt=lambda number: f"1/{number}")

    sizing = ("scale", "part")

    #: Whether a larger part has the same number of processes on this scale.
    as_large_as_another = variable(bool, value=False)

    def placed(self, nodes: int, per_node: int) -> tuple[int, int]:
        sizes = {part: _part(nodes, per_node, part) for part in PARTS}
        larger = [sizes[part] for part in PARTS if part < self.part]
        self.as_large_as_another = sizes[self.part] in larger
        return sizes[self.part]

    # On a small scale several parts have the same number of processes: one of them is enough.
    @run_after("init")
    def leave_out_the_same(self) -> None:
        if self.as_large_as_another:
            self.valid_systems = []


def _part(nodes: int, per_node: int, part: int) -> tuple[int, int]:
    """The nodes, and processes per node, for a part of all processes on the fewest nodes."""
    tasks = max(1, nodes * per_node // part)
    return (tasks // per_node, per_node) if tasks >= per_node else (1, tasks)


@rfm.simple_test
class CrayFilePerProcess(ByCores, Case):
    """File per process, 128 MiB each, from few to many: `iobands compare tasks` compares them."""

    source = "cray-slides"
    # The slides have the size of a file; the number of processes is this suite's choice.
    published = Published(nodes=256, tasks_per_node=16, gib=512)
    layer = "proc"

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        # The same volume for each as when all write.
        mib_per_task = min(MIB_PER_PROCESS, self.scale_settings["mib_per_task"])
        return shapes.array(shapes.Volume(volume.tasks, volume.tasks * mib_per_task))


@rfm.simple_test
class CraySnapshotsByCores(ByCores, Case):
    """RTM: the same 16 snapshots from fewer cores: `iobands compare tasks` compares them."""

    source = "cray-slides"
    layer = "snapshot"
    published = RTM
    stripes = "published"
    stripe_count_asked = stripe_counts(4, 16)

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        return shapes.snapshots(volume)


@rfm.simple_test
class CrayStripesByHint(CrayRtm):
    """RTM: stripes by the hint `striping_factor` against stripes by `lfs setstripe`."""

    needs_stripes = "compares ways to set the stripe count"

    def lacking(self) -> list[str]:
        reasons = super().lacking()
        if self.file_system_type != "lustre" and not reasons:
            reasons.append(
                "takes stripes from a hint, which MPI-IO heeds only on Lustre: "
                f"{self.file_system} is {self.file_system_type}"
            )
        elif self.stripe_count_asked == self.fewest_stripes:
            reasons.append(f"requests {self.fewest_stripes} stripes, which files have anyway")
        return reasons

    def sides(self) -> tuple[Setting, Setting]:
        by_command = self.plain()
        number = self.stripe_count_asked
        if number == ALL_TARGETS:
            number = self.number_of_targets or EXAMPLE_TARGETS
        by_hint = self.hinted({"striping_factor": f"{number}"}, stripe_count=self.fewest_stripes)
        return by_command, replace(by_hint, made=self.asking(stripe_count=number))


@rfm.simple_test
class CrayOverlap(CrayRtm):
    """The same snapshots hidden behind computing, as in the Unified Model, against waited for."""

    layer = "snapshot-nonblocking"
    other_layer = "snapshot"
    # Non-blocking collective writes crash in the ROMIO of Open MPI; other libraries ignore this.
    env_vars = {"OMPI_MCA_io": "ompio"}


@rfm.simple_test
class CraySubsetOfWriters(CrayCase):
    """HYCOM: 88 of 5107 processes write for all, through 22 aggregators, against all."""

    layer = "mpiio"
    # 8 cores a node; the slides give no volume: 1 MiB each.
    published = Published(nodes=639, tasks_per_node=8, gib=639 * 8 / 1024, stripe_counts=(22,))
    stripes = "published"
    stripe_count_asked = stripe_counts(22)

    @property
    def writers(self) -> int:
        """88 of 5107 processes, or the same part of fewer."""
        return max(1, round(self.tasks * 88 / 5107))

    def sides(self) -> tuple[Setting, Setting]:
        # A slab for each process, through 22 aggregators for 88 writers.
        side = self.hinted(self.through(aggregators=max(1, round(self.writers / 4))))
        slabs = ("--decomposition=slab",)
        return (
            replace(side, options=slabs),
            replace(side, options=(*slabs, f"--writers={self.writers}")),
        )


@rfm.simple_test
class CraySharedFiles(CrayCase):
    """Several shared files, one for the processes of each node, against one for all."""

    layer = "group"
    # The slides have no sizes and no number of files: the sizes are from the snapshots.
    published = RTM
    stripes = "each"

    @property
    def groups(self) -> int:
        return min(self.tasks, max(2, self.nodes))

    def lacking(self) -> list[str]:
        alone = self.tasks == 1
        return [*super().lacking(), *(["needs two processes for two files"] if alone else [])]

    def sides(self) -> tuple[Setting, Setting]:
        # Processes with consecutive ranks are a group, as on a node.
        slabs = ("--decomposition=slab",)
        one, several = self.plain(layer="mpiio"), self.plain()
        return (
            replace(one, options=slabs),
            replace(several, options=(*slabs, f"--files={self.groups}")),
        )


@rfm.simple_test
class CrayMapArray(CrayCase):
    """An array that a map array distributes irregularly, by one collective call or independent."""

    layer = "mapped"
    other_layer = "mapped-independent"
    # The slides have no sizes for it: the sizes are from the snapshots.
    published = RTM
    stripes = "published"
    stripe_count_asked = stripe_counts(4, 16)

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        return shapes.cells(volume)
