"""Readers of files handle any bytes: they reject them with their own error, never crash or hang."""

import csv
import json
import os
import re
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yaml import safe_dump, safe_load

from checks.base.proof import ResultError, rates, unproven
from checks.base.speeds import node_speeds, speeds_text, target_bandwidths
from checks.tools.benchio import result
from checks.tools.ior import result as ior
from iobands.bands import load_bands
from iobands.judge.conditions import of_session
from iobands.judge.site import read_site
from iobands.measure import SessionError, lock, plan, processes
from iobands.measure.inside import drop_secrets
from iobands.measure.lock import (
    RECORD_NAME,
    begin_record,
    new_holder,
    read_last_session,
    write_record,
)
from iobands.measure.run_directories import new_note, read_leftovers
from iobands.measure.run_reports import read_run_reports
from iobands.model import LIMIT, FileError
from iobands.notify.changes import changes
from iobands.notify.outbox import (
    NOTIFIED,
    Delivery,
    Message,
    Outbox,
    OutboxState,
    SendError,
    Topic,
    _secrets,
    read_settings,
    scrubbed,
    secret,
)
from iobands.snapshot.stored import to_json
from iobands.source.action_log import read_log
from iobands.source.perflog import read_perflogs
from iobands.views.writing import age_text
from tests.factory import NOW, case, line, write_bands, write_perflog, write_report
from tests.sites import NOTHING_KNOWN
from tests.snapshot.read_back import from_json

GOLDEN = Path(__file__).parent / "golden"

#: Few examples of each, as the tests run often; `make soak` runs many. Only CI fixes the seed.
bounded = settings(max_examples=int(os.environ.get("IOBANDS_EXAMPLES", "60")))

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.sampled_from([10**400, -1, 1e308, "9" * 5000, "\x1b[2J", "2066-01-01T00:00:00Z", "../.."])
)
VALUES = st.recursive(
    SCALARS,
    lambda each: (
        st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=5), each, max_size=3)
    ),
    max_leaves=4,
)


@st.composite
def damaged(draw, valid: bytes):
    """Draw bytes: valid ones with pieces replaced."""
    content = valid
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 40)))
        content = content[:start] + draw(st.binary(max_size=20)) + content[end:]
    return content


@st.composite
def changed(draw, valid: str):
    """Draw JSON text: a valid value with some members replaced."""
    value = json.loads(valid)
    for _ in range(draw(st.integers(1, 3))):
        place = value
        while True:
            steps = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not steps:
                break
            step = draw(st.sampled_from(steps))
            if isinstance(place[step], dict | list) and draw(st.booleans()):
                place = place[step]
                continue
            place[step] = draw(VALUES)
            break
    return json.dumps(value).encode()


def either(valid: bytes):
    return damaged(valid) | changed(valid.decode())


RECORD = {
    "schema": result.SCHEMA,
    "version": "0.1.0",
    "layer": "proc",
    "repeat": 1,
    "bytes": 1,
    "fsync": True,
    "cache": "dropped",
    "bandwidth_gib_s": 1.5,
    "verified_bytes": 1,
    "hints": {},
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


@bounded
@given(st.data())
def test_perflogs(root, data):
    path = write_perflog(root, [line(), line(perf_value="2")])
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    assert isinstance(read_perflogs(root, None).histories, dict)


@bounded
@given(st.data())
def test_run_reports(root, data):
    path = write_report(root, [case(), case(result="skip")])
    path.write_bytes(data.draw(either(path.read_bytes())))
    read_run_reports(root, None)


@bounded
@given(st.data())
def test_bands(root, data):
    path = write_bands(root / "bands")
    path.write_bytes(data.draw(either(path.read_bytes())))
    try:
        load_bands(root / "bands", "here")
    except FileError as error:
        assert str(path) in str(error)


@bounded
@given(st.data())
def test_logs_of_actions(root, data):
    lines = (GOLDEN / "golden.jsonl").read_bytes().splitlines()
    path = root / "here.jsonl"
    path.write_bytes(b"\n".join(data.draw(either(each)) for each in lines))
    read_log(root, "here", NOW)


@bounded
@given(st.data())
def test_results_of_benchio(root, data):
    path = root / "result.jsonl"
    lines = [json.dumps({**RECORD, "operation": name}).encode() for name in result.OPERATIONS]
    path.write_bytes(b"\n".join(data.draw(either(each)) for each in lines))
    try:
        records = result.read_result(path)
        phases = result.phases(records)
        asked = result.asked({"bytes": 1, "layer": "proc"}, fsync=True)
        if not unproven(phases, asked, 1):
            assert all(rates(phases, name) for name in result.OPERATIONS)
            result.cache_of_reads(records)
    except ResultError:
        pass


RANKS = {
    "benchio": "rank,host,layer,repeat,operation,seconds\n"
    + "".join(f"{rank},n{rank % 2},proc,1,write,{rank + 1}.5\n" for rank in range(4)),
    "ior": "rank,runtime-with-openclose\n" + "".join(f"{rank},{rank + 1}.5\n" for rank in range(4)),
}
CELLS = st.sampled_from(
    ["nan", "-inf", "1e-320", "1e308", "9" * 5000, "x" * 200_000, '"', "\0", ""]
)


@pytest.mark.parametrize("tool", RANKS)
@bounded
@given(st.data())
def test_times_of_ranks(root, tool, data):
    path = root / "ranks.csv"
    old = data.draw(st.sampled_from(["1", "1.5", "n1", "4.5"]))
    extreme = RANKS[tool].replace(f",{old}\n", f",{data.draw(CELLS)}\n").encode()
    path.write_bytes(data.draw(damaged(RANKS[tool].encode()) | st.just(extreme)))
    try:
        if tool == "ior":
            times = {"write_bw": ior.rank_times(path)}
        else:
            times = result.rank_times(path, "proc%06d.dat")
    except (ValueError, KeyError, csv.Error):  # which leave the columns null
        return
    targets = {each.file: [n] for every in times.values() for n, each in enumerate(every)}
    for every in times.values():
        speeds_text({"write_bw": target_bandwidths(every, targets)})
        speeds_text({"write_bw": node_speeds(every, targets)})


@bounded
@given(st.data())
def test_notes_of_run_directories(root, data):
    notes = root / "here" / "leftovers"
    shutil.rmtree(notes, ignore_errors=True)
    note = new_note(Path("/scratch"), "BenchioFPP", "slurm", "lustre /scratch").staying("busy", 1)
    note.write(notes)
    path = notes / note.name
    path.write_bytes(data.draw(either(path.read_bytes())))
    left = read_leftovers(root, None)
    assert all(each.path.name == note.name for each in left)


WHEN = NOW.isoformat()
MESSAGE = Message("c1-0", "c1", "began", "degraded", "title", "text", WHEN, "page")


@bounded
@given(st.data())
def test_messages_that_wait(root, data):
    outbox = Outbox(root / "outbox")
    outbox.directory.mkdir(exist_ok=True)
    path = outbox.directory / "c1-0.team.json"
    outbox.write(Delivery(path, "team", MESSAGE, attempts=1, error="", sent=NOW))
    path.write_bytes(data.draw(either(path.read_bytes())))
    found, problems = outbox.entries()
    assert len(found) + len(problems) == 1
    assert all(str(path) in each for each in problems)
    outbox.prune(found, NOW)


@bounded
@given(st.data())
def test_what_people_know(root, data):
    outbox = Outbox(root / "known" / "outbox")
    outbox.directory.mkdir(parents=True, exist_ok=True)
    cause = Topic("c1", "drop", "title", "degraded", ("a", "b"), 2, NOW, 0.5, 0.6)
    path = outbox.directory / "causes.json"
    path.unlink(missing_ok=True)
    outbox.note(OutboxState((cause,), ()))
    pending = json.loads(path.read_bytes())
    pending["pending"] = [[msgspec.to_builtins(MESSAGE), ["team"]]]
    path.write_bytes(data.draw(either(json.dumps(pending).encode())))
    empty = root / "known" / "perflogs"
    empty.mkdir(exist_ok=True)
    nothing = read_site(empty, empty, empty, now=NOW)
    empty.rmdir()
    try:
        state = outbox.state()
        changes(state.causes, nothing, NOTIFIED)
        outbox.note(state)
    except FileError as error:
        assert str(path) in str(error)
    assert {each.name for each in outbox.directory.parent.iterdir()} == {"outbox"}


SETTINGS = """\
schema: 1
page: https://x/
ping: {env: IOBANDS_PING}
channels:
  a: {type: mail, from: a@b, to: [c@d], password: {file: /x}}
  b: {type: webhook, url: {env: IOBANDS_HOOK}}
monitors:
  c: {type: icinga, url: 'https://x', host: h, fresh_hours: 2}
"""


@bounded
@given(st.data())
def test_settings_of_whom_to_tell(root, data):
    path = root / "notify.yaml"
    as_json = changed(json.dumps(safe_load(SETTINGS)))
    path.write_bytes(data.draw(damaged(SETTINGS.encode()) | as_json))
    drop_secrets(path)
    try:
        read_settings(path)
    except FileError as error:
        assert str(path) in str(error)


@bounded
@given(st.data())
def test_locks(tmp_path_factory, data):
    """A lock is read, and taken or refused; no process gets a signal."""
    perflogs = tmp_path_factory.mktemp("locked")
    valid = asdict(new_holder("iobands run --tag daily"))
    valid["processes"][0]["started"] -= data.draw(st.sampled_from([0, 1]))  # alive, or killed
    lock.lock_path(perflogs).write_bytes(data.draw(either(json.dumps(valid).encode())))
    try:
        former = lock.acquire(perflogs, new_holder("iobands run"))
        assert former is not None
        assert former.is_alive is False
    except SessionError as refused:
        assert str(refused).isprintable()
    assert [path.name for path in perflogs.iterdir()] == [lock.LOCK_NAME]


@bounded
@given(st.data())
def test_records_of_sessions(tmp_path_factory, data):
    perflogs = tmp_path_factory.mktemp("recorded")
    begun = begin_record(perflogs, new_holder("iobands run"), "daily", "here")
    ended = {"counts": {"ran": 3}, "reason": "its limit", "seconds": {"total": 1.5}}
    write_record(perflogs, replace(begun, ended=begun.began, how=LIMIT, **ended))
    path = perflogs / RECORD_NAME
    path.write_bytes(data.draw(either(path.read_bytes())))
    rejected = []
    last = read_last_session(perflogs, rejected)
    assert bool(rejected) == (last is None)
    if last:
        known = replace(NOTHING_KNOWN, last_session=last)
        assert from_json(to_json(known)) == known
        assert all(alert.reason for alert in of_session(last))
        assert age_text(NOW - last.began)


@bounded
@given(st.data())
def test_notes_of_jobs(root, data):
    """Only jobs that Slurm lists are cancelled, and no text of a note becomes an option."""
    programs, perflogs = root / "programs", root / "jobs"
    for path in (programs, perflogs):
        path.mkdir(exist_ok=True)
    cancelled = root / "cancelled"
    for name, script in (("squeue", "echo 12"), ("scancel", f'echo "$*" >>{cancelled}')):
        (programs / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (programs / name).chmod(0o700)
    valid = b"slurm 12 rfm_EnvProbe\nslurm 13 rfm_EnvMpi\n"
    (perflogs / processes.JOBS_NAME).write_bytes(data.draw(damaged(valid)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(programs), prepend=":")
        said = processes.cancel_jobs(perflogs)
    assert all(isinstance(text, str) for text in said)
    assert not (perflogs / processes.JOBS_NAME).exists()
    if cancelled.exists():
        assert set(cancelled.read_text(encoding="utf-8").splitlines()) == {"-- 12"}


@bounded
@given(st.data())
def test_reservations_of_budgets(root, data):
    path = root / plan.BUDGET_NAME
    valid = {"day": NOW.date().isoformat(), "spent": {"here:batch": [1.5, 2.0]}}
    path.write_bytes(data.draw(either(json.dumps(valid).encode())))
    asked = plan.Cost("Good", "here:batch", "disk", priority=0, written_gib=1.0, node_hours=0.5)
    most = {"here:batch": {"written_tib": 1.0, "node_hours": 100.0}}
    assert plan.reserve(root, [asked], most, NOW.date()) in ([], [asked])
    again = json.loads(path.read_bytes(), parse_constant=pytest.fail)
    assert again["day"] == valid["day"]


@pytest.mark.parametrize("style", [None, '"', "'", "|", ">"])
@pytest.mark.parametrize("flow", [False, True])
def test_variables_of_secrets_in_any_style_of_yaml(tmp_path, style, flow, monkeypatch):
    path = tmp_path / "notify.yaml"
    said = safe_dump(safe_load(SETTINGS), default_style=style, default_flow_style=flow)
    for text in (said, re.sub("env([\"']?): ", "env\\1: &a ", said), f"{said}\n]: damaged"):
        path.write_text(text)
        names = ["IOBANDS_PING", "IOBANDS_HOOK", "IOBANDS_OTHER"]
        for name in names:
            monkeypatch.setenv(name, "x")
        drop_secrets(path)
        assert [name for name in names if name in os.environ] == ["IOBANDS_OTHER"]


@bounded
@given(st.binary(min_size=5, max_size=5000))
def test_files_of_secrets(root, content):
    path = root / "secret"
    path.touch(0o600)
    path.write_bytes(content)
    try:
        found = secret({"file": str(path)})
        assert found.encode() in content
        assert found not in scrubbed(f"{found} and {found!r}").replace("…", "")
    except SendError as error:
        assert str(path) in str(error)
    finally:
        _secrets.clear()  # a letter would be in every message
