"""The same request in a site file becomes the right directives for each scheduler.

No scheduler is needed, as ReFrame writes scripts without it. The expected lines follow sbatch(1),
qsub(1B) and pbs_resources(7B) of PBS Professional, IBM's bsub and flux-batch(1). Only ReFrame's
backend for Flux needs Flux's Python module, and gets a stand-in.
"""

import json
import shutil
from pathlib import Path

import pytest

from tests.config.scripts import directives, dry_run, hold_against_golden, scripts
from tests.site_copy import BENCHIO, copy_suite

pytestmark = pytest.mark.machine

DATA = Path(__file__).parent / "data"
MARKS = {"slurmsite": "#SBATCH", "pbsprosite": "#PBS", "lsfsite": "#BSUB", "fluxsite": "#flux:"}

# 4 nodes × 64 processes for 90 minutes, alone on the nodes.
LARGE = {
    "slurmsite": {
        "--nodes=4",
        "--ntasks=256",
        "--ntasks-per-node=64",
        "--time=1:30:0",
        "--exclusive",
        "--account=budget",
        "--reservation=R7",
        "--signal=TERM@60",
        "--no-requeue",
    },
    "pbsprosite": {
        "-l select=4:mpiprocs=64:ncpus=64",
        "-l place=scatter:exclhost",
        "-l walltime=1:30:0",
        "-A budget",
        "-q R7",
        "-r n",
    },
    "lsfsite": {
        "-n 256",
        '-R "span[ptile=64]"',
        "-W 90",
        "-x",
        "-P budget",
        "-U R7",
        "-wa TERM -wt 1",
        "-rn",
    },
    "fluxsite": {
        "--nodes=4",
        "--nslots=256",
        "--time-limit=5400s",
        "--exclusive",
        "--bank=budget",
        "--signal=TERM@60",
    },
}
# 2 nodes × 8 processes for half an hour, which may share the nodes.
SMALL = {
    "slurmsite": {"--nodes=2", "--ntasks=16", "--ntasks-per-node=8", "--time=0:30:0"},
    "pbsprosite": {
        "-l select=2:mpiprocs=8:ncpus=8",
        "-l place=scatter",
        "-l walltime=0:30:0",
    },
    "lsfsite": {"-n 16", '-R "span[ptile=8]"', "-W 30"},
    "fluxsite": {"--nodes=2", "--nslots=16", "--time-limit=1800s"},
}
# Directives for exclusive nodes, or of another scheduler.
NOT_IN_SMALL = {
    "slurmsite": ("exclusive", "-l ", "-P ", "ptile"),
    "pbsprosite": ("excl", "--", "ptile", "-wa"),
    "lsfsite": ("-x", "--", "-nnodes", "select="),
    "fluxsite": ("excl", "-l ", "select="),
}


def _add_site(copy, name: str) -> None:
    for file in ("_batch.py", f"{name}.py"):
        shutil.copy(DATA / file, copy.root / "config" / "systems")


@pytest.fixture(scope="module", params=sorted(MARKS))
def site(request, tmp_path_factory):
    """The name of a site, and the scripts of its two scales."""
    copy = copy_suite(tmp_path_factory.mktemp(request.param), *BENCHIO)
    _add_site(copy, request.param)
    asked = {}
    if request.param == "fluxsite":
        shutil.copytree(DATA / "stand-in", copy.root / "stand-in")
    else:
        asked = {"IOBANDS_RESERVATION": "R7"}  # which Flux does not know by an option
    dry_run(copy, f"--system={request.param}", "-n", "BenchioFPP", **asked)
    found = list(scripts(copy, "job").values())
    # 16 MiB and 64 MiB a process: 128 × 128 × 128 and 128 × 128 × 512 elements of 8 bytes.
    (large,) = (text for text in found if " 128 128 128 local " in text)
    (small,) = (text for text in found if " 128 128 512 local " in text)
    return request.param, large, small


def test_what_the_site_says_is_asked_for(site):
    name, large, small = site
    assert LARGE[name] <= set(directives(large, MARKS[name]))
    assert SMALL[name] <= set(directives(small, MARKS[name]))
    for word in NOT_IN_SMALL[name]:
        assert not [line for line in directives(small, MARKS[name]) if word in line]


def test_scripts_are_as_stored(site, request):
    name, large, _ = site
    hold_against_golden(large, f"{name}.sh", request.config.getoption("--store-golden"))


def test_the_script_is_guarded_against_what_its_scheduler_does(site):
    name, large, _ = site
    lines = large.splitlines()
    assert "make_run_directory" in lines  # which traps TERM and INT
    # LSF sends USR2 at the time limit and Flux's broker HUP, where the others send TERM.
    assert ("trap 'exit 140' USR2" in lines) == (name == "lsfsite")
    assert ("trap 'exit 129' HUP" in lines) == (name == "fluxsite")
    # srun alone waits for processes for ever after one has ended.
    assert ('export SLURM_WAIT="${SLURM_WAIT-60}"' in lines) == (name == "slurmsite")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"SBATCH_ACCOUNT": "slurms"}, ["--account=slurms"]),
        ({"SBATCH_ACCOUNT": "slurms", "IOBANDS_ACCOUNT": "ours"}, ["--account=ours"]),
        (
            {"SBATCH_RESERVATION": "R8", "IOBANDS_QOS": "fast"},
            ["--account=budget", "--reservation=R8", "--qos=fast"],
        ),
    ],
)
def test_the_environment_comes_before_the_site_file(site_copy, environment, expected):
    _add_site(site_copy, "slurmsite")
    dry_run(site_copy, "--system=slurmsite", "-n", "BenchioFPP", **environment)
    for text in scripts(site_copy, "job").values():
        asked = [
            line
            for line in directives(text, "#SBATCH")
            if line.startswith(("--account", "--res", "--qos"))
        ]
        assert asked == expected


def test_an_empty_account_is_none(site_copy):
    # as the warning about a missing one says
    _add_site(site_copy, "slurmsite")
    path = site_copy.root / "config" / "systems" / "_batch.py"
    text = path.read_text("utf-8")
    path.write_text(text.replace('"account": "budget"', '"account": ""'), "utf-8")
    dry_run(site_copy, "--system=slurmsite", "-n", "BenchioFPP")
    for text in scripts(site_copy, "job").values():
        assert not [line for line in directives(text, "#SBATCH") if "account" in line]


def test_what_a_scheduler_does_not_have_is_reported(site_copy, monkeypatch):
    _add_site(site_copy, "pbsprosite")
    monkeypatch.setenv("IOBANDS_QOS", "fast")
    run = site_copy.reframe("--dry-run", "--system=pbsprosite", "-n", "BenchioFPP")
    assert run.returncode == 1
    assert "qos 'fast' is requested, but the scheduler" in run.stdout + run.stderr
    assert "'pbspro'" in run.stdout + run.stderr


def test_slurm_alone_is_asked_for_a_node(site_copy):
    _add_site(site_copy, "slurmsite")
    pinned = ("-n", "BenchioFPP", "-S", "BenchioFPP.node=nid0007.cluster")
    dry_run(site_copy, "--system=slurmsite", *pinned)
    for text in scripts(site_copy, "job").values():
        asked = [line for line in directives(text, "#SBATCH") if line.startswith("--node")]
        assert sorted(asked)[0] == "--nodelist=nid0007"
    # a run of its own, which no schedule has
    listed = site_copy.reframe("--system=slurmsite", "--describe", *pinned)
    about = {
        (each["case"], *sorted(each["tags"])) for each in json.loads(listed.stdout) if "gib" in each
    }
    assert about == {("node nid0007.cluster", "benchio", "io")}
    _add_site(site_copy, "pbsprosite")
    other = site_copy.reframe("--dry-run", "--system=pbsprosite", *pinned)
    assert "scheduler 'pbspro' cannot be asked for a node" in other.stdout
    bad = site_copy.reframe(
        "--dry-run", "--system=slurmsite", *pinned[:3], "BenchioFPP.node=a[1-9]"
    )
    assert "'a[1-9]' is not the name of a node" in bad.stdout


def test_flux_starts_the_program_on_all_nodes(site):
    name, large, small = site
    if name == "fluxsite":
        assert "\nflux run --nodes=4 --ntasks=256 ROOT/stage/" in large
        assert "\nflux run --nodes=2 --ntasks=16 ROOT/stage/" in small
    else:
        assert "flux" not in large
