"""One measured step, in a process of its own so that its memory is its own: prints JSON."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def peak() -> int:
    """Return the most memory that this process had, in bytes."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def main(what: str, directory: Path) -> None:
    """Do `what` with the perflogs in `directory`; imports are outside the clock."""
    if what == "write":
        from benchmarks.reading.perflogs import write_perflogs  # noqa: PLC0415

        start = time.perf_counter()
        rows = write_perflogs(directory, int(sys.argv[3]))
    elif what == "append":
        from benchmarks.reading.perflogs import append_day  # noqa: PLC0415

        start = time.perf_counter()
        rows = append_day(directory, int(sys.argv[3]))
    elif what == "pandas":
        import pandas as pd  # noqa: PLC0415

        start = time.perf_counter()
        logs = sorted(directory.glob("*/*/*.log"))
        rows = len(pd.concat([pd.read_csv(log, sep="|") for log in logs], ignore_index=True))
    else:
        import pandas as pd  # noqa: PLC0415 (which reading imports when it is needed)

        from iobands.readers.perflog import read_perflogs  # noqa: PLC0415

        start = time.perf_counter()
        rows = len(read_perflogs(directory).samples)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "rows": rows, "peak": peak()}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
