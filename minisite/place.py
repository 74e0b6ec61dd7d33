"""The directory of a site: its paths, and a lock on it."""

import fcntl
import getpass
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from minisite.errors import SiteError

CLONE = Path(__file__).resolve().parents[1]

#: The paths of the sockets of PMIx and Ceph below the directory may have at most 107 characters.
LONGEST_DIRECTORY = 50

#: Unique file names: a loop device is recognised by its file's name, even after its removal.
FAST_IMAGE, SLOW_IMAGE = "iobands-fast.image", "iobands-slow.image"


@dataclass(frozen=True)
class Place:
    """The directory of a site. All other modules ask it for their paths."""

    root: Path

    @property
    def marker(self) -> Path:
        """The file that marks the directory as a site's, to be removed with all its content."""
        return self.root / ".iobands-minisite"

    @property
    def settings(self) -> Path:
        """The ports and other values that were chosen when the site was started."""
        return self.root / "settings.json"

    @property
    def env(self) -> Path:
        """The file that a user's shell sources."""
        return self.root / "env"

    @property
    def logs(self) -> Path:
        """Each part's log files."""
        return self.root / "log"

    @property
    def run(self) -> Path:
        """Sockets and process ids."""
        return self.root / "run"

    @property
    def spool(self) -> Path:
        """The data of the daemons."""
        return self.root / "spool"

    @property
    def ceph(self) -> Path:
        """Where CephFS is mounted."""
        return self.root / "ceph"

    @property
    def fast(self) -> Path:
        """Where the fast disk is mounted."""
        return self.root / "fast"

    @property
    def slow(self) -> Path:
        """Where the slow disk is mounted."""
        return self.root / "slow"

    @property
    def fast_image(self) -> Path:
        """The file behind the fast disk."""
        return self.root / FAST_IMAGE

    @property
    def slow_image(self) -> Path:
        """The file behind the slow disk."""
        return self.root / SLOW_IMAGE

    @property
    def name(self) -> str:
        """A name of the site for things that have no path, such as a cgroup."""
        return f"iobands-{hashlib.sha256(str(self.root).encode()).hexdigest()[:8]}"

    def read_settings(self) -> dict:
        """The settings of the running site; empty without one."""
        try:
            return json.loads(self.settings.read_text())
        except (OSError, ValueError):
            return {}

    def has(self, path: str) -> bool:
        """Whether a path, such as of a mount or an open file, lies in the directory."""
        return path == str(self.root) or path.startswith(f"{self.root}/")


def find_place() -> Place:
    """The directory named by IOBANDS_MINISITE, or else the one of this user and this clone."""
    named = os.environ.get("IOBANDS_MINISITE")
    if named:
        root = Path(named)
        if not root.is_absolute():
            raise SiteError(f"IOBANDS_MINISITE must be an absolute path, not {named}")
    else:
        # Under sudo, use the calling user's site, which that user's jobs have to find.
        user = os.environ.get("SUDO_USER") or getpass.getuser()
        clone = hashlib.sha256(str(CLONE).encode()).hexdigest()[:6]
        root = Path(f"/var/tmp/iobands-minisite-{user}-{clone}")
    # Resolve links, as the kernel's tables do.
    root = root.resolve()
    if len(str(root)) > LONGEST_DIRECTORY:
        raise SiteError(
            f"{root} is too long for the sockets below it: "
            f"set IOBANDS_MINISITE to a path of at most {LONGEST_DIRECTORY} characters"
        )
    if any(letter.isspace() or letter in "\"'\\$#%:," for letter in str(root)):
        raise SiteError(f"{root}: configuration files cannot have such characters in a path")
    return Place(root)


def claim(place: Place) -> None:
    """Make the directory a site's; an error if it contains anything else."""
    make(place)
    if not is_a_sites(place):
        raise SiteError(f"{place.root} has files of its own; name another directory")
    place.marker.touch()
    place.root.chmod(0o755)


def make(place: Place) -> None:
    """Make the directory, unless it exists; its parent must exist."""
    try:
        place.root.mkdir(mode=0o755, exist_ok=True)
    except OSError as error:
        raise SiteError(f"{place.root} cannot be made: {error.strerror}") from error


def is_a_sites(place: Place) -> bool:
    """Whether the directory is a site's, or the remains of one that was deleted by hand.

    A mount point cannot be deleted, so it remains, together with the site's directory.
    """
    if place.marker.exists():
        return True
    points = (place.ceph, place.fast, place.slow)
    return all(
        entry in points and entry.is_dir() and not any(entry.iterdir())
        for entry in place.root.iterdir()
    )


def remove(place: Place) -> bool:
    """Remove the directory and all in it; return False, and keep it, if it is not a site's."""
    if not place.root.is_dir():
        return True
    if not is_a_sites(place):
        return False
    # The marker last, so that an interrupted removal can be repeated.
    for entry in sorted(place.root.iterdir(), key=lambda path: path == place.marker):
        discard(entry)
    place.root.rmdir()
    return True


def discard(entry: Path) -> None:
    """Remove a file, or a directory with its content."""
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    else:
        entry.unlink(missing_ok=True)


@contextmanager
def held(place: Place, patience: float) -> Iterator[None]:
    """Make the directory if it is missing, and lock it against other calls of `up` and `down`.

    The lock is on the directory itself: the kernel releases it however the process ends, and no
    lock file is left behind.
    """
    end = time.monotonic() + patience
    announced = False
    while True:
        try:
            directory = os.open(place.root, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            # `down` needs the lock too, because an `up` may be about to begin.
            make(place)
            continue
        except NotADirectoryError as error:
            raise SiteError(f"{place.root} is not a directory") from error
        try:
            # The previous holder of the lock may have removed the directory.
            if _lock(directory) and _is_same(directory, place.root):
                yield
                return
        finally:
            os.close(directory)
        if not announced:
            print(f"Waiting for another call of up or down on {place.root}", flush=True)
            announced = True
        if time.monotonic() > end:
            raise SiteError(f"another call of up or down has locked {place.root} for too long")
        time.sleep(0.2)


def _lock(directory: int) -> bool:
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_same(directory: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(directory), path.stat())
    except FileNotFoundError:
        return False
