"""The version is the same wherever a release writes it."""

import os
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from importlib.metadata import requires
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from iobands import __version__
from iobands.measure import inside
from setup import release
from setup.release import PLACES
from tests.site_copy import ROOT

#: The recipes of Spack, by package.
RECIPES = {
    path.parent.name: path.read_text("utf-8")
    for path in (ROOT / "packaging/spack/spack_repo/iobands/packages").glob("*/package.py")
}


@pytest.mark.parametrize("name", PLACES)
def test_a_place_has_the_version(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    (found,) = re.finditer(PLACES[name], text, re.MULTILINE)
    before, after = found.groups()
    assert found[0].removeprefix(before).removesuffix(after) == __version__


def test_a_release_leaves_the_version_of_benchio() -> None:
    # a new version of benchio would begin every series anew, and close its alert
    assert [name for name in PLACES if "src/benchio" in name] == []


def test_no_range_ends_beyond_that_of_reframe() -> None:
    # pip 23.0 begins with the newest version, then tries older ones of all other packages for hours
    config = ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = (
        config["options"]["install_requires"] + config["options.extras_require"]["report"]
    ).split()
    ours = {each.name.lower(): each for each in map(Requirement, lines)}
    theirs = {each.name.lower(): each for each in map(Requirement, requires("reframe-hpc") or ())}
    shared = ours.keys() & theirs
    assert shared >= {"polars", "requests", "jsonschema", "jinja2"}
    for name in shared:
        (end,) = [each.version for each in ours[name].specifier if each.operator == "<"]
        newest = f"{int(end) - 1}.9999"
        assert theirs[name].specifier.contains(newest), f"{ours[name]}, but {theirs[name]}"


def test_the_recipes_have_the_ranges_of_setup_cfg() -> None:
    config = ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    report = config["options.extras_require"]["report"]
    for line in (config["options"]["install_requires"] + report).split():
        name, least, below = re.fullmatch(r"([\w-]+)>=([\d.]+)(?:,<([\d.]+))?", line).groups()
        # Spack's ranges include their end, and all versions that begin with it
        head, last = re.fullmatch(r"(.*?)(\d*)", below or "").groups()
        end = f"{head}{int(last) - 1}" if last else ""
        found = re.findall(rf'"py-{name.lower()}@([^"]+)"', RECIPES["iobands"])
        assert set(found) == {f"{least}:{end}"}, line


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_declares_each_dependency_by_itself(name: str) -> None:
    # `spack audit packages` refuses depends_on("one ^other")
    assert not re.findall(r"depends_on\(.*\^.*\)", RECIPES[name])


def test_a_release_packs_the_spack_recipes_with_the_checksum(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "packaging", tmp_path / "clone" / "packaging")
    dist = tmp_path / "dist"
    dist.mkdir()
    source = dist / f"iobands-{__version__}.tar.gz"
    source.write_bytes(b"the source distribution")
    release.recipes(tmp_path / "clone", dist)
    shutil.unpack_archive(dist / "spack.tar.gz", tmp_path, filter="data")
    for name in ("benchio", "iobands"):
        recipe = tmp_path / "spack" / "spack_repo" / "iobands" / "packages" / name / "package.py"
        line = f'version("{__version__}", sha256="{release.digest(source)}")'
        assert line in recipe.read_text("utf-8")


def test_the_tested_reframe_is_the_same_everywhere() -> None:
    wanted = (ROOT / "setup.cfg").read_text("utf-8")
    low, high = re.search(r"reframe-hpc>=(4\.\d+),<(4\.\d+)", wanted).groups()
    assert int(high[2:]) == int(low[2:]) + 1  # one minor version, as _VERSION says it
    assert f"{low}." == inside._VERSION
    assert f'"py-reframe-hpc@{low}"' in RECIPES["iobands"]
    assert f'version("{low}.' in RECIPES["py_reframe_hpc"]
    assert f"| ReFrame | {low}.0 to {low}." in (ROOT / "docs/stability.md").read_text("utf-8")


def test_no_package_of_the_tests_slows_each_start_of_reframe() -> None:
    # jsonschema imports it if it is installed, and compiling its grammar takes about a second
    package = "rfc3987_syntax"
    assert find_spec(package) is None, f"{package}: .venv/bin/pip uninstall rfc3987-syntax"


@pytest.mark.needs("PyPI")
def test_the_oldest_python_gets_every_package(tmp_path: Path) -> None:
    """No package may have dropped that Python in all releases of its range."""
    config = ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    (oldest,) = re.findall(r">=([\d.]+)", config["options"]["python_requires"])
    extras = config["options.extras_require"]
    lists = [config["options"]["install_requires"], *map(extras.get, ("checks", "report", "store"))]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps"),
            *("--ignore-installed", "--target", tmp_path, "--only-binary=:all:"),
            *("--python-version", oldest, *" ".join(lists).split()),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.needs("PyPI")
def test_an_absent_argument_is_not_taken_for_a_given_one(tmp_path: Path) -> None:
    """click 8.1 differs in this from later versions; Spack installs it with typer 0.20."""
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", tmp_path / "old")
    subprocess.run([*pip, "typer==0.20.1", "click==8.1.8"], check=True)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{tmp_path / 'old'}"}
    for words in (("init", tmp_path / "site"), ("run", "--suspects", "--site", tmp_path / "site")):
        command = (sys.executable, "-m", "iobands", *words)
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
