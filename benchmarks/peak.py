"""Runs a command and notes its peak memory: `peak.py DIRECTORY COMMAND ...`, below mpirun.

Needs only the standard library, since it runs once per rank and leaves a file with the bytes. No
command can show less than this script itself takes, about 10 MiB.
"""

import resource
import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Run the command of the arguments, and return its exit status."""
    directory, *command = sys.argv[1:]
    process = subprocess.Popen(command)
    status = process.wait()
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    Path(directory, f"{process.pid}.bytes").write_text(str(peak))
    return status


if __name__ == "__main__":
    sys.exit(main())
