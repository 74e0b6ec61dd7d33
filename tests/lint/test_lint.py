"""The sources satisfy the linters and formatters of `make lint`."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_make_lint():
    run = subprocess.run(["make", "lint"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
