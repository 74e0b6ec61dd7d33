"""The notebooks run from top to bottom, and are stored without outputs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.factory import daily, write_perflog

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"

pytestmark = pytest.mark.filterwarnings("default")  # of the Jupyter libraries


def run(name: str, perflogs: Path, monkeypatch: pytest.MonkeyPatch) -> list[list]:
    """Run a notebook on `perflogs`; return the outputs of each of its code cells."""
    monkeypatch.setenv("IOBANDS_PERFLOGS", str(perflogs))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"), prepend=os.pathsep)
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    client = nbclient.NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=300,
        resources={"metadata": {"path": str(NOTEBOOKS)}},
    )
    client.execute()
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


def kinds(outputs: list) -> set[str]:
    return {kind for output in outputs for kind in output.get("data", {})}


@pytest.mark.parametrize("name", ["explore.ipynb", "archer2.ipynb"])
def test_it_is_stored_without_outputs(name: str) -> None:
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    for cell in code:
        assert cell.outputs == []
        assert cell.execution_count is None


def test_explore_draws_a_series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    striped = daily([3.0], stripe_count_asked=-1)
    write_perflog(tmp_path, [*daily([1.0, 1.5, 2.0]), *striped, "damaged"])
    outputs = run("explore.ipynb", tmp_path, monkeypatch)
    assert "samples: 4, rejected lines: 1" in outputs[0][0]["text"]
    spread = outputs[1][0]["data"]["text/plain"].splitlines()
    assert spread[1].split()[0] == "stripe_count_asked"
    assert [row.split()[1] for row in spread[2:]] == ["1.0", "3.0"]  # two series, by their runs
    assert "calibrating" in outputs[2][-1]["data"]["text/plain"]
    assert "image/png" in kinds(outputs[-1])


def test_explore_needs_no_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("explore.ipynb", tmp_path, monkeypatch)[-1] == []


def test_archer2_draws_own_runs_over_the_published_bands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    like = {"medium": "nvme", "stripe_count_asked": 1, "transport": "ofi"}
    like |= {"nodes": 16, "tasks": 2048, "gib": 64}
    rows = [*daily([160.0, 190.0, 20.0], **like), *daily([1.0], medium="nvme")]
    write_perflog(tmp_path, rows)
    outputs = run("archer2.ipynb", tmp_path, monkeypatch)
    assert "4 samples; the bands apply to 3" in outputs[1][0]["text"]
    assert "image/png" in kinds(outputs[2])
    table = outputs[3][0]["data"]["text/plain"]
    assert {"within", "above", "collapsed"} <= set(table.split())
