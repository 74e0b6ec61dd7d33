"""`iobands calibrate` and `iobands epoch`: the files that they write, and exit statuses."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from iobands.bands import load_bands
from tests.commands.calling import call
from tests.factory import NOW, daily, write_bands, write_perflog
from tests.sites import levels

BANDS = Path("config/bands")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Perflogs up to now with two healthy series."""
    last = (NOW - datetime.now(timezone.utc)) / timedelta(days=1) + 0.25
    rows = daily(levels((80, 1)), last=last)
    rows += daily(levels((80, 1), seed=2), last=last, perf_var="read_bw")
    write_perflog(tmp_path / "perflogs", rows)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files() -> list[str]:
    return sorted(str(path.relative_to(BANDS)) for path in BANDS.rglob("*.yaml"))


def test_calibrating_writes_one_new_file(site: Path) -> None:
    today = datetime.now(timezone.utc).date().isoformat()
    assert call("calibrate", "--dry-run")[0] == 0
    assert files() == []
    assert call("calibrate")[0] == 3  # there is nobody to ask
    assert files() == []
    assert call("calibrate", "--yes")[0] == 0
    assert files() == [f"here/learned-{today}.yaml"]
    (epoch,) = load_bands(BANDS, "here").epochs
    assert (len(epoch.bands), epoch.continues) == (2, True)
    # a second call has nothing to write
    assert call("calibrate", "--yes")[0] == 0
    assert len(files()) == 1


def test_a_large_rate_has_no_exponent(site: Path) -> None:
    last = (NOW - datetime.now(timezone.utc)) / timedelta(days=1) + 0.25
    rates = [1e6 * each for each in levels((80, 1))]
    rows = daily(rates, last=last, perf_var="stat_rate", perf_unit="1/s")
    write_perflog(site / "perflogs", rows, "Mdtest.log")
    said = call("calibrate", "--dry-run")[1]
    assert re.search(r"^    median +\d{7} \[\d{7}, \d{7}\]$", said, re.MULTILINE), said
    assert "e+0" not in said


def test_what_people_wrote_is_not_rewritten(site: Path) -> None:
    path = write_bands(BANDS)
    before = path.read_bytes()
    assert call("calibrate", "--yes")[0] == 0
    assert path.read_bytes() == before
    found = load_bands(BANDS, "here")
    assert (found.epochs[0].name, len(found.epochs)) == ("first", 2)


def test_a_part_of_the_series(site: Path) -> None:
    assert call("calibrate", "--series", "read_bw", "--yes")[0] == 0
    (epoch,) = load_bands(BANDS, "here").epochs
    assert [band.match["variable"] for band in epoch.bands] == ["read_bw"]
    assert call("calibrate", "--series", "nowhere", "--yes")[0] == 3
    assert call("calibrate", "--since", "yesterday", "--yes")[0] == 3


def test_an_epoch_by_hand(site: Path) -> None:
    assert call("calibrate", "--yes")[0] == 0
    soon = (datetime.now(timezone.utc) + timedelta(minutes=1)).isoformat()
    later = (datetime.now(timezone.utc) + timedelta(days=1)).date().isoformat()
    keep = ("--since", soon, "--keep-bands", "--yes")
    assert call("epoch", "firmware", "--reason", "new", *keep)[0] == 0
    assert call("epoch", "disks", "--reason", "r", "--since", later, "--yes")[0] == 0
    found = load_bands(BANDS, "here")
    assert [(each.name, len(each.bands), each.reason) for each in found.epochs[1:]] == [
        ("firmware", 2, "new"),
        ("disks", 0, "r"),
    ]
    assert found.epochs[2].since.isoformat() == f"{later}T00:00:00+00:00"
    assert not any(each.continues for each in found.epochs[1:])
    assert len(files()) == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("epoch", "taken", "--reason", "r", "--yes"),
        ("epoch", "new", "--reason", "r", "--since", "2026-01-01", "--yes"),  # of another epoch
        ("epoch", "new", "--reason", "r", "--system", "hare", "--yes"),
        ("epoch", "new", "--reason", "r", "--since", "soon", "--yes"),
        ("epoch", "new", "--reason", "r"),  # there is nobody to ask
        ("epoch", " ", "--reason", "r", "--yes"),
    ],
)
def test_what_cannot_be_done_is_unknown_and_writes_nothing(
    site: Path, arguments: tuple[str, ...]
) -> None:
    path = write_bands(BANDS)
    path.write_text(path.read_text().replace('"first"', '"taken"'))
    found, said = call(*arguments)
    assert (found, files()) == (3, ["here.yaml"])
    assert "IOBANDS UNKNOWN: " in said


def test_without_a_reason_nothing_is_written(site: Path) -> None:
    assert call("epoch", "new", "--yes")[0] != 0
    assert files() == []


def test_the_system_must_be_named_where_several_ran(site: Path) -> None:
    (site / "perflogs" / "there").mkdir()
    assert call("epoch", "new", "--reason", "r", "--yes")[0] == 3
    assert call("epoch", "new", "--reason", "r", "--yes", "--system", "there")[0] == 0
    assert files() == ["there/new.yaml"]


@pytest.mark.parametrize("command", ["report", "run --report", "schedule cron --report"])
@pytest.mark.parametrize("place", ["perflogs", "perflogs/pages", "config/pages", "."])
def test_a_dashboard_is_apart_from_a_site(site: Path, command: str, place: str) -> None:
    (site / "config" / "systems").mkdir(parents=True)
    before = sorted(site.rglob("*"))
    done, said = call(*command.split(), place)
    assert done == 3
    assert "has files of a site; name another directory for the pages" in " ".join(said.split())
    assert sorted(site.rglob("*")) == before


def test_a_system_that_has_only_a_site_file_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = ("epoch", "before", "--reason", "new disks", "--yes")
    done, said = call(*given, "--system", "here")
    assert (done, list(tmp_path.iterdir())) == (3, [])
    assert "no system here; known systems: none; run it in the directory of a site" in said
    (tmp_path / "config/systems").mkdir(parents=True)
    (tmp_path / "config/systems/here.py").touch()
    assert call(*given, "--system", "her")[0] == 3
    assert call(*given)[0] == 0
    assert files() == ["here/before.yaml"]


def test_a_system_that_has_only_learned_bands_is_known(site: Path) -> None:
    assert call("epoch", "one", "--reason", "r", "--yes")[0] == 0
    elsewhere = ("--perflogs", "nowhere", "--since", "2026-01-02", "--yes")
    assert call("epoch", "two", "--reason", "r", *elsewhere)[0] == 0
    assert files() == ["here/one.yaml", "here/two.yaml"]


@pytest.mark.parametrize("quartiles", [(3, 2, 1), (0, 1, 2), (1, 2, float("inf"))])
def test_a_bands_file_that_cannot_be_used_is_named(
    site: Path, quartiles: tuple[float, float, float]
) -> None:
    write_bands(BANDS, quartiles)
    for command in (("calibrate",), ("epoch", "x", "--reason", "r")):
        found, said = call(*command, "--yes")
        assert found == 3
        assert "here.yaml" in said
