"""Installs a program by Spack where the site configuration has nothing else to offer."""

import re
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_before, sanity_function, variable
from reframe.core.exceptions import SanityError

from .program_output import read_output

#: Where Spack installs to: it outlives the session, so that only the first one builds.
INSTALL_TREE = Path(__file__).resolve().parent.parent / "build" / "spack"


class SpackInstall(rfm.CompileOnlyRegressionTest):
    """One program in an environment of Spack's, in the stage directory."""

    #: The program; an entry of `programs` in the site configuration.
    program = variable(str)

    #: Where the build leaves its exit status, in the stage directory.
    build_status_file = variable(str, value="build_status.txt")

    build_system = "Spack"

    @run_before("compile")
    def say_what(self) -> None:
        if self.spec is None:  # this partition has the program from elsewhere, another one not
            self.build_system = "CustomBuild"
            self.build_system.commands = [":"]
            return
        self.build_system.specs = [self.spec]
        self.build_system.install_tree = str(INSTALL_TREE)
        # ReFrame would say of a build that failed nothing but its exit status.
        self.prebuild_cmds = [f"trap 'echo $? > {self.build_status_file}; exit 0' EXIT"]

    @property
    def spec(self) -> str | None:
        """The Spack spec of the site configuration."""
        return self.current_partition.extras.get("programs", {}).get(self.program, {}).get("spack")

    @property
    def load_command(self) -> str:
        """The shell command after which the program is on PATH, or which ends the job."""
        environment = Path(self.stagedir, self.build_system.environment)
        return (
            f'loads=$(spack -e {environment} load --sh {self.spec}) && eval "$loads" || '
            f'{{ echo "iobands: Spack cannot load {self.spec} in jobs: do they find the command '
            'spack?" >&2; exit 1; }'
        )

    @sanity_function
    def is_installed(self) -> bool:
        """Spack ran to its end, or the reason is what it said."""
        stage = Path(self.stagedir)
        if self.spec is None or read_output(stage / self.build_status_file).strip() == "0":
            return True
        said = read_output(stage / self.build_job.stderr).strip()
        error = re.search(r"^==> Error: (.*)", said, re.MULTILINE)
        reason = error[1] if error else said.rpartition("\n")[2]
        raise SanityError(f"{self.spec} cannot be installed by Spack: {reason}")
