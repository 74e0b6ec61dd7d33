"""A year of nights in some minutes: the first part of `make soak`.

Each night is a real `iobands run` under a fake clock (libfaketime). A program in place of ReFrame
leaves generated results, and on some nights a fault of the fault table happens, drawn with a fixed
seed. Each exit status must follow from the faults. Nothing may pile up: directories, locks,
processes, memory, logs; and no sample may be lost.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import random
import select
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from importlib import import_module
from pathlib import Path

from iobands.measure import lock
from iobands.measure.lock import LOCK_NAME
from iobands.measure.run_directories import STAGES
from tests.factory import COLUMNS, ROW, case, line

BEGIN = datetime(2025, 1, 1, 5, 30, tzinfo=timezone.utc)
FILE_SYSTEMS = ("home", "scratch", "fast")
RATES = {"write_bw": 1.5, "read_bw": 2.5}
NOISE = 0.04  # of the logarithm of a rate
#: Nights of a year in which the rates are down by 40 %, and how long an alert may take.
DROP = range(200, 245)
DELAY = 14
#: For each fault, the exit status of its night, and whether the night's samples are recorded.
FAULTS = {
    "perflog line lost": (0, True),
    "perflog line torn": (0, True),
    "bytes flipped in an old line": (0, True),
    "ReFrame fails": (3, False),
    "session killed": (-signal.SIGKILL, False),
    "session hangs": (3, False),
    "run report cut off": (3, True),
    "checks fail": (3, False),
}
#: Faults after which `iobands run` only prints why it failed, and no digest.
NO_DIGEST = {"ReFrame fails"}


# No repeats: for these a session would wait some minutes of real time.
_SITE_FILE = """
system = {"partitions": [{"name": "local", "extras": {"suspects": {"per_day": 0}}}]}
"""


@dataclass
class Soak:
    """A site, and the errors found so far."""

    root: Path
    seed: int
    odds: float
    samples: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    memory: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the site."""
        self.draw = random.Random(self.seed)
        for name in ("config", "checks", "bin", "tmp", "perflogs/here/local"):
            (self.root / name).mkdir(parents=True)
        (self.root / "config" / "systems").mkdir(exist_ok=True)
        (self.root / "config" / "systems" / "here.py").write_text(_SITE_FILE)
        (self.root / "config" / "site.py").write_text("site_configuration = {}\n")
        program = self.root / "bin" / "reframe"
        source = Path(__file__).with_name("reframe.py").read_text(encoding="utf-8")
        program.write_text(f"#!{sys.executable} -IS\n{source}", encoding="utf-8")
        program.chmod(0o755)
        self.log.write_text(f"{COLUMNS}\n", encoding="utf-8")

    @property
    def log(self) -> Path:
        """The perflog."""
        return self.root / "perflogs" / "here" / "local" / "BenchioFPP.log"

    def night(self, number: int) -> None:
        """Measure once, with or without a fault, and check the outcome."""
        fault = None
        if number > 1 and self.draw.random() < self.odds:
            fault = self.draw.choice(list(FAULTS))
            self.faults[fault] += 1
        when = BEGIN + timedelta(days=number)
        self.plan(number, when, fault)
        os.environ["FAKETIME"] = when.strftime("@%Y-%m-%d %H:%M:%S")
        status, said = self.iobands("run", "--limit", "2s" if fault == "session hangs" else "1h")
        expected, recorded = FAULTS.get(fault or "", (0, True))
        self.samples += recorded * len(FILE_SYSTEMS) * len(RATES)
        right = {expected} if fault in NO_DIGEST else self.allowed(number, expected)
        if status not in right:
            self.wrong.append(
                f"night {number} ({fault}): exit status {status}, not {right}: {said}"
            )
        if expected >= 0:
            self.look(number)
        self.age(when)

    def plan(self, number: int, when: datetime, fault: str | None) -> None:
        """Plan the results that the night's session leaves."""
        level = 0.6 if number in DROP else 1.0
        lines, cases = [], []
        moment = when.replace(microsecond=0).isoformat()
        for system in FILE_SYSTEMS:
            name = f"BenchioFPP %file_system={system}"
            failed = fault == "checks fail"
            common = {"display_name": name, "file_system": system, "jobid": str(number)}
            values = {}
            for variable, rate in RATES.items():
                value = round(rate * level * self.draw.lognormvariate(0, NOISE), 6)
                fields = {**common, "perf_var": variable, "perf_value": value}
                if failed:
                    fields |= {"result": "fail", "fail_phase": "sanity", "perf_value": "null"}
                lines.append(line(**fields, job_completion_time=moment))
                values[f"here:local:{variable}"] = [value, 0, None, None, "GiB/s", "pass"]
            failure = {"result": "fail", "fail_phase": "sanity", "fail_reason": "a test"}
            passed = {"result": "pass", "fail_phase": None, "fail_reason": None}
            cases.append(
                case(
                    **common,
                    **(failure if failed else {**passed, "perfvalues": values}),
                    job_completion_time=moment,
                    job_completion_time_unix=when.timestamp(),
                )
            )
        if fault == "perflog line lost":
            lines.pop()
        text = "".join(f"{each}\n" for each in lines)
        if fault == "perflog line torn":
            text = text[:-30]
        if fault == "bytes flipped in an old line":
            self.flip()
        content = json.dumps(
            {
                "session_info": {
                    "cmdline": "reframe -r",
                    "version": ROW["version"],
                    "time_end_unix": when.timestamp() + 1,
                    "num_cases": len(cases),
                    "num_failures": len(cases) if fault == "checks fail" else 0,
                },
                "runs": [{"num_cases": len(cases), "testcases": cases}],
                "restored_cases": [],
            }
        )
        plan = {
            "fault": fault,
            "names": [each["display_name"].replace(" ", "_") for each in cases],
            "session": when.strftime("%Y%m%dT%H%M%SZ-1"),
            "perflogs": {str(self.log): text},
            "report": str(self.root / f"perflogs/here/reports/run-report-{number}.json"),
            "content": content[:-90] if fault == "run report cut off" else content,
            "status": 1 if fault == "checks fail" else 0,
        }
        (self.root / "plan.json").write_text(json.dumps(plan), encoding="utf-8")

    def flip(self) -> None:
        """Damage one old line: its sample is rejected from now on."""
        lines = self.log.read_text(encoding="utf-8").splitlines(keepends=True)
        good = [number for number, text in enumerate(lines) if text.count("|GiB/s|") == 1]
        number = self.draw.choice(good[:-10] or good)
        if "|null|GiB/s|" not in lines[number]:
            self.samples -= 1
        lines[number] = lines[number].replace("|GiB/s|", "|G\x01B/s|")
        self.log.write_text("".join(lines), encoding="utf-8")

    def allowed(self, number: int, expected: int) -> set[int]:
        """Return the valid exit statuses: 1 also for a `watch` by chance, 2 only for the drop."""
        if expected < 0:
            return {expected}
        if number in DROP:
            late = number - DROP.start >= DELAY
            return {2} if late else {expected, 2, *((1,) if expected == 0 else ())}
        recovering = 0 <= number - DROP.stop < 2 * DELAY
        return {expected, *((2,) if recovering else ()), *((1,) if expected == 0 else ())}

    def iobands(self, *arguments: str) -> tuple[int, str]:
        """Run a command as cron does, in a process forked from this one; note its memory."""
        output = self.root / "output"
        child = os.fork()
        if child == 0:
            self.become(arguments, output)
        _, status, used = os.wait4(child, 0)
        self.memory.append(used.ru_maxrss)
        said = output.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return os.waitstatus_to_exitcode(status), " / ".join([*said[:1], *said[-1:]])

    def become(self, arguments: tuple[str, ...], output: Path) -> None:
        """Run the command in this forked process, and end it."""
        from iobands.commands.main import entry  # noqa: PLC0415 (the parent must not call it)

        lock.time_there = lambda _: time.time()  # libfaketime dates no files

        status = 70
        try:
            stream = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for number in (1, 2):
                os.dup2(stream, number)
            os.chdir(self.root)
            os.environ["PATH"] = f"{self.root / 'bin'}:{os.environ['PATH']}"
            os.environ["TMPDIR"] = str(self.root / "tmp")
            sys.argv = ["iobands", *arguments]
            entry()
        except SystemExit as ended:
            sys.stdout.flush()
            status = int(ended.code or 0)
        finally:
            os._exit(status)

    def look(self, number: int) -> None:
        """Look for what the ended session has left behind."""
        left = [path.name for path in (self.root / "tmp").iterdir()]
        if (self.root / "perflogs" / LOCK_NAME).exists():
            left.append("the lock")
        left += [f"process {pid}" for pid in processes(self.root / "bin" / "reframe")]
        known = {"here", "iobands-run.log", "last-session.json", "plan.json"}
        left += [p.name for p in (self.root / "perflogs").iterdir() if p.name not in known]
        stages = len(list((self.root / "stage").iterdir()))
        if stages > STAGES + 2:
            left.append(f"{stages} stage directories")
        log = (self.root / "perflogs" / "iobands-run.log").stat().st_size
        if log > 2**16:
            left.append(f"a log of {log} bytes")
        if left:
            self.wrong.append(f"night {number}: left behind: {', '.join(left)}")

    def age(self, when: datetime) -> None:
        """Date new files to this night, which libfaketime does not do."""
        reports = (self.root / "perflogs").glob("*/reports/*")
        for path in [self.root / "stage", *(self.root / "stage").glob("*"), *reports]:
            if path.exists() and path.stat().st_mtime > BEGIN.timestamp() + 400 * 86_400:
                os.utime(path, (when.timestamp(), when.timestamp()))

    def end(self) -> None:
        """Compare the samples with those measured, and the memory with that at the start."""
        status, _ = self.iobands("status", "--format", "json")
        text = (self.root / "output").read_text(encoding="utf-8")
        found = json.loads(text)["series"] if text.startswith("{") else []
        runs = sum(series["status"]["runs"] for series in found)
        if runs != self.samples:
            self.wrong.append(f"{runs} samples, not {self.samples} (exit status {status})")
        quarter = max(1, len(self.memory) // 4)
        first, last = (
            statistics.median(part) for part in (self.memory[:quarter], self.memory[-quarter:])
        )
        if last > 1.5 * first:
            self.wrong.append(f"memory grew from {first:.0f} KiB to {last:.0f} KiB")


def processes(program: Path) -> list[int]:
    """Return the processes that run a program."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):  # noqa: PTH207 (quicker)
        try:
            if os.fsencode(program) in Path(path).read_bytes():
                found.append(int(path.split("/")[2]))
        except OSError:
            continue
    return found


def clock_library() -> str | None:
    """Return the library that injects the clock, if it is installed."""
    places = ("usr/lib/*", "usr/lib64", "usr/lib")
    found = (path for place in places for path in Path("/").glob(f"{place}/faketime/*MT.so.1"))
    return next(map(str, found), None)


def with_clock() -> None:
    """Restart this program with libfaketime, unless it is loaded; FAKETIME then sets the time."""
    if "FAKETIME" in os.environ:
        return
    library = clock_library()
    if library is None:
        sys.exit("soak: libfaketime is not installed; setup/system-packages test installs it")
    clock = {
        "LD_PRELOAD": library,
        "FAKETIME": BEGIN.strftime("@%Y-%m-%d %H:%M:%S"),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
        "TZ": "UTC",
    }
    os.execve(sys.executable, sys.orig_argv, {**os.environ, **clock})  # noqa: S606


def ready() -> None:
    """Prepare this process for the commands that are forked from it."""
    # with libfaketime 0.9.10, clock_nanosleep, which time.sleep calls, sometimes fails
    time.sleep = lambda seconds: select.select([], [], [], seconds)
    for name in ("commands.run", "commands.status", "snapshot.stored", "source.perflog"):
        import_module(f"iobands.{name}")


def main() -> int:
    """Run the nights, and print what came of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="begin no night later [10]")
    parser.add_argument("--nights", type=int, default=365, help="nights at most [365]")
    parser.add_argument("--odds", type=float, default=0.15, help="of a fault in a night [0.15]")
    parser.add_argument("--seed", type=int, default=1, help="of the faults and rates [1]")
    chosen = parser.parse_args()
    with_clock()
    ready()
    directory = Path(tempfile.mkdtemp(prefix="iobands-soak-"))
    began = time.monotonic()
    try:
        soak = Soak(directory / "site", chosen.seed, chosen.odds)
        nights = 0
        while nights < chosen.nights and time.monotonic() - began < 60 * chosen.minutes:
            soak.night(nights)
            nights += 1
        soak.end()
    finally:
        for pid in processes(directory / "site" / "bin" / "reframe"):
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(directory)
    print(f"{nights} nights in {time.monotonic() - began:.0f} s, {soak.samples} samples")
    print(
        "faults:", ", ".join(f"{n} × {name}" for name, n in sorted(soak.faults.items())) or "none"
    )
    print(f"memory of a command: at most {max(soak.memory) / 1024:.0f} MiB")
    for text in soak.wrong:
        print(f"WRONG: {text}")
    print("all is right" if not soak.wrong else f"{len(soak.wrong)} are wrong")
    return 1 if soak.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
