"""Cray's slides on I/O optimization: collective buffering, data sieving, and other hints."""

from dataclasses import replace

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from ..base.file_system import stripe_counts
from . import shapes
from .base import Published
from .compared import Setting
from .cray_base import RTM, CrayCase, CrayRtm

#: The stripe sizes. All are measured with four stripes, 1 MiB also with other stripe counts.
STRIPE_KIB = (64, 1024, 16384)
STRIPES_OF_SIZES = 4

#: The bytes of a record.
RECORDS = (1_000_000, 10_000)


class CrayHints(CrayCase):
    """A hint on, off and left to the library, in pairs, for each stripe count and size."""

    # 256 cores of 32-core nodes, 16 snapshots of 1024 x 1024 x 512 in single precision
    published = Published(nodes=8, tasks_per_node=32, gib=32, stripe_counts=(1, 4, 16))
    stripes = "published"
    stripe_count_asked = stripe_counts(1, 4, 16)

    #: The value of the hint and the value that it is compared with; a single value is compared
    #: with the library's default.
    value = parameter(["enable", "disable", "enable-over-disable"])

    #: The size of a stripe in KiB.
    stripe_kib = parameter(STRIPE_KIB)

    #: The hints that get the value.
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


class OnOff(rfm.RegressionTestPlugin):
    """Collective buffering on against off."""

    @property
    def both(self) -> dict[str, str]:
        """Hints of both sides."""
        return {}

    def sides(self) -> tuple[Setting, Setting]:
        off, on = ({"romio_cb_write": value, **self.both} for value in ("disable", "enable"))
        return self.hinted(off), self.hinted(on)


class CrayRecords(OnOff, CrayCase):
    """IOR's file of records, distributed round-robin, through the 16 aggregators that it had."""

    # 32 processes on 8-core nodes, 3220 records of 1,000,000 bytes each
    published = Published(nodes=4, tasks_per_node=8, gib=96, stripe_counts=(16,))
    layer = "strided"
    stripes = "published"
    stripe_count_asked = stripe_counts(16)

    @property
    def both(self) -> dict[str, str]:
        return self.through(aggregators=16)


@rfm.simple_test
class CrayStrided(CrayRecords):
    """IOR's cases: records of 1,000,000 and 10,000 bytes, collective buffering on or off."""

    #: The bytes of a record.
    record = parameter(RECORDS)

    def case_settings(self) -> list[str]:
        return [f"{self.record}B"]

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        return shapes.records(volume, self.record)


@rfm.simple_test
class CrayAlignment(CrayRecords):
    """Collective buffering that divides the work by MPICH_MPIIO_CB_ALIGN 0 or 1 against 2."""

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

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        return shapes.records(volume, RECORDS[0])


class CrayHintAgainstHint(CrayCase):
    """A hint with one value against another, for one collective array as large as RTM's file."""

    layer = "mpiio"
    published = RTM
    stripes = "published"
    stripe_count_asked = stripe_counts(16)

    #: The hints of the side without the setting, and of the side with it.
    pair: tuple[dict[str, str], dict[str, str]] = ({}, {})

    def sides(self) -> tuple[Setting, Setting]:
        without, with_it = self.pair
        return self.hinted(without), self.hinted(with_it)


@rfm.simple_test
class CrayBuffer(CrayHintAgainstHint):
    """Collective buffers of 16 MiB against the 4 MiB that the slides call the default."""

    pair = tuple(
        {"romio_cb_write": "enable", "cb_buffer_size": f"{mib * 2**20}"} for mib in (4, 16)
    )


@rfm.simple_test
class CrayDirectIo(CrayHintAgainstHint):
    """The hint `direct_io` against the page cache."""

    pair = ({"direct_io": "false"}, {"direct_io": "true"})

    def lacking(self) -> list[str]:
        return [*super().lacking(), *self.lacking_cray("the hint direct_io")]


@rfm.simple_test
class CrayHdf5Dump(OnOff, CrayCase):
    """HDF5 dump of 6.4 GiB from 8000 processes, collective buffering on against off."""

    layer = "hdf5"
    published = Published(nodes=1000, tasks_per_node=8, gib=6.4, stripe_counts=(8,))
    stripes = "published"
    stripe_count_asked = stripe_counts(8)

    @property
    def both(self) -> dict[str, str]:
        # the slides found it necessary to disable data sieving
        return {"romio_ds_write": "disable", **self.through(aggregators=8)}

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        # of 0.8 MiB for each process, planes of 128 KiB would leave out a good part
        return shapes.array(volume, edge=64)


@rfm.simple_test
class CraySnapshots(OnOff, CrayRtm):
    """RTM: 16 snapshots of 2 GiB from 1024 cores, collective buffering on against independent."""
