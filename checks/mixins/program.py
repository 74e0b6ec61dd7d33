"""Where a program that this suite does not build comes from, and what is told when there is none.

In this order: what the site configuration names (a path, or modules), the program on PATH, a Spack
spec of the site configuration. Where there is none of them the check is skipped, and the digest
says so.
"""

import shutil

from reframe.core.builtins import fixture, run_after, run_before, variable

from .. import programs
from ..environment.jobs import EnvMpi
from .skip_reason import SkipReasonMixin


class ProgramMixin(SkipReasonMixin):
    """Finds `program`, and makes the job script able to call it.

    A check that may get it from Spack has a fixture `spack`, a SpackInstall, if
    `site.asks_spack_for` says that it is needed.
    """

    #: Where no MPI program can be started, none of others is.
    mpi_starts = fixture(EnvMpi, scope="environment")

    #: The program, as its authors call it; an entry of `programs` in the site configuration.
    program = variable(str)

    #: Shell commands after which the program can be called.
    load_program = variable(list, value=[])

    @run_after("setup")
    def find_program(self) -> None:
        entry = self.current_partition.extras.get("programs", {}).get(self.program, {})
        found = programs.find(self.program, entry, shutil.which)
        if found is None:
            self.skip_as_not_installed(programs.how_to_provide(self.program))
        self.executable = found.command
        self.load_program = (
            [self.spack.load_command]
            if found.spack
            else programs.load_commands(self.program, found.modules)
        )

    # Last, when the check has written its commands.
    @run_before("run", always_last=True)
    def load_before_all(self) -> None:
        self.prerun_cmds = [*self.load_program, *self.prerun_cmds]

    def skip_as_not_installed(self, why: str) -> None:
        """Skip the check with one line that says what is missing and how to provide it."""
        self.skip_because(f"not installed: {why}")
