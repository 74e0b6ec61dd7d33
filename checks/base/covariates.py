"""Covariates: columns that may explain a rate but prove nothing.

Each is None unless every node measured it, as a partial sum would look like the whole. Job scripts
gather the input with a time limit of some seconds; a failure there does not fail the run.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import variable

from ..filesystems import Targets
from ..filesystems.layout import TARGETS_FILE, Space
from .package import COVARIATES
from .stage import call, read_output

BYTES_PER_GIB = 2**30

#: The parts of the time of a phase.
PARTS = ("open", "transfer", "sync", "close")

# PBS shows this many letters of a user's name.
_PBS_NAME = 8

# The launchers that can start one process on each node of the job in a separate step. With others,
# only a run on one node can measure the load of all of its nodes.
_SRUN = ("srun", "srunalloc")


@dataclass(frozen=True)
class Gathered:
    """What a job script gathered: the output of its commands, and the number of nodes."""

    nodes: int
    df: str = ""
    nodes_before: str = ""
    nodes_after: str = ""
    jobs: str = ""
    targets: Targets | None = None
    #: The targets that files may lie on, and the targets of each file's stripes.
    in_reach: Mapping[str, Space | None] = field(default_factory=dict)
    files: Mapping[str, Sequence[int]] = field(default_factory=dict)
    #: The program's report of each phase, in the words of contract 1.
    phases: Sequence[Mapping] = ()

    @property
    def space(self) -> dict[str, Space]:
        """The space of the targets that files may lie on; empty unless it is known for all."""
        known = {name: each for name, each in self.in_reach.items() if each and each.size_kib}
        return known if len(known) == len(self.in_reach) else {}

    @property
    def fullest(self) -> str | None:
        """The target with the least free space; None if all have the same."""
        free = {name: each.free_kib for name, each in self.space.items()}
        return min(free, key=free.__getitem__) if len(set(free.values())) > 1 else None


def fullness_percent(gathered: Gathered) -> int | None:
    """How full the file system was before the run, by `df`."""
    found = re.search(r"\s(\d+)%\s", gathered.df)
    return int(found[1]) if found else None


def targets_active(gathered: Gathered) -> int | None:
    """Storage targets (OSTs, OSDs) that were in service before the run."""
    return gathered.targets and gathered.targets.active


def targets_inactive(gathered: Gathered) -> int | None:
    """Storage targets that were not in service before the run."""
    return gathered.targets and gathered.targets.inactive


def busiest_target(gathered: Gathered) -> float | None:
    """The stripes on the busiest target, relative to their number in round-robin placement."""
    stripes = Counter(target for own in gathered.files.values() for target in own)
    if not stripes or not gathered.in_reach:
        return None
    return round(max(stripes.values()) / math.ceil(stripes.total() / len(gathered.in_reach)), 2)


def free_spread_percent(gathered: Gathered) -> int | None:
    """How much less is free on the fullest target than on the emptiest one, in percent."""
    free = [each.free_kib for each in gathered.space.values()]
    return round(100 * (1 - min(free) / max(free))) if any(free) else None


def fullest_target_percent(gathered: Gathered) -> int | None:
    """How full the target with the least free space is."""
    fullest = gathered.space.get(gathered.fullest or "")
    return round(100 * (1 - fullest.free_kib / fullest.size_kib)) if fullest else None


def load_per_node(gathered: Gathered) -> float | None:
    """The largest load average of the last minute among the nodes, before the run."""
    found = re.findall(r"^load (\d+(?:\.\d+)?)$", gathered.nodes_before, re.MULTILINE)
    return max(map(float, found)) if len(found) == gathered.nodes else None


def other_jobs(gathered: Gathered) -> int | None:
    """Running jobs of other users on the partition; `jobs` begins with the user's own name."""
    own, _, jobs = gathered.jobs.partition("\n")
    if not own:
        return None
    return sum(not _is_own(user, own) for user in _users(jobs.splitlines()))


def client_written_gib(gathered: Gathered) -> float | None:
    """What the file system's clients on the nodes wrote during the run, in GiB."""
    return _moved_gib("write_bytes", gathered)


def client_read_gib(gathered: Gathered) -> float | None:
    """What the file system's clients on the nodes read during the run, in GiB."""
    return _moved_gib("read_bytes", gathered)


def open_close_percent(gathered: Gathered) -> float | None:
    """The share of opens and closes in the time of writes or of reads, whichever is larger."""
    shares = time_shares(gathered.phases).values()
    return max((round(100 * (each["open"] + each["close"]), 1) for each in shares), default=None)


def time_shares(phases: Sequence[Mapping]) -> dict[str, dict[str, float]]:
    """The share of each part in the time of all phases, by operation, if they were timed."""
    seconds: dict[str, Counter[str]] = {}
    for phase in phases:
        parts = {part: phase.get(f"seconds_{part}") for part in PARTS}
        if None not in parts.values():
            seconds.setdefault(phase["operation"], Counter()).update(parts)
    return {
        operation: {part: of_parts[part] / of_parts.total() for part in PARTS}
        for operation, of_parts in seconds.items()
        if of_parts.total() > 0
    }


def measure(name: str, gathered: Gathered) -> int | float | None:
    """The value of a covariate, from the function above with its name."""
    return globals()[name](gathered)


def _users(lines: Sequence[str]) -> list[str]:
    # PBS prints a table with a heading, in lines that begin with the number of a job.
    table = [line.split() for line in lines if re.match(r"\d+\S*\s+\S+\s+\S", line)]
    if table or any(line.startswith("Job ID") for line in lines):
        return [columns[1] for columns in table]
    return [line.strip() for line in lines if line.strip()]


def _is_own(user: str, own: str) -> bool:
    # PBS cuts longer names off, and marks some of them with a star.
    return user == own or (len(user) >= _PBS_NAME and own.startswith(user.rstrip("*")))


def _moved_gib(counter: str, gathered: Gathered) -> float | None:
    """The increase of a counter of Lustre's clients; None if one is missing or was reset."""
    rises = {}
    for name in ("write_bytes", "read_bytes"):
        before = _counted(name, gathered.nodes_before, gathered.nodes)
        after = _counted(name, gathered.nodes_after, gathered.nodes)
        if before is None or after is None or after < before:
            return None
        rises[name] = (after - before) / BYTES_PER_GIB
    return rises[counter]


def _counted(counter: str, text: str, nodes: int) -> int | None:
    # A counter has a line only after its first count; the time of the snapshot is always there.
    if len(re.findall(r"^snapshot_time\s", text, re.MULTILINE)) != nodes:
        return None
    # <name> <count> samples [bytes] <least> <largest> <sum> and in newer versions <sum of squares>
    pattern = rf"^{counter}\s+\d+ samples \[bytes\] \d+ \d+ (\d+)"
    return sum(int(total) for total in re.findall(pattern, text, re.MULTILINE))


class CovariatesMixin(rfm.RegressionTestPlugin):
    """Gives the job script commands that gather covariates, and a variable for each of them."""

    for _name in COVARIATES:
        locals()[_name] = variable(int, float, type(None), value=None, loggable=True)
    fullest_target = variable(str, type(None), value=None, loggable=True)

    def each_node(self) -> list[str]:
        """The shell command that sets `each_node`, which starts one process on each node."""
        # If the scheduler chooses the number of nodes, only one node is asked: the result is null.
        if (self.nodes or 1) > 1 and self.current_partition.launcher_type.registered_name in _SRUN:
            # A step of its own, without MPI: one process a node, however many the program has.
            return [
                f"each_node=(srun --mpi=none --nodes={self.nodes} --ntasks={self.nodes} "
                "--ntasks-per-node=1)"
            ]
        return []

    def look_before(self) -> str:
        """The shell command directly before the program."""
        return call("look_before", self.scheduler, *self._client_script)

    def look_after(self) -> list[str]:
        """The shell commands after the program; its exit status is already kept."""
        return [call("look_after", name) for name in self._client_script]

    @property
    def _client_script(self) -> list[str]:
        return [self.striping.script.name] if self.striping.counts_clients else []

    def read_covariates(self, stage: Path) -> None:
        """Set the covariates from the output of the job script."""
        self._complete_node_list(stage)
        listed = read_output(stage / TARGETS_FILE)
        self.gathered = Gathered(
            nodes=self.nodes,
            df=read_output(stage / "df.txt"),
            nodes_before=read_output(stage / "nodes_before.txt"),
            nodes_after=read_output(stage / "nodes_after.txt"),
            jobs=read_output(stage / "jobs.txt"),
            targets=self.striping.count_targets(listed),
            in_reach=self.striping.targets_in_reach(listed),
        )
        self.fullest_target = self.gathered.fullest
        for name in COVARIATES:
            setattr(self, name, measure(name, self.gathered))

    def count_stripes(self, files: Mapping[str, Sequence[int]]) -> None:
        """Set how busy the busiest target is, by the targets of each file's stripes.

        The members of a directory's default pool are not known.
        """
        if not self.placement or self.asked_striping.pool:
            self.measure_again("busiest_target", replace(self.gathered, files=files))

    def measure_again(self, name: str, gathered: Gathered) -> None:
        """Set a covariate that is known only after the run."""
        setattr(self, name, measure(name, gathered))

    def _complete_node_list(self, stage: Path) -> None:
        """Give ReFrame the nodes of a job that ended before it could ask for them.

        Without Slurm's accounting they are unknown then, and ReFrame would log `None`.
        """
        # ReFrame has no public interface for it: it computes the names from this private field.
        if not getattr(self.job, "_nodespec", "nothing to complete"):
            self.job._nodespec = read_output(stage / "node_list.txt").strip()
