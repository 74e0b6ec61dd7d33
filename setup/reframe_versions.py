"""Run a small session of a wheel with each ReFrame of the tested range that pip can install.

With the newest one, do it again with the lowest version of each package that setup.cfg allows.

python setup/reframe_versions.py WHEEL [VERSION...]
"""

from __future__ import annotations

import argparse
import configparser
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]


def main() -> None:
    """Try each version; end with status 1 if one fails, or if pip finds no version."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("versions", nargs="*")
    given = parser.parse_args()
    versions = given.versions or known_versions()
    if not versions:
        sys.exit("pip finds no ReFrame of the tested range")
    with tempfile.TemporaryDirectory(prefix="iobands-reframe-") as place:
        call(sys.executable, "-m", "venv", Path(place, "venv"), cwd=place)
        for version in versions:
            try_version(version, given.wheel.resolve(), Path(place))
        try_version(versions[-1], given.wheel.resolve(), Path(place), lowest())
    print(f"ReFrame: {', '.join(versions)}")


def settings() -> configparser.ConfigParser:
    """Return the settings in setup.cfg."""
    found = configparser.ConfigParser()
    found.read(ROOT / "setup.cfg")
    return found


def lowest() -> list[str]:
    """Return the requirements of the core, each package at its lowest allowed version."""
    wanted = settings()["options"]["install_requires"].split()
    return [re.sub(r">=([^,]+).*", r"==\1", each) for each in wanted]


def known_versions() -> list[str]:
    """Return the versions that pip finds in the range of setup.cfg, the oldest first."""
    wanted = settings()["options.extras_require"]["checks"].strip()
    low, high = (
        [*map(int, bound.split("."))]
        for bound in re.fullmatch(r"reframe-hpc>=([\d.]+),<([\d.]+)", wanted).groups()
    )
    said = call(sys.executable, "-m", "pip", "index", "versions", "reframe-hpc", cwd=ROOT)
    found = re.search(r"^Available versions: (.+)$", said, re.MULTILINE)[1].split(", ")
    numbers = sorted([*map(int, version.split("."))] for version in found)
    return [".".join(map(str, each)) for each in numbers if low <= each < high]


def try_version(version: str, wheel: Path, place: Path, others: Sequence[str] = ()) -> None:
    """Install a version, with `others`, and measure this machine with it.

    The session must prove rates, and ReFrame must load the whole suite.
    """
    programs, site = place / "venv" / "bin", place / f"{version}-{len(others)}"
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    call(programs / "python", *pip, wheel, f"reframe-hpc=={version}", *others, cwd=place)
    call(programs / "iobands", "init", site, "--from", "local", cwd=place)
    call(programs / "iobands", "run", "--tag", "smoke", cwd=site)
    said = json.loads(call(programs / "iobands", "status", "--format", "json", cwd=site))
    log = (site / "perflogs" / "iobands-run.log").read_text("utf-8")
    rows = [
        row
        for path in (site / "perflogs").rglob("Benchio*.log")
        for row in path.read_text("utf-8").splitlines()[1:]
    ]
    what = ", ".join([version, *others])
    print(f"ReFrame {what}: {len(rows)} rates, exit status {said['exit_status']}", flush=True)
    is_it = rows and all(f"|{version}|" in row for row in rows)
    if said["exit_status"] or not is_it or "skipping" in log or "is not tested" in log:
        sys.exit(f"ReFrame {version}: not a whole session of it\n{log}")


def call(*words: object, cwd: str | Path) -> str:
    """Run a program with the PATH of its environment first; end if it fails."""
    program = Path(str(words[0]))
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    command = [*map(str, words)]
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, "PATH": path}, stdout=subprocess.PIPE, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{done.stdout}\n{' '.join(command)} ended with {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    main()
