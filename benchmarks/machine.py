"""The machine and the programs that a table was measured with."""

from __future__ import annotations

import os
import platform
import re
import shutil
from pathlib import Path
from typing import Final

from benchmarks.errors import BenchmarkError
from benchmarks.launch import run, run_ranks
from benchmarks.workload import GIB, Place

# What a benchio may be linked with, by the names of the shared libraries.
_LIBRARIES: Final = ("mpi", "hdf5", "netcdf", "pnetcdf", "adios2", "gfortran")


def describe(program: Path, places: list[Place]) -> dict[str, str]:
    """Return the facts of the machine and the programs, by name."""
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    facts = {
        "Processor": f"{processor()}, {os.cpu_count()} cores",
        "Memory": f"{pages * page / GIB:.1f} GiB",
        "Kernel": f"{platform.system()} {platform.release()}",
    }
    for place in places:
        facts[f"File system, {place.name}"] = file_system(place.directory)
    facts["MPI"] = first_line(["mpirun", "--version"])
    facts["benchio"] = first_line([program, "--version"])
    facts["Libraries of benchio"] = ", ".join(libraries(run(["ldd", program])))
    if shutil.which("ior"):
        facts["IOR"] = _ior_version()
        facts["Libraries of IOR"] = ", ".join(libraries(run(["ldd", shutil.which("ior")])))
    if shutil.which("fio"):
        facts["fio"] = first_line(["fio", "--version"])
    facts["Load before the start"] = load()
    return facts


def load() -> str:
    """Return how many processes ran or waited for a core or a disk in the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def first_line(command: list[object]) -> str:
    """Return the first line that a command prints, or `unknown`."""
    try:
        lines = run(command).strip().splitlines()
    except BenchmarkError:
        lines = []
    return lines[0] if lines else "unknown"


def libraries(listing: str) -> list[str]:
    """Return the libraries listed by `ldd` that matter here, by file name."""
    found = re.findall(r"^\s*lib(\S+) => (/\S+)", listing, flags=re.MULTILINE)
    return [
        Path(path).resolve().name
        for name, path in found
        if re.match(rf"({'|'.join(_LIBRARIES)})(_\w+)?\.so", name)
    ]


def file_system(directory: Path) -> str:
    """Return the type and the mount options of the file system of a directory."""
    mounts = run(["findmnt", "--noheadings", "--output", "FSTYPE,OPTIONS", "-T", directory])
    # Of several file systems mounted on top of one another, the last one is visible.
    return " ".join(mounts.strip().splitlines()[-1].split())


def processor() -> str:
    """Return the name of the processor."""
    names = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return names[1].strip() if names else platform.machine()


def _ior_version() -> str:
    found = re.search(r"IOR-(\S+?):", run_ranks(1, ["ior", "-a", "DUMMY", "-w"]))
    return found[1] if found else "unknown"
