"""Sites for tests: a directory each, and what is left of one, seen in other ways than its own."""

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
    """Skip where no minisite can be had, unless IOBANDS_REQUIRE_MINISITE says that it must."""
    try:
        check(Place(Path("/var/tmp/mst")))
    except SiteError as error:
        if os.environ.get("IOBANDS_REQUIRE_MINISITE"):
            raise
        pytest.skip(f"no minisite here: {error}")


@contextmanager
def ended(root: Path) -> Iterator[None]:
    """End the site in `root` afterwards, also when this process is killed.

    By a process that waits for the end of a pipe. It reads the name, so that it does not look
    like one of the site's.
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
        """Begin one of the minisite's commands."""
        return subprocess.Popen(
            [sys.executable, ROOT / "minisite" / command, *words],
            env=os.environ | {"IOBANDS_MINISITE": str(self.root)} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, command: str, *words: str, **environment: str) -> tuple[int, str]:
        """Run one of the minisite's commands: its status, and what it said."""
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
        """Processes, mounts, loop devices and files that carry the directory's name."""
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
    """The devices that have a limit on this machine, by either version of the controller."""
    found: set[str] = set()
    for pattern in ("blkio/blkio.throttle.*_bps_device", "*/io.max", "iobands-*"):
        for file in Path("/sys/fs/cgroup").glob(pattern):
            found.update(file.read_text().splitlines() if file.is_file() else [str(file)])
    return found


def loop_numbers(site: Site) -> set[str]:
    """The numbers of the site's block devices."""
    listed = _said("losetup", "--list", "--noheadings", "--output", "MAJ:MIN,BACK-FILE")
    return {line.split()[0] for line in listed.splitlines() if f"{site.root}/" in line}


def _said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout
