"""Transports and hints in effect, with real runs of two MPI libraries over two transports.

The presets stand for mistakes of a site: they set something that the environment does not expect.
"""

import shutil

import pytest

from tests.checks.fabrics import environments
from tests.site_copy import BENCHIO, copy_suite

pytestmark = pytest.mark.machine

TAKEN = {"cb_buffer_size": "1048576", "cb_config_list": "*:2", "romio_ds_write": "disable"}
PRESETS = {
    "romio": {"romio_hints": TAKEN, "hints": TAKEN},
    # ROMIO has one aggregator per node by default: it reduces the hint to 1.
    "too-many": {"romio_hints": {"cb_nodes": "64"}, "hints": {"cb_nodes": "64"}},
    "unknown": {"romio_hints": {"cb_nods": "2"}, "hints": {"cb_nods": "2"}},
    "not-romio": {
        "env_vars": {"OMPI_MCA_io": "ompio"},
        "romio_hints": {"romio_ds_write": "disable"},
        "hints": {"romio_ds_write": "disable"},
        "mpi": ["openmpi"],
        "transports": ["ofi"],
    },
    "neither": {
        "env_vars": {"OMPI_MCA_pml": "ob1"},
        "mpi": ["openmpi"],
        "transports": ["ofi"],
    },
    "over-ofi": {
        "env_vars": {"OMPI_MCA_pml": "cm", "OMPI_MCA_mtl": "ofi"},
        "mpi": ["openmpi"],
        "transports": ["ucx"],
    },
    "no-device": {
        "env_vars": {"OMPI_MCA_pml_ucx_tls": "none", "OMPI_MCA_pml_ucx_devices": "none"},
        "mpi": ["openmpi"],
        "transports": ["ucx"],
    },
    "no-fabric": {
        "env_vars": {"OMPI_MCA_mtl": "psm2"},
        "mpi": ["openmpi"],
        "transports": ["ofi"],
    },
    "no-way": {"env_vars": {"UCX_TLS": "nosuch"}, "mpi": ["mpich"]},
    "of-another-library": {"mpi": ["cray-mpich"]},
    "of-no-environment": {"mpi": ["mpich"], "transports": ["ofi"]},
}
EVERYWHERE = ("openmpi-ofi", "openmpi-ucx", "mpich-ucx")

# The environments in which each preset has an effect: exactly these checks must be generated.
GENERATED = {
    "default": EVERYWHERE,
    "romio": EVERYWHERE,
    "too-many": EVERYWHERE,
    "unknown": EVERYWHERE,
    "not-romio": ("openmpi-ofi",),
    "neither": ("openmpi-ofi",),
    "over-ofi": ("openmpi-ucx",),
    "no-device": ("openmpi-ucx",),
    "no-fabric": ("openmpi-ofi",),
    "no-way": ("mpich-ucx",),
}


@pytest.fixture(scope="module")
def fabrics(tmp_path_factory):
    """The first row of each run of the shared file, by preset and environment; and the cases."""
    if shutil.which("mpifort.mpich") is None:
        pytest.skip("MPICH is not installed beside Open MPI")
    site = copy_suite(tmp_path_factory.mktemp("site"), *BENCHIO)
    disk = tmp_path_factory.mktemp("disk")
    site.add_local_system(
        "fabrics",
        {"disk": {"path": str(disk), "type": "posix", "medium": "disk"}},
        {"nodes": 1, "tasks_per_node": 2, "mib_per_task": 1},
        environments=environments(tmp_path_factory.mktemp("mpich") / "bin"),
        hint_presets=PRESETS,
    )
    run = site.reframe("--system=fabrics", "-r", "-n", "BenchioSSF")
    left = list(disk.iterdir())
    rows = {}
    for row in site.rows("fabrics"):
        if row["display_name"].startswith("BenchioSSF"):
            rows.setdefault((row["hints"], row["environ"]), row)
    assert not left
    reasons = {
        (case["display_name"].partition("%hints=")[2].split()[0], case["environ"]): case[
            "fail_reason"
        ]
        for case in site.test_cases("fabrics")
        if case["display_name"].startswith("BenchioSSF")
    }
    # Without a preset, after those above.
    lifted = site.reframe("--system=fabrics", "-r", "-n", "BenchioSSF", "-E", "hints == 'default'")
    observed = {"exit_status": run.returncode, "left": left, "next_run": lifted.returncode == 0}
    return run, rows, reasons, observed


def test_a_preset_is_run_where_it_has_an_effect(fabrics):
    run, rows, *_ = fabrics
    expected = [(preset, name) for preset, names in GENERATED.items() for name in names]
    assert sorted(rows) == sorted(expected), run.stdout


@pytest.mark.parametrize("environ", EVERYWHERE)
def test_each_transport_is_proven(fabrics, environ):
    row = fabrics[1]["default", environ]
    assert row["result"] == "pass", fabrics[2]["default", environ]
    assert row["transport_in_effect"] == row["transport"] == environ.partition("-")[2]
    assert row["hints_in_effect"] == "null"


@pytest.mark.fault("checks", "wrong transport", "no rate; both transports")
@pytest.mark.parametrize(
    ("preset", "environ", "transport"),
    [
        ("neither", "openmpi-ofi", "ob1"),
        ("over-ofi", "openmpi-ucx", "ofi"),
    ],
)
def test_another_transport_fails_naming_both(fabrics, observed, preset, environ, transport):
    _, rows, reasons, ended = fabrics
    assert (rows[preset, environ]["result"], rows[preset, environ]["fail_phase"]) == (
        "fail",
        "sanity",
    )
    asked = environ.partition("-")[2]
    assert f"transport requested: {asked}, in effect: {transport}" in reasons[preset, environ]
    assert rows[preset, environ]["transport_in_effect"] == transport
    assert rows[preset, environ]["perf_value"] == "null"
    observed(message=reasons[preset, environ], **ended)


@pytest.mark.fault("checks", "transport cannot start", "no rate; the library's own words")
@pytest.mark.parametrize(
    ("preset", "environ", "words"),
    [
        ("no-device", "openmpi-ucx", "PML ucx cannot be selected"),
        ("no-fabric", "openmpi-ofi", "PML cm cannot be selected"),
        ("no-way", "mpich-ucx", "no usable transports/devices (asked nosuch on all devices)"),
    ],
)
def test_a_transport_that_cannot_start_says_so(fabrics, observed, preset, environ, words):
    _, rows, reasons, ended = fabrics
    assert words in reasons[preset, environ]
    assert "\n" not in reasons[preset, environ].strip()
    assert rows[preset, environ]["fail_phase"] == "sanity"
    observed(message=reasons[preset, environ], **ended)


@pytest.mark.parametrize("environ", EVERYWHERE)
def test_hints_in_effect_are_proven(fabrics, environ):
    row = fabrics[1]["romio", environ]
    assert row["result"] == "pass", fabrics[2]["romio", environ]
    assert row["hints_in_effect"] == (
        "cb_buffer_size=1048576,cb_config_list=*:2,romio_ds_write=disable"
    )


@pytest.mark.fault("checks", "MPI-IO hint is ignored", "no rate; asked and in effect")
@pytest.mark.parametrize("environ", EVERYWHERE)
def test_a_hint_that_is_not_taken_fails_naming_both(fabrics, observed, environ):
    _, rows, reasons, ended = fabrics
    assert rows["too-many", environ]["result"] == "fail"
    assert "hint cb_nodes requested: 64, in effect: 1" in reasons["too-many", environ]
    assert rows["too-many", environ]["hints_in_effect"] == "cb_nodes=1"
    observed(message=reasons["too-many", environ], **ended)


@pytest.mark.fault("checks", "MPI-IO hint without evidence from any library", "no rate")
@pytest.mark.parametrize(
    ("preset", "environ", "hint"),
    [
        *(("unknown", environ, "cb_nods requested: 2") for environ in EVERYWHERE),
        ("not-romio", "openmpi-ofi", "romio_ds_write requested: disable"),
    ],
)
def test_a_hint_without_a_witness_is_not_believed(fabrics, observed, preset, environ, hint):
    _, rows, reasons, ended = fabrics
    assert rows[preset, environ]["result"] == "fail"
    assert f"hint {hint}, in effect: no evidence" in reasons[preset, environ]
    assert rows[preset, environ]["hints_in_effect"] == "null"
    observed(message=reasons[preset, environ], **ended)
