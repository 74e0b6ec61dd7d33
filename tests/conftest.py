"""Fixtures and hooks for the tests of all layers."""

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.fault_table import FaultTable, mark_rows, observed
from tests.left_behind import Ended, files, left_behind
from tests.privileges import skip_where_lacking
from tests.site_copy import BENCHIO, SiteCopy, copy_suite

#: Files and folders, the longest first, so that no worker is left with a long one at the end; those
#: that share the minisite come before all others.
_LONGEST_FIRST = (
    *("kernel/test_layer_table", "minisite/test_lifecycle", "checks/test_cases"),
    *("commands/test_suspects", "docs/test_tutorial", "config/test_cases_of_sites"),
    *("faults/test_benchio", "commands/test_accept", "commands/test_doctor", "source/test_store"),
    *("minisite", "faults", "checks", "kernel", "config"),
    *("docs", "lint", "benchmarks", "fortran", "soak", "commands"),
)

#: Folders whose tests all need MPI, a device or a minisite.
_MACHINE = ("benchmarks", "docs", "faults", "kernel", "lint", "matrix", "minisite")

# Before anything imports NumPy: at small matrices, the threads of OpenBLAS mostly wait for each
# other, which takes ten times the processor time where other workers keep the cores busy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# No deadline: the time that an example takes depends on how busy the machine is. CI draws the same
# examples each time, so that it does not fail by chance; elsewhere each run draws others.
settings.register_profile(
    "busy",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    derandomize="CI" in os.environ,
)
settings.load_profile("busy")


__all__ = ["observed"]

#: The type of the fixture `iobands`.
Command = Callable[..., Ended]


@pytest.fixture
def site_copy(tmp_path) -> SiteCopy:
    """A fresh copy of the suite, from which ReFrame loads benchio's checks."""
    return copy_suite(tmp_path, *BENCHIO)


@pytest.fixture
def iobands(tmp_path, monkeypatch):
    """Call the command in this process, in the test's directory, and return how it ended."""

    def call(*arguments, cwd=tmp_path, **environment):
        from iobands.commands.main import entry  # noqa: PLC0415 (most tests do without)

        before = files(cwd)
        encoding = environment.pop("PYTHONIOENCODING", "utf-8")
        with monkeypatch.context() as patch:
            patch.chdir(cwd)
            for name, value in environment.items():
                patch.setenv(name, value)
            streams = [io.TextIOWrapper(io.BytesIO(), encoding, newline="") for _ in range(2)]
            patch.setattr(sys, "stdout", streams[0])
            patch.setattr(sys, "stderr", streams[1])
            patch.setattr(sys, "argv", ["iobands", *arguments])
            with pytest.raises(SystemExit) as ended:
                entry()
            for stream in streams:
                stream.flush()
        texts = [stream.buffer.getvalue().decode(encoding) for stream in streams]
        done = Ended(arguments, ended.value.code or 0, *texts)
        done.left = left_behind(cwd, before)
        return done

    return call


def pytest_runtest_setup(item):
    """Skip tests that need more than this machine allows, with the reason."""
    skip_where_lacking(item)


def pytest_configure(config):
    """Make the directory of the builds that the ReFrame sessions of all workers share."""
    if not hasattr(config, "workerinput"):
        if os.geteuid() == 0:
            unmount_of_killed()
        builds = tempfile.mkdtemp(prefix="iobands-builds-")
        os.environ["BENCHIO_TEST_BUILDS"] = builds
        config.add_cleanup(lambda: shutil.rmtree(builds, ignore_errors=True))
        if table := config.getoption("--fault-table"):
            config.pluginmanager.register(FaultTable(Path(table)))


def unmount_of_killed():
    """Unmount file systems in pytest directories whose lock names no live process."""
    mounts = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    for point in (line.split()[1] for line in reversed(mounts)):
        if found := re.match(r"/.*/pytest-of-[^/]+/pytest-\d+/", point):
            lock = Path(found[0], ".lock")
            if not (lock.is_file() and Path("/proc", lock.read_text(encoding="utf-8")).is_dir()):
                subprocess.run(["umount", "--lazy", point], check=False)


def pytest_addoption(parser):
    """Replace golden files only on request, so that each change of one is reviewed."""
    parser.addoption("--store-golden", action="store_true", help="replace the golden files")
    parser.addoption("--fault-table", metavar="FILE", help="write the table of faults to FILE")


def pytest_ignore_collect(collection_path, config):
    """Skip the import of folders that `make check` leaves out entirely."""
    is_left_out = config.option.markexpr == "not machine" and collection_path.name in _MACHINE
    return is_left_out or None


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in its own
def pytest_collection_modifyitems(items):
    """Mark what `make check` leaves out, and run each file's tests, which share state, together."""

    ranks = {name: number for number, name in enumerate(_LONGEST_FIRST)}

    def rank(item):
        if item.get_closest_marker("xdist_group"):
            return -1
        area = item.path.parent.name
        return ranks.get(f"{area}/{item.path.stem}", ranks.get(area, len(ranks)))

    mark_rows(items)
    items.sort(key=rank)
    for item in items:
        if item.path.parent.name in _MACHINE or "site_copy" in item.fixturenames:
            item.add_marker(pytest.mark.machine)
        if not item.get_closest_marker("xdist_group"):
            group = f"{item.path.parent.name}/{item.path.stem}"
            item.add_marker(pytest.mark.xdist_group(group))
