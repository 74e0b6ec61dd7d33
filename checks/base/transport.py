"""Proves which transport carried the messages of an MPI program."""

from pathlib import Path

import reframe as rfm
from reframe.core.builtins import variable

from . import site
from .stage import call, read_output
from .transport_reports import REPORT_VARIABLES, in_effect


class TransportMixin(rfm.RegressionTestPlugin):
    """Makes the MPI library name its transport, and compares it with the environment's."""

    #: The transport that carried the messages, by the run's own evidence.
    transport_in_effect = variable(str, type(None), value=None, loggable=True)

    def ask_for_transport(self) -> None:
        """Set the variables that make the MPI library name its transport."""
        mpi = self.current_environ.extras.get("mpi")
        for name, value in REPORT_VARIABLES.get(mpi, {}).items():
            self.env_vars.setdefault(name, value)

    def note_libraries(self) -> str:
        """The shell command that keeps the list of the program's libraries."""
        return call("note_libraries", self.program_path)

    def transport_problems(self, stage: Path) -> list[str]:
        """What the run did not prove about the transport; sets `transport_in_effect`."""
        self.transport_in_effect = in_effect(
            self.current_environ.extras.get("mpi"),
            read_output(stage / str(self.stdout), stage / str(self.stderr)),
            read_output(stage / "libraries.txt"),
        )
        if self.transport in (site.DEFAULT_TRANSPORT, self.transport_in_effect):
            return []
        seen = self.transport_in_effect or "none known"
        return [f"transport requested: {self.transport}, in effect: {seen}"]
