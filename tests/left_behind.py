"""How a command ended, and which files it left behind."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

#: Folders that a session is meant to fill; hidden files in them are temporary, except ReFrame's
#: locks of perflogs, which stay for the next session.
PRODUCTS = ("perflogs", "output")


class Ended(subprocess.CompletedProcess[str]):
    """How a command ended; `left` lists the files that it left below its directory."""

    left: frozenset[Path] = frozenset()

    def cells(self, message: str | None = None) -> dict[str, Any]:
        """Return the command's cells of the fault table, as arguments of the fixture `observed`."""
        return {
            "message": (self.stderr or self.stdout) if message is None else message,
            "exit_status": self.returncode,
            "left": self.left,
        }


def files(root: Path) -> frozenset[Path]:
    """Return all files and directories below `root`, ignoring those that vanish meanwhile."""
    return frozenset(
        Path(folder, name)
        for folder, folders, names in os.walk(root)
        for name in (*folders, *names)
    )


def left_behind(root: Path, before: frozenset[Path]) -> frozenset[Path]:
    """Return new paths below `root` that are no products; of a new directory only its own path."""
    new = {path for path in files(root) - before if not _is_product(path.relative_to(root))}
    return frozenset(path for path in new if path.parent not in new)


def _is_product(path: Path) -> bool:
    if "__pycache__" in path.parts:
        return True
    hidden = path.suffix != ".lock" and any(part.startswith(".") for part in path.parts)
    return not hidden and any(path.is_relative_to(folder) for folder in PRODUCTS)
