"""config/systems/local.py on file systems of this machine."""

import runpy
from pathlib import Path

import pytest

from tests.mounts import in_memory, unanswered
from tests.site_copy import ROOT

pytestmark = pytest.mark.needs("mounts")


def mounted_as(disk, monkeypatch):
    """Return the type of `disk` by the site file."""
    monkeypatch.setenv("IOBANDS_DISK", str(disk))
    site = runpy.run_path(str(ROOT / "config" / "systems" / "local.py"))
    (partition,) = site["system"]["partitions"]
    return partition["extras"]["filesystems"]["disk"]["mounted_as"]


def test_a_disk_below_a_mount_point_with_a_blank(tmp_path, monkeypatch):
    with in_memory(tmp_path / "my own disk", "size=1m") as disk:
        assert mounted_as(disk, monkeypatch) == "tmpfs"


def test_a_link_to_the_disk(tmp_path, monkeypatch):
    with in_memory(tmp_path / "disk", "size=1m") as disk:
        (tmp_path / "link").symlink_to(disk)
        assert mounted_as(tmp_path / "link", monkeypatch) == "tmpfs"


@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="no FUSE")
def test_a_disk_whose_server_does_not_answer(tmp_path, monkeypatch):
    with unanswered(tmp_path / "disk") as disk:
        assert mounted_as(disk / "mine", monkeypatch) == "fuse"
