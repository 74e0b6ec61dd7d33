"""Real and documented output of file systems' commands, by command.

A file has each command after `@@@`, then what it printed, then its exit status after `@@rc`.
"""

from pathlib import Path

DATA = Path(__file__).parent / "data"


def captured(command: str, source: str) -> list[str]:
    """What each call of `command` printed, in order, in a file of tests/checks/data."""
    outputs = []
    for section in (DATA / source).read_text(encoding="utf-8").split("@@@ ")[1:]:
        called, _, rest = section.partition("\n")
        if called == command:
            outputs.append(rest.split("@@rc ")[0])
    assert outputs, f"{command!r} was not captured in {source}"
    return outputs


def states(begin: str) -> str:
    """What is below a heading that begins so, of a Lustre with targets in several states."""
    parts = (DATA / "lfs-2.17-states.txt").read_text(encoding="utf-8").split("\n## ")
    (found,) = [part.partition("\n")[2] for part in parts if part.startswith(begin)]
    return found
