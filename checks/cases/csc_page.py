"""CSC's page on Lustre: NAS BT-IO through PnetCDF, with the page's hints."""

import math
from dataclasses import replace

import reframe as rfm
from reframe.core.builtins import parameter, run_after
from reframe.core.logging import getlogger

from ..base.file_system import stripe_counts
from ..filesystems import uneven
from ..filesystems.layout import ALL_TARGETS
from . import shapes
from .base import Published
from .compared import WITH, AgainstFewestStripes, ComparedCase, Setting
from .scripted import ScriptedCase

UNIT = {"striping_unit": "1048576"}

BLOCKING_HINTS = {
    "unit": UNIT,
    "unit-2-aggregators": {**UNIT, "cb_config_list": "*:2"},
    "unit-no-independent": {
        **UNIT,
        "romio_cb_write": "enable",
        "romio_no_indep_rw": "true",
        "romio_ds_write": "disable",
    },
}
NONBLOCKING_HINTS = {**UNIT, "cb_config_list": "*:4", "romio_ds_write": "disable"}

BYTES_PER_GB = 10**9

#: The bytes and the number of the appended records, and the files of a directory; the page gives
#: none of these numbers.
RECORD_BYTES = 1024
RECORDS = 16384
FILES = 10_000


class CscCase(ComparedCase):
    """NAS BT-IO: 2048 x 1024 x 256 points, five steps, 256 processes on 16 nodes, 100 GiB."""

    source = "csc-page"
    published = Published(nodes=16, tasks_per_node=16, gib=100)
    layer = "btio-pnetcdf"

    def placed(self, nodes: int, per_node: int) -> tuple[int, int]:
        """The placement with the largest square number of processes."""
        return max(
            (
                (some, each)
                for some in range(1, nodes + 1)
                for each in range(1, per_node + 1)
                if math.isqrt(some * each) ** 2 == some * each
            ),
            key=lambda placed: (placed[0] * placed[1], placed[0]),
        )

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        return shapes.btio(volume)

    # No reason to skip: the page has such counts too, ten stripes for 256 processes.
    @run_after("setup")
    def warn_of_uneven_shares(self) -> None:
        for count in sorted(self.counts_in_use):
            stripes = self.number_of_targets if count == ALL_TARGETS else count
            if stripes and (problem := uneven(stripes, self.tasks)):
                getlogger().warning(
                    f"{self.name}: a stripe count {problem}: CSC's page advises against it"
                )


@rfm.simple_test
class CscBlocking(CscCase):
    """Blocking PnetCDF with each of the page's hint sets against none: 2.27 and 2.86 times."""

    stripes = "each"

    #: The hints, by what they set.
    hint_set = parameter(list(BLOCKING_HINTS))

    def case_settings(self) -> list[str]:
        return [self.hint_set]

    def lacking(self) -> list[str]:
        reasons = super().lacking()
        if not self.settings[WITH].demanded:
            reasons.append(
                f"compares a hint about stripes, which MPI-IO heeds only on Lustre: "
                f"{self.file_system} is {self.file_system_type}"
            )
        return reasons

    def sides(self) -> tuple[Setting, Setting]:
        return self.plain(), self.hinted(BLOCKING_HINTS[self.hint_set])


@rfm.simple_test
class CscNonblocking(CscCase):
    """Non-blocking PnetCDF with the page's hints against none: 2.5 and 1.22 times."""

    layer = "btio-pnetcdf-nonblocking"
    stripes = "each"

    def sides(self) -> tuple[Setting, Setting]:
        return self.plain(), self.hinted(NONBLOCKING_HINTS)


@rfm.simple_test
class CscNonblockingOverBlocking(CscCase):
    """Non-blocking PnetCDF against blocking, each by itself: 1820 against 1293 MiB/s."""

    layer = "btio-pnetcdf-nonblocking"
    other_layer = "btio-pnetcdf"
    stripes = "each"


@rfm.simple_test
class CscAggregators(CscCase):
    """Two and four aggregators a node against one, the stripe size set on both sides."""

    stripes = "one"

    #: The hints of both sides: the page adds the number of aggregators to the stripe size.
    both = UNIT

    #: The aggregators on each node.
    aggregators = parameter([2, 4])

    def case_settings(self) -> list[str]:
        return [str(self.aggregators)]

    def sides(self) -> tuple[Setting, Setting]:
        few, many = ({**self.both, "cb_config_list": f"*:{n}"} for n in (1, self.aggregators))
        return self.hinted(few), self.hinted(many)


@rfm.simple_test
class CscAggregatorsAboveStripes(CscAggregators):
    """Two and four aggregators a node against one on two targets: no gain is expected."""

    # 16 nodes, and so 16 aggregators for two targets already
    published = Published(nodes=16, tasks_per_node=16, gib=100, stripe_counts=(2,))
    stripes = "published"
    stripe_count_asked = stripe_counts(2)
    both = BLOCKING_HINTS["unit-no-independent"]


@rfm.simple_test
class CscSmallFiles(AgainstFewestStripes, ComparedCase):
    """Small files over all stripes against one stripe: the page advises against them."""

    source = "csc-page"
    # The page has no sizes: files of 1 MiB, each one stripe's
    published = Published(nodes=1, tasks_per_node=16, gib=1)
    layer = "aligned-files"
    stripes = "all"
    needs_stripes = "compares stripe counts"

    def common_options(self) -> list[str]:
        return [*super().common_options(), f"--files={self.shape.files}", "--stripe-size=1024K"]

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        return shapes.stripes(volume, files=None)


@rfm.simple_test
class CscOpenOnce(ScriptedCase):
    """A file that stays open against one opened and closed for each record of 1 KiB."""

    source = "csc-page"
    published = Published(nodes=1, tasks_per_node=1, gib=RECORDS * RECORD_BYTES / 2**30)
    layer = "reopening"
    tool = "bash"

    @property
    def argument(self) -> str:
        return str(self.shape.bytes // RECORD_BYTES)

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        records = max(1, volume.bytes_per_task // RECORD_BYTES)
        return shapes.Shape((1, 1, records), "local", records * RECORD_BYTES)

    def sides(self) -> tuple[Setting, Setting]:
        return self.plain(), replace(self.plain(), options=("--once",))


@rfm.simple_test
class CscListing(ScriptedCase):
    """`ls` against `ls -l`, which asks for the attributes of each of 10,000 files."""

    source = "csc-page"
    published = Published(nodes=1, tasks_per_node=1, gib=0)
    layer = "listing"
    tool = "ls"
    operations = ("list",)
    rate = "rate"
    fsync = False
    argument = str(FILES)

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        return shapes.Shape((1, 1, FILES), "local", 0, files=FILES)

    def sides(self) -> tuple[Setting, Setting]:
        return self.plain(), replace(self.plain(), options=("--names",))


@rfm.simple_test
class CscSquareRootRule(CscCase):
    """As many stripes as the square root of the file's size in GB, against fewer and more."""

    stripes = "each"
    needs_stripes = "stripes by the size of the file"

    @run_after("init")
    def say_against(self) -> None:
        # The setting is the rule's stripe count; the point has the one that it is compared with.
        self.case = f"{self.case} against {self.stripe_count_asked}"

    @property
    def by_rule(self) -> int:
        """The stripe count of the rule: 10 for the 107 GB as published."""
        return max(1, round(math.sqrt(self.shape.bytes / BYTES_PER_GB)))

    def lacking(self) -> list[str]:
        reasons = super().lacking()
        if self.by_rule == self.stripe_count_asked:
            reasons.append(
                f"the rule gives {self.by_rule} for {self.gib:g} GiB, as on the other side: take a "
                "larger scale or another stripe count"
            )
        if self.by_rule > self.tasks:
            reasons.append(
                f"the rule gives {self.by_rule} for {self.gib:g} GiB, more than the {self.tasks} "
                "processes, which the page advises against: take a scale with more processes"
            )
        return reasons

    def sides(self) -> tuple[Setting, Setting]:
        return self.plain(), self.plain(stripe_count=self.by_rule)
