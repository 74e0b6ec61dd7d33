"""Every command in docs/cases.md that suits any machine runs, and proves what it measures."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.kernel.conftest import MPI_SETTINGS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cases.md"
CASE = re.compile(r"^\*\*(.+?)\*\*.*?^```sh\n(.*?)^# here\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CASES = [
    (title.rstrip("."), site, here) for title, site, here in CASE.findall(PAGE.read_text("utf-8"))
]


def layers_of(commands):
    """Return the layers in the commands, the words between the sizes and the options."""
    words = re.findall(r"benchio \d+ \d+ \d+ (?:local|global) ((?:[a-z][a-z0-9-]* )+)", commands)
    return [set(names.split()) - {"fsync"} for names in words]


def test_every_case_is_found():
    assert len(CASES) == PAGE.read_text("utf-8").count("# here\n") > 20


@pytest.mark.parametrize(("site", "here"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_a_case_runs(benchio, site, here):
    (benchio.cwd / "scratch").mkdir()
    # Computing is only a wait, which is not needed here.
    here = re.sub(r"\b(snapshot\b.*?)(?= --directory)", r"\1 --compute=0", here)
    path = f"{benchio.build}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", here],
        cwd=benchio.cwd,
        env=os.environ | MPI_SETTINGS | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("Finished") >= here.count("mpirun")
    assert "time = " in done.stdout
    assert list((benchio.cwd / "scratch").iterdir()) == []
    # The commands for any machine have the layers of those for a site (without ADIOS2).
    there = [layers - {"adios", "adios-default", "adios-process"} for layers in layers_of(site)]
    assert [layers for layers in layers_of(here) if layers not in there] == []
