"""The digest in README.md is what the demo prints."""

from __future__ import annotations

import io
import re
from datetime import datetime, timezone
from pathlib import Path

from rich.console import Console

from iobands.judge.site import read_site
from iobands.views.digest import digest_text
from tests.sites import whole_demo

README = Path(__file__).resolve().parents[2] / "README.md"
NOW = datetime(2026, 11, 22, 7, 30, tzinfo=timezone.utc)


def demo_digest(root: Path) -> str:
    whole_demo(root, NOW)
    site = read_site(root / "perflogs", root / "config/bands", root / "config/alerts", now=NOW)
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    return digest_text(site, Console(file=stream, width=80))


def test_the_sample_in_the_readme_is_the_digest_of_the_demo(tmp_path: Path) -> None:
    said = README.read_text(encoding="utf-8")
    (sample,) = re.findall(r"```\n(IOBANDS .*?)```", said, re.DOTALL)
    assert sample == demo_digest(tmp_path)
