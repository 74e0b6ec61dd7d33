"""A Slurm that answers late, oddly or not at all; tests/programs/slurm stands in for it."""

import os
import shutil
import time
from pathlib import Path

import pytest

import iobands
from tests.waiting import wait_until

STAND_IN = Path(__file__).parents[1] / "programs" / "slurm"
ONE = ("run", "--system=queued", "--", "-n", "BenchioSerial")


@pytest.fixture
def site(site_copy, tmp_path_factory):
    """A site whose only partition uses the stand-in, and the stand-in's state directory."""
    disk, state = tmp_path_factory.mktemp("disk"), tmp_path_factory.mktemp("slurm")
    site_copy.add_local_system(
        "queued",
        {"disk": {"path": str(disk), "type": "posix", "medium": "disk"}},
        {"nodes": 1, "tasks_per_node": 1, "mib_per_task": 1},
    )
    path = site_copy.root / "config" / "systems" / "queued.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("'scheduler': 'local'", "'scheduler': 'slurm'"), encoding="utf-8")
    return site_copy, state


def environment(state):
    path = f"{STAND_IN}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "SLURM_STAND_IN": str(state)}


def run(site, state):
    """Run a session; return it and the seconds that it took."""
    began = time.monotonic()
    done = site.iobands(*ONE, env=environment(state))
    return done, time.monotonic() - began


@pytest.mark.fault(
    "session", "Slurm: files of a job appear 4 s after its end", "waited for; the sample is right"
)
def test_files_that_appear_late_are_waited_for(site, observed):
    site, state = site
    (state / "late").write_text("4", encoding="utf-8")
    done, took = run(site, state)
    assert done.returncode == 0, done.stdout + done.stderr
    assert took > 3 * 4  # of its two checks before and the program
    rows = [row for row in site.rows("queued") if row["perf_value"] != "null"]
    assert [row["perf_var"] for row in rows] == ["write_bw", "read_bw"]
    (state / "late").unlink()
    again, _ = run(site, state)
    observed(
        message=done.stdout,
        exit_status=done.returncode,
        left=[],
        next_run=again.returncode == 0,
    )


SAYS = {
    "`sacct` hangs": ("sleep 1000", "`sacct` does not answer"),
    "`sacct` says garbage": ("echo '|garbage'; echo x >&2", "`sacct` says '|garbage x'"),
}


@pytest.mark.fault("session", "Slurm: `sacct` hangs", "ended when asked; the reason")
@pytest.mark.fault("session", "Slurm: `sacct` says garbage", "ended when asked; the reason")
def test_a_silent_slurm_is_named_and_holds_nothing_up(site, observed):
    """This signal has the effect of a time limit; before Slurm is asked, no fault is known."""
    site, state = site
    seen = {}
    for name, (script, said) in SAYS.items():
        for left in ("number", "asked"):
            (state / left).unlink(missing_ok=True)
        asks = f"[ ! -e '{state}/number' ] || touch '{state}/asked'\n{script}\n"
        (state / "sacct").write_text(asks, encoding="utf-8")
        child = site.begin_iobands(*ONE, env=environment(state))
        wait_until((state / "asked").exists)
        asked = time.monotonic()
        child.terminate()
        _, complaint = child.communicate()
        assert time.monotonic() - asked < 120  # it was 180
        assert child.returncode == 3
        (line,) = [each for each in complaint.splitlines() if "Slurm does not say" in each]
        assert f" job 101 has ended: {said}" in line
        seen[f"Slurm: {name}"] = (line, child.returncode)
    (state / "sacct").unlink()
    again, _ = run(site, state)
    for name, (line, status) in seen.items():
        observed(name, message=line, exit_status=status, left=[], next_run=again.returncode == 0)


def test_a_job_of_which_slurm_says_nothing_is_given_up(site):
    """This happens long before the session's limit: the check fails, and says why."""
    site, state = site
    source = site.root / "src"
    source.unlink()
    shutil.copytree(Path(iobands.__file__).parent, source / "iobands")
    module = source / "iobands" / "measure" / "inside.py"
    text = module.read_text(encoding="utf-8")
    assert "_SILENCE: Final = 600 " in text
    module.write_text(text.replace("_SILENCE: Final = 600 ", "_SILENCE: Final = 4 "))
    (state / "sacct").write_text("echo 'JobID|State|ExitCode|End|NodeList'", encoding="utf-8")
    done, _ = run(site, state)
    assert done.returncode == 3
    digest = " ".join(done.stdout.split())
    assert "Slurm does not say whether job 1" in digest
    assert (state / "cancelled").read_text(encoding="utf-8").split()[0] == "101"


def test_a_slurm_without_accounting_is_named_at_once_with_what_to_write(site):
    """ReFrame would wait for ten minutes for each job, and twice."""
    site, state = site
    disabled = "echo Slurm accounting storage is disabled >&2; exit 1"
    (state / "sacct").write_text(disabled, encoding="utf-8")
    done, took = run(site, state)
    assert took < 300  # it was 600 for each job
    assert done.returncode == 3
    said = " ".join(done.stdout.split())
    assert "accounting storage is disabled': write 'squeue' as the scheduler" in said
    assert "run again" not in done.stderr
