"""What may happen to a run: no rate, the reason, nothing left, and the next run is right.

Each fault strikes on a file system of its own, so that one session has them all.
"""

import os
import shutil
import subprocess

import pytest

from tests.checks.lfs_captures import captured
from tests.site_copy import BENCHIO, copy_suite

#: By the file system: the fault, what is expected, and what mpirun does in place of a launch.
FAULTS = {
    "killed": ("job is killed (SIGKILL)", "no rate; nothing left", "kill -KILL $PPID"),
    "cut": ("result file is cut off", "no rate", '"$real" "$@"; truncate -s -9 result.jsonl'),
    "old": (
        "result file of an older schema",
        "no rate; both schemas",
        '"$real" "$@"; sed -i s,benchio/.\\",benchio/1\\", result.jsonl',
    ),
    "striped": ("stripe not as asked", "no rate; both stripe counts", '"$real" "$@"'),
}

MPIRUN = """\
#!/bin/sh
real={real}
[ ! -e {lifted} ] || exec "$real" "$@"
case "$*" in
{faults}
esac
exec "$real" "$@"
"""

#: Answers as Lustre 2.17 did; while the fault is there, of a run's files with one stripe.
LFS = """\
#!/bin/sh
case "$*" in
"osts "*) cat {answers}/osts ;;
"df "*) cat {answers}/df ;;
"check osts") cat {answers}/check ;;
"setstripe "* | "getstripe -p "*) ;;
"getstripe -c "*) echo 4 ;;
"getstripe "*/all-targets) cat {answers}/four ;;
"getstripe "*) if [ -e {lifted} ]; then cat {answers}/four; else cat {answers}/one; fi ;;
*) exit 1 ;;
esac
"""


def file_system(name, path):
    path.mkdir()
    settings = {"path": str(path), "type": "posix", "medium": "disk"}
    if name != "striped":
        return settings
    df = ["df", "--output=fstype", path]
    (kind,) = subprocess.run(df, capture_output=True, text=True, check=True).stdout.split()[1:]
    return {**settings, "type": "lustre", "mounted_as": kind, "stripe_counts": [4]}


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    """The disks; status and cases of a session with the faults, and what it left; and the next."""
    root, disks = tmp_path_factory.mktemp("programs"), tmp_path_factory.mktemp("disks")
    lifted = root / "lifted"
    strikes = [f"*{disks}/{name}/*) {strike}; exit ;;" for name, (_, _, strike) in FAULTS.items()]
    scripts = {
        "mpirun": MPIRUN.format(
            real=shutil.which("mpirun"), lifted=lifted, faults="\n".join(strikes)
        ),
        "lfs": LFS.format(answers=root, lifted=lifted),
    }
    (root / "bin").mkdir()
    for name, script in scripts.items():
        (root / "bin" / name).write_text(script, encoding="utf-8")
        (root / "bin" / name).chmod(0o755)
    for name, command in (
        ("osts", "lfs osts /mnt/lustre"),
        ("df", "lfs df /mnt/lustre"),
        ("check", "lfs check osts"),
        ("one", "lfs getstripe /mnt/lustre/dc1/f"),
        ("four", "lfs getstripe /mnt/lustre/dc4S1mi2/f"),
    ):
        (root / name).write_text(captured(command)[0], encoding="utf-8")
    site = copy_suite(tmp_path_factory.mktemp("site"), *BENCHIO)
    site.add_local_system(
        "faulty",
        {name: file_system(name, disks / name) for name in FAULTS},
        {"nodes": 1, "tasks_per_node": 1, "mib_per_task": 1},
    )
    found = []
    for _ in range(2):
        run = site.reframe(
            *("--system=faulty", "-r", "--exec-policy=serial", "-n", "BenchioSerial"),
            env={**os.environ, "PATH": f"{root / 'bin'}:{os.environ['PATH']}"},
        )
        cases = {
            case["file_system"]: case
            for case in site.test_cases("faulty")
            if case["display_name"].startswith("BenchioSerial")
        }
        left = {name: list((disks / name).iterdir()) for name in FAULTS}
        found.append((run.returncode, cases, left))
        lifted.touch()
    return found


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.fault("checks", fault, expected))
        for name, (fault, expected, _) in FAULTS.items()
    ],
)
def test_it_is_no_sample_and_the_next_run_is(sessions, observed, name):
    (status, cases, left), (next_status, next_cases, next_left) = sessions
    case, again = cases[name], next_cases[name]
    assert (status, case["result"], case["fail_phase"]) == (1, "fail", "sanity"), case["not_run"]
    assert {figures[0] for figures in case["perfvalues"].values()} <= {None}
    assert (left[name], next_left[name]) == ([], [])
    observed(
        message=case["fail_reason"],
        exit_status=status,
        left=left[name],
        next_run=(next_status, again["result"], len(again["perfvalues"])) == (0, "pass", 2),
    )
