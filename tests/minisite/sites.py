"""Minisites for tests, and what is left of one, found independently of the minisite's own code."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from minisite.errors import SiteError
from minisite.place import Place
from minisite.requirements import check

ROOT = Path(__file__).resolve().parents[2]


def skip_unless_possible() -> None:
    """Skip if no minisite can be started, or fail if IOBANDS_REQUIRE_MINISITE is set."""
    try:
        check(Place(Path("/var/tmp/mst")))
    except SiteError as error:
        if os.environ.get("IOBANDS_REQUIRE_MINISITE"):
            raise
        pytest.skip(f"no minisite here: {error}")


@contextmanager
def ended(root: Path) -> Iterator[None]:
    """End the site in `root` afterwards, even if this process is killed.

    A child process waits for the end of a pipe and then calls `down`. It reads the site's path from
    the pipe, so that it does not look like a process of the site.
    """
    script = 'read -r root; read -r _; IOBANDS_MINISITE=$root exec "$@"'
    with subprocess.Popen(
        ["sh", "-c", script, "sh", sys.executable, ROOT / "minisite" / "down"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    ) as guard:
        guard.stdin.write(f"{root}\n")
        guard.stdin.flush()
        yield
    assert guard.returncode == 0


#: How long anything may take on a machine that is busy with other tests, in seconds.
PATIENCE = 600


@dataclass(frozen=True)
class Site:
    """A directory for a site, with the commands on it."""

    root: Path

    def start(self, command: str, *words: str, **environment: str) -> subprocess.Popen:
        """Start one of the minisite's commands."""
        return subprocess.Popen(
            [sys.executable, ROOT / "minisite" / command, *words],
            env=os.environ | {"IOBANDS_MINISITE": str(self.root)} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, command: str, *words: str, **environment: str) -> tuple[int, str]:
        """Run one of the minisite's commands; return its exit status and output."""
        with self.start(command, *words, **environment) as process:
            out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out + err

    def shell(self, script: str) -> subprocess.CompletedProcess:
        """Run a script in a shell that sourced the site's environment."""
        return subprocess.run(
            ["sh", "-c", f". {self.root}/env && {script}"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def remains(self) -> list[str]:
        """Return processes, mounts, loop devices and files that contain the directory's path."""
        wanted = f"{self.root}".encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if wanted in words and int(entry.name) != os.getpid():
                found.append(f"{entry.name} {words.split(bytes(1))[0].decode()}")
        tables = [Path("/proc/mounts").read_text(), _said("losetup", "--all")]
        for table in tables:
            found += [line for line in table.splitlines() if str(self.root) in line]
        return found + [str(path) for path in [self.root] if path.exists()]


def limits() -> set[str]:
    """Return the devices with a rate limit on this machine, in either version of cgroups."""
    found: set[str] = set()
    for pattern in ("blkio/blkio.throttle.*_bps_device", "*/io.max", "iobands-*"):
        for file in Path("/sys/fs/cgroup").glob(pattern):
            found.update(file.read_text().splitlines() if file.is_file() else [str(file)])
    return found


def loop_numbers(site: Site) -> set[str]:
    """Return the major:minor numbers of the site's loop devices."""
    listed = _said("losetup", "--list", "--noheadings", "--output", "MAJ:MIN,BACK-FILE")
    return {line.split()[0] for line in listed.splitlines() if f"{site.root}/" in line}


def _said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout
