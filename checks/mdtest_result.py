"""mdtest's results (versions 3.3 to 4.1): its tables, and what a run must have proved by them.

Pure functions over text; knows nothing of ReFrame or of a site. mdtest writes no JSON in any
version, so its summary table is read, whose rows have not changed. Its exit status is 0 whatever a
verification finds: a line of its output tells. So each run also spoils a file and reads again, and
unless mdtest complains then, its silence before is not believed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

CREATE, STAT, READ, CONTROL, REMOVE = "create", "stat", "read", "control", "remove"

#: What is measured, by the variable of the perflog.
VARIABLES = {"create_rate": CREATE, "stat_rate": STAT, "read_rate": READ, "remove_rate": REMOVE}

_ROWS = {CREATE: "creation", STAT: "stat", READ: "read", REMOVE: "removal"}
_MARK = re.compile(r"^== phase (\w+) (\d+)$\n?", re.MULTILINE)
_FOUND = re.compile(r"^== files (\d+)$", re.MULTILINE)
_BEGIN = re.compile(r"^mdtest-(\S+) was launched with (\d+) total task\(s\) on (\d+) node", re.M)
_FILES = re.compile(r"^\s*\d+ tasks, (\d+) files$", re.MULTILINE)
_WRONG_DATA = re.compile(r"^ERROR: verifying the data.*", re.MULTILINE)
# max, min, mean and standard deviation of the one iteration
_ROW = r"^ +File {} *:? +[\d.]+ +[\d.]+ +([\d.]+) +[\d.]+$"


@dataclass(frozen=True)
class Expectation:
    """What a run was asked for; `files` are those of all tasks."""

    nodes: int
    tasks: int
    files: int
    repeats: int
    verified: bool


@dataclass(frozen=True)
class Phase:
    """What one launch of mdtest said, and how many files there were after it."""

    said: str
    files: int | None

    def rate(self, phase: str) -> float:
        """How many files a second; 0 where the table does not say."""
        row = re.search(_ROW.format(_ROWS[phase]), self.said, re.MULTILINE)
        return float(row[1]) if row else 0.0

    @property
    def version(self) -> str | None:
        """The version of mdtest."""
        found = _BEGIN.search(self.said)
        return found[1] if found else None

    @property
    def wrong_data(self) -> str | None:
        """What mdtest said of a verification that failed."""
        found = _WRONG_DATA.search(self.said)
        return found[0].removeprefix("ERROR: ") if found else None


#: What the job says, and that is all, where the version cannot verify.
TOO_OLD = "iobands: this mdtest does not verify the files of all processes"

Phases = Mapping[tuple[str, int], Phase]


def mark(phase: str, repeat: str) -> str:
    """The shell command that says in the output that a phase begins."""
    return f'echo "== phase {phase} {repeat}"'


def count(directory: str) -> str:
    """The shell command that says in the output how many files there are."""
    return f'echo "== files $(find "{directory}" -type f | wc -l)"'


def is_too_old(output: str) -> bool:
    """Whether the job ended before anything was written, as the version cannot verify."""
    return TOO_OLD in output


def phases_in(output: str) -> dict[tuple[str, int], Phase]:
    """The phases in the output of a job, by phase and repeat."""
    _, *parts = _MARK.split(output)
    phases = {}
    for name, repeat, said in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        files = _FOUND.search(said)
        phases[name, int(repeat)] = Phase(said, int(files[1]) if files else None)
    return phases


def unproven(phases: Phases, expected: Expectation) -> list[str]:
    """What the phases fail to prove, in words; empty when all is proven."""
    problems = []
    for repeat in range(1, expected.repeats + 1):
        for name in _ROWS:
            where = f"{name}, repeat {repeat}"
            found = phases.get((name, repeat))
            if found is None:
                problems.append(f"{where}: not measured")
            else:
                problems += [f"{where}: {text}" for text in _problems(name, found, expected)]
    control = phases.get((CONTROL, expected.repeats))
    if expected.verified and not problems and not (control and control.wrong_data):
        problems.append(
            "verification: proves nothing, as mdtest does not complain of a spoilt file either"
        )
    return problems


def _problems(name: str, found: Phase, expected: Expectation) -> list[str]:
    problems = []
    begin, files = _BEGIN.search(found.said), _FILES.search(found.said)
    there = 0 if name == REMOVE else expected.files
    pairs = (
        ("tasks", expected.tasks, int(begin[2]) if begin else None),
        ("nodes", expected.nodes, int(begin[3]) if begin else None),
        ("files", expected.files, int(files[1]) if files else None),
        ("files on disk", there, found.files),
    )
    problems = [
        f"{what} asked: {asked}, in effect: {got}" for what, asked, got in pairs if got != asked
    ]
    if not 0 < found.rate(name) < float("inf"):
        problems.append(f"rate is {found.rate(name)}")
    if name == READ and found.wrong_data:
        problems.append(found.wrong_data)
    return problems


def rates(phases: Phases, phase: str) -> list[float]:
    """The rate of each repeat of a phase, in files a second."""
    return [found.rate(phase) for (name, _), found in phases.items() if name == phase]
