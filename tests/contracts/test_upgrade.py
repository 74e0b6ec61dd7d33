"""Files of earlier versions give the same digest as the same samples in today's form.

The headers, bands and logs in golden/ are those that were committed when each form was current.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from iobands.bands import load_bands, parse_bands
from iobands.judge.fold import stories_in
from iobands.source.action_log import ALERT_LOG
from iobands.source.perflog import read_perflogs
from iobands.views.digest import digest_text
from tests.factory import COLUMNS, line, write_bands
from tests.sites import SiteFiles, slow

GOLDEN = Path(__file__).parent / "golden"
HEADERS = (GOLDEN / "perflog-headers-before.txt").read_text(encoding="utf-8").splitlines()
ACTED = (
    '{"schema": 1, "action": "acknowledge", "when": "2026-11-18T09:00:00Z", "who": "jane",'
    ' "reason": "OST 12 rebuilds", "series": [{"file_system": "a"}], "direction": "down",'
    ' "since": "2026-11-01T00:00:00Z", "until": "2026-11-18T09:00:00Z", "ratio": 0.7}\n'
)


def digest(files: SiteFiles) -> str:
    return digest_text(files.read(), Console(width=80, force_terminal=False), every=True)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Runs of 110 days; file system `a` has been slow for 12."""
    files = SiteFiles(tmp_path_factory.mktemp("written"))
    files.days(slow(file_system="a"))
    (path,) = files.perflogs.rglob("*.log")
    return path.read_text(encoding="utf-8").splitlines()[1:]


@pytest.fixture
def files(tmp_path: Path) -> SiteFiles:
    files = SiteFiles(tmp_path)
    write_bands(files.bands)
    files.alerts.mkdir()
    (files.alerts / "here.jsonl").write_text(ACTED)
    return files


def in_form(header: str, row: str) -> str:
    """Return a row of today's form as a line of a perflog with this header."""
    cells = dict(zip(COLUMNS.split("|"), row.split("|"), strict=True))
    return "|".join(cells.get(name, "null") for name in header.split("|"))


def as_far_as(header: str, row: str) -> str:
    """Return a row of today's form with null in the columns that this header lacks."""
    known = header.split("|")
    cells = zip(COLUMNS.split("|"), row.split("|"), strict=True)
    return "|".join(cell if name in known else "null" for name, cell in cells)


def put(files: SiteFiles, name: str, header: str, rows: list[str]) -> None:
    path = files.perflogs / "here" / "local" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{text}\n" for text in (header, *rows)), encoding="utf-8")


def test_a_site_upgraded_through_every_form_has_todays_digest(
    files: SiteFiles, rows: list[str]
) -> None:
    """ReFrame sets a perflog aside as `.h0`, `.h1`, ... when the columns change."""
    headers = [*HEADERS, COLUMNS]
    size = -(-len(rows) // len(headers))
    parts = [rows[begin : begin + size] for begin in range(0, len(rows), size)]
    written = [*zip(headers, parts, strict=True)]
    for number, (header, part) in enumerate(written):
        name = "BenchioFPP.log" + ("" if header == COLUMNS else f".h{number}")
        put(files, name, header, [in_form(header, row) for row in part])
    before = digest(files)
    for path in files.perflogs.rglob("*.log*"):
        path.unlink()
    put(files, "BenchioFPP.log", COLUMNS, [as_far_as(*each) for each in _rows(written)])
    assert before == digest(files)
    assert "degraded" in before
    assert "acknowledged" in before
    assert "ejected" not in before


def _rows(written: list[tuple[str, list[str]]]) -> list[tuple[str, str]]:
    return [(header, row) for header, part in written for row in part]


@pytest.mark.parametrize("header", HEADERS, ids=lambda header: f"{header.count('|') + 1} columns")
def test_a_perflog_of_each_form_has_the_samples(
    header: str, rows: list[str], files: SiteFiles
) -> None:
    some = [line(fullness_percent=50.5, case="unit", nodes=4, attempt=2), rows[-1]]
    read = []
    for columns, form in ((header, in_form), (COLUMNS, as_far_as)):
        put(files, "BenchioFPP.log", columns, [form(header, row) for row in some])
        samples = read_perflogs(files.perflogs)
        assert samples.rejected == ()
        read.append(samples.measured.drop("perf_ref", strict=False))
    assert len(read[0]) == 2
    assert read[0].equals(read[1])


@pytest.mark.parametrize("version", [1, 2, 3, 5])
def test_bands_of_each_form_judge_as_in_todays(version: int) -> None:
    path = GOLDEN / f"golden{f'-{version}' if version > 1 else ''}.yaml"
    content = path.read_bytes()
    newer = content.replace(b"schema: %d" % version, b"schema: 6")
    assert newer != content
    before, after = (parse_bands(each, path) for each in (content, newer))
    assert before == after
    assert before.epochs or before.maintenance


def test_learned_bands_of_each_form_judge_as_in_todays(tmp_path: Path) -> None:
    for version in (3, 4):
        name = f"golden-{version}"
        place = tmp_path / name
        place.mkdir()
        for path in (GOLDEN / name).iterdir():
            text = path.read_text("utf-8")
            (place / path.name).write_text(text.replace(f"schema: {version}", "schema: 6"))
        (learned,) = load_bands(tmp_path, name).epochs
        assert learned in load_bands(GOLDEN, name).epochs


def test_an_action_of_each_form_counts_as_in_todays(files: SiteFiles, rows: list[str]) -> None:
    put(files, "BenchioFPP.log", COLUMNS, rows)
    digests = set()
    for version in range(1, 5):
        (files.alerts / "here.jsonl").write_text(ACTED.replace('a": 1', f'a": {version}'))
        digests.add(digest(files))
    (only,) = digests
    assert "acknowledged" in only


def test_the_first_log_of_alerts_tells_what_todays_does() -> None:
    first = (GOLDEN / "alerts-1.jsonl").read_bytes().splitlines()
    newer = [each.replace(b'"schema": 1', b'"schema": 2') for each in first]
    before, after = (
        stories_in([ALERT_LOG.parse(each)[0] for each in lines]) for lines in (first, newer)
    )
    assert before == after
    assert [each.number for each in before] == [17, 18]
