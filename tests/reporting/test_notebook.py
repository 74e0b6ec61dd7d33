"""The notebook runs from top to bottom, and is stored without outputs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.factory import daily, write_perflog

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "explore.ipynb"


def test_notebook_is_stored_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    for cell in code:
        assert cell.outputs == []
        assert cell.execution_count is None


@pytest.mark.filterwarnings("default")  # of the Jupyter libraries
def test_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_perflog(tmp_path, [*daily([1.0, 1.5, 2.0]), *daily([3.0], pattern="ssf"), "damaged"])
    monkeypatch.setenv("IOBANDS_PERFLOGS", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"), prepend=os.pathsep)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=300,
        resources={"metadata": {"path": str(NOTEBOOK.parent)}},
    )
    client.execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert "4 samples, 1 lines rejected" in code[0].outputs[0]["text"]
    kinds = {kind for output in code[-1].outputs for kind in output.get("data", {})}
    assert "image/png" in kinds
