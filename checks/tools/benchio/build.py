"""Builds the Fortran kernel, once for each programming environment and session."""

import re
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import fixture, run_before, sanity_function, variable
from reframe.core.exceptions import BuildError, SanityError

from ...base.stage import read_output
from ...preflight.jobs import EnvMpi

SOURCE_DIRECTORY = Path(__file__).resolve().parents[3] / "src" / "benchio"


class BuildBenchio(rfm.CompileOnlyRegressionTest, special=True):
    """benchio by CMake, in its stage directory."""

    #: If no MPI program can be built or started, benchio is not built.
    mpi_starts = fixture(EnvMpi, scope="environment")

    #: The program, relative to the stage directory.
    program = variable(str, value="build/benchio")

    build_system = "CMake"
    sourcesdir = str(SOURCE_DIRECTORY)

    @run_before("compile")
    def configure(self) -> None:
        self.build_system.builddir = "build"
        self.build_system.max_concurrency = 4

    def compile_wait(self) -> None:
        """Name the compiler's first error; ReFrame would report only the exit status."""
        try:
            super().compile_wait()
        except BuildError as error:
            output = (str(self.build_job.stderr), str(self.build_job.stdout))
            said = read_output(*(Path(self.stagedir, name) for name in output))
            found = re.search(r"^.*\berror\b.*$", said, re.IGNORECASE | re.MULTILINE)
            raise BuildError(f"{error}: {found[0].strip()}" if found else str(error)) from None

    @sanity_function
    def check_program(self) -> bool:
        """The program exists; the compiler's messages are in the stage directory."""
        if not Path(self.stagedir, self.program).is_file():
            raise SanityError(f"{self.program} was not built: see {self.build_job.stderr}")
        return True

    def lacks(self, library: str) -> bool:
        """Whether the build said that it found no such library, by the title it has there."""
        said = read_output(Path(self.stagedir, str(self.build_job.stdout)))
        return f"-- {library}: none that can be used" in said
