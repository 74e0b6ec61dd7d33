"""The columns of a perflog (contract 2): one row each, from which everything else follows.

The ReFrame configuration, the checks, the reader and the views derive their lists from `FIELDS`, so
a new covariate is a row here, a row in docs/contracts.md, and a new golden header in
`tests/contracts/golden/perflog-header.txt`. ReFrame checks import this: standard library only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Type = Literal["time", "text", "integer", "number"]
#: `run`: when, where and which run. `outcome`: how it ended. `series`: identifies a series, with
#: the variable. `band`: may also be matched by a band. `in_effect`: settings that the run proved.
#: `covariate`: measured next to the rate. `value`: the measurement. `speeds`: of storage targets
#: and nodes, kept apart from samples. `by_variable`, `reference`: for people and ReFrame; iobands
#: does not read them.
Role = Literal[
    "run", "outcome", "series", "band", "in_effect", "covariate", "value", "speeds",
    "by_variable", "reference",
]  # fmt: skip


@dataclass(frozen=True)
class Field:
    """A column, which docs/contracts.md describes.

    A series field that came `later` may be missing from older perflogs.
    """

    name: str
    type: Type
    role: Role
    unit: str = ""
    later: bool = False


TIME: Final = "job_completion_time"
VARIABLE: Final = "perf_var"
VALUE: Final = "perf_value"
UNIT: Final = "perf_unit"


#: Every column, in the order of the perflog. A new one goes before `case`; names never change.
FIELDS: Final = (
    Field(TIME, "time", "run"),
    Field("result", "text", "outcome"),
    Field("fail_phase", "text", "outcome"),
    Field("display_name", "text", "outcome"),
    Field("hashcode", "text", "outcome"),
    Field("system", "text", "series"),
    Field("partition", "text", "series"),
    Field("environ", "text", "series"),
    Field("jobid", "text", "run"),
    Field("job_nodelist", "text", "run"),
    Field("version", "text", "in_effect"),
    Field("suite_version", "text", "in_effect"),
    Field("tool", "text", "series"),
    Field("tool_version", "text", "in_effect"),
    Field("pattern", "text", "series"),
    Field("interface", "text", "series"),
    Field("file_system", "text", "series"),
    Field("medium", "text", "band"),
    Field("file_system_type", "text", "band"),
    Field("stripe_count_asked", "integer", "series"),
    Field("stripe_count", "integer", "in_effect"),
    Field("stripe_size", "integer", "in_effect", "bytes"),
    Field("transport", "text", "series"),
    Field("transport_in_effect", "text", "in_effect"),
    Field("hints", "text", "series"),
    Field("hints_in_effect", "text", "in_effect"),
    Field("fsync", "text", "in_effect"),
    Field("cache", "text", "in_effect"),
    Field("nodes", "integer", "series"),
    Field("tasks", "integer", "series"),
    Field("gib", "number", "series", "GiB"),
    Field("fullness_percent", "number", "covariate", "%"),
    Field("targets_active", "integer", "covariate"),
    Field("targets_inactive", "integer", "covariate"),
    Field("busiest_target", "number", "covariate"),
    Field("free_spread_percent", "number", "covariate", "%"),
    Field("fullest_target_percent", "number", "covariate", "%"),
    Field("fullest_target", "text", "run"),
    Field("load_per_node", "number", "covariate"),
    Field("other_jobs", "integer", "covariate"),
    Field("client_written_gib", "number", "covariate", "GiB"),
    Field("client_read_gib", "number", "covariate", "GiB"),
    Field("open_close_percent", "number", "covariate", "%"),
    Field("interval_days", "number", "run", "d"),
    Field("spread", "text", "by_variable"),
    Field("call_seconds", "text", "by_variable"),
    Field("band_verdict", "text", "by_variable"),
    Field("attempt", "integer", "run"),
    Field("targets", "text", "speeds"),
    Field("target_bandwidths", "text", "speeds"),
    Field("node_speeds", "text", "speeds"),
    Field("placement", "text", "in_effect"),
    Field("time_shares", "text", "run"),
    Field("mpiio_calls", "text", "in_effect"),
    Field("movers", "text", "in_effect"),
    Field("striping_command", "text", "run"),
    Field("session", "text", "run"),
    Field("purpose", "text", "run"),
    Field("case", "text", "series", later=True),
    Field(VARIABLE, "text", "value"),
    Field(VALUE, "number", "value"),
    Field(UNIT, "text", "value"),
    Field("perf_ref", "text", "reference"),
    Field("perf_lower_thres", "text", "reference"),
    Field("perf_upper_thres", "text", "reference"),
    Field("perf_result", "text", "reference"),
)

FIELD: Final[Mapping[str, Field]] = {field.name: field for field in FIELDS}


def _names(*roles: Role) -> tuple[str, ...]:
    return tuple(field.name for field in FIELDS if field.role in roles)


#: The fields that samples have.
READ: Final = _names("run", "outcome", "series", "band", "in_effect", "covariate", "value")
#: The fields that, with the variable, make a series.
SERIES_FIELDS: Final = _names("series")
#: The series fields that came later: older perflogs lack their columns, which is no error.
LATER_FIELDS: Final = frozenset(name for name in SERIES_FIELDS if FIELD[name].later)
#: The columns without which a perflog cannot be read.
REQUIRED: Final = tuple(
    name
    for name in FIELD
    if name in {*_names("series", "band", "value"), TIME, "result", "display_name", "tool_version"}
    and name not in LATER_FIELDS
)
#: The series fields that are numbers.
NUMERIC_FIELDS: Final = frozenset(name for name in SERIES_FIELDS if FIELD[name].type != "text")
#: The fields that the `match` of a band may name (contract 3).
MATCH_FIELDS: Final = (*SERIES_FIELDS, "variable", *_names("band"))
#: The columns that identify a check on one partition with one environment.
CHECK: Final = ("system", "partition", "environ", "display_name")
#: The purposes of runs: on schedule, selected by hand, or measured again: a low run at the end of
#: its session, a suspect, or an alert that may be over. Older perflogs lack the column; their runs
#: count as scheduled.
SCHEDULED: Final = "scheduled"
MANUAL: Final = "manual"
REPEAT: Final = "repeat"
SUSPECT: Final = "suspect"
RECOVERY: Final = "recovery"
#: A run of an acceptance. It is made under the conditions of a contract, which are not everyday
#: conditions, so only the acceptance reads it.
ACCEPTANCE: Final = "acceptance"
#: One of several runs in a row, just before or just after a maintenance.
MAINTENANCE: Final = "maintenance"
#: The purposes of runs outside the schedule from which nothing is learned. An earlier run asked for
#: them, so they are low more often than healthy runs; or, around a maintenance, all share the level
#: of one day. `MANUAL` is not among them: a person's selection does not follow from a result.
ASKED: Final = frozenset({REPEAT, SUSPECT, RECOVERY, MAINTENANCE})
PURPOSES: Final = frozenset({SCHEDULED, MANUAL, ACCEPTANCE}) | ASKED
#: The words of a check that was refused because another one feeds its series.
SHARED_SERIES: Final = "would feed one series"
#: The columns measured next to the rate.
COVARIATES: Final = _names("covariate")
#: The columns with the speeds of targets and nodes.
SPEEDS: Final = _names("speeds")
#: The format of ReFrame's perflog handler. All but ReFrame's version are attributes of checks.
PERFLOG_FORMAT: Final = "|".join(
    f"%({name if name == 'version' else f'check_{name}'})s" for name in FIELD
)
#: The first line of a perflog.
PERFLOG_HEADER: Final = "|".join(field.name for field in FIELDS)

#: The unit of a ratio.
RATIO_UNIT: Final = "1"
#: The unit of each variable. GiB is 2**30 bytes.
VARIABLE_UNITS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("write_bw", "read_bw"), "GiB/s"),
    "list_rate": "1/s",
    # a case that compares a setting: the rate without it, the ratio with to without, its interval
    **dict.fromkeys(("write_bw_without", "read_bw_without"), "GiB/s"),
    "list_rate_without": "1/s",
    **{
        f"{operation}_ratio{end}": RATIO_UNIT
        for operation in ("write", "read", "list")
        for end in ("", "_lower", "_upper")
    },
    # time steps of a simulation: without I/O, during I/O, and including the waits for I/O
    **dict.fromkeys(("step_rate", "step_rate_beside", "program_rate"), "1/s"),
    # reads of file layouts before the files are written
    "scan_rate": "1/s",
    # metadata: files created, looked at, read and removed
    **dict.fromkeys(("create_rate", "stat_rate", "read_rate", "remove_rate"), "1/s"),
    # IO500, with its own names and units
    "io500_score": "points",
    "io500_bandwidth": "GiB/s",
    "io500_metadata": "kIOPS",
    **{f"ior_{level}_{way}": "GiB/s" for level in ("easy", "hard") for way in ("write", "read")},
    **{f"mdtest_easy_{what}": "kIOPS" for what in ("write", "stat", "delete")},
    **{f"mdtest_hard_{what}": "kIOPS" for what in ("write", "stat", "read", "delete")},
    "find": "kIOPS",
}

#: A missing value in a perflog.
NULLS: Final = frozenset({"", "null", "None"})

# float() also accepts "nan", "inf" and "1_000", which may be names of file systems.
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)

_BREAKS: Final = re.compile(r"[\x00-\x1f|]")


def perflog_line(values: Mapping[str, object]) -> str:
    """Return a line of a perflog; a field without a value is null.

    A bar or a control character in a value becomes a blank, as it would break the line.
    """
    cells = (str(values.get(field.name, "null")) for field in FIELDS)
    return "|".join(_BREAKS.sub(" ", cell) for cell in cells)


def number(text: str) -> float | None:
    """Return the finite decimal number that `text` spells, or None."""
    stripped = text.strip()
    if not _NUMBER.fullmatch(stripped):
        return None
    value = float(stripped)
    return value if math.isfinite(value) else None


def canonical(value: object) -> float | str | None:
    """Return `value` in the form in which fields are compared, whatever its source.

    The same field is text in a perflog, a number in YAML or in a check, and NaN in a table.
    Numbers, and texts that spell one, become floats, missing values None, anything else its text.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    text = str(value).strip()
    if text in NULLS:
        return None
    as_number = number(text)
    return text if as_number is None else as_number
