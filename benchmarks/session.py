"""The cost of a small session in addition to its I/O; `make bench` writes docs/session-costs.md."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import typer

from benchmarks.reading.__main__ import cost, facts, write_page

_ROOT: Final = Path(__file__).resolve().parents[1]
_REFRAME: Final = Path(sys.executable).with_name("reframe")
_ARRAY: Final = ("128", "128", "1024", "local")  # 128 MiB a rank, as in the system `local`
_LAYERS: Final = ("proc", "mpiio")


def main(
    tries: Annotated[int, typer.Option(help="How often each is measured.", min=1)] = 3,
    directory: Annotated[Path, typer.Option(help="Where it is measured.")] = _ROOT / "build",
    report: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
) -> None:
    """Measure sessions of the daily checks on this machine, and what verification takes."""
    directory.mkdir(parents=True, exist_ok=True)
    before = os.getloadavg()[0]
    with TemporaryDirectory(prefix="bench-session-", dir=directory) as scratch:
        root = Path(scratch)
        for name in ("config", "checks"):
            shutil.copytree(_ROOT / name, root / name)
        (root / "src").symlink_to(_ROOT / "src")
        sessions = [_session(root) for _ in range(tries)]
        iobands = [sys.executable, "-m", "iobands"]
        perflogs = ["--perflogs", str(root / "perflogs")]
        listing = [str(_REFRAME), "-C", str(root / "config/site.py"), "-c", str(root / "checks")]
        beside = {
            "listing": cost([*listing, "-R", "-t", "daily", "-l"], tries).wall,
            "digest": cost([*iobands, "status", *perflogs], tries).wall,
            "page": cost([*iobands, "report", str(root / "page"), *perflogs], tries).wall,
        }
        verify = {layer: _verification(layer, tries) for layer in _LAYERS}
    seconds = {name: median(each[name] for each in sessions) for name in sessions[0]}
    print(seconds, beside, verify)
    if report is not None:
        values = {"seconds": seconds, "beside": beside, "verify": verify, "tries": tries}
        values["first"] = sessions[0]["build"]
        write_page(report, "session-costs.md", facts=facts(before), **values)


def _session(root: Path) -> Mapping[str, float]:
    """Run a session, and return where the time went according to its record."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "iobands", "run", "--site", str(root)],
        env={**os.environ, "PYTHONPATH": str(_ROOT / "src")},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    whole = time.perf_counter() - start
    said = json.loads((root / "perflogs" / "last-session.json").read_bytes())
    return {"whole": whole, "number": _measured(root), **said["seconds"]}


def _measured(root: Path) -> int:
    """Return how many checks of the newest session measured."""
    newest = max(
        (root / "perflogs").glob("*/reports/*.json"), key=lambda path: path.stat().st_mtime
    )
    (run, *_) = json.loads(newest.read_bytes())["runs"]
    return sum(bool(case.get("seconds_io")) for case in run["testcases"])


def _verification(layer: str, tries: int) -> float:
    """Return the share of benchio's time that `--verify` takes, by the fastest of several runs.

    Measured in memory: on a disk, the time of the I/O varies more than that.
    """
    with TemporaryDirectory(prefix="bench-session-", dir="/dev/shm") as scratch:
        runs = [
            [_program(Path(scratch), layer, option) for _ in range(2 * tries)]
            for option in ("--read", "--verify")
        ]
    return 1 - min(runs[0]) / min(runs[1])


def _program(directory: Path, layer: str, *options: str) -> float:
    command: Sequence[str] = [
        *("mpirun", "-np", "2", "--oversubscribe"),
        *(str(_ROOT / "build/benchio/benchio"), *_ARRAY, layer, "fsync"),
        *(f"--directory={directory}", "--repeats=3", *options),
    ]
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    start = time.perf_counter()
    subprocess.run(command, env={**os.environ, **allowed}, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    typer.run(main)
