"""Which messages are sent over the days of a site, and when."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import structs
from rich.console import Console

from iobands.notify.changes import changes, message_of
from iobands.notify.channels import as_mail
from iobands.notify.deliver import news
from iobands.notify.outbox import NOTIFIED, Channel, OutboxState, Settings, Topic
from iobands.snapshot import (
    ACKNOWLEDGE,
    CAUSED,
    FELL,
    RESOLVE,
    TURNED,
    UNDO,
    Alert,
    AlertEvent,
    CauseKind,
    Certainty,
    Member,
    Obstacle,
    Severity,
    Snapshot,
    State,
)
from iobands.snapshot import Cause as FoundCause
from iobands.source.action_log import ALERT_LOG, alert_log
from iobands.views.digest import digest_text
from tests.factory import NOW, case, daily, write_perflog, write_report
from tests.judge.test_flaky import write as flaky_site
from tests.sites import DAY, EIGHT, Growing, SiteFiles, levels, slow


class Sent:
    """Follows a site as `iobands notify` does."""

    def __init__(self) -> None:
        self.causes: list[Topic] = []

    def of(self, site: Snapshot) -> list[str]:
        self.causes, events = changes(self.causes, site, NOTIFIED)
        messages = [message_of(event, site, "https://here/") for event in events]
        assert all(each.text.endswith(f"{each.page}\n") for each in messages)
        assert all(each.page.startswith("https://here/") for each in messages)
        assert len({each.id for each in messages}) == len(messages)
        return [each.title.split(",")[0] for each in messages]


def test_one_message_for_a_cause_however_many_series(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).days(slow(0.6, file_system="a"))
    sent = Sent()
    assert sent.of(files.read()) == ["began: degraded 1 a writes (4 of 4 series)"]
    assert sent.of(files.read()) == []
    # three nights without a run, two file systems
    later = files.read(NOW + 4 * DAY)
    # missing samples are news even of a series that has degraded
    missing = ["no data 4 series of a", "no data 4 series of b"]
    assert sorted(sent.of(later)) == [f"began: {each}" for each in missing]
    assert sent.of(files.read(NOW + 5 * DAY)) == []  # "5 days old" is no news
    assert sent.of(files.read(NOW + 8 * DAY)) == ["still open: degraded 1 a writes (4 of 4 series)"]
    # if the perflogs cannot be seen, nothing has recovered
    nothing = SiteFiles(tmp_path / "empty").write(daily([1.5], file_system="other")).read()
    assert sent.of(nothing) == []
    healthy = SiteFiles(tmp_path / "healthy").days(slow(1.0)).read()
    assert sorted(sent.of(healthy)) == [
        "recovered: degraded 1 a writes",
        *(f"recovered: {each}" for each in missing),
    ]
    assert sent.causes == []


def test_what_a_message_about_missing_samples_says(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(1.0), series=EIGHT[:4]).read(NOW + 4 * DAY)
    topics, events = changes([], replace(site, only="here"), NOTIFIED)
    (message,) = [message_of(each, replace(site, only="here"), "") for each in events]
    assert "iobands explain 'a fpp ofi write_bw' --system here\n" in message.text
    healthy = SiteFiles(tmp_path).days(slow(1.0), series=EIGHT[:4]).read()
    (message,) = [message_of(each, healthy, "") for each in changes(topics, healthy, NOTIFIED)[1]]
    assert message.text.startswith(
        "4 series of a: no sample is missing any more; known since 21 Nov\n"
    )


def test_from_a_drop_to_its_repair(tmp_path: Path) -> None:
    values = levels((105, 1), (15, 0.8), (20, 0.4), (30, 1))
    site, sent = Growing(tmp_path, disk=values), Sent()
    found = {day: sent.of(site.after(day)) for day in range(108, 172, 4)}
    kinds = [each.partition(":")[0] for day in found for each in found[day]]
    assert kinds[0] == "began"
    assert "worse" in kinds
    assert "still open" in kinds
    assert kinds[-1] == "recovered"
    assert kinds.count("began") == kinds.count("recovered") == 1


def test_what_a_person_knows_is_not_told_until_it_is_worse(tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=levels((105, 1), (15, 0.7), (20, 0.4)))
    site.after(120)
    site.does(ACKNOWLEDGE)
    sent = Sent()
    assert sent.of(site.again()) == []
    assert [each.partition(":")[0] for each in sent.of(site.after(140))] == ["worse"]
    site.does(RESOLVE, force=True)
    site_then = site.again()
    causes, events = changes(sent.causes, site_then, NOTIFIED)
    (event,) = events
    assert "resolved" in message_of(event, site_then, "").text
    assert causes == []


def test_checks_that_fail_alike_are_one_cause(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).write(daily([1.5] * 4))
    wrong = "benchio: rank {0} on host n{0}: write of /work/{0}.dat failed: File too large"
    reasons = [wrong.format(n) for n in range(5)]
    failed = [
        case(display_name=f"Other {n}", pattern=f"p{n}", fail_reason=why)
        for n, why in enumerate(reasons)
    ]
    write_report(files.perflogs, failed)
    sent = Sent()
    (title,) = sent.of(files.read())
    assert title == "began: failed Other 0 and 4 more"
    again = [*failed, case(display_name="Last", pattern="q", fail_reason="another one")]
    write_report(files.perflogs, again, days=-0.1, number=1)
    assert sent.of(files.read(NOW + timedelta(hours=3))) == ["began: failed Last"]


def test_checks_that_fail_alike_in_other_places_and_phases_are_other_causes(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).write(daily([1.5] * 4))
    wrong = "write of /work/{}.dat failed: No space left on device"
    places = [("local", "setup"), ("other", "setup"), ("local", "run"), ("local", "run")]
    failed = [
        case(
            display_name=f"Other {n}",
            pattern=f"p{n}",
            partition=partition,
            fail_phase=phase,
            fail_reason=wrong.format(n),
        )
        for n, (partition, phase) in enumerate(places)
    ]
    write_report(files.perflogs, failed)
    assert sorted(Sent().of(files.read())) == [
        "began: failed Other 0",
        "began: failed Other 1",
        "began: failed Other 2 and 1 more",
    ]


def test_topics_that_become_one_are_all_over_at_the_end(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(1.0), series=EIGHT[:2]).read()
    members = [Member(each) for each in site.series]
    sent, said = Sent(), []
    first, second = (
        Alert(Severity.NO_DATA, each.series.label, (each,), reason=f"lost {number}")
        for number, each in enumerate(members)
    )
    both = Alert(Severity.NO_DATA, "2 series of a", tuple(members), reason="no session")
    for alerts in ((first,), (first, second), (both,), (both,), ()):
        said.append(sorted(sent.of(replace(site, alerts=alerts))))
    assert said == [
        ["began: no data a fpp ofi write_bw"],
        ["began: no data a fpp ucx write_bw"],
        ["worse: no data 2 series of a"],
        [],
        ["recovered: no data 2 series of a", "recovered: no data a fpp ucx write_bw"],
    ]


def test_a_check_that_fails_on_two_systems_is_a_topic_of_each(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path)
    for system in ("here", "there"):
        write_perflog(files.perflogs, daily([1.5] * 4, system=system), system=system)
        write_report(
            files.perflogs, [case(system=system, display_name="Other", pattern="p")], system=system
        )
    topics: list[Topic] = []
    said = []

    def follow(system: str | None = None) -> None:
        nonlocal topics
        site = files.judge(system=system).snapshot
        topics, events = changes(topics, site, NOTIFIED)
        messages = [message_of(each, site, "") for each in events]
        said.append(sorted((each.kind, each.subject, each.system) for each in messages))

    follow()
    follow("there")  # does not affect the other system
    write_report(files.perflogs, [], system="there")
    follow("here")
    follow("there")
    write_report(files.perflogs, [])
    follow()
    name = "Other"
    assert said == [
        [("began", name, "here"), ("began", name, "there")],
        [],
        [],
        [("recovered", name, "there")],
        [("recovered", name, "here")],
    ]


def test_missing_samples_are_said_with_their_system_if_there_are_several(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path)
    rows = {
        (system, last): [
            row
            for pattern in ("fpp", "ssf")
            for row in daily([1.5] * 30, last=last, pattern=pattern, system=system)
        ]
        for system in ("here", "there")
        for last in (5.25, 0.25)
    }
    sent = Sent()
    files.write([*rows["here", 5.25], *rows["there", 5.25]])
    text = digest_text(files.read(), Console(width=80, height=24))
    for system in ("here", "there"):
        assert f"no data  2 series of disk system={system} " in text
    assert sorted(sent.of(files.read())) == [
        "began: no data 2 series of disk system=here",
        "began: no data 2 series of disk system=there",
    ]
    files.write([*rows["here", 0.25], *rows["there", 5.25]])
    assert sent.of(files.read()) == ["recovered: no data 2 series of disk system=here"]


def test_what_a_compiler_says_makes_no_message_that_a_service_refuses(tmp_path: Path) -> None:
    """GitHub takes 65,536 characters, Teams 28 KB."""
    files = SiteFiles(tmp_path).write(daily([1.5] * 4))
    reason = f"{'é' * 50_000}: do this"
    checks = [case(display_name=f"C{n}", pattern=f"p{n}", fail_reason=reason) for n in range(10)]
    write_report(files.perflogs, checks)
    site = files.read()
    (event,) = changes([], site, NOTIFIED)[1]
    text = message_of(event, site, "").text
    assert text.count(": do this\n") == 10
    assert len(text.encode()) < 28_000


def test_one_session_under_a_wrong_clock_puts_no_reminder_off_for_years(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(0.6, file_system="a")).read()
    sent = Sent()
    sent.of(site)
    sent.causes = [
        structs.replace(each, began=NOW + timedelta(days=40 * 365)) for each in sent.causes
    ]
    days = {day: sent.of(replace(site, now=NOW + day * DAY)) for day in range(9)}
    assert [day for day, said in days.items() if said] == [7]
    assert days[7] == ["still open: degraded 1 a writes (4 of 4 series)"]


def test_under_a_clock_that_is_off_only_the_clock_is_news(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).days(slow(0.6, file_system="a"))
    sent = Sent()
    sent.of(files.read())
    # taken as true, the day in 2066 would end the drop, miss all samples and send reminders
    wrong = NOW + timedelta(days=40 * 365)
    assert sent.of(files.read(wrong, clock="the clock of n1 is 14600 days ahead")) == [
        "began: failed clock"
    ]
    assert sent.of(files.read()) == ["recovered: failed clock"]
    # nor does a clock that was set back to before the newest samples end anything
    back = sent.of(files.read(NOW - 30 * DAY))
    assert "began: failed clock" in back
    assert not any(said.startswith("recovered") for said in back)
    assert [each.kind for each in sent.causes] == ["drop", "failed"]


def test_a_further_fall_of_an_open_alert_is_reported_once_and_breaks_an_acknowledgement(
    tmp_path: Path,
) -> None:
    # a2 falls with a, stays down, and falls again 40 days later, when a has recovered
    rows = daily([2.0] * 60 + [1.0] * 10 + [2.0] * 60, file_system="a", pattern="fpp")
    rows += daily([2.0] * 60 + [1.2] * 40 + [0.4] * 30, file_system="a", pattern="ssf")
    files, sent = SiteFiles(tmp_path).write(rows), Sent()
    before, after = (files.read(NOW - days * DAY, as_of=True) for days in (40, 0))
    (began,) = sent.of(before)
    assert began.startswith("began: degraded 1 a writes")
    files.act("acknowledge", "1", now=NOW - 40 * DAY)
    (alert,) = files.read().alerts
    assert alert.acknowledgement is not None and not alert.is_quiet
    (worse,) = sent.of(after)
    assert worse.startswith("worse: degraded 1 ")
    assert sent.of(after) == []


def test_of_falls_within_a_week_one_is_reported_at_once(tmp_path: Path) -> None:
    """The series of a slide fall again one by one, which would make one message per day."""
    rows = []
    for place, pattern in enumerate(["fpp", "ssf", "node"]):  # fall again 3 days after each other
        runs = [2.0] * 60 + [1.2] * (40 + 3 * place) + [0.4] * (30 - 3 * place)
        rows += daily(runs, file_system="a", pattern=pattern)
    files, sent = SiteFiles(tmp_path).write(rows), Sent()
    when = (60, *range(29, 8, -1), 0)  # the first fall, each day around the others, and the end
    days = {day: sent.of(files.read(NOW - day * DAY, as_of=True)) for day in when}
    worse = [day for day, said in days.items() if any(each.startswith("worse") for each in said)]
    (alert,) = files.read().alerts
    falls = [(NOW - each.when) // DAY for each in alert.events if each.kind == FELL]
    assert len(falls) == 3 and falls[0] - falls[2] == 6
    assert worse == [falls[0], falls[0] - 7]  # and the other two a week later


def test_an_acknowledgement_that_was_undone_is_called_so(tmp_path: Path) -> None:
    files, sent = SiteFiles(tmp_path).days(slow(0.6, file_system="a")), Sent()
    (began,) = sent.of(files.read())
    files.act("acknowledge", "1")
    assert sent.of(files.read()) == []
    files.act("undo", "1")
    assert sent.of(files.read()) == [began.replace("began", "no longer acknowledged", 1)]


def test_an_alert_that_turned_in_spite_of_an_acknowledgement_is_worse(tmp_path: Path) -> None:
    files, sent = SiteFiles(tmp_path).days(slow(0.6, file_system="a")), Sent()
    (began,) = sent.of(files.read())
    files.act("acknowledge", "1")
    site = files.read()
    assert sent.of(site) == []
    (alert,) = site.alerts
    turned = AlertEvent(NOW + DAY, 1, TURNED, state=State.DEGRADED)
    site = replace(site, alerts=(replace(alert, events=(*alert.events, turned)),))
    assert sent.of(site) == [began.replace("began", "worse", 1)]


def test_a_message_says_which_alert_of_which_site_and_why(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(0.6, file_system="a")).read()
    (alert,) = [each for each in site.alerts if each.number == 1]
    cause = FoundCause(CauseKind.VERSION, "lustre 2.15.5", NOW - 12 * DAY, 96.6)
    site = replace(site, alerts=(replace(alert, cause=cause),))
    (event,) = changes([], site, NOTIFIED)[1]
    message = message_of(event, site, "https://here/io/")
    assert "\nCause: lustre 2.15.5 since 9 Nov (odds 96.6 to 1)\n" in message.text
    assert message.text.endswith("/alerts/here-1.html\n")
    assert "\nhere, at 21 Nov 2026 01:30 UTC; all times are UTC\n" in message.text
    assert alert.since is not None
    assert (message.schema, message.system, message.alert) == ("iobands-message/1", "here", 1)
    assert (message.subject, message.since) == ("a writes", alert.since.isoformat())
    assert message.ratio == pytest.approx(0.6, abs=0.05)
    assert message.page == "https://here/io/alerts/here-1.html"
    assert sorted(message.series) == [
        f"a {pattern} {transport} write_bw"
        for pattern in ("fpp", "ssf")
        for transport in ("ofi", "ucx")
    ]
    mail = as_mail(message, {"from": "io@here.org", "to": ["team@here.org"]})
    assert mail["Subject"].startswith("iobands here: began: degraded 1 a writes")
    found = {name: value for name, value in mail.items() if name.startswith("X-Iobands-")}
    assert found == {
        "X-Iobands-Schema": "iobands-message/1",
        "X-Iobands-Kind": "began",
        "X-Iobands-Severity": "degraded",
        "X-Iobands-System": "here",
        "X-Iobands-Alert": "1",
        "X-Iobands-Subject": "a writes",
        "X-Iobands-Found": "lustre 2.15.5 since 9 Nov (odds 96.6 to 1)",
        "X-Iobands-Since": alert.since.isoformat(),
        "X-Iobands-Page": "https://here/io/alerts/here-1.html",
    }


def test_an_alert_that_becomes_certain_is_confirmed_once(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(0.6, file_system="a")).read()
    (alert,) = [each for each in site.alerts if each.number == 1]
    sent, said = Sent(), []
    for certainty in ("possible", "likely", "certain", "likely", "certain"):
        known = replace(alert, certainty=Certainty(certainty))
        said.append(sent.of(replace(site, alerts=(known,))))
    name = "degraded 1 a writes (4 of 4 series)"
    assert said == [[f"began: {name}"], [], [f"confirmed: {name}"], [], []]


def test_a_further_fall_does_not_confirm_an_alert_again(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(0.6, file_system="a")).read()
    (alert,) = [each for each in site.alerts if each.number == 1]
    fell = AlertEvent(NOW, 1, FELL, names=(next(each.name for each in site.series),))
    sent, said = Sent(), []
    for certainty, more in (("certain", ()), ("likely", (fell,)), ("certain", (fell,))):
        known = replace(alert, certainty=Certainty(certainty), events=(*alert.events, *more))
        said.append(sent.of(replace(site, alerts=(known,))))
    name = "degraded 1 a writes (4 of 4 series)"
    assert said == [[f"began: {name}"], [f"worse: {name}"], []]


def test_a_new_name_that_another_message_said_is_not_sent_again(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(0.6, file_system="a")).read()
    (alert,) = [each for each in site.alerts if each.number == 1]
    sent, said = Sent(), []
    for certainty, subject in (("likely", "a fpp writes"), ("certain", "a writes")):
        known = replace(alert, certainty=Certainty(certainty), subject=subject)
        said.append(sent.of(replace(site, alerts=(known,))))
    said.append(sent.of(replace(site, alerts=(known,))))
    assert said == [
        ["began: degraded 1 a fpp writes (4 of 4 series)"],
        ["confirmed: degraded 1 a writes (4 of 4 series)"],
        [],
    ]


def test_a_message_has_the_severity_of_the_day(tmp_path: Path) -> None:
    """An incident becomes a lasting drop, and then its runs are very low again."""
    site = SiteFiles(tmp_path).days(slow(0.6, file_system="a")).read()
    (alert,) = [each for each in site.alerts if each.number == 1]
    topics: list[Topic] = []
    said = []
    for severity, subject in (
        ("incident", "a"),
        ("degraded", "a writes"),
        ("incident", "a writes"),
    ):
        alert = replace(alert, severity=Severity(severity), subject=subject)
        topics, events = changes(topics, replace(site, alerts=(alert,)), NOTIFIED)
        messages = [message_of(event, site, "https://here/") for event in events]
        said += [(each.kind, each.severity, each.title.split(" (")[0]) for each in messages]
    assert said == [
        ("began", "incident", "began: incident 1 a"),
        ("renamed", "degraded", "now: degraded 1 a writes"),
        ("worse", "incident", "worse: incident 1 a writes"),
    ]


@pytest.mark.parametrize("wanted", [NOTIFIED, frozenset({"incident"})])
def test_who_hears_of_an_incident_hears_how_it_ends(tmp_path: Path, wanted: frozenset[str]) -> None:
    """An incident becomes a lasting drop of the same name, which recovers."""
    site = SiteFiles(tmp_path).days(slow(0.6, file_system="a")).read()
    (alert,) = [each for each in site.alerts if each.number == 1]
    channels = {"all": wanted, "pager": {"incident"}, "drops": {"degraded"}, "no": {"flaky"}}
    settings = Settings(
        tuple(Channel(name, "mail", {}, frozenset(each)) for name, each in channels.items()),
        severities=wanted,
    )
    state, said = OutboxState((), ()), []
    for severity in ("incident", "degraded", "degraded", ""):
        alerts = (replace(alert, severity=Severity(severity)),) if severity else ()
        state = news(replace(site, alerts=alerts), settings, state)
        said += [(message.kind, message.severity, *names) for message, names in state.pending]
        state = structs.replace(state, pending=())
    assert said == [
        ("began", "incident", "all", "pager"),
        ("renamed", "degraded", "all", "pager", "drops"),
        ("recovered", "degraded", "all", "pager", "drops"),
    ]


def test_an_alert_that_is_open_again_did_not_begin_again(tmp_path: Path) -> None:
    files, sent = SiteFiles(tmp_path).days(slow(0.6, file_system="a")), Sent()
    name = "degraded 1 a writes (4 of 4 series)"
    assert sent.of(files.read()) == [f"began: {name}"]
    for minute, kind, said in (
        (1, RESOLVE, "resolved: degraded 1 a writes"),
        (3, UNDO, f"reopened: {name}"),
    ):
        files.act(kind, "1", now=NOW + minute * timedelta(minutes=1), force=True)
        judged = files.judge(NOW + (minute + 1) * timedelta(minutes=1))
        ALERT_LOG.append(alert_log(files.perflogs, "here"), judged.news["here"])
        assert sent.of(judged.snapshot) == [said]


def test_a_judgement_that_another_one_overtook_is_no_news(tmp_path: Path) -> None:
    """A session notified of an alert after `notify` had judged, and before it sent."""
    site = SiteFiles(tmp_path).days(slow(0.6, file_system="a")).read()
    settings = Settings((Channel("team", "mail", {}, NOTIFIED),), severities=NOTIFIED)
    state = structs.replace(news(site, settings, OutboxState((), ())), pending=())
    before = replace(site, alerts=(), now=site.now - timedelta(minutes=1))
    assert news(before, settings, state) == state
    after = news(replace(before, now=site.now + timedelta(days=1)), settings, state)
    assert {message.kind for message, _ in after.pending} == {"recovered"}
    # a clock that was ahead is corrected
    state = structs.replace(state, judged=site.now + timedelta(days=400))
    assert news(site, settings, state).judged == site.now


def test_what_becomes_known_of_a_cause_is_reported_once(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(0.6, file_system="a")).read()
    (alert,) = [each for each in site.alerts if each.number == 1]
    cause = FoundCause(CauseKind.VERSION, "lustre 2.15.5", NOW - 12 * DAY, 96.6)
    name, other = (each.name for each in site.series[:2])
    minute = timedelta(minutes=1)
    again = [
        AlertEvent(NOW - minute, 1, FELL, names=(name,)),
        AlertEvent(NOW, 1, FELL, names=(other,)),
    ]
    of_each = [AlertEvent(each.when, 1, CAUSED, names=each.names, cause=cause) for each in again]
    steps = [
        (),
        (AlertEvent(NOW, 1, CAUSED, cause=cause),),
        (),
        (*again, *of_each),
        (AlertEvent(NOW, 1, CAUSED),),
    ]
    topics: list[Topic] = []
    said = []
    for more in steps:
        alert = replace(alert, events=(*alert.events, *more))
        site = replace(site, alerts=(alert,))
        topics, events = changes(topics, site, NOTIFIED)
        texts = [message_of(event, site, "https://here/").text for event in events]
        new = [line for text in texts for line in text.splitlines() if line.startswith("New: ")]
        said.append(([event.kind for event in events], new))
    known = "New: the cause: lustre 2.15.5 since 9 Nov (odds 96.6 to 1)"
    fell = "New: 2 series fell again, seen on 21 Nov: a fpp ofi write_bw, a fpp ucx write_bw"
    of_that = known.replace("cause:", "cause of the further fall:")
    assert said == [
        (["began"], []),
        (["cause"], [known]),
        ([], []),
        (["worse"], [fell, of_that]),
        (["cause"], ["New: the cause: no longer certain"]),
    ]
    # what an earlier version has recorded is not news
    before = [structs.replace(each, found=None) for each in topics]
    assert changes(before, site, NOTIFIED)[1] == []


def test_a_message_fits_a_mail_and_says_of_what_system_and_what_to_do(tmp_path: Path) -> None:
    rows = [row for p in ("fpp", "ssf") for row in daily([2.0] * 30, pattern=p, last=9.25)]
    rows += daily([2.0] * 30, file_system="other")
    files = SiteFiles(tmp_path).write(rows)
    failed = case(
        file_system="x", display_name="Ior", fail_reason=f"no /opt/ior/bin: {'try ' * 40}"
    )
    write_report(tmp_path / "perflogs", [failed])
    messages = [message_of(e, files.read(), "https://here/io/iobands/long-name/for/a/page/" * 2)
                for e in changes([], files.read(), NOTIFIED)[1]]  # fmt: skip
    assert [(each.severity, each.system) for each in messages] == [
        ("no data", "here"),
        ("failed", "here"),
    ]
    missing, unmade = (each.text for each in messages)
    assert "Next step: iobands explain 'disk fpp write_bw'\n" in missing
    assert "acknowledge" not in missing
    for each in messages:
        lines = each.text.splitlines()
        assert max(len(line) for line in lines[:-1]) <= 80
        assert lines[-1] == each.page  # a link stays whole
    assert unmade.count("try") == 40


def test_ten_alerts_of_many_series_make_one_post_of_mattermost(tmp_path: Path) -> None:
    """It splits a post of more than 16,383 characters, whose parts are no code any more."""
    hints = [f"hints with {'quite ' * 9}a long name {n}" for n in range(22)]
    rows = [row for each in hints for row in daily([1.5] * 30, last=5.25, hints=each)]
    site = SiteFiles(tmp_path).write(rows).read()
    (event,) = changes([], site, NOTIFIED)[1]
    (alert,) = event.alerts
    message = message_of(replace(event, alerts=(alert,) * 10), site, "")
    assert len(f"`{message.title}`\n```\n{message.text}```") <= 16_383


def test_a_long_name_makes_no_message_that_services_refuse(tmp_path: Path) -> None:
    """GitHub takes 65,536 characters. A part of a quoted command would run what a name says."""
    name = "x'; touch ran; '" * 2000
    rows = [row for n in range(8) for row in daily([2.0] * 30, file_system=name, case=f"{n}")]
    rows += [row for n in range(8) for row in daily([2.0] * 30, file_system=f"{n}{name}")]
    site = SiteFiles(tmp_path).write(rows).read(NOW + 9 * DAY)
    events = changes([], site, NOTIFIED)[1]
    assert events
    for each in events:
        message = message_of(each, site, "")
        assert len(message.text) < 30_000
        assert len(message.subject) < 1100
        assert max(map(len, message.series)) < 1100
        assert "iobands explain" not in message.text


def test_a_message_of_the_past_still_leads_to_its_alert(tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=levels((105, 1), (15, 0.6), (20, 1)))
    sent, pages = [], []
    for day in (118, 140):
        sent, events = changes(sent, site.after(day), NOTIFIED)
        pages += [message_of(each, site.again(), "https://here/") for each in events]
    assert [(each.kind, each.alert, each.page) for each in pages] == [
        ("began", 1, "https://here/alerts/here-1.html"),
        ("recovered", 1, "https://here/alerts/here-1.html"),
    ]


def test_an_improvement_does_not_recover(tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=levels((105, 1), (15, 1.6), (20, 1)))
    topics, _ = changes([], site.after(118), frozenset({"improved"}))
    _, (event,) = changes(topics, site.after(140), NOTIFIED)
    over = message_of(event, site.again(), "")
    assert (over.kind, over.title) == ("recovered", "fell back: improved 1 disk fpp write_bw")
    assert "\nHow it ended: fell back\n" in over.text


@pytest.mark.parametrize(
    ("kind", "word"),
    [("resolve", "resolved"), ("rebaseline", "rebaselined"), ("retire", "retired")],
)
def test_what_a_person_ended_has_not_recovered(kind: str, word: str, tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=levels((105, 1), (15, 0.6)))
    topics, (event,) = changes([], site.after(120), NOTIFIED)
    began = message_of(event, site.again(), "")
    site.does(kind, force=True)
    _, (event,) = changes(topics, site.again(), NOTIFIED)
    over = message_of(event, site.again(), "")
    assert (over.kind, over.title) == ("recovered", f"{word}: degraded 1 disk fpp write_bw")
    assert f"\nHow it ended: {word} by jane: a reason\n" in over.text
    # its fields are those with which it began, by which filters find it
    assert (over.subject, over.since) == (began.subject, began.since)
    assert (over.subject, over.system, over.alert) == ("disk fpp write_bw", "here", 1)
    assert over.since == (NOW - 14.25 * DAY).isoformat()


def test_a_suspicion_that_became_an_alert_has_not_recovered(tmp_path: Path) -> None:
    site = Growing(tmp_path, disk=levels((105, 1), (15, 0.75)))
    topics: list[Topic] = []
    said = []
    for day in range(106, 110):
        topics, events = changes(topics, site.after(day), NOTIFIED | {"watch"})
        messages = [message_of(each, site.again(), "") for each in events]
        said += [
            (each.kind, each.title.split(",")[0], each.text.split(";")[0]) for each in messages
        ]
    kinds, titles, texts = zip(*said, strict=True)
    assert kinds == ("began", "recovered", "began")
    assert titles == (
        "began: watch disk fpp write_bw",
        "replaced: watch disk fpp write_bw",
        "began: degraded 1 disk fpp write_bw",
    )
    assert texts[1] == "disk fpp write_bw: now degraded 1 disk fpp write_bw"


def test_an_alert_that_became_part_of_another_has_not_recovered(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).days(slow(0.6, file_system="a")).read()
    (alert,) = [each for each in site.alerts if each.number == 1]
    second = replace(alert, number=2, members=alert.members[:1], subject="a fpp ofi write_bw")
    topics, _ = changes([], replace(site, alerts=(alert, second)), NOTIFIED)
    merged = replace(site, past=(replace(second, ended=NOW, end="merged into 1"),))
    _, (event,) = changes(topics, merged, NOTIFIED)
    over = message_of(event, merged, "")
    assert over.title == "replaced: degraded 2 a fpp ofi write_bw"
    assert over.text.startswith(
        "2 a fpp ofi write_bw: now degraded 1 a writes (4 of 4 series); known since"
    )


def test_series_without_samples_have_not_recovered_where_their_file_system_is_unfit(
    tmp_path: Path,
) -> None:
    files, sent = SiteFiles(tmp_path).write(daily([1.5] * 30, last=5.25)), Sent()
    site = files.read()
    assert sent.of(site) == ["began: no data disk fpp write_bw"]
    (series,) = site.series
    unfit = Obstacle("disk", "here", "local", "not mounted", NOW, (), frozenset({series.key}))
    alert = Alert(Severity.UNFIT, "disk", reason="not mounted", system="here")
    assert sent.of(replace(site, alerts=(alert,), obstacles=(unfit,))) == [
        "replaced: no data disk fpp write_bw",
        "began: unfit disk",
    ]


def test_file_systems_that_are_unfit_for_one_reason_are_one_topic(tmp_path: Path) -> None:
    site = SiteFiles(tmp_path).write(daily([1.5] * 30, last=5.25)).read()
    topics, _ = changes([], site, NOTIFIED)
    (series,) = site.series
    why = "not mounted; 4 checks not run"
    stopped = tuple(
        Obstacle("disk", "here", name, why, NOW, (), frozenset({series.key})) for name in "ab"
    )
    disk = Alert(Severity.UNFIT, "disk", reason=why, system="here")
    work, other = replace(disk, subject="work"), replace(disk, subject="fast", reason="full")
    site = replace(site, alerts=(disk, work, other), obstacles=stopped)
    over, *began = (message_of(each, site, "") for each in changes(topics, site, NOTIFIED)[1])
    assert over.text.startswith("disk fpp write_bw: now unfit disk; known since")
    assert [each.title for each in began] == [
        f"began: unfit disk and 1 more, {why}",
        "began: unfit fast, full",
    ]


def test_the_title_of_a_message_about_a_failure_begins_with_its_cause(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).write(daily([1.5] * 30, last=1))
    full = "benchio: rank 0 on host n1: write of proc0.dat failed: No space left on device"
    failed = {"fail_phase": "sanity", "fail_reason": f"sanity error: exit status 1: {full}"}
    write_report(files.perflogs, [case(**failed)])
    site = files.read()
    (message,) = [message_of(each, site, "") for each in changes([], site, NOTIFIED)[1]]
    assert message.title == f"began: no data disk fpp write_bw, {full}"
    assert f"failed: sanity error: exit status 1: {full}" in " ".join(message.text.split())
    failed["fail_reason"] = f"sanity error: {'long ' * 99}"
    write_report(files.perflogs, [case(**failed)])
    site = files.read()
    (message,) = [message_of(each, site, "") for each in changes([], site, NOTIFIED)[1]]
    assert (message.title.count("long"), message.title[-1]) == (32, "…")


def test_another_cause_of_missing_samples_is_news_once(tmp_path: Path) -> None:
    files, sent = SiteFiles(tmp_path).write(daily([1.5] * 30, last=1)), Sent()
    late, full = "job timed out after {} s", "write of proc{}.dat failed: No space left on device"
    titles = []
    for number, why in enumerate([late, late, full, full, late, full]):
        failed = f"sanity error: {why.format(number)}"
        write_report(files.perflogs, [case(fail_phase="sanity", fail_reason=failed)])
        titles += [sent.of(files.read())]
    name = "no data disk fpp write_bw"
    assert titles == [[f"began: {name}"], [], [f"cause: {name}"], [], [], []]
    sent.causes = [structs.replace(each, reasons=None) for each in sent.causes]  # an older file
    assert sent.of(files.read()) == []


def test_trouble_of_a_series_at_another_scale_is_over(tmp_path: Path) -> None:
    """The site now measures with two processes, not four, and nobody waits for the old series."""
    slow_runs = daily(levels((105, 1), (15, 0.6)), last=4)
    files, sent = SiteFiles(tmp_path), Sent()
    missing = daily([1.5] * 30, last=10, pattern="ssf")
    assert sorted(sent.of(files.write([*slow_runs, *missing]).read(NOW - 4 * DAY))) == [
        "began: degraded 1 disk fpp write_bw",
        "began: no data disk ssf write_bw",
    ]
    smaller = [row for each in ("fpp", "ssf") for row in daily([1.5] * 3, pattern=each, tasks=2)]
    site = files.write([*slow_runs, *missing, *smaller]).read()
    assert len(site.superseded) == 2
    assert sorted(sent.of(site)) == [
        "recovered: degraded 1 disk fpp write_bw",
        "recovered: no data disk ssf write_bw",
    ]


def test_how_an_alert_ended_is_of_its_own_system(tmp_path: Path) -> None:
    """Each system counts its alerts from 1."""
    values, sent = levels((105, 1), (15, 0.6)), Sent()
    files = SiteFiles(tmp_path)
    systems = ("here", "there")
    files.write([row for name in systems for row in daily(values, system=name)])
    site = files.read()
    assert [each.number for each in site.alerts] == [1, 1]
    sent.of(site)
    healthy = files.write(
        [row for name in systems for row in daily([*values, *levels((30, 1))], system=name)]
    ).read()
    _, events = changes(sent.causes, healthy, NOTIFIED)
    texts = [message_of(event, healthy, None).text for event in events]
    assert [text.count("How it ended") for text in texts] == [1, 1]


def test_a_flaky_check_that_fails_again_is_no_news_until_it_fails_three_times_in_a_row(
    tmp_path: Path,
) -> None:
    files = flaky_site(tmp_path, (60, 50, 40, 30, 22, 12, 11, 3, 2, 1, 0))
    sent = Sent()
    by_day = {
        ago: titles
        for ago in range(70, -1, -1)
        if (titles := sent.of(files.judge(NOW - ago * DAY, as_of=True).snapshot))
    }
    missing, flaky = "no data fs0 fpp", "flaky 1 fs0 fpp"
    assert by_day == {
        60: [f"began: {missing}"],
        59: [f"recovered: {missing}"],
        50: [f"began: {missing}"],
        49: [f"recovered: {missing}"],
        40: [f"began: {flaky}"],
        33: [f"still open: {flaky}"],
        1: [f"began: {missing}"],
    }
