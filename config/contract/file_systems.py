"""A file system of a site: where it is, what it is, and what may be asked of its striping."""

from __future__ import annotations

import re
from pathlib import Path

from .fields import REQUIRED, SiteConfigurationError, check_choice, check_fields
from .words import FILE_SYSTEM_TYPES

_FILE_SYSTEM = {
    "path": (str, REQUIRED),
    "type": (str, REQUIRED),
    "medium": (str, REQUIRED),
    "stripe_counts": (list, None),
    "mounted_as": (str, None),
    "min_free_gib": ((int, float), None),
    "min_free_inodes": (int, None),
    "max_quota_percent": ((int, float), None),
    "max_inactive_targets": (int, None),
    "striping": (dict, None),
}
# What may be asked of the striping besides the count, by the type of the file system.
_STRIPING = {
    "size_kib": (int, None),
    "object_size_kib": (int, None),
    "index": (int, None),
    "pool": (str, None),
    "layout": (str, None),
    "targets": (int, None),
}
_STRIPING_OF_TYPE = {
    "lustre": ("size_kib", "index", "pool", "layout", "targets"),
    "cephfs": ("size_kib", "object_size_kib", "pool", "targets"),
    "beegfs": ("size_kib", "targets"),
    "gpfs": (),
    "posix": (),
}
_COUNT_MARK = "{stripe_count}"
_LEAST_STRIPE_KIB = 64


def check_file_system(file_system: dict, where: str) -> None:
    """Check one entry of `filesystems`.

    Raises:
        SiteConfigurationError: something is missing, unknown or of the wrong type or value.
    """
    check_fields(file_system, _FILE_SYSTEM, where)
    check_choice(file_system["type"], FILE_SYSTEM_TYPES, f"{where}: type")
    if not Path(file_system["path"]).is_absolute():
        raise SiteConfigurationError(f"{where}: path {file_system['path']!r} must be absolute")
    for name in ("min_free_gib", "min_free_inodes", "max_quota_percent", "max_inactive_targets"):
        if file_system.get(name, 0) < 0:
            raise SiteConfigurationError(
                f"{where}: {name} is {file_system[name]}; it must be at least 0"
            )
    if not re.fullmatch(r"[\w.-]+", file_system.get("mounted_as", "any")):
        # It becomes a word of a job script.
        raise SiteConfigurationError(
            f"{where}: mounted_as {file_system['mounted_as']!r} is no name of a type"
        )
    if file_system.get("stripe_counts") == []:
        raise SiteConfigurationError(f"{where}: stripe_counts is empty; leave it out")
    for count in file_system.get("stripe_counts", []):
        if not isinstance(count, int) or count == 0 or count < -1:
            raise SiteConfigurationError(
                f"{where}: stripe count {count!r} must be a number above 0, or -1 for all targets"
            )
    _check_striping(file_system, where)


def _check_striping(file_system: dict, where: str) -> None:
    striping = file_system.get("striping", {})
    counts = file_system.get("stripe_counts", [])
    allowed = _STRIPING_OF_TYPE[file_system["type"]]
    if not allowed and (striping or counts):
        raise SiteConfigurationError(
            f"{where}: type {file_system['type']!r} has no stripes that could be asked for; "
            "leave stripe_counts and striping out"
        )
    where = f"{where}: striping"
    check_fields(striping, {name: _STRIPING[name] for name in allowed}, where)
    for name in ("size_kib", "object_size_kib", "targets", "index"):
        least = 0 if name == "index" else 1
        if striping.get(name, least) < least:
            raise SiteConfigurationError(
                f"{where}: {name} is {striping[name]}; it must be at least {least}"
            )
    if striping.get("size_kib", 0) % _LEAST_STRIPE_KIB:
        raise SiteConfigurationError(
            f"{where}: size_kib is {striping['size_kib']}; it must be a multiple of "
            f"{_LEAST_STRIPE_KIB}"
        )
    for name, pattern in (("pool", r"[\w.-]+"), ("layout", r"[\w .,:{}+-]+")):
        # They become words of a job script.
        if name in striping and not re.fullmatch(pattern, striping[name]):
            raise SiteConfigurationError(f"{where}: {name} {striping[name]!r} is no such name")
    if "layout" in striping:
        _check_layout(striping, counts, where)
    if "pool" in striping and file_system["type"] == "lustre":
        # lfs osts counts those of the whole file system.
        _require_targets(striping, counts, f"{where}: the OSTs of pool {striping['pool']!r}")


def _check_layout(striping: dict, counts: list, where: str) -> None:
    for name in ("size_kib", "index", "pool"):
        if name in striping:
            raise SiteConfigurationError(
                f"{where}: {name} cannot stand beside layout; say it there"
            )
    if (_COUNT_MARK in striping["layout"]) != bool(counts):
        raise SiteConfigurationError(
            f"{where}: layout needs {_COUNT_MARK} where the stripe count belongs, and "
            "stripe_counts to fill it in; or neither"
        )


def _require_targets(striping: dict, counts: list, what: str) -> None:
    if -1 in counts and "targets" not in striping:
        raise SiteConfigurationError(f"{what} cannot be counted for -1; add 'targets'")
