"""Every site has all checks, and each of them can be loaded and writes its script."""

import json
import os
import re

import pytest

from iobands.bands import load_bands
from iobands.model import canonical
from tests.config.scripts import dry_run, fill_in
from tests.config.test_sites import ENVIRONMENT, SITES
from tests.site_copy import ROOT, copy_suite

pytestmark = pytest.mark.machine

CASES = {
    name
    for path in (ROOT / "checks" / "cases").glob("*.py")
    for name in re.findall(r"@rfm\.simple_test\nclass (\w+)", path.read_text("utf-8"))
}
# Checks that measure in addition to the cases, and the preflight checks.
PROGRAMS = {"Benchio", "Ior", "Mdtest", "Io500", "EnvFileSystem", "EnvNodes"}


def listing(site, name):
    """Return ReFrame's list of a site's checks; fail on any warning."""
    fill_in(site)
    run = site.reframe(f"--system={name}", "-l", env={**os.environ, **ENVIRONMENT})
    assert run.returncode == 0, run.stdout + run.stderr
    assert "WARNING" not in run.stdout + run.stderr
    return run.stdout


# Lustre with presets, where it is less than on other sites; CephFS, two MPI libraries.
@pytest.mark.parametrize("name", ["example", "minisite"])
def test_every_check_and_case_is_listed(tmp_path, name):
    said = listing(copy_suite(tmp_path), name)
    listed = re.findall(r"^- (\w+)", said, re.MULTILINE)
    assert set(listed) >= CASES
    if name in SITES:
        assert len(re.findall("^- Benchio", said, re.MULTILINE)) == SITES[name]["checks"]
    of_the_site = [check for check in listed if check not in CASES]
    assert {re.sub("FP[PN]|SSF|Serial|Strided", "", check) for check in of_the_site} == PROGRAMS
    # POSIX calls take no hints, so such a run could never prove them to be in effect.
    assert re.findall(r"^- Ior.* %hints=(?!default ).*%api=posix", said, re.MULTILINE) == []


@pytest.mark.parametrize("name", sorted({*SITES} - {"example"}))  # which is listed above
def test_each_site_has_its_number_of_checks(site_copy, name):
    said = listing(site_copy, name)
    assert len(re.findall("^- Benchio", said, re.MULTILINE)) == SITES[name]["checks"]


ARCHER2 = (
    "Archer2FPP|CscNonblocking$",
    "Archer2StripeCount.*%file_system=nvme.*%transport",
    "Cray(Alignment|StripesByHint|DirectIo|Buffer).*nvme.*count_asked=16",
)


@pytest.fixture(scope="module")
def archer2(tmp_path_factory):
    """The job scripts of the cases in ARCHER2, by their names."""
    modules = ("archer2_page", "csc_page", "cray_slides", "cray_hints")
    paths = [f"checks/cases/{name}.py" for name in modules]
    site = copy_suite(tmp_path_factory.mktemp("archer2"), *paths)
    dry_run(site, "--system=archer2", "-n", "|".join(ARCHER2), **ENVIRONMENT)
    return site.scripts("job")


def test_archer2_is_told_the_published_sizes(archer2):
    scripts = [archer2[name] for name in archer2 if re.match("Archer2FPP|Csc", name)]
    whole = [text for text in scripts if "--nodes=16" in text]
    assert whole
    for text in whole:
        (command,) = [line for line in text.splitlines() if re.match(r"(run_pairs 6 )?srun", line)]
        if "run_pairs" in command:
            # 64 GiB, which is what the scale has, for 16 x 16 processes: the cube root of 0.64
            assert "benchio 110 55 220 local" in command
        else:
            assert "benchio 128 128 256 local proc" in command


def test_archer2s_stripe_counts_are_compared_as_its_page_recommends(archer2):
    found = {}
    for name in [each for each in archer2 if each.startswith("Archer2StripeCount")]:
        text = archer2[name]
        sides = re.findall(r"^environment_(\w+)=\((.*)\)$", text, re.MULTILINE)
        found["ucx" if "craype-network-ucx" in text else "ofi", name.count("Stripe")] = sides
    settings = (
        "FI_OFI_RXM_SAR_LIMIT=64K "
        "'MPICH_MPIIO_HINTS=*:cray_cb_write_lock_mode=2,*:cray_cb_nodes_multiplier=4'"
    )
    # a file per process over OFI without variables; the shared file with both, on both sides
    assert found == {("ofi", 1): [], ("ucx", 1): [("without", settings), ("with", settings)]}


def test_crays_settings_are_those_of_its_slides(archer2):
    found = {}
    for name in [each for each in archer2 if each.startswith("Cray")]:
        text = archer2[name]
        assert "export MPICH_MPIIO_STATS=1" in text.splitlines()
        case = re.search(r"Cray[A-Z][a-z]+", name)[0]
        sides = dict(re.findall(r"^options_(\w+)=\((.*)\)$", text, re.MULTILINE))
        for side, words in re.findall(r"^environment_(\w+)=\((.*)\)$", text, re.MULTILINE):
            sides[side] += f" {words}"
        sides["stripes"] = re.findall(r"^\(enter_side.* stripe -c (\S+)", text, re.MULTILINE)
        found.setdefault(case, []).append(sides)
    for each in found["CrayAlignment"]:
        assert each["without"].endswith("--environment=MPICH_MPIIO_CB_ALIGN MPICH_MPIIO_CB_ALIGN=2")
    aligned = sorted(each["with"][-1] for each in found["CrayAlignment"])
    assert aligned == ["0", "1"]
    (stripes,), (direct,), (buffer,) = (
        found[name] for name in ("CrayStripes", "CrayDirect", "CrayBuffer")
    )
    # by the command, and of a directory with one stripe by the hint
    assert stripes == {
        "without": "snapshot", "with": "snapshot --hint=striping_factor=16", "stripes": ["16", "1"],
    }  # fmt: skip
    assert (direct["without"], direct["with"]) == (
        "mpiio --hint=direct_io=false",
        "mpiio --hint=direct_io=true",
    )
    assert "--hint=cb_buffer_size=4194304" in buffer["without"]
    assert "--hint=cb_buffer_size=16777216" in buffer["with"]


def test_a_preset_stripes_files_by_a_hint_in_place_of_the_command(tmp_path):
    site = copy_suite(tmp_path, "checks/tools/benchio/check.py")
    chosen = "BenchioSSF.*file_system=lumi-f.*hints=(default|stripes-by-hint).*scale=small"
    dry_run(site, "--system=lumi", "-n", chosen, **ENVIRONMENT)
    made = {}
    for text in site.scripts("job").values():
        hint = re.findall(r"^export MPICH_MPIIO_HINTS='(.*)'$", text, re.MULTILINE)
        by_command = re.findall(r"^stripe (.*)", text, re.MULTILINE)
        made.setdefault(tuple(hint), []).extend(by_command)
    assert {hint: sorted(options) for hint, options in made.items()} == {
        (): ["-c -1", "-c 1", "-c 32"],
        ("*:striping_factor=32",): [],
    }


def test_a_stripe_count_that_does_not_divide_the_processes_is_said(tmp_path):
    site = copy_suite(tmp_path, "checks/cases/csc_page.py")
    chosen = "CscSquareRootRule.*asked=2%.*scale=published"
    said = dry_run(site, "--system=mahti", "-n", chosen, **ENVIRONMENT)
    # the root of 107 GB is 10; 2 divides 256
    assert re.findall(r"WARNING: CscSquareRootRule .*?: (a stripe count .*?): CSC", said) == [
        "a stripe count is 10, which does not divide the 256 processes"
    ]


def test_cases_have_the_stripes_of_their_source_beside_all(tmp_path):
    modules = ("cray_slides", "cray_hints", "bulk_lustre")
    site = copy_suite(tmp_path, *(f"checks/cases/{name}.py" for name in modules))
    said = listing(site, "archer2")
    counts = {}
    for name, count in re.findall(
        r"^- (\w+) .*%file_system=nvme %stripe_count_asked=(\S+)", said, re.MULTILINE
    ):
        counts.setdefault(name, set()).add(int(count))
    assert {name: counts[name] for name in counts if name not in ("CrayFilePerProcess",)} == {
        "CraySingleWriter": {-1},
        "CraySharedHdf5": {-1},  # against 4
        "CrayNode": {4, -1},
        "CrayOneFile": {1},
        "CrayFewFiles": {1},
        "CrayTargetsPerAggregator": {16, -1},
        "CrayCollectiveBuffering": {1, 4, 16, -1},
        "CrayDataSieving": {1, 4, 16, -1},
        "CrayStrided": {16, -1},
        "CrayHdf5Dump": {8, -1},
        "CraySnapshots": {4, 16, -1},
        "CraySnapshotsByCores": {4, 16, -1},
        "CrayStripesByHint": {4, 16, -1},
        "CrayAlignment": {16, -1},
        "CrayBuffer": {16, -1},
        "CrayDirectIo": {16, -1},
        "CrayOverlap": {4, 16, -1},
        "CraySubsetOfWriters": {22, -1},
        "CraySharedFiles": {1, -1},
        "CrayMapArray": {4, 16, -1},
        "BulkLustreSmallFiles": {1},
        "BulkLustreLargeFile": {16, -1},
        "BulkLustreRounds": {1},
        "BulkLustreStripeCounts": {1, -1},
    }


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("archer2", "archer2_page"),
        ("frontera", "bulk_lustre"),
        ("mahti", "csc_page"),
        ("puhti", "csc_page"),
    ],
)
def test_each_published_band_is_of_a_check_of_its_site(tmp_path, name, cases):
    site = copy_suite(tmp_path, f"checks/cases/{cases}.py", "checks/tools/benchio/check.py")
    fill_in(site)
    run = site.reframe(f"--system={name}", "--describe", env={**os.environ, **ENVIRONMENT})
    checks = [
        {field: canonical(value) for field, value in check.items() if not isinstance(value, list)}
        for check in json.loads(run.stdout)
    ]
    (epoch,) = load_bands(ROOT / "config" / "bands", name).epochs
    left = []
    for band in (*epoch.bands, *epoch.limits):
        wanted = {field: value for field, value in band.wanted.items() if field != "variable"}
        wanted.setdefault("case", None)
        if not any(all(check.get(n, 0) == wanted[n] for n in wanted) for check in checks):
            left.append(dict(band.match))
    assert left == []
