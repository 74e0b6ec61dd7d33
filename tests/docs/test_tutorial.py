"""The tutorial, followed from its second command to its last."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.test_commands import environment
from tests.site_copy import ROOT, with_one_build

TEXT = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
#: The exit status of the digest follows the made-up alerts; the doctor's depends on the machine.
ALLOWED = {"iobands status": {2}, "iobands doctor": {0, 1, 3}, "iobands run": {0}}


def measure_little(site: Path) -> None:
    """Make the file systems of a new site measured once, with a sixteenth of the data."""
    path = site / "config" / "systems" / "local.py"
    if path.exists():
        text = path.read_text("utf-8")
        assert text.count("256 //") == text.count('"repeats": 3') == 1
        path.write_text(text.replace("256 //", "16 //").replace('"repeats": 3', '"repeats": 1'))


@pytest.mark.machine
def test_the_tutorial_can_be_followed(tmp_path: Path) -> None:
    install, *steps = BLOCKS
    assert "pip install 'iobands[all]'" in install  # tests/release installs the wheel
    place, said = tmp_path, {}
    for line in [line for block in steps for line in block.splitlines()]:
        if line.startswith("cd "):
            place = place / line.removeprefix("cd ")
            measure_little(place)
            continue
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=place,
            env=with_one_build(environment(tmp_path)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in ALLOWED.get(line, {0}), f"{line}: {done.stdout}{done.stderr}"
        said.setdefault(line, []).append(done.stdout)
    before, after = said["iobands status"]
    assert "Acknowledged" not in before
    assert "Acknowledged" in after
    known, undone = said["iobands alerts"]
    assert "scratch writes  acknowledged" in known
    assert "scratch writes  open" in undone
    assert "Did not move" in said["iobands explain 3"][0]
    assert "calibrating" in said["iobands run"][0]
