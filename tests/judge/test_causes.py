"""The cause of an alert: right or unknown on simulated sites, with odds worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.alarms.causes import BROKEN, alerts, verdict
from iobands.judge.causes import clear_cause
from iobands.snapshot import CAUSED, Alert, AlertEvent, Cause, CauseKind, Snapshot
from iobands.source.action_log import ALERT_LOG, alert_log
from iobands.views.writing import odds_text
from tests.factory import NOW, daily, write_perflog
from tests.sites import DAY, SiteFiles

RUNS, SLOW = 200, 15


def rows(
    seed: int,
    factor: float = 1.0,
    since: dict[str, object] | None = None,
    before: dict[str, object] | None = None,
    **fields: object,
) -> list[str]:
    """Return runs of a series; the last `SLOW` are times `factor` and have the fields `since`."""
    values = 2 * np.exp(np.random.default_rng(seed).normal(0, 0.08, RUNS))
    values[-SLOW:] *= factor
    return [
        *daily(values[:-SLOW].tolist(), last=0.25 + SLOW, **fields, **(before or {})),
        *daily(values[-SLOW:].tolist(), **fields, **(since or {})),
    ]


def site(root: Path, *series: list[str]) -> Snapshot:
    return SiteFiles(root).write([line for each in series for line in each]).read()


def only(found: Snapshot) -> Alert:
    (alert,) = [each for each in found.alerts if each.number]
    return alert


CHANGES = [
    ({"targets_inactive": 0, "targets_active": 12}, {"targets_inactive": 1, "targets_active": 11},
     CauseKind.TARGET_OUT, "1 of 12 targets out of service"),
    ({}, {"suite_version": "0.2.0"}, CauseKind.VERSION, "suite version 0.2.0, was 0.1.0"),
    ({"transport_in_effect": "ucx"}, {"transport_in_effect": "tcp"},
     CauseKind.TRANSPORT, "transport tcp, was ucx"),
    ({"hints_in_effect": "a=1,b=2"}, {"hints_in_effect": "a=1,b=3"}, CauseKind.HINTS,
     "b=3, was b=2"),
    ({}, {"fullness_percent": 97}, CauseKind.FULLNESS, "a 97 % full, was 12.5 %"),
    ({}, {"other_jobs": 90}, CauseKind.LOAD, "other jobs 90, was 0"),
    ({"stripe_size": 2**20}, {"stripe_size": 2**16}, CauseKind.LAYOUT,
     "stripe size 65536, was 1048576"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "since", "kind", "what"), CHANGES)
def test_what_changed_with_all_members_and_with_no_other_is_the_cause(
    tmp_path: Path, before: dict, since: dict, kind: CauseKind, what: str
) -> None:
    fallen = [
        rows(seed, 0.6, since, before, file_system="a", pattern=pattern)
        for seed, pattern in enumerate(("fpp", "ssf"))
    ]
    alert = only(site(tmp_path, *fallen, rows(3, file_system="b", **before)))
    assert alert.cause is not None
    assert (alert.cause.kind, alert.cause.what) == (kind, what)
    assert alert.cause.since == NOW - (SLOW - 0.75) * DAY


def test_targets_are_named_by_the_runs_of_their_own_system(tmp_path: Path) -> None:
    # both systems have a file system of this name, and each lost a different target of it
    for system, lost in (("elsewhere", 1), ("here", 2)):
        every = [f"{number}:1" for number in range(4)]
        left = [f"{number}:1" for number in range(4) if number != lost]
        since, before = (
            {
                "targets_inactive": 4 - len(targets),
                "targets_active": len(targets),
                "target_bandwidths": f"write_bw={','.join(targets)}",
            }
            for targets in (left, every)
        )
        lines = rows(lost, 0.6, since, before, system=system, file_system_type="lustre")
        write_perflog(tmp_path / "perflogs", lines, system=system)
    found = [each for each in SiteFiles(tmp_path).read().alerts if each.number]
    assert {each.system: each.cause and each.cause.what for each in found} == {
        "elsewhere": "OST 1 out of service (1 of 4)",
        "here": "OST 2 out of service (1 of 4)",
    }


def test_the_odds_by_hand(tmp_path: Path) -> None:
    since = {"transport_in_effect": "tcp"}
    found = site(tmp_path, rows(1, 0.5, since, {"transport_in_effect": "ucx"}))
    (cause,) = only(found).candidates
    # There are 185 runs before the onset, which is uncertain by one run. A change is compared with
    # 20 runs before it and 10 after it, which leaves 155 pairs of runs, none with a change. So the
    # probability is (0 + 2 / 2) / (155 + 2), and the prior odds are 0.1.
    assert cause.odds == pytest.approx(0.1 * 157, rel=0.05)


def test_a_change_that_another_series_had_without_a_drop_is_not_the_cause(tmp_path: Path) -> None:
    since = {"suite_version": "0.2.0"}
    found = site(
        tmp_path,
        rows(1, 0.6, since, file_system="a"),
        rows(2, 1.0, since, file_system="b"),
    )
    assert (only(found).cause, only(found).candidates) == (None, ())


def test_the_reads_of_the_same_runs_do_not_speak_against_a_cause_of_writes(tmp_path: Path) -> None:
    since, before = {"targets_inactive": 1, "targets_active": 11}, {"targets_inactive": 0}
    reads = rows(2, 1.0, since, before, perf_var="read_bw")
    cause = only(site(tmp_path, rows(1, 0.6, since, before), reads)).cause
    assert cause is not None
    assert cause.kind is CauseKind.TARGET_OUT


def test_what_often_changes_by_itself_is_not_named(tmp_path: Path) -> None:
    lines = []
    for place, each in enumerate(rows(1, 0.6, {"other_jobs": 90})):
        busy = place < RUNS - SLOW and place // 12 % 3 == 0
        lines.append(each.replace("|0.5|0|", "|0.5|80|") if busy else each)
    alert = only(site(tmp_path, lines))
    assert (alert.cause, alert.candidates) == (None, ())


def test_of_values_that_were_as_frequent_before_the_newest_is_said(tmp_path: Path) -> None:
    lines = rows(1, 0.6, {"job_nodelist": "n99"})
    for place in range(RUNS - SLOW):
        lines[place] = lines[place].replace("|vm|", f"|n{place % 20}|")
    whats = {each.what for each in only(site(tmp_path, lines)).candidates}
    assert whats == {f"nodes n99, was n{(RUNS - SLOW - 1) % 20}"}


def test_of_two_changes_at_once_none_is_named(tmp_path: Path) -> None:
    since = {"suite_version": "0.2.0", "transport_in_effect": "tcp"}
    alert = only(site(tmp_path, rows(1, 0.5, since, {"transport_in_effect": "ucx"})))
    assert alert.cause is None
    assert {each.kind for each in alert.candidates} == {CauseKind.VERSION, CauseKind.TRANSPORT}


def test_one_partition_alone_is_named_if_nothing_else_is_known(tmp_path: Path) -> None:
    series = [
        rows(2 * seed + place, 0.6 if place else 1.0, partition=partition, pattern=pattern)
        for seed, pattern in enumerate(("fpp", "ssf", "fpn"))
        for place, partition in enumerate(("cpu", "gpu"))
    ]
    cause = only(site(tmp_path, *series)).cause
    assert cause is not None
    assert cause.what == "only partition gpu; 3 series of others did not move"
    assert cause.odds == 27  # three for each of them


def test_a_cause_needs_good_odds_and_no_rival() -> None:
    def cause(kind: CauseKind, odds: float) -> Cause:
        return Cause(kind, kind.value, NOW, odds)

    first = cause(CauseKind.LOAD, 40)
    assert clear_cause([first]) == first
    assert clear_cause([first, cause(CauseKind.HINTS, 13)]) == first
    assert clear_cause([first, cause(CauseKind.HINTS, 14)]) is None
    assert clear_cause([cause(CauseKind.LOAD, 9.9)]) is None
    assert clear_cause([]) is None


@pytest.mark.parametrize("broken", BROKEN)
def test_through_the_whole_judge_it_is_right_or_unknown(broken: str) -> None:
    found = [verdict(broken, each) for seed in (0, 1) for each in alerts(broken, seed)]
    assert found
    assert "wrong" not in found
    assert ("right" in found) == (BROKEN[broken] is not None)


def test_told_evening_by_evening_or_at_once_it_is_the_same(tmp_path: Path) -> None:
    since, before = {"targets_inactive": 1, "targets_active": 11}, {"targets_inactive": 0}
    files = SiteFiles(tmp_path).write(rows(1, 0.7, since, before))

    def news(days: int) -> list[AlertEvent]:
        judged = files.judge(NOW - days * DAY, as_of=True, with_power=False)
        return [*judged.news.get("here", ())]

    at_once = news(0)
    for days in range(SLOW, -1, -1):
        ALERT_LOG.append(alert_log(tmp_path / "perflogs", "here"), news(days))
    judged = files.judge()
    logged = [*judged.known.alert_log["here"]]
    assert [each.kind for each in logged].count(CAUSED) == 1
    causes = [(each.when, each.cause) for each in logged if each.kind == CAUSED]
    assert causes == [(each.when, each.cause) for each in at_once if each.kind == CAUSED]
    (alert,) = judged.snapshot.alerts
    assert alert.cause == causes[0][1]


def test_a_further_fall_has_a_cause_of_its_own(tmp_path: Path) -> None:
    def series(seed: int, second: float, **fields: object) -> list[str]:
        values = 2 * np.exp(np.random.default_rng(seed).normal(0, 0.05, RUNS))
        values[-55:-SLOW] *= 0.7
        values[-SLOW:] *= 0.7 * second
        spans = [slice(0, RUNS - 55), slice(RUNS - 55, RUNS - SLOW), slice(RUNS - SLOW, RUNS)]
        changed = [
            {"suite_version": "0.1.0", "targets_inactive": 0},
            {"suite_version": "0.2.0", "targets_inactive": 0},
            {"suite_version": "0.2.0", "targets_inactive": 1 if second < 1 else 0},
        ]
        return [
            line
            for span, has, last in zip(spans, changed, (55.25, 15.25, 0.25), strict=True)
            for line in daily(values[span].tolist(), last=last, **fields, **has)
        ]

    fell = [series(1, 0.6, pattern="fpp"), series(2, 0.6, pattern="ssf")]
    alert = only(site(tmp_path, *fell, series(3, 1.0, pattern="serial"), rows(4, file_system="b")))
    assert alert.cause is not None
    assert alert.cause.what == "suite version 0.2.0, was 0.1.0"
    (second,) = [each for each in alert.events if each.kind == CAUSED and each.names]
    assert second.cause is not None
    assert second.cause.what == "1 of all targets out of service"
    assert [name.split()[0] for name in second.names] == [*second.names]
    assert second.when - (NOW - SLOW * DAY) < 5 * DAY


def test_since_when_is_said_of_what_is_and_not_of_what_was() -> None:
    cause = Cause(CauseKind.TRANSPORT, "transport tcp, was ucx", NOW - 8 * DAY, 26)
    assert odds_text(cause, NOW) == "transport tcp since 13 Nov, was ucx (odds 26 to 1)"
