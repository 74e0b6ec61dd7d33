"""What is changed in ReFrame's own process."""

from __future__ import annotations

import subprocess
import sys

# As in a session whose `iobands run` was killed: nobody reads what ReFrame says.
_RAISES = """
from iobands.session.workarounds import ForceExitError
try:
    raise ForceExitError("received signal 15")
except ForceExitError:
    raise SystemExit(7)
"""


def test_a_request_to_end_is_raised_where_nobody_reads_it() -> None:
    with subprocess.Popen([sys.executable, "-c", _RAISES], stderr=subprocess.PIPE) as child:
        assert child.stderr is not None
        child.stderr.close()
    assert child.returncode == 7
