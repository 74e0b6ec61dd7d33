"""benchio: how fast an application writes and reads a distributed array, one check a pattern."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from ...base import schedulers, site
from ...base.speeds import RankTime
from ...filesystems import Asked
from . import result
from .base import BenchioBase


@rfm.simple_test
class BenchioSerial(BenchioBase):
    """One process gathers the array and writes one file."""

    descr = "benchio: single file, single writer"
    layer = "serial"
    pattern = "serial"


@rfm.simple_test
class BenchioFPP(BenchioBase):
    """Each process writes its own file."""

    descr = "benchio: file per process"
    layer = "proc"
    pattern = "fpp"
    file_per = "process"

    #: The times of the ranks, in the stage directory.
    ranks_file = variable(str, value="ranks.csv")

    #: The storage target on which every file is placed, to confirm that it is slow; None leaves the
    #: placement to the file system.
    target = variable(int, type(None), value=None)

    #: The node that the job must include, to confirm that it is slow; None leaves all to
    #: the scheduler.
    node = variable(str, type(None), value=None)

    def leave_out_points(self) -> None:
        if self.target is not None:
            self.case = f"target {self.target}"
            if self.stripe_count_asked not in (None, 1):
                self.valid_systems = []
        elif self.node is not None:
            self.case = f"node {self.node}"

    def tags_in(self, *of_check: Any) -> set[str]:
        """No tags for a pinned run, which has no schedule."""
        is_pinned = self.target is not None or self.node is not None
        return set() if is_pinned else super().tags_in(*of_check)

    @run_after("setup")
    def require_target(self) -> None:
        if self.target is not None and "index" not in self.striping.options:
            self.skip_because(f"target {self.target}: users cannot choose a target here")

    @run_after("setup")
    def require_node(self) -> None:
        if self.node is not None:
            try:
                self.job.options += schedulers.with_node(self.scheduler, self.node)
            except schedulers.SchedulerOptionsError as error:
                self.skip_because(f"node {self.node}: {error}")

    @property
    def asked_striping(self) -> Asked:
        """The requested striping; of one stripe on `target` if one is to be confirmed."""
        asked = super().asked_striping
        if self.target is None:
            return asked
        return replace(asked, index=self.target, pool=None, layout=None)

    def write_command(self) -> None:
        super().write_command()
        self.executable_opts.append(f"--ranks={self.ranks_file}")

    def rank_times(self, stage: Path) -> dict[str, list[RankTime]]:
        return result.rank_times(stage / self.ranks_file, f"{self.layer}%06d.dat")


@rfm.simple_test
class BenchioFPN(BenchioBase):
    """One process of each node gathers the node's data and writes one file."""

    descr = "benchio: file per node"
    layer = "node"
    pattern = "fpn"
    file_per = "node"


@rfm.simple_test
class BenchioSSF(BenchioBase):
    """All processes write one file by collective MPI-IO."""

    descr = "benchio: single shared file, collective"
    layer = "mpiio"
    pattern = "ssf"
    interface = "mpiio"

    #: The hint preset, by its name in the site configuration.
    hints = parameter(site.hint_presets(), loggable=True)
