"""Targets and nodes of a site: their speeds in perflogs, and which of them is named as slow."""

import json
import re
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from rich.console import Console

from iobands.judge.peer_scan import compare_peers
from iobands.judge.requests import RequestError
from iobands.notify.changes import changes, message_of
from iobands.snapshot import Action, PeerState, Speeds, in_force, public
from iobands.snapshot.stored import to_json
from iobands.source.action_log import ALERT_LOG, alert_log, append
from iobands.views.dashboard.overview import overview
from iobands.views.dashboard.series import peer_map
from iobands.views.digest import digest_text, explanation
from iobands.views.peers import peers_text
from tests.factory import NOW, daily, days_ago, line, write_bands, write_perflog
from tests.sites import SiteFiles
from tests.views.test_digest import text as digest

LUSTRE = {"file_system": "work", "file_system_type": "lustre", "stripe_count_asked": "1"}


def speeds(values, variables=("write_bw", "read_bw")):
    text = ",".join(f"{name}:{value:.3g}" for name, value in values.items())
    return ";".join(f"{variable}={text}" for variable in variables)


def with_targets(days, slow=None, since=0, targets=24, level=0.5, first=0, seed=1, fall=1):
    """Return one line per day; the target `slow` is at `level` from `since` days ago on.

    From then on, the rate is multiplied by `fall`.
    """
    random = np.random.default_rng(seed)
    lines = []
    for day in range(days - 1, -1, -1):
        noise = np.exp(random.normal(0, 0.05, targets))
        values = {first + place: noise[place] for place in range(targets)}
        if slow is not None and day < since:
            values[slow] *= level
        lines.append(
            line(
                job_completion_time=days_ago(day + 0.25),
                target_bandwidths=speeds(values),
                perf_value=random.normal(1.5, 0.1) * (fall if day < since else 1),
                **LUSTRE,
            )
        )
    return lines


def found(site, kind="target"):
    (place,) = [each for each in site.places if each.kind == kind]
    return place, {each.name: each for each in place.found["write_bw"]}


@pytest.mark.parametrize(("names", "sessions"), [((None, None), 6), (("a", "a"), 3)])
def test_runs_of_one_session_are_one_observation(tmp_path, names, sessions):
    lines = [
        line(
            job_completion_time=days_ago(day + hours / 24),
            target_bandwidths=speeds(dict.fromkeys(range(4), 1.0)),
            session=f"{name}{day}" if name else "null",
            **LUSTRE,
        )
        for day in (2, 1, 0)
        for name, hours in zip(names, (3, 2), strict=True)
    ]
    place, _ = found(SiteFiles(tmp_path).write(lines).read())
    assert len(place.speeds["write_bw"].times) == sessions


def test_a_target_at_half_speed_is_named_after_three_days(tmp_path):
    files = SiteFiles(tmp_path)
    _, peers = found(files.write(with_targets(40, 7, since=2)).read())
    assert peers["7"].state is PeerState.WATCH
    place, peers = found(files.write(with_targets(40, 7, since=3)).read())
    assert place.name_of("7") == "OST 7 of work"
    assert [name for name, each in peers.items() if each.state is PeerState.SLOW] == ["7"]
    assert 0.45 < peers["7"].ratio.low < 0.5 < peers["7"].ratio.high < 0.6
    assert f"{peers['7'].since:%d %H}" == "18 19"  # the third day before the 21st at 01:30


def test_a_target_with_one_low_session_is_a_suspect_and_a_named_one_is_not(tmp_path):
    files = SiteFiles(tmp_path)
    place, peers = found(files.write(with_targets(40, 7, since=1)).read())
    # the evidence of one session is at most ln(0.9 / 0.02) = 3.8 nats
    assert place.suspects() == {"7": pytest.approx(np.log(0.9 / 0.02))}
    beside = place.healthy()[0]
    assert peers[beside].ratio.value == pytest.approx(1, abs=0.01)
    place, _ = found(files.write(with_targets(40, 7, since=3)).read())
    assert place.suspects() == {}
    assert "7" not in place.healthy()


def test_it_recovers_and_a_drained_one_is_not_used(tmp_path):
    files = SiteFiles(tmp_path)
    lines = with_targets(40, 7, since=20)
    healthy = with_targets(3)
    site = files.write([*lines[:-3], *healthy]).read()
    _, peers = found(site)
    assert peers["7"].state is PeerState.HEALTHY
    assert 0.9 < peers["7"].ratio.value < 1.1
    (entry,) = site.ledger.entries
    assert (entry.subject, entry.end) == ("OST 7 of work", "again as fast as the others")
    assert (entry.ended - entry.raised).days == 17
    drained = [re.sub(r",7:0\.\d+", ",27:1", text) for text in lines[-3:]]
    site = files.write([*lines[:-3], *drained]).read()
    _, peers = found(site)
    assert peers["7"].state is PeerState.UNUSED
    assert [each.end for each in site.ledger.entries] == ["no longer used"]
    assert peers["7"].since is None
    page = peer_map(site.places[0])  # whose table says as much as the command's
    (unused,) = (each for each in page["rows"] if each["name"] == "7")
    assert site.now - unused["since"] == timedelta(days=3.25)  # of its last run
    (said,) = page["meanings"]
    assert said.startswith("not used: ") and said.endswith("Since is its last run")


def test_what_is_over_says_how_slow_a_target_was(tmp_path):
    lines = with_targets(60, 7, since=40)
    site = SiteFiles(tmp_path).write([*lines[:-20], *with_targets(20)]).read()
    (past,) = site.past
    assert past.certainty is None  # the certainty at that time is not recorded
    assert past.peer.ratios.keys() == {"write_bw", "read_bw"}
    assert past.peer.ratio.value == pytest.approx(0.5, rel=0.05)
    (entry,) = site.ledger.entries
    assert entry.ratio == past.peer.ratio.value
    said = explanation(site, past)
    assert "Cause: OST 7 of work was slow" in said
    assert re.search(r"^write_bw: 0\.(4[89]|5[012]) × the others$", said, re.MULTILINE)


def test_an_alert_that_is_over_began_when_the_digest_said(tmp_path):
    lines = with_targets(60, 7, since=40)
    files = SiteFiles(tmp_path).write([*lines[:-20], *with_targets(20)])
    first, third = (NOW - timedelta(days=days + 0.25) for days in (39, 37))
    (alert,) = files.read(NOW - timedelta(days=25), as_of=True).alerts
    assert (alert.since, alert.raised) == (first, third)
    site = files.read()
    (past,), (entry,) = site.past, site.ledger.entries
    assert (past.since, past.since_low, past.since_high) == (
        alert.since,
        alert.since_low,
        alert.since_high,
    )
    assert (entry.since, entry.raised) == (first, third)
    assert "degraded from 12 Oct to 3 Nov" in explanation(site, past)


def test_an_alert_began_with_the_variable_that_fell_first(tmp_path):
    # the writes of the target are slow for ten days, and for the last five its reads are
    texts = []
    for day in range(40, -1, -1):
        healthy = dict.fromkeys(range(24), 1.0)
        writes, reads = healthy | {7: 0.5} if 5 <= day < 15 else healthy, healthy
        if day < 8:
            reads = healthy | {7: 0.5}
        texts.append(f"{speeds(writes, ['write_bw'])};{speeds(reads, ['read_bw'])}")
    site = SiteFiles(tmp_path).write(with_columns(41, texts)).read()
    (alert,) = site.alerts
    assert alert.peer.ratios.keys() == {"read_bw"}  # the writes are as fast as before
    assert alert.since <= alert.raised
    assert alert.since == NOW - timedelta(days=14.25)


def test_runs_of_one_day_are_one_session(tmp_path):
    lines = with_targets(4, 7, since=1)
    others = [text.replace("|fpp|", "|fpp-other|") for text in lines]
    named = [text.replace("BenchioFPP %", "Other %") for text in others]
    _, peers = found(SiteFiles(tmp_path).write([*lines, *others, *named]).read())
    assert peers["7"].runs == 4
    assert peers["7"].state is PeerState.HEALTHY


def test_an_epoch_begins_anew_where_targets_were_renumbered(tmp_path):
    files = SiteFiles(tmp_path)
    files.write([*with_targets(30, 7, since=30)[:20], *with_targets(10, first=1)])
    write_bands(files.bands, since=days_ago(9.75)[:10])
    _, peers = found(files.read())
    assert "0" not in peers
    assert {each.state for each in peers.values()} == {PeerState.HEALTHY}


@pytest.mark.parametrize("few", [1, 2])
def test_of_two_targets_nobody_can_tell(tmp_path, few):
    _, peers = found(SiteFiles(tmp_path).write(with_targets(30, 0, 30, targets=few)).read())
    assert {each.state for each in peers.values()} == {PeerState.UNKNOWN}


def test_a_pool_that_shrinks_leaves_the_others_judged_while_they_are_three(tmp_path):
    files = SiteFiles(tmp_path)
    before = with_targets(34, 1, since=10)[:30]
    _, peers = found(files.write([*before, *with_targets(4, 1, since=4, targets=3)]).read())
    states = [peers[str(target)].state.value for target in range(24)]
    assert states == ["healthy", "slow", "healthy", *["not used"] * 21]
    site = files.write([*before, *with_targets(4, 1, since=4, targets=2)]).read()
    assert {found(site)[1][name].state for name in "01"} == {PeerState.UNKNOWN}
    assert [each.end for each in site.ledger.entries] == ["no longer compared"]


def test_a_slow_target_stays_an_alert_between_the_few_runs_that_use_it(tmp_path):
    random = np.random.default_rng(1)
    lines = []
    for text, day in zip(with_targets(77, 7, since=50), range(77), strict=True):
        some = random.choice(24, 24 if day % 7 == 0 else 4, replace=False)
        kept = [rf"(?<=[=,]){target}:[^,;|]+" for target in some if day % 7 == 0 or target != 7]
        said = ",".join(sorted(re.search(each, text)[0] for each in kept))
        lines.append(re.sub(r"write_bw=0:[^|]+", f"write_bw={said}", text))
    _, peers = found(SiteFiles(tmp_path).write(lines).read())
    assert peers["7"].runs == 11
    assert {each.state for name, each in peers.items() if name != "7"} == {PeerState.HEALTHY}
    assert peers["7"].state is PeerState.SLOW


def test_renumbered_targets_are_judged_anew_within_four_sessions(tmp_path):
    lines = [*with_targets(34, 7, since=34)[:30], *with_targets(4, 3, since=4)]
    _, peers = found(SiteFiles(tmp_path).write(lines).read())
    slow = [name for name, each in peers.items() if each.state is PeerState.SLOW]
    assert slow == ["3"]


def test_nodes_are_drawn_anew_each_night(tmp_path):
    random = np.random.default_rng(3)
    lines = []
    for day in range(99, -1, -1):
        nodes = random.choice(100, 16, replace=False)
        values = {f"n{node:03d}": np.exp(random.normal(0, 0.04)) for node in nodes}
        if "n042" in values:
            values["n042"] *= 0.5
        text = speeds(values)
        lines.append(line(job_completion_time=days_ago(day + 0.25), node_speeds=text))
    _, peers = found(SiteFiles(tmp_path).write(lines).read(), "node")
    slow = [name for name, each in peers.items() if each.state is PeerState.SLOW]
    assert slow == ["n042"]


@pytest.mark.parametrize(
    "text", ["write_bw", "write_bw=", "0:1,1:1", "write_bw=0:1,1:x", "write_bw=0:-1", "a=0:1"]
)
def test_a_text_that_is_no_speeds_costs_itself_alone(tmp_path, text):
    bad = line(target_bandwidths=text, **LUSTRE)
    site = SiteFiles(tmp_path).write([*with_targets(30), bad]).read()
    (rejected,) = site.rejected
    assert rejected.reason.startswith("target_bandwidths: ")
    assert site.series[0].status.runs == 31
    assert found(site)[1]["0"].runs == 30


def test_a_name_of_thousands_of_digits_is_a_name(tmp_path):
    odd = ",".join(f"{name}:1" for name in ("1" * 5000, "2", "10"))
    bad = line(target_bandwidths=f"write_bw={odd}", **LUSTRE)
    place = found(SiteFiles(tmp_path).write([*with_targets(30), bad]).read())[1]
    assert [*place][:3] == ["0", "1", "2"]
    assert place["0"].runs == 30


def test_a_perflog_without_the_columns(tmp_path):
    assert SiteFiles(tmp_path).write(daily([1, 2, 3])).read().places == ()


def test_a_slow_target_is_one_alert_with_the_series_that_fell_with_it(tmp_path):
    files = SiteFiles(tmp_path).write(with_targets(90, 7, since=8, fall=0.5))
    (alert,) = files.read().alerts
    assert (alert.subject, alert.severity.value) == ("OST 7 of work", "degraded")
    assert [each.series.label for each in alert.members] == ["work fpp write_bw"]
    assert alert.certainty.value == "certain"
    digest = digest_text(files.read(), Console(width=120))
    assert "OST 7 of work  0.49 × the others: drain it  since 13 Nov  certain" in digest
    document = json.loads(to_json(files.read()))
    assert document["exit_status"] == 2
    assert document["alerts"][0]["peer"]["name"]["name"] == "7"


def test_a_drop_elsewhere_is_no_part_of_it(tmp_path):
    fell = with_targets(90, since=40, fall=0.5)
    slow = [text.replace("|fpp|", "|ssf|") for text in with_targets(90, 7, since=4)]
    named = [text.replace("BenchioFPP %", "Other %") for text in slow]
    site = SiteFiles(tmp_path).write([*fell, *named]).read()
    assert {each.subject for each in site.alerts} == {
        "OST 7 of work",
        "work fpp write_bw",
    }


def test_what_people_do_about_a_slow_target(tmp_path):
    files = SiteFiles(tmp_path).write(with_targets(60, 7, since=8))
    action = files.act("acknowledge", "OST 7 of work")
    assert (action.target, action.series) == ("7", ({"file_system": "work"},))
    site = files.read()
    (alert,) = site.alerts
    assert (alert.is_quiet, site.exit_status) == (True, 1)
    # the action is on no series
    assert not any(each.actions for each in site.series)
    # the public page shows that it is acknowledged, and no command
    (shown,) = overview(public(site), {})["alerts"]
    assert (shown["says"][0], shown["says"][-1]) == ("0.49 × the others", "acknowledged")
    files.act("undo", "OST 7 of work", now=NOW + timedelta(minutes=1))
    with pytest.raises(RequestError, match="OST 7 of work: the change began later"):
        files.act("resolve", "OST 7 of work", since=NOW - timedelta(days=30))
    files.act("resolve", "OST 7 of work", now=NOW + timedelta(minutes=2))
    later = NOW + timedelta(minutes=3)
    assert files.read(later).alerts == ()
    with pytest.raises(RequestError, match="no open alert"):
        files.act("acknowledge", "OST 7 of work", now=later)
    with pytest.raises(RequestError, match="acknowledge, resolve or rebaseline"):
        files.act("retire", "OST 7 of work", now=later)


@pytest.mark.parametrize(("kind", "end"), [("resolve", "resolved"), ("rebaseline", "rebaselined")])
def test_an_answer_to_a_slow_target_is_one_to_the_series_that_fell_with_it(tmp_path, kind, end):
    files = SiteFiles(tmp_path).write(with_targets(90, 7, since=8, fall=0.5))
    (alert,) = files.read().alerts
    assert alert.peer
    assert alert.members
    later = NOW + timedelta(minutes=2)
    files.act(kind, "1", now=NOW + timedelta(minutes=1), force=True)
    site = files.read(later)
    assert site.alerts == ()
    (past,) = site.past
    assert (past.end, past.peer.ratio.value) == (end, pytest.approx(0.5, rel=0.05))
    assert all(each.ratio.value == pytest.approx(0.5, rel=0.1) for each in past.members)
    (entry,) = site.ledger.entries
    assert (entry.number, entry.ending) == (1, f"{end} by jane: a reason")
    assert " ".join(explanation(site, past).split()).count(f"{end} at 01:31") == 1
    # one word takes it back
    files.act("undo", "1", now=later)
    (again,) = files.read(later + timedelta(minutes=1)).alerts
    assert (again.number, len(again.members)) == (1, len(alert.members))


def test_an_answer_without_a_number_ends_the_alert_of_a_target(tmp_path):
    files = SiteFiles(tmp_path).write(with_targets(60, 7, since=8))
    judged = files.judge()
    ALERT_LOG.append(alert_log(files.perflogs, "here"), judged.news["here"])
    spans = {"since": judged.snapshot.alerts[0].since_low, "until": NOW}
    about = ({"file_system": "work"},)
    append(
        files.alerts, "here", [Action("resolve", NOW, "me", "a disk", about, **spans, target="7")]
    )
    (entry,) = files.read(NOW + timedelta(minutes=1)).ledger.entries
    assert (entry.number, entry.ending) == (1, "resolved by me: a disk")


def test_a_new_level_of_a_repaired_target_is_none_of_the_series_that_are_fast_again(tmp_path):
    lines = with_targets(90, 7, since=8, fall=0.5)
    files = SiteFiles(tmp_path).write([*lines[:-1], *with_targets(1, 7, since=1, level=1.4)])
    (alert,) = files.read().alerts
    assert alert.members
    action = files.act("rebaseline", "1", now=NOW + timedelta(minutes=1))
    assert action.target == "7"
    assert not any(each.actions for each in files.read(NOW + timedelta(minutes=2)).series)


def test_a_target_that_is_fast_again_leaves_an_alert_of_the_series_that_are_not(tmp_path):
    lines = with_targets(90, 7, since=10, fall=0.5)
    site = SiteFiles(tmp_path).write([*lines[:-5], *with_targets(5, since=5, fall=0.5)]).read()
    (alert,) = site.alerts
    assert not alert.peer.is_slow
    (said,) = (each for each in digest(site).splitlines() if "OST 7" in each)
    assert re.search(r"OST 7 of work +[\d.]+ GiB/s \(−(49|5\d) %\) +since 11 Nov", said), said
    assert "Cause: OST 7 of work was slow\n" in explanation(site, alert)


def test_an_undone_acknowledgement_of_a_target_leaves_the_answers_to_its_series(tmp_path):
    files = SiteFiles(tmp_path).write(with_targets(90, 7, since=8, fall=0.5))
    (alert,) = files.read().alerts
    one = alert.members[0].series.label
    own = files.act("acknowledge", one)
    files.act("acknowledge", "1", now=NOW + timedelta(minutes=1))
    files.act("undo", "1", now=NOW + timedelta(minutes=2))
    (series,) = (
        each for each in files.read(NOW + timedelta(minutes=3)).series if each.label == one
    )
    assert in_force(series.actions) == (own,)


def test_an_acknowledged_target_that_became_far_worse_is_loud(tmp_path):
    files = SiteFiles(tmp_path).write(with_targets(60, 7, since=8))
    files.act("acknowledge", "OST 7 of work")
    files.write(with_targets(60, 7, since=8, level=0.2))
    (alert,) = files.read().alerts
    assert not alert.is_quiet


def test_of_a_target_it_is_not_said_that_its_alert_stays_until_its_series_are_acknowledged(
    tmp_path, iobands
):
    files = SiteFiles(tmp_path).write(with_targets(90, 7, since=8, fall=0.5))
    (alert,) = files.read().alerts
    assert alert.members
    given = ("--perflogs", str(files.perflogs), "--config", str(files.alerts.parent))
    done = iobands("acknowledge", "OST 7 of work", "--reason", "x", *given)
    assert "1 OST 7 of work: acknowledged until it recovers or becomes worse\n" in done.stdout
    assert "stays until" not in done.stdout


def test_messages_name_the_target_in_place_of_its_series(tmp_path):
    files = SiteFiles(tmp_path)
    kinds = frozenset({"degraded"})
    fell = with_targets(90, since=8, fall=0.5)
    causes, events = changes([], files.write(fell).read(), kinds)
    assert [each.topic.title for each in events] == ["1 work fpp write_bw"]
    named = files.write(with_targets(90, 7, since=8, fall=0.5)).read()
    causes, events = changes(causes, named, kinds)
    assert [(each.kind, each.topic.title) for each in events] == [("cause", "1 OST 7 of work")]
    assert [each.title for each in causes] == ["1 OST 7 of work"]
    text = message_of(events[0], named, "").text
    assert "iobands explain 1\n" in text
    (alert,) = named.alerts
    said = explanation(named, alert)
    assert "-S BenchioFPP.target=7" in said
    assert f"fell with it: {len(alert.members)}\n" in said


def test_a_table_of_targets_names_its_system_if_there_are_several(tmp_path):
    one, name = with_targets(50, 7, since=4), "a-system-of-some-length"
    other = [each.replace("|here|", f"|{name}|") for each in with_targets(50, 7, since=4)]
    files = SiteFiles(tmp_path).write(one)
    write_perflog(files.perflogs, other, system=name)
    site = files.read()
    found = re.findall("^OSTs of (.+?):", peers_text(site, "target"), re.M)
    assert found == [f"work system={name}", "work system=here"]
    # in the digest, no word of the name is broken
    said = digest(site, 80)
    assert f"OST 7 of work system={name}\n" in said
    assert max(map(len, said.splitlines())) <= 80


def test_slow_targets_come_first_and_a_healthy_one_is_not_explained(tmp_path, iobands):
    healthy = [each.replace("|work|", "|home|") for each in with_targets(50, seed=2)]
    files = SiteFiles(tmp_path).write([*healthy, *with_targets(50, 7, since=4)])
    text = peers_text(files.read(), "target")
    assert re.findall("^OSTs of (.+?):", text, re.M) == ["work", "home"]
    when = ("--perflogs", str(files.perflogs), "--as-of", f"{NOW:%Y-%m-%dT%H:%M:%SZ}")
    for name in ("OST 8 of work", "work 8"):
        done = iobands("explain", name, *when)
        assert done.returncode == 3
        assert "OST 8 of work has no alert; list all with: iobands targets\n" in done.stderr
    assert "no series or alert is named OST home" in iobands("explain", "OST home", *when).stderr


def test_after_an_epoch_began_no_empty_table_is_shown(tmp_path):
    files = SiteFiles(tmp_path).write(with_targets(50))
    site = files.read()
    site = replace(site, places=tuple(replace(each, found={}) for each in site.places))
    assert (
        peers_text(site, "target") == "OSTs of work: no run since the epoch began compares them\n"
    )


@pytest.mark.parametrize("kind", ["target", "node"])
def test_where_nothing_compares_the_answer_fits_a_terminal(tmp_path, kind):
    site = SiteFiles(tmp_path).days(lambda fields, day: 1.0, days=3).read()
    lines = peers_text(site, kind).splitlines()
    assert lines[0].startswith(f"No run of the last 200 days compares {kind}s; this needs a file")
    assert max(map(len, lines)) <= 80


def test_the_heat_map_has_the_slowest_of_each_day(tmp_path):
    nodes = "write_bw=n0:1,n1:1,n2:0.2"
    lines = [*with_targets(50, 7, since=4), line(node_speeds=nodes, partition="login")]
    site = SiteFiles(tmp_path).write(lines).read()
    of_targets, of_nodes = map(peer_map, site.places)
    first = of_targets["rows"][0]
    assert (first["name"], first["state"], len(first["percent"])) == ("7", "slow", 42)
    assert max(first["percent"][-4:]) < 70 < min(first["percent"][:-4])
    assert of_targets["sessions"] == sorted(of_targets["sessions"])
    assert {row["name"]: row["percent"] for row in of_nodes["rows"]}["n2"] == [20]


def test_a_heat_map_has_400_rows_and_counts_all(tmp_path):
    nodes = "write_bw=" + ",".join(f"n{number}:1" for number in range(402))
    (place,) = SiteFiles(tmp_path).write([line(node_speeds=nodes)]).read().places
    found = peer_map(place)
    assert (len(found["rows"]), found["count"]) == (400, 402)


def with_columns(days, texts):
    return [
        line(job_completion_time=days_ago(day + 0.25), target_bandwidths=text, **LUSTRE)
        for day, text in zip(range(days - 1, -1, -1), texts, strict=True)
    ]


def test_the_two_real_unbalanced_runs_repeated_for_200_days_name_no_ost(tmp_path):
    # what test_speeds.py finds in the captured times of ranks
    texts = [
        "write_bw=0:nan,1:1,2:1.29;read_bw=0:nan,1:1,2:0.997",
        "write_bw=0:nan,1:1.18,5:nan",
    ]
    for number, text in enumerate(texts):
        site = SiteFiles(tmp_path / str(number)).write(with_columns(200, [text] * 200)).read()
        assert not [each for each in site.alerts if each.peer]


def test_of_three_targets_a_slow_one_is_no_noise_of_its_sessions(tmp_path):
    # Each is compared with the other two: where 0 has half of their speed, they have 1/√0.5 of it.
    healthy = ["write_bw=0:0.9,1:1,2:1.1", "write_bw=0:1.1,1:0.9,2:1"] * 10
    slow = ["write_bw=0:0.5,1:1.41,2:1.41"] * 3
    _, peers = found(SiteFiles(tmp_path).write(with_columns(23, [*healthy, *slow])).read())
    states = {name: each.state.value for name, each in peers.items()}
    assert states == {"0": "slow", "1": "healthy", "2": "healthy"}


def test_sessions_that_tell_nothing_of_a_slow_target_do_not_end_its_alert(tmp_path):
    texts = [re.search(r"write_bw=0:[^|]+", text)[0] for text in with_targets(40, 7, since=20)]
    blind = [re.sub(r"(?<=,)7:[^,;]+", "7:nan", text) for text in texts]
    _, peers = found(SiteFiles(tmp_path).write(with_columns(40, [*texts[:30], *blind[30:]])).read())
    assert peers["7"].runs == 40
    assert peers["7"].state is PeerState.UNKNOWN
    mixed = [b if day % 3 else t for day, (t, b) in enumerate(zip(texts, blind, strict=True))]
    _, peers = found(SiteFiles(tmp_path / "mixed").write(with_columns(40, mixed)).read())
    assert peers["7"].state is PeerState.SLOW


def test_a_target_that_others_keep_busy_now_and_then_is_not_slow_because_all_else_is_explained(
    tmp_path,
):
    texts = [re.search(r"write_bw=0:[^|]+", text)[0] for text in with_targets(100, 7, since=100)]
    blind = [re.sub(r"(?<=,)7:[^,;]+", "7:nan", text) for text in texts]
    # at half speed in every tenth session
    mixed = [b if day % 10 else t for day, (t, b) in enumerate(zip(texts, blind, strict=True))]
    site = SiteFiles(tmp_path).write(with_columns(100, mixed)).read()
    assert found(site)[1]["7"].state is PeerState.UNKNOWN
    assert not site.ledger.entries


def differing(days, spread=0.1, slow=None, since=0, level=0.8, first=None):
    """Return speeds of 24 targets that differ when healthy; `slow` changes `since` days ago."""
    random = np.random.default_rng(5)
    own = np.exp(random.normal(0, spread, 24))
    if first is not None:
        own[slow] = first
    texts = []
    for day in range(days - 1, -1, -1):
        values = own * np.exp(random.normal(0, 0.03, 24))
        if slow is not None and day < since:
            values[slow] *= level
        texts.append(speeds(dict(enumerate(values / np.median(values)))))
    return texts


def test_a_replaced_target_gets_a_level_of_its_own(tmp_path):
    files = SiteFiles(tmp_path)
    files.write(with_columns(60, differing(60, slow=7, since=12, level=0.6, first=1.0)))
    files.act("rebaseline", "OST 7 of work")
    later = NOW + timedelta(minutes=1)
    site = files.read(later)
    assert named(site) == []
    assert [(each.subject, each.end) for each in site.past] == [("OST 7 of work", "rebaselined")]
    # its level is learned anew: 0.6 of the others'
    assert found(site)[1]["7"].own == pytest.approx(0.6, abs=0.06)


@pytest.mark.parametrize("level", [0.5, 0.8])
def test_a_new_level_holds_where_all_others_are_equal(tmp_path, level):
    lines = with_targets(90, 7, since=40, level=level)
    # for the last ten days the target has half of its new level
    again = with_targets(10, 7, since=10, level=level / 2, seed=2)
    files, then = SiteFiles(tmp_path).write([*lines[:-10], *again]), NOW - timedelta(days=20)
    files.act("rebaseline", "OST 7 of work", now=then)
    for days in (19, 15, 11):
        site = files.read(NOW - timedelta(days=days), as_of=True)
        assert named(site) == []
        assert found(site)[1]["7"].own == pytest.approx(level, rel=0.05)
    assert [each.end for each in site.past] == ["rebaselined"]
    site = files.read()
    assert named(site) == ["7"]
    (alert,) = site.alerts
    assert (alert.number, alert.since) == (2, NOW - timedelta(days=9.25))


def test_what_is_said_of_a_target_that_was_faster_than_the_others(tmp_path):
    texts = differing(40, slow=7, since=8, level=0.7, first=1.3)
    site = SiteFiles(tmp_path).write(with_columns(40, texts)).read()
    (alert,) = site.alerts
    own = alert.peer.own["write_bw"]
    assert 1.2 < own < 1.35
    assert f"{alert.peer.ratio.value / own:.2f} × its level: drain it" in digest_text(
        site, Console(width=100)
    )
    said = explanation(site, alert)
    assert f"the others; before, {own:.2f} ×\n" in said
    table = peers_text(site, "target")
    assert max(map(len, table.splitlines())) <= 80
    assert re.search(rf"^  7 +40 +{own:.2f} +0\.9", table, re.M)


def named(site):
    return [name for place in site.places for name in place.slow()]


def test_a_target_is_compared_with_its_own_level_and_not_with_the_others(tmp_path):
    texts = differing(40, slow=7, first=0.85)
    site = SiteFiles(tmp_path / "always").write(with_columns(40, texts)).read()
    assert not site.ledger.entries
    # a target that used to be faster than the others is slow at 0.9 of their speed
    texts = differing(40, slow=7, since=8, level=0.75, first=1.2)
    site = SiteFiles(tmp_path / "fell").write(with_columns(40, texts)).read()
    assert named(site) == ["7"]


def test_a_target_that_was_slow_from_the_first_session_on_is_named(tmp_path):
    for days in (6, 60):
        texts = differing(days, spread=0.05, slow=7, first=0.5)
        site = SiteFiles(tmp_path / str(days)).write(with_columns(days, texts)).read()
        assert named(site) == ["7"]


def test_what_was_said_of_a_day_is_not_unsaid(tmp_path):
    texts = differing(150, slow=7, since=60, level=0.8)
    lines = with_columns(150, texts)
    files = SiteFiles(tmp_path).write(lines)

    def said(days):
        known = files.read(NOW - timedelta(days=days), as_of=True)
        return {
            (place.where, variable, peer.name, alarm[0])
            for place in known.places
            for variable, peers in place.found.items()
            for peer in peers
            for alarm in peer.alarms
        }

    today = said(0)
    assert today
    for days in (10, 40, 58, 80):
        then = NOW - timedelta(days=days)
        assert said(days) == {each for each in today if each[-1] <= then}


def test_a_pool_that_grows_by_faster_targets_makes_none_slow(tmp_path):
    random = np.random.default_rng(4)
    texts = []
    for day in range(60):
        values = np.exp(random.normal(0, 0.03, 24 if day < 30 else 72))
        values[24:] *= 2
        texts.append(speeds(dict(enumerate(values / np.median(values)))))
    site = SiteFiles(tmp_path).write(with_columns(60, texts)).read()
    assert named(site) == []
    assert not site.ledger.entries
    # and one of the new ones that falls is found
    lines = with_columns(60, texts[:56] + [re.sub(r"\b30:[^,;]+", "30:0.5", t) for t in texts[56:]])
    assert named(SiteFiles(tmp_path / "fell").write(lines).read()) == ["30"]


def pinned(target, rate, hours, **columns):
    """Return the line of a run with all files on one target, this many hours ago."""
    about = {**LUSTRE, "case": f"target {target}", "purpose": "suspect", **columns}
    return line(job_completion_time=days_ago(hours / 24), perf_value=rate, **about)


def beside(rates, hours):
    return [
        pinned(target, rate, hours + place / 3, session=f"by hand {target}")
        for place, (target, rate) in enumerate(rates.items())
    ]


def test_pinned_runs_count_for_their_targets_and_join_no_daily_series(tmp_path):
    daily_lines = with_targets(40, 7, since=1)  # its last session is six hours ago
    daily_site = SiteFiles(tmp_path / "daily").write(daily_lines).read()
    assert named(daily_site) == []
    before = daily_site.places[0].suspects()["7"]
    lines = [*daily_lines, *beside({7: 0.5, 3: 1.0}, 1)]
    site = SiteFiles(tmp_path / "again").write(lines).read()
    (place,) = site.places
    # a target that was busy is still so five hours later with probability exp(-5/2), about 0.082
    again = np.log(0.9 / (0.02 + 0.98 * np.exp(-(5 - 1 / 3) / 2)))
    assert place.suspects()["7"] == pytest.approx(before + again, abs=0.05)
    assert place.found["write_bw"][3].state is PeerState.HEALTHY
    by_case = {each.key.case: each.status.runs for each in site.series}
    assert by_case == {None: 40, "target 7": 1, "target 3": 1}
    assert place.found["write_bw"][7].runs == 40


def test_a_pinned_run_says_nothing_without_another_one_beside_it(tmp_path):
    daily_lines = with_targets(40, 7, since=1)
    alone = [*daily_lines, pinned(7, 0.1, 1, session="a"), pinned(3, 1, 2, session="b")]
    other = [
        *daily_lines,
        pinned(7, 0.1, 1, session="a", tasks=4),
        pinned(3, 1, 1, session="a", tasks=8),
    ]
    none = [*daily_lines, *beside({7: 0.0, 3: 1.0}, 1)]
    for number, lines in enumerate((alone, other, none)):
        _, peers = found(SiteFiles(tmp_path / str(number)).write(lines).read())
        assert peers["7"].score == pytest.approx(np.log(0.9 / 0.02))


def test_a_target_that_is_drained_before_the_next_night_was_slow_until_then(tmp_path):
    lines = with_targets(40, 7, since=5)[:-3]
    lines += [each for hours in (74, 70, 66, 60) for each in beside({7: 0.5, 3: 1.0}, hours)]
    drained = [re.sub(r",7:[\d.]+", ",27:1", text) for text in with_targets(3)]
    (entry,) = SiteFiles(tmp_path).write([*lines, *drained]).read().ledger.entries
    assert (entry.end, entry.ended) == ("no longer used", entry.raised)


def test_a_target_that_is_no_longer_compared_keeps_the_end_of_its_alert(tmp_path):
    lines = [*with_targets(54, 1, since=30)[:34], *with_targets(20, 1, since=20, targets=2)]
    files, ends = SiteFiles(tmp_path).write(lines), set()
    for days in (16, 8, 0):
        judged = files.judge(NOW - timedelta(days=days), as_of=True)
        ALERT_LOG.append(alert_log(files.perflogs, "here"), judged.news["here"])
        (past,) = judged.snapshot.past
        ends.add((past.end, past.ended))
    assert len(ends) == 1


def test_runs_soon_after_a_low_one_say_the_same_again(tmp_path):
    # two hours at half speed, seen by five sessions
    lines = with_targets(40)
    low = with_targets(1, 7, since=1)[0]
    for minutes in (150, 120, 90, 60, 30):
        when = days_ago(minutes / 1440)
        lines.append(re.sub(r"^[^|]*", when, low))
    site = SiteFiles(tmp_path).write(lines).read()
    assert named(site) == []
    assert site.places[0].suspects()["7"] < 7


@pytest.mark.parametrize(("lasting", "hours"), [(True, 170 / 15), (False, 30 / 15)])
def test_how_long_chance_keeps_a_target_busy_is_learned(lasting, hours):
    """A target is low on ten mornings; four hours later it still is, or it is not."""
    rows, times, pinned_rows = [], [], []
    first = np.datetime64("2026-06-01", "ns")

    def add(hour, low, peers):
        row = np.full(8, np.nan)
        row[peers] = [np.log(0.5) if each in low else 0.0 for each in peers]
        rows.append(row)
        times.append(first + np.timedelta64(hour, "h"))
        pinned_rows.append(len(peers) == 2)

    for day in range(40):
        low = day // 2 % 8 if 10 <= day < 30 and day % 2 else None
        add(24 * day, [low], range(8))
        if low is not None:
            for later in (4, 8) if lasting else (4,):
                add(24 * day + later, [low] if lasting else [], [low, (low + 1) % 8])
    add(24 * 40, [0], range(8))
    add(24 * 40 + 4, [0], [0, 1])
    values = np.array(rows)
    names = tuple(map(str, range(8)))
    speeds_of = Speeds(names, np.array(times), values, np.isfinite(values), np.array(pinned_rows))
    slow, *_ = compare_peers(speeds_of, np.full(len(values), 99.0))
    before, *_ = compare_peers(
        Speeds(
            names,
            *(
                each[:-1]
                for each in (np.array(times), values, np.isfinite(values), np.array(pinned_rows))
            ),
        ),
        np.full(len(values) - 1, 99.0),
    )
    chance = np.exp(-4 / hours)
    assert slow.score - before.score == pytest.approx(-np.log(chance), abs=0.3)


def test_a_target_that_is_slow_now_and_then_has_been_slow_since_it_was_named():
    values = np.random.default_rng(2).normal(0, 0.04, (150, 8))
    values[60:66, 3] -= 0.5
    values[68::3, 3] -= 0.5  # one day of three: its alert neither ends nor gets surer
    values -= np.median(values, axis=1)[:, None]
    times = np.datetime64("2026-01-01", "ns") + np.arange(150) * np.timedelta64(1, "D")
    speeds_of = Speeds(
        tuple("01234567"), times, values, np.isfinite(values), np.zeros(150, dtype=bool)
    )
    peer = compare_peers(speeds_of, np.full(150, 9.0))[3]
    ((raised, end),) = peer.alarms
    assert end is None
    assert raised - timedelta(days=5) < peer.since < raised


def test_an_accepted_level_is_the_median_of_the_first_sessions_however_late_they_are():
    days = 260
    values = np.zeros((days, 7))
    values[:, 6] = np.repeat([np.nan, -0.1, -0.2, -0.15], (190, 10, 10, 50))
    times = np.datetime64("2026-01-01", "ns") + np.arange(days) * np.timedelta64(1, "D")
    names, pinned = tuple("0123456"), np.zeros(days, dtype=bool)
    speeds_of = Speeds(names, times, values, np.isfinite(values), pinned)
    peer = compare_peers(speeds_of, np.full(days, 9.0), accepted=("6",))[6]
    # ten sessions at -0.1 and ten at -0.2
    assert peer.own == pytest.approx(np.exp(-0.15))
