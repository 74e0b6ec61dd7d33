"""The base of the cases: sizes as their source has them, as far as the site's scale goes.

A case states its source, its layer and the sizes that were published; docs/cases.md tells what
each shows. It has a tag for all cases and one for its source, and none of the site's sets: a case
is run when somebody wants to know, not every day.
"""

from dataclasses import dataclass, replace

import reframe.utility.typecheck as typ
from reframe.core.builtins import parameter, run_after, variable

from .. import benchio_result as result
from .. import site
from ..benchio_base import BenchioBase
from ..mixins.scale import MIB_PER_GIB
from ..mixins.skip_reason import SkipReasonMixin
from ..striping import Asked
from . import shapes
from .layers import LAYERS, Layer
from .naming import kebab

BYTES_PER_GIB = 2**30


@dataclass(frozen=True)
class Published:
    """What a source says of the size of a run."""

    nodes: int
    tasks_per_node: int
    gib: float


class Case(BenchioBase, SkipReasonMixin):
    """One case of a source: what benchio is told, for a volume."""

    #: The source, by the name of its tag.
    source = variable(typ.Str[r"archer2-page|bulk-lustre|cray-slides|csc-page"])

    #: The size of the source's run; a scale of the site that has less of anything is the limit.
    published = variable(Published)

    #: The volume that the case may move in a phase, in MiB.
    volume_mib = variable(float, value=0.0)

    #: The stripe counts of the site to run with: the smallest, the largest (all) or each.
    stripes = variable(typ.Str[r"one|all|each|each but one"], value="one")

    #: Why the case cannot be without stripes; empty where it can.
    needs_stripes = variable(str, value="")

    #: What names the case and its settings, where no other series field tells them.
    case = variable(str, type(None), value=None, loggable=True)

    #: The MPI transport: that of the first environment, unless the case is about transports.
    transport = parameter(site.default_transports(), loggable=True)

    @run_after("init")
    def name_case(self) -> None:
        self.layer = self.layer_of_point() or self.layer
        self.tags = {"io", self.tool, "case", self.source}
        self.case = " ".join([kebab(type(self).__name__), *self.case_settings()])
        self.pattern, self.interface = self.kind.pattern, self.kind.interface
        self.file_per = self.kind.file_per

    def layer_of_point(self) -> str | None:
        """The layer, where a parameter says which."""
        return None

    def case_settings(self) -> list[str]:
        """The settings of this point that are no series field, as words."""
        return []

    # Not tagged by the site's selections: see above.
    def tag_by_selections(self) -> None:
        pass

    @run_after("init")
    def take_stripe_counts(self) -> None:
        counts = site.stripe_counts_of(self.file_system)
        wanted = {
            "one": [self.fewest_stripes],
            "all": [self.most_stripes],
            "each": counts,
            # without stripes there is one point all the same, which says what it needs
            "each but one": [each for each in counts if each != self.fewest_stripes] or counts[:1],
        }
        if self.stripe_count_asked not in wanted[self.wanted_stripes()]:
            self.valid_systems = []

    def wanted_stripes(self) -> str:
        """What `stripes` says, unless a parameter does."""
        return self.stripes

    @run_after("setup")
    def see_what_is_needed(self) -> None:
        for reason in self.lacking():
            self.skip_because(reason)

    def lacking(self) -> list[str]:
        """What the case needs and does not have here, each in one line."""
        reasons = []
        if self.needs_stripes and self.stripe_count_asked is None:
            reasons.append(
                f"{self.needs_stripes}: it needs a file system with stripes, "
                f"and {self.file_system} ({self.file_system_type}) has none that could be set"
            )
        if self.kind.library and self.kernel.lacks(self.kind.library):
            reasons.append(f"benchio's layer {self.layer} needs {self.kind.library}: not found")
        return reasons

    @property
    def kind(self) -> Layer:
        """What contract 1 says of the layer."""
        return LAYERS[self.layer]

    # The scale is known straight after init; in place of ScaleMixin's.
    def size_for(self, nodes: int) -> None:
        """Set what follows from the number of nodes, by the published sizes or the scale's."""
        allowed_mib = nodes * self.scale_settings["tasks_per_node"]
        allowed_mib *= self.scale_settings["mib_per_task"]
        per_node = min(self.num_tasks_per_node, self.published.tasks_per_node)
        self.nodes, self.num_tasks_per_node = self.placed(
            min(nodes, self.published.nodes), per_node
        )
        self.num_tasks = self.tasks = self.nodes * self.num_tasks_per_node
        self.volume_mib = float(min(self.published.gib * MIB_PER_GIB, allowed_mib))
        self.gib = self.shape.bytes / BYTES_PER_GIB

    def placed(self, nodes: int, per_node: int) -> tuple[int, int]:
        """The nodes and processes on each that the case takes of those that there are."""
        return nodes, per_node

    @property
    def shape(self) -> shapes.Shape:
        """The sizes that benchio is told."""
        return self.shape_of(shapes.Volume(self.tasks, self.volume_mib))

    @property
    def fewest_stripes(self) -> int | None:
        """The smallest stripe count that the site has of the file system."""
        return min(site.stripe_counts_of(self.file_system), key=_as_number)

    @property
    def most_stripes(self) -> int | None:
        """The largest stripe count that the site has of the file system; -1 is all there are."""
        return max(site.stripe_counts_of(self.file_system), key=_as_number)

    def asking(self, **changes: int) -> Asked:
        """What is asked of the striping, with these changes."""
        asked = replace(self.asked_striping, **changes)
        if asked.size_kib and asked.object_size_kib:
            # Ceph's objects hold whole stripes.
            objects = max(asked.size_kib, asked.object_size_kib)
            asked = replace(asked, object_size_kib=objects)
        return asked

    def shape_of(self, volume: shapes.Volume) -> shapes.Shape:
        """The sizes for a volume: a block of an array for each process."""
        return shapes.array(volume)

    def common_options(self) -> list[str]:
        """What benchio is told beside sizes, layer and directory, whatever the setting."""
        return [*(["fsync"] if self.fsync else []), "--verify", "--keep", *self.shape.options]

    def write_commands(self) -> None:
        super().write_commands()
        self.executable_opts = [
            *self.shape.words(),
            self.layer,
            *self.common_options(),
            '--directory="$run_directory"',
            f"--repeats={self.repeats}",
            f"--result={self.result_file}",
        ]

    def expectation(self) -> result.Expectation:
        return self.expectation_of(self.layer, self.repeats)

    def expectation_of(self, layer: str, repeats: int) -> result.Expectation:
        """What the result file of `layer` must prove."""
        kind = LAYERS[layer]
        return result.Expectation(
            layer=layer,
            pattern=kind.pattern,
            interface=kind.interface,
            repeats=repeats,
            nodes=self.nodes,
            processes=self.tasks,
            bytes=self.shape.bytes,
            files={"job": self.shape.files, "node": self.nodes, "process": self.tasks}[
                kind.file_per
            ],
            fsync=self.fsync,
            overhead_bytes=kind.overhead_bytes,
        )


def _as_number(count: int | None) -> float:
    return float("inf") if count == -1 else count or 0
