"""Skips a check with a reason that the run report keeps: ReFrame's own goes to the screen alone."""

import reframe as rfm
from reframe.core.builtins import variable


class SkipReasonMixin(rfm.RegressionTestPlugin):
    """Gives a check `skip_because`."""

    #: Why the check was skipped, such as `not installed: ior: put it on PATH, ...`.
    skip_reason = variable(str, type(None), value=None, loggable=True)

    def skip_because(self, reason: str) -> None:
        """Skip the check; the digest says why."""
        self.skip_reason = reason
        self.skip(reason)
