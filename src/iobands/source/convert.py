"""Converts a directory of results into perflogs of contract 2, next to the measured ones.

A file NAME of the source becomes the perflog `imported-NAME.log`. Lines that it already has are
not written again, so that a growing source can be converted repeatedly. A mapping, which is a YAML
file, supplies what the results lack.

The source may have perflogs as ReFrame 3 and 4 and EPCC's configuration write them, and CSV tables
with a header. EPCC's perflogs lack the series fields. For its benchio checks on ARCHER2, these
follow from the check's class, its parameter and the variable, as the public epcc-reframe defines
them.
"""

from __future__ import annotations

import csv
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Final
from zoneinfo import ZoneInfo

from iobands.model import (
    NULLS,
    PATH_PART,
    PERFLOG_HEADER,
    READ,
    SERIES_FIELDS,
    SPEEDS,
    TIME,
    UNIT,
    VALUE,
    VARIABLE,
    VARIABLE_UNITS,
    Rejected,
    Unusable,
    from_unix,
    naming,
    not_read,
    number,
    parse_yaml,
    perflog_line,
    read_content,
)
from iobands.source.perflog import NO_PERFLOGS, opened, perflog_files, read_perflogs, readable

#: Bytes by the prefix of a unit. M and Mi differ, as in the programs that print them.
_BYTES: Final = {"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12} | {
    f"{prefix}i": 2.0 ** (10 * power) for power, prefix in enumerate("KMGT", 1)
}
_UNITS: Final = {f"{prefix}B/s": rate / 2**30 for prefix, rate in _BYTES.items()}
_FIELDS_SCHEMA: Final[dict[str, Any]] = {
    "description": "fields of contract 2 and their values",
    "type": "object",
    "propertyNames": {"enum": list(READ)},
    "additionalProperties": {"description": "a string or a number", "type": ["string", "number"]},
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

Said = dict[str, str]
_Line = tuple[Path, int]  # of the source
_Fields = Mapping[str, object]


@dataclass(frozen=True)
class FieldMapping:
    """A mapping file, which docs/other-results.md describes; a variable with None is skipped."""

    time_zone: ZoneInfo = ZoneInfo("UTC")  # noqa: RUF009 (immutable)
    fields: _Fields = field(default_factory=dict)
    variables: Mapping[str, _Fields | None] = field(default_factory=dict)
    columns: _Fields = field(default_factory=dict)


@dataclass(frozen=True)
class Converted:
    """The numbers of rows written, already there and skipped, and the rejected lines.

    `perflogs` are the files to which rows were added.
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
    except (ValueError, OSError, KeyError):  # depends on the text
        problem = "is not a time zone; write one such as 'Europe/London'"
        raise document.error(["time_zone"], problem) from None
    for name, fields in said.get("variables", {}).items():
        if fields is not None and fields.get(VARIABLE, name) not in VARIABLE_UNITS:
            problem = f"has no {VARIABLE}; write a variable of contract 2 as its {VARIABLE}"
            raise document.error(["variables", name], problem)
    return FieldMapping(**{**said, "time_zone": zone})


def convert(source: Path, mapping: FieldMapping, perflogs: Path) -> Converted:
    """Convert the results below the directory `source` into perflogs below `perflogs`.

    Raises:
        NotADirectoryError: `source` is no directory.
        FileNotFoundError: there is no such directory, or nothing to convert in it.
        FileExistsError: an imported perflog has other columns.
        OSError: a perflog cannot be written.
    """
    if not source.is_dir():
        if source.exists():
            raise NotADirectoryError(f"{source}: is not a directory; give the one that contains it")
        raise FileNotFoundError(f"{source}: no such directory")
    found: defaultdict[Path, dict[str, _Line]] = defaultdict(dict)
    rejected: list[Rejected] = []
    passed_over = 0
    for path, line, sample in _samples_below(source, mapping.columns, rejected):
        try:
            if row := _row(sample, mapping):
                found[_place(row, path)].setdefault(perflog_line(row), (path, line))
            else:
                passed_over += 1
        except Unusable as error:
            rejected.append(Rejected(path, line, str(error)))
    for place, text, reason in _unreadable({place: [*lines] for place, lines in found.items()}):
        rejected.append(Rejected(*found[place][text], reason))
        if reason.partition(":")[0] not in SPEEDS:  # without them the rest of a line counts
            del found[place][text]
    added = {place: _append(perflogs / place, [*lines]) for place, lines in found.items()}
    written = sum(added.values())
    return Converted(
        tuple(perflogs / place for place, rows in added.items() if rows),
        written,
        sum(map(len, found.values())) - written,
        passed_over,
        tuple(sorted(rejected, key=lambda each: (each.path, each.line))),
    )


def _row(said: Said, mapping: FieldMapping) -> Said | None:
    """Return a sample in the form of contract 2, None if it is not a measurement.

    If the source has no tool and pattern, the check's class becomes the tool and its whole name the
    pattern, so that each check keeps its own series.

    Raises:
        Unusable: its variable is not known.
    """
    name, is_missing = said["display_name"], VALUE not in said
    variable = str(said.get(VARIABLE) or mapping.fields.get(VARIABLE, ""))
    if not variable:
        return None
    ours: _Fields | None = {}
    if variable in mapping.variables:
        ours = mapping.variables[variable]
    elif of_epcc := _EPCC_VARIABLE.fullmatch(variable):
        ours = _epcc_fields(of_epcc, name)
    elif variable not in VARIABLE_UNITS:
        raise Unusable(f"{VARIABLE}: unknown variable {variable!r}; name it under variables")
    if ours is None:
        return None
    parameters = _parameters_of(name)
    given = {
        "tool": name.split(" ", 1)[0],
        "pattern": name,
        **{field: parameters[field] for field in SERIES_FIELDS if field in parameters},
        "result": "fail" if is_missing else "pass",
        **mapping.fields,
        **said,
        **ours,
    }
    if is_missing and given["result"] == "pass":
        return None  # a dry run
    fields = {name: str(value) for name, value in given.items()}
    fields[TIME] = _with_offset(fields.get(TIME, ""), mapping.time_zone)
    value, unit = number(fields.get(VALUE, "")), fields.get(UNIT, "")
    if is_missing:
        fields[UNIT] = VARIABLE_UNITS[fields[VARIABLE]]
    elif value is not None and unit in _UNITS and unit != "GiB/s":
        fields |= {VALUE: repr(value * _UNITS[unit]), UNIT: "GiB/s"}
    return fields


def _with_offset(text: str, zone: ZoneInfo) -> str:
    """Return a time without an offset as UTC, read in `zone`; any other text as it is."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None and len(text) > len("2024-07-01"):
            return moment.replace(tzinfo=zone, microsecond=0).astimezone(timezone.utc).isoformat()
    except (ValueError, OverflowError):
        pass  # the reader reports what is wrong with it
    return text


def _place(row: Said, path: Path) -> Path:
    """Return the perflog for a row from the file `path`, below the directory of perflogs."""
    directories = (
        name if re.fullmatch(PATH_PART, name) and name not in NO_PERFLOGS else "unnamed"
        for name in (row.get("system", ""), row.get("partition", ""))
    )
    return Path(*directories, f"imported-{path.name.split('.')[0]}.log")


def _unreadable(found: Mapping[Path, Sequence[str]]) -> Iterator[tuple[Path, str, str]]:
    """Yield (perflog, line, reason) for each line that the reader would reject."""
    with TemporaryDirectory(prefix="iobands-") as scratch:
        for place, lines in found.items():
            _append(scratch / place, lines)
        for each in read_perflogs(Path(scratch), most=sys.maxsize).rejected:
            place = each.path.relative_to(scratch)
            repeats = each.reason.startswith("repeats ")
            reason = "repeats another line" if repeats else each.reason
            yield place, found[place][each.line - 2], reason


def _append(path: Path, lines: Sequence[str]) -> int:
    """Append the lines that a perflog lacks, under its header, and return their number."""
    *before, torn = (path.read_text("utf-8", "replace") if path.exists() else "").split("\n")
    if (before or torn) and before[:1] != [PERFLOG_HEADER]:
        raise FileExistsError(f"{path}: has other columns; remove it, and import it again")
    known = set(before)
    if new := [line for line in lines if line not in known]:
        path.parent.mkdir(parents=True, exist_ok=True)
        begin = "\n" if torn else "" if before else f"{PERFLOG_HEADER}\n"
        with naming(path), path.open("a", encoding="utf-8") as perflog:
            perflog.writelines([begin, *(f"{line}\n" for line in new)])
    return len(new)


_UNIX: Final = "job_completion_time_unix"
#: Seconds since 1970, in 1973: a smaller number is a date, such as 20240701.
_FIRST: Final = 1e8
_ENDING: Final = "_value"
_IN_ONE: Final = "perf_value perf_unit"
#: The columns of EPCC's earlier perflogs, which have no header.
_EPCC: Final = ("display_name", "result", TIME, VARIABLE, _IN_ONE, "reference", "")
#: ReFrame's names of our fields; `name` includes the parameters, which `unique_name` may lack.
_REFRAME: Final = {"num_tasks": "tasks", "num_nodes": "nodes", "name": "display_name"}
# ReFrame's description of a check: "on system:partition using environment" up to ReFrame 3, then
# "/hash @system:partition+environment".
_INFO: Final = re.compile(
    r"(?P<display_name>.+?)(?: /(?P<hashcode>[0-9a-f]+))?"
    r"(?: on | @)(?P<system>[^:+\s]+):(?P<partition>[^+\s]+)(?: using |\+)(?P<environ>\S+)"
)
_REFRAME_3: Final = re.compile(
    r"(?P<job_completion_time>[^|]+)\|reframe (?P<version>[^|\s]*)[^|]*\|(?P<info>[^|]*)"
    r"\|jobid=(?P<jobid>[^|]*)(?:\|num_tasks=(?P<tasks>[^|]*))?"
    r"\|(?P<perf_var>[^|=]+)=(?P<perf_value>[^|]*)\|\s*ref=[^|]*\|(?P<perf_unit>[^|]*)\|?"
)

# EPCC's names of variables, and the settings that a name stands for.
_EPCC_VARIABLE: Final = re.compile(
    r"(?:extract_)?(?P<stripes>unstriped|striped|fullstriped)_(?P<layer>file|mpiio|hdf5)"
    r"(?P<kind>_bw|_time)?"
)
_STRIPES: Final = {"unstriped": "1", "striped": "4", "fullstriped": "-1"}
_LAYERS: Final = {"file": ("fpp", "posix"), "mpiio": ("ssf", "mpiio"), "hdf5": ("ssf", "hdf5")}
_EPCC_NODES: Final = re.compile(r"(\d+)Nodes?$")
# By pattern and nodes: the tasks, and the edge of the array in 8-byte elements.
_SIZES: Final = {
    ("fpp", "16"): (2048, 2048),
    ("fpp", "32"): (2048, 8192),
    ("ssf", "16"): (2048, 2048),
    ("ssf", "32"): (4096, 4096),
}
_SMALL_EDGE: Final = 1260
_TASKS_PER_NODE: Final = 128
_FILE_SYSTEM: Final = re.compile(r"a2fs-(\w+)")


def _samples_below(
    source: Path, called: Mapping[str, object], rejected: list[Rejected]
) -> Iterator[tuple[Path, int, Said]]:
    """Yield each sample with its file and line; add what cannot be used to `rejected`.

    `called` maps fields to their columns in tables that use other names.
    """
    failed: list[OSError] = []
    tables = [
        Path(where, name)
        for where, _, names in os.walk(source, onerror=failed.append)
        for name in names
        if _is_table(Path(name))
    ]
    rejected += [not_read(Path(error.filename), error) for error in failed]
    files = sorted([*perflog_files(source), *tables])
    if not (files or failed):
        raise FileNotFoundError(f"{source}: no table *.csv and no SYSTEM/PARTITION/*.log below it")
    for path in files:
        columns: Sequence[str] = () if _is_table(path) else _EPCC
        with readable(path, rejected), opened(path) as stream:
            # a spreadsheet puts a byte order mark before a table
            text = stream.read().decode("utf-8-sig", "replace").replace("\r\n", "\n")
            for place, line in enumerate(text.removesuffix("\n").split("\n"), 1):
                try:
                    columns, samples = _read(line, path, columns, called)
                    yield from ((path, place, sample) for sample in samples)
                except Unusable as error:
                    rejected.append(Rejected(path, place, str(error)))


def _read(
    line: str, path: Path, columns: Sequence[str], called: Mapping[str, object]
) -> tuple[Sequence[str], list[Said]]:
    """Return the columns that apply after a line, and the samples on it, [] for a header.

    Raises:
        Unusable: it is neither a header nor a sample.
    """
    if "\ufffd" in line:
        raise Unusable("bytes that are not UTF-8")
    is_table = _is_table(path)
    fields = {**_REFRAME, **{str(theirs): ours for ours, theirs in called.items()}}
    has_commas = is_table or "|" not in line  # as in perflogs of ReFrame 4.0 to 4.2
    cells = [cell.strip() for cell in (_csv_cells(line) if has_commas else line.split("|"))]
    names = [fields.get(cell, cell) for cell in cells]
    if not {TIME, _UNIX}.isdisjoint(names):
        missing = [str(theirs) for ours, theirs in called.items() if ours not in names]
        if is_table and missing:
            raise Unusable(f"columns are missing: {', '.join(missing)}")
        return names, []
    if of_reframe_3 := _REFRAME_3.fullmatch(line.strip()):
        return columns, [_complete(of_reframe_3.groupdict(""), path)]
    if is_table and len(cells) == 1 and ";" in line:
        raise Unusable("semicolons between the columns; write commas, and points in numbers")
    if len(cells) != len(columns):
        if columns:
            raise Unusable(f"{len(cells)} columns instead of {len(columns)}")
        remedy = "; a mapping may name its column" if is_table else ""
        raise Unusable(f"no header line with {TIME} before it{remedy}")
    said = dict(zip(columns, cells, strict=True))
    return columns, [_complete(sample, path) for sample in _samples(said)]


def _is_table(path: Path) -> bool:
    return path.suffix.lower() == ".csv"


def _parameters_of(display_name: str) -> Said:
    """Return the parameters that ReFrame writes into a name, as `%name=value`."""
    return dict(re.findall(r"%(?:\w+\.)*(\w+)=(\S*)", display_name))


def _csv_cells(line: str) -> list[str]:
    try:
        (cells,) = csv.reader([line], strict=True)
    except (csv.Error, ValueError) as error:
        raise Unusable(f"not CSV: {error}") from None
    return cells


def _samples(said: Said) -> Iterator[Said]:
    """Yield the samples of a line: one for its variable, or one for each column of a variable."""
    if VARIABLE in said and _IN_ONE in said:
        value, _, unit = said[_IN_ONE].partition(" ")
        yield {**said, VALUE: value, UNIT: unit}
    elif VALUE in said:
        yield said
    else:
        for name, value in said.items():
            if name.endswith(_ENDING):
                variable = name.removesuffix(_ENDING)
                unit = said.get(f"{variable}_unit", "")
                yield {**said, VARIABLE: variable, VALUE: value, UNIT: unit}


def _complete(said: Said, path: Path) -> Said:
    """Return a sample with fields from its path, and from its description of the check, `info`."""
    found = {"display_name": path.name.split(".")[0]}
    if not _is_table(path):
        found |= {"system": path.parent.parent.name, "partition": path.parent.name}
    if "info" in said:
        if not (info := _INFO.fullmatch(said["info"].strip())):
            raise Unusable(f"{said['info']!r} does not name check, system and partition")
        found |= {name: value for name, value in info.groupdict().items() if value}
    found |= {name: value.strip() for name, value in said.items() if value.strip() not in NULLS}
    seconds = number(found.get(_UNIX) or found.get(TIME, ""))
    when = from_unix(seconds if seconds and seconds > _FIRST else None)
    return {**found, TIME: when.isoformat()} if when else found


def _epcc_fields(match: re.Match[str], display_name: str) -> Mapping[str, object] | None:
    """Return the fields that an EPCC variable implies; None for a time, which is not a rate."""
    if match["kind"] == "_time":
        return None
    name, parameters = display_name.split(" ", 1)[0], _parameters_of(display_name)
    pattern, interface = _LAYERS[match["layer"]]
    small = name.casefold().startswith("benchiosmall")
    # the small checks call the directory with all stripes "striped"
    stripes = "fullstriped" if small and match["stripes"] == "striped" else match["stripes"]
    fields: dict[str, object] = {
        VARIABLE: "write_bw",
        "tool": "benchio",
        "pattern": pattern,
        "interface": interface,
        "fsync": "true",
        "stripe_count_asked": _STRIPES[stripes],
        "transport": "ucx" if "UCX" in name else "ofi",
        # its environment has the settings that the User Guide recommends for one shared file
        "hints": "archer2-ssf" if "Opt" in name else "default",
    }
    named, count = _EPCC_NODES.search(name), parameters.get("num_nodes", "")
    if named and (pattern, named[1]) in _SIZES:
        tasks, edge = _SIZES[pattern, named[1]]
        fields |= {"nodes": named[1], "tasks": tasks, "gib": 8 * edge**3 / 2**30}
    elif small and count.isdigit():
        tasks = _TASKS_PER_NODE * int(count)
        fields |= {"nodes": count, "tasks": tasks, "gib": 8 * _SMALL_EDGE**3 / 2**30}
    directory = parameters.get("write_dir_prefix", "")
    if found := _FILE_SYSTEM.search(directory):
        medium = "nvme" if found[1] == "nvme" else "hdd"
        return fields | {"file_system": found[1], "medium": medium, "file_system_type": "lustre"}
    # on other systems, the directory distinguishes file systems
    return fields | ({"file_system": PurePosixPath(directory)} if directory else {})
