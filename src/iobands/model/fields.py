"""The columns of a perflog (contract 2): one row each, from which everything else follows.

The ReFrame configuration, the checks, the reader, the documentation and the views derive their
lists from `FIELDS`, so a new covariate is one row here and a new golden header in
`tests/contracts/golden/perflog-header.txt`. ReFrame checks import this: standard library only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Type = Literal["time", "text", "integer", "number"]
#: `run`: when, where and which run. `outcome`: how it ended. `series`: with the variable, what
#: makes a series. `band`: what else a band may match. `in_effect`: what a run proved about how it
#: ran. `covariate`: what was measured beside the rate. `value`: the measurement.
#: `speeds`: of storage targets and nodes, which no sample has. `by_variable`, `reference`: written
#: for people and ReFrame, not read by iobands.
Role = Literal[
    "run",
    "outcome",
    "series",
    "band",
    "in_effect",
    "covariate",
    "value",
    "speeds",
    "by_variable",
    "reference",
]


@dataclass(frozen=True)
class Field:
    """A column; `sentence` documents it in docs/contracts.md.

    A series field that came `later` may be missing from older perflogs.
    """

    name: str
    type: Type
    role: Role
    sentence: str
    unit: str = ""
    later: bool = False

    @property
    def log_name(self) -> str:
        """What ReFrame's log format calls it."""
        return self.name if self.name == "version" else f"check_{self.name}"


TIME: Final = "job_completion_time"
VARIABLE: Final = "perf_var"
VALUE: Final = "perf_value"
UNIT: Final = "perf_unit"


# fmt: off
#: Every column, in the order of the perflog. A new one goes before `case`; names never change.
FIELDS: Final = (
    Field(TIME, "time", "run", "when the job completed: RFC 3339 with UTC offset"),
    Field("result", "text", "outcome", "`pass`, `fail`, `abort`, … of the check"),
    Field("fail_phase", "text", "outcome", "the phase that failed, or `null`"),
    Field("display_name", "text", "outcome", "ReFrame's name of the check with its parameters"),
    Field("hashcode", "text", "outcome", "ReFrame's hash of the check"),
    Field("system", "text", "series", "where it ran"),
    Field("partition", "text", "series", "where it ran"),
    Field("environ", "text", "series", "with which programming environment it ran"),
    Field("jobid", "text", "run", "of the scheduler"),
    Field("job_nodelist", "text", "run", "the nodes, as the scheduler writes them"),
    Field("version", "text", "in_effect", "of ReFrame"),
    Field("suite_version", "text", "in_effect", "of iobands' checks"),
    Field("tool", "text", "series", "`benchio`, `ior`, `mdtest` or `io500`"),
    Field("tool_version", "text", "in_effect", "the tool's version as the run reported it"),
    Field("pattern", "text", "series", "as in contract 1; those of IOR and mdtest are below"),
    Field("interface", "text", "series", "as in contract 1; those of IOR and mdtest are below"),
    Field("file_system", "text", "series", "as in contract 4"),
    Field("medium", "text", "band", "as in contract 4"),
    Field("file_system_type", "text", "band", "as in contract 4"),
    Field("stripe_count_asked", "integer", "series",
          "−1 means all targets; `null` if the file system has no stripes"),
    Field("stripe_count", "integer", "in_effect",
          "read back from the files; `null` if there are no stripes"),
    Field("stripe_size", "integer", "in_effect",
          "read back from the files; `null` if there are no stripes", "bytes"),
    Field("transport", "text", "series",
          "the feature `ofi` or `ucx` of the environment, else `default`"),
    Field("transport_in_effect", "text", "in_effect",
          "the transport that carried the messages, as proven by the run: `ofi`, `ucx`, or Open "
          "MPI's name of another component, such as `ob1`; `null` without proof"),
    Field("hints", "text", "series", "the name of the hint preset"),
    Field("hints_in_effect", "text", "in_effect",
          "the preset's hints that were read back, as `name=value,…`; `null` without proof of any"),
    Field("fsync", "text", "in_effect",
          "`true` if the clock of the writes stopped only after a successful fsync"),
    Field("cache", "text", "in_effect",
          "`cache` of contract 1 if all reads agree; otherwise `none`"),
    Field("nodes", "integer", "series",
          "what the run had; 0 if the scheduler was to choose and the run failed before that"),
    Field("tasks", "integer", "series", "processes in all; 0 as for `nodes`"),
    Field("gib", "number", "series", "the volume that each phase moves; 0 as for `nodes`",
          "GiB"),
    Field("fullness_percent", "number", "covariate",
          "used space of the file system before the run", "%"),
    Field("targets_active", "integer", "covariate",
          "storage targets of the whole file system in service before the run: OSTs that `lfs "
          "osts` calls active, as it does drained and full ones, OSDs that are up by `ceph osd "
          "stat`, targets that are online and good by BeeGFS's list, disks with data that are up "
          "and ready by `mmlsdisk`"),
    Field("targets_inactive", "integer", "covariate",
          "storage targets of the whole file system out of service"),
    Field("busiest_target", "number", "covariate",
          "how many stripes of the run's files the busiest storage target has, over how many it "
          "has in rotation over all that are in service and in the pool: 1 in rotation, 4 where "
          "all files lie on one of four; `null` where no layout names targets"),
    Field("free_spread_percent", "number", "covariate",
          "how much less was free on the fullest of these targets than on the emptiest one, before "
          "the run: from 17 % on, Lustre gives emptier ones more files", "%"),
    Field("fullest_target_percent", "number", "covariate",
          "used space of the fullest of these targets", "%"),
    Field("fullest_target", "text", "run",
          "which one that was: `OST0003`, BeeGFS's number of a target, or a disk's name on "
          "Spectrum Scale, where `null` stands for disks of several pools"),
    Field("load_per_node", "number", "covariate",
          "the largest one-minute load average of the run's nodes, before the run; of several "
          "nodes only with the launcher `srun`"),
    Field("other_jobs", "integer", "covariate",
          "other users' jobs running on the partition or queue when this one began, as far as the "
          "scheduler (Slurm, PBS, LSF, Flux) shows them"),
    Field("client_written_gib", "number", "covariate",
          "what the run's nodes wrote to a Lustre file system while the program ran, by the client "
          "counters, other programs included; `null` where only root may read the counters; of "
          "several nodes as `load_per_node`", "GiB"),
    Field("client_read_gib", "number", "covariate",
          "the same of reads, those served from memory included", "GiB"),
    Field("open_close_percent", "number", "covariate",
          "the share of the time of the opens and closes, of writes or reads, whichever is larger; "
          "`null` of other tools than benchio", "%"),
    Field("interval_days", "number", "run",
          "within how many days the site's schedule measures it again; `null` if the site file "
          "declares no interval for its tags", "d"),
    Field("spread", "text", "by_variable",
          "how far the repeats of one job lie apart, (largest − smallest) / median of each "
          "variable: `write_bw=0.041,read_bw=0.012`; `null` for a single one"),
    Field("call_seconds", "text", "by_variable",
          "percentiles of the calls that moved data, where the run timed them, in s: "
          "`write_bw=p50:0.00012,p95:0.0003,p99:0.0011,max:0.02;read_bw=…`; of repeats the median, "
          "and the longest of all; `null` otherwise"),
    Field("band_verdict", "text", "by_variable",
          "of each variable of the run: `write_bw=within,read_bw=below`"),
    Field("attempt", "integer", "run",
          "2 if `iobands run` repeated the run after a failure of infrastructure, else 1"),
    Field("targets", "text", "speeds",
          "which storage targets the files of the run lie on, and how many files use each: "
          "`0-3:512,4:511`; `null` where no layout names them"),
    Field("target_bandwidths", "text", "speeds",
          "the bandwidth of each target over that of targets with as many bytes of the run, by the "
          "times of the ranks whose files lie on it: `write_bw=0:1.02,1:nan;read_bw=0:1,1:1.01`; "
          "`nan` where the bytes on each explain a difference, `null` where the times do not tell"),
    Field("node_speeds", "text", "speeds",
          "how fast each node was over the median node, by the times of its ranks: "
          "`write_bw=nid01:1.02,nid02:0.98`"),
    Field("placement", "text", "in_effect",
          "what the layout of the files says of their place besides stripes: `pool=NAME`, and on "
          "Spectrum Scale `fileset=NAME` and `replicas=N`; `null` where it says nothing"),
    Field("time_shares", "text", "run",
          "the share of opens, transfers, syncs and closes in the time of each variable: "
          "`write_bw=open:0.01,transfer:0.95,sync:0.03,close:0.01`, each by the rank for which it "
          "took longest; `null` of other tools than benchio"),
    Field("mpiio_calls", "text", "in_effect",
          "how many calls of MPI-IO moved data, of all processes and repeats: "
          "`write_bw=collective:64,independent:0`, seen by benchio or printed by Cray's library; "
          "`null` where none were seen"),
    Field("movers", "text", "in_effect",
          "how many processes moved the data by system calls of their own, of the repeats the "
          "most: `write_bw=4,read_bw=16`; with collective buffering these are the aggregators; "
          "`null` where nobody counts"),
    Field("striping_command", "text", "run",
          "the shell command that stripes a directory so, without its last word, which is the "
          "directory; `null` where no stripe count was asked for"),
    Field("session", "text", "run",
          "what identifies the session: all runs of one `iobands run`, or of one `reframe -r`, "
          "have the same"),
    Field("purpose", "text", "run",
          "why the run was made: `scheduled`, `repeat`, `suspect`, `recovery` or `manual`, as "
          "below"),
    Field("case", "text", "series",
          "name and setting of a case, such as `csc-blocking unit`, where no other field "
          "distinguishes it from daily measurements; `null` otherwise, and where a perflog lacks "
          "the column", later=True),
    Field(VARIABLE, "text", "value", "the variable: below"),
    Field(VALUE, "number", "value", "its value; `null` if the run proved nothing"),
    Field(UNIT, "text", "value", "its unit"),
    Field("perf_ref", "text", "reference", "ReFrame's reference"),
    Field("perf_lower_thres", "text", "reference", "its lower threshold, as a share of it"),
    Field("perf_upper_thres", "text", "reference", "its upper threshold, as a share of it"),
    Field("perf_result", "text", "reference", "ReFrame's verdict on this variable"),
)
# fmt: on

FIELD: Final[Mapping[str, Field]] = {field.name: field for field in FIELDS}


def _names(*roles: Role) -> tuple[str, ...]:
    return tuple(field.name for field in FIELDS if field.role in roles)


#: The fields that samples have.
READ: Final = tuple(
    field.name for field in FIELDS if field.role not in {"speeds", "by_variable", "reference"}
)
#: The columns without which a perflog cannot be read.
REQUIRED: Final = tuple(
    field.name
    for field in FIELDS
    if (field.role in {"series", "band", "value"} and not field.later)
    or field.name in {TIME, "result", "display_name", "tool_version"}
)
#: The fields that, with the variable, make a series.
SERIES_FIELDS: Final = _names("series")
#: The series fields that came later: an older perflog has no column of them, and none is missing.
LATER_FIELDS: Final = frozenset(SERIES_FIELDS) - frozenset(REQUIRED)
#: The series fields that are numbers.
NUMERIC_FIELDS: Final = frozenset(
    name for name in SERIES_FIELDS if FIELD[name].type in {"integer", "number"}
)
#: What the `match` of a band may name (contract 3).
MATCH_FIELDS: Final = (*SERIES_FIELDS, "variable", *_names("band"))
#: Why a run is made: for the schedule, or as somebody selected it by hand; an older perflog has no
#: column of it, and its runs count as scheduled.
SCHEDULED: Final = "scheduled"
MANUAL: Final = "manual"
PURPOSES: Final = frozenset({SCHEDULED, "repeat", "suspect", "recovery", MANUAL})
#: What was measured beside the rate.
COVARIATES: Final = _names("covariate")
#: What may explain a change: how and where a run went, and what was measured beside the rate.
CONTEXT: Final = ("job_nodelist", *_names("band", "in_effect", "covariate"))
#: How fast targets and nodes were.
SPEEDS: Final = _names("speeds")
#: The format of ReFrame's perflog handler.
PERFLOG_FORMAT: Final = "|".join(f"%({field.log_name})s" for field in FIELDS)
#: The first line of a perflog.
PERFLOG_HEADER: Final = "|".join(field.name for field in FIELDS)

#: The unit of a ratio.
RATIO_UNIT: Final = "1"
#: The unit of each variable. GiB is 2**30 bytes.
VARIABLE_UNITS: Final[Mapping[str, str]] = {
    "write_bw": "GiB/s",
    "read_bw": "GiB/s",
    # of a case that compares: with the setting against without it, and the interval of that
    "list_rate": "1/s",
    **{
        f"{operation}_{name}": unit
        for operation, rate, of_rate in (
            ("write", "bw", "GiB/s"),
            ("read", "bw", "GiB/s"),
            ("list", "rate", "1/s"),
        )
        for name, unit in (
            (f"{rate}_without", of_rate),
            ("ratio", RATIO_UNIT),
            ("ratio_lower", RATIO_UNIT),
            ("ratio_upper", RATIO_UNIT),
        )
    },
    # time steps of a simulation, apart from its I/O and beside it, and with the waits for it
    "step_rate": "1/s",
    "step_rate_beside": "1/s",
    "program_rate": "1/s",
    # layouts of files that are read before the files are written
    "scan_rate": "1/s",
    # metadata: files created, looked at, read and removed
    "create_rate": "1/s",
    "stat_rate": "1/s",
    "read_rate": "1/s",
    "remove_rate": "1/s",
    # IO500, whose own names and units these are
    "io500_score": "points",
    "io500_bandwidth": "GiB/s",
    "io500_metadata": "kIOPS",
    "ior_easy_write": "GiB/s",
    "ior_easy_read": "GiB/s",
    "ior_hard_write": "GiB/s",
    "ior_hard_read": "GiB/s",
    "mdtest_easy_write": "kIOPS",
    "mdtest_easy_stat": "kIOPS",
    "mdtest_easy_delete": "kIOPS",
    "mdtest_hard_write": "kIOPS",
    "mdtest_hard_stat": "kIOPS",
    "mdtest_hard_read": "kIOPS",
    "mdtest_hard_delete": "kIOPS",
    "find": "kIOPS",
}

#: How a perflog spells a missing value.
NULLS: Final = frozenset({"", "null", "None"})

# float() takes more than a decimal number: "nan", "inf", "1_000". A file system may be called so.
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def perflog_line(values: Mapping[str, object]) -> str:
    """Return a line of a perflog; a field without a value is null."""
    return "|".join(str(values.get(field.name, "null")) for field in FIELDS)


def number(text: str) -> float | None:
    """Return the finite decimal number that `text` spells, or None if it spells none."""
    stripped = text.strip()
    if not _NUMBER.fullmatch(stripped):
        return None
    value = float(stripped)
    return value if math.isfinite(value) else None


def canonical(value: object) -> float | str | None:
    """Return `value` in the form in which fields are compared, whatever wrote it.

    The same field is text in a perflog, a number in YAML or in a check, and NaN in a table.
    Numbers and texts that spell one become a float, missing values None, all else its text.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    text = str(value).strip()
    if text in NULLS:
        return None
    as_number = number(text)
    return text if as_number is None else as_number
