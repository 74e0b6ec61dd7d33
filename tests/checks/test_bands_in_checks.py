"""Bands decide a check according to contract 3, with real runs and bands that are unmistakable."""

import pytest

from tests.site_copy import BENCHIO, copy_suite

pytestmark = pytest.mark.machine

MATCH = "match: {{tool: benchio, pattern: fpp, file_system: {0}, variable: {1}}}"
BANDS = """
schema: 6
system: banded
epochs:
  - name: made-up
    since: 2020-01-01
    source: bands that no machine, or every machine, is within reach of
    bands:
"""
QUARTILES = {
    # No machine writes a million GiB/s. The floor of the first is 1e6 × (1/3)^1.5 = 192450.
    "collapsed": {"lower_quartile": 1e6, "median": 2e6, "upper_quartile": 3e6},
    "below": {"lower_quartile": 1e6, "median": 2e6, "upper_quartile": 3e6, "floor": 1e-6},
    "within": {"lower_quartile": 1e-6, "median": 1.0, "upper_quartile": 1e6},
    "above": {"lower_quartile": 1e-9, "median": 2e-9, "upper_quartile": 3e-9},
    # A limit never fails a check, however far the rate is from it.
    "at-most": {"at_most": 1e-9},
    "about": {"about": 1e6},
}
VERDICTS = {"at-most": "above", "about": "below"}

#: The bands of the variables on each file system; a variable that is not named has none.
FILE_SYSTEMS = {
    "one": {"write_bw": "collapsed"},
    "two": {"write_bw": "below", "read_bw": "within"},
    "three": {"write_bw": "above", "read_bw": "at-most"},
    "four": {"read_bw": "about"},
    "none": {},
}


def bands_text():
    text = BANDS
    for file_system, bands in FILE_SYSTEMS.items():
        for variable, band in bands.items():
            lines = [MATCH.format(file_system, variable), "unit: GiB/s"]
            lines += [f"{name}: {value:.9f}" for name, value in QUARTILES[band].items()]
            text += "      - " + "\n        ".join(lines) + "\n"
    return text


def add_banded_system(site, file_systems, root):
    site.add_local_system(
        "banded",
        {name: {"path": str(root), "type": "posix", "medium": "disk"} for name in file_systems},
        {"nodes": 1, "tasks_per_node": 2, "mib_per_task": 1},
    )


@pytest.fixture(scope="module")
def banded(tmp_path_factory):
    """A site after one run on each file system."""
    site = copy_suite(tmp_path_factory.mktemp("site"), *BENCHIO)
    add_banded_system(site, FILE_SYSTEMS, tmp_path_factory.mktemp("disk"))
    (site.root / "config/bands/banded.yaml").write_text(bands_text(), encoding="utf-8")
    run = site.reframe("--system=banded", "-r", "--exec-policy=serial", "-n", "BenchioFPP")
    return site, run


@pytest.mark.parametrize("file_system", FILE_SYSTEMS)
def test_verdict_and_result(banded, file_system):
    site, run = banded
    rows = {
        row["perf_var"]: row for row in site.rows("banded") if row["file_system"] == file_system
    }
    bands = {name: FILE_SYSTEMS[file_system].get(name, "no band") for name in rows}
    verdicts = [f"{name}={VERDICTS.get(bands[name], bands[name])}" for name in sorted(bands)[::-1]]
    has_collapsed = "collapsed" in bands.values()
    assert set(rows) == {"write_bw", "read_bw"}, run.stdout
    for name, row in rows.items():
        assert row["band_verdict"] == ",".join(verdicts)
        assert row["result"] == ("fail" if has_collapsed else "pass")
        assert row["fail_phase"] == ("performance" if has_collapsed else "null")
        assert row["perf_result"] == ("fail" if bands[name] == "collapsed" else "pass")
        # A collapsed run proved its rate, so it is a sample.
        assert float(row["perf_value"]) > 0


def test_reference_is_the_median_and_the_floor(banded):
    site, _ = banded
    (row,) = [
        row
        for row in site.rows("banded")
        if row["file_system"] == "one" and row["perf_var"] == "write_bw"
    ]
    assert float(row["perf_ref"]) == 2e6
    # 192450.09 / 2e6 - 1
    assert float(row["perf_lower_thres"]) == pytest.approx(-0.903775, abs=1e-6)
    assert row["perf_upper_thres"] == "null"


def test_only_collapsed_fails_the_session(banded):
    _, run = banded
    assert run.returncode == 1
    assert "(1 failure(s)" in run.stdout


def test_a_broken_bands_file_stops_the_check_before_any_io(site_copy, tmp_path_factory):
    disk = tmp_path_factory.mktemp("disk")
    add_banded_system(site_copy, ["disk"], disk)
    text = bands_text().replace("lower_quartile", "lowest_quartile", 1)
    (site_copy.root / "config/bands/banded.yaml").write_text(text, encoding="utf-8")
    run = site_copy.reframe("--system=banded", "-r", "--exec-policy=serial", "-n", "BenchioFPP")
    assert run.returncode == 1
    (case,) = [c for c in site_copy.test_cases("banded") if "BenchioFPP" in c["display_name"]]
    assert (case["result"], case["fail_phase"]) == ("fail", "setup")
    assert "banded.yaml" in case["fail_reason"]
    assert "lowest_quartile" in case["fail_reason"]
    assert not list(disk.iterdir())
    assert [row for row in site_copy.rows("banded") if row["perf_var"] != "null"] == []
