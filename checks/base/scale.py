"""The size of a check: one point for each of the site's scales.

ReFrame selects checks (`-t`, `-E`, `-l`) before they have a partition, so the numbers are set
directly after init. config/validation.py ensures that a scale is the same in every partition.
"""

from reframe.core.builtins import parameter, variable

from . import schedulers, site
from .job import JobMixin

MIB_PER_GIB = 1024

#: The time limit of a scale without its own.
DEFAULT_TIME_LIMIT = "30m"


class ScaleMixin(JobMixin):
    """Parametrises a check over the site's scales, and requests their nodes and tasks."""

    #: The scale, by its name in the site configuration.
    scale = parameter(site.scales())

    #: How often each phase is measured in one job; 0 stands for the number in the site's scale.
    repeats = variable(int, value=0)

    #: The volume that each phase moves, in GiB; 0 until the number of nodes is known.
    gib = variable(float, value=0.0, loggable=True)

    def take_scale(self) -> None:
        self.num_tasks_per_node = self.scale_settings["tasks_per_node"]
        self.repeats = self.repeats or self.scale_settings.get("repeats", 1)
        self.time_limit = self.time_limit or self.default_time_limit
        self.exclusive_access = self.scale_settings.get("exclusive", True)
        if not self.is_flexible:
            self.size_for(self.scale_settings["nodes"])

    def bind_to_scale(self) -> None:
        having = site.partitions_with_scale(self.scale)
        self.valid_systems = [name for name in self.valid_systems if name in having]

    def count_nodes(self) -> None:
        """Size a flexible check; job options must be set, as a reservation has nodes of its own."""
        if self.is_flexible:
            self.size_for(self.nodes_of_scheduler())

    def nodes_of_scheduler(self) -> int:
        """How many nodes the scheduler has in the state that the scale names.

        If ReFrame's option `--flex-alloc-nodes=NUMBER` is given, it decides instead.
        """
        if isinstance(self.job.sched_flex_alloc_nodes, int):
            return self.job.sched_flex_alloc_nodes
        scheduler, asked = self.job.scheduler, self.scale_settings["nodes"]
        states = schedulers.node_states(self.scheduler, asked)
        nodes = scheduler.filternodes(self.job, scheduler.allnodes())
        number = len(scheduler.filternodes_by_state(nodes, states))
        self.skip_if(number == 0, f"scale {self.scale}: no node is available now (nodes: {asked})")
        return number

    def size_for(self, nodes: int) -> None:
        """Set what follows from the number of nodes."""
        self.nodes = nodes
        self.num_tasks = self.tasks = nodes * self.num_tasks_per_node
        self.take_volume()

    def take_volume(self) -> None:
        """Set `gib`; a check that moves another volume than the scale's overrides this."""
        self.gib = self.tasks * self.scale_settings["mib_per_task"] / MIB_PER_GIB

    @property
    def is_flexible(self) -> bool:
        """Whether the scheduler decides the number of nodes."""
        return isinstance(self.scale_settings["nodes"], str)

    @property
    def default_time_limit(self) -> str:
        """The time limit of a job without `-S time_limit=...`."""
        return self.scale_settings.get("time_limit", DEFAULT_TIME_LIMIT)

    @property
    def scale_settings(self) -> dict:
        """The entry of the scale in the site configuration."""
        return site.scale_settings(self.scale)
