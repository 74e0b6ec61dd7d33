"""Sets the MPI-IO hints of a preset, and proves the required ones.

Two sources show the hints in effect: the open file, read by benchio, which leaves out what a
library merely echoes (contract 1), and the hints that the library displays.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import variable

from .stage import read_output

# ROMIO's names, which Cray's and Intel's libraries share. Open MPI's own MPI-IO has no such hint
# and displays none, so its ROMIO is requested.
_ROMIO = {"OMPI_MCA_io": "^ompio", "ROMIO_PRINT_HINTS": "1"}


def _collective_buffering(value: str) -> dict:
    hints = {"romio_cb_write": value, "romio_cb_read": value}
    return {"env_vars": _ROMIO, "romio_hints": hints, "hints": hints}


#: Hint presets that checks define themselves, in the form of a site's presets (contract 4).
COLLECTIVE_BUFFERING = {
    "cb-on": _collective_buffering("enable"),
    "cb-off": _collective_buffering("disable"),
}

#: Variables that make an MPI library display the hints of each file that it opens. MPICH and
#: Intel's library need none: there the open file shows them.
REPORT_VARIABLES = {
    # For its ROMIO only: OMPIO displays nothing, so with it no hint is proven.
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


def read_back(records: Sequence[Mapping]) -> Values:
    """The values of each hint that was read back from the open file in any phase."""
    hints = [record.get("hints", {}) for record in records]
    return {name: {each.get(name, NOT_SET) for each in hints} for name in set().union(*hints)}


def in_effect(asked: dict[str, str], *sources: Values) -> dict[str, str]:
    """The values of the hints in `asked` by both sources, without hints that neither shows."""
    seen = {name: set().union(*(source.get(name, set()) for source in sources)) for name in asked}
    return {name: " and ".join(sorted(values)) for name, values in sorted(seen.items()) if values}


def unproven(asked: dict[str, str], proven: dict[str, str]) -> list[str]:
    """Differences between the requested hints and the hints in effect, as text."""
    return [
        f"hint {name} requested: {value}, in effect: {proven.get(name, 'no evidence')}"
        for name, value in asked.items()
        if proven.get(name) != value
    ]


def unset(asked: Mapping[str, str], records: Sequence[Mapping]) -> list[str]:
    """The variables that some process lacked or had with another value, as text.

    `records` are benchio's, which reads the environment of each process.
    """
    return [
        f"variable {name} requested: {value}, on all processes: {found}"
        for name, value in asked.items()
        for found in sorted({record["environment"].get(name, NOT_SET) for record in records})
        if found != str(value)
    ]


def as_text(proven: dict[str, str]) -> str | None:
    """Hints as `name=value,...` for the perflog; None without any."""
    return ",".join(f"{name}={value}" for name, value in proven.items()) or None


class HintsMixin(rfm.RegressionTestPlugin):
    """Brings the preset named by the parameter `hints` into the job script."""

    #: The preset's hints that a source showed, as `name=value,…`.
    hints_in_effect = variable(str, type(None), value=None, loggable=True)

    #: The file from which ROMIO reads hints, in the stage directory.
    romio_hints_file = variable(str, value="romio-hints.txt")

    @property
    def hint_preset(self) -> dict:
        """The hint preset of the check or of the site configuration; the default one is empty."""
        presets = {**self.current_partition.extras.get("hint_presets", {}), **self.own_presets}
        return presets.get(self.hints, {})

    def set_hints(self) -> list[str]:
        """The shell commands that set the preset's variables; makes MPI display its hints.

        ReFrame's `env_vars` is not used, as ReFrame expands `$(...)` in their values by itself.
        """
        preset = self.hint_preset
        variables = dict(preset.get("env_vars", {}))
        if preset.get("romio_hints"):
            variables["ROMIO_HINTS"] = self.write_romio_hints(preset["romio_hints"])
        if preset.get("hints"):
            mpi = self.current_environ.extras.get("mpi")
            for name, value in REPORT_VARIABLES.get(mpi, {}).items():
                self.env_vars.setdefault(name, value)
        return [f"export {name}={shlex.quote(str(value))}" for name, value in variables.items()]

    def write_romio_hints(self, hints: dict[str, str]) -> Path:
        """Write the file that ROMIO reads, and return its path."""
        # The whole path, as ROMIO ignores a file that it cannot open, and a launcher may start
        # processes in another directory.
        path = Path(self.stagedir, self.romio_hints_file)
        lines = [f"{name} {value}\n" for name, value in hints.items()]
        path.write_text("".join(lines), encoding="utf-8")
        return path

    def hint_problems(self, stage: Path, records: Sequence[Mapping]) -> list[str]:
        """What the run did not prove about the preset; sets `hints_in_effect`."""
        said = read_output(stage / str(self.stdout), stage / str(self.stderr))
        asked = self.hint_preset.get("hints", {})
        proven = in_effect(asked, read_back(records), displayed(said))
        self.hints_in_effect = as_text(proven)
        seen = [record for record in records if "environment" in record]
        return [*unproven(asked, proven), *unset(self.hint_preset.get("env_vars", {}), seen)]
