"""The BeeGFS backend reads what is documented of BeeGFS 7 and 8."""

import pytest

from checks.filesystems import BACKENDS, Asked, Layout, StripingError, Targets
from checks.filesystems.beegfs import file_layouts, online_targets
from checks.filesystems.layout import LAYOUT_FILE, TARGETS_FILE
from tests.checks import captures

BEEGFS = BACKENDS["beegfs"]
KIB = 2**10


def captured(command):
    return captures.captured(command, "beegfs-documented.txt")[0]


FOUR = captured("beegfs-ctl --getentryinfo four")
THREE = captured("beegfs-ctl --getentryinfo three")
SEVEN = captured("beegfs-ctl --listtargets --nodetype=storage --state")


@pytest.fixture
def stage(tmp_path):
    def leave(*entries):
        text = "".join(f"--- /mnt/f{number}\n{entry}" for number, entry in enumerate(entries))
        (tmp_path / LAYOUT_FILE).write_text(text, encoding="utf-8")
        (tmp_path / TARGETS_FILE).write_text(SEVEN, encoding="utf-8")
        return tmp_path

    return leave


def test_layout_of_each_file():
    two = captured("beegfs entry info --retro --raw two")
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
        f"--- /mnt/d\n{captured('beegfs-ctl --getentryinfo directory')}",
    ],
)
def test_what_is_no_layout_of_a_file_is_refused(output):
    with pytest.raises(StripingError, match="BeeGFS gave no"):
        file_layouts(output)


def test_targets_that_are_online():
    assert online_targets(SEVEN) == Targets(active=2, inactive=2)
    eight = captured("beegfs target list --node-type storage --state")
    assert online_targets(eight) == Targets(active=1, inactive=1)
    assert online_targets("") is None


def test_layout_as_asked(stage):
    assert BEEGFS.in_effect(stage(FOUR), Asked(4, size_kib=512)) == Layout(4, 512 * KIB)
    assert BEEGFS.in_effect(stage(FOUR), Asked(-1, targets=4)) == Layout(4, 512 * KIB)


@pytest.mark.parametrize(
    ("asked", "entries", "message"),
    [
        # The pattern desires four, and there are three.
        (Asked(4), [THREE], "stripe count asked: 4; in effect: 3"),
        (Asked(-1), [FOUR], "asked: all 2 targets online; in effect: 4"),
        (Asked(4), [FOUR, THREE], "stripe count asked: 4; in effect: 3"),
        (Asked(4, size_kib=1024), [FOUR], "stripe size asked: 1048576; in effect: 524288"),
    ],
)
def test_layout_other_than_asked_is_refused(stage, asked, entries, message):
    with pytest.raises(StripingError, match=message):
        BEEGFS.in_effect(stage(*entries), asked)
