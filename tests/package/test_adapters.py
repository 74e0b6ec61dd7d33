"""Adapters: results that something else wrote.

The lines are in the forms that ReFrame's documentation and EPCC's public configuration show.
"""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pandas as pd
import pytest

from iobands.readers.adapters import AdapterError, format_of
from iobands.results.perflog import Perflogs, read_perflogs
from iobands.model.series import split
from tests.package.conftest import Command
from tests.package.factory import line, write_perflog

EPCC_HEADER = (
    "display_name|result|job_completion_time|perf_var|perf_value perf_unit"
    "|(perf_ref, perf_lower_thres, perf_upper_thres)|"
)
LUSTRE = "%write_dir_prefix=/mnt/lustre/a2fs-{}/work/z19/z19/shared"


def write(directory: Path, *lines: str, place: str = "archer2/compute/X.log") -> Path:
    path = directory / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{text}\n" for text in lines))
    return directory


def read(directory: Path, name: str | None = None, said: str = "") -> Perflogs:
    if said:
        (directory / "adapter.yaml").write_text(said)
    return read_perflogs(directory, None, format_of(directory, name))


def fields(logs: Perflogs, *names: str) -> list[tuple[object, ...]]:
    rows = logs.samples[list(names)].to_dict("records")
    return [tuple(None if pd.isna(row[name]) else row[name] for name in names) for row in rows]


def at(*moment: int) -> datetime:
    return datetime(*moment, tzinfo=timezone.utc)


def epcc(check: str, variable: str, value: str, when: str = "2024-07-01T03:00:00") -> str:
    return f"{check}|pass|{when}|{variable}|{value}|(0, None, None)|"


@pytest.mark.parametrize("header", [[EPCC_HEADER], []])
def test_epcc(tmp_path: Path, header: list[str]) -> None:
    fpp = f"BenchioFPP16Nodes {LUSTRE.format('nvme')}"
    ssf = f"BenchioMPIIOUCXOpt32Nodes {LUSTRE.format('work1')}"
    write(
        tmp_path,
        *header,
        epcc(fpp, "unstriped_file_bw", "151.25 GiB/s"),
        epcc(fpp, "unstriped_file_time", "0.42 s"),
        epcc(ssf, "fullstriped_mpiio_bw", "10.5 GiB/s"),
        epcc(ssf, "fullstriped_hdf5_bw", "None GiB/s"),
        epcc("BenchioSmallTest %num_nodes=2 " + LUSTRE.format("work2"), "extract_striped_hdf5",
             "1024 MiB/s"),
        epcc("Other", "bw", "1 GiB/s"),
    )  # fmt: skip
    logs = read(tmp_path, "epcc", "time_zone: Europe/London")
    names = ("pattern", "interface", "file_system", "medium", "stripe_count_asked", "transport",
             "hints", "nodes", "tasks", "gib", "perf_value")  # fmt: skip
    # 2048 cubed times 8 bytes are 64 GiB, 4096 cubed 512 GiB, and 1260 cubed 14.9040 GiB
    assert fields(logs, *names) == [
        ("fpp", "posix", "nvme", "nvme", 1, "ofi", "default", 16, 2048, 64, 151.25),
        ("ssf", "mpiio", "work1", "hdd", -1, "ucx", "archer2-ssf", 32, 4096, 512, 10.5),
        ("ssf", "hdf5", "work2", "hdd", -1, "ofi", "default", 2, 256,
         pytest.approx(14.9040, abs=1e-4), 1.0),
    ]  # fmt: skip
    # British summer time is an hour before UTC
    assert set(logs.samples["job_completion_time"]) == {at(2024, 7, 1, 2)}
    assert set(logs.samples["system"]) == {"archer2"}
    assert logs.others == 1 + 1  # the time, and a "pass" without a value, which is a dry run
    assert [rejected.reason for rejected in logs.rejected] == [
        "perf_var: 'bw' is no variable of EPCC's benchio checks"
    ]


def test_epcc_in_the_form_of_reframe_3(tmp_path: Path) -> None:
    text = (
        "2021-12-01T03:00:00|reframe 3.9.2|BenchioFPP16Nodes on archer2:compute using PrgEnv-gnu"
        "|jobid=77|unstriped_file_bw=99.5|ref=0 (l=null, u=null)|GiB/s"
    )
    logs = read(write(tmp_path, text), "epcc")
    names = ("jobid", "environ", "pattern", "nodes", "file_system", "perf_value")
    assert fields(logs, *names) == [("77", "PrgEnv-gnu", "fpp", 16, None, 99.5)]


def test_epcc_in_the_digest(tmp_path: Path, iobands: Command) -> None:
    check = f"BenchioFPP16Nodes {LUSTRE.format('nvme')}"
    lines = [
        epcc(check, "unstriped_file_bw", "155 GiB/s", f"2024-07-{day:02}T03:00:00")
        for day in range(1, 26)
    ]
    write(tmp_path / "logs", EPCC_HEADER, *lines)
    done = iobands("status", "--perflogs", "logs", "--adapter", "epcc", "--overdue", "1e5")
    assert done.stdout.startswith("IOBANDS OK: 1 series: 1 healthy")
    assert "nvme fpp write_bw" in done.stdout
    failed = iobands("status", "--perflogs", "logs", "--adapter", "epc")
    assert failed.returncode == 3
    assert failed.stderr == (
        "IOBANDS UNKNOWN: there is no adapter 'epc'; there are iobands, epcc, reframe3, reframe4, "
        "csv\n"
    )


REFRAME3 = (
    "{when}|reframe 3.9.2|{check} on yoltla:q1h using builtin|jobid=926963|{variable}={value}"
    "|ref=0 (l=null, u=null)|{unit}"
)


def reframe3(**said: str) -> str:
    defaults = {"when": "2022-06-23T20:18:19", "check": "IorTest", "variable": "Write",
                "value": "2000", "unit": "MB/s"}  # fmt: skip
    return REFRAME3.format(**{**defaults, **said})


def test_reframe3(tmp_path: Path) -> None:
    write(
        tmp_path,
        reframe3(),
        reframe3(when="2022-06-23T20:18:19+02:00", variable="Copy", value="6606.1"),
        reframe3(check="IorTest %file_system=fast %x=1", value="1024", unit="MiB/s"),
        reframe3(value="null"),
        reframe3(value="nan"),
        reframe3(unit="furlongs"),
        reframe3(variable="Triad"),
        "2022-06-23T20:18:19|reframe 3.9.2|what is this",
        place="yoltla/q1h/IorTest.log",
    )
    said = "adapter: reframe3\nvariables:\n  Write: {perf_var: write_bw, interface: mpiio}\n  Copy:"
    logs = read(tmp_path, said=said)
    names = ("system", "environ", "tool", "pattern", "interface", "file_system", "perf_value")
    assert fields(logs, *names) == [
        # 2000 MB/s are 2e9 / 2**30 GiB/s
        ("yoltla", "builtin", "IorTest", "IorTest", "mpiio", None, 2e9 / 2**30),
        ("yoltla", "builtin", "IorTest", "IorTest %file_system=fast %x=1", "mpiio", "fast", 1.0),
    ]
    assert (len(logs.misses), logs.others) == (1, 1)
    assert [(rejected.line, rejected.reason) for rejected in logs.rejected] == [
        (5, "perf_value: 'nan' is not a finite number"),
        (6, "perf_unit: 'furlongs'; the variable's unit is GiB/s"),
        (7, "perf_var: unknown variable 'Triad'; say under variables what it is"),
        (8, "not a line of ReFrame 3's perflogs"),
    ]


def test_reframe3_as_reframe_4_writes_it(tmp_path: Path) -> None:
    header = (
        "job_completion_time|reframe version|info|jobid=jobid|perf_var=perf_value|ref=perf_ref "
        "(l=perf_lower_thres, u=perf_upper_thres)|perf_unit"
    )
    text = (
        "2024-06-23T20:18:19|reframe 4.5.2|IorTest %x=1 /c939327c @yoltla:q1h+gnu|jobid=1"
        "|write_bw=3|ref=0 (l=None, u=None)|GiB/s"
    )
    logs = read(write(tmp_path, header, text), "reframe3")
    names = ("display_name", "hashcode", "partition", "environ", "perf_value")
    assert fields(logs, *names) == [("IorTest %x=1", "c939327c", "q1h", "gnu", 3.0)]
    assert logs.rejected == ()


def test_reframe4(tmp_path: Path) -> None:
    header = (
        "result|job_completion_time|descr|environ|job_completion_time_unix|job_nodelist|jobid|name"
        "|num_tasks|partition|write_bw_value|write_bw_unit|write_bw_ref|write_bw_lower_thres"
        "|write_bw_upper_thres|read_bw_value|read_bw_unit|read_bw_ref|read_bw_lower_thres"
        "|read_bw_upper_thres|short_name|system|unique_name"
    )
    text = (
        "pass|2024-02-21T22:51:16||gnu|1708555876.746763|nid1|65|IorTest %file_system=fast|16"
        "|compute|2.5|GiB/s|0|None|None|{}|GiB/s|0|None|None|IorTest|cluster|IorTest_0"
    )
    write(tmp_path, header, text.format("3.5"), text.format("None|x"), place="c/compute/I.log")
    logs = read(tmp_path, "reframe4")
    names = ("perf_var", "perf_value", "display_name", "tasks", "file_system", "system", "jobid")
    assert fields(logs, *names) == [
        ("write_bw", 2.5, "IorTest %file_system=fast", 16, "fast", "cluster", "65"),
        ("read_bw", 3.5, "IorTest %file_system=fast", 16, "fast", "cluster", "65"),
    ]
    # the time has no offset, but the seconds since 1970 need none
    assert set(logs.samples["job_completion_time"]) == {at(2024, 2, 21, 22, 51, 16)}
    assert [rejected.reason for rejected in logs.rejected] == ["24 columns instead of 23"]


def test_reframe4_with_a_line_a_variable(tmp_path: Path) -> None:
    header = "job_completion_time|info|jobid|perf_var|perf_value|perf_unit"
    text = "2024-02-21T22:51:16|IorTest @c:compute+gnu|7|write_bw|4096|MiB/s"
    logs = read(write(tmp_path, header, text), "reframe4")
    assert fields(logs, "system", "environ", "perf_value") == [("c", "gnu", 4.0)]


CSV_OPTIONS = """
adapter: csv
time_zone: America/New_York
fields: {system: edison, partition: compute, perf_unit: GiB/s}
columns: {job_completion_time: time, perf_var: operation, perf_value: rate, tool: application}
variables:
  write: {perf_var: write_bw}
  read: {perf_var: read_bw}
  stat:
"""


def test_csv(tmp_path: Path) -> None:
    write(
        tmp_path,
        "time,application,file_system,operation,rate,remark",
        "2017-02-14 17:29:40+00:00,ior,scratch1,write,7.5,",
        '2017-02-14 17:29:40,ior,scratch1,read,8.5,"a, b"',
        "1487093380,ior,scratch2,read,9.5,",
        "2017-02-15 17:29:40Z,ior,scratch1,stat,9,",
        "2017-02-15 17:29:40Z,ior,scratch1,write,0,",
        "2017-02-15 17:29:40Z,ior,scratch1,write",
        '2017-02-15 17:29:40Z,"ior,scratch1,write,1,',
        place="deep/results.csv",
    )
    logs = read(tmp_path, said=CSV_OPTIONS)
    names = ("job_completion_time", "perf_var", "perf_value", "file_system", "tool", "system")
    assert fields(logs, *names) == [
        (at(2017, 2, 14, 17, 29, 40), "write_bw", 7.5, "scratch1", "ior", "edison"),
        (at(2017, 2, 14, 17, 29, 40), "read_bw", 9.5, "scratch2", "ior", "edison"),
        (at(2017, 2, 14, 22, 29, 40), "read_bw", 8.5, "scratch1", "ior", "edison"),
    ]
    assert logs.others == 1
    assert [(rejected.line, rejected.reason.split(":")[0]) for rejected in logs.rejected] == [
        (6, "perf_value"),
        (7, "4 columns instead of 6"),
        (8, "not CSV"),
    ]
    assert len(list(split(logs.samples))) == 3
    assert len(read_perflogs(tmp_path, "elsewhere", format_of(tmp_path)).samples) == 0


def test_csv_without_a_column_that_is_needed(tmp_path: Path) -> None:
    write(tmp_path, "time,rate", "2017-02-14 17:29:40Z,1", place="x.csv")
    logs = read(tmp_path, said=CSV_OPTIONS)
    assert [rejected.reason for rejected in logs.rejected] == [
        "columns are missing: operation, application, perf_var",
        "under a header that lacks columns",
    ]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("[", "not YAML"),
        ("- epcc", "the file: not a mapping"),
        ("adaptor: epcc", "adaptor: no such entry"),
        ("time_zone: Mars", "time_zone: there is no time zone 'Mars'"),
        ("time_zone: ../../etc/passwd", "time_zone: there is no time zone"),
        ("fields: {speed: 1}", "fields: speed: no such field"),
        ("variables: {x: {perf_var: speed}}", "variables: x: perf_var: unknown variable 'speed'"),
        ("adapter: x", "there is no adapter 'x'"),
    ],
)
def test_what_is_wrong_with_the_options(tmp_path: Path, said: str, why: str) -> None:
    (tmp_path / "adapter.yaml").write_text(said)
    with pytest.raises(AdapterError, match=why.replace("[", r"\[")):
        format_of(tmp_path)


def test_the_name_given_goes_before_the_file(tmp_path: Path) -> None:
    write_perflog(tmp_path, [line()])
    (tmp_path / "adapter.yaml").write_text("adapter: epcc")
    assert len(read(tmp_path, "iobands").samples) == 1
    assert len(read(tmp_path).samples) == 0


def test_time_zones_on_a_machine_without_any(tmp_path: Path, iobands: Command) -> None:
    write(tmp_path / "logs", epcc("BenchioSSF %x=1", "unstriped_file_bw", "1 GiB/s"))
    (tmp_path / "logs" / "adapter.yaml").write_text("adapter: epcc\ntime_zone: Europe/London\n")
    done = iobands("explain", "write_bw", "--perflogs", "logs", PYTHONTZPATH="")
    assert "1 GiB/s at 2024-07-01 02:00" in done.stdout, done.stderr
