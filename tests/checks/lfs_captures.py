"""Real output of Lustre 2.17's `lfs` and `lctl`, by command."""

from tests.checks import captures


def captured(command: str) -> list[str]:
    """What each call of `command` printed, in order; there is at least one."""
    return captures.captured(command, "lfs-2.17.txt")
