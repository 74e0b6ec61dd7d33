"""What the package's tests share: the command as users call it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def environment(**more: str) -> dict[str, str]:
    """Return an environment in which iobands is found, installed or not."""
    return {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONIOENCODING": "utf-8", **more}


@pytest.fixture
def iobands(tmp_path: Path) -> Command:
    """Run the command in the test's directory, and return what came of it."""

    def call(
        *arguments: str, cwd: Path = tmp_path, **more: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "iobands", *arguments],
            cwd=cwd,
            env=environment(**more),
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=300,
        )

    return call


@pytest.fixture(autouse=True)
def caches(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where caches lie: nowhere that outlives the test."""
    directory = tmp_path_factory.mktemp("caches")
    monkeypatch.setenv("XDG_CACHE_HOME", str(directory))
    return directory / "iobands"
