"""The columns about how a run moved its data: by which calls and processes, in what time.

benchio counts the calls that it and its libraries make (contract 1). For other programs, Cray's
library prints them for each file that it closes (MPICH_MPIIO_STATS).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import variable

from .covariates import time_shares
from .stage import read_output

#: The variables that make an MPI library print its numbers of calls.
REPORT_VARIABLES = {"cray-mpich": {"MPICH_MPIIO_STATS": "1"}}

_CRAY_LINE = re.compile(r"^\| +(independent|collective) (write|read)s += (\d+)\s*$", re.MULTILINE)

KINDS = ("collective", "independent")

#: The number of calls of each kind, by operation.
Calls = dict[str, dict[str, int]]


def calls_of(records: Sequence[Mapping]) -> Calls:
    """The calls that benchio counted, by operation; without operations that lack some counts."""
    found: defaultdict[str, list] = defaultdict(list)
    for record in records:
        found[record["operation"]].append(record.get("calls"))
    return {
        operation: {kind: sum(each[kind] for each in counted) for kind in KINDS}
        for operation, counted in found.items()
        if all(counted)
    }


def printed_calls(said: str) -> Calls:
    """The calls that Cray's library printed, for all files together."""
    counts: Counter[tuple[str, str]] = Counter()
    for kind, operation, number in _CRAY_LINE.findall(said):
        counts[operation, kind] += int(number)
    # for a file that was only written, it prints no reads, or zeros
    return {
        operation: {kind: counts[operation, kind] for kind in KINDS}
        for operation in ("write", "read")
        if any(counts[operation, kind] for kind in KINDS)
    }


def calls_text(calls: Calls) -> str | None:
    """Calls in the form of the column; None without calls."""
    return _text(
        {
            operation: ",".join(f"{kind}:{number}" for kind, number in counts.items())
            for operation, counts in calls.items()
        }
    )


def movers_text(records: Sequence[Mapping]) -> str | None:
    """How many processes moved the data of each operation, in the form of the column."""
    most: dict[str, int] = {}
    for record in records:
        if record.get("movers") is not None:
            operation = record["operation"]
            most[operation] = max(most.get(operation, 0), record["movers"])
    return _text(most, ",")


def shares_text(records: Sequence[Mapping]) -> str | None:
    """The shares of the parts of the time of each operation, in the form of the column."""
    return _text(
        {
            operation: ",".join(f"{part}:{share:.3g}" for part, share in shares.items())
            for operation, shares in time_shares(records).items()
        }
    )


def _text(by_operation: Mapping[str, object], separator: str = ";") -> str | None:
    parts = (f"{operation}_bw={value}" for operation, value in by_operation.items())
    return separator.join(parts) or None


class WitnessesMixin(rfm.RegressionTestPlugin):
    """Gives a check the columns, and makes the MPI library print its counts."""

    time_shares = variable(str, type(None), value=None, loggable=True)
    mpiio_calls = variable(str, type(None), value=None, loggable=True)
    movers = variable(str, type(None), value=None, loggable=True)

    def ask_for_calls(self) -> None:
        """Set the variables that make the MPI library print its calls."""
        if self.interface == "posix":
            return
        mpi = self.current_environ.extras.get("mpi")
        for name, value in REPORT_VARIABLES.get(mpi, {}).items():
            self.env_vars.setdefault(name, value)

    def record_witnesses(self, stage: Path, records: Sequence[Mapping]) -> None:
        """Set the columns by the records of all phases, and by the library's output."""
        said = read_output(stage / str(self.stdout), stage / str(self.stderr))
        self.mpiio_calls = calls_text(calls_of(records) or printed_calls(said))
        self.movers = movers_text(records)
        self.time_shares = shares_text(records)
        self.measure_again("open_close_percent", replace(self.gathered, phases=records))
