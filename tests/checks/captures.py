"""Captured and documented output of file systems' commands.

In a file, `@@@` precedes each command; its output follows, and then its exit status after `@@rc`.
"""

from functools import partial
from pathlib import Path

DATA = Path(__file__).parent / "data"


def each_captured(command: str, source: str) -> list[str]:
    """Return the outputs of all calls of `command`, in order, from a file of tests/checks/data."""
    outputs = []
    for section in (DATA / source).read_text(encoding="utf-8").split("@@@ ")[1:]:
        called, _, rest = section.partition("\n")
        if called == command:
            outputs.append(rest.split("@@rc ")[0])
    assert outputs, f"{command!r} was not captured in {source}"
    return outputs


def captured(command: str, source: str) -> str:
    """Return the output of the first call of `command`."""
    return each_captured(command, source)[0]


lustre_said = partial(captured, source="lfs-2.17.txt")
ceph_said = partial(captured, source="ceph-16.2.txt")
beegfs_said = partial(captured, source="beegfs-documented.txt")
real_beegfs_said = partial(captured, source="beegfs-7.4.7-8.3.1.txt")
gpfs_said = partial(captured, source="spectrum-scale-documented.txt")


def states(begin: str) -> str:
    """Return the section whose heading begins so, about a Lustre with targets in several states."""
    parts = (DATA / "lfs-2.17-states.txt").read_text(encoding="utf-8").split("\n## ")
    (found,) = [part.partition("\n")[2] for part in parts if part.startswith(begin)]
    return found
