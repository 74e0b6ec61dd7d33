"""Makes a site's own directory, new or with the files of an existing clone.

From then on it belongs to the site's staff; no later version changes it. A new site file is filled
in with what is found on this machine: scheduler, file systems, MPI, modules.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from pprint import pformat
from shutil import copy2, copymode
from statistics import mode
from typing import Any, Final

from iobands.measure.processes import called, output_of
from iobands.measure.reframe import installed_suite
from iobands.model import NO_ACCOUNTS, FileError, in_time, mounts, replace_file

#: The placeholder that a person has to replace; ReFrame does not start before.
EDIT: Final = "EDIT"
# Its mention in the docstring of a site file, which is not to be replaced.
_MARKED: Final = f"marked {EDIT}"

# ReFrame's scheduler and launcher, by the program that submits jobs; the first one found counts.
_SCHEDULERS: Final = {
    "sbatch": ("slurm", "srun"),
    "bsub": ("lsf", "mpirun"),
    "qsub": ("pbspro", "mpirun"),
    "flux": ("flux", "local"),
}
# The option that chooses a partition or queue.
_ACCESS: Final = {"slurm": "--partition={}", "squeue": "--partition={}", "pbspro": "-q {}"}
# The type in contract 4, by the type of a mount; on `posix`, users set no stripes.
_PARALLEL: Final = {
    **{kind: kind for kind in ("lustre", "beegfs", "gpfs")},
    **dict.fromkeys(("ceph", "fuse.ceph-fuse"), "cephfs"),
    **dict.fromkeys(("nfs", "nfs4", "panfs", "wekafs"), "posix"),
}
# What srun needs by MPI library, if Slurm's default is none: each process would run alone.
_PMI: Final = {"openmpi": "pmix", "mpich": "pmi2", "intel-mpi": "pmi2"}
_STRIPED: Final = frozenset({"lustre", "beegfs"})
_NOT_FOUND: Final = {"work": {"path": f"/{EDIT}", "type": "posix", "medium": "hdd"}}
_SECONDS: Final = 20


@dataclass(frozen=True)
class Machine:
    """What was found on a machine; None or empty where nothing was.

    `partitions` are those of the scheduler, or the queues of PBS, with the cores of their nodes if
    known. `file_systems` are entries of contract 4 by name.
    """

    host: str
    scheduler: str | None = None
    launcher: str = "mpirun"
    partitions: Mapping[str, int | None] = field(default_factory=dict)
    file_systems: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    mpi: str | None = None
    modules: tuple[str, ...] = ()
    account: str | None = None
    pmi: str | None = None


def machine() -> Machine:
    """Examine this machine; a program that fails or hangs counts as missing."""
    user = os.environ.get("USER", "")
    partitions = partitions_of(output_of("sinfo", "-h", "-o", "%R %c"))
    accounts = ("sacctmgr", "-nP", "show", "assoc", f"user={user}", "format=account")
    installed = {name for name in _SCHEDULERS if shutil.which(name)}
    if not partitions:  # Slurm's programs are installed, but no cluster answers
        installed.discard("sbatch")
    found = next((each for name, each in _SCHEDULERS.items() if name in installed), None)
    scheduler, launcher = found or (None, "mpirun")
    if scheduler == "pbspro":
        partitions = queues_of(output_of("qstat", "-Qf"), output_of("pbsnodes", "-a"))
    asked = called(("sacct", "--allocations"), _SECONDS) if scheduler == "slurm" else None
    if asked and NO_ACCOUNTS in asked.stderr:
        scheduler = "squeue"
    mpi = mpi_of(output_of("mpirun", "--version"))
    if mpi == "intel-mpi" and not os.environ.get("I_MPI_PMI_LIBRARY"):
        launcher = "mpirun"  # below srun, each process would run alone
    slurm = output_of("scontrol", "show", "config")
    has_none = re.search(r"^MpiDefault *= (none|\(null\))$", slurm, re.M)  # 22.05 or 24.11
    return Machine(
        socket.gethostname().partition(".")[0],
        scheduler,
        launcher,
        partitions,
        file_systems_of(mounts(), os.environ),
        mpi,
        tuple(filter(None, os.environ.get("LOADEDMODULES", "").split(":"))),
        account_of(output_of(*accounts)) if partitions else None,
        _PMI.get(mpi or "") if has_none and "SLURM_MPI_TYPE" not in os.environ else None,
    )


def partitions_of(sinfo: str) -> dict[str, int | None]:
    """Return the partitions in the output of `sinfo -h -o "%R %c"`, with their cores if known."""
    lines = re.finditer(r"^ *(\S+)(?: +(\d+))?", sinfo, re.MULTILINE)
    return {each[1]: int(each[2]) if each[2] else None for each in lines}


def queues_of(qstat: str, pbsnodes: str) -> dict[str, int | None]:
    """Return the queues in the output of `qstat -Qf` that take jobs, with the cores of most nodes.

    PBS does not say which nodes a queue uses; `pbsnodes` is the output of `pbsnodes -a`.
    """
    cores = re.findall(r"resources_available\.ncpus = (\d+)", pbsnodes)
    most = int(mode(cores)) if cores else None
    queues = re.findall(r"^Queue: (\S+)((?:\n.+)*)", qstat, re.MULTILINE)
    return {name: most for name, attributes in queues if "enabled = True" in attributes}


def account_of(sacctmgr: str) -> str | None:
    """Return the account of a user who has just one."""
    found = {*sacctmgr.split()}
    return found.pop() if len(found) == 1 else None


def mpi_of(version: str) -> str | None:
    """Return contract 4's name of the MPI library, from the output of `mpirun --version`."""
    if re.search("Open MPI|open-mpi|prterun", version):
        return "openmpi"
    if "Intel(R) MPI" in version:
        return "intel-mpi"
    return "mpich" if re.search("HYDRA|MPICH", version) else None


def file_systems_of(
    mounted: Iterable[tuple[str, str]], environment: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Return the shared file systems among `mounted`, pairs of mount point and type.

    Their paths are where the user can write.
    """
    found: dict[str, dict[str, Any]] = {}
    for point, kind in ((Path(point), kind) for point, kind in mounted if kind in _PARALLEL):
        plain = re.sub(r"[^a-z0-9]+", "-", point.name.lower()).strip("-") or "root"
        name, number = plain, 1
        while name in found:
            number += 1
            name = f"{plain}-{number}"
        found[name] = _nonempty(
            path=_writable(point, environment.get("USER")),
            type=_PARALLEL[kind],
            medium="hdd",
            # where users choose them; -1 means all targets
            stripe_counts=[1, -1] if kind in _STRIPED else None,
            mounted_as=kind if _PARALLEL[kind] == "posix" else None,
            min_free_gib=1024,
        )
    return found


def _writable(point: Path, user: str | None) -> str:
    """Return a directory where the user can write, or one with EDIT if none is found in time."""
    own = [point / user, point / "users" / user, point / "scratch" / user] if user else []
    found = (each for each in (*own, point) if os.access(each, os.W_OK | os.X_OK))
    with suppress(TimeoutError):
        return str(in_time(_SECONDS, lambda: next(found, point / EDIT), TimeoutError()))
    return str(point / EDIT)


def site_of_machine(name: str, found: Machine) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return `system` and `environments` of contract 4 for a machine with a scheduler."""
    commands = [f"module load {' '.join(found.modules)}"] if found.modules else []
    fortran = "mpif90" if found.mpi == "intel-mpi" else "mpifort"
    compilers = {"name": "mpi", "cc": "mpicc", "cxx": "mpicxx", "ftn": fortran}
    pmi = [["SLURM_MPI_TYPE", found.pmi]] if found.pmi and found.launcher == "srun" else []
    extras = _nonempty(mpi=found.mpi)
    environment = compilers | _nonempty(extras=extras, env_vars=pmi, prepare_cmds=commands)
    system = {
        "name": name,
        "hostnames": [f"^{re.escape(found.host)}"],
        "modules_system": "nomod",
        "partitions": [_partition(found, *e) for e in (found.partitions or {EDIT: None}).items()],
    }
    return system, [environment]


def _nonempty(**entries: object) -> dict[str, Any]:
    return {name: value for name, value in entries.items() if value}


def _partition(found: Machine, name: str, cores: int | None) -> dict[str, Any]:
    is_slurm = found.scheduler in {"slurm", "squeue"}
    has_accounts = found.scheduler not in {None, "squeue"}  # squeue: Slurm without accounting
    scale = {"nodes": 2, "tasks_per_node": cores or EDIT, "mib_per_task": 64, "repeats": 3}
    return {
        "name": re.sub(r"^(?![A-Za-z_])", "_", re.sub(r"[^A-Za-z0-9_-]", "-", name)),
        "scheduler": found.scheduler or "local",
        "launcher": found.launcher,
        "access": [_ACCESS[found.scheduler].format(name)] if found.scheduler in _ACCESS else [],
        **({"sched_options": {"use_nodes_option": True}} if is_slurm else {}),
        "environs": ["mpi"],
        "max_jobs": 1,
        "features": ["io"],
        "extras": {
            "filesystems": found.file_systems or _NOT_FOUND,
            "scales": {"standard": scale},
            "schedule": {"daily": "1d"},
            **({"account": found.account or EDIT} if has_accounts else {}),
        },
    }


#: The template that is filled in with what is found on this machine.
GENERIC: Final = "generic"
#: The site file of a machine without a scheduler, which needs no change.
LOCAL: Final = "local"
_SYSTEMS: Final = Path("config/systems")
_BANDS: Final = Path("config/bands")
_SINGLE: Final = (
    "config/notify.yaml",
    "config/store.yaml",
    "perflogs/last-session.json",
    "perflogs/plan.json",
    "perflogs/site.id",
)
_SITE_FILE: Final = '''"""The site file of {name}, from what `iobands init` found on {host}.

Check what it says{edit}.
Contract 4 explains each entry, and this file has an example of each:
{example}
"""

schema = 4  # of contract 4

system = {system}

environments = {environments}
'''
_README: Final = """\
# The I/O performance of {name}

What iobands measures here, and how. No upgrade of iobands changes this directory.

- `config/systems/`: the site file: partitions, file systems, scales, environments
- `config/bands/`, `config/alerts/`: bands and epochs; the answers to alerts
- `perflogs/`: the samples and the log of alerts; keep a backup

Estimate the cost with `iobands cost`, measure with `iobands run`, and print the digest with
`iobands status`. `iobands schedule cron` prints the lines for cron.
"""
_IGNORED: Final = """\
/build/
/builds/
/dashboard/
/outbox/
/output/
/perflogs/
/stage/
/config/alerts/*.lock
reframe.log
reframe.out
__pycache__/
"""


def templates() -> list[str]:
    """Return the names of the site files that the suite brings."""
    files = (installed_suite() / _SYSTEMS).glob("[!_]*.py")
    return sorted(path.stem for path in files)


def new_site(name: str, template: str, found: Machine) -> dict[Path, str]:
    """Return the texts of a new site's files, by path in its directory, or raise FileError."""
    if template == GENERIC and found.scheduler is None:
        template = name = LOCAL
    if template == GENERIC:
        system, environments = site_of_machine(name, found)
        said = [pformat(each, width=96, sort_dicts=False) for each in (system, environments)]
        text = _SITE_FILE.format(
            name=name,
            edit=f", and replace what is {_MARKED}" if EDIT in "".join(said) else "",
            host=found.host,
            example=installed_suite() / _SYSTEMS / "example.py",
            system=said[0],
            environments=said[1],
        )
        texts = {_SYSTEMS / f"{name}.py": text}
    elif template in templates():
        name, texts = template, _from_suite(template)
    else:
        known = ", ".join([GENERIC, *templates()])
        raise FileError(f"{template}: no such template; write one of {known}")
    return {**texts_of_any([name]), **texts}


def texts_of_any(systems: Iterable[str]) -> dict[Path, str]:
    """Return the texts of the files that every site's directory gets, by path in it."""
    readme = _README.format(name=", ".join(systems))
    return {Path("README.md"): readme, Path(".gitignore"): _IGNORED}


def systems_among(paths: Iterable[Path]) -> list[str]:
    """Return the names of the systems whose site files are among paths in a site's directory."""
    return sorted(path.stem for path in paths if path.match(f"{_SYSTEMS}/[!_]*.py"))


def marked(texts: Mapping[Path, str]) -> list[Path]:
    """Return the files in which a person has to replace something."""
    return [path for path, text in texts.items() if EDIT in text.replace(_MARKED, "")]


def _from_suite(template: str) -> dict[Path, str]:
    """Return the texts of a site file, of the files beside it that it reads, and of its bands."""
    suite, path = installed_suite(), _SYSTEMS / f"{template}.py"
    others = re.findall(r"\b(_\w+\.py)\b", (suite / path).read_text("utf-8"))
    paths = [path, _BANDS / f"{template}.yaml", *(_SYSTEMS / name for name in others)]
    return {path: (suite / path).read_text("utf-8") for path in paths if (suite / path).exists()}


def files_of_clone(clone: Path) -> list[Path]:
    """Return the files of a site in a clone, by their paths in it.

    These are all perflogs, the record of the last session, the plan, the actions, the acceptances,
    the outbox, and the settings of messages and store; also the site files and bands that belong to
    systems with perflogs, are missing in the suite, or differ from it.
    """
    suite, perflogs = installed_suite(), clone / "perflogs"
    measured = {path.name for path in perflogs.glob("*/") if path.is_dir()}

    def is_own(path: Path) -> bool:
        other = suite / path.relative_to(clone)
        # the file of an epoch is in a directory of its system
        names = {path.stem, path.parent.name}
        is_used = not names.isdisjoint(measured) or path.name.startswith("_")
        return is_used or not other.is_file() or other.read_bytes() != path.read_bytes()

    shared = (f"{_SYSTEMS}/*.py", f"{_BANDS}/*.yaml", f"{_BANDS}/*/*.yaml")
    found = [
        *(path for pattern in shared for path in clone.glob(pattern) if is_own(path)),
        *(path for path in perflogs.rglob("*") if path.parent != perflogs),
        *clone.glob("config/alerts/*.jsonl"),
        *clone.glob("outbox/*.json"),
        *clone.glob("acceptances/**/*"),
        *(clone / name for name in _SINGLE),
    ]
    plain = (path for path in found if path.is_file() and not path.is_symlink())
    return sorted(path.relative_to(clone) for path in plain if path.suffix != ".lock")


def write_site(directory: Path, texts: Mapping[Path, str], clone: Path | None) -> None:
    """Write a new site's files, and copy a clone's unchanged; after an error, remove all of them.

    Raises FileError if a file is there already, and OSError if one cannot be written.
    """
    copied = {path: clone / path for path in files_of_clone(clone)} if clone else {}
    for path in (*texts, *copied):
        if os.path.lexists(directory / path):
            raise FileError(f"{directory / path} exists; nothing was written")
    made: list[Path] = []
    try:
        for name in (_BANDS, Path("config/alerts"), Path("perflogs")):
            _make(directory / name, made)
        # the site files make it a site, so they come last
        for path in sorted((*texts, *copied), key=lambda path: path.parent == _SYSTEMS):
            place, own = directory / path, copied.get(path)
            is_new = _make(place.parent, made)
            made.append(place)
            if own is None:
                replace_file(place, texts[path].encode())
                continue
            if is_new:
                copymode(own.parent, place.parent)  # the outbox is private
            copy2(own, place)
        _make(directory / _SYSTEMS, made)
    except BaseException:
        for place in reversed(made):
            with suppress(OSError):
                place.rmdir() if place.is_dir() else place.unlink()
        raise


def _make(directory: Path, made: list[Path]) -> bool:
    """Make a directory and its parents, add new ones to `made`; return whether there were any."""
    missing = [each for each in (directory, *directory.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir()
        made.append(each)
    return bool(missing)
