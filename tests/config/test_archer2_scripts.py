"""The job scripts of ARCHER2 are those that a user would write by its documentation.

The expected values were copied from "I/O performance and tuning" of the ARCHER2 User Guide.
After an intended change, review the new scripts and store them:
`pytest tests/config/test_archer2_scripts.py --store-golden`.
"""

import pytest

from tests.config.scripts import directives, dry_run, hold_against_golden, scripts
from tests.site_copy import BENCHIO, copy_suite

pytestmark = pytest.mark.machine

# "Number of MPI processes writing: 2048 (16 nodes each with 128 processes)"
NODES, PROCESSES_PER_NODE, PROCESSES = 16, 128, 2048
# "Amount of data written: 65,536 MiB (32 MiB per process)"
MIB_PER_PROCESS, MIB = 32, 65_536

# The two lines of the section on environment variables, quoted as the shell needs it.
SSF_ENVIRONMENT = {
    "export FI_OFI_RXM_SAR_LIMIT=64K",
    "export MPICH_MPIIO_HINTS='*:cray_cb_write_lock_mode=2,*:cray_cb_nodes_multiplier=4'",
}
# "Stripe size: ... default (1 MiB)", with "-c 1" and "-c -1".
ONE_STRIPE = "stripe -c 1 -S 1024k"
ALL_STRIPES = "stripe -c -1 -S 1024k"
# "/mnt/lustre/a2fs-..." of each of the five file systems that it calls NVMe-based or HDD-based.
FILE_SYSTEMS = ("work1", "work2", "work3", "work4", "nvme")

# The daily check of each pattern as recommended, by the golden file that holds its script.
CASES = {
    "archer2-fpp-nvme.sh": ("job", "BenchioFPP", "gnu-ofi"),
    "archer2-ssf-nvme.sh": ("job", "BenchioSSF", "gnu-ucx"),
    "archer2-build-ucx.sh": ("build", "BuildBenchio", "gnu-ucx"),
}


@pytest.fixture(scope="module")
def archer2(tmp_path_factory):
    """The job and build scripts of a dry run of the daily checks."""
    site = copy_suite(tmp_path_factory.mktemp("archer2"), *BENCHIO)
    printed = dry_run(site, "--system=archer2:compute", "-t", "daily")
    # On each of 5 file systems: file per process, whose recommended settings are the defaults,
    # and the shared file with the recommended and with the default settings. And two builds.
    # Of the environment: all file systems looked at, and each judged; and for each of the two
    # programming environments the compiler, MPI and its nodes.
    assert f"Ran {17 + 1 + 5 + 2 * 3}/29 test case(s)" in printed
    return {kind: scripts(site, kind) for kind in ("job", "build")}


def jobs(archer2, check, environment):
    """The job scripts of one check in one environment; there is one for each file system."""
    found = [text for path, text in archer2["job"].items() if check in path and environment in path]
    assert len(found) == 5
    for name in FILE_SYSTEMS:
        assert len([text for text in found if f"file_system=/mnt/lustre/a2fs-{name}/" in text]) == 1
    return found


@pytest.mark.parametrize("golden", CASES)
def test_scripts_are_as_stored(archer2, golden, request):
    kind, check, environment = CASES[golden]
    matching = [
        text
        for path, text in archer2[kind].items()
        if check in path and environment in path and (kind == "build" or "a2fs-nvme" in text)
    ]
    assert len(matching) == 1
    hold_against_golden(matching[0], golden, request.config.getoption("--store-golden"))


def test_every_job_has_the_published_nodes_processes_and_volume(archer2):
    assert NODES * PROCESSES_PER_NODE == PROCESSES
    assert PROCESSES * MIB_PER_PROCESS == MIB
    assert len(archer2["job"]) == 15
    for text in archer2["job"].values():
        asked = directives(text, "#SBATCH")
        assert f"--nodes={NODES}" in asked
        assert f"--ntasks-per-node={PROCESSES_PER_NODE}" in asked
        assert f"--ntasks={PROCESSES}" in asked
        (launch,) = (line.split() for line in text.splitlines() if line.startswith("srun "))
        n1, n2, n3, kind = launch[launch.index("local") - 3 : launch.index("local") + 1]
        assert kind == "local"  # the sizes are of each process, of 8-byte elements
        assert int(n1) * int(n2) * int(n3) * 8 == MIB_PER_PROCESS * 2**20


def test_file_per_process_is_as_recommended(archer2):
    for text in jobs(archer2, "BenchioFPP", "gnu-ofi"):
        # "Stripe count: single stripe (-c 1)"; "Stripe size: ... default"
        assert [line for line in text.splitlines() if line.startswith("stripe")] == [ONE_STRIPE]
        # "Environment variables: none required"
        assert [line for line in text.splitlines() if line.startswith("export ")] == [
            "export LC_ALL=C",  # of every job
            "export OMP_NUM_THREADS=1",
            "export MPICH_ENV_DISPLAY=1",  # which only makes the library print its settings
            'export SLURM_WAIT="${SLURM_WAIT-60}"',  # after the first process has ended
        ]
        # "MPI transport protocol: OFI", which is the default one
        assert "module load PrgEnv-gnu" in text.splitlines()
        assert "ucx" not in text
        assert " local proc fsync " in text


def test_the_shared_file_is_as_recommended(archer2):
    for text in jobs(archer2, "BenchioSSF", "gnu-ucx"):
        # "Stripe count: Maximum striping (-c -1)"; "Stripe size: ... default"
        assert [line for line in text.splitlines() if line.startswith("stripe")] == [ALL_STRIPES]
        assert set(text.splitlines()) >= SSF_ENVIRONMENT
        # "MPI transport protocol: UCX"
        assert "module load PrgEnv-gnu craype-network-ucx cray-mpich-ucx" in text.splitlines()
        assert " local mpiio fsync " in text


def test_the_shared_file_with_default_settings_is_daily_too(archer2):
    for text in jobs(archer2, "BenchioSSF", "gnu-ofi"):
        # "A default stripe count of 1", the "default OFI version", and no variables set
        assert [line for line in text.splitlines() if line.startswith("stripe")] == [ONE_STRIPE]
        assert not SSF_ENVIRONMENT & set(text.splitlines())
        assert "module load PrgEnv-gnu" in text.splitlines()
