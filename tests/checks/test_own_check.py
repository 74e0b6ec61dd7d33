"""A check with a program of a user's own, whose mistakes real ReFrame must not pass over."""

import shutil

import pytest

from tests.site_copy import copy_suite

pytestmark = pytest.mark.machine

CHECK = "checks/tools/mdtest/own.py"

TEXT = '''
import reframe as rfm

from ...base.io_base import IoBase


@rfm.simple_test
class OneWriter(IoBase):
    """Each process writes a file with dd."""

    tool = "dd"
    pattern = "serial"
    metrics = {metrics}

    def write_command(self):
        self.program_path = "dd"
        self.executable_opts = ["if=/dev/zero", 'of="$run_directory/$$"', "bs=64k", "count=1"]

    def result_problems(self, stage):
        {samples}
        return []
'''
BOTH = "('write_bw', 'read_bw')"


@pytest.fixture(scope="module")
def run_check(tmp_path_factory):
    """Runs the check with these metrics and samples; returns the output and the rows."""
    site = copy_suite(tmp_path_factory.mktemp("site"), CHECK, "checks/preflight/checks.py")
    disk = {"path": str(tmp_path_factory.mktemp("disk")), "type": "posix", "medium": "disk"}
    site.add_local_system(
        "own", {"disk": disk}, {"nodes": 1, "tasks_per_node": 2, "mib_per_task": 1}
    )

    def run(metrics, samples):
        text = TEXT.format(metrics=metrics, samples=samples)
        (site.root / CHECK).write_text(text, encoding="utf-8")
        shutil.rmtree(site.root / "perflogs", ignore_errors=True)
        done = site.reframe("--system=own", "-r", "-n", "OneWriter")
        return done, [row for row in site.rows("own") if row["tool"] == "dd"]

    return run


def test_rates_of_all_metrics_are_recorded(run_check):
    done, rows = run_check(BOTH, "self.samples = {'write_bw': [1.0], 'read_bw': [2.0]}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [(row["perf_var"], row["perf_value"]) for row in rows] == [
        ("write_bw", "1.0"),
        ("read_bw", "2.0"),
    ]


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        ("pass", "write_bw: rates above 0 expected, samples has None"),
        ("self.samples = {'write_bw': [1.0]}", "read_bw: rates above 0 expected, samples has None"),
        (
            "self.samples = {'write_bw': [1.0, 0.0], 'read_bw': [2.0, 2.0]}",
            "write_bw: rates above 0 expected, samples has [1.0, 0.0]",
        ),
        (
            "self.samples = {'write_bw': [1.0], 'read_bw': [float('nan')]}",
            "read_bw: rates above 0 expected, samples has [nan]",
        ),
        (
            "self.samples = {'write_bw': 1.0}",
            "samples is {'write_bw': 1.0}: map each of metrics to a list of rates",
        ),
        ("return 'no proof'", "result_problems returned 'no proof': return a list of lines"),
        ("return None", "result_problems returned None: return a list of lines"),
    ],
)
def test_a_metric_without_a_rate_fails(run_check, samples, said):
    done, rows = run_check(BOTH, samples)
    assert done.returncode == 1, done.stdout + done.stderr
    assert said in done.stdout
    assert {(row["result"], row["perf_value"]) for row in rows} == {("fail", "null")}


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ("('open_rate',)", "has 'open_rate', which has no unit: add it to VARIABLE_UNITS"),
        ("('write_bw')", "is 'write_bw': write a tuple, such as ('write_bw',)"),
        ("()", "is (): write a tuple, such as ('write_bw',)"),
    ],
)
def test_a_mistake_in_the_metrics_is_named(run_check, metrics, said):
    done, rows = run_check(metrics, "pass")
    assert f"metrics {said}" in done.stdout
    assert rows == []
