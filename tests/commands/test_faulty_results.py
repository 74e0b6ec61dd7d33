"""Results that are damaged, odd or missing: nothing is lost in silence, and the rest counts."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.factory import COLUMNS, case, line, write_bands, write_perflog, write_report
from tests.fault_table import Observed, unwrapped
from tests.sites import levels

NIGHTS = 6


def at(days: float) -> str:
    """Return the time this many days ago."""
    return (datetime.now(timezone.utc) - timedelta(days=days)).isoformat(timespec="seconds")


def night(days: float, **fields: object) -> str:
    return line(**{"job_completion_time": at(days), "jobid": round(days * 100), **fields}) + "\n"


@dataclass(frozen=True)
class Results:
    """The results of a site with one series, whose newest sample is an hour old."""

    root: Path
    log: Path

    @property
    def reports(self) -> Path:
        return self.log.parents[1] / "reports"

    def report(self, content: bytes) -> None:
        self.reports.mkdir(exist_ok=True)
        (self.reports / "run-report-0.json").write_bytes(content)

    def add(self, *texts: str) -> None:
        with self.log.open("a", encoding="utf-8") as file:
            file.writelines(texts)

    def change(self, number: int, old: str, new: str) -> None:
        lines = self.log.read_text(encoding="utf-8").splitlines(keepends=True)
        assert old in lines[number]
        lines[number] = lines[number].replace(old, new)
        self.log.write_text("".join(lines), encoding="utf-8")


@pytest.fixture
def results(tmp_path: Path) -> Results:
    nights = [night(days).rstrip() for days in (*range(NIGHTS - 1, 0, -1), 0.04)]
    write_bands(tmp_path / "config" / "bands")
    return Results(tmp_path, write_perflog(tmp_path / "perflogs", nights))


@pytest.mark.fault(
    "perflogs", "the system of a line leads to a file elsewhere", "rejected; nothing runs it"
)
def test_a_system_that_is_a_path(results: Results, iobands: Command, observed: Observed) -> None:
    evil = results.root.parent / f"{results.root.name}-evil"
    evil.with_suffix(".py").write_text(f"open({str(evil)!r}, 'w')\n", encoding="utf-8")
    (results.root / "config" / "systems").mkdir()
    system = f"../../../{evil.name}"
    before = results.log.read_bytes()
    write_report(results.root / "perflogs", [case(system=system, partition="../..")])
    results.add(night(0.02, system=system), night(0.01, partition=".."))
    around = sorted(results.root.parent.glob(f"{evil.name}*"))
    for command in (
        ("report", "pages"),
        ("table",),
        ("export", "--format", "parquet", "--output", "tables"),
        ("calibrate", "--yes"),
        ("acknowledge", "disk fpp write_bw", "--reason", "x"),
        ("retire", "disk fpp write_bw", "--reason", "x"),
        ("clean",),
    ):
        done = iobands(*command)
        assert "Traceback" not in done.stderr, command
    assert sorted(results.root.parent.glob(f"{evil.name}*")) == around
    done = iobands("status")
    assert done.stdout.count("is not a name") == 2
    results.log.write_bytes(before)
    observed(
        message=next(each for each in done.stdout.splitlines() if "is not a name" in each),
        exit_status=done.returncode,
        left=[],
        next_run="Traceback" not in iobands("status").stderr,
    )


def truncate(results: Results) -> None:
    results.log.write_bytes(results.log.read_bytes()[:-40])


def glue(results: Results) -> None:
    # a torn line, followed by that of the next run
    torn = results.log.read_bytes()
    results.log.write_bytes(torn[:-60] + night(0.02).encode())


def interleave(results: Results) -> None:
    text = night(0.02)
    results.add(text[:50], text, text[50:])


def rotate(results: Results) -> None:
    results.log.rename(results.log.with_name(f"{results.log.name}.h0"))
    results.log.write_text(f"{COLUMNS}\n{night(0.02)}", encoding="utf-8")


def copy(results: Results) -> None:
    results.log.with_name("BenchioFPP.log.h1").write_bytes(results.log.read_bytes())


def reorder(results: Results) -> None:
    header, *lines = results.log.read_text(encoding="utf-8").splitlines(keepends=True)
    results.log.write_text("".join([header, *reversed(lines)]), encoding="utf-8")


def other_zone(results: Results) -> None:
    *_, newest = results.log.read_text(encoding="utf-8").splitlines()
    moment = newest.split("|")[0]
    there = datetime.fromisoformat(moment).astimezone(timezone(timedelta(hours=9)))
    results.add(newest.replace(moment, there.isoformat()) + "\n")


def clocks_back(results: Results) -> None:
    # two runs at 02:30 of the same night, before and after the clocks went back
    first = datetime.now(timezone(timedelta(hours=2))) - timedelta(hours=0.9)
    second = first.replace(tzinfo=timezone(timedelta(hours=1)))
    for number, when in enumerate((first, second)):
        results.add(line(job_completion_time=when.isoformat(), jobid=number) + "\n")


def gap(results: Results) -> None:
    old = [night(days) for days in (405, 404, 403)]
    header, *lines = results.log.read_text(encoding="utf-8").splitlines(keepends=True)
    results.log.write_text("".join([header, *old, lines[-1]]), encoding="utf-8")


def change_columns(results: Results) -> None:
    results.add(f"more|{COLUMNS}\n", f"x|{night(0.02)}")


def lose_columns(results: Results) -> None:
    results.log.with_name("Old.log").write_text("job_completion_time|perf_value\n1|2\n")


def binary(results: Results) -> None:
    results.log.with_name("Binary.log").write_bytes(bytes(range(256)) * 40)


def in_place(make: Callable[[Path], object]) -> Callable[[Results], object]:
    return lambda results: make(results.log.with_name("Odd.log"))


def deep(results: Results) -> None:
    results.report(b"[" * 200_000)


def lost_sample(results: Results) -> None:
    nights = [night(days) for days in range(15, 5, -1)]
    results.log.write_text("".join([f"{COLUMNS}\n", *nights]), encoding="utf-8")


def long_drop(results: Results) -> None:
    (results.root / "config" / "bands" / "here.yaml").unlink()  # wider than the learned band
    rates = levels((100, 1), (600, 0.6))
    nights = [night(len(rates) - n, perf_value=rate) for n, rate in enumerate(rates)]
    results.log.write_text("".join([f"{COLUMNS}\n", *nights]), encoding="utf-8")


def logrotate(results: Results) -> None:
    header, *lines = results.log.read_text(encoding="utf-8").splitlines(keepends=True)
    for name, part in (("-20261101", lines[:2]), (".1", lines[2:4])):
        results.log.with_name(f"{results.log.name}{name}").write_text("".join([header, *part]))
    olddir = results.log.with_name("old")
    olddir.mkdir()
    with gzip.open(olddir / f"{results.log.name}.2.gz", "wt") as packed:
        packed.writelines([header, *lines[4:]])
    results.log.write_text(f"{COLUMNS}\n{night(0.02)}", encoding="utf-8")


def zeros(results: Results) -> None:
    with results.log.open("r+b") as file:
        file.truncate(results.log.stat().st_size + 2**26)
    results.add("\n", night(0.02))


def many_bad_lines(results: Results) -> None:
    results.add("a line\n" * 100_000, night(0.02))


def future(results: Results) -> None:
    results.add(line(job_completion_time="2066-11-22T05:30:00+00:00", jobid=2066) + "\n")


def weekly(results: Results) -> None:
    nights = [night(days) for days in range(34, 0, -7)]
    results.log.write_text("".join([f"{COLUMNS}\n", *nights]), encoding="utf-8")


def one_off(results: Results) -> None:
    results.add(night(60, file_system="other"))


def ended(results: Results) -> None:
    results.add(*(night(days, file_system="other") for days in range(20, 6, -1)))


def failed_case(results: Results) -> None:
    path = write_report(results.root / "perflogs", [case(file_system="other")])
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    report["session_info"]["time_end_unix"] = datetime.now(timezone.utc).timestamp()
    path.write_text(json.dumps(report), encoding="utf-8")


@dataclass(frozen=True)
class Row:
    """A fault, the exit status, and how many of the `NIGHTS` samples count."""

    fault: str
    expected: str
    inject: Callable[[Results], object]
    samples: int = NIGHTS
    status: int = 0
    said: str = ""  # words in the line of the message
    remedy: tuple[str, ...] = ()  # a command that repairs it


GOES_ON = "the line is rejected by name; all others count"
FAULTS = [
    Row("last line cut off", GOES_ON, truncate, NIGHTS - 1, said="cut off"),
    Row("torn line, the next one behind it", GOES_ON, glue, NIGHTS - 1, said="columns instead of"),
    Row("two writers at the same time", GOES_ON, interleave, said="columns instead of"),
    Row(
        "byte flipped in a number",
        GOES_ON,
        lambda results: results.change(2, "|1.5|GiB", "|1>5|GiB"),
        NIGHTS - 1,
        said="not a finite number",
    ),
    Row(
        "rate of 0",
        GOES_ON,
        lambda results: results.change(2, "|1.5|GiB", "|0.0|GiB"),
        NIGHTS - 1,
        said="not above 0",
    ),
    Row(
        "rate in another unit",
        GOES_ON,
        lambda results: results.change(2, "GiB/s", "MiB/s"),
        NIGHTS - 1,
        said="the variable's unit is GiB/s",
    ),
    Row("perflog is binary", "rejected by name; other perflogs count", binary, said="Binary.log"),
    Row(
        "perflog is empty",
        "rejected by name; other perflogs count",
        in_place(Path.touch),
        said="empty file",
    ),
    Row(
        "perflog is a directory",
        "rejected by name; other perflogs count",
        in_place(Path.mkdir),
        said="Is a directory",
    ),
    Row(
        "perflog is a dangling link",
        "rejected by name; other perflogs count",
        in_place(lambda path: path.symlink_to("nowhere")),
        said="No such file",
    ),
    Row(
        "perflog is a fifo",
        "rejected by name, and not waited for",
        in_place(os.mkfifo),
        said="Odd.log",
    ),
    Row(
        "columns changed in mid-file",
        "both parts are read",
        change_columns,
        NIGHTS + 1,
        said="in the middle of the file",
    ),
    Row("columns missing", "rejected by name", lose_columns, said="columns are missing"),
    Row("rotated", "both files are read", rotate, NIGHTS + 1, said="OK"),
    Row("rotated by logrotate, and packed", "all files are read", logrotate, NIGHTS + 1, said="OK"),
    Row(
        "perflog extended by zeros",
        "one line is rejected by name; all others count",
        zeros,
        NIGHTS + 1,
        said="BenchioFPP.log:8: longer than 4 MiB",
    ),
    Row(
        "100000 lines that are not samples",
        "the first are named, all are counted; all others count",
        many_bad_lines,
        NIGHTS + 1,
        said="100000 lines rejected",
    ),
    Row(
        "drop that lasts for 600 runs",
        "critical; every action goes on",
        long_drop,
        700,
        status=2,
        said="degraded  1 disk",
        remedy=("rebaseline", "disk", "--reason", "the new level"),
    ),
    Row("copy of a perflog", "each sample counts once; the copies are named", copy, said="repeats"),
    Row(
        "line that is there twice",
        "the sample counts once; the copy is named",
        lambda results: results.add(results.log.read_text().splitlines(keepends=True)[-1]),
        said="repeats",
    ),
    Row("lines out of order", "read in the order of time", reorder, said="OK"),
    Row("a moment in two time zones", "one sample; the copy is named", other_zone, said="repeats"),
    Row("end of daylight saving", "two samples, an hour apart", clocks_back, NIGHTS + 2, said="OK"),
    Row("a year's gap", "all samples count", gap, 4, said="OK"),
    Row(
        "nights without a sample",
        "unknown: no data",
        lost_sample,
        10,
        status=3,
        said="no data",
    ),
    Row(
        "one run under a clock of the year 2066",
        "unknown: set aside and named; judged on the rest; `iobands discard` ends it",
        future,
        status=3,
        said="2066",
        remedy=("discard", "disk", "--reason", "a wrong clock", "--at", "2066-11-22"),
    ),
    Row("weekly series, six days old", "no sample is missed", weekly, 5, said="OK"),
    Row("series that was measured once", "no sample is missed", one_off, NIGHTS + 1, said="OK"),
    Row(
        "byte flipped in a field",
        "a series of its own that is never overdue; all others count",
        lambda results: results.change(2, "|disk|", "|dis{|"),
        said="2 series",
    ),
    Row(
        "series that is measured no longer",
        "unknown: no data; `iobands retire` ends it",
        ended,
        NIGHTS + 14,
        status=3,
        said="no data",
        remedy=("retire", "other", "--reason", "the file system is gone"),
    ),
    Row(
        "run report cut off",
        "named; perflogs count",
        lambda results: results.report(b'{"session_info": {'),
        said="not JSON",
    ),
    Row(
        "run report is binary",
        "named; perflogs count",
        lambda results: results.report(bytes(range(256))),
        said="run-report-0.json",
    ),
    Row("run report of 200000 brackets", "named; perflogs count", deep, said="run-report-0.json"),
    Row(
        "check that could not start",
        "unknown: the check and its reason",
        failed_case,
        status=3,
        said="failed in setup",
    ),
]


def of_row(row: Row) -> Any:
    return pytest.param(
        row, id=row.fault, marks=pytest.mark.fault("perflogs", row.fault, row.expected)
    )


@pytest.mark.parametrize("row", map(of_row, FAULTS))
def test_nothing_is_lost_in_silence(
    row: Row, results: Results, iobands: Command, observed: Observed
) -> None:
    healthy = results.log.read_bytes()
    row.inject(results)
    done = iobands("status")
    said = [text.strip() for text in unwrapped(done.stdout).splitlines() if row.said in text]
    assert said, done.stdout + done.stderr
    assert done.returncode == row.status
    assert "Traceback" not in done.stderr
    printed = iobands("status", "--format", "json").stdout
    assert len(printed) < 2**20
    document = json.loads(printed)
    assert sum(series["status"]["runs"] for series in document["series"]) == row.samples

    if row.remedy:
        assert iobands(*row.remedy).returncode == 0
    else:
        for path in (*results.log.parent.iterdir(), *results.reports.glob("*")):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        results.log.write_bytes(healthy)
    results.add(night(0.01))
    again = iobands("status")
    observed(
        **done.cells(said[0]),
        next_run=again.stdout.startswith("IOBANDS OK: ")
        and "rejected" not in again.stdout
        and not (row.remedy and row.said in unwrapped(again.stdout)),
    )


#: Runs a command without root's right to ignore file modes.
UNPRIVILEGED = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


@pytest.mark.needs("fewer capabilities")
@pytest.mark.parametrize("place", [".", "..", "BenchioFPP.log"])
@pytest.mark.fault(
    "perflogs", "perflogs that the reader may not read", "unknown: they are named; others count"
)
def test_what_cannot_be_read_is_named(
    place: str, results: Results, iobands: Command, observed: Observed
) -> None:
    write_perflog(results.root / "perflogs", [night(0.04).rstrip()] * 2, system="there")
    closed = (results.log.parent / place).resolve()
    mode = closed.stat().st_mode
    closed.chmod(0)
    try:
        done = subprocess.run(
            [*UNPRIVILEGED, sys.executable, "-m", "iobands", "status"],
            cwd=results.root,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        closed.chmod(mode)
    where = closed.relative_to(results.root)
    digest = " ".join(done.stdout.split())  # wrapped where the path is long
    said = f"failed {where} cannot be read: Permission denied; its content is not judged"
    assert said in digest
    assert "; 1 series; " in done.stdout
    observed(
        message=said,
        exit_status=done.returncode,
        left=[],
        next_run=iobands("status").stdout.startswith("IOBANDS OK: "),
    )
