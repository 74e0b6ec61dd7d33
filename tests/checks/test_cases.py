"""Every case runs at a small scale and proves its figures, or says in one line what it needs."""

import json
import re
import shutil
from pathlib import Path

import pytest

from checks.cases.naming import kebab
from tests.config.scripts import dry_run, scripts
from tests.site_copy import ROOT, copy_suite

pytestmark = pytest.mark.machine

# The messages about what this machine lacks.
STRIPES = "it needs a file system with stripes, and disk (posix) has none that could be set"
TARGETS = (
    "aligns accesses with storage targets, which only Lustre, BeeGFS and CephFS show: disk is posix"
)
SKIPPED = {
    "Archer2StripeCount": f"compares stripe counts: {STRIPES}",
    "BulkLustreSmallFiles aligned": TARGETS,
    "BulkLustreLargeFile aligned": TARGETS,
    "BulkLustreRounds aligned": TARGETS,
    "BulkLustreStripeCounts": f"compares stripe counts: {STRIPES}",
    "Archer2Adios": "benchio's layer adios-default needs ADIOS2: not found",
    "Archer2StripeSize": f"compares stripe sizes: {STRIPES}",
    "Archer2Hints": "compares a hint preset with none: the site file has no hint_presets",
    "Archer2Transport": "compares MPI transports: all environments of the site file have one, "
    "default",
    "CraySingleWriter": f"compares stripe counts: {STRIPES}",
    "CraySharedHdf5": f"compares stripe counts: {STRIPES}",
    "CrayNode": f"compares stripe counts: {STRIPES}",
    "CrayOneFile": f"stripes by the number of targets: {STRIPES}",
    "CrayFewFiles": f"stripes by the number of targets: {STRIPES}",
    "CrayTargetsPerAggregator": f"compares numbers of aggregators for a number of stripes: "
    f"{STRIPES}",
    "CrayStripesByHint": f"compares ways to set the stripe count: {STRIPES}",
    "CrayAlignment": "sets MPICH_MPIIO_CB_ALIGN, which only Cray's MPI has",
    "CrayDirectIo": "sets the hint direct_io, which only Cray's MPI has",
    "CscBlocking unit": "compares a hint about stripes, which MPI-IO heeds only on Lustre: "
    "disk is posix",
    "CscSquareRootRule": f"stripes by the size of the file: {STRIPES}",
    "CscSmallFiles": f"compares stripe counts: {STRIPES}",
}
OPERATIONS = {
    "Archer2Untar": ["write"],
    "CscOpenOnce": ["write"],
    "CscListing": ["list"],
    "BulkLustreRounds": ["read"],
}
# Variables that are measured in addition to the rates.
FURTHER = {"Archer2Program": {"step_rate", "step_rate_beside", "program_rate"}}
# Cases that compare nothing within a job.
ALONE = {
    "Archer2Program",
    "Archer2FPP",
    "Archer2SSF",
    "Archer2SingleWriter",
    "Archer2FileSystem",
    "CrayFilePerProcess",
    "CraySnapshotsByCores",
}


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """All cases on two processes with 1 MiB each; one pair, since the rates do not matter."""
    site = copy_suite(tmp_path_factory.mktemp("site"))
    disk = tmp_path_factory.mktemp("disk")
    site.add_local_system(
        "tiny",
        {"disk": {"path": str(disk), "type": "posix", "medium": "disk"}},
        {"nodes": 1, "tasks_per_node": 2, "mib_per_task": 1, "time_limit": "2m"},
    )
    run = site.reframe("--system=tiny", "-r", "--exec-policy=serial", "-t", "case", "-S", "pairs=1")
    assert run.returncode == 0, run.stdout + run.stderr
    assert list(disk.iterdir()) == []
    return site, run.stdout


def classes():
    """The class names of all cases, from the sources."""
    found = [
        name
        for path in sorted((ROOT / "checks" / "cases").glob("*.py"))
        for name in re.findall(r"@rfm\.simple_test\nclass (\w+)", path.read_text("utf-8"))
    ]
    assert len(found) == len(set(found)) > 20
    return found


def test_every_case_ran_or_said_what_it_needs(session):
    site, _ = session
    results, reasons = {}, {}
    for case in site.test_cases("tiny"):
        if case["fixture"]:
            continue
        name = case["display_name"].split()[0]
        for point in ("hint_set=unit", "access=aligned"):
            if f"%{point} " in case["display_name"] + " ":
                name += f" {point.partition('=')[2]}"
        results.setdefault(name, set()).add(case["result"])
        reasons[name] = case.get("skip_reason")
    asked = {*classes(), *SKIPPED}
    assert results == {name: {"skip" if name in SKIPPED else "pass"} for name in asked}
    assert {name: reasons[name] for name in SKIPPED} == SKIPPED


def test_what_compares_gives_its_ratio_and_what_does_not_its_rates(session):
    site, _ = session
    variables = {}
    for row in site.rows("tiny"):
        if row["perf_var"] != "null":
            variables.setdefault(row["display_name"].split()[0], {})[row["perf_var"]] = row
    assert set(variables) == set(classes()) - set(SKIPPED)
    for name, rows in variables.items():
        operations = OPERATIONS.get(name, ["write", "read"])
        rate = "rate" if operations == ["list"] else "bw"
        alone = {f"{operation}_{rate}" for operation in operations}
        ratios = {f"{each}_{what}" for each in operations for what in (f"{rate}_without", "ratio")}
        further = FURTHER.get(name, set())
        assert set(rows) == further | (alone if name in ALONE else alone | ratios), name
        for row in rows.values():
            assert row["case"].split()[0] == kebab(name)
            assert float(row["perf_value"]) > 0
    # one pair: the ratio is of the two rates
    rows = variables["Archer2Collective"]
    rate, without = (float(rows[name]["perf_value"]) for name in ("write_bw", "write_bw_without"))
    assert float(rows["write_ratio"]["perf_value"]) == pytest.approx(rate / without)
    assert rows["write_ratio"]["perf_unit"] == "1"


def test_hints_that_were_switched_are_shown_to_be_in_effect(session):
    site, _ = session
    hints = {row["case"]: row["hints_in_effect"] for row in site.rows("tiny")}
    assert (
        hints["cray-collective-buffering disable 1024KiB"]
        == "romio_cb_read=disable,romio_cb_write=disable"
    )
    assert hints["csc-aggregators 4"] == "cb_config_list=*:4"
    # Two processes on one node cannot be 8 or 16 aggregators.
    assert hints["cray-hdf5-dump"] == (
        "cb_config_list=*:2,cb_nodes=2,romio_cb_write=enable,romio_ds_write=disable"
    )
    assert hints["cray-strided 10000B"] == "cb_config_list=*:2,cb_nodes=2,romio_cb_write=enable"
    assert hints["cray-subset-of-writers"] == "cb_config_list=*:1,cb_nodes=1"
    assert hints["cray-snapshots"] == "romio_cb_write=enable"
    assert (
        hints["cray-data-sieving enable-over-disable 1024KiB"]
        == "romio_ds_read=enable,romio_ds_write=enable"
    )


@pytest.fixture(scope="module")
def described(session):
    """ReFrame's description of every check on this machine."""
    site, _ = session
    return json.loads(site.reframe("--system=local", "--describe").stdout)


@pytest.fixture
def tags(described):
    """The tags of every check on this machine, by the name of its class."""
    found = {}
    for check in described:
        found.setdefault(check["name"].split()[0], set()).update(check["tags"])
    return found


def test_no_case_is_in_a_set_of_the_site(tags):
    assert "daily" in tags["BenchioFPP"]
    for name in classes():
        assert "case" in tags[name]
        assert not tags[name] & {"daily", "weekly", "smoke", "full"}


def test_each_case_has_the_tag_of_its_source(tags):
    sources = {
        "archer2-page": "Archer2",
        "bulk-lustre": "Bulk",
        "cray-slides": "Cray",
        "csc-page": "Csc",
    }
    for source, beginning in sources.items():
        of_source = {name for name, has in tags.items() if source in has}
        assert of_source == {name for name in classes() if name.startswith(beginning)}


def test_only_cases_are_named_in_the_column_case(described):
    named = {check["name"].split()[0]: check.get("case") is not None for check in described}
    assert named == {name: name in classes() for name in named}
    assert "Mdtest" in named


def test_a_budget_counts_both_sides_of_all_pairs(described):
    repeats = {check["name"].split()[0]: check.get("repeats") for check in described}
    assert repeats["CscNonblocking"] == 2 * 6
    assert repeats["Archer2FPP"] == 3  # of the scale


def test_calls_can_be_timed_in_a_case_and_its_volume_cannot_be_set(tmp_path):
    site = copy_suite(tmp_path)
    chosen = ("-n", "Archer2FPP", "-n", "CraySubsetOfWriters", "-E", 'file_system == "disk"')
    dry_run(site, "--system=local", *chosen, "-S", "times_calls=yes")
    jobs = {path: text for path, text in scripts(site, "job").items() if "Build" not in path}
    assert len(jobs) == 2
    assert all(" --latency " in text for text in jobs.values())
    page = copy_suite(tmp_path / "page", "checks/cases/archer2_page.py")
    said = page.reframe("--system=local", "-l", "-n", "Archer2FPP", "-S", "Archer2FPP.volume_mib=1")
    assert "Archer2FPP has no variable 'volume_mib' that can be set" in said.stderr


def test_every_case_is_on_the_page():
    page = (ROOT / "docs" / "cases.md").read_text("utf-8")
    assert [name for name in classes() if f"`{name}`" not in page] == []
    named = set(re.findall(r"`((?:Archer2|BulkLustre|Cray|Csc)\w+)`", page))
    assert named - set(classes()) == set()


RIGGED = '''
import reframe as rfm
from reframe.core.builtins import parameter, run_before
from .archer2_page import Archer2Untar

@rfm.simple_test
class Rigged(Archer2Untar):
    """Unpacks nothing, and says how long it took: twice as long without the setting."""

    #: The pair in which it breaks off, if any.
    breaks = parameter([0, 2])

    sourcesdir = {source!r}

    def case_settings(self):
        return [str(self.breaks)]

    @run_before("run")
    def tell(self):
        self.env_vars["BREAKS"] = str(self.breaks)
'''
KNOWN_PAIRS = Path(__file__).parent / "data" / "known_pairs.sh"


@pytest.fixture(scope="module")
def rigged(tmp_path_factory):
    """A site with a case whose pairs are known."""
    site = copy_suite(tmp_path_factory.mktemp("site"), "checks/cases/rigged.py")
    source = site.root / "known_pairs"
    source.mkdir()
    shutil.copy(KNOWN_PAIRS, source / "untar.sh")
    text = RIGGED.format(source=str(source))
    (site.root / "checks" / "cases" / "rigged.py").write_text(text, encoding="utf-8")
    disk = tmp_path_factory.mktemp("disk")
    site.add_local_system(
        "tiny",
        {"disk": {"path": str(disk), "type": "posix", "medium": "disk"}},
        {"nodes": 1, "tasks_per_node": 2, "mib_per_task": 1},
    )
    arguments = ("-r", "--exec-policy=serial", "-n", "^Rigged", "--keep-stage-files")
    run = site.reframe("--system=tiny", *arguments)
    assert run.returncode == 1, run.stdout + run.stderr
    return site, run.stdout


def test_a_known_ratio_is_found_with_its_interval(rigged):
    site, _ = rigged
    rows = {
        row["perf_var"]: float(row["perf_value"])
        for row in site.rows("tiny")
        if row["perf_var"] != "null" and row["result"] == "pass"
    }
    assert set(rows) == {
        "write_bw",
        "write_bw_without",
        "write_ratio",
        "write_ratio_lower",
        "write_ratio_upper",
    }
    # The median of 1.5, 1.8, 2, 2, 2.4 and 3; of six pairs the interval is all that there is.
    assert rows["write_ratio"] == pytest.approx(2)
    assert rows["write_ratio_lower"] == pytest.approx(1.5)
    assert rows["write_ratio_upper"] == pytest.approx(3)
    # The sides take turns, and which begins a pair alternates.
    results = sorted(
        (site.root / "stage").rglob("with*-*.jsonl"), key=lambda path: path.stat().st_mtime_ns
    )
    whole = [path for path in results if len(list(path.parent.glob("with*.jsonl"))) == 12]
    order = [path.stem for path in whole]
    assert order[:4] == ["without-1", "with-1", "with-2", "without-2"]
    assert len(order) == 12


def test_a_run_that_breaks_off_gives_no_ratio(rigged):
    site, said = rigged
    assert "iobands: untar: broken on purpose" in said
    (case,) = [case for case in site.test_cases("tiny") if "breaks=2" in case["display_name"]]
    assert (case["result"], case["fail_phase"]) == ("fail", "sanity")
    failed = [row["perf_value"] for row in site.rows("tiny") if row["result"] == "fail"]
    assert set(failed) <= {"null", "None"}
