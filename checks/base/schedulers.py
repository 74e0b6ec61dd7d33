"""Scheduler options beyond those that ReFrame writes.

ReFrame writes tasks, nodes and time limits for each scheduler, but passes all other options on
as they are, so what is right for Slurm would be written into a script for PBS. This module, and
flux.py for Flux, know their syntax: sbatch(1), qsub(1B) and pbs_resources(7B) of PBS
Professional, and IBM's reference of bsub. Pure functions; knows nothing of ReFrame or of a site.
"""

from collections.abc import Mapping
from dataclasses import dataclass

#: How long before its time limit a job is asked to end, so that it can clean up.
SECONDS_TO_CLEAN_UP = 60

SLURM = ("slurm", "squeue")
PBS = ("pbs", "pbspro")
LSF = "lsf"
FLUX = "flux"

# What Slurm itself would read. ReFrame unsets it for sbatch, so it is written into the script.
_SLURM_VARIABLES = "SBATCH_"


class SchedulerOptionsError(ValueError):
    """The scheduler has no such thing; the message names both."""


@dataclass(frozen=True)
class Asked:
    """On whose account a job runs, in which reservation and at which quality of service."""

    account: str | None = None
    reservation: str | None = None
    qos: str | None = None


# How each scheduler is asked for it. PBS Professional makes a reservation a queue.
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
    """What the environment says, or else the partition: `IOBANDS_ACCOUNT` before `account`.

    For Slurm, its own `SBATCH_ACCOUNT` and so on come between the two.
    """

    def value(name: str) -> str | None:
        variables = [f"IOBANDS_{name.upper()}"]
        if scheduler in SLURM:
            variables.append(f"{_SLURM_VARIABLES}{name.upper()}")
        given = [environment[variable] for variable in variables if environment.get(variable)]
        return given[0] if given else extras.get(name)

    return Asked(value("account"), value("reservation"), value("qos"))


def options(scheduler: str, asked: Asked) -> list[str]:
    """The options that ask for the account, the reservation and the quality of service.

    Raises:
        SchedulerOptionsError: the scheduler has no option for one of them.
    """
    if scheduler == "local":
        return []  # nothing to account for
    known = _OPTIONS.get(scheduler, {})
    found = []
    for name, value in vars(asked).items():
        if value is None:
            continue
        if name not in known:
            raise SchedulerOptionsError(
                f"{name} {value!r} is asked for, but there is no option for it with the scheduler "
                f"{scheduler!r}; say it in the partition's 'access', in the scheduler's own words"
            )
        found.append(known[name].format(value))
    return found


def placement(scheduler: str, tasks_per_node: int, exclusive: bool) -> list[str]:
    """What ReFrame leaves out: where processes go, whose the nodes are, when the job is warned.

    Slurm: TERM goes to the processes and not to the script. They end, and the script goes on to
    its trap. After a lost node Slurm would run the job again, and the sample would not say so.
    PBS: a chunk is no node. Without `scatter`, two chunks may share a host, and without `exclhost`
    other jobs may. It has no signal before the limit; at the limit it sends TERM and waits for the
    server's kill_delay. LSF: `-nnodes`, which ReFrame would write, is only known
    to clusters with the job step manager, so nodes come from processes a host.
    """
    if scheduler in SLURM:
        return [f"--signal=TERM@{SECONDS_TO_CLEAN_UP}", "--no-requeue"]
    if scheduler in PBS:
        return [f"-l place=scatter{':exclhost' if exclusive else ''}"]
    if scheduler == LSF:
        minutes = SECONDS_TO_CLEAN_UP // 60
        return [f'-R "span[ptile={tasks_per_node}]"', f"-wa TERM -wt {minutes}"]
    return []


def node_states(scheduler: str, nodes: str) -> str:
    """What contract 4 calls `idle` and `all` nodes, in ReFrame's words for the states of nodes.

    ReFrame's own `idle` leaves out the idle nodes of the reservation that the job asks for, and its
    `all` includes nodes that are down or drained, for which the job would wait forever.
    """
    if scheduler not in SLURM:
        return nodes
    return {
        "idle": "idle|idle+reserved",
        "all": "avail|mixed|mixed+reserved|mixed+planned",
    }[nodes]


def nodes_by_placement(scheduler: str) -> bool:
    """Whether `placement` says how many processes a node has, and ReFrame should not."""
    return scheduler == LSF


def traps(scheduler: str) -> list[str]:
    """Traps of the job script for what this scheduler sends besides TERM.

    LSF sends USR2 at the limit, and kills the job ten minutes later. Flux signals the broker, which
    sends the script HUP, of which it would end without a word.
    """
    return {LSF: ["trap 'exit 140' USR2"], FLUX: ["trap 'exit 129' HUP"]}.get(scheduler, [])
