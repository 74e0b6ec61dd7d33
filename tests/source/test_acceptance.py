"""An acceptance's copy has each of its lines once, whatever happens to the site's perflogs."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from iobands.bands.contract import MeasuredBy
from iobands.source.acceptance import Begun, collect, seal
from iobands.source.perflog import read_perflogs
from tests.factory import COLUMNS, ROW, case, days_ago, line, write_perflog, write_report


def renamed(log: Path) -> None:
    log.rename(f"{log}.1")


def packed(log: Path) -> None:
    Path(f"{log}.1.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()


def of_an_older_version(log: Path) -> None:
    log.rename(f"{log}.h0")


def copied_beside(log: Path) -> None:
    Path(f"{log}-20261101").write_bytes(log.read_bytes())


def rows(*days: int) -> list[str]:
    return [line(purpose="acceptance", job_completion_time=days_ago(day)) for day in days]


def copies_of(root: Path) -> Callable[[], int]:
    """Return a function that copies the lines of an acceptance and counts those it can read."""
    by = MeasuredBy(ROW["display_name"], ROW["partition"], ROW["environ"])
    begun = Begun(system="here", began=days_ago(9), contract="", version="1", lines=(by,))
    directory = root / "acceptance"
    directory.mkdir()

    def copied() -> int:
        collect(root / "perflogs", directory, begun)
        seal(directory)
        samples = read_perflogs(directory / "perflogs")
        assert samples.rejected == ()
        return len(samples.values)

    return copied


@pytest.mark.parametrize("rotate", [renamed, packed, of_an_older_version, copied_beside])
def test_perflogs_may_be_rotated(rotate: Callable[[Path], None], tmp_path: Path) -> None:
    copied = copies_of(tmp_path)
    log = write_perflog(tmp_path / "perflogs", rows(5, 4))
    reports = tmp_path / "perflogs" / "here" / "reports"
    reports.mkdir()
    for odd in (log.with_name("Gone.log"), reports / "gone.json"):
        odd.symlink_to("nowhere")
    log.with_name("Directory.log").mkdir()
    assert copied() == copied() == 2
    rotate(log)
    assert copied() == 2
    for later in [], rows(1):
        write_perflog(tmp_path / "perflogs", later)
        if rotate is of_an_older_version:
            log.write_text("\n".join([f"new|{COLUMNS}", *(f"x|{row}" for row in later), ""]))
        assert copied() == 2 + len(later)


def test_the_columns_may_change_in_the_middle_of_a_perflog(tmp_path: Path) -> None:
    copied = copies_of(tmp_path)
    log = write_perflog(tmp_path / "perflogs", rows(5, 4))
    with log.open("a") as perflog:
        perflog.write("\n".join([f"new|{COLUMNS}", *(f"x|{row}" for row in rows(3)), ""]))
    assert copied() == copied() == 3
    packed(log)
    write_perflog(tmp_path / "perflogs", rows(2))
    assert copied() == 4
    write_perflog(tmp_path / "perflogs", [])
    (tmp_path / "acceptance" / "perflogs" / "here" / "local" / "BenchioFPP.log").write_text("?")
    assert copied() == 1  # the other lines are lost


def test_a_system_is_known_by_its_lines_and_not_by_the_directory(tmp_path: Path) -> None:
    copied, others = copies_of(tmp_path), rows(5, 4)
    write_perflog(tmp_path / "perflogs", others, system="before")
    write_perflog(tmp_path / "perflogs", [each.replace("|here|", "|there|") for each in others])
    write_report(tmp_path / "perflogs", [case(system="there", purpose="acceptance")])
    unreadable = tmp_path / "perflogs" / "before" / "local" / "Unreadable.log"
    unreadable.symlink_to("/proc/self/mem")
    assert copied() == 2
    assert {*read_perflogs(tmp_path / "acceptance" / "perflogs").values["system"]} == {"here"}
    assert not [*(tmp_path / "acceptance").rglob("*.json")]
