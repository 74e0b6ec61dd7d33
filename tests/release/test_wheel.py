"""The wheel: complete, small, the same in each build, and enough to measure without a clone."""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from setup import manual

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.machine  # it builds, as `make check` does not

#: The files that the build reads, and others that a clone may have.
SOURCES = (
    "checks",
    "config",
    "packaging",
    "setup",
    "src",
    "setup.cfg",
    "pyproject.toml",
    "MANIFEST.in",
    "CHANGELOG.md",
    "CITATION.cff",
    "README.md",
    "SECURITY.md",
    "LICENSE",
)
LEFT = shutil.ignore_patterns("__pycache__", "*.egg-info", "alerts")
#: Files that a clone gets when somebody works in it.
USED = (
    "config/__pycache__/site.cpython-311.pyc",
    "config/alerts/here.jsonl",
    "config/notify.yaml",
    "config/store.yaml",
    "src/iobands/__pycache__/version.cpython-311.pyc",
)
MOST_BYTES = 1_500_000


def run(*command: object, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def build(source: Path, kind: str, out: Path) -> Path:
    run(
        *(sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", out, source),
        cwd=out.parent,
        SOURCE_DATE_EPOCH="1763856000",
    )
    return next(out.iterdir())


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=LEFT)
        else:
            shutil.copy2(ROOT / name, place / name)
    for name in USED:
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("secret")
    return place


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(source, "wheel", tmp_path_factory.mktemp("wheel") / "out")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment in which Python finds the wheel's package instead of this clone's."""
    place = tmp_path_factory.mktemp("installed")
    zipfile.ZipFile(wheel).extractall(place)
    return {"PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_it_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < MOST_BYTES


def test_it_has_the_package_and_the_suite(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        path.relative_to(ROOT / "src")
        for path in (ROOT / "src" / "iobands").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    wanted |= {
        Path("iobands", "suite", path.relative_to(ROOT))
        for name in ("checks", "config/systems", "config/bands", "src/benchio")
        for path in (ROOT / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.name[0] != "."
    }
    assert {str(path) for path in wanted} - inside == set()
    assert {"iobands/suite/setup/system-packages", "iobands_program.py"} <= inside
    pages = {f"{page.file}.1" for page in manual.pages()} | {"benchio.1"}
    assert pages == {Path(name).name for name in inside if "/share/man/man1/" in name}
    strange = ("iobands/suite/tests", "__pycache__", *(Path(name).name for name in USED))
    assert [name for name in inside if any(each in name for each in strange)] == []


def test_the_source_distribution_builds_the_same_wheel(
    wheel: Path, source: Path, tmp_path: Path
) -> None:
    packed = build(source, "sdist", tmp_path / "sdist")
    shutil.unpack_archive(packed, tmp_path, filter="data")
    unpacked = tmp_path / packed.name.removesuffix(".tar.gz")
    # docs/howto/install.md refers to these files
    recipes = [
        path.relative_to(ROOT)
        for path in (ROOT / "packaging").rglob("*")
        if path.suffix in {".eb", ".py", ".yaml"}
    ]
    assert len(recipes) == 11
    others = (*recipes, "CHANGELOG.md", "CITATION.cff", "SECURITY.md")
    assert [name for name in others if not (unpacked / name).is_file()] == []
    again = build(unpacked, "wheel", tmp_path / "again")
    assert digest(again) == digest(wheel)


def test_a_site_needs_no_clone(installed: Mapping[str, str], tmp_path: Path) -> None:
    iobands = (sys.executable, "-m", "iobands")
    run(*iobands, "init", "site", "--from", "local", cwd=tmp_path, **installed)
    site = tmp_path / "site"
    where = "import iobands.measure.reframe as s, pathlib; print(s.suite_of(pathlib.Path('/no')))"
    suite = run(sys.executable, "-c", where, cwd=site, **installed).strip()
    assert suite == f"{installed['PYTHONPATH']}/iobands/suite"
    pytest.importorskip("reframe")
    listed = run(*iobands, "reframe", "--", "-t", "smoke", "-l", cwd=site, **installed)
    assert "- BenchioFPP %" in listed
    assert f"{suite}/config/site.py" in listed  # ReFrame names its configuration
    assert not (site / "checks").exists()
    # a ReFrame that would take another iobands than the checks'
    done = subprocess.run(
        [Path(sys.executable).with_name("reframe"), "-C", f"{suite}/config/site.py", "-l"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "IOBANDS_SITE": str(site)},
        cwd=site,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert (
        f"ReFrame finds {ROOT}/src/iobands before {suite[:-6]}: unset" in done.stdout + done.stderr
    )
