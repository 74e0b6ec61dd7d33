"""The base of the cases: sizes as published, limited by the site's scale.

A case states its source, its layer and the published sizes; its docstring is its line in ReFrame's
lists. It has the tag `case`, a tag for its source, and the tags to which the site file adds it.
Without these it runs on demand only.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace

import reframe.utility.typecheck as typ
from reframe.core.builtins import parameter, run_after, variable

from ..base import selections, site
from ..base.scale import MIB_PER_GIB
from ..filesystems import Asked
from ..tools.benchio.base import BenchioBase
from . import shapes
from .layers import LAYERS, Layer
from .naming import kebab

BYTES_PER_GIB = 2**30


@dataclass(frozen=True)
class Published:
    """The published size of a run."""

    nodes: int
    tasks_per_node: int
    gib: float
    #: The stripe counts; the parameter `stripe_count_asked` of the case contains them too.
    stripe_counts: tuple[int, ...] = ()


class Case(BenchioBase):
    """One case of a source: a layer of benchio, with a volume."""

    #: The source, by the name of its tag.
    source = variable(typ.Str[r"archer2-page|bulk-lustre|cray-slides|csc-page"])

    #: The size of the source's run, limited by the site's scale.
    published = variable(Published)

    #: The volume that the case moves in a phase at most, in MiB.
    volume_mib = 0.0

    #: The stripe counts to run with: the site's smallest, its largest (all) or each; or the
    #: published ones and the site's largest.
    stripes = variable(typ.Str[r"one|all|each|each but one|published"], value="one")

    #: Why the case needs stripes; empty if it does not.
    needs_stripes = variable(str, value="")

    #: The MPI transport: the first environment's, unless the case is about transports.
    transport = parameter(site.default_transports(), loggable=True)

    # Before the sizes are computed, which depend on the layer.
    @run_after("init")
    def name_case(self) -> None:
        self.descr = inspect.getdoc(type(self))
        self.layer = self.layer_of_point() or self.layer
        self.case = " ".join([kebab(type(self).__name__), *self.case_settings()])
        self.pattern, self.interface = self.kind.pattern, self.kind.interface
        self.file_per = self.kind.file_per

    def layer_of_point(self) -> str | None:
        """The layer, if a parameter selects it."""
        return None

    def case_settings(self) -> list[str]:
        """The settings of this point that are not series fields, as words of the case's name."""
        return []

    def take_tags(self) -> None:
        self.tags = {"io", self.tool, "case", self.source}
        super().take_tags()

    def tags_in(self, check: Mapping, extras: Mapping, transport: str) -> set[str]:
        return selections.tags_of_case({**check, "case": self.case}, extras)

    def bind_to_site(self) -> None:
        super().bind_to_site()
        if self.stripe_count_asked in self.published.stripe_counts and self.fewest_stripes:
            # whether or not the site has this number
            self.valid_systems = site.partitions_for(
                self.file_system, self.fewest_stripes, self.hints, self.own_presets
            )

    def leave_out_points(self) -> None:
        counts = site.stripe_counts_of(self.file_system)
        wanted = {
            "one": [self.fewest_stripes],
            "all": [self.most_stripes],
            "each": counts,
            "published": [*self.published.stripe_counts, self.most_stripes],
            # without stripes there is still one point, which names what is missing
            "each but one": [each for each in counts if each != self.fewest_stripes] or counts[:1],
        }
        if self.stripe_count_asked not in wanted[self.wanted_stripes()]:
            self.valid_systems = []

    def wanted_stripes(self) -> str:
        """Which stripe counts to run with, as in `stripes`, unless a parameter decides."""
        return self.stripes

    @run_after("setup")
    def skip_if_lacking(self) -> None:
        for reason in self.lacking():
            self.skip_because(reason)

    def lacking(self) -> list[str]:
        """What the case needs and does not find here, a line each."""
        reasons = []
        targets = self.number_of_targets
        own = self.counts_in_use - set(site.stripe_counts_of(self.file_system))
        if targets is not None and (most := max(own, default=0)) > targets:
            reasons.append(
                f"needs {most} stripes: only {targets} targets of {self.file_system} take files"
            )
        if self.needs_stripes and self.stripe_count_asked is None:
            reasons.append(
                f"{self.needs_stripes}: it needs a file system with stripes, "
                f"and {self.file_system} ({self.file_system_type}) has none that could be set"
            )
        if self.kind.library and self.kernel.lacks(self.kind.library):
            reasons.append(f"benchio's layer {self.layer} needs {self.kind.library}: not found")
        return reasons

    @property
    def number_of_targets(self) -> int | None:
        """How many targets take files; if unseen, the number in the site file; None if unknown."""
        seen = self.targets_seen
        return self.asked_striping.targets if seen is None else seen

    @property
    def targets_seen(self) -> int | None:
        """How many targets take files, as the preflight saw them."""
        return None if self.is_dry_run() else self.probe.findings[self.file_system].taking

    @property
    def counts_in_use(self) -> set[int]:
        """The requested stripe counts."""
        return {self.stripe_count_asked} - {None}

    @property
    def kind(self) -> Layer:
        """The layer's entry in contract 1."""
        return LAYERS[self.layer]

    def size_for(self, nodes: int) -> None:
        """Set what follows from the number of nodes, by the published sizes or the scale's."""
        scale = self.scale_settings
        allowed_mib = nodes * scale["tasks_per_node"] * scale["mib_per_task"]
        self.nodes, self.num_tasks_per_node = self.placed(
            min(nodes, self.published.nodes),
            min(scale["tasks_per_node"], self.published.tasks_per_node),
        )
        self.num_tasks = self.tasks = self.nodes * self.num_tasks_per_node
        self.volume_mib = float(min(self.published.gib * MIB_PER_GIB, allowed_mib))
        self.take_volume()

    def take_volume(self) -> None:
        if self.tasks:
            self.gib = self.shape.bytes / BYTES_PER_GIB

    def placed(self, nodes: int, per_node: int) -> tuple[int, int]:
        """The nodes, and the processes on each, that the case uses."""
        return nodes, per_node

    @property
    def shape(self) -> shapes.Shape:
        """The sizes for benchio."""
        return self.shape_of(shapes.Volume(self.tasks, self.volume_mib))

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        """The sizes for a volume: a block of an array for each process."""
        return shapes.array(volume)

    @property
    def groups(self) -> int:
        """The number of groups of processes that share a file, if the layer has groups."""
        return 1

    @property
    def fewest_stripes(self) -> int | None:
        """The site's smallest stripe count for the file system."""
        return min(site.stripe_counts_of(self.file_system), key=_as_number)

    @property
    def most_stripes(self) -> int | None:
        """The site's largest stripe count for the file system; -1 means all targets."""
        return max(site.stripe_counts_of(self.file_system), key=_as_number)

    def asking(self, **changes: int) -> Asked:
        """The requested striping, with these changes."""
        asked = replace(self.asked_striping, **changes)
        if asked.size_kib and asked.object_size_kib:
            # Ceph's objects hold whole stripes.
            objects = max(asked.size_kib, asked.object_size_kib)
            asked = replace(asked, object_size_kib=objects)
        return asked

    def sizes(self) -> list[str]:
        return self.shape.words()

    def common_options(self) -> list[str]:
        return [*super().common_options(), *self.shape.options]

    def asked_of(self, layer: str) -> dict[str, object]:
        kind = LAYERS[layer]
        return {
            **super().asked_of(layer),
            "pattern": kind.pattern,
            "interface": kind.interface,
            "bytes": self.shape.bytes,
            "files": self.number_of_files(kind.file_per),
        }

    def number_of_files(self, file_per: str) -> int:
        own = {"job": self.shape.files, "group": self.groups}
        return own[file_per] if file_per in own else super().number_of_files(file_per)

    @property
    def overhead_bytes(self) -> int:
        return self.kind.overhead_bytes


def _as_number(count: int | None) -> float:
    return float("inf") if count == -1 else count or 0
