"""Cray's slides on I/O optimization: stripes, writers, collective buffering, data sieving."""

from dataclasses import replace

import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from ..base.file_system import stripe_counts
from . import shapes
from .base import Case, Published
from .compared import AgainstFewestStripes, ByNumberOfTargets, ComparedCase, Setting

#: What each process writes to a file of its own.
MIB_PER_PROCESS = 128

#: The sizes of a stripe, and on how many stripes each was measured; that of 1 MiB on others too.
STRIPE_KIB = (64, 1024, 16384)
STRIPES_OF_SIZES = 4

#: In place of the number of targets where a script is only written: that of the slides' example.
EXAMPLE_TARGETS = 8

#: 16 snapshots of 1024 x 1024 x 512 in single precision from 1024 cores.
RTM = Published(nodes=32, tasks_per_node=32, gib=32, stripe_counts=(4, 16))

#: 32 processes on 8-core nodes, 3220 records of 1,000,000 bytes each.
STRIDED = Published(nodes=4, tasks_per_node=8, gib=96, stripe_counts=(16,))
RECORDS = (1_000_000, 10_000)

#: The stripe count that stands for all targets.
ALL = -1

#: The parts of all processes that write, from few to many.
PARTS = (16, 4, 1)


class CrayCase(ComparedCase):
    """A setting of the slides against another."""

    source = "cray-slides"

    def lacking_cray(self, setting: str) -> list[str]:
        """What to say where the MPI library is not Cray's."""
        mpi = self.current_environ.extras.get("mpi")
        return [] if mpi == "cray-mpich" else [f"sets {setting}, which Cray's MPI alone knows"]


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
    """One file over as many targets as there are, or processes, against the fewest stripes."""

    # The slides have no sizes for their rules: those of the snapshots below.
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

    #: The targets of an aggregator, in place of four.
    targets_each = parameter([1, 2, 8])

    def case_settings(self) -> list[str]:
        return [f"against {self.targets_each}"]

    @property
    def aggregators(self) -> tuple[int, int]:
        """How many there are with so many targets each, and with four."""
        count = self.stripe_count_asked or 1
        stripes = (self.number_of_targets or EXAMPLE_TARGETS) if count == -1 else count
        return max(1, stripes // self.targets_each), max(1, stripes // 4)

    def lacking(self) -> list[str]:
        reasons = super().lacking()
        other, four = (min(each, self.tasks) for each in self.aggregators)
        if other == four and not reasons:
            reasons.append(f"has {four} aggregators either way: too few stripes or processes")
        return reasons

    def sides(self) -> tuple[Setting, Setting]:
        other, four = self.aggregators
        return self.hinted(self.through(other)), self.hinted(self.through(four))


class ByCores(rfm.RegressionTestPlugin):
    """By parts of the scale's processes: `iobands compare tasks` compares them."""

    #: The part of the scale's processes that write.
    part = parameter(PARTS, fmt=lambda number: f"1/{number}")

    sizing = ("scale", "part")

    #: Whether a larger part is as many processes on this scale.
    as_large_as_another = variable(bool, value=False)

    def placed(self, nodes: int, per_node: int) -> tuple[int, int]:
        sizes = {part: _part(nodes, per_node, part) for part in PARTS}
        larger = [sizes[part] for part in PARTS if part < self.part]
        self.as_large_as_another = sizes[self.part] in larger
        return sizes[self.part]

    # On a small scale several parts are as many processes: one of them will do.
    @run_after("init")
    def leave_out_the_same(self) -> None:
        if self.as_large_as_another:
            self.valid_systems = []


def _part(nodes: int, per_node: int, part: int) -> tuple[int, int]:
    """A part of all processes, on as few nodes as can have them."""
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
        # As much for each as when all write.
        mib_per_task = min(MIB_PER_PROCESS, self.scale_settings["mib_per_task"])
        return shapes.array(shapes.Volume(volume.tasks, volume.tasks * mib_per_task))


class CrayHints(CrayCase):
    """A hint on, off and left to the library, one against the other, by stripe count and size."""

    # 256 cores of 32-core nodes, 16 snapshots of 1024 x 1024 x 512 in single precision
    published = Published(nodes=8, tasks_per_node=32, gib=32, stripe_counts=(1, 4, 16))
    stripes = "published"
    stripe_count_asked = stripe_counts(1, 4, 16)

    #: What the hint is set to, over another value; by itself over what the library decides.
    value = parameter(["enable", "disable", "enable-over-disable"])

    #: The size of a stripe in KiB.
    stripe_kib = parameter(STRIPE_KIB)

    #: The hints that the value is given to.
    switched: tuple[str, ...] = ()

    def case_settings(self) -> list[str]:
        return [self.value, f"{self.stripe_kib}KiB"]

    @run_after("init")
    def leave_out_sizes(self) -> None:
        if self.stripe_kib != STRIPE_KIB[1] and self.stripe_count_asked != STRIPES_OF_SIZES:
            self.valid_systems = []

    def sides(self) -> tuple[Setting, Setting]:
        value, _, other = self.value.partition("-over-")
        without, with_it = (
            self.hinted(dict.fromkeys(self.switched, each), size_kib=self.stripe_kib)
            for each in (other or "automatic", value)
        )
        return without, with_it


@rfm.simple_test
class CrayCollectiveBuffering(CrayHints):
    """Collective buffering on, off and automatic, for collective calls."""

    layer = "mpiio"
    switched = ("romio_cb_write", "romio_cb_read")


@rfm.simple_test
class CrayDataSieving(CrayHints):
    """Data sieving on, off and automatic, for independent calls: 54.5 s on, 259 s off."""

    layer = "mpiio-independent"
    switched = ("romio_ds_write", "romio_ds_read")


class CrayOnOff(CrayCase):
    """Collective buffering on against off."""

    stripes = "published"

    @property
    def both(self) -> dict[str, str]:
        """Hints of both sides."""
        return {}

    def sides(self) -> tuple[Setting, Setting]:
        off, on = ({"romio_cb_write": value, **self.both} for value in ("disable", "enable"))
        return self.hinted(off), self.hinted(on)


@rfm.simple_test
class CrayStrided(CrayOnOff):
    """IOR's cases: records of 1,000,000 and 10,000 bytes, collective buffering on or off."""

    layer = "strided"
    published = STRIDED
    stripe_count_asked = stripe_counts(16)

    #: The bytes of a record.
    record = parameter(RECORDS)

    def case_settings(self) -> list[str]:
        return [f"{self.record}B"]

    @property
    def both(self) -> dict[str, str]:
        return self.through(aggregators=16)

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        return shapes.records(volume, self.record)


@rfm.simple_test
class CrayAlignment(CrayOnOff):
    """Collective buffering that divides the work by MPICH_MPIIO_CB_ALIGN 0 or 1 against 2."""

    layer = "strided"
    published = STRIDED
    stripe_count_asked = stripe_counts(16)

    #: How the work is divided, in place of 2, which the slides call the default.
    align = parameter([0, 1])

    def case_settings(self) -> list[str]:
        return [f"{self.align} against 2"]

    def lacking(self) -> list[str]:
        return [*super().lacking(), *self.lacking_cray("MPICH_MPIIO_CB_ALIGN")]

    def sides(self) -> tuple[Setting, Setting]:
        _, on = super().sides()
        by_stripes, other = (
            replace(on, environment={"MPICH_MPIIO_CB_ALIGN": f"{each}"}) for each in (2, self.align)
        )
        return by_stripes, other

    @property
    def both(self) -> dict[str, str]:
        return self.through(aggregators=16)

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        return shapes.records(volume, RECORDS[0])


@rfm.simple_test
class CrayBuffer(CrayCase):
    """Collective buffers of 16 MiB against the 4 MiB that the slides call the default."""

    layer = "mpiio"
    published = RTM
    stripes = "published"
    stripe_count_asked = stripe_counts(16)

    def sides(self) -> tuple[Setting, Setting]:
        small, large = (
            self.hinted({"romio_cb_write": "enable", "cb_buffer_size": f"{mib * 2**20}"})
            for mib in (4, 16)
        )
        return small, large


@rfm.simple_test
class CrayDirectIo(CrayCase):
    """The hint `direct_io` against the page cache."""

    layer = "mpiio"
    published = RTM
    stripes = "published"
    stripe_count_asked = stripe_counts(16)

    def lacking(self) -> list[str]:
        return [*super().lacking(), *self.lacking_cray("the hint direct_io")]

    def sides(self) -> tuple[Setting, Setting]:
        cached, direct = (self.hinted({"direct_io": each}) for each in ("false", "true"))
        return cached, direct


@rfm.simple_test
class CrayHdf5Dump(CrayOnOff):
    """HDF5 dump of 6.4 GiB from 8000 processes, collective buffering on against off."""

    layer = "hdf5"
    published = Published(nodes=1000, tasks_per_node=8, gib=6.4, stripe_counts=(8,))
    stripe_count_asked = stripe_counts(8)

    @property
    def both(self) -> dict[str, str]:
        # the slides found it necessary to disable data sieving
        return {"romio_ds_write": "disable", **self.through(aggregators=8)}

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        # of 0.8 MiB for each process, planes of 128 KiB would leave out a good part
        return shapes.array(volume, edge=64)


@rfm.simple_test
class CraySnapshots(CrayOnOff):
    """RTM: 16 snapshots of 2 GiB from 1024 cores, collective buffering on against independent."""

    layer = "snapshot"
    published = RTM
    stripe_count_asked = stripe_counts(4, 16)

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        return shapes.snapshots(volume)


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
class CrayStripesByHint(CrayCase):
    """RTM: stripes by the hint `striping_factor` against those of `lfs setstripe`."""

    layer = "snapshot"
    published = RTM
    stripes = "published"
    stripe_count_asked = stripe_counts(4, 16)
    needs_stripes = "compares ways to set the stripe count"

    def lacking(self) -> list[str]:
        reasons = super().lacking()
        if self.file_system_type != "lustre" and not reasons:
            reasons.append(
                "takes stripes from a hint, of which MPI-IO knows on Lustre alone: "
                f"{self.file_system} is {self.file_system_type}"
            )
        elif self.stripe_count_asked == self.fewest_stripes:
            reasons.append(f"asks for {self.fewest_stripes} stripes, which files have anyway")
        return reasons

    def sides(self) -> tuple[Setting, Setting]:
        by_command = self.plain()
        number = self.stripe_count_asked
        if number == ALL:
            number = self.number_of_targets or EXAMPLE_TARGETS
        by_hint = self.hinted({"striping_factor": f"{number}"}, stripe_count=self.fewest_stripes)
        return by_command, replace(by_hint, made=self.asking(stripe_count=number))

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        return shapes.snapshots(volume)


@rfm.simple_test
class CrayOverlap(CrayCase):
    """The same snapshots hidden behind computing, as in the Unified Model, against waited for."""

    layer = "snapshot-nonblocking"
    other_layer = "snapshot"
    # Non-blocking collective writes crash in the ROMIO of Open MPI; other libraries ignore this.
    env_vars = {"OMPI_MCA_io": "ompio"}
    published = RTM
    stripes = "published"
    stripe_count_asked = stripe_counts(4, 16)

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        return shapes.snapshots(volume)


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
        """88 of 5107, or the same part of fewer."""
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
    # The slides have neither sizes nor the number of files: those of the snapshots, and our choice.
    published = RTM
    stripes = "each"

    @property
    def groups(self) -> int:
        return min(self.tasks, max(2, self.nodes))

    def lacking(self) -> list[str]:
        alone = self.tasks == 1
        return [*super().lacking(), *(["needs two processes for two files"] if alone else [])]

    def sides(self) -> tuple[Setting, Setting]:
        # Processes that follow each other are a group, as on a node.
        slabs = ("--decomposition=slab",)
        one, several = self.plain(layer="mpiio"), self.plain()
        return (
            replace(one, options=slabs),
            replace(several, options=(*slabs, f"--files={self.groups}")),
        )
