"""Fixtures for the tests of commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.fake_root import make_root
from tests.commands.small_site import site


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path)


@pytest.fixture
def healthy(tmp_path: Path) -> Path:
    return site(tmp_path)
