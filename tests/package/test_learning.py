"""From perflogs to bands: what `iobands calibrate` and `iobands epoch` do on a site."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from iobands.bands_file import load_bands
from iobands.commands.main import app
from iobands.model.history import alike
from iobands.learning import Calibration, calibrate, epoch_by_hand
from tests.package.factory import NOW, daily, write_perflog
from tests.package.sites import site

BANDS = "bands"


def healthy(runs: int, seed: int = 0) -> list[float]:
    return [round(float(x), 4) for x in np.exp(np.random.default_rng(seed).normal(0, 0.2, runs))]


def learn(root: Path, **options: object) -> Calibration:
    (found,) = calibrate(root / "perflogs", root / BANDS, **{"now": NOW, **options})
    return found


def write(root: Path, lines: list[str]) -> None:
    write_perflog(root / "perflogs", lines)


def test_a_new_epoch_that_continues(tmp_path: Path) -> None:
    write(tmp_path, daily(healthy(80)))
    found = learn(tmp_path)
    assert (found.system, found.left_out) == ("here", ())
    assert not (tmp_path / BANDS).exists()
    found.change.write()
    (epoch,) = load_bands(tmp_path / BANDS / "here.yaml").epochs
    assert (epoch.name, epoch.since, epoch.continues) == ("learnt-2026-11-21", NOW, True)
    (band,) = epoch.bands
    assert (band.state, band.source) == ("active", "own history, by iobands calibrate")
    # once more says nothing new, and more runs make a second epoch beside the first
    assert learn(tmp_path, now=NOW + timedelta(hours=1)).change is None
    write(tmp_path, daily(healthy(130)))
    learn(tmp_path, now=NOW + timedelta(hours=1)).change.write()
    names = [epoch.name for epoch in load_bands(tmp_path / BANDS / "here.yaml").epochs]
    assert names == ["learnt-2026-11-21", "learnt-2026-11-21-2"]


def test_frozen_bands_stay_until_the_kernel_changes(tmp_path: Path) -> None:
    write(tmp_path, daily(healthy(210)))
    learn(tmp_path).change.write()
    write(tmp_path, daily(healthy(300)))
    again = learn(tmp_path, now=NOW + timedelta(hours=1))
    assert (again.change, again.left_out[0].why[:6]) == (None, "frozen")
    new = daily([1.6 * value for value in healthy(40, 1)], tool_version="2.0")
    write(tmp_path, [*daily(healthy(300), last=50), *new])
    (learnt,) = learn(tmp_path, now=NOW + timedelta(hours=1)).learnt
    assert (learnt.band.state, learnt.band.runs) == ("provisional", pytest.approx(40, abs=2))
    assert learnt.band.median > 1.4
    assert learnt.notes[0].startswith("300 runs of another kernel")


@pytest.mark.parametrize(
    ("old", "mixed"),
    [
        ({"tool_version": "0.9"}, False),
        ({"fsync": "false"}, False),
        ({"fsync": "null"}, False),
        ({"suite_version": "1.0.0"}, False),
        ({"suite_version": "0.2.7"}, True),
        ({}, True),
    ],
)
def test_what_is_never_mixed(tmp_path: Path, old: dict[str, str], mixed: bool) -> None:
    write(tmp_path, [*daily(healthy(40, 1), last=60, **old), *daily(healthy(30))])
    (learnt,) = learn(tmp_path).learnt
    assert len(learnt.proposal.used) == (70 if mixed else 30)
    assert bool(learnt.notes) is not mixed


def test_alike_bears_missing_columns_and_values() -> None:
    assert alike(pd.DataFrame({"tool_version": ["1", None, "1"]})).tolist() == [True, False, True]
    assert alike(pd.DataFrame({"tool_version": ["1", None]})).tolist() == [False, True]
    assert alike(pd.DataFrame({"tool_version": [None, None]})).tolist() == [True, True]


def test_an_open_alarm_gives_no_band(tmp_path: Path) -> None:
    values = healthy(100)
    low = [*values[:80], *(value / 2 for value in values[80:])]
    write(tmp_path, [*daily(low), *daily(values, perf_var="read_bw")])
    found = learn(tmp_path)
    assert [one.label for one in found.learnt] == ["disk fpp read_bw"]
    (left,) = found.left_out
    assert left.label == "disk fpp write_bw"
    assert "under an open alarm (down, × 0." in left.why
    assert "since 2026-11-01" in left.why
    # the new normal, declared: 20 runs of it are a first band
    epoch_by_hand(
        tmp_path / BANDS,
        "here",
        "slower",
        reason="disks are fuller",
        since=datetime(2026, 11, 1, tzinfo=timezone.utc),
        keep_bands=False,
    ).write()
    learnt = {one.label: one.band for one in learn(tmp_path).learnt}
    assert learnt["disk fpp write_bw"].median == pytest.approx(0.5, rel=0.15)


def test_an_open_alarm_that_only_a_pool_has_gives_no_band(tmp_path: Path) -> None:
    def fall(fields: dict[str, str], day: int, _: Sequence[str]) -> float:
        return 0.88 if fields["file_system"] == "a" and day < 8 else 1.0

    survey = site(tmp_path, fall)
    assert [each.name for each in survey.common] == ["all a"]
    # of its four series one has an alarm of its own
    alone = [each.label for each in survey.series if each.status.change]
    assert alone == ["a ssf ucx write_bw"]
    found = learn(tmp_path)
    assert [each.key.file_system for each in found.learnt] == ["b"] * 4
    why = {each.label: each.why for each in found.left_out}
    assert "it shares, all a (down, × 0.8" in why["a fpp ofi write_bw"]
    assert "`iobands close 'all a'`" in why["a ssf ofi write_bw"]
    assert why["a ssf ucx write_bw"].startswith("under an open alarm (down")


def test_runs_under_an_alarm_of_a_pool_that_is_over_are_left_out(tmp_path: Path) -> None:
    def fall(fields: dict[str, str], day: int, _: Sequence[str]) -> float:
        return 0.88 if fields["file_system"] == "a" and 60 <= day < 80 else 1.0

    assert site(tmp_path, fall).common == ()
    found = {each.label: each for each in learn(tmp_path).learnt}
    (note,) = found["a fpp ofi write_bw"].notes
    assert note.endswith("runs under alarms, some of them shared, left out")
    assert found["a fpp ofi write_bw"].proposal.runs <= 133
    assert found["b fpp ofi write_bw"].notes == ()


def test_of_a_pool_of_nodes_the_runs_that_touched_them_are_left_out(tmp_path: Path) -> None:
    def nodes(random: np.random.Generator) -> list[str]:
        return [f"n{number}" for number in sorted(random.choice(8, 2, replace=False))]

    def slow(_: dict[str, str], day: int, names: Sequence[str]) -> float:
        return 0.7 if "n3" in names and day < 40 else 1.0

    survey = site(tmp_path, slow, nodes=nodes)
    assert [each.name for each in survey.common] == ["all node n3"]
    found = learn(tmp_path)
    touched = next(pool for pool in survey.pools if pool.name == "all node n3")
    (learnt, *_) = (each for each in found.learnt if each.key in survey.common[0].keys)
    assert touched.rows is not None
    late = touched.rows[learnt.key] >= 150 - 45
    left_out = int(re.match(r"(\d+) runs under alarms", learnt.notes[0])[1])
    assert 0 < left_out <= np.count_nonzero(late)


def test_failed_runs_and_too_few_runs(tmp_path: Path) -> None:
    write(tmp_path, [*daily([*healthy(19), None]), *daily([1.0], perf_var="read_bw")])
    found = learn(tmp_path)
    assert found.change is None
    assert [one.why for one in found.left_out] == [
        "1 healthy runs of 20 that a band needs",
        "19 healthy runs of 20 that a band needs",
    ]


def test_since_and_part_of_a_label(tmp_path: Path) -> None:
    write(tmp_path, [*daily(healthy(60)), *daily(healthy(60, 1), perf_var="read_bw")])
    since = NOW - timedelta(days=30)
    (learnt,) = learn(tmp_path, since=since, part="read").learnt
    assert (learnt.label, len(learnt.proposal.used)) == ("disk fpp read_bw", 30)


def test_epochs_by_hand(tmp_path: Path) -> None:
    write(tmp_path, daily(healthy(80)))
    learn(tmp_path).change.write()
    since = NOW + timedelta(days=1)
    for name, keep, days in (("kept", True, 0), ("none", False, 1)):
        epoch_by_hand(
            tmp_path / BANDS,
            "here",
            name,
            reason="r",
            since=since + timedelta(days=days),
            keep_bands=keep,
        ).write()
    bands = load_bands(tmp_path / BANDS / "here.yaml")
    assert [len(epoch.bands) for epoch in bands.epochs] == [1, 1, 0]
    assert bands.compares_since(NOW) is None
    assert bands.compares_since(since) == since


def test_commands(tmp_path: Path) -> None:
    write(tmp_path, daily(healthy(80)))
    where = ["--bands", str(tmp_path / BANDS)]
    logs = ["--perflogs", str(tmp_path / "perflogs"), *where]
    path = tmp_path / BANDS / "here.yaml"

    def run(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, list(arguments))
        return done.exit_code, done.output

    status, said = run("calibrate", *logs, "--dry-run")
    assert (status, path.exists()) == (0, False)
    assert "+        state: active" in said
    status, said = run("calibrate", *logs)
    assert (status, path.exists()) == (3, False)
    assert "give --yes" in said
    status, said = run("calibrate", *logs, "--yes")
    assert (status, load_bands(path).epochs[0].continues) == (0, True)
    assert "Nothing to write." in run("calibrate", *logs, "--yes")[1]
    assert run("calibrate", *logs, "--series", "nowhere")[0] == 3
    assert run("epoch", "x", *logs)[0] == 2  # without a reason, a usage error
    assert run("epoch", "x", "--reason", "r", "--since", "soon", *logs)[0] == 3
    assert run("epoch", "x", "--reason", "r", "--since", "2026-01-01", "--yes", *logs)[0] == 0
    assert load_bands(path).epochs[0].name == "x"
    status, said = run("epoch", "x", "--reason", "r", "--since", "2040-01-01", *logs)
    assert (status, "given twice" in said) == (3, True)


def test_foreign_perflogs_are_calibrated_through_their_adapter(tmp_path: Path) -> None:
    logs = tmp_path / "results"
    logs.mkdir()
    head = "date,system,partition,file_system,pattern,operation,GiB_s\n"
    lines = [
        f"{(NOW - timedelta(days=59 - day)).isoformat()},here,compute,disk,fpp,write,{value}\n"
        for day, value in enumerate(healthy(60))
    ]
    (logs / "ours.csv").write_text(head + "".join(lines))
    (logs / "adapter.yaml").write_text(
        "columns: {job_completion_time: date, perf_var: operation, perf_value: GiB_s}\n"
        "fields: {perf_unit: GiB/s}\n"
        "variables: {write: {perf_var: write_bw}}\n"
    )
    where = ["--perflogs", str(logs), "--bands", str(tmp_path / BANDS), "--adapter", "csv"]

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, [*arguments, *where])
        assert done.exit_code == 0, done.output
        return done.output

    assert "disk fpp write_bw: 60 runs, active" in run("calibrate", "--yes")
    since = (NOW - timedelta(days=10)).isoformat()
    said = run("epoch", "x", "--reason", "r", "--since", since, "--dry-run")
    assert f"here: 49 samples from before {since}, 11 samples since" in said


def test_an_epoch_of_a_system_that_nobody_knows(tmp_path: Path) -> None:
    write(tmp_path, daily(healthy(20)))
    where = ["--perflogs", str(tmp_path / "perflogs"), "--bands", str(tmp_path / BANDS)]
    epoch = ["epoch", "x", "--reason", "r", "--dry-run", *where]
    done = CliRunner().invoke(app, [*epoch, "--system", "hare"])
    assert (done.exit_code, "no system hare; known are here" in done.output) == (3, True)
    # the only one that ran need not be named
    assert CliRunner().invoke(app, epoch).exit_code == 0
