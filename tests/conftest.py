"""What tests of several layers share."""

import pytest

from tests.site_copy import SiteCopy, copy_suite


@pytest.fixture
def site_copy(tmp_path) -> SiteCopy:
    """A fresh copy of the suite."""
    return copy_suite(tmp_path)


def pytest_addoption(parser):
    """Golden files are replaced on request only, so that a change of one is looked at."""
    parser.addoption("--store-golden", action="store_true", help="replace the golden files")


def pytest_collection_modifyitems(items):
    """Those that use one minisite one after the other come first: they take the longest."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)
