"""A site's directory without checks uses the suite of the installation."""

from pathlib import Path

import pytest

from iobands.measure import SITE_ENV, SessionError, describe, site_of_suite
from iobands.measure import reframe as reframe_module
from iobands.measure.reframe import suite_of

CLONE = Path(__file__).resolve().parents[2]


def test_a_clone_has_a_suite_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "checks").mkdir()
    assert suite_of(tmp_path) == tmp_path


def test_another_site_has_the_one_of_this_installation(tmp_path: Path) -> None:
    found = suite_of(tmp_path)
    assert found == CLONE
    assert (found / "config" / "site.py").is_file()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exec sleep 60", "does not list the checks"),
        ("echo hello", "list of checks cannot be read"),
    ],
)
def test_a_reframe_that_does_not_list_its_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    program = tmp_path / "reframe"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(reframe_module, "_LISTING_SECONDS", 1)
    with pytest.raises(SessionError, match=said):
        describe(tmp_path, ["-t", "daily"])


def test_the_environment_names_the_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SITE_ENV, raising=False)
    assert site_of_suite(CLONE) == CLONE
    monkeypatch.setenv(SITE_ENV, str(tmp_path))
    assert site_of_suite(CLONE) == tmp_path.resolve()
