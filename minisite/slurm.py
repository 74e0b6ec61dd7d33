"""Slurm: a controller and four nodes on this machine."""

import socket
import time

from minisite import block_limit, slow_disk
from minisite.commands import run, start
from minisite.configuration import fill
from minisite.errors import SiteError
from minisite.place import Place
from minisite.waiting import PATIENCE_S, wait_until

PROGRAMS = ("slurmctld", "slurmd", "srun", "sinfo", "scontrol")
NODES = ("n1", "n2", "n3", "n4")
CPUS = 8
#: One port for the controller, and one for each node.
PORTS = 1 + len(NODES)


def begin(place: Place, ports: list[int]) -> None:
    """Start the controller and the nodes without waiting for them."""
    fill(
        place,
        "slurm.conf",
        cluster=place.name,
        host=socket.gethostname().split(".")[0],
        nodes=len(NODES),
        cpus=CPUS,
        controller_port=ports[0],
        first_node_port=ports[1],
        last_node_port=ports[len(NODES)],
    )
    (place.spool / "slurmctld").mkdir()
    for node in NODES:
        (place.spool / node).mkdir()
        # Jobs of all users make their files there.
        (place.root / "tmp" / node).mkdir(parents=True)
        (place.root / "tmp" / node).chmod(0o1777)
    groups = slow_disk.needed_controller(place)
    groups.make()
    configuration = place.root / "slurm.conf"
    start(place, "slurmctld", ["slurmctld", "-D", "-i", "-f", configuration])
    for node in NODES:
        daemon = start(place, f"slurmd-{node}", ["slurmd", "-D", "-N", node, "-f", configuration])
        # The jobs that the daemon starts inherit its group.
        block_limit.enter(groups, daemon.pid)


def wait(place: Place) -> None:
    """Wait until all nodes are idle and a job over all of them has answered."""
    wait_until(
        lambda: states(place) == ["idle"] * len(NODES),
        "Slurm with its four nodes",
        place.logs / "slurmctld.log",
    )
    end = time.monotonic() + PATIENCE_S
    names: set[str] = set()
    while True:
        try:
            names = set(run(place, job("printenv", "SLURMD_NODENAME"), seconds=80).split())
        except SiteError as error:
            if time.monotonic() > end:
                raise SiteError(f"no job runs: {error}; see {place.logs}/slurmctld.log") from error
            time.sleep(0.5)
            continue
        break
    if names != set(NODES):
        raise SiteError(f"a job over all nodes ran on {sorted(names)}: see {place.logs}")


def job(*command: str) -> list[str]:
    """A command that runs once on every node."""
    nodes = str(len(NODES))
    return ["srun", "--nodes", nodes, "--ntasks", nodes, "--immediate=60", *command]


def is_lost(state: str) -> bool:
    """Whether a node does not answer; a drained node does."""
    return state.endswith("*") or state.startswith(("down", "unk", "fail"))


def states(place: Place) -> list[str]:
    """The state of each node that answers, in sinfo's words."""
    try:
        listed = run(place, ["sinfo", "--noheader", "--Node", "--format=%t"], seconds=20)
    except SiteError:
        return []
    return listed.split()
