"""Ten years of a daily and an hourly site: the second part of `make soak`.

Each site has a healthy series, one that fell for good after a year and was acknowledged, and one
that fell and was never answered. Every half year, or every month with `--every=1`, each command is
run under a fake clock (libfaketime). None may end with a traceback or as UNKNOWN, and neither
memory nor files may pile up.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from tests.factory import COLUMNS, line
from tests.soak.__main__ import BEGIN, NOISE, Soak, ready, with_clock

FILE_SYSTEMS = ("well", "known", "fallen")
#: The systems, and the interval of the runs of each.
SYSTEMS = {"daily": timedelta(days=1), "hourly": timedelta(hours=1)}
FALLS = BEGIN + timedelta(days=365)
MONTH = timedelta(days=30)
#: The commands, and the exit statuses that each may have: 2 while something is degraded.
READING = {0, 1, 2}
COMMANDS: dict[tuple[str, ...], set[int]] = {
    ("status", "--all"): READING,
    ("status", "--format", "json"): READING,
    ("explain", "daily fallen fpp write_bw"): {0, 3},  # 3: by another name in the first year
    ("explain", "all fallen"): {0, 3},
    ("alerts",): {0},
    ("advise",): {0, 3},
    ("table",): {0},
    ("compare", "file_system"): {0},
    ("targets",): {0},
    ("calibrate", "--dry-run"): {0},
    ("export", "--format", "parquet", "--output", "exported"): {0},
    ("export", "--format", "openmetrics", "--output", "metrics"): {0},
    ("report", "pages"): {0},
    ("acknowledge", "fallen", "--all", "--reason", "r", "--dry-run"): {0, 3},
    ("resolve", "fallen", "--all", "--force", "--reason", "r", "--dry-run"): {0, 3},
    ("rebaseline", "fallen", "--all", "--reason", "r", "--dry-run"): {0, 3},
    ("discard", "well", "--all", "--reason", "r", "--dry-run"): {0},
    ("retire", "well", "--all", "--reason", "r", "--dry-run"): {0},
    ("undo", "known", "--all", "--reason", "r", "--dry-run"): {0, 3},
}


@dataclass
class Decade(Soak):
    """The sites; `files` counts the files besides perflogs and pages, month by month."""

    files: list[int] = field(default_factory=list)

    def month(self, number: int, *, is_looked_at: bool) -> None:
        """Add a month of samples, and run each command if it `is_looked_at`."""
        begin = BEGIN + number * MONTH
        for system, apart in SYSTEMS.items():
            when, lines = begin, []
            while when < begin + MONTH:
                lines += [self.sample(system, name, when) for name in FILE_SYSTEMS]
                when += apart
            log = self.log.parents[2] / system / "local" / self.log.name
            log.parent.mkdir(parents=True, exist_ok=True)
            if not log.exists():
                log.write_text(f"{COLUMNS}\n", encoding="utf-8")
            with log.open("a", encoding="utf-8") as stream:
                stream.writelines(lines)
        if not is_looked_at:
            return
        os.environ["FAKETIME"] = (begin + MONTH).strftime("@%Y-%m-%d %H:%M:%S")
        if begin > FALLS:
            self.command(("acknowledge", "known", "--all", "--reason", "a disk"), {0})
        for arguments, allowed in COMMANDS.items():
            self.command(arguments, allowed)
        made = (self.root / "config", self.root / "perflogs", self.root / "tmp")
        self.files.append(sum(len(files) for place in made for *_, files in os.walk(place)))

    def sample(self, system: str, name: str, when: datetime) -> str:
        """Return the line of a sample."""
        level = 0.6 if name != "well" and when >= FALLS else 1.0
        fields = {"system": system, "file_system": name, "display_name": f"BenchioFPP {name}"}
        value = round(1.5 * level * self.draw.lognormvariate(0, NOISE), 6)
        moment = when.isoformat()
        return f"{line(**fields, perf_value=value, job_completion_time=moment)}\n"

    def command(self, arguments: tuple[str, ...], allowed: set[int]) -> None:
        """Run a command; its exit status must be one of `allowed`, and it prints no traceback."""
        status, said = self.iobands(*arguments)
        output = (self.root / "output").read_text(encoding="utf-8", errors="replace")
        if status not in allowed or "Traceback" in output:
            self.wrong.append(f"{' '.join(arguments)}: exit status {status}: {said}")


def main() -> int:
    """Run the months, and print what came of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.decade", description=__doc__)
    parser.add_argument("--months", type=int, default=122, help="simulated months [122]")
    parser.add_argument("--every", type=int, default=6, help="months between commands [6]")
    chosen = parser.parse_args()
    with_clock()
    ready()
    directory = Path(tempfile.mkdtemp(prefix="iobands-decade-"))
    began = time.monotonic()
    try:
        decade = Decade(directory / "site", 1, 0)
        shutil.rmtree(decade.log.parents[1])
        for number in range(chosen.months):
            decade.month(number, is_looked_at=(number + 1) % chosen.every == 0)
    finally:
        shutil.rmtree(directory)
    print(f"{chosen.months} months in {time.monotonic() - began:.0f} s")
    print(f"memory of a command: at most {max(decade.memory) / 1024:.0f} MiB")
    print(f"files: {decade.files[0]} at first, {decade.files[-1]} in the end")
    # each system gets a log of actions and one of alerts, each with its lock file
    if decade.files[-1] > decade.files[0] + 4 * len(SYSTEMS):
        decade.wrong.append("files pile up")
    for text in decade.wrong[:20]:
        print(f"WRONG: {text}")
    print("all is right" if not decade.wrong else f"{len(decade.wrong)} are wrong")
    return 1 if decade.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
