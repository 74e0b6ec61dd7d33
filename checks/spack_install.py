"""Installs a program by Spack where the site configuration has nothing else to offer."""

from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_before, sanity_function, variable

#: Where Spack installs to: it outlives the session, so that only the first one builds.
INSTALL_TREE = Path(__file__).resolve().parent.parent / "build" / "spack"


class SpackInstall(rfm.CompileOnlyRegressionTest):
    """One program in an environment of Spack's, in the stage directory."""

    #: The program; an entry of `programs` in the site configuration.
    program = variable(str)

    build_system = "Spack"

    @run_before("compile")
    def say_what(self) -> None:
        if self.spec is None:  # this partition has the program from elsewhere, another one not
            self.build_system = "CustomBuild"
            self.build_system.commands = [":"]
            return
        self.build_system.specs = [self.spec]
        self.build_system.install_tree = str(INSTALL_TREE)

    @property
    def spec(self) -> str | None:
        """The Spack spec of the site configuration."""
        return self.current_partition.extras.get("programs", {}).get(self.program, {}).get("spack")

    @property
    def load_command(self) -> str:
        """The shell command after which the program is on PATH."""
        environment = Path(self.stagedir, self.build_system.environment)
        return f'eval "$(spack -e {environment} load --sh {self.spec})"'

    @sanity_function
    def is_installed(self) -> bool:
        """Spack's exit status has been looked at already."""
        return True
