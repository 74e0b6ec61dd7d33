"""A site that is unfit for measurements: each check is skipped at once, with the reason."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.xdist_group("unfit minisite")

FPP = ["-n", "BenchioFPP.*%scale=small", "-p", "openmpi-ucx"]


def results(suite) -> dict[str, list[str]]:
    """Return the results of the newest session's test cases, by the name of the check."""
    found: dict[str, list[str]] = {}
    for case in suite.copy.test_cases("minisite"):
        found.setdefault(case["display_name"].split()[0], []).append(case["result"])
    return found


def unfit(suite) -> dict[str, str]:
    """Return the subjects of the alerts `unfit`, with the reasons."""
    said = subprocess.run(
        [
            *(sys.executable, "-m", "iobands", "status", "--format", "json"),
            *("--perflogs", suite.copy.root / "perflogs"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 3
    alerts = json.loads(said.stdout)["alerts"]
    return {each["subject"]: each["reason"] for each in alerts if each["severity"] == "unfit"}


def test_too_few_nodes_are_waited_for_once(suite):
    try:
        suite.change_site_file('"max_pending_time": "1m"', '"max_pending_time": "30s"')
        suite.site.call("scontrol update nodename=n[2-4] state=drain reason=test")
        run = suite.reframe("-r", "--exec-policy=serial", *FPP)
        assert run.returncode == 1
        assert results(suite) == {
            "EnvProbe": ["pass"],
            "EnvCompiler": ["pass"],
            "EnvMpi": ["fail"],
            "BuildBenchio": ["fail_deps"],
            "BenchioFPP": ["skip"] * 4,
        }
        found = unfit(suite)
        waited = "the job never began: it was cancelled or waited for more than 30 s"
        assert found == {"openmpi-ucx": f"{waited}; 4 checks not run"}
    finally:
        suite.site.call("scontrol update nodename=n[2-4] state=resume")
