"""Install a wheel in a bare Debian, without a clone, and time its first digest.

    python setup/bare.py WHEEL [RELEASE...]      as root, with debootstrap

For each release: the packages that the README names are installed; then a user without rights
calls `pip install`, `iobands init` and `iobands run`, and does it again without any network, from a
folder that `pip download` filled. Both digests must be there within 90 s of their packages.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PLACE: Final = ROOT / "build" / "bare"
RELEASES: Final = ("bookworm", "trixie")
#: The programs of setup/system-packages for a session, and what pip needs to trust its registry.
PACKAGES: Final = (
    *("ca-certificates", "cmake", "gfortran", "libopenmpi-dev", "make", "openmpi-bin"),
    "python3-venv",
)
MOST_SECONDS: Final = 90
_CERTIFICATES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
#: Enters a system in new namespaces, so that its mounts and processes end with the command.
_INSIDE: Final = """
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
! command -v ip >/dev/null || ip link set lo up
shift
exec chroot "$@"
"""


def main() -> None:
    """Try each release; end with status 1 at the first that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("releases", nargs="*", default=RELEASES)
    given = parser.parse_args()
    if os.geteuid() or not shutil.which("debootstrap"):
        sys.exit("bare systems need root and debootstrap: apt-get install debootstrap")
    for release in given.releases:
        try_release(made(release), given.wheel)


def made(release: str) -> Path:
    """Return a bare system with the packages and a user, made on the first call."""
    system = PLACE / release
    done = system / "etc" / "iobands-is-bare"
    if not done.exists():
        if not (system / "etc" / "debian_version").exists():
            PLACE.mkdir(parents=True, exist_ok=True)
            call("debootstrap", "--variant=minbase", release, system)
        shutil.copy("/etc/resolv.conf", system / "etc")
        inside(system, "apt-get update -qq", user="root")
        install = f"apt-get install -qq -y {' '.join(PACKAGES)} >/dev/null"
        inside(system, f"DEBIAN_FRONTEND=noninteractive {install}", user="root")
        inside(system, "id me 2>/dev/null || useradd --create-home me", user="root")
        if _CERTIFICATES.exists():  # this machine may reach the registry through a proxy
            shutil.copy(_CERTIFICATES, system / _CERTIFICATES.relative_to("/"))
        done.touch()
    return system


def try_release(system: Path, wheel: Path) -> None:
    """Install the wheel in a system with a network and then without, and measure in both."""
    home = system / "home" / "me"
    shutil.rmtree(home, ignore_errors=True)
    inside(system, "install -d -o me -g me /home/me", user="root")
    shutil.copy(wheel, home)
    inside(system, f"python3 -m venv a && a/bin/pip install -q './{wheel.name}[checks]'")
    inside(system, "chmod -R a-w a")  # a user usually may not write to the installation
    first_digest(system, "a")
    inside(system, f"a/bin/pip download -q --dest folder './{wheel.name}[checks]'")
    install = f"pip install -q --no-index --find-links folder './{wheel.name}[checks]'"
    inside(system, f"python3 -m venv b && b/bin/{install}", network=False)
    first_digest(system, "b", network=False)
    inside(system, "a/bin/iobands doctor --site site-a || test $? = 1")


def first_digest(system: Path, place: str, *, network: bool = True) -> None:
    """Make a site with the virtual environment `place`, measure it, and check digest and time."""
    load, processors = os.getloadavg()[0], len(os.sched_getaffinity(0))
    site, began, worked = f"site-{place}", time.monotonic(), sum(os.times()[2:4])
    inside(system, f"{place}/bin/iobands init {site}", network=network)
    said = inside(system, f"cd {site} && ../{place}/bin/iobands run", network=network)
    seconds = time.monotonic() - began
    rates = re.findall(r"[\d.]+ GiB/s", said)
    how = "with" if network else "without"
    print(
        f"{system.name}, {how} network: digest of {len(rates)} rates after {seconds:.0f} s "
        f"({sum(os.times()[2:4]) - worked:.0f} s of processors; the load before was {load:.1f})",
        flush=True,
    )
    if not said.startswith("IOBANDS OK") or not rates:
        sys.exit(f"{system.name}: no digest of a healthy machine:\n{said}")
    if seconds > MOST_SECONDS:
        said = f"{system.name}: {seconds:.0f} s, more than {MOST_SECONDS}"
        if load < processors:
            sys.exit(said)
        print(f"{said}, on a busy machine: time it again on an idle one", flush=True)


def inside(system: Path, command: str, *, user: str = "me", network: bool = True) -> str:
    """Run a command in a system, in the user's home, and return its output."""
    kept = ("PIP_CERT", "PIP_INDEX", "PIP_EXTRA", "PIP_DEFAULT", "SSL_", "http", "HTTP")
    environment = [f"{name}={value}" for name, value in os.environ.items() if name.startswith(kept)]
    home = "/root" if user == "root" else f"/home/{user}"
    environment += [f"HOME={home}", f"USER={user}", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]
    alone = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    words = [
        *(*alone, *([] if network else ["--net"]), "sh", "-e", "-c", _INSIDE, "sh", system),
        *(f"--userspec={user}", system, "env", "-i", *environment, "LC_ALL=C.UTF-8"),
        *("sh", "-e", "-c", f"cd {home}; {command}"),
    ]
    print("+", f"{system.name}:", command, flush=True)
    return call(*words)


def call(*words: object) -> str:
    """Run a program and return its output; end if it fails."""
    done = subprocess.run([*map(str, words)], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print(done.stdout, end="")
        sys.exit(f"{words[0]} ended with {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    main()
