"""Which MPI-IO hints were in effect: what the witnesses of a run say of those asked for.

Pure functions; knows MPI libraries, nothing of ReFrame or of a site. The first witness is the
open file, asked by benchio, which leaves out what a library merely echoes (contract 1). The
second is what the library displays of the hints that it holds.
"""

import re

#: What makes an MPI library display the hints that it holds of each file that it opens. MPICH
#: and Intel's library need not be asked: there the open file is a witness.
REPORT_VARIABLES = {
    # Of its ROMIO alone: OMPIO displays nothing, so with it no hint is proven.
    "openmpi": {"ROMIO_PRINT_HINTS": "1"},
    "cray-mpich": {"MPICH_MPIIO_HINTS_DISPLAY": "1"},
}

_ROMIO_LINE = re.compile(r"^key = (\S+)\s+value = (.*)$")
_CRAY_HEAD = re.compile(r"^PE \d+: MPIIO hints for .*:$")
_CRAY_LINE = re.compile(r"^(?:PE \d+:| {3})\s+(\w+)\s+= (.*)$")

NOT_SET = "not set"

Values = dict[str, set[str]]


def displayed(said: str) -> Values:
    """The values of each hint that the MPI library displayed, over all files that it opened."""
    values: Values = {}
    of_a_file = False
    for line in said.splitlines():
        of_a_file = bool(_CRAY_HEAD.match(line) or (of_a_file and _CRAY_LINE.match(line)))
        found = _ROMIO_LINE.match(line) or (of_a_file and _CRAY_LINE.match(line))
        if found:
            values.setdefault(found[1], set()).add(found[2].strip())
    return values


def read_back(records: list[dict]) -> Values:
    """The values of each hint that was read back from the open file in any phase."""
    hints = [record.get("hints", {}) for record in records]
    return {name: {each.get(name, NOT_SET) for each in hints} for name in set().union(*hints)}


def in_effect(asked: dict[str, str], *witnesses: Values) -> dict[str, str]:
    """What the witnesses say of the hints in `asked`; one that none speaks of is left out."""
    seen = {
        name: set().union(*(witness.get(name, set()) for witness in witnesses)) for name in asked
    }
    return {name: " and ".join(sorted(values)) for name, values in sorted(seen.items()) if values}


def unproven(asked: dict[str, str], proven: dict[str, str]) -> list[str]:
    """What differs between the hints asked for and those in effect, in words."""
    return [
        f"hint {name} asked: {value}, in effect: {proven.get(name, 'no evidence')}"
        for name, value in asked.items()
        if proven.get(name) != value
    ]
