"""The recipe for an engine, followed in a copy of the tree, by the tests of stores."""

import os
import shutil
import subprocess
import sys

from tests.docs.test_recipes import apply
from tests.site_copy import ROOT

HOLDS = (
    "snapshot_is_that_of_the_files or twice_late or later_session or copy_of_a_store or "
    "no_cluster_writes or two_sites or forgotten"
)


def test_an_engine_is_one_file_and_a_row(tmp_path):
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("docs", "tests", "src/iobands"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    apply(tmp_path, "add-an-engine.md")
    words = f"duckdb and ({HOLDS})"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/source/test_store.py", "-k", words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}/src"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 passed" in done.stdout
