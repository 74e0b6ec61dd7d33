"""A minisite for the tests, up while they run: real Slurm, CephFS and disks.

Tests that inject faults have a second one, so that neither group is the last to end.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.minisite.sites import PATIENCE, ended, skip_unless_possible
from tests.site_copy import BENCHIO, ROOT, SiteCopy, copy_suite


@dataclass(frozen=True)
class Minisite:
    """A site that is up."""

    root: Path
    env: dict[str, str]

    def call(self, command: str) -> str:
        """Run a command as a user of the site, and return what it printed."""
        done = subprocess.run(
            shlex.split(command), env=self.env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def file_system(self, name: str) -> Path:
        """Where a file system is mounted."""
        return self.root / name

    def left_behind(self) -> list[Path]:
        """The run directories on all its file systems."""
        return [path for name in ("ceph", "fast", "slow") for path in self.leftovers(name)]

    def leftovers(self, name: str) -> list[Path]:
        """The run directories on one file system."""
        return sorted(self.file_system(name).glob("iobands-*"))

    def is_idle(self) -> bool:
        """Whether all nodes could take a job."""
        return self.call("sinfo --noheader --Node --format=%t").split() == ["idle"] * 4

    def throttle(self, rate: str) -> None:
        """Change the rate of the slow disk."""
        self.call(f"{ROOT / 'minisite' / 'throttle'} {rate}")

    def wait_until(self, condition: Callable[[], object], what: str) -> None:
        """Wait until a condition holds, for `PATIENCE` seconds at most."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f"{what}: not within {PATIENCE} s"
            time.sleep(0.2)


@dataclass(frozen=True)
class Suite:
    """A copy of the suite that measures a minisite."""

    copy: SiteCopy
    site: Minisite
    begun: list[subprocess.Popen] = field(default_factory=list)

    def reframe(self, *arguments: str) -> subprocess.CompletedProcess:
        """Run ReFrame with the site's configuration."""
        return self.copy.reframe("--system=minisite", *arguments, env=self.site.env)

    def begin(self, *arguments: str) -> subprocess.Popen:
        """Run ReFrame in the background, to do something to the site meanwhile."""
        run = self.copy.begin_reframe("--system=minisite", *arguments, env=self.site.env)
        self.begun.append(run)
        return run

    def end(self) -> None:
        """End what a failed test has left running, so that it does not disturb other tests."""
        for run in self.begun:
            if run.poll() is None:
                run.terminate()
                run.communicate()

    def repeat(self, mib_per_task: int = 16) -> None:
        """Make the runs of the larger scale go on until something ends them."""
        self.change_site_file(
            '"mib_per_task": 16', f'"mib_per_task": {mib_per_task}, "repeats": 1000'
        )

    def change_site_file(self, old: str, new: str) -> None:
        """Replace a text that occurs once in the copy's site file."""
        path = self.copy.root / "config" / "systems" / "minisite.py"
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, old
        path.write_text(text.replace(old, new), encoding="utf-8")

    @property
    def rows(self) -> list[dict[str, str]]:
        """The lines of the perflogs."""
        return self.copy.rows("minisite")

    def the_case(self) -> dict:
        """The one test case of the newest session that measures."""
        (case,) = [
            case
            for case in self.copy.test_cases("minisite")
            if case["display_name"].startswith("Benchio")
        ]
        return case


@pytest.fixture(scope="session")
def minisite(tmp_path_factory) -> Iterator[Minisite]:
    skip_unless_possible()
    root = Path(f"/var/tmp/iobands-test-{os.getpid()}")
    env = {**os.environ, "IOBANDS_MINISITE": str(root)}
    with ended(root):
        up = subprocess.run(
            [ROOT / "minisite" / "up"], env=env, capture_output=True, text=True, check=False
        )
        assert up.returncode == 0, up.stdout + up.stderr
        printed = subprocess.run(
            [ROOT / "minisite" / "run", "env", "--null"],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        yield Minisite(root, dict(item.split("=", 1) for item in printed.split("\0") if item))


@pytest.fixture
def suite(minisite, tmp_path) -> Iterator[Suite]:
    """A fresh copy of the suite; the site is idle and its file systems empty before and after."""
    minisite.wait_until(minisite.is_idle, "an idle site")
    suite = Suite(copy_suite(tmp_path, *BENCHIO), minisite)
    yield suite
    suite.end()
    minisite.wait_until(minisite.is_idle, "an idle site")
    assert minisite.left_behind() == []
