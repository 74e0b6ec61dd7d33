"""Why a program failed: one line of output, its own or its MPI library's.

Pure; knows how MPI libraries fail to start, which is before the program can say anything.
"""

import re

# The program's own words come first. Then those of the library that are nearest to the cause:
# UCX and the loader name it, Open MPI and MPICH above them only that they cannot go on.
_REASONS = [
    re.compile(r"^((?:benchio|iobands):.*)", re.MULTILINE),
    re.compile(r"(error while loading shared libraries: .*)"),
    re.compile(r"(UCX +ERROR .*)"),
    re.compile(r"(PML \w+ cannot be selected)"),
    re.compile(
        r"(A requested component was not found)(?:.*\n){1,12}?(Framework: .*\nComponent: .*)"
    ),
    # MPICH: the last line of the error stack is the innermost call.
    re.compile(
        r"Fatal error in \w*Init\w*: .*error stack:\n(?:(?!Abort)\w+\(\d+\)\.*:.*\n)*"
        r"(?!Abort)\w+\(\d+\)\.*: *(.*)"
    ),
    re.compile(r"(It looks like MPI_INIT failed.*?) for some reason"),
    # Slurm: of the job, or of the program alone, whose processes it ends when one has failed.
    re.compile(r"\*\*\* ((?:JOB|STEP) \S+ ON \S+ CANCELLED AT .*?) \*\*\*"),
    # Better than nothing, and all that is left where Open MPI's launcher loses its messages.
    re.compile(r"^(.*(?:error|fatal|cannot).*)", re.MULTILINE | re.IGNORECASE),
]


def reason_in(said: str) -> str | None:
    """The line that best explains the failure, if any does."""
    for pattern in _REASONS:
        found = pattern.search(said)
        if found:
            return " ".join(" ".join(found.groups()).split())
    return None
