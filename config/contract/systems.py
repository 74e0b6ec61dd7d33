"""The system of a site file and its partitions, each part of which has a module of its own."""

from __future__ import annotations

from pathlib import Path

from .fields import REQUIRED, SiteConfigurationError, check_duration, check_fields
from .file_systems import check_file_system
from .hint_presets import check_hint_preset
from .programs import check_program
from .scales import check_scale
from .selections import check_selections

_EXTRAS = {
    "filesystems": (dict, REQUIRED),
    "scales": (dict, REQUIRED),
    "hint_presets": (dict, None),
    "recommended": (list, None),
    "selections": (dict, None),
    "programs": (dict, None),
    "account": (str, None),
    "reservation": (str, None),
    "qos": (str, None),
    "max_pending_time": (str, None),
    "max_clock_skew_seconds": ((int, float), None),
}


def check_system(system: dict, path: Path) -> None:
    """Check every partition of `system` that has the feature `io`.

    Raises:
        SiteConfigurationError: something is missing, unknown or of the wrong type or value.
    """
    name = system.get("name")
    if name != path.stem:
        raise SiteConfigurationError(
            f"{path}: the system is named {name!r}; name it {path.stem!r}, as its file"
        )
    partitions = partitions_with_io(system)
    for partition in partitions:
        where = f"{path}: partition {partition['name']!r}"
        _check_extras(partition.get("extras", {}), partition.get("scheduler"), where)
    _check_agreement(partitions, path)


def partitions_with_io(system: dict) -> list[dict]:
    """Return the partitions that the checks run on."""
    return [part for part in system.get("partitions", []) if "io" in part.get("features", [])]


def _check_agreement(partitions: list[dict], path: Path) -> None:
    """Check that a name says the same in every partition: a check is listed before it has one."""
    facts: dict[tuple[str, str], tuple[object, str]] = {}
    for partition in partitions:
        extras = partition["extras"]
        here = {("scale", name): scale for name, scale in extras["scales"].items()}
        for name, file_system in extras["filesystems"].items():
            here["file system", name] = (file_system["medium"], file_system["type"])
        for name, preset in extras.get("hint_presets", {}).items():
            here["hint preset", name] = preset
        for (kind, name), value in here.items():
            first, where = facts.setdefault((kind, name), (value, partition["name"]))
            if value != first:
                raise SiteConfigurationError(
                    f"{path}: partition {partition['name']!r}: {kind} {name!r} is {value!r}, in "
                    f"partition {where!r} it is {first!r}; give one of them another name"
                )


def _check_extras(extras: dict, scheduler: str | None, where: str) -> None:
    check_fields(extras, _EXTRAS, f"{where}: extras")
    check_duration(extras, "max_pending_time", f"{where}: extras")
    if not extras["filesystems"]:
        raise SiteConfigurationError(f"{where}: filesystems is empty; describe at least one")
    for name, file_system in extras["filesystems"].items():
        check_file_system(file_system, f"{where}: file system {name!r}")
    if not extras["scales"]:
        raise SiteConfigurationError(f"{where}: scales is empty; describe at least one")
    for name, scale in extras["scales"].items():
        check_scale(scale, scheduler, f"{where}: scale {name!r}")
    for name, program in extras.get("programs", {}).items():
        check_program(name, program, where)
    for name, preset in extras.get("hint_presets", {}).items():
        check_hint_preset(name, preset, where)
    check_selections(extras, where)
