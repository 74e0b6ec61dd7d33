"""mdtest's results (versions 3.3 to 4.1): its tables. Pure functions over text.

No version of mdtest writes JSON, so its summary table is read; its rows have not changed. Its exit
status is 0 whatever a verification finds: only a line of its output reports errors. So each run
also spoils a file and reads again. If mdtest does not report that, its earlier silence proves
nothing.
"""

import re
from collections.abc import Mapping, Sequence

from ...base import proof
from ...base.proof import Phase

CREATE, STAT, READ, CONTROL, REMOVE = "create", "stat", "read", "control", "remove"

#: The measured operation, by the variable of the perflog.
VARIABLES = {"create_rate": CREATE, "stat_rate": STAT, "read_rate": READ, "remove_rate": REMOVE}

_ROWS = {CREATE: "creation", STAT: "stat", READ: "read", REMOVE: "removal"}
_MARK = re.compile(r"^== phase (\w+) (\d+)$\n?", re.MULTILINE)
_FOUND = re.compile(r"^== files (\d+)$", re.MULTILINE)
_BEGIN = re.compile(r"^mdtest-(\S+) was launched with (\d+) total task\(s\) on (\d+) node", re.M)
_FILES = re.compile(r"^\s*\d+ tasks, (\d+) files$", re.MULTILINE)
_WRONG_DATA = re.compile(r"^ERROR: (verifying the data.*)", re.MULTILINE)
# max, min, mean and standard deviation of the one iteration
_ROW = r"^ +File {} *:? +[\d.]+ +[\d.]+ +([\d.]+) +[\d.]+$"


def is_too_old(output: str) -> bool:
    """Whether the job ended before it wrote anything, as this version cannot verify."""
    return "iobands: this mdtest does not verify" in output


def read_phases(output: str) -> list[Phase]:
    """The phases in the output of a job, rates in files a second; 0 if the table has none."""
    _, *parts = _MARK.split(output)
    return [
        _phase(name, int(repeat), said)
        for name, repeat, said in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    ]


def _phase(name: str, repeat: int, said: str) -> Phase:
    begin, files, found = (form.search(said) for form in (_BEGIN, _FILES, _FOUND))
    wrong = _WRONG_DATA.search(said)
    row = name in _ROWS and re.search(_ROW.format(_ROWS[name]), said, re.MULTILINE)
    fields = {
        "version": begin and begin[1],
        "tasks": begin and int(begin[2]),
        "nodes": begin and int(begin[3]),
        "files": files and int(files[1]),
        "files on disk": found and int(found[1]),
        "wrong data": wrong and wrong[1],
    }
    return Phase(name, repeat, fields, float(row[1]) if row else 0.0)


def asked(nodes: int, tasks: int, files: int) -> dict[str, dict]:
    """The fields that each phase must have; `files` is the number over all tasks."""
    fields = {"tasks": tasks, "nodes": nodes, "files": files}
    return {name: {**fields, "files on disk": 0 if name == REMOVE else files} for name in _ROWS}


def unproven(
    phases: Sequence[Phase], asked: Mapping[str, Mapping], repeats: int, verified: bool
) -> list[str]:
    """What the phases do not prove, a line each; `verified` if the reads compared data."""
    problems = proof.unproven([phase for phase in phases if phase.name in _ROWS], asked, repeats)
    wrong = {(phase.name, phase.repeat): phase.fields["wrong data"] for phase in phases}
    problems += [
        f"{name}, repeat {repeat}: {said}"
        for (name, repeat), said in wrong.items()
        if name == READ and said
    ]
    if verified and not problems and not wrong.get((CONTROL, repeats)):
        problems.append(
            "verification: proves nothing, as mdtest does not report a spoilt file either"
        )
    return problems
