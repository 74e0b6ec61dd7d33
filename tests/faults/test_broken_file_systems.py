"""Runs and file systems that fail: a clear reason, no rate, nothing left behind.

One ReFrame session runs the checks on file systems that are broken in different ways, or on which
something happens to the run; another one follows when all faults have been lifted.
"""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.stand_ins import FAULTS, StandIns, lustre
from tests.site_copy import BENCHIO, copy_suite

pytestmark = pytest.mark.needs("mounts")

FILE_SYSTEMS = {
    "healthy": {},
    "absent": {},
    "readonly": {},
    "small": {},
    "inodes": {},
    "scarce": {},
    "guarded": {"min_free_gib": 1},
    "open": {},
    **{name: {} for name in FAULTS},
}

MOUNTS = {
    "readonly": "size=16m,ro",
    "small": "size=4m",
    "inodes": "size=64m,nr_inodes=4",  # its root and three more, too few for four files
    "scarce": "size=64m,nr_inodes=5",  # its root and four files, but not their directory
    "guarded": "size=64m",
}

NODE = os.uname().nodename

# The fault, and why the check of a file system is skipped, according to the probe on a node.
UNFIT = {
    "absent": ("directory missing", f"not there on {NODE}: No such file or directory"),
    "readonly": ("read-only file system", f"not writable on {NODE}: Read-only file system"),
    "small": ("file system full", "full: 0.00391 GiB are free, 0.00781 are needed"),
    "inodes": ("no inode left", "out of inodes: 3 are free, 4 are needed"),
    "guarded": ("too little would be left free", "full: 0.0625 GiB are free, 1.01 are needed"),
    "open": (
        "directory that others may write, with a link planted in it",
        "other users may write there and the directory is not sticky",
    ),
}

# The message of the job script if a file system became so after the probe.
REFUSALS = {
    "absent": "no directory can be made there: No such file or directory\n",
    "readonly": "no directory can be made there: Read-only file system\n",
    "small": "0.00391 GiB are free; this run needs 0.00781 GiB",
    "guarded": "0.0625 GiB are free; this run needs 1.01 GiB: it writes 0.00781",
}


@dataclass(frozen=True)
class Session:
    """A session on all the file systems, and what it left on those that exist."""

    rows: list[dict[str, str]]
    status: int
    refusals: dict[str, str]
    left: dict[str, list[Path]]
    cases: list[dict]
    #: The session after the faults were lifted.
    next_status: int
    next_cases: list[dict]

    def case(self, check: str, file_system: str, cases: list[dict] | None = None) -> dict:
        """The test case of a check on a file system."""
        (case,) = [
            case
            for case in cases or self.cases
            if case["display_name"].startswith(check) and case["file_system"] == file_system
        ]
        return case


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    file_systems = tmp_path_factory.mktemp("file_systems")
    stand_ins = StandIns(tmp_path_factory.mktemp("stand_ins"), file_systems)
    there = [name for name in FILE_SYSTEMS if name != "absent"]
    for name in there:
        (file_systems / name).mkdir()
    settings = {**FILE_SYSTEMS, "striped": lustre(file_systems)}
    site = copy_suite(tmp_path_factory.mktemp("site"), *BENCHIO)
    site.add_local_system(
        "broken",
        {
            name: {"path": str(file_systems / name), "type": "posix", "medium": "disk", **more}
            for name, more in settings.items()
        },
        {"nodes": 1, "tasks_per_node": 4, "mib_per_task": 2},
    )
    (file_systems / "open").chmod(0o777)
    victim = file_systems / "victim"
    victim.write_text("mine", encoding="utf-8")
    (file_systems / "open" / "proc000000.dat").symlink_to(victim)
    try:
        for name, options in MOUNTS.items():
            mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", file_systems / name]
            subprocess.run(mount, check=True)
        selected = ["--system=broken", "-n", "BenchioFPP|EnvFileSystem"]
        site.reframe("--dry-run", *selected)
        refusals = {name: said_by_script(site, file_systems / name) for name in REFUSALS}
        command = ["-r", "--exec-policy=serial", *selected]
        run = site.reframe(*command, env=stand_ins.environment)
        cases, rows = site.test_cases("broken"), site.rows("broken")
        left = {
            name: [path for path in (file_systems / name).iterdir() if not path.is_symlink()]
            for name in there
        }
        assert victim.read_text(encoding="utf-8") == "mine"
    finally:
        for name in MOUNTS:
            subprocess.run(["umount", file_systems / name], check=False)
    (file_systems / "absent").mkdir()
    (file_systems / "open").chmod(0o1777)
    stand_ins.lift()
    lifted = site.reframe(*command, env=stand_ins.environment)
    return Session(
        rows, run.returncode, refusals, left, cases, lifted.returncode, site.test_cases("broken")
    )


def said_by_script(site, file_system):
    """Run the job script of a dry run in spite of the failed probe, and return its message."""
    (script,) = [
        path
        for path in (site.root / "stage").rglob("rfm_job.sh")
        if f"file_system={file_system}\n" in path.read_text(encoding="utf-8")
    ]
    done = subprocess.run(
        ["bash", script], cwd=script.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    return done.stderr


def test_the_healthy_one_is_measured(session):
    assert session.status == 1
    assert session.case("BenchioFPP", "healthy")["result"] == "pass"
    assert session.case("EnvFileSystem", "healthy")["result"] == "pass"
    rows = [row for row in session.rows if row["file_system"] == "healthy"]
    # The dry run also left rows, but without values.
    rows = [row for row in rows if row["tool"] == "benchio" and row["perf_value"] != "null"]
    assert sorted(row["perf_var"] for row in rows) == ["read_bw", "write_bw"]
    assert all(float(row["perf_value"]) > 0 for row in rows)


@pytest.mark.parametrize(
    "file_system",
    [
        pytest.param(
            name, marks=pytest.mark.fault("checks", fault, "unfit, and why; not measured; no rate")
        )
        for name, (fault, _) in UNFIT.items()
    ],
)
def test_a_broken_one_is_reported_and_its_check_is_skipped(session, observed, file_system):
    examined = session.case("EnvFileSystem", file_system)
    _, reason = UNFIT[file_system]
    assert (examined["result"], examined["fail_phase"]) == ("fail", "sanity")
    assert reason in examined["fail_reason"]
    skipped = session.case("BenchioFPP", file_system)
    assert (skipped["result"], reason in skipped["not_run"]) == ("skip", True)
    measured = session.case("BenchioFPP", file_system, session.next_cases)
    observed(
        message=f"{file_system}: {skipped['not_run']}",
        exit_status=session.status,
        left=session.left.get(file_system, ()),
        next_run=(session.next_status, measured["result"]) == (0, "pass"),
    )


@pytest.mark.fault("checks", "out of inodes in the middle of a run", "no rate, and why")
def test_one_that_breaks_meanwhile_fails_with_its_reason(session, observed):
    assert session.case("EnvFileSystem", "scarce")["result"] == "pass"
    case = session.case("BenchioFPP", "scarce")
    assert (case["result"], case["fail_phase"]) == ("fail", "sanity")
    assert "No space left on device" in case["fail_reason"]
    measured = session.case("BenchioFPP", "scarce", session.next_cases)
    observed(
        message=re.sub(r"\d(?= on host|\.dat)", "N", case["fail_reason"]),  # whichever is last
        exit_status=session.status,
        left=session.left["scarce"],
        next_run=(session.next_status, measured["result"]) == (0, "pass"),
    )


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.fault("checks", fault, expected))
        for name, (fault, expected, _) in FAULTS.items()
    ],
)
def test_what_happens_to_a_run_is_said_and_the_next_run_is_right(session, observed, name):
    case = session.case("BenchioFPP", name)
    assert (case["result"], case["fail_phase"]) == ("fail", "sanity"), case["not_run"]
    measured = session.case("BenchioFPP", name, session.next_cases)
    observed(
        message=case["fail_reason"],
        exit_status=session.status,
        left=session.left[name],
        next_run=(session.next_status, measured["result"]) == (0, "pass"),
    )


@pytest.mark.parametrize("file_system", REFUSALS)
def test_a_run_refuses_what_came_to_be_so_meanwhile(session, file_system):
    assert REFUSALS[file_system] in session.refusals[file_system]


@pytest.mark.parametrize("file_system", [*UNFIT, *FAULTS, "scarce"])
def test_a_broken_one_has_no_rate(session, file_system):
    rows = [row for row in session.rows if row["file_system"] == file_system]
    assert all(row["perf_value"] in {"null", "None", ""} for row in rows)


def test_nothing_is_left_behind(session):
    assert session.left == {name: [] for name in session.left}
