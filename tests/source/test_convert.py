"""Conversion of results of other programs.

The lines have the forms in ReFrame's documentation and in EPCC's public configuration.
"""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from iobands.model import FileError
from iobands.source.convert import Converted, FieldMapping, convert, read_mapping
from iobands.source.perflog import read_perflogs
from iobands.source.samples import Samples
from tests.factory import daily, write_perflog

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


@dataclass
class Read:
    converted: Converted
    samples: Samples

    def fields(self, *names: str) -> list[tuple[object, ...]]:
        return self.samples.measured.select(names).rows()

    @property
    def reasons(self) -> list[tuple[int, str]]:
        return [(each.line, each.reason) for each in self.converted.rejected]


def read(directory: Path, said: str = "") -> Read:
    """Convert the results in a directory, and read the perflogs that this gives."""
    mapping = FieldMapping()
    if said:
        (directory / "mapping.yaml").write_text(said)
        mapping = read_mapping(directory / "mapping.yaml")
    target = directory.with_name("perflogs")
    converted = convert(directory, mapping, target)
    samples = read_perflogs(target) if target.is_dir() else None
    assert samples is None or samples.rejected == ()
    return Read(converted, samples)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    return tmp_path / "source"


def at(*moment: int) -> datetime:
    return datetime(*moment, tzinfo=timezone.utc)


def epcc(check: str, variable: str, value: str, when: str = "2024-07-01T03:00:00") -> str:
    return f"{check}|pass|{when}|{variable}|{value}|(0, None, None)|"


@pytest.mark.parametrize("header", [[EPCC_HEADER], []])
def test_epcc(source: Path, header: list[str]) -> None:
    fpp = f"BenchioFPP16Nodes {LUSTRE.format('nvme')}"
    ssf = f"BenchioMPIIOUCXOpt32Nodes {LUSTRE.format('work1')}"
    write(
        source,
        *header,
        epcc(fpp, "unstriped_file_bw", "151.25 GiB/s"),
        epcc(fpp, "unstriped_file_time", "0.42 s"),
        epcc(ssf, "fullstriped_mpiio_bw", "10.5 GiB/s"),
        epcc(ssf, "fullstriped_hdf5_bw", "None GiB/s"),
        epcc("BenchioSmallTest %num_nodes=2 " + LUSTRE.format("work2"), "extract_striped_hdf5",
             "1024 MiB/s"),
        epcc("Other", "bw", "1 GiB/s"),
    )  # fmt: skip
    logs = read(source, "time_zone: Europe/London")
    names = ("pattern", "interface", "file_system", "medium", "stripe_count_asked", "transport",
             "hints", "nodes", "tasks", "gib", "perf_value")  # fmt: skip
    # 2048 cubed times 8 bytes are 64 GiB, 4096 cubed 512 GiB, and 1260 cubed 14.9040 GiB
    assert logs.fields(*names) == [
        ("fpp", "posix", "nvme", "nvme", 1, "ofi", "default", 16, 2048, 64, 151.25),
        ("ssf", "mpiio", "work1", "hdd", -1, "ucx", "archer2-ssf", 32, 4096, 512, 10.5),
        ("ssf", "hdf5", "work2", "hdd", -1, "ofi", "default", 2, 256,
         pytest.approx(14.9040, abs=1e-4), 1.0),
    ]  # fmt: skip
    # British summer time is an hour before UTC
    assert set(logs.samples.measured["job_completion_time"]) == {at(2024, 7, 1, 2)}
    assert set(logs.samples.measured["system"]) == {"archer2"}
    assert (
        logs.converted.passed_over == 1 + 1
    )  # the time, and a "pass" without a value, which is a dry run
    assert [reason for _, reason in logs.reasons] == [
        "perf_var: unknown variable 'bw'; name it under variables"
    ]


def test_epcc_in_the_form_of_reframe_3(source: Path) -> None:
    text = (
        "2021-12-01T03:00:00|reframe 3.9.2|BenchioFPP16Nodes on archer2:compute using PrgEnv-gnu"
        "|jobid=77|unstriped_file_bw=99.5|ref=0 (l=null, u=null)|GiB/s"
    )
    logs = read(write(source, text))
    names = ("jobid", "environ", "pattern", "nodes", "file_system", "perf_value")
    assert logs.fields(*names) == [("77", "PrgEnv-gnu", "fpp", 16, None, 99.5)]


REFRAME3 = (
    "{when}|reframe 3.9.2|{check} on yoltla:q1h using builtin|jobid=926963|{variable}={value}"
    "|ref=0 (l=null, u=null)|{unit}"
)


def reframe3(**said: str) -> str:
    defaults = {"when": "2022-06-23T20:18:19", "check": "IorTest", "variable": "Write",
                "value": "2000", "unit": "MB/s"}  # fmt: skip
    return REFRAME3.format(**{**defaults, **said})


def test_reframe3(source: Path) -> None:
    write(
        source,
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
    said = "variables:\n  Write: {perf_var: write_bw, interface: mpiio}\n  Copy:"
    logs = read(source, said)
    names = ("system", "environ", "tool", "pattern", "interface", "file_system", "perf_value")
    assert logs.fields(*names) == [
        # 2000 MB/s are 2e9 / 2**30 GiB/s
        ("yoltla", "builtin", "IorTest", "IorTest", "mpiio", None, 2e9 / 2**30),
        ("yoltla", "builtin", "IorTest", "IorTest %file_system=fast %x=1", "mpiio", "fast", 1.0),
    ]
    assert (len(logs.samples.missed), logs.converted.passed_over) == (1, 1)
    assert logs.reasons == [
        (5, "perf_value: 'nan' is not a finite number"),
        (6, "perf_unit: 'furlongs'; the variable's unit is GiB/s"),
        (7, "perf_var: unknown variable 'Triad'; name it under variables"),
        (8, "3 columns instead of 7"),
    ]


def test_reframe3_as_reframe_4_writes_it(source: Path) -> None:
    header = (
        "job_completion_time|reframe version|info|jobid=jobid|perf_var=perf_value|ref=perf_ref "
        "(l=perf_lower_thres, u=perf_upper_thres)|perf_unit"
    )
    text = (
        "2024-06-23T20:18:19|reframe 4.5.2|IorTest %x=1 /c939327c @yoltla:q1h+gnu|jobid=1"
        "|write_bw=3|ref=0 (l=None, u=None)|GiB/s"
    )
    logs = read(write(source, header, text))
    names = ("display_name", "hashcode", "partition", "environ", "perf_value")
    assert logs.fields(*names) == [("IorTest %x=1", "c939327c", "q1h", "gnu", 3.0)]
    assert logs.reasons == []


def test_reframe_4_before_4_3_writes_commas(source: Path) -> None:
    header = (
        "job_completion_time,version,display_name,system,partition,environ,jobid,result,"
        "write_bw_value,write_bw_unit,write_bw_ref,write_bw_lower,write_bw_upper"
    )
    text = (
        "2026-11-30T14:50:51,4.0.0,IorTest %file_system=fast,cluster,compute,gnu,{},pass,3.5,GiB/s,"
        "100,-0.1,None"
    )
    lines = (header, text.format(77), text.format("7,8"))
    logs = read(write(source, *lines, place="cluster/compute/IorTest_e3d76c13.log"))
    names = ("version", "system", "partition", "environ", "jobid", "file_system", "perf_value")
    assert logs.fields(*names) == [("4.0.0", "cluster", "compute", "gnu", "77", "fast", 3.5)]
    assert logs.reasons == [(3, "14 columns instead of 13")]


def test_reframe4(source: Path) -> None:
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
    write(source, header, text.format("3.5"), text.format("None|x"), place="c/compute/I.log")
    logs = read(source)
    names = ("perf_var", "perf_value", "display_name", "tasks", "file_system", "system", "jobid")
    assert logs.fields(*names) == [
        ("write_bw", 2.5, "IorTest %file_system=fast", 16, "fast", "cluster", "65"),
        ("read_bw", 3.5, "IorTest %file_system=fast", 16, "fast", "cluster", "65"),
    ]
    # the time has no offset, but the seconds since 1970 need none
    assert set(logs.samples.measured["job_completion_time"]) == {at(2024, 2, 21, 22, 51, 16)}
    assert [reason for _, reason in logs.reasons] == ["24 columns instead of 23"]


def test_reframe4_with_a_line_a_variable(source: Path) -> None:
    header = "job_completion_time|info|jobid|perf_var|perf_value|perf_unit"
    text = "2024-02-21T22:51:16|IorTest @c:compute+gnu|7|write_bw|4096|MiB/s"
    logs = read(write(source, header, text))
    assert logs.fields("system", "environ", "perf_value") == [("c", "gnu", 4.0)]


CSV_OPTIONS = """
time_zone: America/New_York
fields: {system: edison, partition: compute, perf_unit: GiB/s}
columns: {job_completion_time: time, perf_var: operation, perf_value: rate, tool: application}
variables:
  write: {perf_var: write_bw}
  read: {perf_var: read_bw}
  stat:
"""


def test_csv(source: Path) -> None:
    write(
        source,
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
    logs = read(source, CSV_OPTIONS)
    names = ("job_completion_time", "perf_var", "perf_value", "file_system", "tool", "system")
    assert logs.fields(*names) == [
        (at(2017, 2, 14, 17, 29, 40), "write_bw", 7.5, "scratch1", "ior", "edison"),
        (at(2017, 2, 14, 17, 29, 40), "read_bw", 9.5, "scratch2", "ior", "edison"),
        (at(2017, 2, 14, 22, 29, 40), "read_bw", 8.5, "scratch1", "ior", "edison"),
    ]
    assert logs.converted.passed_over == 1
    assert [(line, reason.split(":")[0]) for line, reason in logs.reasons] == [
        (6, "perf_value"),
        (7, "4 columns instead of 6"),
        (8, "not CSV"),
    ]
    assert len(logs.samples.rows) == 3


def test_csv_of_one_variable(source: Path) -> None:
    write(source, "job_completion_time,perf_value", "2024-07-01T03:00:00,2.5", place="ior.csv")
    logs = read(
        source,
        "fields: {system: s, partition: p, perf_var: write_bw, perf_unit: GiB/s}",
    )
    assert logs.fields("perf_var", "perf_value") == [("write_bw", 2.5)]


def test_a_number_that_is_a_date_is_not_read_as_seconds(source: Path) -> None:
    # of July 2024: without separators, as a spreadsheet counts days, and in seconds since 1970
    times = ("20240701", "45474.125", "1719802800")
    write(source, "job_completion_time,perf_value", *(f"{t},2.5" for t in times), place="ior.csv")
    logs = read(
        source,
        "fields: {system: s, partition: p, perf_var: write_bw, perf_unit: GiB/s}",
    )
    assert logs.fields("job_completion_time") == [(at(2024, 7, 1, 3),)]
    why = "is not a time with a UTC offset"
    assert logs.reasons == [
        (line, f"job_completion_time: {time!r} {why}")
        for line, time in ((2, times[0]), (3, times[1]))
    ]


def test_csv_without_a_column_that_is_needed(source: Path) -> None:
    write(source, "time,rate", "2017-02-14 17:29:40Z,1", place="x.csv")
    logs = read(source, CSV_OPTIONS)
    assert [reason for _, reason in logs.reasons] == [
        "columns are missing: operation, application",
        "no header line with job_completion_time before it; a mapping may name its column",
    ]


def test_a_table_with_semicolons_says_so(source: Path) -> None:
    write(source, *(row.replace(",", ";") for row in (HEADER, csv_row(0, 5.0))), place="x.csv")
    reasons = {reason for _, reason in read(source).reasons}
    assert reasons == {"semicolons between the columns; write commas, and points in numbers"}


def test_a_table_as_a_spreadsheet_on_windows_saves_it(source: Path) -> None:
    place = write(source, HEADER, csv_row(0, 5.0), place="X.CSV") / "X.CSV"
    place.write_bytes(b"\xef\xbb\xbf" + place.read_bytes().replace(b"\n", b"\r\n"))
    logs = read(source)
    assert (logs.converted.written, logs.reasons) == (1, [])


def test_what_was_imported_before_is_not_imported_again(source: Path) -> None:
    measured = write_perflog(source.with_name("perflogs"), daily([1.0, 2.0]))
    before = measured.read_bytes()
    check = f"BenchioFPP16Nodes {LUSTRE.format('nvme')}"
    first, second = (
        epcc(check, "unstriped_file_bw", "155 GiB/s", f"2024-07-0{day}T03:00:00") for day in (1, 2)
    )
    write(source, EPCC_HEADER, first, first)
    found = read(source).converted
    assert (found.written, found.known, found.rejected) == (1, 0, ())
    write(source, EPCC_HEADER, first, second)
    logs = read(source)
    assert (logs.converted.written, logs.converted.known) == (1, 1)
    assert (read(source).converted.written, len(logs.samples.measured)) == (0, 4)
    assert measured.read_bytes() == before
    assert [path.name for path in logs.converted.perflogs] == ["imported-X.log"]


def test_names_that_are_no_directories(source: Path) -> None:
    write(source, "job_completion_time,system,partition,perf_var,perf_value,perf_unit",
          "2017-02-14 17:29:40Z,../..,/etc,write_bw,1,GiB/s", place="x.csv")  # fmt: skip
    logs = read(source)
    assert logs.converted.perflogs == ()
    (rejected,) = logs.converted.rejected
    assert (rejected.path.name, rejected.reason) == ("x.csv", "system: '../..' is not a name")


def test_perflogs_that_cannot_be_added_to(source: Path) -> None:
    check = f"BenchioFPP16Nodes {LUSTRE.format('nvme')}"
    write(source, epcc(check, "unstriped_file_bw", "155 GiB/s"))
    (path,) = read(source).converted.perflogs
    path.write_text("other|columns\n")
    with pytest.raises(FileExistsError, match="remove it"):
        read(source)
    with pytest.raises(FileNotFoundError, match="no such directory"):
        read(source / "nowhere")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("[", "mapping.yaml, line 2"),
        ("- epcc", "the file is"),
        ("adaptor: epcc", "adaptor is an unknown key"),
        ("time_zone: Mars", "time_zone is not a time zone"),
        ("time_zone: ../../etc/passwd", "time_zone is not a time zone"),
        ("fields: {speed: 1}", "speed is an unknown key"),
        ("fields: {tool: [1]}", "line 1: fields: tool is"),
        ("variables: {x: {perf_var: speed}}", "variable 'x' has no perf_var"),
    ],
)
def test_what_is_wrong_with_a_mapping(source: Path, said: str, why: str) -> None:
    with pytest.raises(FileError, match=why):
        read(source, said)


HEADER = "job_completion_time,perf_var,perf_value,perf_unit,system,partition,file_system"


def csv_row(second: int, value: float, partition: str = "p", file_system: str = "disk") -> str:
    when = datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=second)
    return f"{when.isoformat()},write_bw,{value},GiB/s,s,{partition},{file_system}"


def test_of_thousands_of_bad_rows_each_is_rejected_and_no_other(tmp_path: Path) -> None:
    rows = [csv_row(n, -1 - n) for n in range(1500)] + [csv_row(n, 5 + n) for n in range(10)]
    found = read(write(tmp_path / "results", HEADER, *rows, place="x.csv"))
    assert (found.converted.written, len(found.reasons)) == (10, 1500)
    assert len(found.samples.measured) == 10
    assert found.samples.rejected == ()


def test_what_is_imported_again_is_there_once(tmp_path: Path) -> None:
    rows = [csv_row(0, 5.0, file_system="di\u2028sk"), csv_row(1, 6.0, partition="reports")]
    source = write(tmp_path / "results", HEADER, *rows, place="x.csv")
    first, second = (convert(source, FieldMapping(), tmp_path / "perflogs") for _ in range(2))
    assert [(each.written, each.known) for each in (first, second)] == [(2, 0), (0, 2)]
    assert [len(each.perflogs) for each in (first, second)] == [2, 0]
    assert len(read_perflogs(tmp_path / "perflogs").values) == 2
    # after a full disk
    torn = tmp_path / "perflogs" / "s" / "p" / "imported-x.log"
    for end in (-20, torn.read_bytes().index(b"\x80\xa8")):  # also within a character
        torn.write_bytes(torn.read_bytes()[:end])
        assert convert(source, FieldMapping(), tmp_path / "perflogs").written == 1
        assert len(read_perflogs(tmp_path / "perflogs").values) == 2


def test_a_value_of_a_mapping_breaks_no_line(tmp_path: Path) -> None:
    source = write(tmp_path / "results", HEADER, csv_row(0, 5.0), place="x.csv")
    found = read(source, 'fields: {tool: "a\\nb|c"}\n')
    assert found.fields("tool") == [("a b c",)]


def test_packed_results_are_read_and_pipes_are_not(tmp_path: Path) -> None:
    place = tmp_path / "results" / "s" / "p"
    place.mkdir(parents=True)
    lines = "job_completion_time|perf_var|perf_value|perf_unit|file_system\n"
    lines += "2026-01-01T00:00:00+00:00|write_bw|5|GiB/s|disk\n"
    (place / "x.log.1.gz").write_bytes(gzip.compress(lines.encode()))
    (place / "y.log.2.gz").write_bytes(gzip.compress(lines.encode())[:-9])
    os.mkfifo(place / "x.csv")
    found = read(tmp_path / "results")
    assert found.converted.written == 1
    assert [each.partition(":")[0] for _, each in found.reasons] == [
        "cannot be read",
        "cannot be unpacked",
    ]


def test_a_row_with_speeds_that_are_none_is_imported(tmp_path: Path) -> None:
    rows = daily([2.0, 2.1], target_bandwidths="write_bw=0:x", node_speeds="write_bw=a:x")
    write_perflog(tmp_path / "source", rows)
    converted = convert(tmp_path / "source", FieldMapping(), tmp_path / "perflogs")
    assert (converted.written, len(converted.rejected)) == (2, 4)
    samples = read_perflogs(tmp_path / "perflogs")
    assert samples.measured["perf_value"].to_list() == [2.0, 2.1]
    assert len(samples.rejected) == 4
