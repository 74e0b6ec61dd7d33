"""The checks of the preflight: cheap, part of every selection, and selected by the tag env.

They judge the results of the fixtures in `jobs`, which run before everything else.
"""

import reframe as rfm
from reframe.core.builtins import fixture, parameter, run_after, sanity_function, variable
from reframe.core.exceptions import SanityError
from reframe.core.logging import getlogger

from ..base import site
from .jobs import EnvMpi, EnvProbe, WithoutEnvironment


class EnvCheck(rfm.RunOnlyRegressionTest):
    """Judges the results of a fixture; runs nothing itself."""

    #: The subject of a failure.
    examines = variable(str, loggable=True)

    #: What could not be seen, if anything.
    unknown = variable(str, type(None), value=None, loggable=True)

    tags = {"env", "smoke", "daily", "weekly", "full"}
    local = True
    executable = "true"
    sourcesdir = None

    def report(self, subject: str, wrong: str | None, unknown: str | None) -> bool:
        """Raise SanityError for `wrong`, the faults if any; note what is `unknown`."""
        self.unknown = unknown
        if unknown:
            getlogger().info(f"{subject}: unknown: {unknown}")
        if wrong:
            raise SanityError(wrong)
        return True


@rfm.simple_test
class EnvFileSystem(EnvCheck, WithoutEnvironment):
    """A file system is mounted, has the right type and room, is writable and has all targets."""

    descr = "Environment: mounted, writable, with space, inodes, quota and all targets"
    examines = "file system"

    #: The file system, by its name in the site configuration.
    file_system = parameter(site.file_systems(), loggable=True)

    #: Its size in GiB, if the node saw it.
    size_gib = variable(float, type(None), value=None, loggable=True)

    #: What a node of the partition saw of its file systems.
    probe = fixture(EnvProbe, scope="partition")

    @run_after("init")
    def bind_to_site(self) -> None:
        self.valid_systems, self.valid_prog_environs = site.partitions_with(self.file_system)

    @sanity_function
    def is_fit(self) -> bool:
        """It has no faults."""
        findings = self.probe.findings[self.file_system]
        self.size_gib = findings.size_gib
        return self.report(self.file_system, findings.wrong, ", ".join(findings.unknown) or None)


@rfm.simple_test
class EnvNodes(EnvCheck):
    """The fixtures have checked modules, compilers and MPI; this checks that clocks agree."""

    descr = "Environment: modules, compilers, MPI on two nodes, and their clocks"
    examines = "environment"
    valid_systems = ["+io"]
    valid_prog_environs = ["*"]

    #: Modules and compilers, and MPI on two nodes.
    mpi_starts = fixture(EnvMpi, scope="environment")

    @sanity_function
    def agree(self) -> bool:
        """All clocks agree."""
        wrong = "; ".join(self.mpi_starts.clock_problems) or None
        return self.report(self.current_environ.name, wrong, self.mpi_starts.unknown)
