"""Writes what a session on the day before the newest leaves: the alert log, the judge's memory."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

from benchmarks.reading.perflogs import END
from iobands.judge.memory import write_memory
from iobands.judge.site import judge
from iobands.source.action_log import ALERT_LOG, alert_log
from iobands.source.known import read_known


def main(perflogs: Path) -> None:
    """Judge the perflogs as of the day before the newest, and write the log and the memory."""
    none = Path("absent")
    known = read_known(perflogs, none, none, now=END - timedelta(days=1), as_of=True, keeps=True)
    judged = judge(known, with_power=False)
    write_memory(perflogs, judged.memory)
    for system, events in judged.news.items():
        ALERT_LOG.append(alert_log(perflogs, system), events)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
