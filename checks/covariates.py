"""What else went on while a run measured, from what the job script's commands printed.

A covariate explains a rate and proves nothing. Each is None where it could not be had, and where
it could be had of some of the nodes alone: half a sum would be taken for the whole.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

#: Prints, of the node where it runs, the load average of the last minute. `$1` is a file system.
NODE_COMMAND = 'read -r load rest < /proc/loadavg; echo "load $load"'

#: The shell command that names the user of each job that runs on this job's partition, a line
#: each, by the scheduler; PBS prints a table.
JOBS_COMMANDS = {
    "slurm": 'squeue --noheader --states=RUNNING --partition="$SLURM_JOB_PARTITION" --format=%u',
    "pbs": 'qstat -r "$PBS_QUEUE"',
    "lsf": 'bjobs -u all -r -q "$LSB_QUEUE" -noheader -o user',
    "flux": "flux jobs -A --no-header --filter=running --format={username}",
}
JOBS_COMMANDS["squeue"] = JOBS_COMMANDS["slurm"]
JOBS_COMMANDS["pbspro"] = JOBS_COMMANDS["torque"] = JOBS_COMMANDS["pbs"]

# How many letters of a name PBS shows.
_PBS_NAME = 8


@dataclass(frozen=True)
class ClientBytes:
    """What Lustre's clients on the nodes of a run have moved since their counters began."""

    written: int
    read: int


def largest_load(text: str, nodes: int) -> float | None:
    """The largest load average among the nodes; None unless each of them gave one."""
    loads = [float(load) for load in re.findall(r"^load (\d+(?:\.\d+)?)$", text, re.MULTILINE)]
    return max(loads) if len(loads) == nodes else None


def client_bytes(text: str, nodes: int) -> ClientBytes | None:
    """The sum over the nodes, from `lctl get_param llite.*.stats`; None unless each gave it."""
    # A counter has a line only once it has counted; the time of the snapshot is always there.
    if len(re.findall(r"^snapshot_time\s", text, re.MULTILINE)) != nodes:
        return None
    return ClientBytes(_sum_of("write_bytes", text), _sum_of("read_bytes", text))


def _sum_of(counter: str, text: str) -> int:
    # <name> <count> samples [bytes] <least> <largest> <sum> and in newer versions <sum of squares>
    pattern = rf"^{counter}\s+\d+ samples \[bytes\] \d+ \d+ (\d+)"
    return sum(int(total) for total in re.findall(pattern, text, re.MULTILINE))


def moved(before: ClientBytes | None, after: ClientBytes | None) -> ClientBytes | None:
    """What was moved in between; None where a counter is missing, or was set back."""
    if before is None or after is None:
        return None
    difference = ClientBytes(after.written - before.written, after.read - before.read)
    return difference if min(difference.written, difference.read) >= 0 else None


def other_peoples_jobs(text: str) -> int | None:
    """How many of the running jobs are not the user's own, whose name is the first line."""
    own, _, jobs = text.partition("\n")
    if not own:
        return None
    return sum(not _is_own(user, own) for user in _users(jobs.splitlines()))


def _users(lines: Sequence[str]) -> list[str]:
    # PBS's table has a heading and its lines begin with the number of the job.
    table = [line.split() for line in lines if re.match(r"\d+\S*\s+\S+\s+\S", line)]
    if table or any(line.startswith("Job ID") for line in lines):
        return [columns[1] for columns in table]
    return [line.strip() for line in lines if line.strip()]


def _is_own(user: str, own: str) -> bool:
    # PBS cuts longer names, and marks some of them so.
    return user == own or (len(user) >= _PBS_NAME and own.startswith(user.rstrip("*")))
