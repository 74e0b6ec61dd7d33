"""The ledger of open and past alerts, on a site whose history is known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from iobands.snapshot import (
    ACKNOWLEDGE,
    CLOSED,
    GREW,
    OPENED,
    REBASELINE,
    RESOLVE,
    Action,
    AlertEvent,
    Severity,
    Snapshot,
    State,
)
from iobands.source.action_log import ALERT_LOG, alert_log, append
from iobands.views.alert_lines import details
from tests.factory import NOW, daily, days_ago, write_bands, write_perflog
from tests.sites import DAY, EIGHT, SiteFiles, look, slow


def steady(runs: int, level: float = 2.0) -> list[float]:
    """Return values within 2 % of a level."""
    return [level * (1 + 0.01 * ((7 * run) % 5 - 2)) for run in range(runs)]


def test_a_drop_that_recovered_has_an_entry_with_both_ends(tmp_path: Path) -> None:
    values = [*steady(60), *steady(20, 1.0), *steady(30)]
    write_perflog(tmp_path / "perflogs", daily(values))
    found = look(tmp_path).ledger
    (entry,) = [each for each in found.entries if each.end == "recovered"]
    assert entry.ratio is not None
    assert abs(entry.ratio - 0.5) < 0.02
    days = [(NOW - when).days for when in (entry.since, entry.ended) if when]
    assert days[0] == 49
    assert abs(days[1] - 29) <= 1
    assert entry.raised is not None
    assert entry.since < entry.raised < entry.since.replace(year=entry.since.year + 1)
    assert found.delay is not None
    assert 1 <= found.delay <= 10


def test_an_open_drop_is_listed_without_an_end(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily([*steady(60), *steady(20, 1.0)]))
    found = look(tmp_path).ledger
    (entry,) = found.entries
    assert (entry.end, entry.ended) == ("", None)
    assert entry.raised is not None
    assert entry.delay == found.delay == (entry.raised - entry.since).days + 1


@pytest.mark.parametrize("kind", [REBASELINE, RESOLVE])
def test_an_answer_does_not_take_the_delay_of_an_alert(tmp_path: Path, kind: str) -> None:
    files = SiteFiles(tmp_path).write(daily([*steady(60), *steady(20, 1.0)]))
    before = files.read().ledger
    assert before.delay
    files.act(kind, "1", force=True)
    after = files.read().ledger
    (entry,) = after.entries
    assert entry.end.startswith(kind)  # and it began and was raised when it did
    assert entry.delay == before.entries[0].delay == before.delay == after.delay


def test_the_delay_of_a_raised_alert_does_not_follow_the_budget(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).days(slow(0.8, file_system="a"))
    judged = files.judge()
    ALERT_LOG.append(alert_log(files.perflogs, "here"), judged.news["here"])
    (entry,) = judged.snapshot.ledger.entries
    (stricter,) = files.read(false_alarms=0.0001).ledger.entries
    assert stricter.raised == entry.raised
    assert stricter.delay == entry.delay


def write_noisy(tmp_path: Path, after: int) -> None:
    """Write eight noisy series that fall by a third for eight days, `after` days before the end."""
    levels = np.repeat([2.0, 1.3, 2.0], [100, 8, after])
    noise = np.random.default_rng(3).standard_normal((8, len(levels)))
    for number, row in enumerate(np.exp(0.3 * noise) * levels):
        fields = {"pattern": f"p{number}", "display_name": f"Benchio %pattern=p{number}"}
        write_perflog(tmp_path / "perflogs", daily(row, **fields), name=f"Benchio{number}.log")


def test_an_open_alert_of_many_series_has_its_day_and_delay(tmp_path: Path) -> None:
    write_noisy(tmp_path, after=0)
    found = look(tmp_path).ledger
    (entry,) = [each for each in found.entries if each.subject == "disk writes"]
    assert entry.raised is not None
    assert entry.delay == found.delay == (entry.raised - entry.since).days + 1


def test_what_was_seen_in_many_series_together_only_is_not_forgotten(tmp_path: Path) -> None:
    write_noisy(tmp_path, after=40)
    seen = look(tmp_path)
    assert not any(each.status.evidence.changes for each in seen.series)
    (entry,) = seen.ledger.entries
    assert entry.end == "recovered"
    assert entry.subject == "disk writes"
    assert entry.raised is not None and entry.ended is not None
    assert [(NOW - when).days for when in (entry.since, entry.ended)] == pytest.approx(
        [47, 37], abs=4
    )
    assert entry.delay == (entry.raised - entry.since).days + 1


def test_series_of_one_file_system_that_fell_together_are_one_entry(tmp_path: Path) -> None:
    values = [*steady(60), *steady(20, 1.0), *steady(30)]
    for pattern in ("fpp", "ssf", "fpn"):
        name = f"BenchioSeries{pattern}.log"
        lines = daily(values, pattern=pattern, display_name=f"Benchio %pattern={pattern}")
        write_perflog(tmp_path / "perflogs", lines, name=name)
    recovered = [each for each in look(tmp_path).ledger.entries if each.end == "recovered"]
    assert [each.subject for each in recovered] == ["disk writes"]


def test_verdicts_give_the_precision(tmp_path: Path) -> None:
    write_perflog(tmp_path / "perflogs", daily(steady(60)))
    for days, verdict in ((3, "real"), (2, "real"), (1, "false")):
        when = NOW.replace(day=NOW.day - days)
        series = ({"file_system": "disk"},)
        times = {"since": when, "until": when}
        action = Action(RESOLVE, when, "me", "repaired", series, **times, verdict=verdict)
        append(tmp_path / "alerts", "here", [action])
    found = look(tmp_path).ledger
    assert (found.real, found.false) == (2, 1)
    assert sum(each.ending.startswith("resolved (real) by me") for each in found.entries) == 2


def test_what_was_resolved_in_one_system_has_no_series_of_another(tmp_path: Path) -> None:
    for system, variable in (("a", "read_bw"), ("b", "write_bw")):
        rows = [
            row
            for pattern in ("fpp", "ssf")
            for row in daily(steady(60), system=system, pattern=pattern, perf_var=variable)
        ]
        write_perflog(tmp_path / "perflogs", rows, system=system)
    when = NOW - DAY
    action = Action(
        RESOLVE, when, "me", "repaired", ({"file_system": "disk"},), since=when, until=when
    )
    append(tmp_path / "alerts", "b", [action])
    (entry,) = look(tmp_path).ledger.entries
    assert (entry.subject, entry.system) == ("disk writes", "b")  # with both, "disk"


def test_answers_of_two_systems_at_one_moment_are_two(tmp_path: Path) -> None:
    for system, verdict in (("a", "real"), ("b", "false")):
        write_perflog(tmp_path / "perflogs", daily(steady(60), system=system), system=system)
        said = {"since": NOW - DAY, "until": NOW, "verdict": verdict, "alert": 7}
        action = Action(RESOLVE, NOW, system, "repaired", ({"file_system": "disk"},), **said)
        append(tmp_path / "alerts", system, [action])
    opened = {"subject": "disk", "direction": "down", "since": NOW - 2 * DAY, "names": ("x",)}
    events = [AlertEvent(NOW - DAY, 7, OPENED, **opened), AlertEvent(NOW, 7, CLOSED, end="over")]
    ALERT_LOG.append(alert_log(tmp_path / "perflogs", "a"), events)
    found = look(tmp_path).ledger
    assert (found.real, found.false) == (1, 1)
    said = {(each.system, each.number, each.ending) for each in found.entries}
    ends = {"a": "resolved (real) by a: repaired", "b": "resolved (false) by b: repaired"}
    assert said == {("a", 7, ends["a"]), ("b", None, ends["b"])}


@pytest.mark.parametrize(("kind", "end"), [(RESOLVE, "resolved"), (REBASELINE, "rebaselined")])
def test_what_a_person_ended_keeps_its_size_and_says_who_did(
    tmp_path: Path, kind: str, end: str
) -> None:
    files = SiteFiles(tmp_path).days(slow(0.6, since=50, until=20, file_system="a"))
    files.act(kind, "1", now=NOW - 25 * DAY, reason="a switch", force=True)
    judged = files.judge(NOW - 25 * DAY, as_of=True)
    for system, events in judged.news.items():
        ALERT_LOG.append(alert_log(files.perflogs, system), events)
    found = files.read(as_of=True)
    (past,) = (each for each in found.past if each.number == 1)
    assert len(past.members) == 4
    for member in past.members:
        assert member.ratio is not None
        assert member.ratio.value == pytest.approx(0.6, rel=0.1)
        assert member.baseline == pytest.approx(2, rel=0.05)
    (entry,) = (each for each in found.ledger.entries if each.number == 1)
    assert (entry.end, entry.who, entry.reason) == (end, "jane", "a switch")
    assert entry.ratio == pytest.approx(0.6, rel=0.05)


def test_a_series_that_fell_with_an_alert_and_stays_low_moves_no_past_alert(
    tmp_path: Path,
) -> None:
    def factor(series: Mapping[str, str], day: int) -> float:
        if series["pattern"] == "fpp":
            return 0.5 if 24 <= day < 30 else 1.0
        return 1.0 if day >= 30 else 0.84 if day >= 24 else 0.93

    two = EIGHT[0], EIGHT[2]
    files = SiteFiles(tmp_path).days(factor, seed=9, days=90, series=two)
    then, now = (files.read(NOW - days * DAY, as_of=True).past[0] for days in (20, 0))
    assert len(then.members) == 2
    assert [each.ratio for each in then.members] == [each.ratio for each in now.members]


@pytest.mark.parametrize("how", ["an epoch", "a maintenance"])
def test_an_alert_that_recovered_keeps_its_end_and_its_size(tmp_path: Path, how: str) -> None:
    files = SiteFiles(tmp_path).days(slow(0.7, since=50, until=30, file_system="a"))
    judged = files.judge(NOW)
    for system, events in judged.news.items():
        ALERT_LOG.append(alert_log(files.perflogs, system), events)
    (before,) = judged.snapshot.past
    assert (before.end, before.ratio) == ("recovered", pytest.approx(0.7, rel=0.05))
    # later, an epoch or a maintenance is backdated, which excludes runs of it or before it
    begin, end = (days_ago(days) for days in (40, 25))
    epoch = {"name": "firmware", "since": begin, "source": "a test", "bands": []}
    window = {"from": days_ago(51), "to": end, "reason": "a rebuild"}
    said = {"epochs": [epoch]} if how == "an epoch" else {"epochs": [], "maintenance": [window]}
    files.bands.mkdir()
    (files.bands / "here.yaml").write_text(json.dumps({"schema": 6, "system": "here", **said}))
    (after,) = files.read().past
    assert (after.end, after.ratio) == ("recovered", pytest.approx(0.7, rel=0.05))
    assert before.ended and after.ended
    assert abs(after.ended - before.ended) <= 2 * DAY
    assert (NOW - after.ended).days in (29, 28, 27)  # the first runs at the old level
    assert all(each.ratio and each.ratio.value < 0.8 for each in after.members)


def test_an_alert_of_which_a_part_had_recovered_ends_as_the_person_ended_it(tmp_path: Path) -> None:
    here = {"file_system": "a", "pattern": "fpp"}
    soon, late = slow(0.5, since=50, until=35, **here), slow(0.5, since=50, transport="ucx", **here)
    files = SiteFiles(tmp_path).days(lambda *run: min(soon(*run), late(*run)))
    (alert,) = files.read().alerts
    assert [each.series.key.transport for each in alert.members] == ["ucx"]
    action = files.act(RESOLVE, "1", now=NOW + DAY / 24, force=True)
    found = files.read(NOW + DAY / 12)
    assert found.alerts == ()
    (past,) = found.past
    assert (past.end, past.ended) == ("resolved", action.when)
    (entry,) = found.ledger.entries
    assert (entry.number, entry.ending) == (1, "resolved by jane: a reason")


def test_a_series_that_joined_as_an_alert_closed_hides_no_end(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).days(slow(0.5, since=40, file_system="a", pattern="fpp"))
    when = files.act(RESOLVE, "1", now=NOW - 5 * DAY, force=True).when
    judged = files.judge(NOW - 4.9 * DAY, as_of=True)
    (other,) = (each.name for each in judged.snapshot.series if each.label == "b ssf ucx write_bw")
    for system, events in judged.news.items():
        late = AlertEvent(when, 1, GREW, names=(other,))
        ALERT_LOG.append(alert_log(files.perflogs, system), [*events, late])
    found = files.read(as_of=True)
    (past,) = (each for each in found.past if each.number == 1)
    assert (past.end, past.ended) == ("resolved", when)
    assert len([each for each in found.ledger.entries if each.ended == when]) == 1


def test_an_unstable_series_that_is_resolved_was_unstable_and_has_no_size(tmp_path: Path) -> None:
    def swings(series: Mapping[str, str], day: int) -> float:
        return (1.25 if day % 2 else 0.8) if day < 40 and series["file_system"] == "a" else 1.0

    files = SiteFiles(tmp_path).days(swings, days=200)
    (alert,) = files.read().alerts
    assert (alert.severity, alert.ratio) == (Severity.UNSTABLE, None)
    # nor does it show the rates of any one of its four series
    assert [each for each in details(alert, files.read()) if "GiB/s" in each] == []
    files.act(RESOLVE, "1", now=NOW + DAY / 24, force=True)
    (past,) = files.read(NOW + DAY / 12).past
    assert (past.severity, past.ratio) == (Severity.UNSTABLE, None)


def test_a_fall_of_the_past_keeps_its_size_where_the_series_is_unstable_today(
    tmp_path: Path,
) -> None:
    def swings(series: Mapping[str, str], day: int) -> float:
        fell = 0.6 if 120 <= day < 150 else 1.0
        return (1.25 if day % 2 else 0.8) if day < 60 else fell

    found = SiteFiles(tmp_path).days(swings, days=260, series=EIGHT[:1]).read()
    assert found.series[0].status.state is State.UNSTABLE
    (entry,) = (each for each in found.ledger.entries if each.number == 1)
    assert entry.ratio == pytest.approx(0.6, rel=0.1)


ROWS = daily([*steady(60), *steady(20, 1.0)], last=1.25)


@pytest.mark.parametrize(
    "left", [[], daily([1.0]), ROWS[:40]], ids=["nothing", "a new perflog", "the first half"]
)
def test_an_alert_whose_samples_are_gone_is_named_for_a_week(
    tmp_path: Path, left: list[str]
) -> None:
    """After a perflog was deleted, the next run begins a new one."""
    other = daily(steady(80), pattern="ssf")
    files = SiteFiles(tmp_path).write([*ROWS, *other])
    log = alert_log(files.perflogs, "here")
    ALERT_LOG.append(log, files.judge().news["here"])

    def failed(site: Snapshot) -> list[str]:
        return [each.subject for each in site.alerts if each.severity is Severity.FAILED]

    files.write([*other, *left])
    judged = files.judge()
    assert failed(judged.snapshot) == ["alert 1"]
    ALERT_LOG.append(log, judged.news["here"])
    for days, number in ((6, 1), (8, 0)):
        assert len(failed(files.read(NOW + days * DAY))) == number
    files.write([*ROWS, *other])
    (found,) = files.read().alerts
    assert (found.number, found.ended) == (1, None)


def test_an_alert_that_an_epoch_ends_lacks_no_samples(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).write(daily([*steady(60), *steady(20, 1.0)]))
    ALERT_LOG.append(alert_log(files.perflogs, "here"), files.judge().news["here"])
    write_bands(files.bands, since=days_ago(10))
    site = files.read()
    assert [each.end for each in site.past] == ["withdrawn"]
    assert not [each for each in site.alerts if each.severity is Severity.FAILED]


def test_an_answer_moves_to_no_other_alert_if_the_log_of_alerts_is_gone(tmp_path: Path) -> None:
    """Without the log, the alert after one that was resolved would get its number."""

    def factor(series: Mapping[str, str], day: int) -> float:
        first = slow(0.5, since=60, until=40, file_system="a")
        return first(series, day) * slow(0.5, since=12, file_system="b")(series, day)

    files = SiteFiles(tmp_path).days(factor)
    files.act(ACKNOWLEDGE, "1", now=NOW - 50 * DAY)
    files.act(RESOLVE, "1", now=NOW - 45 * DAY, force=True)
    log = alert_log(files.perflogs, "here")
    ALERT_LOG.append(log, files.judge().news["here"])
    (open_one,) = files.read().alerts
    assert (open_one.number, open_one.is_quiet) == (2, False)
    log.unlink()
    alerts = {each.severity: each for each in files.read().alerts}
    assert alerts[Severity.DEGRADED].number is None
    assert not alerts[Severity.DEGRADED].is_quiet
    assert "iobands alerts --rebuild" in alerts[Severity.FAILED].reason
