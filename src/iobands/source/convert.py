"""Converting a directory of results into perflogs of contract 2, next to the measured ones.

A file NAME of the source becomes the perflog `imported-NAME.log`. Lines that it already has are
not written again, so that a growing source can be converted repeatedly. A mapping, which is a YAML
file, supplies what the results lack.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from zoneinfo import ZoneInfo

from iobands.model import (
    PATH_PART,
    PERFLOG_HEADER,
    READ,
    SERIES_FIELDS,
    TIME,
    UNIT,
    VALUE,
    VARIABLE,
    VARIABLE_UNITS,
    Rejected,
    Unusable,
    number,
    parse_yaml,
    perflog_line,
    read_content,
)
from iobands.source.foreign import (
    Said,
    epcc_fields,
    is_epcc,
    parameters_of,
    read_file,
    source_files,
)
from iobands.source.perflog import read_perflogs

_LOCAL_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?", re.ASCII)
#: The B/s of each unit. M and Mi differ, as in the programs that print them.
_BYTES: Final = {"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12} | {
    f"{prefix}i": 2.0 ** (10 * power) for power, prefix in enumerate("KMGT", 1)
}
_UNITS: Final = {f"{prefix}B/s": rate / 2**30 for prefix, rate in _BYTES.items()}
_FIELDS_SCHEMA: Final[dict[str, Any]] = {
    "description": "fields of contract 2 and their values",
    "type": "object",
    "propertyNames": {"enum": list(READ)},
    "additionalProperties": {"description": "a text or a number", "type": ["string", "number"]},
}
_MAPPING_SCHEMA: Final[dict[str, Any]] = {
    "description": "fields, columns and variables",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "time_zone": {"description": "a time zone", "type": "string"},
        "fields": _FIELDS_SCHEMA,
        "columns": _FIELDS_SCHEMA,
        "variables": {
            "description": "variables and their meaning",
            "type": "object",
            "additionalProperties": {**_FIELDS_SCHEMA, "type": ["object", "null"]},
        },
    },
}

_Line = tuple[Path, int]  # of the source
_Texts = Mapping[str, str]


@dataclass(frozen=True)
class FieldMapping:
    """A mapping file, which docs/other-results.md describes; None skips a variable."""

    time_zone: ZoneInfo = ZoneInfo("UTC")  # noqa: RUF009 (immutable)
    fields: _Texts = field(default_factory=dict)
    variables: Mapping[str, _Texts | None] = field(default_factory=dict)
    columns: _Texts = field(default_factory=dict)


@dataclass(frozen=True)
class Converted:
    """The numbers of rows written, already there and skipped, and the rejected lines.

    `perflogs` are the files with the rows.
    """

    perflogs: tuple[Path, ...]
    written: int
    known: int
    passed_over: int
    rejected: tuple[Rejected, ...]


def read_mapping(path: Path) -> FieldMapping:
    """Return the mapping in the file at `path`.

    Raises:
        FileError: the file cannot be used; the message says where and what to write.
    """
    document = parse_yaml(read_content(path), path)
    document.check(_MAPPING_SCHEMA)
    said = document.value
    try:
        zone = ZoneInfo(said.get("time_zone", "UTC"))
    except (ValueError, OSError, KeyError):  # the kind of error decides which
        problem = "is not a time zone; write one such as 'Europe/London'"
        raise document.error(["time_zone"], problem) from None
    variables = said.get("variables", {})
    for name, fields in variables.items():
        if fields is not None and fields.get(VARIABLE, name) not in VARIABLE_UNITS:
            problem = f"has no {VARIABLE}; write a variable of contract 2 as its {VARIABLE}"
            raise document.error(["variables", name], problem)
    texts = {name: _texts(fields) for name, fields in variables.items()}
    return FieldMapping(
        zone, _texts(said.get("fields")) or {}, texts, _texts(said.get("columns")) or {}
    )


def _texts(fields: Mapping[str, object] | None) -> _Texts | None:
    return None if fields is None else {name: str(value) for name, value in fields.items()}


def convert(source: Path, mapping: FieldMapping, perflogs: Path) -> Converted:
    """Convert the results below the directory `source` into perflogs below `perflogs`.

    Raises:
        FileNotFoundError: there is no such directory.
        FileExistsError: an imported perflog has other columns.
        OSError: a perflog cannot be written.
    """
    if not source.is_dir():
        raise FileNotFoundError(f"{source}: no such directory")
    found: defaultdict[Path, dict[str, _Line]] = defaultdict(dict)
    rejected: list[Rejected] = []
    passed_over = 0
    for line, row in _rows(source, mapping):
        if isinstance(row, Unusable):
            rejected.append(Rejected(*line, str(row)))
        elif row is None:
            passed_over += 1
        else:
            text = perflog_line(row)
            found[_place(row, line[0])].setdefault(text, line)
    for place, text, reason in list(_unreadable(found)):
        rejected.append(Rejected(*found[place].pop(text), reason))
    written = sum(_append(perflogs / place, list(lines)) for place, lines in found.items())
    return Converted(
        tuple(perflogs / place for place, lines in found.items() if lines),
        written,
        sum(len(lines) for lines in found.values()) - written,
        passed_over,
        tuple(sorted(rejected, key=lambda each: (each.path, each.line))),
    )


def _rows(source: Path, mapping: FieldMapping) -> Iterator[tuple[_Line, Said | Unusable | None]]:
    """Yield each sample with its origin; None for one that is skipped."""
    files, failed = source_files(source)
    for error in failed:
        yield (Path(error.filename), 0), Unusable(f"cannot be read: {error.strerror or error}")
    for path in files:
        try:
            for place, samples in enumerate(read_file(path, mapping.columns), 1):
                if isinstance(samples, Unusable):
                    yield (path, place), samples
                else:
                    yield from (((path, place), _row(said, mapping)) for said in samples)
        except OSError as error:
            yield (path, 0), Unusable(f"cannot be read: {error.strerror or error}")


def _row(said: Said, mapping: FieldMapping) -> Said | Unusable | None:
    """Return a sample in the form of contract 2, None if it is not a measurement.

    If the source has no tool and pattern, the check's class becomes the tool and its whole name the
    pattern, so that each check keeps its own series.
    """
    name, variable, is_missing = said["display_name"], said.get(VARIABLE), VALUE not in said
    if variable and variable in mapping.variables:
        ours = mapping.variables[variable]
    elif variable and is_epcc(variable):
        ours = epcc_fields(variable, name)
    elif variable in VARIABLE_UNITS:
        ours = {}
    elif variable:
        return Unusable(f"{VARIABLE}: unknown variable {variable!r}; name it under variables")
    else:
        ours = None
    if ours is None:
        return None
    parameters = parameters_of(name)
    fields = {
        "tool": name.split(" ", 1)[0],
        "pattern": name,
        **{field: parameters[field] for field in SERIES_FIELDS if field in parameters},
        "result": "fail" if is_missing else "pass",
        **mapping.fields,
        **said,
        **ours,
    }
    if is_missing and fields["result"] == "pass":
        return None  # a dry run
    fields[TIME] = _with_offset(fields.get(TIME, ""), mapping.time_zone)
    value, unit = number(fields.get(VALUE, "")), fields.get(UNIT, "")
    if is_missing:
        fields[UNIT] = VARIABLE_UNITS[fields[VARIABLE]]
    elif value is not None and unit in _UNITS and unit != "GiB/s":
        fields |= {VALUE: repr(value * _UNITS[unit]), UNIT: "GiB/s"}
    return fields


def _with_offset(text: str, zone: ZoneInfo) -> str:
    """Return a time with its offset, taken from `zone` if it lacks one; other text as it is."""
    if not _LOCAL_TIME.fullmatch(text):
        return text
    try:
        moment = datetime.fromisoformat(text[:19].replace("t", "T")).replace(tzinfo=zone)
        return moment.astimezone(timezone.utc).isoformat()
    except (ValueError, OverflowError):
        return text  # the reader reports what is wrong with it


def _place(row: Said, path: Path) -> Path:
    """Return the perflog for the row of a file, below the directory of perflogs."""
    names = (row.get("system", ""), row.get("partition", ""))
    directories = (name if re.fullmatch(PATH_PART, name) else "unnamed" for name in names)
    return Path(*directories, f"imported-{path.name.split('.')[0]}.log")


def _unreadable(
    found: Mapping[Path, Mapping[str, _Line]],
) -> Iterator[tuple[Path, str, str]]:
    """Yield perflog, line and reason of what the reader rejects."""
    with TemporaryDirectory(prefix="iobands-") as scratch:
        directory = Path(scratch)
        texts = {place: list(lines) for place, lines in found.items()}
        for place, lines in texts.items():
            _append(directory / place, lines)
        for each in read_perflogs(directory).rejected:
            place = each.path.relative_to(directory)
            repeats = each.reason.startswith("repeats ")
            reason = "repeats another line" if repeats else each.reason
            yield place, texts[place][each.line - 2], reason


def _append(path: Path, lines: Sequence[str]) -> int:
    """Append the lines that a perflog lacks, under its header, and return their number."""
    before = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if before and before[0] != PERFLOG_HEADER:
        raise FileExistsError(f"{path}: has other columns; remove it, and import it again")
    known = set(before)
    new = [line for line in lines if line not in known]
    if new:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as perflog:
            perflog.writelines(f"{line}\n" for line in ([] if before else [PERFLOG_HEADER]) + new)
    return len(new)
