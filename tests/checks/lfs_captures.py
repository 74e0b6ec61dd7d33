"""Real output of Lustre 2.17's `lfs`, by command.

The file has each command after `@@@`, then what it printed, then its exit status after `@@rc`.
"""

from pathlib import Path

CAPTURES = Path(__file__).parent / "data" / "lfs-2.17.txt"


def captured(command: str) -> list[str]:
    """What each call of `command` printed, in order; there is at least one."""
    outputs = []
    for section in CAPTURES.read_text(encoding="utf-8").split("@@@ ")[1:]:
        called, _, rest = section.partition("\n")
        if called == command:
            outputs.append(rest.split("@@rc ")[0])
    assert outputs, f"{command!r} was not captured"
    return outputs
