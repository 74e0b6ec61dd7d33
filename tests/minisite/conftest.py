"""A minisite that several tests share, and directories for tests that break their own."""

import itertools
import os
from pathlib import Path

import pytest

from tests.minisite.sites import Site, ended, skip_unless_possible

_numbers = itertools.count()


def _new() -> Site:
    # Not pytest's directory, which is too long for sockets.
    return Site(Path(f"/var/tmp/mst-{os.getpid()}-{next(_numbers)}"))


@pytest.fixture(scope="session", autouse=True)
def _possible():
    skip_unless_possible()


@pytest.fixture
def fresh():
    """A directory for a site, which is ended after the test in any case."""
    site = _new()
    with ended(site.root):
        yield site


@pytest.fixture(scope="module")
def running():
    """A site that is up, and that tests share."""
    site = _new()
    with ended(site.root):
        status, said = site.call("up")
        assert status == 0, said
        yield site
