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
        (reading.main, {"sizes": "100x30", "tries": 1}),
        (dashboard.main, {"sizes": "100x30", "tries": 1}),
        # enough days for alerts, whose log a store has
        (stores.main, {"clusters": 2, "series": 100, "days": 100}),
    ],
)
def test_it_writes_its_page(
    run: Callable[..., None],
    sizes: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stores, "_TRIES", 1)
    monkeypatch.setattr(dashboard, "_BROWSED", 1)
    run(**sizes, directory=tmp_path / "scratch", report=tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert page.startswith("# What ")
    assert "| Processor |" in page
