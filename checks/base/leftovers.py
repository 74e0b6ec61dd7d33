"""Left-overs: run directories that their run could not remove.

A script's trap removes its directory on every exit that a script can notice. A node that went
down, or a file system that did not answer, leaves it. Such a directory is written down, and each
later run tries again. Removes directories that runs of this suite made, and nothing else; knows
nothing of ReFrame.
"""

import os
import re
import signal
import subprocess
from pathlib import Path

#: How long a removal may take: a file system that hangs must not hold up the session.
PATIENCE_SECONDS = 60

#: The last part of a run directory's path, as mktemp made it from the template of the script.
NAME = re.compile(r"iobands-\w+-\w{10}")


def sweep(notes: Path, own: Path | None) -> list[Path]:
    """Remove `own`, the directory of a run that is over, and those that earlier ones left.

    `notes` is the directory with a note for each directory that could not be removed yet. The
    directories that are still there are returned.
    """
    known = {Path(note.read_text(encoding="utf-8").strip()) for note in _notes(notes)}
    if own is not None:
        known.add(own)
    left: list[Path] = []
    hanging: set[Path] = set()
    for directory in sorted(known):
        if not NAME.fullmatch(directory.name) or not directory.is_absolute():
            continue  # damaged, or not ours
        note = notes / directory.name
        if directory.parent not in hanging and _is_gone(directory, hanging):
            note.unlink(missing_ok=True)
        else:
            notes.mkdir(parents=True, exist_ok=True)
            note.write_text(f"{directory}\n", encoding="utf-8")
            left.append(directory)
    return left


def _notes(directory: Path) -> list[Path]:
    return sorted(directory.glob("iobands-*")) if directory.is_dir() else []


def _is_gone(directory: Path, hanging: set[Path]) -> bool:
    """Remove `directory`, and return whether it is gone; False where its file system is away.

    A file system that did not answer joins `hanging`.
    """
    # A process of its own: a call on a file system that hangs does not come back.
    script = 'test -d "${1%/*}" && { ! test -e "$1" || { test ! -L "$1" && rm -rf -- "$1"; }; }'
    remover = subprocess.Popen(
        ["/bin/sh", "-c", script, "sh", str(directory)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return remover.wait(PATIENCE_SECONDS) == 0
    except subprocess.TimeoutExpired:
        # They end when the file system answers, and no one waits.
        os.killpg(remover.pid, signal.SIGKILL)
        hanging.add(directory.parent)
        return False
