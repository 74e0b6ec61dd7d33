"""setup/system-packages, called by an ordinary user."""

import subprocess
from pathlib import Path

import pytest

from tests.site_copy import ROOT


@pytest.mark.needs("other users")
@pytest.mark.parametrize("purpose", ["test", "minisite"])
def test_no_program_of_the_administrators_path_is_missing(purpose: str) -> None:
    with (ROOT / "setup" / "system-packages").open("rb") as script:
        done = subprocess.run(
            ["setpriv", "--reuid=1", "--regid=1", "--clear-groups", "/bin/sh", "-s", purpose],
            env={"PATH": "/usr/bin:/bin"},
            stdin=script,
            capture_output=True,
            text=True,
            check=False,
        )
    missing = done.stderr.partition("\n")[0].removeprefix("Missing: ").split()
    assert [name for name in missing if Path("/usr/sbin", name).exists()] == []
