"""Flux jobs of more than one process, which ReFrame's backend for Flux lacks.

ReFrame 4.10 submits every job to Flux as one process on one core, without a time limit, and has
no launcher for it. Here the job gets an instance of Flux on whole nodes, in which the script runs
as under `flux batch`, and `flux run` starts the program. The script has the request as directives
too, so that a dry run shows it, and a person can submit the script by `flux batch`.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass

from reframe.core.launchers import JobLauncher
from reframe.core.schedulers import Job

from .schedulers import SECONDS_TO_CLEAN_UP, Asked


@dataclass(frozen=True)
class FluxRequest:
    """What a job asks of Flux."""

    nodes: int
    tasks: int
    exclusive: bool
    seconds: int
    asked: Asked

    def directives(self) -> list[str]:
        """The request in the words of `flux batch`, for the script."""
        options = [
            f"--nodes={self.nodes}",
            f"--nslots={self.tasks}",
            *(["--exclusive"] if self.exclusive else []),
            f"--time-limit={self.seconds}s",
            f"--signal=TERM@{SECONDS_TO_CLEAN_UP}",
            *([f"--bank={self.asked.account}"] if self.asked.account else []),
        ]
        return [f"#flux: {option}" for option in options]


class FluxRun(JobLauncher):
    """Starts the program by `flux run`, inside the instance of the job."""

    def command(self, job: Job) -> list[str]:
        nodes = job.num_tasks // job.num_tasks_per_node
        return ["flux", "run", f"--nodes={nodes}", f"--ntasks={job.num_tasks}"]


def shape(job: Job, request: FluxRequest) -> None:
    """Submit `job` as `request` says, with its own output and environment."""
    made = job.fluxjob
    jobspec = type(made).from_nest_command(
        ["/bin/bash", job.script_filename],
        num_slots=request.tasks,
        num_nodes=request.nodes,
        exclusive=request.exclusive,
    )
    jobspec.cwd, jobspec.environment = made.cwd, made.environment
    jobspec.stdout, jobspec.stderr = made.stdout, made.stderr
    jobspec.duration = request.seconds
    jobspec.setattr_shell_option(
        "signal", {"signum": int(signal.SIGTERM), "timeleft": SECONDS_TO_CLEAN_UP}
    )
    if request.asked.account:
        jobspec.setattr("system.bank", request.asked.account)
    job.fluxjob = jobspec
    job.launcher = FluxRun()
