"""Incidents: most series of a file system are very low at the same time, even if only briefly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from iobands.judge.happenings import incidents_of
from iobands.judge.normal import TransientRuns
from iobands.model import SeriesKey
from iobands.snapshot import Alert, Incident, Severity, State, moment
from tests.factory import NOW
from tests.judge.keys import KEY
from tests.sites import DAY, SiteFiles, slow

KEYS = tuple(replace(KEY, pattern=pattern) for pattern in ("fpp", "ssf", "fpn", "serial"))
FIRST = np.datetime64("2026-01-01T05:00", "ns")


def runs(*rows: str) -> dict[SeriesKey, TransientRuns]:
    """Return a series for each row, one character per day: `x` low, `-` healthy, blank no run."""
    found = {}
    for key, row in zip(KEYS, rows, strict=False):
        days = np.array([day for day, mark in enumerate(row) if mark != " "], dtype=int)
        low = np.array([row[day] == "x" for day in days], dtype=bool)
        times = FIRST + days * np.timedelta64(1, "D")
        found[key] = TransientRuns(times, np.where(low, 0.4, 1.0), low)
    return found


def days(*rows: str) -> list[tuple[int, int, int, bool]]:
    """Return the days when each incident began, was raised and ended, and whether it is open."""
    now = moment(FIRST) + len(rows[0]) * DAY
    return [
        (*(each.day - 1 for each in (found.since, found.raised, found.until)), found.is_open)
        for found in incidents_of(runs(*rows), now)
    ]


@pytest.mark.parametrize(
    ("rows", "spans"),
    [
        (("--------", "--------"), []),
        (("--x-----", "--x-----"), []),  # one bad session of three
        (("--xx----", "--xx----"), [(2, 3, 3, False)]),
        (("--x-x---", "--x-x---"), [(2, 4, 4, False)]),
        (("xx------", "xx------"), [(0, 2, 1, False)]),  # before there are three days
        (("--xx-x--", "--xx-x--"), [(2, 3, 5, True)]),  # two good sessions are too few
        (("--xx--x---", "--xx--x---"), [(2, 3, 6, False)]),
        (("------xx", "------xx"), [(6, 7, 7, True)]),
        (("-xx---xx", "-xx---xx"), [(1, 2, 2, False), (6, 7, 7, True)]),
        (("-xx-----", "--------"), []),  # half is not most
        (("-xx-----", "-xx-----", "--------"), [(1, 2, 2, False)]),
        (("-xx-----", "-xx-----", "--------", "--------"), []),
        (("-xx-----", "--xx----", "-xxx----"), [(1, 2, 3, False)]),
        (("-xx-----",), []),  # one series is no file system
        (("-xx     ", "   xx---"), []),  # never two runs of a day
        (("-x x----", "-x x----"), [(1, 3, 3, False)]),  # a day without a run is no session
        (("--xx----", "--xx----", "--  ----"), [(2, 3, 3, False)]),  # most of what ran
        (("-xx        ", "-xx        "), [(1, 2, 2, False)]),  # a week says that it is over
        (("-xx       xx", "-xx       xx"), [(1, 2, 2, False), (10, 11, 11, True)]),
    ],
)
def test_sessions_by_hand(rows: tuple[str, ...], spans: list[tuple[int, int, int, bool]]) -> None:
    assert days(*rows) == spans


@pytest.mark.parametrize(
    ("marks", "raised"),
    [
        ("---- xx-- ----", []),  # one bad day, of two sessions
        ("---- xxxx ----", []),
        ("---- -xxx xxx-", [8]),
        ("---- --xx xx--", []),  # half a day is not most of it
        ("---- xxxx ---- xxx-", [12]),
    ],
)
def test_one_bad_day_of_several_sessions_is_no_incident(marks: str, raised: list[int]) -> None:
    row = marks.replace(" ", "")
    times = FIRST + np.arange(len(row)) * np.timedelta64(6, "h")
    low = np.array([mark == "x" for mark in row])
    of_each = TransientRuns(times, np.where(low, 0.4, 1.0), low)
    found = incidents_of(dict.fromkeys(KEYS, of_each), moment(times[-1]))
    days = [
        int((np.datetime64(each.raised.date()) - FIRST.astype("M8[D]")).astype(int))
        for each in found
    ]
    assert days == [place // 4 for place in raised]


def test_later_runs_move_no_incident_of_a_site_that_measures_each_hour() -> None:
    hours = np.arange(24 * 12)
    times = FIRST + hours * np.timedelta64(1, "h")
    low = (hours > 24 * 4) & (hours < 24 * 6)

    def known(upto: int) -> tuple[Incident, ...]:
        one = TransientRuns(times[:upto], np.where(low, 0.4, 1.0)[:upto], low[:upto])
        return incidents_of(dict.fromkeys(KEYS, one), moment(times[upto - 1]))

    (last,) = known(len(hours))
    assert last.closed
    over = int(np.flatnonzero(times > np.datetime64(last.closed.replace(tzinfo=None)))[0])
    assert all(known(upto) == (last,) for upto in range(over, len(hours)))


def test_what_an_incident_says() -> None:
    found = runs("-xx-----", "-xx-----", "--------")
    found[KEYS[1]].ratios[1:3] = 0.2, 0.3
    (incident,) = incidents_of(found, NOW)
    assert (incident.system, incident.file_system, incident.variable) == ("here", "a", "write_bw")
    # the deepest first, and none that was well
    assert list(incident.ratios.items()) == [
        (KEYS[1], pytest.approx(0.25)),
        (KEYS[0], pytest.approx(0.4)),
    ]


def test_file_systems_and_variables_are_kept_apart() -> None:
    low = next(iter(runs("-xx-----").values()))
    for other in (
        replace(KEY, file_system="b"),
        replace(KEY, variable="read_bw"),
        replace(KEY, system="there"),
        replace(KEY, pattern="ssf", file_system=None),
    ):
        assert incidents_of({KEY: low, other: low}, NOW) == ()
    assert len(incidents_of({KEY: low, replace(KEY, pattern="ssf"): low}, NOW)) == 1


def of(site: SiteFiles) -> tuple[list[Alert], tuple[Incident, ...], int]:
    found = site.read()
    alerts = [alert for alert in found.alerts if alert.severity is Severity.INCIDENT]
    return alerts, found.incidents, found.exit_status


def test_two_bad_days_are_an_alert_until_three_were_good(tmp_path: Path) -> None:
    # as many as are usual there, and no drop that lasts
    usual = (3, 2, 51, 52, 80, 81)
    files = SiteFiles(tmp_path).days(
        lambda fields, day: 0.3 if fields["file_system"] == "a" and day in usual else 1.0
    )
    (alert,), (*_, incident), status = of(files)
    assert status == 2
    assert incident.is_open
    assert {member.series.key for member in alert.members} == set(incident.ratios)
    assert {key.file_system for key in incident.ratios} == {"a"}
    assert {member.series.status.state for member in alert.members} == {State.DEGRADED}
    assert alert.since == incident.since == NOW - 3.25 * DAY
    assert [member.ratio.value for member in alert.members] == pytest.approx([0.3] * 4, rel=0.2)


def test_what_is_over_is_known_and_no_alert(tmp_path: Path) -> None:
    alerts, (incident,), status = of(
        SiteFiles(tmp_path).days(slow(0.3, since=42, until=40, file_system="a"))
    )
    assert (alerts, status) == ([], 0)
    assert (incident.since, incident.until) == (NOW - 41.25 * DAY, NOW - 40.25 * DAY)


def test_a_lasting_drop_is_degraded_and_no_incident_too(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(0.3, since=20, file_system="a")).read()
    assert [(alert.severity, alert.subject) for alert in site.alerts] == [
        (Severity.DEGRADED, "a writes")
    ]
