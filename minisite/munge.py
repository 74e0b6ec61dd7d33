"""The munge daemon, with which Slurm's parts authenticate each other and their users."""

import os

from minisite.commands import run, start
from minisite.errors import SiteError
from minisite.place import Place
from minisite.waiting import wait_until

PROGRAMS = ("munged", "munge")


def begin(place: Place) -> None:
    """Start the daemon with its own key, and wait until it encodes a credential."""
    directory = place.run / "munge"
    # Other users must be able to reach the socket in it.
    directory.mkdir(mode=0o755)
    key = place.root / "munge.key"
    descriptor = os.open(key, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(os.urandom(128))
    log = place.logs / "munged.log"
    daemon = start(
        place,
        "munged",
        [
            "munged",
            "--foreground",
            f"--key-file={key}",
            f"--socket={directory}/socket",
            f"--pid-file={directory}/pid",
            f"--seed-file={directory}/seed",
            f"--log-file={log}",
        ],
    )
    wait_until(lambda: is_up(place), "munged", place.logs / "munged.out", daemon)


def is_up(place: Place) -> bool:
    """Whether the daemon encodes a credential."""
    try:
        run(place, ["munge", "--no-input", f"--socket={place.run}/munge/socket"], seconds=20)
    except SiteError:
        return False
    return True
