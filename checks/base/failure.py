"""Why a program failed: how its job ended, and one line of its own or its MPI library's output.

Pure functions. They know how MPI libraries fail to start, before the program can print anything.
"""

import re

# The program's own words come first, then the words of the library nearest to the cause: UCX and
# the loader name it, while Open MPI and MPICH above them only report that they cannot continue.
_REASONS = [
    re.compile(r"^((?:benchio|iobands):.*)", re.MULTILINE),
    # Slurm, where it names the cause.
    re.compile(r"\*\*\* ((?:JOB|STEP) \S+ ON \S+ CANCELLED AT \S+ DUE TO .*?) \*\*\*"),
    # Open MPI, about a lost node.
    re.compile(
        r"((?:ORTE|PRTE) has lost communication with a remote daemon)"
        r"(?:.*\n){1,9}? *Remote daemon: .*(on node \S+)"
    ),
    # Open MPI's MPI-IO, which returns only that a call failed.
    re.compile(r"(mca_f\w+: error in .*)"),
    # IOR and mdtest: 3.3 has `ior` in front, and 4.x warns of a failed write before it aborts. The
    # loader's complaint about a library of LD_PRELOAD ends no program.
    re.compile(r"^(?:ior )?ERROR: (?!ld\.so: )(.*)", re.MULTILINE),
    re.compile(r"^(?:ior )?WARNING: (\w+\(.*\) failed.*)", re.MULTILINE),
    re.compile(r": Process \d+: FAILED in \S+, (.*)"),
    # srun names the node of the loader's error, before it or after it, by the exit status.
    re.compile(
        r"\A(?=(?s:.*)srun: error: (\S+:) tasks? [\d,-]+: Exited with exit code 127)"
        r"(?s:.*?)(error while loading shared libraries: .*)"
    ),
    re.compile(r"(error while loading shared libraries: .*)"),
    # Slurm: a node has no such program, such as the daemon of a launcher.
    re.compile(r"(?<=slurmstepd-)(\S+: error: execve\(\): .*)"),
    re.compile(r"(UCX +ERROR .*)"),
    re.compile(r"(PML \w+ cannot be selected)"),
    re.compile(
        r"(A requested component was not found)(?:.*\n){1,12}?(Framework: .*\nComponent: .*)"
    ),
    # Open MPI below srun, with a Slurm or a SLURM_MPI_TYPE that gives it no PMIx.
    re.compile(r"(OMPI was not built with SLURM's PMI support)"),
    # Open MPI 5 and Intel MPI, whose processes then run, each as a program of its own.
    re.compile(r"((?:No PMIx|PMI) server (?:was reachable|not found).*?)\.?$", re.MULTILINE),
    # MPICH: the last line of the error stack with words is the innermost call.
    re.compile(
        r"Fatal error in \w*Init\w*: .*error stack:\n(?:(?!Abort)\w+\(\d+\)\.*:.*\n)*"
        r"(?!Abort)\w+\(\d+\)\.*: *(\S.*)"
    ),
    re.compile(r"(It looks like MPI_INIT failed.*?) for some reason"),
    # Open MPI, about a process that was killed, and not asked to end.
    re.compile(r"(\w+ noticed that process rank .* exited on signal (?!15 ).*)\."),
    # Slurm: about the job, or about the program only, if one of its processes failed. A process
    # that was killed is the cause if it comes first; later ones did not end when asked to.
    re.compile(
        r"((?<=srun: error: )\S+: tasks? [\d,-]+: (?!Terminated|Exited).+"
        r"|(?<=\*\*\* )(?:JOB|STEP) \S+ ON \S+ CANCELLED AT .*?(?= \*\*\*))"
    ),
    # PBS, LSF and Flux, about a job at its time limit.
    re.compile(r"^(=>> PBS: job killed: .*|TERM_\w+: job killed .*)", re.MULTILINE),
    re.compile(r"(job\.exception type=.*)"),
    # The process that crashed, by gfortran or Open MPI, if the launcher hangs after it.
    re.compile(r"((?:Program received signal SIG|(?<=\] )Signal: )[^.\n]+)"),
    # The only output if Open MPI's launcher loses its messages. srun's line about an exit status
    # stands before the cause, and explains nothing.
    *(
        re.compile(rf"^({exited}.*(?:error|fatal|cannot).*)", re.MULTILINE | re.IGNORECASE)
        for exited in (r"(?!srun: error: \S+ tasks? \S+ Exited)", "")
    ),
    # What else Open MPI says below a line of dashes; that a process failed is known, and a
    # deprecated setting explains nothing, nor does a sentence that introduces a list of guesses.
    re.compile(
        r"^-{60,}\n(?!-{60}|Primary job|MPI_ABORT|A deprecated|\[)"
        r"((?:\S.*\n)+?)(?=(?<=\.\n)\S.*:\n\n|(?!\S))",
        re.MULTILINE,
    ),
    # A shell, about a program.
    re.compile(r"^(.*: (?:command not found|No such file or directory|Permission denied))$", re.M),
]


# Of these IOR and mdtest only warn: they count the time of the call, and exit with 0.
_FAILED_CALL = re.compile(
    r"^(?:ior )?WARNING: (fsync\(\d*\) failed.*"
    r"|unable to (?:create|mknode|open|write|read|stat|rename|remove) .*)",
    re.MULTILINE | re.IGNORECASE,
)

# A run directory, which is gone when somebody reads its path. A search that began at each slash
# would take hours in a line of a megabyte.
_RUN_DIRECTORY = re.compile(r"(?<![^\s\"'(=:])/[^\s\"'(=:]*/iobands-\w+-\w{10}(?:\.\w{10})?/data/")

#: The exit status of a program that SIGTERM ended.
_TERMINATED = "143"

#: The states in which Slurm ends a job, or ReFrame a local one. Others do not tell the cause.
_ENDED_BY_SCHEDULER = {
    *("BOOT_FAIL", "CANCELLED", "DEADLINE", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT"),
}


#: In PBS, a job that a signal ended has this plus the signal as its exit code.
_SIGNALLED = 256


def state_of(state: str | None, code: int | None) -> str | None:
    """The state of a job, or the signal that ended it: PBS says no more of a deleted one."""
    return f"signal {code - _SIGNALLED}" if code and code > _SIGNALLED else state


def how_it_ended(tool: str, status: str, state: str | None, limit: float | None) -> str:
    """How a failed program ended, by its exit status, which is empty if unknown.

    `state` is the job's state in the scheduler's words, `limit` its time limit in seconds.
    """
    within = f"limit {limit:g} s" if limit else "no limit"
    if state in _ENDED_BY_SCHEDULER or (state or "").startswith("signal "):
        happened = f"exit status {status}" if status else f"{tool} did not end"
        return f"{happened}; the scheduler ended the job: {state} ({within})"
    if status == _TERMINATED:
        asked = f"asked to end: cancelled, near its {within}, or after another process"
        return f"exit status {status} ({asked})"
    return f"exit status {status}" if status else f"{tool} did not run to its end"


def why_it_failed(tool: str, status: str, state: str | None, limit: float | None, said: str) -> str:
    """How a failed program ended, and why; only why, if the job script refused to start it."""
    reason = reason_in(said) or ""
    is_refused = not status and state not in _ENDED_BY_SCHEDULER and reason.startswith("iobands: ")
    ended = "" if is_refused else how_it_ended(tool, status, state, limit)
    return ": ".join(filter(None, [ended, reason]))


def why_no_output(state: str | None, patience: float | None, stage: str) -> str:
    """Why a job left no output in its stage directory; `patience` is its longest wait."""
    if state in {"COMPLETED", "FAILED"}:
        return f"the job left no output ({state}): can its nodes reach the stage directory {stage}?"
    waited = f" or waited for more than {patience:g} s" if patience else ""
    return f"the job never began: it was cancelled{waited}"


def reason_in(said: str) -> str | None:
    """The line that best explains the failure, if any does, without the directory of a run."""
    for pattern in _REASONS:
        found = pattern.search(said)
        if found:
            said = " ".join(" ".join(found.groups()).split()).rstrip(".:")
            return _RUN_DIRECTORY.sub("", said)
    return None


def failed_calls(said: str) -> list[str]:
    """The first call that failed in a measured phase of IOR or mdtest, if any, by its output."""
    found = _FAILED_CALL.search(said)
    return [f"a failed call was measured: {_RUN_DIRECTORY.sub('', found[1])}"] if found else []
