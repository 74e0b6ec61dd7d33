"""The backend of Spectrum Scale reads the documented output of its commands."""

import pytest

from checks.filesystems import BACKENDS, Asked, Layout, StripingError, TargetFaults, Targets
from checks.filesystems.layout import LAYOUT_FILE
from tests.checks.captures import gpfs_said

GPFS = BACKENDS["gpfs"]


REPLICATED = gpfs_said("mmlsattr -L replicated")
SINGLE = gpfs_said("mmlsattr -L single")
DISKS = gpfs_said("mmlsdisk work -Y")
SPACE = gpfs_said("mmdf work -Y")
STATE = gpfs_said("mmgetstate -Y")
DATA = Layout(pool="data", fileset="scratch", replicas=2)


@pytest.fixture
def stage(tmp_path):
    def leave(text):
        (tmp_path / LAYOUT_FILE).write_text(text, encoding="utf-8")
        return tmp_path

    return leave


def test_the_place_of_the_files(stage):
    asked = Asked(pool="data", fileset="scratch", replicas=2)
    assert GPFS.in_effect(stage(2 * REPLICATED), asked) == DATA
    assert GPFS.in_effect(stage(REPLICATED), Asked()) == DATA
    assert DATA.placement == "pool=data,fileset=scratch,replicas=2"


@pytest.mark.parametrize(
    ("asked", "output", "message"),
    [
        (Asked(pool="nvme"), REPLICATED, "pool requested: nvme; in effect: data"),
        (Asked(fileset="root"), REPLICATED, "fileset requested: root; in effect: scratch"),
        (Asked(replicas=2), REPLICATED + SINGLE, "copies of the data requested: 2; in effect: 1"),
        (Asked(pool="data"), gpfs_said("mmlsattr -L astray"), "astray is illplaced"),
        (Asked(pool="data"), "", "named no pool of a file, but said 'nothing'"),
        (
            Asked(pool="data"),
            "bash: mmlsattr: command not found\n",
            "but said 'bash: mmlsattr: command not found'",
        ),
        (Asked(pool="data"), "file name:            /work/f\n", "gave no placement of /work/f"),
    ],
)
def test_a_place_other_than_asked_is_refused(stage, asked, output, message):
    with pytest.raises(StripingError, match=message):
        GPFS.in_effect(stage(output), asked)


def test_nothing_has_to_be_proven_where_nothing_is_asked(stage):
    assert GPFS.in_effect(stage("mmlsattr: command not found\n"), Asked()) == Layout()


def test_disks_in_service():
    # A disk that holds only metadata does not count.
    assert GPFS.count_targets(DISKS) == Targets(active=4, inactive=0)
    # The count is of the whole file system, whatever pool was requested.
    assert GPFS.count_targets(f"pool nvme\n{DISKS}") == Targets(active=4, inactive=0)
    assert GPFS.count_targets("") is None


def judged(targets, space=SPACE, state=STATE, tolerated=0, needed_kib=2**20):
    said = {"targets": targets, "target space": space, "node state": state}
    return GPFS.judge_targets(said, tolerated, needed_kib, None)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("data1:nsd:512:1:No:Yes:ready:up", "data1:nsd:512:1:No:Yes:ready:down", "down"),
        ("data1:nsd:512:1:No:Yes:ready:up", "data1:nsd:512:1:No:Yes:ready:unrecovered", "unr"),
        ("data1:nsd:512:1:No:Yes:ready:up", "data1:nsd:512:1:No:Yes:suspended:up", "suspended"),
    ],
)
def test_a_disk_that_takes_no_data(old, new, why):
    sick = DISKS.replace(old, new)
    (fault,) = judged(f"pool data\n{sick}").stopping
    assert fault.startswith(f"of 2 disks data1 is {why}")
    assert judged(f"pool data\n{sick}", tolerated=1).stopping == ()
    # A faulty target of another pool does not matter.
    assert judged(f"pool nvme\n{sick}", needed_kib=1).stopping == ()
    assert GPFS.count_targets(sick) == Targets(active=3, inactive=1)


def test_full_pools_and_disks():
    assert judged(f"pool data\n{DISKS}") == TargetFaults(
        others=("data2 is full: 4194304 KiB are free",)
    )
    assert judged(f"pool nvme\n{DISKS}").stopping == (
        "the pool nvme is full: 4096 KiB are free, 1048576 are needed",
    )
    assert judged(f"pool nvme\n{DISKS}", needed_kib=4096).stopping == ()
    # Which of several pools the files will come to lie in is not known.
    assert judged(DISKS).stopping == ()
    assert judged(DISKS, space="").unknown == ("free space of disks",)


def test_the_state_of_the_node():
    arbitrating = STATE.replace(":active:", ":arbitrating:")
    assert judged(DISKS, state=arbitrating).stopping == ("GPFS is arbitrating on nid0017",)
    assert judged("", "", arbitrating).unknown == ("disks",)
    # Only root may see them, or the file system is of another cluster: nothing is known.
    assert judged("", "", "") is None


def test_a_row_that_a_timeout_cut_off_is_left_out():
    assert GPFS.count_targets(DISKS[: DISKS.index(":3:data")]) == Targets(active=1, inactive=0)
    for end in range(len(SPACE)):
        judged(DISKS, space=SPACE[:end], state=STATE[:end])
        judged(DISKS[:end])
