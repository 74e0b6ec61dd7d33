"""Targets and nodes of a site: what perflogs say of them, and which is named as slow."""

import numpy as np
import pytest

from iobands.detection.peers import PeerState
from tests.factory import daily, days_ago, line, write_bands
from tests.sites import SiteFiles

LUSTRE = {"file_system": "work", "file_system_type": "lustre", "stripe_count_asked": "1"}


def speeds(values, variables=("write_bw", "read_bw")):
    text = ",".join(f"{name}:{value:.3g}" for name, value in values.items())
    return ";".join(f"{variable}={text}" for variable in variables)


def with_targets(days, slow=None, since=0, targets=24, level=0.5, first=0, seed=1):
    """A line for each of so many days; the target `slow` is so since `since` days ago."""
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
                target_speeds=speeds(values),
                perf_value=random.normal(1.5, 0.1),
                **LUSTRE,
            )
        )
    return lines


def found(site, kind="target"):
    (place,) = [each for each in site.places if each.kind == kind]
    return place, {each.name: each for each in place.found["write_bw"]}


def test_a_target_at_half_speed_is_named_after_three_days(tmp_path):
    files = SiteFiles(tmp_path)
    _, peers = found(files.write(with_targets(40, 7, since=2)).read())
    assert peers["7"].state is PeerState.WATCH
    place, peers = found(files.write(with_targets(40, 7, since=3)).read())
    assert place.name_of("7") == "OST 7 of work"
    assert [name for name, each in peers.items() if each.state is PeerState.SLOW] == ["7"]
    assert 0.45 < peers["7"].ratio.low < 0.5 < peers["7"].ratio.high < 0.6
    assert f"{peers['7'].since:%d %H}" == "18 19"  # the third day before the 21st at 01:30


def test_it_recovers_and_a_drained_one_is_not_used(tmp_path):
    files = SiteFiles(tmp_path)
    lines = with_targets(40, 7, since=20)
    healthy = with_targets(3)
    _, peers = found(files.write([*lines[:-3], *healthy]).read())
    assert peers["7"].state is PeerState.HEALTHY
    assert len(peers["7"].alarms) == 1
    drained = [text.replace(",7:0.", ",27:0.") for text in lines[-3:]]
    _, peers = found(files.write([*lines[:-3], *drained]).read())
    assert peers["7"].state is PeerState.UNUSED
    assert peers["7"].since is None


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
    assert {each.state for each in peers.values()} == {PeerState.HEALTHY}


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
    bad = line(target_speeds=text, **LUSTRE)
    site = SiteFiles(tmp_path).write([*with_targets(30), bad]).read()
    (rejected,) = site.rejected
    assert rejected.reason.startswith("target_speeds: ")
    assert site.series[0].status.runs == 31
    assert found(site)[1]["0"].runs == 30


def test_a_perflog_without_the_columns(tmp_path):
    assert SiteFiles(tmp_path).write(daily([1, 2, 3])).read().places == ()
