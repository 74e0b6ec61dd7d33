"""Notes of run directories, written before the directories are made.

`perflogs/<system>/leftovers/<name of the directory>` holds one JSON object. A note is removed with
its directory. If it says why the directory could not be removed, it is a left-over.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from iobands.measure.processes import Process, cluster_of, has_ended
from iobands.model import SESSION_ENV, Leftover, path_part, replace_file

#: The last part of a run directory's path.
_NAME: Final = re.compile(r"iobands-\w+-\w{10}", re.ASCII)
_DIRECTORY: Final = "leftovers"
_SCHEMA: Final = 1
_LARGEST: Final = 64 * 1024  # bytes of a note that is read


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
        shared = notes.parent.stat().st_mode & stat.S_IWGRP  # by a group that measures
        mode = stat.S_IMODE(notes.stat().st_mode)
        hidden = mode & ~(0o007 if shared else 0o077)
        if hidden != mode:
            with suppress(PermissionError):  # another member's
                notes.chmod(hidden)
        replace_file(notes / self.name, f"{json.dumps(self._fields())}\n".encode())

    def submitted(self, job: str) -> Note:
        """Return the note with the job that makes the directory."""
        local = self.scheduler == "local"
        script = Process.of(int(job)) if local else None
        return replace(self, job=job, cluster=cluster_of(self.scheduler), script=script)

    def staying(self, why: str, size: int | None) -> Note:
        """Return the note with the reason why the directory stays; `since` is kept if it is set."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        return replace(self, stays=Stays(why, self.stays.since if self.stays else now, size))

    def _fields(self) -> dict[str, object]:
        return {
            "schema": _SCHEMA,
            "path": str(self.path),
            **asdict(self.process),
            "session": self.session,
            "scheduler": self.scheduler,
            "mounted": self.mounted,
            "job": self.job,
            "cluster": self.cluster,
            "script": asdict(self.script) if self.script else None,
            "stays": asdict(self.stays) if self.stays else None,
        }


def new_note(root: Path, check: str, scheduler: str, mounted: str | None) -> Note:
    """Return the note of a new directory below `root`, for a job of this process."""
    path = root / f"iobands-{path_part(check)}-{secrets.token_hex(5)}"
    return Note(path, Process.this(), scheduler, os.environ.get(SESSION_ENV), mounted)


def is_live(note: Note) -> bool:
    """Whether the session or the job of a note still runs, as far as is known here."""
    if note.process.is_alive():
        return True
    if note.script:
        return note.script.is_alive() is True or bool(note.script.group())
    if note.job is None or not knows_job(note):
        return False
    return has_ended(note.scheduler, note.job) is False


def knows_job(note: Note) -> bool:
    """Whether the job of a note belongs to the scheduler of this machine."""
    here = cluster_of(note.scheduler)
    if note.cluster:
        return note.cluster == here
    return note.process.is_alive() is not None  # it was submitted on this machine


def unknown_owner(note: Note) -> str | None:
    """Return why it is unknown whether the job of a note has ended, None if it is known."""
    if note.script:
        host = note.script.host
        here = note.script.is_alive() is not None
        return None if here else f"a process of {host} made it: run iobands clean there"
    if note.job is None:
        # A session that was killed just as it submitted; a machine that restarted has no process.
        has_gone = note.process.is_alive() is False and note.process.boot != Process.this().boot
        known = note.scheduler == "local" and has_gone
        return None if known else "its job is unknown; if no job uses it, remove it by hand"
    if not knows_job(note):
        where = f"the cluster {note.cluster}" if note.cluster else note.process.host
        return f"its job {note.job} is of {where}: run iobands clean there"
    known = has_ended(note.scheduler, note.job) is not None
    return None if known else f"the scheduler ({note.scheduler}) does not say whether its job runs"


def notes_of(perflogs: Path, system: str) -> Path:
    """Return the directory with the notes of a system."""
    return perflogs / path_part(system) / _DIRECTORY


def all_notes(perflogs: Path, system: str | None) -> list[Path]:
    """Return the directories with the notes of a system, or of all that have some."""
    found = sorted(perflogs.glob(f"*/{_DIRECTORY}"))
    return [notes for notes in found if system in {None, notes.parent.name}]


def read_notes(notes: Path) -> Iterator[tuple[Path, Note | None]]:
    """Yield the files in the directory `notes` with what they say; None of a damaged one."""
    with suppress(OSError):
        yield from _listed(notes)


def read_leftovers(perflogs: Path, system: str | None) -> tuple[Leftover, ...]:
    """Return what is left of runs on `system`, or on all, by their notes."""
    found = []
    for notes in all_notes(perflogs, system):
        name = notes.parent.name
        try:
            listed = _listed(notes)
        except OSError as error:
            why = f"cannot be listed: {error.strerror}"
            closed = isinstance(error, PermissionError)
            found.append(Leftover(name, notes, why, is_closed=closed))
            continue
        for path, note in listed:
            if note is None:
                why = "unreadable note; delete it and the directory it names"
                found.append(Leftover(name, path, why))
            elif note.stays:
                stays = note.stays
                found.append(Leftover(name, note.path, stays.why, stays.since, stays.bytes))
    return tuple(found)


def _listed(notes: Path) -> list[tuple[Path, Note | None]]:
    found = sorted(path for path in notes.iterdir() if path.name.startswith("iobands-"))
    return [(path, _read(path)) for path in found]


def _read(path: Path) -> Note | None:
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            fields = json.loads(file.read(_LARGEST).decode("utf-8"))
        process = Process.from_fields(fields)
        where = Path(fields["path"])
        texts = {name: fields.get(name) for name in ("session", "mounted", "job", "cluster")}
        if (
            fields["schema"] != _SCHEMA
            or process is None
            or not isinstance(fields["scheduler"], str)
            or not all(text is None or isinstance(text, str) for text in texts.values())
            or not (where.is_absolute() and ".." not in where.parts and "\0" not in str(where))
            or not (_NAME.fullmatch(where.name) and where.name == path.name)
        ):
            return None
        script = Process.from_fields(fields.get("script"))
        return Note(
            where, process, fields["scheduler"], **texts, script=script, stays=_stays(fields)
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _stays(fields: dict[str, object]) -> Stays | None:
    said = fields.get("stays")
    if not isinstance(said, dict):
        return None
    size = said.get("bytes")
    size = size if type(size) is int and size >= 0 else None
    return Stays(str(said.get("why")), str(said.get("since")), size)
