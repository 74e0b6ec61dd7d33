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
#: `run`: when, where and which run. `outcome`: how it ended. `series`: identifies a series, with
#: the variable. `band`: may also be matched by a band. `in_effect`: settings that the run proved.
#: `covariate`: measured next to the rate. `value`: the measurement. `speeds`: of storage targets
#: and nodes, which no sample has. `by_variable`, `reference`: for people and ReFrame, not read by
#: iobands.
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
        """Its name in ReFrame's log format."""
        return self.name if self.name == "version" else f"check_{self.name}"


TIME: Final = "job_completion_time"
VARIABLE: Final = "perf_var"
VALUE: Final = "perf_value"
UNIT: Final = "perf_unit"


# fmt: off
#: Every column, in the order of the perflog. A new one goes before `case`; names never change.
FIELDS: Final = (
    Field(TIME, "time", "run", "when the job completed: RFC 3339 with UTC offset"),
    Field("result", "text", "outcome", "ReFrame's result of the check: `pass`, `fail`, `abort`, …"),
    Field("fail_phase", "text", "outcome", "the phase that failed, or `null`"),
    Field("display_name", "text", "outcome", "ReFrame's name of the check with its parameters"),
    Field("hashcode", "text", "outcome", "ReFrame's hash of the check"),
    Field("system", "text", "series", "the system"),
    Field("partition", "text", "series", "the partition of the system"),
    Field("environ", "text", "series", "the programming environment"),
    Field("jobid", "text", "run", "the scheduler's job ID"),
    Field("job_nodelist", "text", "run", "the nodes, as the scheduler writes them"),
    Field("version", "text", "in_effect", "ReFrame's version"),
    Field("suite_version", "text", "in_effect", "the version of iobands' checks"),
    Field("tool", "text", "series", "`benchio`, `ior`, `mdtest` or `io500`"),
    Field("tool_version", "text", "in_effect", "the tool's version as the run reported it"),
    Field("pattern", "text", "series",
          "as in contract 1; the patterns of IOR and mdtest are below"),
    Field("interface", "text", "series",
          "as in contract 1; the interfaces of IOR and mdtest are below"),
    Field("file_system", "text", "series", "as in contract 4"),
    Field("medium", "text", "band", "as in contract 4"),
    Field("file_system_type", "text", "band", "as in contract 4"),
    Field("stripe_count_asked", "integer", "series",
          "the requested number of stripes; −1 means all targets; `null` if the file system has "
          "no stripes"),
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
          "the preset's hints that were read back, as `name=value,…`; `null` if none was proven"),
    Field("fsync", "text", "in_effect",
          "`true` if the clock of the writes stopped only after a successful fsync"),
    Field("cache", "text", "in_effect",
          "`cache` of contract 1 if all reads agree; otherwise `none`"),
    Field("nodes", "integer", "series",
          "the nodes of the run; 0 if the scheduler was to choose and the run failed before "
          "that"),
    Field("tasks", "integer", "series", "the processes on all nodes; 0 as for `nodes`"),
    Field("gib", "number", "series", "the volume that each phase moves; 0 as for `nodes`",
          "GiB"),
    Field("fullness_percent", "number", "covariate",
          "used space of the file system before the run", "%"),
    Field("targets_active", "integer", "covariate",
          "storage targets of the whole file system in service before the run: OSTs that `lfs "
          "osts` calls active (drained and full ones too), OSDs that are up by `ceph osd stat`, "
          "targets that are online and good in BeeGFS's list, or disks with data that are up "
          "and ready by `mmlsdisk`"),
    Field("targets_inactive", "integer", "covariate",
          "storage targets of the whole file system out of service"),
    Field("busiest_target", "number", "covariate",
          "the number of stripes of the run's files on the busiest storage target, over the "
          "number in round-robin placement on all targets that are in service and in the pool: "
          "1 in round-robin placement, 4 if all files lie on one of four targets; `null` if the "
          "layout names no targets"),
    Field("free_spread_percent", "number", "covariate",
          "how much less space was free on the fullest of these targets than on the emptiest "
          "one, before the run; from 17 % on, Lustre places more files on emptier targets", "%"),
    Field("fullest_target_percent", "number", "covariate",
          "used space of the fullest of these targets", "%"),
    Field("fullest_target", "text", "run",
          "the name of the fullest target: `OST0003`, BeeGFS's number of a target, or a disk's "
          "name on Spectrum Scale; `null` for disks of several pools"),
    Field("load_per_node", "number", "covariate",
          "the largest one-minute load average of the run's nodes, before the run; on several "
          "nodes only with the launcher `srun`"),
    Field("other_jobs", "integer", "covariate",
          "other users' running jobs on the partition or queue when this one began, as far as the "
          "scheduler (Slurm, PBS, LSF, Flux) shows them"),
    Field("client_written_gib", "number", "covariate",
          "what all programs on the run's nodes wrote to a Lustre file system during the run, "
          "by the client counters; `null` if only root may read the counters; on several nodes "
          "as for `load_per_node`", "GiB"),
    Field("client_read_gib", "number", "covariate",
          "what they read, including reads served from memory", "GiB"),
    Field("open_close_percent", "number", "covariate",
          "the share of opens and closes in the time of writes or of reads, whichever is "
          "larger; `null` for tools other than benchio", "%"),
    Field("interval_days", "number", "run",
          "the interval in days after which the site's schedule measures it again; `null` if "
          "the site file declares no interval for its tags", "d"),
    Field("spread", "text", "by_variable",
          "the spread of the repeats in one job, (largest − smallest) / median of each "
          "variable: `write_bw=0.041,read_bw=0.012`; `null` without repeats"),
    Field("call_seconds", "text", "by_variable",
          "percentiles of the calls that moved data, in s, if the run timed them: "
          "`write_bw=p50:0.00012,p95:0.0003,p99:0.0011,max:0.02;read_bw=…`; with repeats, the "
          "medians of the percentiles and the largest maximum; `null` otherwise"),
    Field("band_verdict", "text", "by_variable",
          "the verdict of each variable of the run: `write_bw=within,read_bw=below`"),
    Field("attempt", "integer", "run",
          "2 if `iobands run` repeated the run after a failure of infrastructure, else 1"),
    Field("targets", "text", "speeds",
          "the storage targets that the files of the run lie on, and how many files use each: "
          "`0-3:512,4:511`; `null` if the layout names no targets"),
    Field("target_bandwidths", "text", "speeds",
          "the bandwidth of each target, relative to targets with as many bytes of the run, by "
          "the times of the ranks with files on it: `write_bw=0:1.02,1:nan;read_bw=0:1,1:1.01`; "
          "`nan` if the bytes on each target explain a difference, `null` if the times do not "
          "allow a comparison"),
    Field("node_speeds", "text", "speeds",
          "the speed of each node relative to the median node, by the times of its ranks: "
          "`write_bw=nid01:1.02,nid02:0.98`"),
    Field("placement", "text", "in_effect",
          "the placement of the files besides stripes, by their layout: `pool=NAME`, and on "
          "Spectrum Scale `fileset=NAME` and `replicas=N`; `null` if the layout has none of "
          "them"),
    Field("time_shares", "text", "run",
          "the shares of opens, transfers, syncs and closes in the time of each variable: "
          "`write_bw=open:0.01,transfer:0.95,sync:0.03,close:0.01`, each from the rank that "
          "took longest; `null` for tools other than benchio"),
    Field("mpiio_calls", "text", "in_effect",
          "the number of MPI-IO calls that moved data, of all processes and repeats: "
          "`write_bw=collective:64,independent:0`, counted by benchio or printed by Cray's "
          "library; `null` if none were seen"),
    Field("movers", "text", "in_effect",
          "the number of processes that moved the data by their own system calls, the largest "
          "of the repeats: `write_bw=4,read_bw=16`; with collective buffering these are the "
          "aggregators; `null` if not counted"),
    Field("striping_command", "text", "run",
          "the shell command that gives a directory this striping, without its last word, the "
          "directory; `null` if no stripe count was requested"),
    Field("session", "text", "run",
          "the identifier of the session, shared by all runs of one `iobands run` or one "
          "`reframe -r`"),
    Field("purpose", "text", "run",
          "why the run was made: `scheduled`, `repeat`, `suspect`, `recovery`, `maintenance`, "
          "`acceptance` or `manual`, as below"),
    Field("case", "text", "series",
          "name and setting of a case, such as `csc-blocking unit`, if no other field "
          "distinguishes it from daily measurements; `null` otherwise, and if a perflog lacks "
          "the column", later=True),
    Field(VARIABLE, "text", "value", "the variable: below"),
    Field(VALUE, "number", "value", "its value; `null` if the run proved nothing"),
    Field(UNIT, "text", "value", "its unit"),
    Field("perf_ref", "text", "reference", "ReFrame's reference"),
    Field("perf_lower_thres", "text", "reference",
          "the lower threshold, as a share of the reference"),
    Field("perf_upper_thres", "text", "reference",
          "the upper threshold, as a share of the reference"),
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
#: The series fields that came later: older perflogs lack their columns, which is no error.
LATER_FIELDS: Final = frozenset(SERIES_FIELDS) - frozenset(REQUIRED)
#: The series fields that are numbers.
NUMERIC_FIELDS: Final = frozenset(
    name for name in SERIES_FIELDS if FIELD[name].type in {"integer", "number"}
)
#: The fields that the `match` of a band may name (contract 3).
MATCH_FIELDS: Final = (*SERIES_FIELDS, "variable", *_names("band"))
#: The columns that distinguish the runs of one check from others on the same day.
CHECK: Final = ("system", "partition", "environ", "display_name")
#: Why a run is made: for the schedule, selected by hand, or again: to repeat a low run at the end
#: of its session, to follow a suspicion, or to see whether an alert is over. Older perflogs lack
#: the column, and their runs count as scheduled.
SCHEDULED: Final = "scheduled"
MANUAL: Final = "manual"
REPEAT: Final = "repeat"
SUSPECT: Final = "suspect"
RECOVERY: Final = "recovery"
#: Of an acceptance: under conditions that a contract agrees on, which are not those of every day.
#: Only the acceptance reads these runs.
ACCEPTANCE: Final = "acceptance"
#: Why several runs are made in a row, just before and just after a maintenance.
MAINTENANCE: Final = "maintenance"
#: The purposes of runs beside the schedule, from which nothing is learned: an earlier run asked for
#: them, and they are low more often than healthy runs, or they share the level of one day. What a
#: person selects, such as a case, is nobody's answer.
ASKED: Final = frozenset({REPEAT, SUSPECT, RECOVERY, MAINTENANCE})
PURPOSES: Final = frozenset({SCHEDULED, MANUAL, ACCEPTANCE}) | ASKED
#: The columns measured next to the rate.
COVARIATES: Final = _names("covariate")
#: The columns that may explain a change: how and where a run took place, and covariates.
CONTEXT: Final = ("job_nodelist", *_names("band", "in_effect", "covariate"))
#: The columns with the speeds of targets and nodes.
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
    # of a case that compares: the ratio with the setting to without it, and its interval
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
    # time steps of a simulation: without I/O, during its I/O, and including the waits for it
    "step_rate": "1/s",
    "step_rate_beside": "1/s",
    "program_rate": "1/s",
    # reads of file layouts before the files are written
    "scan_rate": "1/s",
    # metadata: files created, looked at, read and removed
    "create_rate": "1/s",
    "stat_rate": "1/s",
    "read_rate": "1/s",
    "remove_rate": "1/s",
    # IO500, with its own names and units
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

#: A missing value in a perflog.
NULLS: Final = frozenset({"", "null", "None"})

# float() accepts more than decimal numbers: "nan", "inf", "1_000", possible names of file systems.
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
