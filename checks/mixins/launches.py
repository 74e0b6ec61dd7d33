"""Calls a program more than once in one job: the launch becomes a shell function.

ReFrame writes one line that launches the program, in the scheduler's way. With this mixin it is
the body of `launch`, and the check's phases call that with the options of each.
"""

from collections.abc import Sequence

import reframe as rfm
from reframe.core.builtins import run_before


class LaunchesMixin(rfm.RegressionTestPlugin):
    """Gives the job script `launch OPTION...`; the check begins its `postrun_cmds` with `}`."""

    # Last: what other mixins put before the program comes before the function.
    @run_before("run", always_last=True)
    def make_launch_a_function(self) -> None:
        self.executable_opts = ['"$@"']
        self.prerun_cmds += ["launch() {"]

    def repeated(self, commands: Sequence[str]) -> list[str]:
        """The end of `launch`, and shell commands that run `commands` once for each repeat.

        `$1` is the number of the repeat; `|| return` in a command ends all of them.
        """
        return [
            "}",
            "repeat() {",
            *commands,
            "}",
            "repeats() {",
            f"for (( number = 1; number <= {self.repeats}; number++ )); do",
            'repeat "$number" || return',
            "done",
            "}",
            "repeats",
        ]
