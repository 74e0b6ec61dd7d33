"""Contract 5: the golden file says what it always said, and what breaks the contract is named."""

import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from iobands.alerts.acts import standing
from iobands.alerts.alarms_file import load_acts, parse_acts
from iobands.series import SeriesKey
from iobands.yaml_file import FileError

GOLDEN = Path(__file__).parent / "golden" / "golden-alarms.yaml"
ACTS = load_acts(GOLDEN.parent, "golden-alarms")
NVME = SeriesKey(
    *("golden-alarms", "compute", None, "benchio", "fpp", "posix", "nvme"),
    *(None, "ofi", "default", 16.0, 64.0, 0.5, "write_bw"),
)
HOME = replace(NVME, file_system="home", variable="read_bw")


def at(*when):
    return datetime(*when, tzinfo=timezone.utc)


def kinds(key, now):
    return [act.kind for act in standing(ACTS.of(key), now)]


def test_what_stands_at_a_time():
    assert kinds(NVME, at(2026, 11, 20)) == []
    assert kinds(NVME, at(2026, 11, 22)) == ["acknowledge"]
    assert kinds(NVME, at(2026, 11, 24)) == ["acknowledge", "close"]
    # taken back for this series, and not for the other
    assert kinds(NVME, at(2026, 11, 26)) == ["acknowledge"]
    assert kinds(HOME, at(2026, 11, 26)) == ["close", "new-normal"]
    assert kinds(replace(HOME, nodes=8.0), at(2026, 11, 26)) == ["new-normal"]


def test_what_an_act_says():
    known, closed, normal, of_nodes, back = ACTS.every
    assert (known.when, known.who) == (at(2026, 11, 21, 8, 12), "jane")
    assert known.reason == "OST 12 rebuilds, ticket 4711"
    assert (known.since, known.until) == (at(2026, 11, 7, 1, 29, 12), at(2026, 11, 21, 8, 12))
    assert (known.direction, known.ratio) == ("down", 0.71)
    assert (closed.until, closed.ratio) == (at(2026, 11, 22), None)
    assert (normal.since, normal.direction) == (at(2026, 11, 23), None)
    assert (known.on_nodes, of_nodes.on_nodes) == ((), ("n017", "n018"))
    assert back.of == closed.when
    # all times are told in UTC, whatever their offset in the file
    assert {act.when.utcoffset() for act in ACTS.every} == {timedelta()}


def test_what_version_2_added():
    golden = GOLDEN.with_name("golden-alarms-2.yaml")
    (known,) = parse_acts(golden.read_bytes(), golden).every
    assert (known.kind, known.since) == ("acknowledge-collapses", at(2026, 9, 25))
    assert (known.until, known.direction) == (at(2026, 11, 24), None)
    for old, new, mentions in (
        ("schema: 2", "schema: 1", "act 1: act: is 'acknowledge-collapses'; known are acknowledge"),
        ("    until: 2026-11-24\n", "", "act 1: until: missing"),
        ("until: 2026-11-24", "until: 2026-11-24\n    direction: down", "direction: unknown key"),
    ):
        with pytest.raises(FileError, match=re.escape(mentions)):
            parse_acts(golden.read_text().replace(old, new, 1).encode(), golden)


def test_no_file_is_no_act(tmp_path):
    assert load_acts(tmp_path, "here").every == ()
    assert load_acts(tmp_path / "nowhere", "here").every == ()


@pytest.mark.parametrize(
    ("old", "new", "mentions"),
    [
        (
            "schema: 1",
            "schema: 3",
            "this iobands reads schemas 1 and 2; a newer iobands wrote the file",
        ),
        ("schema: 1", "schema: true", "schema: is True"),
        ("system: golden-alarms", "system: other", "rename the file to other.yaml"),
        ("act: acknowledge", "act: ignore", "act 1: act: is 'ignore'; known are acknowledge, "),
        ("who: jane", "who: 5", "act 1: who: must be a text"),
        ("reason: rebuilt", "reason: ''", "act 2: reason: must be a text"),
        ("    who: jane\n", "", "act 1: who: missing"),
        ("until: 2026-11-22", "until: 2026-11-06", "act 2: since: is after until"),
        ("until: 2026-11-22", "until: soon", "act 2: until: 'soon' is not a time"),
        ("until: 2026-11-22", "until: '9999-12-31T23:00:00-12:00'", "until: the year 9999 is none"),
        ("until: 2026-11-22", "until: 0001-01-01", "until: the year 1 is none"),
        (
            "10:00:00+00:00\n    who: joe\n    reason: new",
            "10:00:00\n    who: joe\n    reason: new",
            "act 3: when: 2026-11-24T10:00:00 has no UTC offset",
        ),
        ("of: 2026-11-23T10", "of: 2026-11-23T11", "act 5: of: there is no act of that time"),
        ("direction: down", "direction: sideways", "known are down, up"),
        ("ratio: 0.71", "ratio: -1", "above 0"),
        ("{file_system: home}", "{}", "act 3, series 1: names no field"),
        ("{file_system: home}", "{medium: nvme}", "series 1: medium: unknown key"),
        ("nodes: 16", "nodes: many", "series 2: nodes: must be a number"),
        ("ratio: 0.71", "colour: red", "act 1: colour: unknown key"),
        ("[n017, n018]", "[]", "act 4: on_nodes: names none"),
        ("[n017, n018]", "[n017, 18]", "act 4, on_nodes: node: must be a text, not 18"),
        ("who: jane", "who: jane\n    who: joe", "the key 'who' is given twice"),
        ("acts:", "acts: [", "correct the YAML there"),
    ],
)
def test_what_is_wrong_is_named(old, new, mentions):
    text = GOLDEN.read_text()
    assert old in text
    with pytest.raises(FileError, match=re.escape(mentions)):
        parse_acts(text.replace(old, new, 1).encode(), GOLDEN)
