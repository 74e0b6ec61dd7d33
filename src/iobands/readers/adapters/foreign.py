"""What adapters share: times without offset, other units, and what a check's name tells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from iobands.readers.adapters.options import Options
from iobands.readers.fields import TIME
from iobands.readers.rejected import Unusable
from iobands.vocabulary import NULLS, SERIES_FIELDS, VARIABLE_UNITS, number

_LOCAL_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?", re.ASCII)
_PARAMETER: Final = re.compile(r"%(?:\w+\.)*(\w+)=(\S*)")
# What a check says of itself: "on system:partition using environment" up to ReFrame 3, then
# "/hash @system:partition+environment".
_OLD_INFO: Final = re.compile(
    r"(?P<name>.+) on (?P<system>[^:\s]+):(?P<partition>\S+) using (?P<environ>\S+)"
)
_NEW_INFO: Final = re.compile(
    r"(?P<name>.+?)(?: /(?P<hashcode>[0-9a-f]+))?"
    r" @(?P<system>[^:+\s]+):(?P<partition>[^+\s]+)\+(?P<environ>\S+)"
)

_GIB: Final = 2**30
#: How many GiB/s one of each unit is. M and MiB are told apart, as the programs do that print them.
_UNITS: Final[Mapping[str, float]] = {
    "B/s": 1 / _GIB,
    "kB/s": 1e3 / _GIB,
    "KB/s": 1e3 / _GIB,
    "MB/s": 1e6 / _GIB,
    "GB/s": 1e9 / _GIB,
    "TB/s": 1e12 / _GIB,
    "KiB/s": 2**10 / _GIB,
    "MiB/s": 2**20 / _GIB,
    "GiB/s": 1.0,
    "TiB/s": 2**40 / _GIB,
}
_TARGET: Final = "GiB/s"


def with_offset(text: str, time_zone: str) -> str:
    """Return a time with its offset, that of `time_zone` if it says none; other text as it is."""
    if not _LOCAL_TIME.fullmatch(text):
        return text
    try:
        moment = datetime.fromisoformat(text[:19].replace("t", "T")).replace(
            tzinfo=ZoneInfo(time_zone)
        )
        return moment.astimezone(timezone.utc).isoformat()
    except (ValueError, OverflowError):
        return text  # the reader says what is wrong with it


def from_unix(text: str) -> str | None:
    """Return the time of so many seconds since 1970, whole, or None where it is no such number."""
    seconds = number(text)
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(int(seconds // 1), timezone.utc).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def place_of(path: Path) -> dict[str, str]:
    """Return what ReFrame says by where it writes: system, partition and the check's class."""
    return {
        "system": path.parent.parent.name,
        "partition": path.parent.name,
        "display_name": path.name.split(".log")[0],
    }


def info_of(text: str) -> dict[str, str]:
    """Return name, system, partition and environment from what ReFrame says of a check."""
    match = _NEW_INFO.fullmatch(text) or _OLD_INFO.fullmatch(text)
    if not match:
        raise Unusable(f"{text!r} does not tell check, system, partition and environment")
    said = {name: value for name, value in match.groupdict().items() if value}
    return {"display_name": said.pop("name"), **said}


def parameters_of(display_name: str) -> dict[str, str]:
    """Return the parameters that ReFrame writes into a name, as `%name=value`."""
    return dict(_PARAMETER.findall(display_name))


def sample(said: Mapping[str, str], options: Options) -> dict[str, str]:
    """Return a line's fields in the form of contract 2.

    A variable is what the options say of it. What tells checks apart is put where no series field
    says it: the check's class as tool, its whole name as pattern.
    """
    variable, variables = said.get("perf_var", ""), dict(options.variables)
    missing = said.get("perf_value", "") in NULLS
    ours = variables.get(variable, ())
    if ours is None:
        # known to be no bandwidth: a line as of a check that measures nothing
        nothing = {"perf_var": "", "perf_value": "", "perf_unit": ""}
        when = with_offset(said.get(TIME, ""), options.time_zone)
        return {"result": "pass", **dict(options.fields), **said, **nothing, TIME: when}
    if variable not in NULLS and variable not in variables and variable not in VARIABLE_UNITS:
        raise Unusable(f"perf_var: unknown variable {variable!r}; say under variables what it is")
    name = said.get("display_name", "")
    parameters = {
        field: value for field, value in parameters_of(name).items() if field in SERIES_FIELDS
    }
    fields = {
        "tool": name.split(" ", 1)[0],
        "pattern": name,
        **parameters,
        **dict(options.fields),
        **{field: value for field, value in said.items() if value not in NULLS},
        **dict(ours),
    }
    fields[TIME] = with_offset(fields.get(TIME, ""), options.time_zone)
    fields.setdefault("result", "fail" if missing else "pass")
    value = number(fields.get("perf_value", ""))
    unit = fields.get("perf_unit", "")
    if unit in _UNITS and unit != _TARGET:
        fields["perf_unit"] = _TARGET
        if value is not None:
            fields["perf_value"] = repr(value * _UNITS[unit])
    elif missing and variable not in NULLS:
        fields["perf_unit"] = _TARGET  # of a value that is not there, nothing can be wrong
    return fields
