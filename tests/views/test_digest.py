"""The digest: a golden text, its order, and what a terminal and a mail can carry."""

from __future__ import annotations

import io
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console

from iobands.judge.site import read_site
from iobands.notify.changes import changes
from iobands.notify.message import message_of
from iobands.notify.settings import NOTIFIED
from iobands.snapshot import Snapshot, State
from iobands.views.digest import (
    ACKNOWLEDGED,
    ATTENTION,
    INFORMATION,
    MOST_NEWS,
    digest_text,
    not_measured,
    sections,
)
from iobands.views.explain import explanation
from iobands.views.format import command_text
from iobands.views.table import sparkline
from tests.conftest import Command
from tests.factory import NOW, case, daily, line, write_perflog, write_report
from tests.fault_table import Observed
from tests.views.sites import dropped, everything, healthy, look

GOLDEN = Path(__file__).with_name("golden")


def text(site: Snapshot, width: int = 100, encoding: str = "utf-8", **options: bool) -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    return digest_text(site, Console(file=stream, width=width), **options)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    monkeypatch.chdir(tmp_path)
    return everything(Path())


@pytest.mark.parametrize(
    ("name", "encoding"), [("digest.txt", "utf-8"), ("digest-ascii.txt", "ascii")]
)
def test_golden_digest(
    site: Snapshot, name: str, encoding: str, request: pytest.FixtureRequest
) -> None:
    found = text(site, encoding=encoding)
    golden = GOLDEN / name
    if request.config.getoption("--store-golden"):
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")
    assert "\x1b" not in found
    found.encode(encoding)


@pytest.mark.parametrize("width", [80, 100, 140])
def test_an_alert_is_one_line(site: Snapshot, width: int) -> None:
    rows = text(site, width).split("SERIES")[0].splitlines()[1:]
    assert max(map(len, rows)) <= width


#: Names that a shell, a program or a terminal would take for something else.
NAMES = ["a'; touch ran; '", "$(touch ran)", "`touch ran`", "--help", "-x", "a; touch ran #"]


@pytest.mark.fault(
    "perflogs", "a name that a shell would run", "in what is to be pasted it is one word"
)
@pytest.mark.parametrize("name", NAMES)
def test_a_suggested_command_runs_nothing_that_stands_in_a_name(
    tmp_path: Path, name: str, iobands: Command, observed: Observed
) -> None:
    values = dropped(0.5)
    write_perflog(tmp_path / "perflogs", daily(values, file_system=name, pattern="fpp"))
    site = look(tmp_path)
    (alert,) = sections(site)[ATTENTION]
    assert alert.subject.startswith(name)
    (begun,) = changes([], site, NOTIFIED)[1]
    message = message_of(begun, site, "").text
    assert pasted(command_text("explain", alert.subject), tmp_path) == ["explain", alert.subject]
    for said in (text(site), message):
        (line,) = [each for each in said.splitlines() if "Next step: iobands" in each]
        assert pasted(line.partition("Next step: ")[2], tmp_path) == ["explain", alert.name]
    (known,) = [each for each in message.splitlines() if each.startswith("If known: ")]
    assert sorted(pasted(known.partition(": ")[2], tmp_path)) == sorted(
        ["acknowledge", alert.name, "--reason", "TEXT"]
    )
    done = iobands("status")
    (line,) = [each for each in done.stdout.splitlines() if "Next step: iobands" in each]
    command, subject = pasted(line.partition("Next step: ")[2], tmp_path)
    explained = iobands(command, "--", subject)
    assert not (tmp_path / "ran").exists()
    observed(
        message=line,
        exit_status=done.returncode,
        left=done.left,
        next_run=subject in explained.stdout,
    )


def pasted(command: str, root: Path) -> list[str]:
    """Return the arguments with which a shell runs `iobands`; a name that begins with - is last."""
    shell = f"iobands() {{ printf '%s\\0' \"$@\"; }}; {command}"
    done = subprocess.run(["sh", "-c", shell], cwd=root, capture_output=True, text=True, check=True)
    words = done.stdout.split("\0")[:-1]
    assert words[-2] == "--" if words[-1][0] == "-" else "--" not in words
    return [each for each in words if each != "--"]


def unfit(root: Path) -> Snapshot:
    reason = "sanity error: lfs setstripe: stripe count asked for is 4, in effect are 3: " + (
        "OST0005 took no files; drain it, or say targets: 3 in the site file"
    )
    name = "BenchioFPP %file_system=scratch %medium=hdd %scale=medium %transport=ucx"
    failed = case(result="fail", fail_reason=reason, display_name=name)
    write_report(root / "perflogs", [case(), failed])
    return look(root)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_mail_has_all_of_a_reason(tmp_path: Path, width: int) -> None:
    site = unfit(tmp_path)
    (reason,) = {each.reason for each in site.alerts if "scratch" in each.subject}
    assert "OST0005 took no files; drain it, or say targets: 3 in the site file" in reason
    found = text(site, width)
    assert reason in " ".join(found.split())
    assert "In full" not in found
    assert max(map(len, found.split("SERIES")[0].splitlines()[1:])) <= width


def test_a_terminal_has_a_line_of_a_reason_and_says_how_to_get_the_rest(tmp_path: Path) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    console = Console(file=stream, width=80, force_terminal=True, color_system=None)
    found = digest_text(unfit(tmp_path), console)
    assert "site file" not in found
    assert "In full: iobands status --all" in found
    assert "site file" in digest_text(unfit(tmp_path), console, every=True)


def test_alerts_are_under_three_headings(site: Snapshot) -> None:
    found = {
        heading: [(each.severity.value, each.subject) for each in alerts]
        for heading, alerts in sections(site).items()
    }
    attention = found[ATTENTION]
    assert attention[0] == ("degraded", "scratch writes")
    assert [severity for severity, _ in attention][1:] == ["no data"] * 3 + ["failed"]
    assert found[ACKNOWLEDGED] == [("degraded", "home fpp write_bw")]
    assert [severity for severity, _ in found[INFORMATION]] == ["improved", "collapsed"]


def test_a_bad_morning_of_many_series_is_on_one_screen(tmp_path: Path) -> None:
    rows = []
    for number in range(120):
        # one third of the series falls, each at a time of its own, so that no cause is common
        after = 6 + 4 * (number // 3) if number % 3 == 0 else 1
        values = dropped(0.5 if after > 1 else 1.0, number, after, runs=220)[-210:]
        rows += daily(values, file_system=f"fs{number}", pattern=f"p{number}", medium="null")
    write_perflog(tmp_path / "perflogs", rows)
    site = look(tmp_path)
    alerts = sections(site)[ATTENTION]
    assert len(alerts) > 24
    screen = text(site, width=80).split("\n\nFor information")[0].split("\n\nSERIES")[0]
    assert len(screen.splitlines()) <= 24
    # but for the first line, which a monitor takes as it is
    assert all(len(line) <= 80 for line in text(site, width=80).splitlines()[1:])
    news = [each for each in site.series if each.status.state.value not in ("healthy",)]
    table = text(site).split("\n\nSERIES")[1].splitlines()
    assert 40 <= len(news) < 60
    assert table[MOST_NEWS + 1] == (
        f"{len(news) - MOST_NEWS} more with news and {120 - len(news)} healthy or calibrating "
        "series: iobands status --all"
    )
    worst = [each for each in news if each.status.state is State.DEGRADED]
    assert all(
        each.label in row for each, row in zip(worst, table[1 : MOST_NEWS + 1], strict=False)
    )
    shown = text(site, every=True)
    assert all(alert.subject in shown for alert in alerts)
    assert all(f"\n{each.label}" in shown for each in site.series)


def test_a_site_that_judges_nothing_yet_says_so(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.5]))
    site = look(tmp_path)
    assert site.exit_status == 0
    assert "calibrating: 19 more runs; 1 series" in text(site).splitlines()[0]


def test_the_age_of_the_newest_run_is_in_the_first_line(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily(healthy()))
    later = NOW + timedelta(days=2)
    site = read_site(tmp_path / "perflogs", tmp_path, tmp_path, now=later)
    first = text(site).splitlines()[0]
    assert first == "IOBANDS OK: no alerts; 1 series; newest run 2 days ago"


def test_a_series_is_a_line_of_a_hundred_columns(site: Snapshot) -> None:
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
    write_perflog(tmp_path / "perflogs", rows)
    found = text(look(tmp_path))
    (written,) = [row for row in found.splitlines() if "write_ratio" in row]
    assert "2.25 [2.12, 2.5]" in written
    read = [row for row in found.splitlines() if "read_ratio" in row]
    assert len(read) == 3
    assert not any("[" in row for row in read)


def test_what_was_in_effect_has_a_column(tmp_path: Path) -> None:
    striped = {"file_system": "ceph", "stripe_count": 4, "stripe_size": 2**20}
    striped |= {"transport_in_effect": "ucx", "hints_in_effect": "cb_nodes=2,romio_cb_write=enable"}
    write_perflog(tmp_path / "perflogs", [*daily([1.5], **striped), *daily([1.5])])
    rows = text(look(tmp_path), 140).splitlines()
    at = next(row for row in rows if row.startswith("SERIES")).index("IN EFFECT")
    assert next(row for row in rows if row.startswith("ceph"))[at:].startswith(
        "4×1 MiB ucx 2 hints "
    )
    assert next(row for row in rows if row.startswith("disk"))[at:].startswith(" ")


def test_rejected_lines(site: Snapshot) -> None:
    few, every = text(site), text(site, rejected=True)
    assert (few.count("is not a finite number"), every.count("is not a finite number")) == (5, 7)


def test_what_is_not_installed_is_no_fault_and_said_once(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.5]))
    why = "not installed: ior: put it on PATH"
    names = ["IorFPP %file_system=disk", "IorFPP %file_system=memory", "IorSSF %api=posix"]
    skip = {"tool": "ior", "result": "skip", "fail_phase": None, "fail_reason": None}
    cases = [case(display_name=name, skip_reason=why, **skip) for name in names]
    cases.append(case(display_name="Mdtest", **skip))
    write_report(tmp_path / "perflogs", cases)
    site = look(tmp_path)
    assert (site.alerts, site.exit_status) == ((), 0)
    assert not_measured(site) == [
        ("IorFPP, IorSSF", "not installed", "ior: put it on PATH"),
        ("Mdtest", "skipped", "skip"),
    ]


def test_other_peoples_text_does_not_upset_a_terminal(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", [line(file_system="\x1b[2Ja", perf_value="\x1b")])
    assert "\x1b" not in text(look(tmp_path))


def test_sparklines() -> None:
    assert sparkline([]) == ""
    assert sparkline([1.0, 8.0]) == "▁█"
    assert len(sparkline([3.0])) == 1
    assert len(set(sparkline([3.0] * 5))) == 1


#: An expanded file system: new OSTs are empty, and get most of the eight files.
EXPANDED = {
    "busiest_target": 2.67,
    "free_spread_percent": 80,
    "fullest_target": "OST0003",
    "fullest_target_percent": 97,
}
WHY = (
    "  disk of here: the busiest target has 2.67 × its round-robin share of files: OST0003 is 97 % "
    "full, and targets with more free space get more files"
)


def unevenly(
    root: Path, newest: dict[str, object], value: float = 1.0, **fields: object
) -> Snapshot:
    values = [1.0, 1.01, 0.99, 1.02, 0.98] * 4
    usual = {"busiest_target": 1, "free_spread_percent": 3, **fields}
    lines = [*daily(values, last=1.25, **usual), *daily([value], **{**usual, **newest})]
    write_perflog(root / "perflogs", lines)
    return look(root)


def test_the_morning_after_an_expansion_says_why_files_are_far_from_rotation(
    tmp_path: Path,
) -> None:
    site = unevenly(tmp_path, EXPANDED)
    assert WHY in text(site, width=200).splitlines()
    assert not site.alerts


def test_a_low_run_far_from_rotation_has_that_as_a_candidate(tmp_path: Path) -> None:
    # all files on one target of four, by chance
    site = unevenly(tmp_path, {"busiest_target": 4}, value=0.31)
    (series,) = site.series
    (line,) = [each for each in text(site, width=200).splitlines() if "round-robin" in each]
    assert line == (
        "  disk of here: the busiest target has 4 × its round-robin share of files; this may be "
        f"why {series.label} is low"
    )
    assert "Targets" in explanation(site, series)


def test_a_low_run_no_less_even_than_usual_has_another_cause(tmp_path: Path) -> None:
    site = unevenly(tmp_path, {}, value=0.31, busiest_target=3)
    assert "rotation" not in text(site)


@pytest.mark.parametrize(
    "newest",
    [
        {"busiest_target": 4},  # as fast as ever
        {**EXPANDED, "busiest_target": 1.5},
        {**EXPANDED, "case": "target 7"},  # pinned
    ],
)
def test_what_needs_no_line_has_none(tmp_path: Path, newest: dict[str, object]) -> None:
    case = {"case": newest["case"]} if "case" in newest else {}
    assert "rotation" not in text(unevenly(tmp_path, newest, **case))
