"""What a user says of foreign results: `adapter.yaml`, in the directory of the perflogs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import yaml

from iobands.readers.fields import FIELDS
from iobands.vocabulary import VARIABLE_UNITS

FILE_NAME: Final = "adapter.yaml"

_Fields = tuple[tuple[str, str], ...]


class AdapterError(ValueError):
    """Why results cannot be read in the way that was asked for."""


@dataclass(frozen=True)
class Options:
    """What `adapter.yaml` says.

    `time_zone` is that of times without offset. `fields` hold in every line that does not say
    otherwise. `variables` has the fields of each foreign variable, None for one that is no
    bandwidth. `columns` has the foreign name of each field of a table.
    """

    time_zone: str = "UTC"
    fields: _Fields = ()
    variables: tuple[tuple[str, _Fields | None], ...] = ()
    columns: _Fields = ()


def load_options(path: Path) -> tuple[str | None, Options]:
    """Return the adapter's name, if it is said, and the options of the file at `path`, if any.

    Raises:
        AdapterError: the file is not what it has to be; the message names the entry.
    """
    try:
        content = yaml.safe_load(path.read_bytes())
    except FileNotFoundError:
        return None, Options()
    except OSError as error:
        raise AdapterError(f"{path}: {error.strerror or error}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise AdapterError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    try:
        return _options(content)
    except AdapterError as error:
        raise AdapterError(f"{path}: {error}") from None


def _options(content: object) -> tuple[str | None, Options]:
    said = _mapping(content, "the file")
    known = {"adapter", "time_zone", "fields", "variables", "columns"}
    for name in said:
        if name not in known:
            raise AdapterError(f"{name}: no such entry; there are {', '.join(sorted(known))}")
    zone = str(said.get("time_zone", "UTC"))
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, KeyError):  # what it raises depends on what is wrong
        raise AdapterError(f"time_zone: there is no time zone {zone!r}") from None
    variables = {
        str(name): None if fields is None else _fields(fields, f"variables: {name}")
        for name, fields in _mapping(said.get("variables"), "variables").items()
    }
    for name, fields in variables.items():
        wanted = dict(fields or ()).get("perf_var", "write_bw")
        if wanted not in VARIABLE_UNITS:
            raise AdapterError(f"variables: {name}: perf_var: unknown variable {wanted!r}")
    adapter = said.get("adapter")
    return None if adapter is None else str(adapter), Options(
        zone,
        _fields(said.get("fields"), "fields"),
        tuple(variables.items()),
        _fields(said.get("columns"), "columns"),
    )


def _fields(content: object, where: str) -> _Fields:
    fields = _mapping(content, where)
    for name in fields:
        if name not in FIELDS:
            raise AdapterError(f"{where}: {name}: no such field")
    return tuple((str(name), "" if value is None else str(value)) for name, value in fields.items())


def _mapping(content: object, where: str) -> dict[object, object]:
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise AdapterError(f"{where}: not a mapping")
    return content
