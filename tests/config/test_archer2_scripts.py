"""The job scripts of ARCHER2 are the ones that its documentation would have a user write.

After a change that is meant, look at the new scripts and store them:
`pytest tests/config/test_archer2_scripts.py --store-golden`.
"""

import re
from pathlib import Path

import pytest

from tests.site_copy import copy_suite

GOLDEN = Path(__file__).parent / "golden"

# The daily check of each pattern, by the golden file that holds its script.
CASES = {
    "archer2-fpp-nvme.sh": ("job", "BenchioFPP", "nvme"),
    "archer2-ssf-nvme.sh": ("job", "BenchioSSF", "nvme"),
    "archer2-build-ucx.sh": ("build", "BuildBenchio", "gnu-ucx"),
}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """The scripts of a dry run of the daily checks, without what differs between machines."""
    site = copy_suite(tmp_path_factory.mktemp("archer2"))
    run = site.reframe("--system=archer2:compute", "--dry-run", "-t", "daily")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "Ran 12/12 test case(s)" in run.stdout  # 5 file systems × 2 patterns, 2 builds
    found = {}
    for kind in ("job", "build"):
        for path in (site.root / "stage").rglob(f"rfm_{kind}.sh"):
            text = path.read_text(encoding="utf-8").replace(str(site.root), "ROOT")
            text = re.sub(r"(Benchio\w*?)_[0-9a-f]{8}", r"\1_HASH", text)
            found[kind, str(path.relative_to(site.root)), text] = None
    return [(kind, path, text) for kind, path, text in found]


@pytest.mark.parametrize("golden", CASES)
def test_scripts_are_as_stored(scripts, golden, request):
    kind, check, mark = CASES[golden]
    matching = [
        text
        for script_kind, path, text in scripts
        if script_kind == kind and check in path and mark in path + text
    ]
    assert len(matching) == 1
    stored = GOLDEN / golden
    if request.config.getoption("--store-golden"):
        stored.write_text(matching[0], encoding="utf-8")
    assert matching[0] == stored.read_text(encoding="utf-8")


def test_fpp_and_ssf_differ_as_recommended(scripts):
    jobs = {path: text for kind, path, text in scripts if kind == "job"}
    fpp = [text for path, text in jobs.items() if "BenchioFPP" in path]
    ssf = [text for path, text in jobs.items() if "BenchioSSF" in path]
    assert len(fpp) == len(ssf) == 5
    for text in fpp:
        assert "lfs setstripe -c 1 " in text
        assert "module load PrgEnv-gnu\n" in text
        assert "MPICH_MPIIO_HINTS" not in text
    for text in ssf:
        assert "lfs setstripe -c -1 " in text
        assert "craype-network-ucx cray-mpich-ucx" in text
        assert "export FI_OFI_RXM_SAR_LIMIT=" in text
