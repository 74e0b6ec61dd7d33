"""A site that several tests use, and directories for those that end theirs in bad ways."""

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
    """A directory for a site, which is ended whatever the test did to it."""
    site = _new()
    with ended(site.root):
        yield site


@pytest.fixture(scope="module")
def running():
    """A site that is up, and shared."""
    site = _new()
    with ended(site.root):
        status, said = site.call("up")
        assert status == 0, said
        yield site
