"""Proves which transport carried the messages, for any check that runs an MPI program."""

from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_before, variable

from .. import site
from .. import transport as evidence
from ..program_output import read_output


class TransportMixin(rfm.RegressionTestPlugin):
    """Has the MPI library name its transport, and compares it with the one of the environment.

    The check has the parameter `transport` and calls `transport_problems` in its sanity function.
    """

    #: The transport that carried the messages, by the run's own evidence.
    transport_in_effect = variable(str, type(None), value=None, loggable=True)

    #: Where the script leaves what the loader gives the program, in the stage directory.
    libraries_file = variable(str, value="libraries.txt")

    # Last: by then the check has named its executable and its commands.
    @run_before("run", always_last=True)
    def ask_for_transport(self) -> None:
        mpi = self.current_environ.extras.get("mpi")
        for name, value in evidence.REPORT_VARIABLES.get(mpi, {}).items():
            self.env_vars.setdefault(name, value)
        self.prerun_cmds += [f'ldd "$(command -v {self.executable})" > {self.libraries_file} 2>&1']

    def transport_problems(self, stage: Path) -> list[str]:
        """What the run failed to prove of the transport asked for; sets `transport_in_effect`."""
        self.transport_in_effect = evidence.in_effect(
            self.current_environ.extras.get("mpi"),
            read_output(stage / str(self.stdout), stage / str(self.stderr)),
            read_output(stage / self.libraries_file),
        )
        if self.transport in (site.DEFAULT_TRANSPORT, self.transport_in_effect):
            return []
        seen = self.transport_in_effect or "none known"
        return [f"transport asked: {self.transport}, in effect: {seen}"]
