"""What a command said that ReFrame called and that failed, such as `sbatch`."""

from __future__ import annotations

import re
from typing import Final

# As SpawnedProcessError of ReFrame 4.10 has it.
_QUOTED: Final = re.compile(
    r"command '(?P<command>[^']*)'.*? exit code \d+:.*?"
    r"--- stderr ---\n(?P<said>.*?)\n?--- stderr ---",
    re.DOTALL,
)
#: The entries of a site file that a scheduler may refuse, with their variables.
_ENTRIES: Final = {
    "account": "IOBANDS_ACCOUNT",
    "reservation": "IOBANDS_RESERVATION",
    "qos": "IOBANDS_QOS",
}


def words_of_command(reason: str) -> str | None:
    """Return what a failed command said and which entry to set; None if no command failed.

    The words come first, as the digest cuts long reasons off.
    """
    found = _QUOTED.search(reason)
    if found is None:
        return None
    said = " ".join(found["said"].split()) or "it said nothing"
    entry = next((name for name in _ENTRIES if name in said.lower()), None)
    remedy = f"; set {entry} in the site file, or {_ENTRIES[entry]}" if entry else ""
    program = found["command"].partition(" ")[0]
    return f"{program}: {said.removeprefix(f'{program}: error: ')}{remedy}"
