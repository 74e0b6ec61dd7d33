"""The digest: a golden text, what a mail can carry, and the JSON."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from iobands.reporting.digest import digest_text
from iobands.reporting.digest_json import as_json
from iobands.reporting.digest_table import sparkline
from iobands.reporting.format import figure, printable
from iobands.status.survey import Survey, take_survey
from tests.package.factory import (
    NOW,
    case,
    daily,
    line,
    write_bands,
    write_perflog,
    write_report,
)

GOLDEN = Path(__file__).with_name("data")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Survey:
    """A site with something of everything; paths in it are relative."""
    monkeypatch.chdir(tmp_path)
    rows = daily([1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2, 1.5])
    rows += daily([1.5, 0.123], pattern="ssf")
    rows += daily([float(value) for value in range(100, 121)], file_system="fast", medium="nvme")
    rows += daily([2.5, None], perf_var="read_bw")
    rows += daily([2.5], last=9, file_system="old", medium="tape", perf_var="read_bw")
    rows += daily([7.5], last=400, pattern="ssf", perf_var="read_bw", stripe_count_asked=-1)
    rows += daily([7.5], pattern="ssf", perf_var="read_bw", stripe_count_asked=4)
    rows += [line(perf_value="x")] * 7
    write_perflog(Path("perflogs"), rows)
    write_bands(Path("bands"), variable="write_bw", medium="hdd")
    write_report(Path("perflogs"), [case(display_name="Ior \x1b[31m%x=1", file_system="x")])
    return take_survey(Path("perflogs"), Path("bands"), now=NOW)


def text(survey: Survey, width: int = 100, encoding: str = "utf-8", **options: bool) -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    return digest_text(survey, Console(file=stream, width=width), **options)


@pytest.mark.parametrize(
    ("name", "encoding"), [("digest.txt", "utf-8"), ("digest-ascii.txt", "ascii")]
)
def test_golden_digest(
    site: Survey, name: str, encoding: str, request: pytest.FixtureRequest
) -> None:
    found = text(site, encoding=encoding)
    golden = GOLDEN / name
    if request.config.getoption("--store-golden"):
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")
    assert "\x1b" not in found
    found.encode(encoding)


def test_a_series_is_a_line_of_a_hundred_columns(site: Survey) -> None:
    table = text(site).split("SERIES")[1].split("\n\n")[0].splitlines()[1:]
    assert len(table) == len(site.series)
    assert max(len(row) for row in table) <= 100


def test_a_ratio_has_its_interval_in_its_row(tmp_path: Path) -> None:
    of_case = {"case": "cray-hdf5-dump", "perf_unit": "1"}
    rows = [*daily([0.5, 2.25], perf_var="write_ratio", **of_case)]
    rows += daily([0.4, 2.125], perf_var="write_ratio_lower", **of_case)
    rows += daily([0.6, 2.5], perf_var="write_ratio_upper", **of_case)
    # of fewer pairs than have an interval, and an earlier run's
    rows += daily([0.75], perf_var="read_ratio", **of_case)
    rows += daily([0.625], last=2, perf_var="read_ratio_lower", **of_case)
    rows += daily([0.875], last=2, perf_var="read_ratio_upper", **of_case)
    write_perflog(tmp_path, rows)
    found = text(take_survey(tmp_path, tmp_path, now=NOW))
    (written,) = [row for row in found.splitlines() if "write_ratio" in row]
    assert "2.25 [2.12, 2.5]" in written
    read = [row for row in found.splitlines() if "read_ratio" in row]
    assert len(read) == 3
    assert not any("[" in row for row in read)


def test_rejected_lines(site: Survey) -> None:
    few, every = text(site), text(site, all_rejected=True)
    assert "Rejected: 7 lines" in few
    assert few.count("is not a finite number") == 5
    assert "and 2 more; --rejected lists all" in few
    assert every.count("is not a finite number") == 7
    assert "--rejected" not in every


def test_json_has_what_the_text_has(site: Survey) -> None:
    found = json.loads(json.dumps(as_json(site), allow_nan=False))
    assert (found["schema"], found["status"]) == ("iobands-status/1", 3)
    assert found["summary"] == text(site).splitlines()[0]
    by_label = {series["label"]: series for series in found["series"]}
    disk = by_label["disk fpp write_bw"]
    assert (disk["value"], disk["unit"], disk["verdict"]) == (1.5, "GiB/s", "within")
    assert (disk["system"], disk["nodes"], disk["gib"]) == ("here", 1, 0.5)
    assert disk["band"]["floor"] == pytest.approx(0.353553, abs=1e-6)  # 1 (1/2)^1.5
    assert disk["when"] == "2026-11-20T19:30:00+00:00"
    assert by_label["disk fpp read_bw"]["state"] == "no data"
    assert len(found["rejected"]) == 7
    assert found["findings"][0]["phase"] == "setup"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.01234, "0.0123"),
        (1.0, "1"),
        (9.999, "10"),
        (99.94, "99.9"),
        (123.6, "124"),
        (4096, "4096"),
    ],
)
def test_figures(value: float, shown: str) -> None:
    assert figure(value) == shown


def test_sparklines() -> None:
    assert sparkline([]) == ""
    assert sparkline([1.0, 8.0]) == "▁█"
    assert len(sparkline([3.0])) == 1
    assert len(set(sparkline([3.0] * 5))) == 1


def test_nothing_upsets_a_terminal() -> None:
    assert printable("a\x1b[2Jb\nc\ud800é") == "a?[2Jb?c?é"
