"""Files of a newer minor version are read as far as they are understood; the rest is named."""

from __future__ import annotations

import json
import runpy
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest

from config.validation import CONTRACT, check_site, leave_out_newer
from iobands.bands import load_bands, parse_bands
from iobands.measure.lock import (
    RECORD_NAME,
    acquire,
    lock_path,
    new_holder,
    read_holder,
    read_last_session,
)
from iobands.model import FileError
from iobands.source.action_log import ACTION_LOG, ALERT_LOG, read_alert_log, read_log
from iobands.source.perflog import read_perflogs, unknown_columns
from tests.config.test_contract import GNU, SITE_FILE, SYSTEM, changed
from tests.contracts.documented import DOCUMENT
from tests.factory import COLUMNS, NOW, line, write_session
from tests.sites import SiteFiles

GOLDEN = Path(__file__).parent / "golden"
LATER = datetime(2026, 11, 30, tzinfo=timezone.utc)


def newer(text: str, schema: int, **fields: object) -> str:
    """Return a line of a log in the form of a newer version."""
    return json.dumps({**json.loads(text), "schema": schema + 1, **fields})


def test_the_columns_of_every_form_are_known(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path).write([line()])
    headers = (GOLDEN / "perflog-headers-before.txt").read_text("utf-8").splitlines()
    for number, header in enumerate(headers):
        (files.perflogs / "here" / "local" / f"BenchioFPP.log.h{number}").write_text(f"{header}\n")
    assert unknown_columns(files.perflogs) == []


def test_a_newer_perflog_has_the_samples_of_its_known_columns(tmp_path: Path) -> None:
    files = SiteFiles(tmp_path)
    today = files.write([line()])
    known = read_perflogs(today.perflogs)
    (path,) = files.perflogs.rglob("*.log")
    path.write_text(f"colour|{COLUMNS}|shape\nred|{line()}|round\n")
    found = read_perflogs(files.perflogs)
    assert found.rejected == ()
    assert found.measured.equals(known.measured)
    assert unknown_columns(files.perflogs) == ["colour", "shape"]


def test_a_newer_action_counts_and_what_was_left_out_is_listed(tmp_path: Path) -> None:
    before = (GOLDEN / "golden.jsonl").read_text("utf-8").splitlines()
    known = read_log(GOLDEN, "golden", LATER).actions
    lines = [newer(each, ACTION_LOG.schema) for each in before]
    lines[0] = newer(before[0], ACTION_LOG.schema, mood="calm")
    lines.append(newer(before[0], ACTION_LOG.schema, action="snooze"))
    lines.append(before[0].replace('"who"', '"woh"'))  # of today: a mistake
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(lines))
    log = read_log(tmp_path, "x", LATER)
    assert log.actions == known
    assert [str(each).removeprefix(f"{path}:") for each in log.rejected] == [
        "1: schema 5 is newer than 4; left out: 'mood'",
        "5: action is 'snooze', not one of acknowledge, resolve, rebaseline, undo, retire, "
        "discard, begin maintenance, end maintenance",
        "6: unknown field 'woh'",
    ]


def test_a_newer_event_counts_and_what_was_left_out_is_listed(tmp_path: Path) -> None:
    before = (GOLDEN / "alerts.jsonl").read_text("utf-8").splitlines()
    path = tmp_path / "x" / "alerts.jsonl"
    path.parent.mkdir()
    read = []
    for lines in (before, [newer(each, ALERT_LOG.schema, mood="calm") for each in before]):
        path.write_text("\n".join(lines))
        read.append(read_alert_log(tmp_path, "x", LATER))
    (known, nothing), (events, rejected) = read
    assert events == known
    assert nothing == ()
    assert len(rejected) == len(events)
    assert rejected[0].reason == "schema 3 is newer than 2; left out: 'mood'"


def test_newer_bands_judge_by_what_is_known(tmp_path: Path) -> None:
    text = (GOLDEN / "golden.yaml").read_text("utf-8").replace("schema: 1", "schema: 7", 1)
    epochs = load_bands(GOLDEN, "golden").epochs
    path = tmp_path / "golden.yaml"
    more = f"moods: [calm]\n{text}".replace("source:", "colour: red\n    source:", 1)
    band = "      - {match: {variable: write_bw, nodes: 4}, unit: GiB/s, shape: round}\n"
    head, bands, rest = more.partition("    bands:\n")
    found = parse_bands(f"{head}{bands}{band}{rest}".encode(), path)
    assert found.epochs == epochs
    why = "is of schema 7, which is newer than 6; it is left out"
    assert found.warnings[:4] == (
        f"{path}, line 1: moods {why}",
        f"{path}, line 8: epoch 'first': colour {why}",
        f"{path}, line 11: epoch 'first', band 1: shape {why}",
        f"{path}, line 11: epoch 'first': band 1 {why}",
    )
    # an epoch is not skipped, because the one before it would then be in force
    with pytest.raises(FileError, match="since is missing"):
        parse_bands(text.replace("    since:", "    from:", 1).encode(), path)


def test_a_newer_site_file_measures_what_is_known() -> None:
    system = changed("colour", value="red")
    site = SimpleNamespace(schema=CONTRACT + 1, system=system, environments=[GNU])
    (said,) = leave_out_newer(site, SITE_FILE)
    assert said.endswith(": colour is of schema 5, which is newer than 4; it is left out")
    assert (site.system, site.environments) == (SYSTEM, [GNU])
    check_site(site.system, site.environments, SITE_FILE)
    site = SimpleNamespace(schema=CONTRACT, system=system, environments=[GNU])
    assert leave_out_newer(site, SITE_FILE) == []
    with pytest.raises(FileError, match="colour is an unknown key"):
        check_site(site.system, site.environments, SITE_FILE)


def test_the_documented_version_of_site_files() -> None:
    assert f"`schema = {CONTRACT}`" in DOCUMENT.read_text("utf-8")
    template = DOCUMENT.parents[1] / "config" / "systems" / "example.py"
    assert runpy.run_path(str(template))["schema"] == CONTRACT


def test_the_lock_and_record_of_a_newer_version_on_the_same_site_are_read(tmp_path: Path) -> None:
    holder = new_holder("iobands run")
    write_session(tmp_path, NOW)
    record = read_last_session(tmp_path)
    acquire(tmp_path, holder)
    for path in (lock_path(tmp_path), tmp_path / RECORD_NAME):
        said = json.loads(path.read_text())
        if "schema" in said:
            said["schema"] += 1
        path.write_text(json.dumps({**said, "mood": "calm"}))
    assert read_holder(tmp_path) == holder
    assert read_last_session(tmp_path) == record
