"""Whether processes started on all nodes and communicated, and whether their clocks agree.

Pure functions, except for the number of nodes, which the site configuration decides.
"""

import re

from ..base import site
from .clocks import Span, disagreement, node_times

#: Shell commands of the job script, around the program: the times of its node.
TIME_BEFORE = 'echo "iobands-before $(date +%s.%N)"'
TIME_AFTER = 'echo "iobands-after $(uname -n) $(date +%s.%N)"'

#: Shell command of the job script, after the program: the errors of its processes.
COMPLAINTS = "find . -name 'complaint-*' -exec cat {} + >&2"

#: Two nodes show that messages get from one to another; for more nodes the job would wait longer.
NODES = 2


def number_of_nodes(partitions: list[str]) -> int:
    """Two nodes, or one if no scale of the partitions has more."""
    scales = [
        scale
        for extras, _ in site.selecting_partitions(partitions)
        for scale in extras["scales"].values()
    ]
    return min(NODES, max((_nodes(scale["nodes"]) for scale in scales), default=1))


def _nodes(nodes: int | str) -> int:
    # All nodes may be one node, and a job on two would wait forever.
    return 1 if isinstance(nodes, str) else nodes


def problem(said: str, nodes: int, has_program: bool) -> str | None:
    """The fault, if any, by the output of the processes, one on each of `nodes` nodes."""
    times = re.findall(r"^iobands-node ", said, re.MULTILINE)
    if len(times) < nodes:
        return f"the launcher started {len(times)} of {nodes} processes"
    if not has_program:
        return None
    met = re.search(r"^iobands-mpi (\d+) processes on (\d+) nodes$", said, re.MULTILINE)
    if not met:
        return "MPI does not start"
    if int(met[1]) == 1 < nodes:
        return "each process runs alone: the launcher and the MPI library do not agree on PMI"
    if (int(met[1]), int(met[2])) != (nodes, nodes):
        return f"MPI spans {met[2]} of {nodes} nodes, with {met[1]} of {nodes} processes"
    return None


def have_one_name(said: str) -> bool:
    """Whether MPI gave the same name to processes of two nodes."""
    return re.search(r"^iobands-mpi nodes of one name$", said, re.MULTILINE) is not None


def clock_problems(said: str, allowed: float) -> list[str]:
    """The nodes with clocks that disagree with the job script's, a line each."""
    before = re.search(r"^iobands-before (\S+)$", said, re.MULTILINE)
    after = re.search(r"^iobands-after (\S+) (\S+)$", said, re.MULTILINE)
    if not before or not after:
        return []
    span = Span(float(before[1]), float(after[2]))
    found = [
        disagreement(f"clock off: {node} is", span.off(time), after[1], allowed)
        for node, time in node_times(said).items()
    ]
    return [line for line in found if line]
