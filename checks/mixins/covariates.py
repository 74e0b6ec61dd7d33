"""What else went on: the targets, the load, other jobs and the clients' own counts.

All of it is best effort. Every command has a time limit of a few seconds, its failure is no
failure of the run, and its output is read before the sanity phase, so that a run that proves
nothing has its covariates, too.
"""

from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_before, variable

from ..covariates import (
    JOBS_COMMANDS,
    NODE_COMMAND,
    client_bytes,
    largest_load,
    moved,
    other_peoples_jobs,
)
from ..program_output import read_output

BYTES_PER_GIB = 2**30

_NODES_BEFORE = "nodes_before.txt"
_NODES_AFTER = "nodes_after.txt"
_JOBS = "jobs.txt"
_NODE_LIST = "node_list.txt"

# Where a job script of Slurm finds the nodes that it was given.
_SLURM = ("slurm", "squeue")

# The launchers that can put one process on each node of the job in a step of its own. With any
# other, only a run on one node knows the load of all of its nodes.
_SRUN = ("srun", "srunalloc")


class CovariatesMixin(rfm.RegressionTestPlugin):
    """Gives the job script commands that look around, and reads what they found."""

    #: Storage targets (OSTs, OSDs) that were in service before the run.
    targets_active = variable(int, type(None), value=None, loggable=True)

    #: Storage targets that were not.
    targets_inactive = variable(int, type(None), value=None, loggable=True)

    #: The largest load average of the last minute among the nodes, before the run.
    load_per_node = variable(float, type(None), value=None, loggable=True)

    #: Running jobs of other users on the partition when this one began.
    other_jobs = variable(int, type(None), value=None, loggable=True)

    #: What the file system's clients on the nodes wrote while the run lasted, in GiB.
    client_written_gib = variable(float, type(None), value=None, loggable=True)

    #: What the file system's clients on the nodes read while the run lasted, in GiB.
    client_read_gib = variable(float, type(None), value=None, loggable=True)

    def look_around_before(self) -> list[str]:
        """The shell commands straight before the program; they need `$file_system`."""
        commands = [self.on_each_node(f"{NODE_COMMAND}; {self._client_statistics}", _NODES_BEFORE)]
        scheduler = self.current_partition.scheduler.registered_name
        if scheduler in _SLURM:
            commands.append(f'echo "$SLURM_JOB_NODELIST" > {_NODE_LIST}')
        jobs = JOBS_COMMANDS.get(scheduler)
        if jobs:
            # Under its name only when it is whole: no job at all is an answer, too.
            commands.append(
                f"{{ id -un && timeout 10 {jobs}; }} > {_JOBS}.part 2> /dev/null "
                f"&& mv {_JOBS}.part {_JOBS} || :"
            )
        return commands

    def look_around_after(self) -> list[str]:
        """The shell commands after the program, whose exit status is kept by then."""
        if not self.striping.client_statistics:
            return []
        return [self.on_each_node(self._client_statistics, _NODES_AFTER)]

    @property
    def _client_statistics(self) -> str:
        return self.striping.client_statistics or ":"

    def on_each_node(self, command: str, output: str, argument: str = '"$file_system"') -> str:
        """A shell command that runs another, of `$1`, on each node, and never fails."""
        launcher = ""
        # A number of nodes that the scheduler is yet to choose leaves one, and so null.
        if (self.nodes or 1) > 1 and self.current_partition.launcher_type.registered_name in _SRUN:
            # Its own step, without MPI: a process a node, whatever the program has.
            launcher = (
                f"srun --mpi=none --nodes={self.nodes} --ntasks={self.nodes} --ntasks-per-node=1 "
            )
        return (
            f"timeout -k 5 20 {launcher}sh -c '{command}' sh {argument} "
            f"> {output} 2> /dev/null || :"
        )

    @run_before("sanity")
    def read_covariates(self) -> None:
        if self.is_dry_run():
            return
        stage = Path(self.stagedir)
        self._complete_node_list(stage)
        targets = self.striping.targets(stage)
        if targets:
            self.targets_active, self.targets_inactive = targets.active, targets.inactive
        before = read_output(stage / _NODES_BEFORE)
        self.load_per_node = largest_load(before, self.nodes)
        self.other_jobs = other_peoples_jobs(read_output(stage / _JOBS))
        difference = moved(
            client_bytes(before, self.nodes),
            client_bytes(read_output(stage / _NODES_AFTER), self.nodes),
        )
        if difference:
            self.client_written_gib = difference.written / BYTES_PER_GIB
            self.client_read_gib = difference.read / BYTES_PER_GIB

    def _complete_node_list(self, stage: Path) -> None:
        """Tell ReFrame the nodes of a job that ended before ReFrame could ask for them.

        Without Slurm's accounting nobody knows them any more, and ReFrame would log `None`.
        """
        # ReFrame has no public way in: the names are worked out of this, its own field.
        if not getattr(self.job, "_nodespec", "nothing to complete"):
            self.job._nodespec = read_output(stage / _NODE_LIST).strip()
