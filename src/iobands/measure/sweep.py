"""Removes orphans, the run directories whose run has ended, and prunes by age; nothing else.

A directory is removed if it has a note, lies directly under a configured root, and its job has
ended. It must be a directory of this user on the right file system, not a symbolic link, and with
nothing mounted below it. If it stays, its note gets the reason. Run reports and the stage
directories of past sessions are removed by age, perflogs never.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from iobands.measure.notes import Note, all_notes, is_live, read_notes, unknown_owner
from iobands.measure.reframe import ReadSiteFile, suite_of
from iobands.model import mounts

#: How long the removals on one file system may take: a hung one must not hold up a session.
PATIENCE_SECONDS: Final = 60
REMOVE_SCRIPT: Final = Path(__file__).with_name("remove.sh")

#: The names that df may show for the file system at each root; empty for any.
Roots = Mapping[Path, Sequence[str]]

_DAY: Final = 86_400
#: How long run reports are kept, in days. Runs without a sample are only in them.
REPORTS: Final = 400
#: How long the stage directories of failed checks are kept, in days.
STAGES: Final = 30
_RECENT: Final = 10
_REPORT: Final = re.compile(r"run-report-\d+\.json")
_SESSION: Final = re.compile(r"\d{8}T\d{6}Z-\d+")


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

    With `own`, names of directories whose run has ended as the caller knows, only these are
    removed. `dry_run` removes nothing: what it would remove `stays` without a reason.
    """
    names = frozenset(own)
    every = [note for _, note in read_notes(notes) if note]
    todo: dict[Path, list[tuple[Note, str]]] = {}
    outcomes = []
    for note in every:
        if names and note.name not in names:
            continue
        why = None if names else unknown_owner(note)
        if not names and is_live(note):
            continue
        root = note.path.parent
        hanging = note.script.group() if names and note.script else []  # of others, is_live says so
        if hanging:
            # A directory that is not there yet may come when the file system answers.
            pids = ", ".join(map(str, hanging))
            outcomes.append(SweepOutcome(note, "stays", f"its job does not end: pid {pids}"))
        elif root not in roots:
            outcomes.append(SweepOutcome(note, "away", f"{root} is not in the site configuration"))
        elif mounted_below(note.path):
            outcomes.append(SweepOutcome(note, "stays", "something is mounted below it"))
        else:
            todo.setdefault(root, []).append((note, why or ""))
    for root, each in todo.items():
        outcomes += _remove(root, roots[root], each, dry_run)
    if not dry_run:
        settle(notes, outcomes)
    return outcomes


def clean_up(
    root: Path, system: str | None, read_site_file: ReadSiteFile, *, dry_run: bool = False
) -> list[SweepOutcome]:
    """Sweep the notes of `system`, or of all systems that have some."""
    return [
        outcome
        for notes in all_notes(root / "perflogs", system)
        for outcome in sweep(
            notes, _roots(root, read_site_file(notes.parent.name).partitions), dry_run=dry_run
        )
    ]


def _roots(root: Path, partitions: Mapping[str, Mapping[str, Any]]) -> Roots:
    """Return the roots of run directories by the site file, which may be missing."""
    if not partitions:
        return {}
    suite = str(suite_of(root))
    if suite not in sys.path:
        sys.path.append(suite)
    types = import_module("checks.filesystems")
    return {
        Path(entry["path"]): types.mount_names(entry, types.BACKENDS[entry["type"]])
        for extras in partitions.values()
        for entry in extras.get("filesystems", {}).values()
    }


def mounted_below(path: Path) -> bool:
    """Whether a file system is mounted at `path` or below it, bind mounts included."""
    return any(
        each == str(path) or each.startswith((f"{path}/", f"{path}.")) for each, _ in mounts()
    )


def arguments(root: Path, types: Sequence[str], notes: Iterable[tuple[Note, str]]) -> list[str]:
    """Return the arguments of remove.sh; it does not remove a directory of an unknown owner."""
    words = [str(root), ",".join(types)]
    for note, why in notes:
        words += [note.name, note.mounted or "", "look" if why else "remove"]
    return words


def outcomes_of(said: str, notes: Iterable[tuple[Note, str]]) -> list[SweepOutcome]:
    """Return the outcomes that remove.sh printed; without one, a directory stays."""
    lines = (line.split("\t") for line in said.splitlines())
    by_name = {line[0]: line[1:] for line in lines if len(line) == 4}  # noqa: PLR2004
    found = []
    for note, unknown in notes:
        state, size, why = by_name.get(note.name, ("stays", "", "its file system did not answer"))
        if state == "away" and note.job is None:
            state = "gone"  # never submitted, and so never made
        elif state == "away":
            why = f"{why}; left to the probe of the next session"
        number = int(size) if size.isdecimal() else None
        found.append(
            SweepOutcome(note, state, (unknown if state == "stays" else "") or why, number)
        )
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
    remover = subprocess.Popen(
        ["sh", str(REMOVE_SCRIPT), *arguments(root, types, todo)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
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


def prune(root: Path) -> None:
    """Remove reports and stage directories that are too old, and stage directories without files.

    Nothing is too old by a clock alone: it must have dated the reports of `_RECENT` recent days.
    Files that others can have put there stay.
    """
    reports = [
        path
        for path in (root / "perflogs").glob("*/reports/*.json")
        if _REPORT.fullmatch(path.name) and _is_ours(path, root)
    ]
    today = int(time.time() // _DAY)
    recent = {day for path in reports if (day := _day(path)) >= today - REPORTS}
    is_known = len(recent) >= _RECENT
    for path in reports:
        if is_known and 0 < _day(path) < today - REPORTS:
            with contextlib.suppress(OSError):
                path.unlink()
    for path in (root / "stage").glob("*"):
        if _SESSION.fullmatch(path.name) and _is_ours(path, root) and path.is_dir():
            old = is_known and 0 < _day(path) < today - STAGES
            if old or not any(each.is_symlink() or each.is_file() for each in path.rglob("*")):
                shutil.rmtree(path, ignore_errors=True)


def _is_ours(path: Path, root: Path) -> bool:
    """Whether this user owns `path` and no other user can have put it there.

    No directory on the way from `root` is writable by all. A link in `root` itself, where only this
    user writes, is followed; no other is.
    """
    *between, top = path.parents[: len(path.relative_to(root).parts) - 1]
    try:
        modes = [top.stat().st_mode, *(each.lstat().st_mode for each in between)]
        found = path.lstat()
    except OSError:
        return False
    return (
        found.st_uid == os.geteuid()
        and not stat.S_ISLNK(found.st_mode)
        and all(stat.S_ISDIR(mode) and not mode & stat.S_IWOTH for mode in modes)
    )


def _day(path: Path) -> int:
    """Return the day of the last change since 1970, 0 if unknown."""
    try:
        return int(path.lstat().st_mtime // _DAY)
    except OSError:
        return 0
