"""A mistake in one site file stops ReFrame for that system, and for no other."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.machine

MISTAKES = {
    "no Python": "system = {",
    "an error": "raise RuntimeError('no such cluster')",
    "nothing": "",
    "no system": "environments = []",
    "no site": "system = {'name': 'wrong', 'hostnames': ['nowhere']}\nenvironments = 1",
}
#: The message about each, after its path.
SAID = {
    "no Python": ": SyntaxError: '{' was never closed (wrong.py, line 1)",
    "an error": ", line 1: RuntimeError: no such cluster",
    "nothing": ": does not define `system`",
    "no system": ": does not define `system`",
    "no site": ": ",
}


@pytest.fixture
def site(site_copy, tmp_path):
    file_systems = {"disk": {"path": str(tmp_path), "type": "posix", "medium": "disk"}}
    scale = {"nodes": 1, "tasks_per_node": 1, "mib_per_task": 1}
    site_copy.add_local_system("right", file_systems, scale)
    return site_copy


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_stops_no_other_system(site, mistake):
    path = site.root / "config" / "systems" / "wrong.py"
    path.write_text(f"{MISTAKES[mistake]}\n", encoding="utf-8")
    listed = site.reframe("-l", "--system=right", "-n", "BenchioSerial")
    said = listed.stdout + listed.stderr
    assert listed.returncode == 0, said
    assert "BenchioSerial" in listed.stdout
    assert f"WARNING: left out: {path}" in said
    refused = site.reframe("-l", "--system=wrong")
    assert refused.returncode == 1
    assert f"ERROR: {path}{SAID[mistake]}" in refused.stdout + refused.stderr


def test_a_file_that_may_be_of_this_host_is_no_other(site):
    """If it were ignored, ReFrame would choose `local` and measure as another system."""
    path = site.root / "config" / "systems" / "aaa.py"
    path.write_text("system = {\n", encoding="utf-8")
    assert site.reframe("-l").returncode == 1


#: Runs a command without root's right to ignore file modes.
UNPRIVILEGED = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


@pytest.mark.needs("fewer capabilities")
@pytest.mark.parametrize("closed", ["config/systems", "config/systems/aaa.py"])
def test_what_cannot_be_read_is_named(site, closed):
    """A session of it fails with the reason, which its record has, too."""
    path = site.root / closed
    if path.suffix:
        path.write_text("# on a host of this site\n", encoding="utf-8")
    path.chmod(0)
    try:
        done = subprocess.run(
            [*UNPRIVILEGED, Path(sys.executable).with_name("iobands"), "run"],
            cwd=site.root,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        path.chmod(0o755)
    why = f"{path}: cannot be read: Permission denied"
    assert (done.returncode, done.stderr) == (3, f"IOBANDS UNKNOWN: {why}\n")
    record = json.loads((site.root / "perflogs" / "last-session.json").read_text("utf-8"))
    assert (record["how"], record["reason"]) == ("failed", why)
