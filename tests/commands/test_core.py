"""What works with each set of packages: the core alone measures and prints a digest."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from configparser import ConfigParser
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import iobands as package
from iobands.commands.cli import REPORT_MODULES
from iobands.commands.main import COMMANDS
from tests.commands.small_site import unknown
from tests.factory import line, write_perflog
from tests.left_behind import Ended
from tests.site_copy import ROOT

#: The packages whose import takes longest.
SLOW = {"matplotlib", "numpy", "pandas", "polars", "scipy"}

#: Commands that a login node runs on a healthy site that has been measured.
USED = (
    ["status", "--format", "json"],
    ["explain", "disk", "ucx"],
    ["targets"],
    ["alerts"],
    ["compare", "transport"],
    ["export", "--format", "csv"],
    ["export", "--format", "openmetrics", "--history"],
    ["export", "--format", "parquet", "--output", "parquet"],
)


def set_of(section: str, option: str) -> set[str]:
    """The distributions that setup.cfg lists under an option."""
    config = ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = config[section][option].strip().splitlines()
    return {canonicalize_name(Requirement(line).name) for line in lines}


def test_the_core_brings_at_most_eight_that_reframe_does_not() -> None:
    reframe = {
        canonicalize_name(Requirement(text).name)
        for text in importlib.metadata.requires("reframe-hpc") or []
    }
    assert set_of("options", "install_requires") - reframe == {
        "filelock",
        "msgspec",
        "numpy",
        "python-dateutil",
        "rich",
        "typer",
        "tzdata",
    }


def test_the_modules_of_a_report_are_those_of_its_set() -> None:
    names = importlib.metadata.packages_distributions()
    found = {canonicalize_name(names[module][0]) for module in REPORT_MODULES}
    assert found == set_of("options.extras_require", "report")


def imported(*arguments: str, cwd: Path) -> set[str]:
    """The packages of SLOW that a command imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "iobands", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return SLOW & set(re.findall(r"\| +(\w+)$", done.stderr, re.MULTILINE))


def test_the_help_imports_nothing_slow(tmp_path: Path) -> None:
    assert imported("--help", cwd=tmp_path) == set()


def test_the_digest_imports_nothing_of_a_report(healthy: Path) -> None:
    assert imported("status", cwd=healthy) == {"numpy", "polars"}


def needed_by(distribution: str) -> set[str]:
    """A distribution's own requirements without extras, and with each in turn."""
    found, left = set(), [distribution]
    while left:
        for text in importlib.metadata.requires(left.pop()) or []:
            need = Requirement(text)
            wanted = need.marker is None or need.marker.evaluate({"extra": ""})
            if wanted and canonicalize_name(need.name) not in found:
                found.add(canonicalize_name(need.name))
                left.append(need.name)
    return found


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a virtual environment with what the core needs, linked from this one."""
    root = tmp_path_factory.mktemp("core") / "venv"
    venv.create(root)
    (site,) = root.glob("lib/python*/site-packages")
    (site / "iobands").symlink_to(Path(package.__file__).parent)
    for name in needed_by("iobands"):
        tops = {Path(each.parts[0]) for each in importlib.metadata.files(name) or []}
        for top in tops - {Path(".."), Path("__pycache__")}:
            (site / top).symlink_to(importlib.metadata.distribution(name).locate_file(top))
    return root / "bin" / "python"


#: Calls the commands in its argument, and writes how each ended.
CALLS = """
import io, json, sys
from iobands.commands.main import entry
ended = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["iobands", *words]
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    try:
        entry()
    except SystemExit as end:
        status = end.code or 0
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    texts = [stream.buffer.getvalue().decode() for stream in (sys.stdout, sys.stderr)]
    ended.append([words, status, *texts])
print(json.dumps(ended), file=sys.__stdout__)
"""


@pytest.fixture
def light(core: Path, healthy: Path) -> Callable[..., list[Ended]]:
    """Commands of the core, called in a healthy site, one after the other in one process."""

    def call(*commands: Sequence[str]) -> list[Ended]:
        done = subprocess.run(
            [core, "-c", CALLS, json.dumps(commands)],
            cwd=healthy,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return [Ended(*each) for each in json.loads(done.stdout)]

    return call


def test_the_core_alone(core: Path, healthy: Path, light: Callable[..., list[Ended]]) -> None:
    script = f"import importlib.util as u; print([*filter(u.find_spec, {[*REPORT_MODULES]})])"
    found = subprocess.run([core, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n", "these are installed, so this would show nothing"
    now = datetime.now(timezone.utc)
    other = [
        line(job_completion_time=(now - timedelta(days=ago + 0.1)).isoformat(), transport="ucx")
        for ago in range(9, -1, -1)
    ]
    write_perflog(healthy / "perflogs", other, name="Other.log")
    digest, *used = light(["status"], *USED)
    assert digest.stdout.startswith("IOBANDS OK: no alerts; 2 series; ")
    for done in (digest, *used):
        assert (done.returncode, done.stderr) == (0, ""), done
    rows = {name: row for rows in COMMANDS.values() for name, row in rows.items()}
    modules = sorted({f"iobands.commands.{module}" for module, *_ in rows.values()})
    subprocess.run([core, "-c", f"import {', '.join(modules)}"], check=True)


def test_commands_without_their_packages_say_so_and_still_have_help_and_completion(
    core: Path, light: Callable[..., list[Ended]]
) -> None:
    of_report = (["report", "there"], ["demo", "there"], ["table"], ["advise"], ["calibrate"])
    for done in light(*of_report):
        said = unknown(done).stderr
        assert said.startswith(f"IOBANDS UNKNOWN: iobands {done.args[0]} needs ")
        assert "pip install 'iobands[report]'" in said
    for done in light(*([name, "--help"] for name, *_ in of_report)):
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"Usage: iobands {done.args[0]} ")
    for typed, wanted in (("iobands re", "report"), ("iobands report --pub", "--public")):
        asked = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
        completed = subprocess.run(
            [core, "-m", "iobands"],
            env={**os.environ, **asked, "_IOBANDS_COMPLETE": "complete_bash"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (completed.returncode, completed.stderr) == (0, "")
        assert wanted in completed.stdout.split()


def test_an_option_says_what_to_install_before_anything_is_done(
    light: Callable[..., list[Ended]], healthy: Path
) -> None:
    before = sorted(healthy.rglob("*"))
    for done in light(["run", "--report", "dashboard"], ["explain", "disk", "--figure", "one.svg"]):
        said = unknown(done).stderr
        assert "needs" in said
        assert "pip install 'iobands[report]'" in said
    assert sorted(healthy.rglob("*")) == before
