"""One call at a time changes a site, even before the site exists."""

from contextlib import ExitStack

import pytest

from minisite.errors import SiteError
from minisite.place import Place, held


def test_a_directory_that_is_not_there_is_held_as_well(tmp_path):
    site = Place(tmp_path / "site")
    with held(site, patience=0):
        with ExitStack() as second, pytest.raises(SiteError, match="for too long"):
            second.enter_context(held(site, patience=0))
        # As `down` does at the end; a waiting call must then lock the new directory.
        site.root.rmdir()
        with held(site, patience=0):
            assert site.root.is_dir()


def test_a_file_is_no_place(tmp_path):
    (tmp_path / "file").touch()
    with ExitStack() as first, pytest.raises(SiteError, match="is not a directory"):
        first.enter_context(held(Place(tmp_path / "file"), patience=0))
