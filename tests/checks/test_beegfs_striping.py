"""The BeeGFS backend reads the documented and the captured output of BeeGFS 7 and 8."""

import pytest

from checks.filesystems import BACKENDS, Asked, Layout, StripingError, TargetFaults, Targets
from checks.filesystems.beegfs import file_layouts
from checks.filesystems.layout import LAYOUT_FILE, TARGETS_FILE, Space
from tests.checks.captures import beegfs_said, real_beegfs_said

BEEGFS = BACKENDS["beegfs"]
KIB = 2**10


FOUR = beegfs_said("beegfs-ctl --getentryinfo four")
THREE = beegfs_said("beegfs-ctl --getentryinfo three")
SEVEN = beegfs_said("beegfs-ctl --listtargets --nodetype=storage --state --storagepools --pools")
SPACE = beegfs_said("beegfs-ctl --listtargets --nodetype=storage --spaceinfo")
EIGHT = beegfs_said("beegfs target list --node-type storage --state --capacity --raw")


@pytest.fixture
def stage(tmp_path):
    def leave(*entries):
        text = "".join(f"--- /mnt/f{number}\n{entry}" for number, entry in enumerate(entries))
        (tmp_path / LAYOUT_FILE).write_text(text, encoding="utf-8")
        (tmp_path / TARGETS_FILE).write_text(SEVEN, encoding="utf-8")
        return tmp_path

    return leave


def test_layout_of_each_file():
    two = beegfs_said("beegfs entry info --retro --raw two")
    text = f"--- /mnt/four\n{FOUR}--- /mnt/two\n{two}"
    assert file_layouts(text) == [Layout(4, 512 * KIB), Layout(2, 512 * KIB)]
    assert BEEGFS.targets_of_files(text) == {"four": (1203, 2101, 2102, 2103), "two": (101, 201)}


@pytest.mark.parametrize(
    "output",
    [
        "",
        "--- /mnt/f\n",
        f"--- /mnt/f\n{FOUR}--- /mnt/g\n",  # a file whose layout could not be read
        "--- /mnt/f\nUnable to retrieve entry info\n",
        # It desires targets, and has none.
        f"--- /mnt/d\n{beegfs_said('beegfs-ctl --getentryinfo directory')}",
    ],
)
def test_what_is_no_layout_of_a_file_is_refused(output):
    with pytest.raises(StripingError, match="BeeGFS gave no"):
        file_layouts(output)


def test_targets_that_are_online():
    assert BEEGFS.count_targets(SEVEN) == Targets(active=4, inactive=3)
    assert BEEGFS.count_targets(EIGHT) == Targets(active=2, inactive=1)
    # Without the pools, as if the management server did not send them.
    plain = beegfs_said("beegfs-ctl --listtargets --nodetype=storage --state")
    assert BEEGFS.count_targets(plain) == Targets(active=2, inactive=2)
    assert BEEGFS.count_targets("") is None


def test_what_a_real_beegfs_says():
    listed = "beegfs-ctl --listtargets --nodetype=storage"
    seven, space = (
        real_beegfs_said(f"{listed} {columns}")
        for columns in ("--state --storagepools --pools", "--spaceinfo")
    )
    eight = real_beegfs_said("beegfs target list --node-type storage --state --capacity --raw")
    assert BEEGFS.count_targets(seven) == Targets(active=4, inactive=0)
    assert BEEGFS.count_targets(eight) == Targets(active=2, inactive=2)
    free = {str(number): Space(419430, 419430) for number in (1, 2, 3, 4)}  # 0.4 GiB
    assert BEEGFS.targets_in_reach(seven + space) == free
    # 382318592 bytes, of which 380193792 and 380188672 are free
    assert BEEGFS.targets_in_reach(eight) == {
        "2": Space(373358, 371283),
        "3": Space(373358, 371278),
    }
    stopping = ("target 1 is probably-offline", "target 4 is probably-offline")
    found = judged(eight, needed_kib=1024)
    assert (found.stopping, found.taking) == (stopping, 0)
    entries = (
        real_beegfs_said("beegfs-ctl --getentryinfo"),
        real_beegfs_said("beegfs entry info --retro --raw"),
    )
    text = "".join(f"--- /bfs/{number}\n{entry}" for number, entry in enumerate(entries))
    assert file_layouts(text) == [Layout(3, 1024 * KIB), Layout(4, 512 * KIB)]
    assert BEEGFS.targets_of_files(text) == {"0": (2, 3, 4), "1": (3, 4, 1, 2)}


def judged(targets, space="", tolerated=0, needed_kib=2**20):
    said = {"targets": targets, "target space": space}
    return BEEGFS.judge_targets(said, tolerated, needed_kib, None)


def test_states_and_fullness_of_targets():
    stopping = (
        "target 2102 is full: 524288 KiB are free, 1048576 are needed",
        "target 3011 is offline",
        "target 3012 is probably-offline",
        "target 3013 is inconsistent (needs-resync)",
    )
    avoided = "7 targets, target 2103 takes few new files (emergency; 2097152 KiB are free)"
    assert judged(SEVEN, SPACE) == TargetFaults(stopping, avoided, taking=2)
    # 2 GiB are needed on each, and one more target is full.
    assert len(judged(SEVEN, SPACE, needed_kib=2**21 + 1).stopping) == 5
    # As many faulty targets as are tolerated.
    assert judged(SEVEN, SPACE, tolerated=4) == TargetFaults(taking=2)
    # The list of BeeGFS 8 has both.
    assert judged(EIGHT).stopping == (
        "target 102 is offline",
        "target 201 is full: 524288 KiB are free, 1048576 are needed",
    )
    # A target whose server does not report its space does not count as full.
    assert judged(SEVEN, "").stopping == stopping[1:]
    assert judged("") is None


def test_layout_as_asked(stage):
    layout = Layout(4, 512 * KIB, pool="1")
    assert BEEGFS.in_effect(stage(FOUR), Asked(4, size_kib=512)) == layout
    assert BEEGFS.in_effect(stage(FOUR), Asked(-1, targets=4)) == layout
    # The pool has four targets that are online, the whole file system as many.
    assert BEEGFS.in_effect(stage(FOUR), Asked(-1, pool="1")) == layout
    assert layout.placement == "pool=1"


def test_the_command_that_is_published():
    four = Layout(4, 512 * KIB)
    assert BEEGFS.command(Asked(-1), four) == (
        "beegfs entry set --num-targets=4 --chunk-size=524288"
    )
    assert BEEGFS.command(Asked(4, size_kib=1024), four).endswith("--chunk-size=1048576")


@pytest.mark.parametrize(
    ("asked", "entries", "message"),
    [
        # The pattern desires four, and there are three.
        (Asked(4), [THREE], "stripe count requested: 4; in effect: 3"),
        (Asked(-1, pool="2"), [FOUR], "their number could not be seen"),
        (Asked(-1), [THREE], "requested: all 4 targets online; in effect: 3"),
        (Asked(4, pool="2"), [FOUR], "pool requested: 2; in effect: 1"),
        (Asked(4), [FOUR, THREE], "stripe count requested: 4; in effect: 3"),
        (Asked(4, size_kib=1024), [FOUR], "stripe size requested: 1048576; in effect: 524288"),
    ],
)
def test_layout_other_than_asked_is_refused(stage, asked, entries, message):
    with pytest.raises(StripingError, match=message):
        BEEGFS.in_effect(stage(*entries), asked)


def test_a_line_that_a_timeout_cut_off_is_left_out():
    assert BEEGFS.count_targets(EIGHT[: EIGHT.index("s:201")]) == Targets(active=1, inactive=1)
    assert BEEGFS.count_targets(EIGHT[: EIGHT.index("Low")]) == Targets(active=1, inactive=1)
