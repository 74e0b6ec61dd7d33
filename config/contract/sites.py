"""A site file as a whole: that its system, its partitions and its environments fit together."""

from __future__ import annotations

from pathlib import Path

from .environments import check_environments
from .fields import SiteConfigurationError, check_choice
from .selections import selecting
from .systems import check_system, partitions_with_io
from .words import TRANSPORTS


def check_site(system: dict, environments: list[dict], path: Path) -> None:
    """Check all of a site file.

    Raises:
        SiteConfigurationError: something is missing, unknown or of the wrong type or value.
    """
    check_system(system, path)
    check_environments(environments, path)
    partitions = partitions_with_io(system)
    if not partitions:
        # ReFrame would find no check, and say that of each that its parameters are undefined.
        raise SiteConfigurationError(
            f"{path}: no partition has the feature 'io'; add it to the features of one"
        )
    features = {each["name"]: each.get("features", []) for each in environments}
    for partition in partitions:
        where = f"{path}: partition {partition['name']!r}"
        if not partition.get("environs"):
            raise SiteConfigurationError(f"{where}: environs is empty; name at least one")
        for name in partition["environs"]:
            # ReFrame would take one of another site for it, or none.
            check_choice(name, tuple(features), f"{where}: environs")
        _check_transports(partition, features, where)


def _check_transports(partition: dict, features: dict, where: str) -> None:
    """Check that what selects by a transport can select something."""
    having = [
        next((name for name in features[each] if name in TRANSPORTS), "default")
        for each in partition["environs"]
    ]
    for name, number, entry in selecting(partition["extras"]):
        if entry.get("transport", having[0]) not in having:
            raise SiteConfigurationError(
                f"{where}: {name}, entry {number}: transport {entry['transport']!r}: no "
                "environment of the partition has it among its features"
            )
