"""Scheduler options beyond those that ReFrame writes.

ReFrame writes tasks, nodes and time limits for each scheduler. It passes all other options on
unchanged, so Slurm's options would end up in a script for PBS. This module, and flux.py for Flux,
know the syntax of each: sbatch(1), qsub(1B) and pbs_resources(7B) of PBS Professional, and IBM's
reference of bsub. Pure functions, independent of ReFrame and of a site.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

#: How long before its time limit a job is asked to end, so that it can clean up.
SECONDS_TO_CLEAN_UP = 60

SLURM = ("slurm", "squeue")
PBS = ("pbs", "pbspro")
LSF = "lsf"
FLUX = "flux"

# Slurm's own variables. ReFrame unsets them for sbatch, so they are written into the script.
_SLURM_VARIABLES = "SBATCH_"


class SchedulerOptionsError(ValueError):
    """The scheduler has no option for a request; the message names both."""


@dataclass(frozen=True)
class Asked:
    """The account, the reservation and the quality of service of a job."""

    account: str | None = None
    reservation: str | None = None
    qos: str | None = None


# The options of each scheduler. In PBS Professional a reservation is a queue.
_SLURM_OPTIONS = {"account": "--account={}", "reservation": "--reservation={}", "qos": "--qos={}"}
_PBS_OPTIONS = {"account": "-A {}", "reservation": "-q {}"}
_OPTIONS: dict[str, dict[str, str]] = {
    "slurm": _SLURM_OPTIONS,
    "squeue": _SLURM_OPTIONS,
    "pbs": _PBS_OPTIONS,
    "pbspro": _PBS_OPTIONS,
    LSF: {"account": "-P {}", "reservation": "-U {}"},
    "torque": {"account": "-A {}"},
    FLUX: {"account": "--bank={}"},
}


def asked_for(extras: Mapping, scheduler: str, environment: Mapping[str, str]) -> Asked:
    """The values from the environment, or else the partition: `IOBANDS_ACCOUNT` before `account`.

    For Slurm, its own `SBATCH_ACCOUNT` and so on come between the two.
    """

    def value(name: str) -> str | None:
        variables = [f"IOBANDS_{name.upper()}"]
        if scheduler in SLURM:
            variables.append(f"{_SLURM_VARIABLES}{name.upper()}")
        given = [environment[variable] for variable in variables if environment.get(variable)]
        return given[0] if given else extras.get(name) or None

    return Asked(value("account"), value("reservation"), value("qos"))


def options(scheduler: str, asked: Asked) -> list[str]:
    """The options that ask for the account, the reservation and the quality of service.

    Raises:
        SchedulerOptionsError: the scheduler has no option for one of them.
    """
    if scheduler == "local":
        return []  # no accounting
    known = _OPTIONS.get(scheduler, {})
    found = []
    for name, value in vars(asked).items():
        if value is None:
            continue
        if name not in known:
            raise SchedulerOptionsError(
                f"{name} {value!r} is requested, but the scheduler {scheduler!r} has no option for "
                "it; write the scheduler's own option into the partition's 'access'"
            )
        found.append(known[name].format(value))
    return found


def placement(scheduler: str, tasks_per_node: int, exclusive: bool) -> list[str]:
    """Options that ReFrame leaves out: placement of processes, exclusive nodes, signals, reruns.

    After a lost node, Slurm, PBS and some queues of LSF would run the job again, and the sample
    would not show it. Slurm: TERM goes to the processes and not to the script. They end, and the
    script continues to its trap. PBS: a chunk is not a node. Without `scatter`, two chunks may
    share a host, and without `exclhost` other jobs may. It sends no signal before the limit; at the
    limit it sends TERM and waits for the server's kill_delay. LSF: only clusters with the job step
    manager know `-nnodes`, which ReFrame would write, so the number of nodes follows from the
    processes per host.
    """
    if scheduler in SLURM:
        return [f"--signal=TERM@{SECONDS_TO_CLEAN_UP}", "--no-requeue"]
    if scheduler in PBS:
        return [f"-l place=scatter{':exclhost' if exclusive else ''}", "-r n"]
    if scheduler == LSF:
        minutes = SECONDS_TO_CLEAN_UP // 60
        return [f'-R "span[ptile={tasks_per_node}]"', f"-wa TERM -wt {minutes}", "-rn"]
    return []


def with_node(scheduler: str, node: str) -> list[str]:
    """The option for a job that must include this node.

    Only Slurm has one: PBS and LSF would need each chunk or host of the job. `node` is a host name;
    Slurm's names of nodes have no domain.

    Raises:
        SchedulerOptionsError: the scheduler has no such option, or `node` is not a host name.
    """
    if scheduler not in SLURM:
        raise SchedulerOptionsError(f"the scheduler {scheduler!r} cannot be asked for a node")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]*", node):
        raise SchedulerOptionsError(f"{node!r} is not the name of a node")
    return [f"--nodelist={node.partition('.')[0]}"]


def node_states(scheduler: str, nodes: str) -> str:
    """The `idle` and `all` nodes of contract 4, in ReFrame's words for the states of nodes.

    ReFrame's own `idle` leaves out the idle nodes of the requested reservation. Its `all` includes
    nodes that are down or drained, for which the job would wait forever.
    """
    if scheduler not in SLURM:
        return nodes
    return {
        "idle": "idle|idle+reserved",
        "all": "avail|mixed|mixed+reserved|mixed+planned",
    }[nodes]


def guards(scheduler: str) -> list[str]:
    """Traps of the job script for signals besides TERM, and the patience of its launcher.

    Slurm: after a process has ended, srun waits for the others, which may wait for that one. LSF
    sends USR2 at the limit, and kills the job ten minutes later. Flux signals the broker, which
    sends HUP to the script; untrapped, that would end it without a message.
    """
    if scheduler in SLURM:
        return ['export SLURM_WAIT="${SLURM_WAIT-60}"']
    return {LSF: ["trap 'exit 140' USR2"], FLUX: ["trap 'exit 129' HUP"]}.get(scheduler, [])
