"""A whole site: which series are expected, what failed or was skipped, and the budget."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from iobands.judge import memory as memory_of_judge
from iobands.judge.detect.prior import Budget
from iobands.judge.memory import read_memory, write_memory
from iobands.snapshot import RESOLVE, Severity, State
from iobands.snapshot.stored import to_json
from iobands.source import kept
from tests.factory import case, daily, days_ago, line, write_bands, write_perflog, write_report
from tests.sites import DAY, EIGHT, Growing, SiteFiles, levels, only, slow


@pytest.fixture
def files(tmp_path: Path) -> SiteFiles:
    return SiteFiles(tmp_path).write(daily([1.5]))


def failed(files: SiteFiles) -> list[str]:
    found = files.read().alerts
    return [alert.subject for alert in found if alert.severity is Severity.FAILED]


def test_a_check_that_passes_again_is_no_failure(files: SiteFiles) -> None:
    entry = case(display_name="Ior", file_system="fast")
    write_report(files.perflogs, [entry], days=1, number=0)
    assert failed(files) == ["Ior"]
    write_report(files.perflogs, [{**entry, "result": "pass"}], number=1)
    assert failed(files) == []


def test_a_check_that_left_the_suite_is_no_failure_for_long(files: SiteFiles) -> None:
    write_report(files.perflogs, [case(display_name="Ior", file_system="x")], days=4, number=0)
    assert failed(files) == ["Ior"]
    write_report(files.perflogs, [], number=1)
    assert failed(files) == []


def test_a_check_that_somebody_stopped_has_not_failed(files: SiteFiles) -> None:
    stopped = {"result": "abort", "fail_phase": "startup", "fail_reason": "aborted"}
    write_report(files.perflogs, [case(display_name="Ior", file_system="x", **stopped)])
    assert failed(files) == []


def test_a_run_of_the_same_name_with_another_case_is_not_the_series(files: SiteFiles) -> None:
    by_hand = case(case="target 7", result="skip", fail_phase=None, skip_reason="Lustre only")
    write_report(files.perflogs, [by_hand])
    assert files.read().alerts == ()


def test_a_failed_build_is_a_failure_and_not_the_series(files: SiteFiles) -> None:
    build = case(display_name="Build", fixture=True, fail_phase="compile")
    write_report(files.perflogs, [build])
    assert failed(files) == ["Build"]
    assert files.read().counts() == {State.CALIBRATING: 1}


def test_what_is_not_installed_is_skipped_and_no_failure(files: SiteFiles) -> None:
    why = "not installed: ior: put it on PATH"
    skip = {"tool": "ior", "result": "skip", "fail_phase": None, "fail_reason": None}
    names = ["IorFPP %file_system=disk", "IorSSF %api=posix"]
    cases = [case(display_name=name, skip_reason=why, **skip) for name in names]
    cases.append(case(display_name="Ior", **skip))  # without a reason
    write_report(files.perflogs, cases)
    site = files.read()
    assert (site.alerts, site.exit_status) == ((), 0)
    assert {each.name: each.reason for each in site.skipped} == {
        **dict.fromkeys(names, why),
        "Ior": "skip",
    }


def test_a_series_of_another_scale_is_superseded(files: SiteFiles) -> None:
    rows = daily([1.5], last=30, gib=1) + daily([1.5] * 4, last=20, gib=1, pattern="ssf")
    # one run, such as by hand, does not supersede a series
    assert files.write(rows + daily([2.5], gib=2)).read().superseded == ()
    site = files.write(rows + daily([2.5, 2.5], gib=2)).read()
    assert site.superseded == ("disk fpp gib=1 write_bw",)
    # a series of another pattern is not superseded but missing
    assert {series.label: series.status.state for series in site.series} == {
        "disk fpp write_bw": State.CALIBRATING,
        "disk ssf write_bw": State.NO_DATA,
    }


@pytest.mark.parametrize(("gib", "said"), [(1000.002, ["2 series have sizes"]), (1000.01, [])])
def test_series_of_nearly_one_size_share_a_name_in_files(
    gib: float, said: list[str], files: SiteFiles
) -> None:
    site = files.write(daily([1.5] * 4, gib=1000.001) + daily([1.5] * 4, gib=gib)).read()
    assert len(site.series) == 2
    assert [each.reason.partition(" that")[0] for each in site.alerts] == said


def test_systems_are_kept_apart(files: SiteFiles) -> None:
    write_perflog(files.perflogs, daily([2.5], system="there"), system="there")
    assert [series.label for series in files.read().series] == [
        "disk fpp system=here write_bw",
        "disk fpp system=there write_bw",
    ]
    (series,) = files.read(system="there").series
    assert (series.label, series.status.value) == ("disk fpp write_bw", 2.5)


def test_the_budget_counts_the_runs_of_all_series_and_groups(files: SiteFiles) -> None:
    rows = daily(levels((60, 1)))
    rows += [row for n in range(3) for row in daily([1.5] * 3, file_system=f"fs{n}")]
    site = files.write(rows).read(false_alarms=2)
    assert site.false_alarms_a_year == 2
    # four series and their group count as daily, the young ones for lack of a known interval
    assert site.threshold == Budget(2, 5 * 365).threshold


def test_a_system_is_judged_alike_alone_and_among_others(files: SiteFiles) -> None:
    files.write(daily(levels((60, 1))))
    others = (levels((60, 1), seed=n) for n in range(30))
    rows = [
        row
        for n, values in enumerate(others)
        for row in daily(values, system="there", file_system=f"fs{n}")
    ]
    write_perflog(files.perflogs, rows, system="there")
    site, sizes = files.read(), []
    together = {each.key: each.status.evidence for each in site.series}
    for system in ("here", "there"):
        alone = files.read(system=system)
        sizes.append(len(alone.series))
        for each in alone.series:
            evidence, among = each.status.evidence, together[each.key]
            assert evidence and among
            assert evidence.threshold == among.threshold
            assert (evidence.down == among.down).all()
    assert sizes == [1, 30]
    here, there = (files.read(system=each).threshold for each in ("here", "there"))
    assert here == 9 < there == site.threshold == Budget(1, 31 * 365).threshold


def test_what_is_not_there_and_what_is_damaged(files: SiteFiles, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        SiteFiles(tmp_path / "elsewhere").read()
    files.bands.mkdir()
    (files.bands / "here.yaml").write_text("schema: 1\nsystem: here\n")
    (alert,) = files.read().alerts
    assert (alert.subject, alert.exit_status) == ("bands of here", 3)
    assert "epochs is missing" in alert.reason
    files.alerts.mkdir()
    (files.bands / "here.yaml").unlink()
    (files.alerts / "here.jsonl").mkdir()
    (alert,) = files.read().alerts
    assert alert.subject == str(files.alerts / "here.jsonl")
    assert alert.reason == "cannot be read: Is a directory"


@pytest.mark.parametrize(
    "name", ["bands/here.yaml", "alerts/here.jsonl", "perflogs/here/alerts.jsonl"]
)
def test_a_link_to_a_file_system_that_is_not_mounted_is_named(files: SiteFiles, name: str) -> None:
    """As if the file did not exist, what it says would silently no longer count."""
    path = files.bands.parent / name
    path.parent.mkdir(exist_ok=True)
    path.symlink_to("/not-mounted/file")
    (alert,) = files.read().alerts
    assert (f"{path}: " in f"{alert.subject}: {alert.reason}", alert.exit_status) == (True, 3)
    assert alert.reason.endswith("cannot be read: No such file or directory")


def test_the_samples_of_a_series_are_a_table(files: SiteFiles) -> None:
    rows = daily([1.0, 2.0]) + daily([3.0], pattern="ssf")
    site = files.write(rows).read()
    found = {series.key.pattern: site.samples.rows(series.rows) for series in site.series}
    assert list(found["fpp"]["perf_value"]) == [1.0, 2.0]
    assert list(found["ssf"]["perf_value"]) == [3.0]


def test_a_site_as_of_an_earlier_time_is_what_it_was_then(tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=levels((105, 1), (15, 0.7), (40, 1)))
    then = site.after(118)
    at = site.now
    site.does("acknowledge")
    known = site.again()
    now = site.after(160)
    assert (then.exit_status, known.exit_status, now.exit_status) == (2, 1, 0)
    past = site.read(at, as_of=True)
    assert past.exit_status == 1
    assert only(past).status.runs == 118
    assert past.alerts[0].since == then.alerts[0].since
    # a moment before, it was not acknowledged
    assert site.read(at - DAY / 96, as_of=True).exit_status == 2


def adds(ago: float, purpose: str) -> Callable[[SiteFiles], object]:
    """Return a function that adds a run of one series this many days ago."""
    when, environ = days_ago(ago), EIGHT[0]["transport"]
    run = {"job_completion_time": when, "perf_value": 1.3, "purpose": purpose, "environ": environ}
    return lambda files: write_perflog(files.perflogs, [line(**run, **EIGHT[0])], "Later.log")


CHANGES: dict[str, Callable[[SiteFiles], object]] = {
    "nothing": lambda files: files.read(),
    "a repeat": adds(0.1, "suspect"),
    "a run that came late": adds(100.1, "scheduled"),
    "an action": lambda files: files.act(RESOLVE, "1", force=True),
    "a band": lambda files: write_bands(files.bands, file_system="b"),
    "other values": lambda files: files.days(slow(0.5), seed=2),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_kept_of_a_judgement_changes_nothing(change: str, tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).days(slow(file_system="a"))
    write_memory(files.perflogs, files.judge().memory)
    memory = read_memory(files.perflogs)
    CHANGES[change](files)
    anew, again = files.judge(), files.judge(memory=memory)
    assert to_json(again.snapshot) == to_json(anew.snapshot)
    assert not again.differing()
    used = sum(
        each.detection.basis.settled(memory[key]) is not None for key, each in again.judged.items()
    )
    # the remembered part ends before the repeat; one file system has the late run, or the action
    of_one = dict.fromkeys(("a run that came late", "an action", "a band"), 4)
    assert used == (of_one | {"other values": 0}).get(change, 8)


def test_a_system_with_a_band_is_remembered(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).days(slow(file_system="a"))
    write_bands(files.bands, file_system="b")
    judged = files.judge()
    write_memory(files.perflogs, judged.memory)
    memory = read_memory(files.perflogs)
    assert memory.keys() == judged.memory.keys()
    for key, each in judged.judged.items():
        assert each.detection.basis.settled(memory[key]) is not None


@pytest.mark.parametrize(
    "damage", ["cut off", "another version", "a byte", "a pipe", "an object", "gone"]
)
def test_a_memory_that_cannot_be_used_is_none(damage: str, tmp_path: Path, monkeypatch) -> None:
    files = SiteFiles(tmp_path).days(slow(file_system="a"))
    write_memory(files.perflogs, files.judge().memory)
    (path,) = files.perflogs.glob("*/judged.memory")
    content = path.read_bytes()
    match damage:
        case "cut off":
            path.write_bytes(content[:-1])
        case "another version":
            monkeypatch.setattr(kept, "_version", lambda: b"0.0.1")
        case "a byte":
            path.write_bytes(content[:999] + bytes([content[999] ^ 1]) + content[1000:])
        case "an object":  # as somebody might write who knows the form
            key, mine = next(iter(memory_of_judge._decoded(content[32:])))
            body = memory_of_judge._encoded([(key, mine)])
            body = body.replace(b"\xa3<f4", b"\xa2|O", 1)
            kept.write_sealed(path, body)
        case "a pipe":
            path.unlink()
            os.mkfifo(path)
        case _:
            path.unlink()
    assert read_memory(files.perflogs) == {}
