"""`iobands accept` with a real ReFrame and a trivial check, whose rates the test chooses."""

from __future__ import annotations

import hashlib
import re
import shutil
from functools import cache
from pathlib import Path

import pytest

from iobands.bands.contract import MeasuredBy
from iobands.measure import describe
from iobands.model import PERFLOG_HEADER, perflog_line
from iobands.source.acceptance import Begun, collect
from tests.commands.calling import call
from tests.commands.fake_root import make_root, measured

pytestmark = pytest.mark.machine

pytest.importorskip("reframe")

CHECK = """

@rfm.simple_test
class Promised(Base):
    tags = {"full"}
    valid_systems = ["here:local"]
    valid_prog_environs = ["builtin"]
    file_system = "promised"
    repeats = variable(int, value=1, loggable=True)
    time_limit = "60s"
    executable = __file__.replace("checks/trivial.py", "next-rate")


@rfm.simple_test
class Second(Promised):
    pattern = "ssf"
"""
#: Prints the first line of the file beside it and removes it there.
NEXT = """\
#!/bin/sh
rates=${0%/*}/rates
read -r rate <"$rates" || exit 0
sed -i 1d "$rates"
echo "write $rate"
"""
SITE = """\
system = {"name": "here", "partitions": [{"name": "local", "extras": {"filesystems": {}}}]}
"""
CONTRACT = """\
schema: 1
system: here
title: "Hostile <b>|title|</b> \\e[31m"
spacing: 0s
lasting: 0s
lines:
  - name: "writes $x_1$ | `id`"
    match: {pattern: fpp, file_system: promised, variable: write_bw}
    rate: 10
    unit: GiB/s
    runs: 8
"""


def make_promised(directory: Path) -> Path:
    root = make_root(directory)
    with (root / "checks" / "trivial.py").open("a") as stream:
        stream.write(CHECK)
    script = root / "next-rate"
    script.write_text(NEXT)
    script.chmod(0o755)
    (root / "config" / "systems" / "here.py").write_text(SITE)
    (root / "contract.yaml").write_text(CONTRACT)
    return root


@pytest.fixture
def promised(tmp_path: Path) -> Path:
    return make_promised(tmp_path)


@pytest.fixture(scope="module")
def once_stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of an acceptance that stopped, as its third run gave no rate; tests copy it."""
    root = make_promised(tmp_path_factory.mktemp("stopped"))
    status, said = accept(root, rates="10 10")
    assert status == 3, said
    assert "gave no rate" in said
    assert "2 of 8" in said
    return root


@pytest.fixture
def stopped(once_stopped: Path, tmp_path: Path) -> Path:
    return shutil.copytree(once_stopped, tmp_path / "root")


@pytest.fixture
def described_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls of one site share the list of checks, which ReFrame takes long to make."""
    known = cache(describe)
    monkeypatch.setattr("iobands.measure.describe", lambda root, words: known(root, (*words,)))


def accept(root: Path, *arguments: str, rates: str = "") -> tuple[int, str]:
    if rates:
        (root / "rates").write_text(rates.replace(" ", "\n") + "\n")
    return call("accept", str(root / "contract.yaml"), "--site", str(root), *arguments)


def results(root: Path) -> Path:
    return root / "acceptances" / "contract"


def test_a_line_is_measured_until_it_is_decided(promised: Path) -> None:
    status, said = accept(promised, rates="10 10 10 10 10 10 10 10")
    # 8 runs of 0.5 GiB, each on one node for a minute
    assert re.search(r"^all +8 +0\.00391 +0\.133$", said, re.MULTILINE), said
    assert status == 0, said
    # the fourth run decides, as worked out in tests/judge/test_acceptance.py
    assert (promised / "rates").read_text().split() == ["10"] * 4
    assert re.search(r"met +10 +10 GiB/s +4 of 8", said)
    report = (results(promised) / "report.md").read_text()
    assert "**1 met** of 1 line." in report
    assert "Decided by run 4" in report
    assert "\x1b" not in said + report
    assert "# Acceptance: Hostile &lt;b>\\|title\\|&lt;/b> ?\\[31m" in report

    # the hash in the report is that of the list of all files
    sums = (results(promised) / "SHA256SUMS").read_bytes()
    assert hashlib.sha256(sums).hexdigest() in report
    names = {line.split("  ")[1] for line in sums.decode().splitlines()}
    assert names >= {"contract.yaml", "begun.json", "perflogs/here/local/Promised.log"}
    assert sum(name.startswith("perflogs/here/reports/") for name in names) == 4

    # these runs count only for the acceptance, and nothing is measured a second time
    assert not measured(promised).series
    assert accept(promised)[0] == 0
    assert (promised / "rates").read_text().split() == ["10"] * 4


def test_what_was_missed_can_be_checked_elsewhere_and_an_edit_shows(
    promised: Path, tmp_path: Path
) -> None:
    status, said = accept(promised, rates="9 9 9 9 9 9")
    assert (status, "missed" in said) == (2, True), said
    copy = tmp_path / "sent"
    shutil.move(results(promised), copy)
    shutil.rmtree(promised)
    status, said = call("accept", "--check", str(copy))
    assert (status, "No file has changed" in said) == (2, True), said

    for name, before, after in (
        ("SHA256SUMS", "0", "1"),
        ("perflogs/here/local/Promised.log", "|9.0|", "|10.0|"),
        ("contract.yaml", "rate: 10", "rate: 9"),
        ("report.md", "**1 missed**", "**1 met**"),
        ("begun.json", "Promised", "Promise"),
    ):
        whole = (copy / name).read_text()
        assert before in whole, name
        (copy / name).write_text(whole.replace(before, after))
        status, said = call("accept", "--check", str(copy))
        assert status == 3, said
        found = "report.md" if name == "SHA256SUMS" else name  # the report has its checksum
        assert re.search(f"changed: {found}", said), said
        (copy / name).write_text(whole)
    (copy / "further").write_text("")
    assert "changed: further" in call("accept", "--check", str(copy))[1]
    (copy / "further").unlink()
    assert call("accept", "--check", str(copy))[0] == 2


def test_an_acceptance_goes_on_where_it_stopped(stopped: Path) -> None:
    status, said = accept(stopped, rates="10 10 10")
    assert (status, "4 of 8" in said) == (0, True), said
    report = (results(stopped) / "report.md").read_text()
    assert "1 run gave no rate" in report


def test_what_a_check_never_measures_is_not_measured_until_the_limit(promised: Path) -> None:
    line = "  - {name: reads, match: {pattern: fpp, file_system: promised, variable: read_bw}, "
    other = f"{line}rate: 10, unit: GiB/s, runs: 8}}\n"
    (promised / "contract.yaml").write_text(CONTRACT + other)
    status, said = accept(promised, rates="10 10 10 10 10 10 10 10")
    assert (status, "gave no rate: reads: no rate" in said) == (3, True), said
    assert (promised / "rates").read_text().split() == ["10"] * 4


def test_changed_results_are_taken_from_the_perflogs_again(stopped: Path) -> None:
    log = results(stopped) / "perflogs" / "here" / "local" / "Promised.log"
    log.write_text(log.read_text().replace("|10.0|", "|1.5|"))
    status, said = accept(stopped, rates="10 10 10")
    assert status == 0, said
    assert "was changed" in said
    assert "|1.5|" not in log.read_text()
    assert call("accept", "--check", str(results(stopped)))[0] == 0


def test_a_contract_that_was_edited_is_refused(stopped: Path) -> None:
    (stopped / "contract.yaml").write_text(CONTRACT.replace("rate: 10", "rate: 8"))
    status, said = accept(stopped)
    assert status == 3
    assert "line 9 is 'rate: 8' and was 'rate: 10'" in said


@pytest.mark.usefixtures("described_once")
def test_what_a_line_selects_is_one_measurement(promised: Path) -> None:
    third = '\n\n@rfm.simple_test\nclass Third(Promised):\n    hints = "cb-on"\n'
    with (promised / "checks" / "trivial.py").open("a") as stream:
        stream.write(third)

    def said_of(before: str, after: str) -> str:
        (promised / "contract.yaml").write_text(CONTRACT.replace(before, after))
        status, said = accept(promised)
        assert (status, results(promised).exists()) == (3, False), said
        return " ".join(said.split())

    found = said_of("pattern: fpp", "pattern: fqp")
    assert "contract.yaml, line 8: " in found
    assert "pattern is 'fqp'; write one of fpp, ssf (did you mean fpp?)" in found
    found = said_of("variable:", "nodes: 1, tasks: 8, variable:")
    assert "tasks is 8; write one of 4" in found
    assert "selects 2 measurements; also name hints (cb-on, default)" in said_of("_", "_")
    assert "system is 'there'; write one of here" in said_of("system: here", "system: there")


@pytest.mark.usefixtures("described_once")
def test_results_of_another_acceptance_are_refused(promised: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "results"
    elsewhere.mkdir()
    (elsewhere / "begun.json").write_text(
        '{"schema": 1, "system": "there", "began": "2026-11-01T00:00:00Z", "contract": "",'
        ' "version": "1", "lines": []}'
    )
    status, said = accept(promised, "--results", str(elsewhere))
    assert (status, "has results of there" in said) == (3, True), said
    (elsewhere / "begun.json").write_text("{")
    assert "is damaged" in accept(promised, "--results", str(elsewhere))[1]
    (elsewhere / "begun.json").rename(elsewhere / "other")
    assert "has other files" in accept(promised, "--results", str(elsewhere))[1]
    status, said = accept(promised, "--results", str(promised / "next-rate" / "x"))
    assert (status, "Not a directory" in said) == (3, True), said


def test_a_spent_budget_is_said(promised: Path) -> None:
    (promised / "config" / "systems" / "here.py").write_text(
        SITE.replace('"filesystems"', '"daily_budget": {"node_hours": 0.02}, "filesystems"')
    )
    status, said = accept(promised, rates="10 10 10")
    # at a minute per run, one run fits into 0.02 node hours
    assert status == 3, said
    assert "daily budget" in said
    assert (promised / "rates").read_text().split() == ["10"] * 2


def test_a_dry_run_writes_nothing(promised: Path) -> None:
    status, said = accept(promised, "--dry-run")
    assert (status, "8" in said, results(promised).exists()) == (0, True, False), said
    assert call("accept")[0] == 3
    assert call("accept", "--check", str(promised))[0] == 3


def test_a_line_may_have_what_only_unicode_takes_for_its_end(tmp_path: Path) -> None:
    by = MeasuredBy("Promised", "local", "builtin")
    begun = Begun(
        system="here", began="2026-11-20T00:00:00+00:00", contract="", version="1", lines=(by,)
    )
    row = {
        "job_completion_time": "2026-11-21T00:00:00+00:00", "display_name": "Promised",
        "purpose": "acceptance", "system": "here", "job_nodelist": "n1\u2028n2\x85n3",
    }  # fmt: skip
    log = tmp_path / "perflogs" / "here" / "local" / "Promised.log"
    log.parent.mkdir(parents=True)
    log.write_text(f"{PERFLOG_HEADER}\n{perflog_line(row)}\n", encoding="utf-8", newline="\n")
    collect(tmp_path / "perflogs", tmp_path / "copy", begun)
    assert (tmp_path / "copy/perflogs/here/local/Promised.log").read_bytes() == log.read_bytes()
