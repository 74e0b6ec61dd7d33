"""`iobands canary` before it measures: which system of the site it chooses."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobands.commands import canary
from iobands.measure.canary import Look, Nest
from iobands.model import CRITICAL, UNKNOWN
from tests.commands.calling import call


def test_a_snapshot_directory_is_no_system(tmp_path: Path) -> None:
    (tmp_path / "config" / "systems").mkdir(parents=True)
    (tmp_path / "perflogs" / ".snapshot").mkdir(parents=True)
    status, said = call("canary", "--site", str(tmp_path))
    assert status == 3
    assert "no session has kept a benchio for it" in said


@pytest.mark.parametrize(("partition", "status"), [("gpu", CRITICAL), ("cpu", UNKNOWN)])
def test_a_program_that_starts_on_nodes_of_another_partition_condemns_no_node(
    partition: str, status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    unstarted = Look(UNKNOWN, "no run: no libmpi.so", is_unstarted=True)
    monkeypatch.setattr("iobands.measure.canary.look", lambda *_: unstarted)
    nest = Nest(tmp_path, "here", "gpu", "mpi", "n1", {"disk": {}}, {})
    row = {"partition": partition, "environ": "mpi", "file_system": "disk"}
    assert canary._judged_one(nest, "disk", 1, 60, {"n2": [row]}, 0)[0] == status
