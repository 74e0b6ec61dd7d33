"""The made-up site shows what it promises, and is a complete site according to the contracts."""

from __future__ import annotations

import re
import runpy
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from config.validation import check_site
from iobands.judge.site import read_site
from iobands.model import MADE_UP
from iobands.snapshot import CauseKind, Severity, Snapshot, State, exact_moment
from iobands.views.notes import unevenly_placed
from iobands.views.writing import summary
from tests.sites import whole_demo
from tests.views.test_dashboard import everything_in

NOW = datetime(2026, 11, 21, 7, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("demo")
    whole_demo(root, NOW)
    return root


@pytest.fixture(scope="module")
def site(root: Path) -> Snapshot:
    config = root / "config"
    return read_site(root / "perflogs", config / "bands", config / "alerts", now=NOW)


def test_a_drop_of_all_writes_and_a_slow_target_are_open(site: Snapshot) -> None:
    assert not site.rejected
    assert "made up" in summary(site)
    alert, slow = (each for each in site.alerts if each.severity is not Severity.COLLAPSED)
    assert alert.severity is slow.severity is Severity.DEGRADED
    assert slow.subject == "OST 7 of fast"
    assert {(each.series.key.file_system, each.series.key.pattern) for each in slow.members} == {
        ("fast", "fpp")
    }
    assert {(each.series.key.file_system, each.series.key.variable) for each in alert.members} == {
        ("scratch", "write_bw")
    }
    assert alert.since is not None
    assert abs(alert.since - (NOW - timedelta(days=11))) < timedelta(days=3)


def test_the_lost_target_is_the_cause_and_empty_ones_explain_last_night_s_low_runs(
    site: Snapshot,
) -> None:
    (drop,) = (each for each in site.alerts if each.subject == "scratch writes")
    assert drop.cause is not None
    assert (drop.cause.kind, drop.cause.what) == (
        CauseKind.TARGET_OUT,
        "OST 11 out of service (1 of 12)",
    )
    assert drop.cause.odds > 30
    assert "OST0003 97 % full" in drop.candidates[1].what  # that night, too
    (slow,) = (each for each in site.alerts if each.peer)
    assert slow.cause is not None
    assert slow.cause.what == "OST 7 of fast is slow"
    # In rotation, each of 15 targets has 137 of 2048 files. One has 3 % of its space free, ten have
    # about 17 % and the new ones 100 %: by free space a new one gets 100 parts of 573, 357 files.
    (text,) = unevenly_placed(site)
    assert text.startswith(
        f"scratch of {MADE_UP}: the busiest target has 2.61 × its round-robin share of files: "
        "OST0003 is 97 %"
    )
    assert "this may be why scratch fpp stripes=1 write_bw is low" in text


def test_the_past_has_an_incident_an_epoch_and_a_drop_that_was_resolved(site: Snapshot) -> None:
    assert {incident.file_system for incident in site.incidents} == {"scratch"}
    resolved = {key for key, actions in site.actions.items() if actions}
    assert {(key.file_system, key.variable) for key in resolved} == {("fast", "read_bw")}
    epochs = {series.epoch.name for series in site.series if series.epoch}
    assert epochs == {"upgrade"}
    assert State.CALIBRATING in site.counts()


def test_no_run_is_in_the_gaps_and_one_of_them_was_a_maintenance(site: Snapshot) -> None:
    days = {time.astype("datetime64[D]") for each in site.series for time in each.history.times}
    assert 350 < len(days) < 365
    past, coming = site.maintenance[MADE_UP]
    assert past.begin < NOW < coming.begin
    assert not any(
        past.begin <= exact_moment(time) <= past.end
        for each in site.series
        for time in each.history.times
    )


def test_its_site_file_is_one(root: Path) -> None:
    path = root / "config" / "systems" / f"{MADE_UP}.py"
    found = runpy.run_path(str(path))
    check_site(found["system"], found["environments"], path)


def test_the_command_writes_a_dashboard_and_nothing_into_a_directory_in_use(
    iobands, tmp_path
) -> None:
    done = iobands("demo", "look")
    assert (done.returncode, done.stderr) == (0, "")
    page = tmp_path / "look" / "dashboard"
    assert MADE_UP in (page / "data" / "site.js").read_text("utf-8")
    assert "20 % in about" in everything_in(page)  # the drops that it can detect
    # its alerts have numbers and pages for good, the one that was resolved, too
    assert len([*(page / "alerts").iterdir()]) == 4
    repaired = (page / "alerts" / f"{MADE_UP}-2.html").read_text("utf-8")
    assert "by demo: made up: the switch was repaired" in repaired
    assert re.search(" 2  .* fast reads$", iobands("alerts", "--site", "look").stdout, re.MULTILINE)
    done = iobands("demo", ".")
    assert done.returncode == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["look"]
