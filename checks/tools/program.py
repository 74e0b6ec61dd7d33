"""Programs that this suite does not build: IOR, mdtest and IO500.

They are looked for in this order: the site configuration (a path, or modules), PATH, a Spack spec
in the site configuration. Without the program, its checks are skipped with that reason.
"""

import re
import shutil
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import fixture, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError

from ..base import programs
from ..base.package import SITE
from ..base.stage import call, read_output
from ..preflight.jobs import EnvMpi

#: Where Spack installs: outside of the session's stage, so that only the first session builds.
INSTALL_TREE = SITE / "build" / "spack"

_BUILD_STATUS_FILE = "build_status.txt"


class ProgramMixin(rfm.RegressionTestPlugin):
    """Finds `program`, and makes the job script able to call it.

    A check that may get it from Spack has a fixture `spack`, a SpackInstall, if
    `site.asks_spack_for` says that it is needed.
    """

    #: If no MPI program can be started, the program is not run.
    mpi_starts = fixture(EnvMpi, scope="environment")

    #: The program by its authors' name; an entry of `programs` in the site configuration.
    program = variable(str)

    @run_after("setup")
    def find_program(self) -> None:
        entry = self.current_partition.extras.get("programs", {}).get(self.program, {})
        found = programs.find(self.program, entry, shutil.which)
        if found is None:
            self.skip_as_not_installed(programs.how_to_provide(self.program))
        path = self.file_system_settings["path"]
        if programs.PATH_SEPARATOR in path:
            self.skip_because(programs.how_to_name(self.program, path))
        self.program_path = found.command
        if found.spack:
            self.load_program = [self.spack.load_command]
        elif found.modules:
            self.load_program = [call("load_modules", self.program, *found.modules)]

    def skip_as_not_installed(self, why: str) -> None:
        """Skip the check with one line about what is missing and how to provide it."""
        self.skip_because(f"not installed: {why}")


class SpackInstall(rfm.CompileOnlyRegressionTest):
    """Installs a program by Spack, with a Spack environment in the stage directory."""

    #: The program; an entry of `programs` in the site configuration.
    program = variable(str)

    build_system = "Spack"

    @run_before("compile")
    def name_spec(self) -> None:
        if self.spec is None:  # this partition has the program, another one needs Spack
            self.build_system = "CustomBuild"
            self.build_system.commands = [":"]
            return
        self.build_system.specs = [self.spec]
        self.build_system.install_tree = str(INSTALL_TREE)
        # For a failed build, ReFrame would report only the exit status.
        self.prebuild_cmds = [f"trap 'echo $? > {_BUILD_STATUS_FILE}; exit 0' EXIT"]

    @property
    def spec(self) -> str | None:
        """The Spack spec of the site configuration."""
        return self.current_partition.extras.get("programs", {}).get(self.program, {}).get("spack")

    @property
    def load_command(self) -> str:
        """The shell command after which the program is on PATH, or which ends the job."""
        environment = Path(self.stagedir, self.build_system.environment)
        return call("load_by_spack", environment, self.spec)

    @sanity_function
    def is_installed(self) -> bool:
        """Spack ran to its end; otherwise its message is the reason."""
        stage = Path(self.stagedir)
        if self.spec is None or read_output(stage / _BUILD_STATUS_FILE).strip() == "0":
            return True
        said = read_output(stage / self.build_job.stderr).strip()
        error = re.search(r"^==> Error: (.*)", said, re.MULTILINE)
        reason = error[1] if error else said.rpartition("\n")[2]
        raise SanityError(f"{self.spec} cannot be installed by Spack: {reason}")
