"""The CephFS backend reads the output of a real CephFS of Ceph 16.2 with four OSDs."""

import pytest

from checks.filesystems import BACKENDS, Asked, Layout, StripingError, Targets
from checks.filesystems.cephfs import file_layouts, up_osds
from checks.filesystems.layout import LAYOUT_FILE, TARGETS_FILE
from tests.checks.captures import ceph_said

CEPHFS = BACKENDS["cephfs"]
MIB = 2**20


def layouts_in(directory):
    each = "-exec getfattr --absolute-names -n ceph.file.layout {} +"
    return ceph_said(f"find /mnt/cephfs/{directory} -type f {each}")


@pytest.fixture
def stage(tmp_path):
    """A stage directory as a job on the captured CephFS leaves it."""

    def leave(directory, counted=True):
        (tmp_path / LAYOUT_FILE).write_text(layouts_in(directory), encoding="utf-8")
        if counted:
            text = ceph_said("ceph osd stat --format json")
            (tmp_path / TARGETS_FILE).write_text(text, encoding="utf-8")
        return tmp_path

    return leave


def test_layout_of_each_file():
    assert file_layouts(layouts_in("all")) == [Layout(2, MIB, 8 * MIB, pool="data")] * 2


@pytest.mark.parametrize(
    "output",
    [
        "",
        ceph_said("getfattr --absolute-names -n ceph.file.layout /scratch/elsewhere/f"),
        ceph_said("getfattr --absolute-names -n ceph.file.layout /mnt/cephfs/absent"),
        layouts_in("c4") + "/mnt/cephfs/c4/f3: ceph.file.layout: No such attribute\n",
        layouts_in("c4").replace("stripe_count=4", "stripe_count=", 1),
    ],
)
def test_what_is_no_layout_is_refused(output):
    with pytest.raises(StripingError, match="getfattr"):
        file_layouts(output)


def test_osds_that_are_up():
    assert up_osds(ceph_said("ceph osd stat --format json")) == Targets(active=4, inactive=0)
    one_down = ceph_said("ceph osd stat --format json # one OSD is down")
    assert up_osds(one_down) == Targets(active=3, inactive=1)
    assert up_osds("") is None
    assert up_osds("Error initializing cluster client") is None


@pytest.mark.parametrize(
    ("asked", "directory", "counted", "layout"),
    [
        (Asked(1), "c1", True, Layout(1, 4 * MIB, pool="data")),
        (Asked(4, size_kib=1024), "c4", True, Layout(4, MIB, pool="data")),
        (Asked(-1), "c4", True, Layout(4, MIB, pool="data")),
        (Asked(-1, targets=4), "c4", False, Layout(4, MIB, pool="data")),
        (Asked(2, 1024, 8192, pool="data"), "all", True, Layout(2, MIB, pool="data")),
        (Asked(), "c1", False, Layout(1, 4 * MIB, pool="data")),
        # One stripe needs no count of the OSDs.
        (Asked(1), "c1", False, Layout(1, 4 * MIB, pool="data")),
    ],
)
def test_layout_as_asked(stage, asked, directory, counted, layout):
    assert CEPHFS.in_effect(stage(directory, counted), asked) == layout


@pytest.mark.parametrize(
    ("asked", "directory", "counted", "message"),
    [
        # Ceph takes it, and the files' layout says 8.
        (Asked(8), "c8", True, "stripe count requested: 8; there are 4 OSDs up"),
        # Ceph takes it and the layout says 8, and nobody could count the OSDs.
        (
            Asked(8),
            "c8",
            False,
            "stripe count requested: 8; how many OSDs are up could not be seen",
        ),
        (Asked(8, targets=6), "c8", False, "stripe count requested: 8; there are 6 OSDs up"),
        (Asked(-1), "c4", False, "requested: all OSDs up; their number could not be seen"),
        (Asked(-1), "c8", True, "requested: all 4 OSDs up; in effect: 8"),
        (Asked(4), "c1", True, "stripe count requested: 4; in effect: 1"),
        (Asked(4, size_kib=4096), "c4", True, "stripe size requested: 4194304; in effect: 1048576"),
        (
            Asked(4, object_size_kib=8192),
            "c4",
            True,
            "object size requested: 8388608; in effect: 41",
        ),
        (Asked(4, pool="flash"), "c4", True, "pool requested: flash; in effect: data"),
    ],
)
def test_layout_other_than_asked_is_refused(stage, asked, directory, counted, message):
    with pytest.raises(StripingError, match=message):
        CEPHFS.in_effect(stage(directory, counted), asked)
