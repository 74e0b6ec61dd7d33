"""The benchmarks of reading complete and write their pages; their figures are not tested."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.reading import __main__ as reading
from benchmarks.reading import dashboard, stores


@pytest.mark.parametrize(
    ("run", "sizes"),
    [
        (reading.main, {"sizes": "100x60", "tries": 1}),
        (dashboard.main, {"sizes": "100x60", "tries": 1}),
        # enough days for alerts, whose log a store has
        (stores.main, {"clusters": 2, "series": 100, "days": 300}),
    ],
)
def test_it_writes_its_page(
    run: Callable[..., None], sizes: dict[str, object], tmp_path: Path
) -> None:
    run(**sizes, directory=tmp_path / "scratch", report=tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert page.startswith("# What ")
    assert "| Processor |" in page
