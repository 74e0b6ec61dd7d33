"""The clock of a machine compared with the file system's; the rest is in test_lock.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from iobands.measure.lock import clock_problem
from tests.soak.__main__ import clock_library

SAY = """
import sys
from pathlib import Path
from iobands.measure.lock import clock_problem
print(clock_problem(Path(sys.argv[1])))
"""


def test_clocks_that_agree(tmp_path: Path) -> None:
    assert clock_problem(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(clock_library() is None, reason="libfaketime is not installed")
@pytest.mark.parametrize(
    ("shift", "said"),
    [("+40y", "14600 days ahead of"), ("-20m", "20 minutes behind"), ("+30h", "30 hours ahead of")],
)
def test_a_clock_that_is_off(tmp_path: Path, shift: str, said: str) -> None:
    library = clock_library() or ""
    clock = {"LD_PRELOAD": library, "FAKETIME": shift, "NO_FAKE_STAT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SAY, tmp_path],
        env={**os.environ, **clock},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f" is {said} the clock of the file system of {tmp_path}: " in done.stdout
