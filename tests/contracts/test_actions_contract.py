"""Contract 5: the golden logs of all its versions keep their meaning."""

import json
from datetime import datetime, timezone
from pathlib import Path

from iobands.model import PeerName
from iobands.snapshot import begun, in_force
from iobands.source.action_log import ACTION_LOG, read_log
from tests.contracts.documented import DOCUMENT, first_column

GOLDEN = Path(__file__).parent / "golden"
LINES = (GOLDEN / "golden.jsonl").read_text(encoding="utf-8").splitlines()
NOW = datetime(2026, 11, 30, tzinfo=timezone.utc)
DONE = read_log(GOLDEN, "golden", NOW).actions


def utc(*when):
    return datetime(2026, 11, *when, tzinfo=timezone.utc)


def test_what_the_log_says():
    acknowledge, resolve, rebaseline, undo = DONE
    assert acknowledge.series == ({"file_system": "nvme", "variable": "write_bw"},)
    assert (acknowledge.when, acknowledge.who) == (utc(21, 9, 12), "jane")
    assert (acknowledge.since, acknowledge.until) == (utc(7, 1, 29, 12), utc(21, 9, 12))
    assert (acknowledge.direction, acknowledge.ratio) == ("down", 0.71)
    assert (resolve.direction, resolve.ratio, len(resolve.series)) == (None, None, 2)
    assert (resolve.verdict, acknowledge.verdict) == ("real", None)
    assert (rebaseline.since, rebaseline.until, rebaseline.who) == (utc(20), None, "jané")
    assert undo.of == rebaseline.when == utc(23, 8, 0, 0, 250_000)
    assert in_force(DONE) == (acknowledge, resolve)


def test_what_version_2_added():
    retire, discard = read_log(GOLDEN, "golden-2", NOW).actions
    assert (retire.kind, retire.since, retire.subject) == ("retire", None, "nvme fpp write_bw")
    assert (discard.kind, discard.since.year, discard.until.second) == ("discard", 2066, 59)


def test_what_version_3_added():
    target, node = read_log(GOLDEN, "golden-3", NOW).actions
    work, compute = PeerName("target", "x", "work", "7"), PeerName("node", "x", "compute", "nid7")
    assert target.names(work) and not target.names(PeerName("target", "x", "home", "7"))
    assert node.names(compute) and not node.names(work)


def test_what_version_4_added():
    action, begin, end = read_log(GOLDEN, "golden-4", NOW).actions
    assert (begin.kind, begin.since, begin.until) == ("begin maintenance", utc(23, 6), None)
    assert (end.kind, end.of, end.until) == ("end maintenance", begin.when, utc(23, 17))
    (lasted,) = begun([action, begin, end])
    assert (lasted.window.begin, lasted.window.end) == (utc(23, 6), utc(23, 17))
    assert (lasted.window.file_systems, lasted.window.reason) == (("work",), "Lustre 2.17")
    assert (action.alert, action.owner) == (17, "storage team")
    assert action.ticket == "https://tickets.example.org/4711"


def test_actions_are_written_in_the_same_form():
    newer = [line.replace('"schema": 1', '"schema": 4') for line in LINES]
    assert [ACTION_LOG.line(action) for action in DONE] == newer
    for version in (2, 3, 4):
        name = f"golden-{version}"
        written = (GOLDEN / f"{name}.jsonl").read_text(encoding="utf-8")
        newer = written.replace(f'"schema": {version}', '"schema": 4').splitlines()
        assert [ACTION_LOG.line(each) for each in read_log(GOLDEN, name, NOW).actions] == newer


def test_documented_fields_and_actions():
    later = [
        line
        for version in (3, 4)
        for line in (GOLDEN / f"golden-{version}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    used = dict.fromkeys(name for line in [*LINES, *later] for name in json.loads(line))
    assert set(used) == set(first_column("## Contract 5", "Field"))
    assert first_column("## Contract 5", "Action") == [*ACTION_LOG.needs]
    assert ACTION_LOG.schema == 4


def test_the_documented_example():
    section = DOCUMENT.read_text(encoding="utf-8").split("## Contract 5", maxsplit=1)[1]
    example = section.split("```json\n", maxsplit=1)[1].split("\n```", maxsplit=1)[0]
    assert example == LINES[0].replace('"schema": 1', '"schema": 4')
