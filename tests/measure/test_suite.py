"""A site's directory without checks is measured by the suite of the installation."""

from pathlib import Path

import pytest

from iobands.measure import SITE_ENV, site_of_suite
from iobands.measure.reframe import suite_of

CLONE = Path(__file__).resolve().parents[2]


def test_a_clone_has_a_suite_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "checks").mkdir()
    assert suite_of(tmp_path) == tmp_path


def test_another_site_has_the_one_of_this_installation(tmp_path: Path) -> None:
    found = suite_of(tmp_path)
    assert found == CLONE
    assert (found / "config" / "site.py").is_file()


def test_the_environment_names_the_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SITE_ENV, raising=False)
    assert site_of_suite(CLONE) == CLONE
    monkeypatch.setenv(SITE_ENV, str(tmp_path))
    assert site_of_suite(CLONE) == tmp_path.resolve()
