"""Where a program that this suite does not build comes from, and what is told when there is none.

In this order: what the site configuration names (a path, or modules), the program on PATH, a Spack
spec of the site configuration. Where there is none of them the check is skipped, and the run report
says so in `not_installed`, which the digest reads.
"""

import shutil
from pathlib import Path

import reframe as rfm
import reframe.core.runtime as rt
from reframe.core.builtins import run_after, run_before, variable

from .. import programs
from ..refusal import refuse


class ProgramMixin(rfm.RegressionTestPlugin):
    """Finds `program`, and makes the job script able to call it."""

    #: The program, as its authors call it; an entry of `programs` in the site configuration.
    program = variable(str)

    #: What is missing and how to provide it, when the check was skipped for that.
    not_installed = variable(str, type(None), value=None, loggable=True)

    #: Shell commands after which the program is found, before anything else.
    load_program = variable(list, value=[])

    @run_after("setup")
    def find_program(self) -> None:
        entry = self.current_partition.extras.get("programs", {}).get(self.program, {})
        found = programs.find(self.program, entry, shutil.which)
        if found is None:
            self.skip_as_not_installed(programs.how_to_provide(self.program))
        self.executable = found.command
        if rt.runtime().modules_system.name == "nomod":
            self.load_program = [
                f"module load {name} || {refuse(f'the module {name} cannot be loaded')}"
                for name in found.modules
            ]
        else:
            self.modules = [*self.modules, *found.modules]

    # Last, when the check has written its commands; a trap or an option comes before it or after.
    @run_before("run", always_last=True)
    def load_before_all(self) -> None:
        self.prerun_cmds = [*self.load_program, *self.prerun_cmds]

    def skip_as_not_installed(self, why: str) -> None:
        """Skip the check with one line that says what is missing and how to provide it."""
        self.not_installed = why
        self.skip(f"not installed: {why}")
