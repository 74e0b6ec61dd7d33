"""benchio is built once: what is kept, how it is checked before use, and when it is built anew."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from checks.tools.benchio.build import first_error
from tests.site_copy import BENCHIO, ROOT, copy_suite

SCRIPT = ROOT / "checks" / "tools" / "benchio" / "kept.sh"

#: As ReFrame writes it: the first build copies a program, which stands for a compiler's work.
BUILD = """
source ./kept.sh
if ! take_kept_build build/benchio cc; then
mkdir -p build && cp /bin/{program} build/benchio
echo "-- HDF5: none that can be used" | tee output
echo built
keep_build build/benchio output
fi
"""


class Site:
    """A directory for builds, and sessions that want one."""

    def __init__(self, root: Path) -> None:
        self.root, self.builds, self.number = root, root / "builds", 0

    def session(self, given="source", program="true", purpose="scheduled", before="", **env):
        """Run a build script in a new stage directory; return its output and its program."""
        self.number += 1
        stage = self.root / f"stage{self.number}"
        stage.mkdir()
        shutil.copy(SCRIPT, stage)
        (stage / "kept-build.txt").write_text(f"{self.builds}\nsite.part.env\n{purpose}\n{given}\n")
        done = subprocess.run(
            ["bash", "-c", before + BUILD.format(program=program)],
            cwd=stage,
            env={"PATH": os.environ["PATH"], **env},
            capture_output=True,
            text=True,
            check=True,
        )
        assert "HDF5: none that can be used" in done.stdout  # what checks look for is kept, too
        return "built\n" in done.stdout, done.stderr, (stage / "build/benchio").read_bytes()

    @property
    def kept(self) -> list[Path]:
        return sorted(path for path in self.builds.iterdir() if path.is_dir())


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def test_the_second_session_uses_the_build_of_the_first(site):
    first, second = site.session(), site.session()
    assert first == (True, "", Path("/bin/true").read_bytes())
    assert second == (False, "", first[2])
    assert site.builds.stat().st_mode & 0o777 == 0o700
    (kept,) = site.kept
    assert (site.builds / "site.part.env").read_text().strip() == kept.name


@pytest.mark.parametrize(
    "change", [{"given": "other"}, {"CFLAGS": "-O3"}, {"LOADEDMODULES": "mpi/2"}]
)
def test_a_change_builds_anew_and_keeps_both(site, change):
    site.session()
    assert site.session(**change)[:2] == (True, "")
    assert site.session()[0] is False
    assert site.session(**change)[0] is False
    assert len(site.kept) == 2


def test_another_compiler_builds_anew(site):
    programs = site.root / "bin"
    programs.mkdir()
    compiler = programs / "cc"
    path = {"PATH": f"{programs}:{os.environ['PATH']}"}
    for version in ("one", "other"):
        compiler.write_text(f"#!/bin/sh\necho {version}\n")
        compiler.chmod(0o755)
        assert site.session(**path)[0] is True
    assert site.session(**path)[0] is False


@pytest.mark.parametrize("how", ["replaced", "damaged", "missing", "empty sums"])
def test_a_damaged_build_is_said_and_built_anew(site, how):
    site.session()
    (kept,) = site.kept
    if how == "replaced":
        shutil.copy("/bin/false", kept / "benchio")
    elif how == "damaged":
        content = bytearray((kept / "benchio").read_bytes())
        content[-1] ^= 1
        (kept / "benchio").write_bytes(content)
    elif how == "missing":
        (kept / "environment").unlink()
    else:
        shutil.copy("/bin/false", kept / "benchio")
        (kept / "SHA256SUMS").write_bytes(b"")
    built, said, program = site.session()
    assert built
    assert "was damaged or replaced" in said or "is damaged" in said
    assert program == Path("/bin/true").read_bytes()
    assert site.session() == (False, "", program)
    assert site.kept == [kept]


def test_other_libraries_build_anew(site):
    site.session()
    (kept,) = site.kept
    (kept / "libraries").write_text("/lib/libmpi.so 1 1\n")
    names = ["benchio", "build.out", "environment", "identity", "libraries"]
    sums = subprocess.run(["sha256sum", *names], cwd=kept, capture_output=True, check=True).stdout
    (kept / "SHA256SUMS").write_bytes(sums)
    built, said, _ = site.session()
    assert built
    assert "libraries of the kept benchio" in said


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o755])
def test_a_directory_that_others_may_enter_is_refused(site, mode):
    site.session()
    site.builds.chmod(mode)
    built, said, _ = site.session()
    assert built
    assert "must be your own directory, of mode 0700" in said


def test_a_link_in_place_of_the_directory_is_refused(site):
    (site.root / "elsewhere").mkdir(mode=0o700)
    site.builds.symlink_to(site.root / "elsewhere")
    assert site.session()[0] is True
    assert list((site.root / "elsewhere").iterdir()) == []


def test_without_a_place_to_keep_it_each_session_builds(site):
    site.builds = Path("/proc/builds")
    assert site.session()[0] is True
    assert site.session()[0] is True


def test_old_builds_are_pruned_and_the_one_in_use_is_not(site):
    site.session()
    site.session(given="other")
    old, month = site.kept, 31 * 86_400
    for each in old:
        os.utime(each, (each.stat().st_mtime - month,) * 2)
    site.session(given="third")  # removes the builds that nobody used
    assert len(site.kept) == 1
    (third,) = site.kept
    os.utime(third, (third.stat().st_mtime - month,) * 2)
    assert site.session(given="third")[0] is False
    assert site.kept == [third]


def test_what_a_person_tries_is_not_for_the_canary(site):
    site.session()
    (scheduled,) = site.kept
    site.session(given="tried", purpose="manual")
    assert (site.builds / "site.part.env").read_text().strip() == scheduled.name


def test_two_sessions_may_keep_the_same_build(site):
    """Both build, as when neither has kept it yet; the second finds the first one's in place."""
    site.session()
    (kept,) = site.kept
    stage = site.root / "late"
    stage.mkdir()
    shutil.copy(SCRIPT, stage)
    (stage / "kept-build.txt").write_text(f"{site.builds}\nsite.part.env\nscheduled\nsource\n")
    hidden = site.root / "hidden"
    script = f"""
    source ./kept.sh
    mv {kept} {hidden}
    ! take_kept_build build/benchio cc || exit 1
    mv {hidden} {kept}
    mkdir build && cp /bin/true build/benchio && touch output
    keep_build build/benchio output
    """
    environment = {"PATH": os.environ["PATH"]}  # as of the first: it decides on the key
    subprocess.run(["bash", "-c", script], cwd=stage, env=environment, check=True)
    assert site.kept == [kept]
    assert [path.name for path in site.builds.iterdir() if path.name.startswith(".")] == []


def test_the_modules_and_exports_of_the_build_are_kept(site):
    site.session(before="export MPI_SETTING='a b'", OTHER="of the session")
    (kept,) = site.kept
    assert (kept / "environment").read_bytes() == b"MPI_SETTING=a b\0"


def test_overrides_and_the_source_are_part_of_the_key(tmp_path):
    site = copy_suite(tmp_path / "tree", *BENCHIO)
    disk = {"path": str(tmp_path), "type": "posix", "medium": "disk"}
    scale = {"nodes": 1, "tasks_per_node": 1, "mib_per_task": 1}
    site.add_local_system("here", {"disk": disk}, scale)

    def key(*options):
        done = site.reframe("--system=here", "--dry-run", "-n", "BenchioFPP", *options)
        assert done.returncode == 0, done.stdout + done.stderr
        found = [path.read_text() for path in site.root.glob("stage/**/kept-build.txt")]
        shutil.rmtree(site.root / "stage")
        return found[0].splitlines()[3]

    as_always = key()
    assert key() == as_always
    assert key("-S", "BuildBenchio.prebuild_cmds=pwd") != as_always
    (site.root / "src").unlink()
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", site.root / "src", ignore=ignored)
    assert key() == as_always
    with (site.root / "src/benchio/app/benchio.f90").open("a") as source:
        source.write("! changed\n")
    assert key() != as_always


def test_what_a_build_lacks_is_named() -> None:
    lacking = "/site/stage/rfm_build.sh: line 19: cmake: command not found\n"
    assert first_error(lacking) == ["cmake: command not found"]
    assert first_error(f"CMake Error at CMakeLists.txt:3\n{lacking}") == [
        "CMake Error at CMakeLists.txt:3"
    ]
    assert first_error("Scanning\n") == []
    # CMake 3.18.4, and the first lines of a long message
    assert first_error(
        "CMake Error at CMakeLists.txt:1 (cmake_minimum_required):\n"
        "  CMake 3.20 or higher is required.  You are running version 3.18.4\n\n\n"
        "-- Configuring incomplete, errors occurred!\n"
    ) == ["CMake 3.20 or higher is required. You are running version 3.18.4"]
    assert first_error(
        "CMake Error at CMakeLists.txt:4 (project):\n"
        "  The CMAKE_Fortran_COMPILER:\n\n    ftn\n\n"
        "  is not a full path and was not found in the PATH.\n"
    ) == ["The CMAKE_Fortran_COMPILER: ftn is not a full path and was not found in the PATH."]
