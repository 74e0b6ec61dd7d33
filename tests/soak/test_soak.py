"""The soak for some seconds; `make soak` runs it for ten minutes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.site_copy import ROOT
from tests.soak.__main__ import clock_library


@pytest.mark.skipif(clock_library() is None, reason="libfaketime is not installed")
def test_some_nights_with_faults() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak", "--nights=4", "--seed=5", "--odds=1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, "× " in done.stdout) == (0, True), done.stdout + done.stderr
