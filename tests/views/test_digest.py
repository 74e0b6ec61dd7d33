"""The digest: a golden text, its order, and its form on a terminal and in a mail."""

from __future__ import annotations

import io
import re
import subprocess
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console

from iobands.judge.site import read_site
from iobands.notify.changes import changes, message_of
from iobands.notify.outbox import NOTIFIED
from iobands.snapshot import (
    ACKNOWLEDGE,
    FELL,
    Acknowledgement,
    Action,
    Alert,
    AlertEvent,
    Member,
    Ratio,
    Severity,
    Snapshot,
    State,
)
from iobands.views.alert_lines import ACKNOWLEDGED, ATTENTION, INFORMATION, sections
from iobands.views.digest import SCREEN, digest_text, explanation
from iobands.views.notes import not_measured
from iobands.views.writing import command_text, sparkline, summary
from tests.conftest import Command
from tests.factory import NOW, case, daily, line, write_perflog, write_report
from tests.fault_table import Observed
from tests.sites import DAY, SiteFiles, levels
from tests.views.sites import acknowledge, dropped, everything, healthy, look
from tests.views.sites import site as made_up

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


def test_a_terminal_keeps_the_characters_that_it_has(tmp_path: Path) -> None:
    found = text(unevenly(tmp_path, EXPANDED), encoding="latin-1")
    assert "2.67 × its" in found
    assert "−" not in found


@pytest.mark.parametrize("width", [80, 100, 140])
def test_an_alert_is_one_line(site: Snapshot, width: int) -> None:
    rows = text(site, width).split("CHECK ")[0].splitlines()[1:]
    assert max(map(len, rows)) <= width


#: Names with a special meaning for a shell or a program.
NAMES = ["a'; touch ran; '", "$(touch ran)", "`touch ran`", "--help", "-x", "a; touch ran #"]


@pytest.mark.fault("perflogs", "a name that a shell would run", "quoted in the commands to paste")
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
    (known,) = [each for each in message.splitlines() if each.startswith("If the cause is known: ")]
    assert sorted(pasted(known.partition(": ")[2], tmp_path)) == sorted(
        ["acknowledge", alert.name, "--reason", "TEXT"]
    )
    done = iobands("status")
    (line,) = [each for each in done.stdout.splitlines() if "Next step: iobands" in each]
    command, subject = pasted(line.partition("Next step: ")[2], tmp_path)
    explained = iobands(command, "--", subject)
    assert not (tmp_path / "ran").exists()
    observed(**done.cells(line), next_run=subject in explained.stdout)


def pasted(command: str, root: Path) -> list[str]:
    """Return the arguments that a shell passes to `iobands`; `--` must precede a last `-...`."""
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
    assert max(map(len, found.split("CHECK ")[0].splitlines()[1:])) <= width


def test_a_narrow_terminal_breaks_no_name(tmp_path: Path) -> None:
    names = [f"a pattern-with-a-long-name-{number}" for number in range(3)]
    found = made_up(tmp_path, *names, factors={names[0]: 0.5})
    lines = on_terminal(found, 46)
    place = lines.index("CHECK  WRITE  READ  STATE")
    assert lines[place + 1] == names[0]
    assert re.fullmatch(r" {6}\S+ GiB/s  −\d\d %  -  degraded", lines[place + 2])
    assert f"  degraded  1 {names[0]}" in lines


def test_a_series_that_has_degraded_shows_no_old_rate_as_its_newest(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).write(daily(levels((105, 1), (15, 0.5))))
    (row,) = [line for line in text(files.read()).splitlines() if line.startswith("disk fpp")]
    assert re.fullmatch(r"disk fpp  \S+ GiB/s  −\d\d % +-  degraded", row)
    later = text(files.read(NOW + 4 * DAY))
    (row,) = [line for line in later.splitlines() if line.startswith("disk fpp")]
    assert row.split() == ["disk", "fpp", "no", "data", "-", "degraded"]


def test_a_pane_of_a_few_columns_ends_no_command(site: Snapshot) -> None:
    assert on_terminal(site, 3) == on_terminal(site, 20)


def test_a_heading_is_no_wider_than_a_narrow_terminal(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", [*daily(healthy(30)), *daily([1.5], last=-3)])
    said = text(look(tmp_path), 40, every=True)
    assert "\nSet aside: dated in the future by a\n  wrong clock\n" in said


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_command_at_the_end_of_a_reason_can_be_pasted(site: Snapshot, width: int) -> None:
    remedy = "iobands maintenance end --system a-system-with-a-long-name"
    why = f"jane did not end it (new firmware); runs since then are judged: {remedy}"
    alert = Alert(Severity.FAILED, "maintenance", since=NOW, reason=why)
    said = text(replace(site, alerts=(alert,)), width).replace(" \\\n", "")
    assert re.search(r" +".join(remedy.split()) + "$", said, re.M)


def test_an_acknowledgement_that_is_over_is_below_its_alert(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily(healthy(100)))
    site = look(tmp_path)
    member = Member(site.series[0], Ratio(0.7, 0.65, 0.75), 2.0)
    done = Action(ACKNOWLEDGE, NOW - timedelta(days=9), "jane", "a slow switch", ())
    fell = AlertEvent(NOW - timedelta(days=2), 1, FELL, names=("x",))
    alert = Alert(Severity.DEGRADED, "work ssf read_bw", (member,), NOW, number=2)
    over = replace(alert, subject="scratch fpp", number=1, events=(fell,))
    over = replace(over, acknowledgement=Acknowledgement(done))
    assert (over.is_quiet, over.worse_since(done.when)) == (False, fell)
    lines = text(replace(site, alerts=(over, alert)), 80).splitlines()
    begin = lines.index("Needs attention")
    assert lines[begin + 1 : begin + 5] == [
        "  degraded  1 scratch fpp       1.4 GiB/s, was 2 (−30 %)  since 21 Nov",
        "      worse on 19 Nov 2026, after it was acknowledged 12 Nov 2026 01:30 by jane:",
        "      a slow switch",
        "  degraded  2 work ssf read_bw  1.4 GiB/s, was 2 (−30 %)  since 21 Nov",
    ]


def test_a_terminal_has_a_line_of_a_reason_and_says_how_to_get_the_rest(tmp_path: Path) -> None:
    found = on_terminal(unfit(tmp_path))
    assert not is_whole(found, "site file")
    assert "  In full: iobands status --all" in found
    assert is_whole(on_terminal(unfit(tmp_path), every=True), "site file")


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


def on_terminal(site: Snapshot, width: int = 80, **options: bool) -> list[str]:
    """Return the lines of the digest on a terminal without colours."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    console = Console(file=stream, width=width, force_terminal=True, color_system=None)
    return digest_text(site, console, **options).splitlines()


def is_whole(lines: list[str], words: str) -> bool:
    """Return whether every word of `words` is unbroken in the lines."""
    return set(words.split()) <= {word for line in lines for word in line.split()}


@pytest.fixture(scope="module")
def bad_morning(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Return a site of 300 series on a morning on which much went wrong at once."""
    root = tmp_path_factory.mktemp("morning")
    rows = []
    for number in range(150):
        # a third of the checks falls, each at a time of its own, so that no cause is common
        after = 6 + 4 * (number // 3) if number % 3 == 0 else 1
        falls = 0.5 if after > 1 else 1.0
        fields = {"file_system": f"fs{number}", "pattern": "ssf", "hints": "more-aggregators"}
        fields |= {"medium": "null"}
        for seed, variable in ((0, "write_bw"), (200, "read_bw")):
            values = dropped(falls if seed == 0 else 1.0, seed + number, after, runs=220)[-210:]
            values = values[:-1] if number in (1, 2) else values
            last = 10.25 if number in (1, 2) else 0.25
            rows += daily(values, last=last, perf_var=variable, **fields)
    rows += [line(perf_value="x")] * 7
    write_perflog(root / "perflogs", rows)
    skip = {"result": "skip", "fail_phase": None, "fail_reason": None}
    skip["skip_reason"] = "not installed: ior: put it on PATH"
    failed = case(display_name="Ior %x=1", file_system="x")
    write_report(root / "perflogs", [failed, case(display_name="IorFPP", tool="ior", **skip)])
    acknowledge(root, file_system="fs0")
    return look(root)


def test_a_bad_morning_of_300_series_is_on_one_screen(bad_morning: Snapshot) -> None:
    site = bad_morning
    assert len(site.series) == 300
    found = on_terminal(site)
    assert len(found) <= SCREEN == 24
    assert max(map(len, found)) <= 80
    mail = text(site, width=80).splitlines()
    assert len(mail) <= SCREEN
    # but for the first line, which a monitor takes as it is
    assert max(map(len, mail[1:])) <= 80
    alerts = sections(site)[ATTENTION]
    assert len(alerts) > 24
    assert [line.split()[1] for line in found if line.startswith("  degraded  ")][:5] == [
        str(each.number) for each in alerts[:5]
    ]
    (hidden,) = (line for line in found if line.startswith("  and "))
    shown = [line for line in found[: found.index(hidden)] if line.startswith("  degraded  ")]
    assert len(shown) >= 5
    assert hidden == f"  and {len(alerts) - len(shown)} more: iobands status --all"
    (rest,) = [line for line in found if "healthy or calibrating" in line]
    (head,) = [place for place, line in enumerate(found) if line.startswith("CHECK ")]
    rates = found[head + 1 : found.index(rest)]
    news = {each.key.file_system for each in site.series if each.status.state is not State.HEALTHY}
    assert rest.split()[0] == str(len(news) - len(rates))
    assert f", {150 - len(news)} healthy or calibrating: iobands status --all" in rest
    assert all(row.endswith("degraded") for row in rates)


def test_long_options_of_a_digest_are_said_once(bad_morning: Snapshot) -> None:
    site = replace(bad_morning, only="a-system-with-a-long-name", is_past=True)
    found = on_terminal(site)
    assert len(found) <= SCREEN
    options = "--system a-system-with-a-long-name --as-of 2026-11-21T01:30:00Z"
    assert f"Add to commands: {options}" in " ".join(" ".join(found).split())
    assert len([line for line in found if "--system" in line]) == 1
    short = on_terminal(replace(bad_morning, is_past=True))
    assert "  Next step: iobands explain 1 --as-of 2026-11-21T01:30:00Z" in short


def test_all_of_a_bad_morning_has_everything(bad_morning: Snapshot) -> None:
    shown = text(bad_morning, every=True)
    assert all(alert.subject in shown for alert in sections(bad_morning)[ATTENTION])
    assert all(f"\n{each.key.file_system} ssf " in shown for each in bad_morning.series)


@pytest.mark.parametrize("width", [80, 100, 200])
def test_a_wider_terminal_shows_the_same(bad_morning: Snapshot, width: int) -> None:
    assert on_terminal(bad_morning, width) == on_terminal(bad_morning)


def test_a_site_that_judges_nothing_yet_says_so(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.5]))
    site = look(tmp_path)
    assert site.exit_status == 0
    assert "calibrating: at least 20 more runs; 1 series" in text(site).splitlines()[0]
    for runs, said in (
        (19, "at least 2 more runs"),
        (20, "at least one more run"),
        (21, "no alerts"),
    ):
        write_perflog(tmp_path / "perflogs", daily(healthy()[:runs]))
        assert said in text(look(tmp_path)).splitlines()[0]  # the 21st is the first one judged


def test_rates_are_shown_even_if_none_has_news_and_not_all_fit(tmp_path: Path) -> None:
    rows = [row for n in range(30) for row in daily([1.5], file_system=f"fs{n:02}")]
    write_perflog(tmp_path / "perflogs", rows)
    found = on_terminal(look(tmp_path))
    shown = [line for line in found if re.match(r"fs\d\d ", line)]
    # 24 lines, less three of the state, an empty one, the headings and the last one
    assert (len(found), len(shown)) == (24, 18)
    assert found[-1] == "12 checks healthy or calibrating: iobands status --all"


def test_the_age_of_the_newest_run_is_in_the_first_line(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily(healthy()))
    later = NOW + timedelta(days=2)
    site = read_site(tmp_path / "perflogs", tmp_path, tmp_path, now=later)
    first = text(site).splitlines()[0]
    assert first == "IOBANDS OK: no alerts; 1 series; newest run 2 days ago"


def test_a_check_is_a_row_with_its_writes_and_reads(tmp_path: Path) -> None:
    rows = [*daily([2.0] * 30), *daily([4.0] * 29 + [3.0], perf_var="read_bw")]
    rows += daily([100.0] * 30, perf_var="create_rate", perf_unit="1/s", pattern="metadata-easy")
    rows += daily([200.0] * 30, perf_var="stat_rate", perf_unit="1/s", pattern="metadata-easy")
    write_perflog(tmp_path / "perflogs", rows)
    found = text(look(tmp_path)).splitlines()
    table = found[next(n for n, line in enumerate(found) if line.startswith("CHECK")) :]
    assert [line.split() for line in table] == [
        ["CHECK", "WRITE", "READ", "STATE"],
        ["disk", "fpp", "2", "GiB/s", "+0", "%", "3", "GiB/s", "−25", "%", "healthy"],
        ["disk", "metadata-easy", "create_rate", "100", "1/s", "+0", "%", "-", "healthy"],
        ["disk", "metadata-easy", "stat_rate", "-", "200", "1/s", "+0", "%", "healthy"],
    ]


def test_a_ratio_has_its_interval_in_its_row(tmp_path: Path) -> None:
    of_case = {"case": "cray-hdf5-dump", "perf_unit": "1"}
    rows = [*daily([0.5, 2.25], perf_var="write_ratio", **of_case)]
    rows += daily([0.4, 2.125], perf_var="write_ratio_lower", **of_case)
    rows += daily([0.6, 2.5], perf_var="write_ratio_upper", **of_case)
    # a ratio of too few pairs for an interval, and an interval of an earlier run
    rows += daily([0.75], perf_var="read_ratio", **of_case)
    rows += daily([0.625], last=2, perf_var="read_ratio_lower", **of_case)
    rows += daily([0.875], last=2, perf_var="read_ratio_upper", **of_case)
    write_perflog(tmp_path / "perflogs", rows)
    found = text(look(tmp_path))
    (row,) = [row for row in found.splitlines() if "fpp ratio " in row]
    assert "2.25 [2.13, 2.5]" in row  # 2.125
    assert row.split()[-2:] == ["0.75", "calibrating"]
    assert len([row for row in found.splitlines() if "fpp ratio_" in row]) == 2


def test_a_ratio_has_a_sign_for_its_unit(tmp_path: Path) -> None:
    of_case = {"case": "cray-hdf5-dump", "perf_unit": "1", "perf_var": "write_ratio"}
    write_perflog(tmp_path / "perflogs", daily([0.5, 2.25], **of_case))
    site = look(tmp_path)
    said = explanation(site, site.series[0], runs=2)
    assert "\nNewest       2.25 × at 20 Nov 2026 19:30: no band\n" in said
    assert "\n  19 Nov 2026 19:30   0.5 ×  no band" in said


def test_rejected_lines(site: Snapshot, tmp_path: Path) -> None:
    few, every = text(site), text(site, rejected=True)
    said = "is not a finite number"
    # if there is no room for them, the digest says how to see them
    assert (few.count(said), every.count(said)) == (0, 7)
    assert "\nRejected: 7 lines: iobands status --rejected\n" in few
    write_perflog(tmp_path / "other/perflogs", [line(perf_value="x")] * 7)
    quiet = text(look(tmp_path / "other"))
    assert quiet.count(said) == 5
    assert "\n  and 2 more: iobands status --rejected\n" in quiet


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
        "IorFPP, IorSSF: not installed: ior: put it on PATH",
        "Mdtest: skipped: skip",
    ]


def test_checks_that_fail_for_one_reason_are_one_line(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([1.5]))
    cases = [
        case(display_name=name, file_system="fast", fail_phase="build", fail_reason=reason)
        for name, reason in (("Ior", "no mpif90"), ("Mdtest", "no mpif90"), ("Io500", "no cmake"))
    ]
    cases += [
        case(display_name=f"F{n}", file_system="fast", fail_phase="run", fail_reason=reason)
        for n, reason in enumerate(["open of /a/f0 failed: nope", "sync of /a/f1 failed: nope"])
    ]
    write_report(tmp_path / "perflogs", cases)
    site = look(tmp_path)
    assert [line for line in text(site).splitlines() if "  failed" in line] == [
        "  failed  Ior and 1 more  on here:local in build: no mpif90",
        "  failed  Io500           on here:local in build: no cmake",
        "  failed  F0 and 1 more   on here:local in run: open of /a/f0 failed: nope",
    ]
    assert "In full: iobands status --all" in text(site)
    assert text(site, every=True).count("in build: no mpif90") == 2
    assert summary(site).startswith("IOBANDS UNKNOWN: alerts: 5 failed")


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
    "disk of here: the busiest target has 2.67 × its round-robin share of files: OST0003 is 97 % "
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
    assert WHY in " ".join(text(site).split())
    assert not site.alerts


def test_a_low_run_far_from_rotation_has_that_as_a_candidate(tmp_path: Path) -> None:
    # all files on one target of four, by chance
    site = unevenly(tmp_path, {"busiest_target": 4}, value=0.31)
    (series,) = site.series
    assert " ".join(text(site).split()).endswith(
        "disk of here: the busiest target has 4 × its round-robin share of files; this may be "
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
