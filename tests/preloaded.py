"""Libraries that change the system calls of a process by LD_PRELOAD."""

import subprocess
from pathlib import Path


def preloaded(name: str, directory: Path) -> dict[str, str]:
    """Compile a C file of tests/programs below `directory`; return the variable that loads it."""
    library, source = directory / f"{name}.so", Path(__file__).parent / "programs" / f"{name}.c"
    warnings = ("-Wall", "-Wextra", "-Werror")
    subprocess.run(["mpicc", *warnings, "-shared", "-fPIC", "-o", library, source], check=True)
    return {"LD_PRELOAD": str(library)}
