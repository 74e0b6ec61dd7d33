"""Which test cases infrastructure spoilt: a launch that failed, a node that was lost.

Only these are run once more. A case with a rate has one, however low, and none is asked for again.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from iobands.model.rejected import Unusable
from iobands.session.report import entries_of, load
from iobands.session.workarounds import SILENT

#: The environment variable with the number of the attempt, which the sample keeps.
VARIABLE: Final = "IOBANDS_ATTEMPT"

_PHASES: Final = frozenset({"run", "run_complete", "run_wait", "sanity"})
# The words of Slurm (slurmctld, slurmstepd, srun) and of the daemons that start MPI's processes.
_SPOILT: Final = re.compile(
    r"DUE TO NODE FAILURE|Node failure on|NODE_FAIL|BOOT_FAIL|Unable to create step"
    r"|Task launch for \S+ failed|Socket timed out on send/recv|Unable to contact slurm"
    r"|(ORTE|PRTE) has lost communication|(ORTE|PRTE) daemon has unexpectedly failed"
    # what checks and a session say of files that do not appear here, and of a Slurm that is silent
    r"|the job left no output \(COMPLETED\)|" + SILENT,
    re.IGNORECASE,
)


def spoilt(report: Path) -> dict[str, str]:
    """Return the cases of `report` that infrastructure spoilt, the reason by ReFrame's hash."""
    try:
        return {
            case["hashcode"]: " ".join(str(case["fail_reason"]).split())
            for case in entries_of(load(report))
            if case["result"] == "fail" and case["fail_phase"] in _PHASES and not case["fixture"]
            if not any(
                figures[0] is not None for figures in (case.get("perfvalues") or {}).values()
            )
            if _SPOILT.search(str(case["fail_reason"]))
        }
    except (Unusable, KeyError, TypeError, IndexError):
        return {}
