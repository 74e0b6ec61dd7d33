"""Has the file systems looked at before a check runs, and skips it where its own is not fit for it.

The job that looks is a fixture: it runs once for all checks of a partition, before the first of
them, whichever were selected. A check that runs an MPI program depends on `EnvMpi` besides, by
itself or by what it builds.
"""

import reframe as rfm
from reframe.core.builtins import fixture, run_after, variable

from ..environment.jobs import EnvProbe


class EnvironmentMixin(rfm.RegressionTestPlugin):
    """For checks that do their I/O on the file system `file_system`."""

    #: What a node of the partition saw of its file systems.
    probe = fixture(EnvProbe, scope="partition")

    #: Why the check was not run, where its file system is not fit for it.
    not_run = variable(str, type(None), value=None, loggable=True)

    @run_after("setup")
    def require_file_system(self) -> None:
        if self.is_dry_run():
            return
        self.not_run = self.probe.findings[self.file_system].blocking
        self.skip_if(bool(self.not_run), f"{self.file_system}: {self.not_run}")
