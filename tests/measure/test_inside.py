"""What is changed in ReFrame's own process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from iobands.measure.inside import walk_frames_lightly

# As in a session whose `iobands run` was killed: nobody reads what ReFrame says.
_RAISES = """
from iobands.measure.inside import ForceExitError
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


_APPLIES = """
import sys, time
import reframe
from reframe.frontend.executors import policies
from iobands.measure.inside import apply_workarounds
reframe.VERSION = sys.argv[1]
apply_workarounds()
print(policies.time is not time)
"""


@pytest.mark.machine
@pytest.mark.parametrize(
    ("version", "replaced", "said"),
    [("4.10.4", "True", ""), ("4.11.0", "False", "iobands: ReFrame 4.11.0 is left as it is")],
)
def test_only_a_known_reframe_is_changed(version: str, replaced: str, said: str) -> None:
    pytest.importorskip("reframe")
    done = subprocess.run(
        [sys.executable, "-c", _APPLIES, version], capture_output=True, text=True, check=True
    )
    assert (done.stdout.strip(), done.stderr.startswith(said)) == (replaced, True)
    assert bool(done.stderr) == bool(said)


def test_what_is_deprecated_is_said_of_the_line_that_uses_it(monkeypatch):
    warns = pytest.importorskip("reframe.core.warnings")
    monkeypatch.setattr(warns, "inspect", warns.inspect)  # as it was, afterwards
    found = []
    for light in (False, True):
        if light:
            walk_frames_lightly()
        with pytest.warns(warns.ReframeDeprecationWarning) as caught:
            warns.user_deprecation_warning("use another")
        found.append((caught[0].filename, caught[0].lineno, str(caught[0].message)))
    assert found[0] == found[1]
    assert found[0][0] == __file__
