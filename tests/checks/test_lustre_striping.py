"""The Lustre backend reads what a real Lustre 2.17 printed."""

import pytest

from checks.striping import BACKENDS, Layout, StripingError
from checks.striping.lustre import (
    LAYOUT_FILE,
    TARGETS_FILE,
    active_targets,
    file_layouts,
)
from tests.checks.lfs_captures import captured

MIB = 2**20


@pytest.mark.parametrize(
    ("file", "stripe_count", "stripe_size"),
    [
        ("dc1/f", 1, 4 * MIB),
        ("dc2S4M/f", 2, 4 * MIB),
        ("dc4S1mi2/f", 4, 1 * MIB),
        ("dc0/f", 1, 4 * MIB),
        # Composite, all three components in use: `lfs getstripe -c` said 4 of the same file.
        ("pfl/f", 4, 4 * MIB),
    ],
)
def test_layout_of_a_file(file, stripe_count, stripe_size):
    output = captured(f"lfs getstripe -y /mnt/lustre/{file}")[0]
    assert file_layouts(output) == [Layout(stripe_count, stripe_size)]


def test_a_composite_file_is_read_by_its_last_component_in_use():
    output = captured("lfs getstripe -y /mnt/lustre/pfl/f")[0]
    first, second, third = output.split("  - lcme_id:")[1:]
    unused = third.replace("lcme_flags:          init", "lcme_flags:          0")
    head = output.split("  - lcme_id:", maxsplit=1)[0]
    rest = "".join(f"  - lcme_id:{part}" for part in (first, second, unused))
    assert file_layouts(head + rest) == [Layout(2, 4 * MIB)]


def test_several_files_are_kept_apart():
    one = captured("lfs getstripe -y /mnt/lustre/dc1/f")[0]
    four = captured("lfs getstripe -y /mnt/lustre/dc4S1mi2/f")[0]
    assert file_layouts(f"---\n{one}---\n{four}") == [Layout(1, 4 * MIB), Layout(4, MIB)]


@pytest.mark.parametrize(
    "output",
    [
        "",
        "---\n",
        "stripe_count:  1\nstripe_size:   4194304\n",  # of a directory, which proves nothing
        "lfs getstripe: cb_getstripe: 'f' not on a Lustre fs?: Inappropriate ioctl (25)\n",
        "lmm_stripe_count: [\n",
    ],
)
def test_what_is_no_layout_of_a_file_is_refused(output):
    with pytest.raises(StripingError, match="getstripe"):
        file_layouts(output)


def test_active_targets():
    output = captured("lfs osts /mnt/lustre")[0]
    assert active_targets(output) == 4
    assert active_targets(output.replace("OST0002_UUID ACTIVE", "OST0002_UUID INACTIVE")) == 3
    with pytest.raises(StripingError, match="no active OST"):
        active_targets("OBDS:\n")


@pytest.fixture
def stage(tmp_path):
    """A stage directory as a job on the captured Lustre leaves it, by the file that it wrote."""

    def leave(*files):
        documents = [captured(f"lfs getstripe -y /mnt/lustre/{file}")[0] for file in files]
        text = "".join(f"---\n{document}" for document in documents)
        (tmp_path / LAYOUT_FILE).write_text(text, encoding="utf-8")
        targets = captured("lfs osts /mnt/lustre")[0]
        (tmp_path / TARGETS_FILE).write_text(targets, encoding="utf-8")
        return tmp_path

    return leave


def test_layout_as_asked(stage):
    lustre = BACKENDS["lustre"]
    assert lustre.in_effect(stage("dc2S4M/f", "dc2S4M/f"), 2) == Layout(2, 4 * MIB)
    assert lustre.in_effect(stage("dc4S1mi2/f"), -1) == Layout(4, MIB)


@pytest.mark.parametrize(
    ("asked", "files", "message"),
    [
        # `lfs setstripe -c 9` on four OSTs succeeds and gives four stripes.
        (9, ["dc4S1mi2/f"], "stripe count asked: 9; in effect: 4"),
        (-1, ["dc2S4M/f"], "stripe count asked: all 4 active OSTs; in effect: 2"),
        (1, ["dc1/f", "dc2S4M/f"], "stripe count asked: 1; in effect: 2"),
        (4, ["dc4S1mi2/f", "pfl/f"], "differ in stripe size"),
    ],
)
def test_layout_other_than_asked_is_refused(stage, asked, files, message):
    with pytest.raises(StripingError, match=message):
        BACKENDS["lustre"].in_effect(stage(*files), asked)


def test_posix_has_no_layout(tmp_path):
    posix = BACKENDS["posix"]
    assert posix.set_commands(None) == []
    assert posix.in_effect(tmp_path, None) == Layout(None, None)
