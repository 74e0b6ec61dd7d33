"""The checks run with ReFrame and nothing else: no iobands, no pandas."""

import importlib.metadata
import subprocess
import venv
from dataclasses import replace

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from iobands.model import FIELDS, __version__
from tests.site_copy import copy_suite

pytestmark = pytest.mark.machine

PROGRAM = "#!{python}\nimport sys\nfrom reframe.frontend.cli import main\nsys.exit(main())\n"


def needed(name: str, extra: str = "") -> set[str]:
    """Return a distribution and its requirements."""
    found = {canonicalize_name(name)}
    for text in importlib.metadata.requires(name) or []:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            found |= needed(requirement.name)
    return found


@pytest.fixture(scope="module")
def bare_reframe(tmp_path_factory):
    """The reframe program of a virtual environment that has only ReFrame."""
    root = tmp_path_factory.mktemp("bare")
    venv.create(root, symlinks=True)
    (packages,) = root.glob("lib/python3*/site-packages")
    # As pip would install them, from where they are installed already.
    for name in needed("reframe-hpc", "no-analytics"):
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files} - {".."}:
            (packages / top).symlink_to(distribution.locate_file(top))
    python = root / "bin" / "python"
    program = root / "bin" / "reframe"
    program.write_text(PROGRAM.format(python=python), encoding="utf-8")
    program.chmod(0o755)
    for module in ("iobands", "pandas"):
        found = subprocess.run(
            [python, "-I", "-c", f"import {module}"], capture_output=True, check=False
        )
        assert found.returncode != 0, f"{module} is installed, so this would show nothing"
    return program


def test_every_check_runs(tmp_path, bare_reframe, tmp_path_factory):
    # All checks are loaded, and benchio is built by CMake, as a user would have it.
    site = replace(copy_suite(tmp_path), builds_itself=True)
    disk = tmp_path_factory.mktemp("disk")
    site.add_local_system(
        "bare",
        {"disk": {"path": str(disk), "type": "posix", "medium": "disk"}},
        {"nodes": 1, "tasks_per_node": 2, "mib_per_task": 2, "repeats": 2},
    )
    bare = ("--system=bare", "-n", "Benchio", "-n", "Env")
    run = site.reframe(*bare, "-r", "--exec-policy=serial", reframe=bare_reframe)
    assert run.returncode == 0, run.stdout + run.stderr
    # The build and a check for each pattern; and five of the environment.
    assert "Ran 10/10 test case(s)" in run.stdout
    rows = [row for row in site.rows("bare") if row["tool"] == "benchio"]
    assert list(rows[0]) == [field.name for field in FIELDS]
    assert sorted((row["pattern"], row["perf_var"]) for row in rows) == [
        (pattern, variable)
        for pattern in ("fpn", "fpp", "serial", "ssf")
        for variable in ("read_bw", "write_bw")
    ]
    for row in rows:
        assert row["result"] == "pass"
        assert float(row["perf_value"]) > 0
        assert (row["nodes"], row["tasks"], float(row["gib"])) == ("1", "2", 4 / 1024)
        assert (row["tool_version"], row["suite_version"]) == ("1.0.0", __version__)
        assert (row["fsync"], row["cache"] in {"dropped", "none"}) == ("true", True)
        assert 0 <= int(row["fullness_percent"]) <= 100
    assert not list(disk.iterdir())
