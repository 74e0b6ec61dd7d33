"""Identifies, finds and ends the processes and jobs of a session.

Reads Linux's /proc. Every process of a session has the session's identifier in its environment, so
that the processes of a killed session are found whatever their parent. Jobs are noted in a file, so
that the next session can cancel them. The file may be damaged: a job is cancelled only if the
scheduler lists it as this user's, with the noted name.
"""

from __future__ import annotations

import os
import pwd
import re
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from iobands.model import SESSION_ENV, read_small

_PROC: Final = Path("/proc")
_MACHINE: Final = Path("/etc/machine-id")
_NETWORK: Final = Path("/sys/class/net")
# Fields of /proc/PID/stat behind the name: 3, 5, 6 and 22 of proc_pid_stat(5).
_STATE, _GROUP, _SESSION, _STARTED = 0, 2, 3, 19
_MOST_PIDS: Final = 2**22  # PID_MAX_LIMIT of Linux
_GRACE: Final = 10  # seconds for processes to end


@dataclass(frozen=True)
class Process:
    """A process, identified by host, boot, PID and start in clock ticks, as PIDs are reused.

    Two machines may share a host name, so `machine` tells them apart; a container has its own PIDs,
    so `namespace` does. These two are None in older records only.
    """

    host: str
    boot: str
    pid: int
    started: int | None
    machine: str | None = None
    namespace: str | None = None

    def __post_init__(self) -> None:
        """Refuse an impossible PID."""
        if not 0 < self.pid < _MOST_PIDS:
            raise ValueError("not the number of a process")

    @classmethod
    def of(cls, pid: int) -> Process:
        """Return the process `pid` of this host; `started` is None if it has ended."""
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace, fields = (_PROC / "self/ns/pid").readlink().name, _stat(pid)
        started = int(fields[_STARTED]) if fields else None
        return cls(socket.gethostname(), boot, pid, started, machine_id(), namespace)

    @classmethod
    def this(cls) -> Process:
        """Return the calling process."""
        return cls.of(os.getpid())

    def is_alive(self) -> bool | None:
        """Whether it still runs; None if it cannot be seen: on another machine, or hidden."""
        now = Process.of(self.pid)
        if self.host != now.host or self.machine not in {None, now.machine}:
            return None
        if self.boot != now.boot:
            return False
        if self.namespace not in {None, now.namespace} or _is_hidden(self.pid):
            return None
        return now.started is not None and now.started == self.started

    def group(self) -> list[int]:
        """Return the numbers of the processes in its process group, as far as they can be seen."""
        now = Process.of(self.pid)
        of_here = (self.host, self.boot) == (now.host, now.boot)
        is_seen = self.machine in {None, now.machine} and self.namespace in {None, now.namespace}
        # a PID is reused only after its process group has ended
        if not (of_here and is_seen and now.started in {None, self.started}):
            return []
        pids = (int(directory.name) for directory in _PROC.glob("[0-9]*"))
        return [pid for pid in pids if (fields := _stat(pid)) and int(fields[_GROUP]) == self.pid]

    def is_busy(self) -> bool:
        """Whether a process of its session runs or waits for a processor, at this moment."""
        stats = filter(None, (_stat(int(each.name)) for each in _PROC.glob("[0-9]*")))
        return any(each[_STATE] == b"R" and int(each[_SESSION]) == self.pid for each in stats)


@cache
def machine_id() -> str:
    """Return an identifier of this machine, from machine-id(5) and a MAC address.

    Machines that boot from the same image may share the machine-id.
    """
    known = []
    addresses = sorted(each.parent / "address" for each in _NETWORK.glob("*/device"))
    for path in (_MACHINE, *addresses[:1]):
        with suppress(OSError):
            known.append(path.read_text(encoding="ascii").strip())
    return "-".join(known)


def _is_hidden(pid: int) -> bool:
    """Whether there is a process that /proc does not show, as with its option hidepid."""
    with suppress(OSError):
        (_PROC / str(pid) / "stat").read_bytes()
        return False
    try:
        os.kill(pid, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


def _stat(pid: int) -> list[bytes] | None:
    """Return fields of /proc/PID/stat, None if the process does not exist or is a zombie."""
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()
    return None if fields[_STATE] in {b"Z", b"X"} else fields


def _name(process: Process) -> str:
    with suppress(OSError):
        return (_PROC / str(process.pid) / "comm").read_text("utf-8", "replace").strip()
    return ""


def processes_of(session: str) -> list[Process]:
    """Return the processes of this machine that belong to `session`, without the calling one."""
    wanted = f"{SESSION_ENV}={session}".encode()
    found = []
    for directory in _PROC.glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is somebody else's
            if wanted in (directory / "environ").read_bytes().split(b"\0"):
                process = Process.of(int(directory.name))
                if process.started is not None and process.pid != os.getpid():
                    found.append(process)
    return found


def end_session(session: str) -> tuple[int, list[Process]]:
    """End a session's processes, by SIGKILL after 10 s; return their number, and the survivors.

    A qsub does not count: that of PBS stays for a minute, in case another job is submitted.
    """
    left = processes_of(session)
    number = sum(_name(each) != "qsub" for each in left)
    for how in (signal.SIGTERM, signal.SIGKILL):
        asked: set[Process] = set()
        deadline = time.monotonic() + _GRACE
        # list them again and again, as one may just have been forked
        while left and time.monotonic() < deadline:
            for process in {*left} - asked:
                with suppress(OSError):
                    os.kill(process.pid, how)
            asked.update(left)
            time.sleep(0.05)
            left = processes_of(session)
    return number, left


JOBS_NAME: Final = ".session.jobs"
_LARGEST: Final = 2**20  # bytes of notes that are read
_PATIENCE: Final = 30  # seconds for a scheduler's answer
_PAUSE: Final = 2  # seconds between two questions
_NO_LSF_JOB: Final = "is not found|No unfinished job found"
#: The states of Slurm, PBS, LSF and Flux in which a job has not ended.
_NOT_ENDED: Final = (
    r"\b(?:PENDING|RUNNING|SUSPENDED|CONFIGURING|COMPLETING|STOPPED|REQUEUED|REQUEUE_\w+|RESIZING"
    r"|SIGNALING|STAGE_OUT|SPECIAL_EXIT|EXPEDITING|RESV_DEL_HOLD"
    r"|PEND|RUN|[PUS]SUSP|WAIT|UNKWN|ZOMBI|DEPEND|PRIORITY|SCHED|CLEANUP)\b"
    r"|job_state = "
)
_NAME: Final = re.compile(r"rfm_\w+", re.ASCII)  # the names that ReFrame gives to jobs


@dataclass(frozen=True)
class _Scheduler:
    """The commands of a scheduler, and patterns of its job ids, ended jobs and cluster name."""

    jobid: str
    cancel: tuple[str, ...]
    named: tuple[str, ...]  # the jobs of {user} with the name {name}
    state: tuple[str, ...]
    over: str
    cluster: tuple[str, ...] = ()
    cluster_is: str = ""


_SLURM: Final = _Scheduler(
    r"\d+",
    ("scancel", "--"),
    ("squeue", "--noheader", "--format=%A", "--user={user}", "--name={name}"),
    ("squeue", "--noheader", "--states=all", "--format=%T", "--jobs={job}"),
    r"Invalid job id|\A(?:(?:BOOT_FAIL|CANCELLED|COMPLETED|DEADLINE|FAILED|NODE_FAIL|OUT_OF_MEMORY"
    r"|PREEMPTED|REVOKED|TIMEOUT)\s*)+\Z",
    ("scontrol", "show", "config"),
    r"^ClusterName\s*=\s*(\S+)",
)
_PBS: Final = _Scheduler(
    r"\d+(?:\.[\w.-]+)?",
    ("qdel",),
    ("qselect", "-u", "{user}", "-N", "{name:.15}"),  # as ReFrame cuts it
    ("qstat", "-f", "{job}"),
    r"Unknown Job|Job has finished|job_state = [CFX]\b",
    ("qstat", "-B", "-f"),
    r"^Server:\s*(\S+)",
)
#: Prefixes of the variables by which a user configures Slurm's programs.
_FILTERS: Final = ("SQUEUE_", "SCANCEL_")
#: Both forms of an identifier.
_FLUX_ALL: Final = ("--no-header", "--format={{id}} {{id.dec}}")
_SCHEDULERS: Final = {
    "slurm": _SLURM,
    "squeue": _SLURM,
    "pbs": _PBS,
    "pbspro": _PBS,
    "torque": _PBS,
    "lsf": _Scheduler(
        r"\d+",
        ("bkill",),
        ("bjobs", "-noheader", "-o", "jobid", "-u", "{user}", "-J", "{name}"),
        ("bjobs", "-noheader", "-o", "stat", "{job}"),
        r"is not found|\A(?:(?:DONE|EXIT)\s*)+\Z",
        ("lsid",),
        r"^My cluster name is (\S+)",
    ),
    "flux": _Scheduler(
        r"\d+|[fƒ][1-9A-HJ-NP-Za-km-z]+",
        ("flux", "cancel", "--"),
        ("flux", "jobs", *_FLUX_ALL, "--user={user}", "--name={name}"),
        ("flux", "jobs", "--no-header", "--format={{state}}", "{job}"),
        r"JobID \S+ unknown|\A(?:INACTIVE\s*)+\Z",
    ),
}


@cache
def cluster_of(scheduler: str) -> str | None:
    """Return the name of the scheduler's cluster, None if unknown."""
    known = _SCHEDULERS.get(scheduler)
    said = called(known.cluster) if known and known.cluster else None
    found = re.search(known.cluster_is, said.stdout, re.MULTILINE) if known and said else None
    return found[1] if found else None


def has_ended(scheduler: str, jobid: str) -> bool | None:
    """Whether the scheduler of this machine reports a job as ended; None without an answer."""
    known = _SCHEDULERS.get(scheduler)
    if not known or not re.fullmatch(known.jobid, jobid):
        return None
    said = called([word.format(job=jobid) for word in known.state])
    text = said.stdout + said.stderr if said else ""
    if re.search(known.over, text):
        return True
    return False if re.search(_NOT_ENDED, text) else None


def note_job(perflogs: Path, scheduler: str, jobid: object, name: str) -> None:
    """Note a job of this session. Jobs of the scheduler `local` are processes, and not noted."""
    if SESSION_ENV in os.environ and scheduler in _SCHEDULERS:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(perflogs / JOBS_NAME, flags, 0o644)
        with os.fdopen(descriptor, "a", encoding="utf-8") as stream:
            stream.write(f"{scheduler} {jobid} {name}\n")
            stream.flush()
            os.fsync(descriptor)  # so that a session after a power failure can cancel it


def await_end(scheduler: str, jobid: str, seconds: float) -> None:
    """Wait for at most `seconds` until a job that ReFrame considers ended has really ended.

    With the scheduler `squeue`, ReFrame considers a job ended if squeue fails, as while slurmctld
    restarts. The job would then write at the same time as the next one.
    """
    until = time.monotonic() + seconds
    while scheduler == "squeue" and time.monotonic() < until and not has_ended(scheduler, jobid):
        time.sleep(_PAUSE)


def forget_jobs(perflogs: Path) -> None:
    """Remove the file of noted jobs, after all of them have ended."""
    with suppress(OSError):
        (perflogs / JOBS_NAME).unlink(missing_ok=True)


def cancel_jobs(perflogs: Path) -> list[str]:
    """Cancel the noted jobs that still run, and return messages about them."""
    path = perflogs / JOBS_NAME
    try:
        lines = read_small(path, _LARGEST).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        return [f"{path}: {error.strerror}; ask the scheduler whether its jobs still run"]
    cancelled: list[str] = []
    silent: list[str] = []
    asked = [words for line in dict.fromkeys(lines) if _is_of_session(words := line.split())]
    for scheduler, job, name in asked:
        if (jobs := _jobs_named(scheduler, name)) is None:
            silent.append(f"{job} of {scheduler}")
        elif job in jobs:
            called([*_SCHEDULERS[scheduler].cancel, job])
            cancelled.append(job)
    forget_jobs(perflogs)
    strange = len({*lines}) - len(asked)
    notes = {
        f"its jobs were cancelled: {', '.join(cancelled)}": cancelled,
        f"the scheduler does not answer; these jobs may still run: {', '.join(silent)}": silent,
        f"{path}: {strange} lines are not jobs of a session; they were ignored": strange,
    }
    return [note for note, is_so in notes.items() if is_so]


def _is_of_session(words: Sequence[str]) -> bool:
    """Whether the words are a scheduler, a valid job id, and a job name as ReFrame gives them."""
    if len(words) != 3 or words[0] not in _SCHEDULERS:  # noqa: PLR2004
        return False
    return bool(re.fullmatch(_SCHEDULERS[words[0]].jobid, words[1]) and _NAME.fullmatch(words[2]))


def _jobs_named(scheduler: str, name: str) -> frozenset[str] | None:
    """Return this user's jobs of that name, None if the scheduler does not list them."""
    known = _SCHEDULERS[scheduler]
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return None
    said = called([word.format(user=user, name=name) for word in known.named])
    # bjobs fails if there is no such job
    if said is None or (said.returncode and not re.search(_NO_LSF_JOB, said.stderr)):
        return None
    words = said.stdout.split()
    return frozenset(words) if all(re.fullmatch(known.jobid, word) for word in words) else None


def called(
    command: Sequence[str], seconds: float = _PATIENCE
) -> subprocess.CompletedProcess[str] | None:
    """Run a command and return its result; None if it cannot be run or takes over `seconds`."""
    # a user's own filters, such as SQUEUE_STATES, would hide jobs
    env = {name: each for name, each in os.environ.items() if not name.startswith(_FILTERS)}
    options: Any = {"env": env, "stdin": subprocess.DEVNULL, "errors": "replace"}
    try:
        return subprocess.run(command, capture_output=True, timeout=seconds, check=False, **options)
    except (OSError, subprocess.TimeoutExpired):
        return None


def output_of(*command: str) -> str:
    """Return the output of a program, "" if it is missing, fails or takes over a minute."""
    done = called(command, 60)
    return done.stdout.strip() if done and not done.returncode else ""
