"""Run directories: their notes, the removal of orphans, and the pruning of old files.

`perflogs/<system>/leftovers/<name of the directory>` holds one JSON object, the note. It is written
before the directory is made, and removed with it. If it says why the directory could not be
removed, the directory is a left-over.

A directory is removed if it has a note, lies directly under a configured root, and its job has
ended. It must be a directory of this user on the right file system, not a symbolic link, and with
nothing mounted below it. Run reports and the stage directories of past sessions are removed by age,
perflogs never.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from iobands.measure.documents import decoded, read_object, write_document
from iobands.measure.processes import Process, cluster_of, has_ended
from iobands.measure.reframe import ReadSiteFile, suite_of
from iobands.model import SESSION_ENV, FileError, Leftover, Unusable, mounts, path_part

#: The last part of a run directory's path.
_NAME: Final = re.compile(r"iobands-\w+-\w{10}", re.ASCII)
_DIRECTORY: Final = "leftovers"
_SCHEMA: Final = 1
#: Why the directory of a run that goes on is kept.
LIVE: Final = "its run goes on"
#: How long the removals on one file system may take: a hung one must not hold up a session.
PATIENCE_SECONDS: Final = 60
REMOVE_SCRIPT: Final = Path(__file__).with_name("remove.sh")

#: The names that df may show for the file system at each root; empty for any.
Roots = Mapping[Path, Sequence[str]]


@dataclass(frozen=True)
class Stays:
    """Why a directory could not be removed, since when, and its size if known."""

    why: str
    since: str
    bytes: int | None = None


@dataclass(frozen=True)
class Note:
    """A run directory, the process that asked for it and the job that makes it.

    `session` is the identifier of `iobands run`. `mounted` is the type and mount point of its file
    system, as df showed them on a compute node. `job` is the scheduler's identifier of the job, on
    `cluster`; a local job is the process `script`.
    """

    path: Path
    process: Process
    scheduler: str
    session: str | None = None
    mounted: str | None = None
    job: str | None = None
    cluster: str | None = None
    script: Process | None = None
    stays: Stays | None = None

    @property
    def name(self) -> str:
        """The name of the directory, and of the note."""
        return self.path.name

    def write(self, notes: Path) -> None:
        """Write the note into the directory `notes`, which is made if necessary.

        Other users may not list it: with the names they could make the directories first.
        """
        notes.mkdir(parents=True, exist_ok=True)
        shared = notes.parent.stat().st_mode & stat.S_IWGRP  # a group measures together
        mode = stat.S_IMODE(notes.stat().st_mode)
        hidden = mode & ~(0o007 if shared else 0o077)
        if hidden != mode:
            with suppress(PermissionError):  # it belongs to another member
                notes.chmod(hidden)
        said = {"schema": _SCHEMA, **asdict(self)}
        write_document(notes / self.name, {**said.pop("process"), **said}, durable=True)

    def submitted(self, job: str) -> Note:
        """Return the note with the job that makes the directory."""
        script = Process.of(int(job)) if self.scheduler == "local" else None
        return replace(self, job=job, cluster=cluster_of(self.scheduler), script=script)

    def staying(self, why: str, size: int | None) -> Note:
        """Return the note with the reason why the directory stays; `since` is kept if it is set."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        return replace(self, stays=Stays(why, self.stays.since if self.stays else now, size))


def new_note(root: Path, check: str, scheduler: str, mounted: str | None) -> Note:
    """Return the note of a new directory below `root`, for a job of this process."""
    path = root / f"iobands-{path_part(check)}-{secrets.token_hex(5)}"
    return Note(path, Process.this(), scheduler, os.environ.get(SESSION_ENV), mounted)


def why_kept(note: Note) -> str | None:
    """Return `LIVE`, or why it is unknown whether the run of a note has ended; None if it has."""
    if note.process.is_alive():
        return LIVE
    if note.script:
        alive = note.script.is_alive()
        elsewhere = f"a process of {note.script.host} made it: run iobands clean there"
        if alive or note.script.group():
            return LIVE
        return elsewhere if alive is None else None
    if note.job is None:
        # The session was killed while it submitted; only a restart surely ended a local job.
        has_gone = note.process.is_alive() is False and note.process.boot != Process.this().boot
        unknown = "its job is unknown; if no job uses it, remove it by hand"
        return None if note.scheduler == "local" and has_gone else unknown
    # without a cluster's name, only the host that submitted the job can ask for it
    is_there = note.cluster is None and note.process.is_alive() is None
    if is_there or note.cluster not in {None, cluster_of(note.scheduler)}:
        where = f"the cluster {note.cluster}" if note.cluster else note.process.host
        return f"its job {note.job} is of {where}: run iobands clean there"
    silent = f"the scheduler ({note.scheduler}) does not say whether its job runs"
    return {True: None, False: LIVE, None: silent}[has_ended(note.scheduler, note.job)]


def notes_of(perflogs: Path, system: str) -> Path:
    """Return the directory with the notes of a system."""
    return perflogs / path_part(system) / _DIRECTORY


def _all_notes(perflogs: Path, system: str | None) -> list[Path]:
    """Return the directories of notes of a system, or of all systems."""
    found = sorted(perflogs.glob(f"*/{_DIRECTORY}"))
    return [notes for notes in found if system in {None, notes.parent.name}]


def read_notes(notes: Path) -> Iterator[tuple[Path, Note | None]]:
    """Yield the path and the content of each note in `notes`; None for a damaged one."""
    with suppress(OSError):
        yield from _listed(notes)


def read_leftovers(perflogs: Path, system: str | None) -> tuple[Leftover, ...]:
    """Return the left-overs of runs on `system`, or on all systems, and unreadable notes."""
    found = []
    for notes in _all_notes(perflogs, system):
        name = notes.parent.name
        try:
            listed = _listed(notes)
        except OSError as error:
            closed = isinstance(error, PermissionError)
            why = f"cannot be listed: {error.strerror}"
            found.append(Leftover(name, notes, why, is_closed=closed))
            continue
        for path, note in listed:
            if note is None:
                why = "unreadable note; delete it and the directory it names"
                found.append(Leftover(name, path, why))
            elif note.stays:
                found.append(Leftover(name, note.path, **asdict(note.stays)))
    return tuple(found)


def _listed(notes: Path) -> list[tuple[Path, Note | None]]:
    found = sorted(path for path in notes.iterdir() if path.name.startswith("iobands-"))
    return [(path, _read(path)) for path in found]


def _read(path: Path) -> Note | None:
    """Return a note, None if it is damaged or does not name a run directory."""
    try:
        said = read_object(path, (_SCHEMA,))
        note = decoded(Note, {**said, "process": said})  # `process` is not nested in the file
    except (OSError, Unusable):
        return None
    place = note.path
    is_plain = place.is_absolute() and ".." not in place.parts and "\0" not in str(place)
    return note if is_plain and _NAME.fullmatch(note.name) and note.name == path.name else None


@dataclass(frozen=True)
class SweepOutcome:
    """The state of a directory: `gone`, `stays`, or `away` if its file system is not here."""

    note: Note
    state: str
    why: str = ""
    bytes: int | None = None


def sweep(
    notes: Path, roots: Roots, *, own: Iterable[str] = (), dry_run: bool = False
) -> list[SweepOutcome]:
    """Remove the orphans that have a note in the directory `notes`, and return their outcomes.

    With `own`, only directories of these names are removed; the caller knows that their runs have
    ended. With `dry_run`, nothing is removed, and what would be `stays` without a reason.
    """
    names = frozenset(own)
    mounted = [point for point, _ in mounts()]
    todo: dict[Path, list[tuple[Note, str]]] = {}
    outcomes = []
    for note in [note for _, note in read_notes(notes) if note]:
        if names and note.name not in names:
            continue
        why = None if names else why_kept(note)
        root = note.path.parent
        is_over = names or note.process.is_alive() is False
        hanging = note.script.group() if is_over and note.script else []
        if hanging:
            # They may still make the directory when the file system answers.
            pids = ", ".join(map(str, hanging))
            outcomes.append(SweepOutcome(note, "stays", f"its job does not end: pid {pids}"))
        elif why == LIVE:
            continue
        elif root not in roots:
            remedy = f"remove it by hand, then its note {notes / note.name}"
            why = f"{root} is not in the site configuration: {remedy}"
            outcomes.append(SweepOutcome(note, "away", why))
        elif any(f"{point}/".startswith((f"{note.path}/", f"{note.path}.")) for point in mounted):
            outcomes.append(SweepOutcome(note, "stays", "something is mounted below it"))
        else:
            todo.setdefault(root, []).append((note, why or ""))
    for root, each in todo.items():
        outcomes += _remove(root, roots[root], each, dry_run)
    if not dry_run:
        settle(notes, outcomes)
    return outcomes


def clean_up(
    root: Path,
    system: str | None,
    read_site_file: ReadSiteFile,
    failed: list[str] | None = None,
    *,
    dry_run: bool = False,
) -> list[SweepOutcome]:
    """Sweep the notes of `system`, which may name a partition, or of all systems.

    If a system fails, `failed` gets a message; without it, FileError or OSError is raised.
    """
    outcomes = []
    for notes in _all_notes(root / "perflogs", (system or "").partition(":")[0] or None):
        try:
            roots = _roots(root, read_site_file(notes.parent.name).partitions)
            outcomes += sweep(notes, roots, dry_run=dry_run)
        except (FileError, OSError) as error:
            if failed is None:
                raise
            failed.append(f"run directories of {notes.parent.name} may stay: {error}")
    return outcomes


def _roots(root: Path, partitions: Mapping[str, Mapping[str, Any]]) -> Roots:
    """Return the roots of run directories in the site file; empty if that is missing."""
    if not partitions:
        return {}
    types = of_suite(root, "checks.filesystems")
    return {
        Path(entry["path"]): types.mount_names(entry, types.BACKENDS[entry["type"]])
        for extras in partitions.values()
        for entry in extras.get("filesystems", {}).values()
    }


def of_suite(site: Path, module: str) -> Any:  # noqa: ANN401
    """Import a module of the site's checks, one that does not need ReFrame."""
    suite = str(suite_of(site))
    if suite not in sys.path:
        sys.path.append(suite)
    return import_module(module)


def arguments(root: Path, types: Sequence[str], notes: Iterable[tuple[Note, str]]) -> list[str]:
    """Return the arguments of remove.sh, which only looks at a directory that has a reason."""
    words = [str(root), ",".join(types)]
    for note, why in notes:
        words += [note.name, note.mounted or "", "look" if why else "remove"]
    return words


def outcomes_of(said: str, notes: Iterable[tuple[Note, str]]) -> list[SweepOutcome]:
    """Return the outcomes that remove.sh printed; a directory without a line stays."""
    lines = (line.split("\t") for line in said.splitlines())
    by_name = {line[0]: line[1:] for line in lines if len(line) == 4}  # noqa: PLR2004
    found = []
    for note, unknown in notes:
        state, size, why = by_name.get(note.name, ("stays", "", "its file system did not answer"))
        if state == "away" and note.job is None:
            state = "gone"  # never submitted, and so never made
        elif state == "away":
            why = f"{why}; left to the probe of the next session"
        elif state == "stays":
            why = unknown or why
        found.append(SweepOutcome(note, state, why, int(size) if size.isdecimal() else None))
    return found


def settle(notes: Path, outcomes: Iterable[SweepOutcome]) -> None:
    """Remove the notes of directories that are gone, and note why the others stay."""
    for outcome in outcomes:
        if outcome.state == "gone":
            (notes / outcome.note.name).unlink(missing_ok=True)
        else:
            outcome.note.staying(outcome.why, outcome.bytes).write(notes)


def _remove(
    root: Path, types: Sequence[str], notes: Sequence[tuple[Note, str]], dry_run: bool
) -> list[SweepOutcome]:
    # in a separate process: a call on a hung file system does not return
    todo = [(note, why or ("dry run" if dry_run else "")) for note, why in notes]
    with_arguments = ["sh", str(REMOVE_SCRIPT), *arguments(root, types, todo)]
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    remover = subprocess.Popen(
        with_arguments, stdin=null, stdout=pipe, stderr=null, start_new_session=True
    )
    try:
        said, _ = remover.communicate(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired as error:
        # it ends when the file system answers; do not wait for it
        os.killpg(remover.pid, signal.SIGKILL)
        said = error.stdout or b""
        if remover.stdout:
            remover.stdout.close()
    return outcomes_of(said.decode("utf-8", "replace"), notes)


_DAY: Final = 86_400
#: How long run reports are kept, in days. Runs without a sample are only in them.
REPORTS: Final = 400
#: How long the stage directories of failed checks are kept, in days.
STAGES: Final = 30
_RECENT: Final = 10
_REPORT: Final = re.compile(r"run-report-\d+\.json")
_SESSION: Final = re.compile(r"\d{8}T\d{6}Z-\d+")


def prune(root: Path) -> None:
    """Remove reports and stage directories that are too old, and stage directories without files.

    A wrong clock alone makes nothing too old: reports of `_RECENT` days must be younger than
    `REPORTS` days. Files that other users may have put there stay.
    """
    dated = {
        path: day
        for pattern, name in (("perflogs/*/reports/*.json", _REPORT), ("stage/*", _SESSION))
        for path in root.glob(pattern)
        if name.fullmatch(path.name) and (day := _day_of_own(path, root)) is not None
    }
    today = int(time.time() // _DAY)
    reports = {day for path, day in dated.items() if path.suffix}
    is_known = len({day for day in reports if day and day >= today - REPORTS}) >= _RECENT
    for path, day in dated.items():
        is_old = is_known and 0 < day < today - (REPORTS if path.suffix else STAGES)
        if path.suffix and is_old:
            with suppress(OSError):
                path.unlink()
        elif not path.suffix and path.is_dir():
            kept = (each for each in path.rglob("*") if each.is_symlink() or each.is_file())
            if is_old or not any(kept):
                shutil.rmtree(path, ignore_errors=True)


def _day_of_own(path: Path, root: Path) -> int | None:
    """Return the day of the last change since 1970, None if others may have put `path` there.

    This user must own it, and no directory on the way from `root` may be writable by all. A link in
    `root` itself, where only this user writes, is followed; no other is.
    """
    *between, top = path.parents[: len(path.relative_to(root).parts) - 1]
    try:
        modes = [top.stat().st_mode, *(each.lstat().st_mode for each in between)]
        found = path.lstat()
    except OSError:
        return None
    is_own = found.st_uid == os.geteuid() and not stat.S_ISLNK(found.st_mode)
    is_closed = all(stat.S_ISDIR(mode) and not mode & stat.S_IWOTH for mode in modes)
    return int(found.st_mtime // _DAY) if is_own and is_closed else None
