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
