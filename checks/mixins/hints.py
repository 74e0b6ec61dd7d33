"""Sets what a hint preset of the site configuration says, and proves the hints that it demands."""

from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_before, variable

from .. import hint_reports
from ..program_output import read_output


class HintsMixin(rfm.RegressionTestPlugin):
    """Brings the preset named by the parameter `hints` into the job script.

    The check calls `hint_problems` in its sanity function.
    """

    #: Those of the preset's hints that a witness spoke of, as `name=value,…`.
    hints_in_effect = variable(str, type(None), value=None, loggable=True)

    #: The file that ROMIO is told to read hints from, in the stage directory.
    romio_hints_file = variable(str, value="romio-hints.txt")

    @property
    def hint_preset(self) -> dict:
        """The hint preset of the check or of the site configuration; the default one is empty."""
        presets = {**self.current_partition.extras.get("hint_presets", {}), **self.own_presets}
        return presets.get(self.hints, {})

    @run_before("run")
    def set_hints(self) -> None:
        preset = self.hint_preset
        for name, value in preset.get("env_vars", {}).items():
            self.env_vars[name] = f'"{value}"'
        if preset.get("romio_hints"):
            self.env_vars["ROMIO_HINTS"] = f'"{self.write_romio_hints(preset["romio_hints"])}"'
        if preset.get("hints"):
            mpi = self.current_environ.extras.get("mpi")
            for name, value in hint_reports.REPORT_VARIABLES.get(mpi, {}).items():
                self.env_vars.setdefault(name, value)

    def write_romio_hints(self, hints: dict[str, str]) -> Path:
        """Write the file that ROMIO reads, and return where it is."""
        # The whole path: ROMIO ignores a file that it cannot open, and a launcher may start its
        # processes elsewhere.
        path = Path(self.stagedir, self.romio_hints_file)
        lines = [f"{name} {value}\n" for name, value in hints.items()]
        path.write_text("".join(lines), encoding="utf-8")
        return path

    def hint_problems(self, stage: Path, records: list[dict]) -> list[str]:
        """The hints of the preset that the run failed to prove; sets `hints_in_effect`."""
        said = read_output(stage / str(self.stdout), stage / str(self.stderr))
        asked = self.hint_preset.get("hints", {})
        proven = hint_reports.in_effect(
            asked, hint_reports.read_back(records), hint_reports.displayed(said)
        )
        self.hints_in_effect = ",".join(f"{item[0]}={item[1]}" for item in proven.items()) or None
        return hint_reports.unproven(asked, proven)
