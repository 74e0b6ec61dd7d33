"""config/systems/local.py on file systems of this machine."""

import runpy

import pytest

from tests.mounts import in_memory
from tests.site_copy import ROOT


@pytest.mark.needs("mounts")
def test_a_disk_below_a_mount_point_with_a_blank(tmp_path, monkeypatch):
    with in_memory(tmp_path / "my own disk", "size=1m") as disk:
        monkeypatch.setenv("IOBANDS_DISK", str(disk))
        site = runpy.run_path(str(ROOT / "config" / "systems" / "local.py"))
    (partition,) = site["system"]["partitions"]
    assert partition["extras"]["filesystems"]["disk"]["mounted_as"] == "tmpfs"
