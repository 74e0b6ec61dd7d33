"""A scale of a site: how many nodes and processes, and how much each of them moves."""

from __future__ import annotations

from .fields import REQUIRED, SiteConfigurationError, check_choice, check_duration, check_fields

_SCALE = {
    "nodes": ((int, str), REQUIRED),
    "tasks_per_node": (int, REQUIRED),
    "mib_per_task": (int, REQUIRED),
    "files_per_task": (int, None),
    "repeats": (int, None),
    "time_limit": (str, None),
    "exclusive": (bool, None),
}
# The numbers of nodes that a scheduler is asked for, and the schedulers that ReFrame can ask.
_FLEXIBLE_NODES = ("all", "idle")
_LISTS_NODES = ("slurm", "squeue", "local")


def check_scale(scale: dict, scheduler: str | None, where: str) -> None:
    """Check one entry of `scales`, for a partition with this scheduler.

    Raises:
        SiteConfigurationError: something is missing, unknown or of the wrong type or value.
    """
    check_fields(scale, _SCALE, where)
    if isinstance(scale["nodes"], str):
        check_choice(scale["nodes"], ("a number", *_FLEXIBLE_NODES), f"{where}: nodes")
    for field, value in scale.items():
        if isinstance(value, int) and not isinstance(value, bool) and value < 1:
            raise SiteConfigurationError(f"{where}: {field} is {value}; it must be at least 1")
    check_duration(scale, "time_limit", where)
    if scale["nodes"] in _FLEXIBLE_NODES and scheduler not in _LISTS_NODES:
        raise SiteConfigurationError(
            f"{where}: nodes is {scale['nodes']!r}, but ReFrame cannot list the nodes of the "
            f"scheduler {scheduler!r}; give a number"
        )
