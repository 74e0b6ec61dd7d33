"""Every site file can be loaded and listed and writes scripts, on a machine unlike that site."""

import os
import re
import runpy
import shlex
import socket
from pathlib import Path

import pytest

from tests.config.scripts import directives, dry_run, fill_in, scripts

SYSTEMS = Path(__file__).resolve().parents[2] / "config" / "systems"

# What each site's documentation says about jobs, and the number of checks on each partition:
# 4 patterns on every scale; the shared file takes every hint preset.
SITES = {
    "cirrus": {
        # 1 file system × 2 stripe counts × 1 transport × 2 scales
        "checks": 4 * 2 * 2,
        "asked": {
            "--account=z01",
            "--partition=standard",
            "--qos=standard",
            "--hint=nomultithread",
            "--distribution=block:block",
            "--exclusive",
            "--nodes=1",
            "--ntasks-per-node=288",
        },
        "paths": {"/work/z01/z01/shared"},
        "module": "module load PrgEnv-gnu",
        "program": "srun ",
    },
    "lumi": {
        # 2 file systems × 3 stripe counts × 2 scales; 3 presets for the shared file, and one that
        # makes one number of stripes
        "checks": (3 + 3) * 6 * 2 + 2 * 2,
        "asked": {
            "--account=z01",
            "--partition=standard",
            "--mem=0",
            "--nodes=1",
            "--ntasks-per-node=128",
        },
        "paths": {"/scratch/z01", "/flash/z01"},
        "module": "module load PrgEnv-gnu",
        "program": "srun ",
    },
    "mahti": {
        # scratch × 4 stripe counts × 3 scales, for the shared file × 4 presets and one that makes
        # 16 stripes; and 3 areas
        "checks": 3 * 12 + 4 * 12 + 3 + 4 * 3,
        "asked": {"--account=z01", "--partition=medium", "--nodes=1", "--ntasks-per-node=16"},
        "paths": {"/scratch/z01"},
        "module": "module load gcc openmpi",
        "program": "srun ",
    },
    "puhti": {
        "checks": 3 * 12 + 4 * 12 + 3 + 4 * 3,
        "asked": {
            "--account=z01",
            "--partition=large",
            "--mem-per-cpu=4000",
            "--nodes=1",
            "--ntasks-per-node=16",
        },
        "paths": {"/scratch/z01"},
        "module": "module load gcc openmpi",
        "program": "srun ",
    },
    "frontera": {
        # 3 stripe counts × 2 scales
        "checks": 4 * 6,
        "asked": {"--account=z01", "--partition=normal", "--nodes=3", "--ntasks-per-node=4"},
        "paths": {"/scratch1/z01"},
        "module": "module load gcc impi",
        "program": "ibrun ",
    },
    "lonestar6": {
        # one file system without stripes that users set, and one with 2
        "checks": 4 * 3,
        "asked": {"--account=z01", "--partition=normal", "--nodes=4", "--ntasks-per-node=4"},
        "paths": {"/scratch1/z01", "/work/z01"},
        "module": "module load gcc impi",
        "program": "ibrun ",
    },
    "example": {
        # (2 stripe counts + 1 file system without) × 2 transports × 2 scales; 2 presets for one
        "checks": (3 + 2) * 3 * 2 * 2,
        "asked": {"--account=z01", "--partition=standard", "--nodes=1", "--ntasks-per-node=8"},
        "paths": {"/scratch/z01", "/projects/z01"},
        "module": "module load gcc openmpi",
        "program": "srun ",
    },
}
ENVIRONMENT = {
    "IOBANDS_ACCOUNT": "z01",
    "IOBANDS_CIRRUS_SHARED": "z01/z01/shared",
    "SCRATCH": "/scratch1/z01",
    "WORK": "/work/z01",
}


@pytest.mark.parametrize("name", SITES)
def test_the_smoke_test_of_a_site_is_as_its_documentation_says(site_copy, name):
    expected = SITES[name]
    fill_in(site_copy)
    dry_run(site_copy, f"--system={name}", "-t", "smoke", **ENVIRONMENT)
    found = list(scripts(site_copy, "job").values())
    assert len(found) == len(expected["paths"])  # one small check on each file system
    paths = set()
    for text in found:
        assert expected["asked"] <= set(directives(text, "#SBATCH"))
        lines = text.splitlines()
        assert expected["module"] in lines
        assert [line for line in lines if line.startswith(expected["program"])]
        (path,) = shlex.split(re.search(r"^file_system=(.*)$", text, re.MULTILINE)[1])
        paths.add(path)
    assert paths == expected["paths"]


@pytest.mark.parametrize(
    ("how", "name", "mention"),
    [
        ("option", "example", "filesystem 'scratch': path is '/scratch/EDIT'"),
        ("variable", "cirrus", "filesystem 'work': path is '/work/EDIT-project-code'"),
    ],
)
def test_a_mark_that_was_left_stops_the_site_it_is_in(site_copy, how, name, mention):
    env = {k: v for k, v in os.environ.items() if not k.startswith("IOBANDS_")}
    if how == "variable":
        run = site_copy.reframe("-l", env={**env, "RFM_SYSTEM": f"{name}:compute"})
    else:
        run = site_copy.reframe(f"--system={name}", "-l", env=env)
    assert run.returncode != 0
    message = (run.stdout + run.stderr).strip()
    assert len(message.splitlines()) == 1
    assert f"config/systems/{name}.py: partition 'compute', {mention}" in message


def test_a_host_of_the_site_is_its_use(site_copy):
    path = site_copy.root / "config" / "systems" / "example.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("^no host is called so$", ".*"), encoding="utf-8")
    refused = site_copy.reframe("-l")
    assert "config/systems/example.py: partition 'compute'" in refused.stdout + refused.stderr
    # but not where it is another that is asked for
    other = site_copy.reframe("--sys=local", "-n", "EnvNodes", "-l")  # which ReFrame takes, too
    assert other.returncode == 0, other.stdout + other.stderr


def test_a_mistake_stops_its_own_system(site_copy):
    path = site_copy.root / "config" / "systems" / "lumi.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"medium": "nvme"', '"media": "nvme"'), encoding="utf-8")
    run = site_copy.reframe("--system=lumi", "-l")
    assert run.returncode != 0
    (line,) = (run.stdout + run.stderr).strip().splitlines()
    assert f"{path}: partition 'compute', filesystem 'lumi-f': media is" in line


def test_a_pipe_in_place_of_a_site_file_is_not_waited_for(site_copy):
    path = site_copy.root / "config" / "systems" / "lumi.py"
    path.unlink()
    os.mkfifo(path)
    run = site_copy.reframe("--system=lumi", "-l")
    assert run.returncode != 0
    (line,) = (run.stdout + run.stderr).strip().splitlines()
    assert f"{path}: cannot be read: is not a regular file" in line


def test_a_site_file_that_does_not_end_is_named(site_copy):
    systems = site_copy.root / "config" / "systems"
    os.mkfifo(systems / "pipe")
    # it looks at something that never answers, as a file system whose server is down
    systems.joinpath("lumi.py").write_text(f"open({str(systems / 'pipe')!r})", encoding="utf-8")
    quick = "import iobands.model.files\niobands.model.files._ANSWER = 1\nraise ValueError"
    systems.joinpath("a.py").write_text(quick, encoding="utf-8")  # it is read first
    run = site_copy.reframe("--system=lumi", "-l")
    assert run.returncode != 0
    why = "did not end within 1 s; it may wait for a file system that does not answer"
    assert f"ERROR: {systems}/lumi.py: {why}" in (run.stdout + run.stderr).splitlines()


def site_files():
    return sorted(path for path in SYSTEMS.glob("*.py") if not path.name.startswith("_"))


def test_every_site_is_held_against_its_documentation():
    tested_elsewhere = {"archer2", "local", "minisite"}
    assert {path.stem for path in site_files()} - tested_elsewhere == set(SITES)


def test_no_host_is_taken_for_the_example_or_for_two_sites():
    hosts = [socket.gethostname(), "localhost", "example", "login01", "mahti-login11", "uan01"]
    hosts += ["puhti-login12", "lumi-uan04", "ln03", "node1"]
    for host in hosts:
        matching = [
            path.stem
            for path in site_files()
            if path.stem not in {"local", "minisite"}
            and any(
                re.match(pattern, host) for pattern in runpy.run_path(path)["system"]["hostnames"]
            )
        ]
        assert len(matching) <= 1
        assert "example" not in matching
        assert matching == [] or host not in {"login01", "localhost", "node1"}


def test_what_is_not_public_is_marked():
    for name in ("cirrus", "lumi", "mahti", "puhti", "example"):
        text = (SYSTEMS / f"{name}.py").read_text(encoding="utf-8")
        assert "EDIT" in text
        assert name == "example" or "Sources: " in text
