"""`iobands canary` before it measures: what it takes for a system of the site."""

from __future__ import annotations

from pathlib import Path

from tests.commands.calling import call


def test_a_snapshot_directory_is_no_system(tmp_path: Path) -> None:
    (tmp_path / "config" / "systems").mkdir(parents=True)
    (tmp_path / "perflogs" / ".snapshot").mkdir(parents=True)
    status, said = call("canary", "--site", str(tmp_path))
    assert status == 3
    assert "no session has kept a benchio for it" in said
