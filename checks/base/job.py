"""Requests a job from the scheduler, in the scheduler's own options."""

import os
from collections.abc import Callable
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_before, variable
from reframe.core.schedulers import Job

from . import flux, schedulers
from .package import PERFLOGS, await_end, note_job
from .stage import await_files

#: How long a job may outlive its time limit, for example while its scheduler is down.
_PATIENCE_SECONDS = 600

#: How long the files of a job may take to appear here: NFS caches attributes for up to a minute.
_APPEARS_SECONDS = 90


def when_submitted(job: Job, action: Callable[[], None]) -> None:
    """Call `action` when the job has its ID; a hook after `run` comes only after it has ended.

    If it fails, as on a full disk, the job is cancelled: ReFrame would not wait for it, and it
    would write beside the next one.
    """
    submit = job.submit

    def submit_and_act() -> None:
        submit()
        try:
            action()
        except OSError:
            job.cancel()
            raise

    job.submit = submit_and_act


def end_at_limit(job: Job) -> None:
    """Let a local job at its time limit end as the jobs of other schedulers do.

    ReFrame raises an exception instead, and then nobody reads why the program hung.
    """
    finished = job.finished

    def has_finished() -> bool:
        job._exception = None
        return finished()

    job.finished = has_finished


class JobMixin(rfm.RegressionTestPlugin):
    """Brings the account, the placement and the guards of the scheduler into the job script.

    The check sets the numbers of nodes, tasks and tasks per node. It calls `ask_scheduler` after
    the setup, and `place_processes` before the run, when its commands are written.
    """

    #: The number of nodes; 0 until the scheduler has decided it.
    nodes = variable(int, value=0, loggable=True)

    #: The number of processes on all nodes; 0 until the scheduler has decided it.
    tasks = variable(int, value=0, loggable=True)

    #: The files that a successful job leaves, besides its output.
    leaves = ()

    def ask_scheduler(self) -> None:
        self.max_pending_time = self.current_partition.extras.get("max_pending_time")
        self.job.options += schedulers.options(self.scheduler, self.asked_of_scheduler)
        if self.scheduler == "local":
            # By default ReFrame waits two seconds between TERM and KILL: too few on a busy machine,
            # where files that the script has not removed by then would stay.
            self.job.scheduler.CANCEL_GRACE_PERIOD = schedulers.SECONDS_TO_CLEAN_UP
            end_at_limit(self.job)

    # If ReFrame is killed, the next session cancels the job.
    @run_before("run")
    def note_job_of_session(self) -> None:
        job = self.job
        when_submitted(job, lambda: note_job(PERFLOGS, self.scheduler, job.jobid, job.name))

    # Before everything else that reads the job's files.
    @run_before("sanity")
    def await_end(self) -> None:
        if not self.is_dry_run():
            within = _PATIENCE_SECONDS + (self.time_limit or 0)
            await_end(self.scheduler, str(self.job.jobid), within)
            if self.scheduler != "local" and self.job.state in {"COMPLETED", "FAILED"}:
                left = self.leaves if self.job.exitcode == 0 else ()
                names = [str(self.stdout), *left]
                await_files(Path(self.stagedir), names, _APPEARS_SECONDS)

    def place_processes(self) -> None:
        self.job.options += schedulers.placement(
            self.scheduler, self.num_tasks_per_node, self.exclusive_access
        )
        self.prerun_cmds = [*schedulers.guards(self.scheduler), *self.prerun_cmds]
        if self.scheduler == schedulers.LSF:
            self.num_tasks_per_node = None  # `placement` sets it
        if self.scheduler == schedulers.FLUX:
            request = flux.FluxRequest(
                nodes=self.nodes,
                tasks=self.tasks,
                exclusive=self.exclusive_access,
                seconds=int(self.time_limit),
                asked=self.asked_of_scheduler,
            )
            flux.shape(self.job, request)
            self.prerun_cmds = [*request.directives(), *self.prerun_cmds]

    @property
    def scheduler(self) -> str:
        """ReFrame's name of the partition's scheduler."""
        return self.current_partition.scheduler.registered_name

    @property
    def asked_of_scheduler(self) -> schedulers.Asked:
        """Account, reservation and QoS, from the environment or the site configuration."""
        extras = self.current_partition.extras
        return schedulers.asked_for(extras, self.scheduler, os.environ)
