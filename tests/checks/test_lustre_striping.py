"""The Lustre backend reads captured and documented output of Lustre 2.17."""

import re

import pytest

from checks.filesystems import BACKENDS, Asked, Layout, StripingError, Targets
from checks.filesystems.layout import LAYOUT_FILE, TARGETS_FILE
from checks.filesystems.lfs import components_of_files
from checks.filesystems.lustre import file_layouts, setstripe_options
from tests.checks.captures import captured, lustre_said, states

MIB = 2**20


def layouts_in(text):
    return file_layouts(components_of_files(text))


@pytest.mark.parametrize(
    ("file", "stripe_count", "stripe_size", "index"),
    [
        # The index is the one that `lfs getstripe -i` printed for the same file.
        ("dc1/f", 1, 4 * MIB, 3),
        ("dc2S4M/f", 2, 4 * MIB, 0),
        ("dc4S1mi2/f", 4, 1 * MIB, 2),
        ("dc0/f", 1, 4 * MIB, 2),
        # Composite, all three components in use: `lfs getstripe -c` said 4 of the same file.
        ("pfl/f", 4, 4 * MIB, 2),
    ],
)
def test_layout_of_a_file(file, stripe_count, stripe_size, index):
    output = lustre_said(f"lfs getstripe /mnt/lustre/{file}")
    assert layouts_in(output) == [Layout(stripe_count, stripe_size, index=index)]


def without_last_component(output):
    """A composite layout whose last component holds no data, in the form of documented output."""
    head, last = output.rsplit("    lcme_id:", 1)
    flags = last.replace("lcme_flags:          init", "lcme_flags:          0")
    return f"{head}    lcme_id:{flags.split('      lmm_objects:')[0]}\n"


def test_a_composite_file_is_read_by_its_last_component_in_use():
    output = lustre_said("lfs getstripe /mnt/lustre/pfl/f")
    assert layouts_in(without_last_component(output)) == [Layout(2, 4 * MIB, index=0)]


def test_targets_of_files_are_those_of_every_stripe():
    """The expected targets are those that `lfs getstripe -y` listed for the same files."""
    files = ("dc1/f", "dc4S1mi2/f", "pfl/f")
    outputs = [lustre_said(f"lfs getstripe /mnt/lustre/{file}") for file in files]
    # The files of a run lie in one directory.
    text = "".join(
        output.replace(f"/mnt/lustre/{file}", f"/mnt/lustre/run/{number:06}")
        for number, (file, output) in enumerate(zip(files, outputs, strict=True), start=1)
    )
    text += without_last_component(outputs[-1])
    text += documented("overstriped") + documented("dom-small")
    yaml = [lustre_said(f"lfs getstripe -y /mnt/lustre/{file}") for file in files]
    listed = [tuple(map(int, re.findall(r"l_ost_idx: (\d+)", output))) for output in yaml]
    assert listed[1] == (2, 3, 0, 1)
    assert BACKENDS["lustre"].targets_of_files(text) == {
        **dict(zip(("000001", "000002", "000003"), listed, strict=True)),
        "f": listed[2][:3],  # the first two components
        "overstriped": (10, 11) * 4,
        "dom-small": (),
    }


def test_several_files_are_kept_apart():
    one = lustre_said("lfs getstripe /mnt/lustre/dc1/f")
    four = lustre_said("lfs getstripe /mnt/lustre/dc4S1mi2/f")
    assert layouts_in(f"{one}{four}") == [Layout(1, 4 * MIB, index=3), Layout(4, MIB, index=2)]


@pytest.mark.parametrize(
    "output",
    [
        "",
        lustre_said("lfs getstripe /mnt/lustre/dc1"),  # of a directory, which proves nothing
        lustre_said("lfs getstripe /scratch/notlustre"),
        lustre_said("lfs getstripe /mnt/lustre/dc1/f").replace("4194304", "4M"),
        # One file of two whose layout could not be read.
        lustre_said("lfs getstripe /mnt/lustre/dc1/f") + "/mnt/lustre/g has no stripe info\n",
    ],
)
def test_what_is_no_layout_of_a_file_is_refused(output):
    with pytest.raises(StripingError, match="getstripe"):
        layouts_in(output)


def test_active_targets():
    output = lustre_said("lfs osts /mnt/lustre")
    count = BACKENDS["lustre"].count_targets
    assert count(output) == Targets(active=4, inactive=0)
    less = output.replace("OST0002_UUID ACTIVE", "OST0002_UUID INACTIVE")
    assert count(less) == Targets(active=3, inactive=1)
    # The count is of the whole file system, whatever the pool.
    assert count(f"{less}Pool: lustre.flash\nlustre-OST0001_UUID\n") == Targets(3, 1)
    assert count("OBDS:\n") is None


@pytest.fixture
def stage(tmp_path):
    """A stage directory as a job on the captured Lustre leaves it, by the file that it wrote."""

    def leave(*files):
        # Each under its own name, even if both are the same captured file.
        text = "".join(
            lustre_said(f"lfs getstripe /mnt/lustre/{file}").replace("/f\n", f"/f{number}\n")
            for number, file in enumerate(files)
        )
        (tmp_path / LAYOUT_FILE).write_text(text, encoding="utf-8")
        targets = lustre_said("lfs osts /mnt/lustre")
        (tmp_path / TARGETS_FILE).write_text(targets, encoding="utf-8")
        return tmp_path

    return leave


def documented(file):
    return captured(f"lfs getstripe {file}", "lustre-documented.txt")


@pytest.mark.parametrize(
    ("asked", "files", "layout"),
    [
        (Asked(2), ["dc2S4M/f", "dc2S4M/f"], Layout(2, 4 * MIB)),
        (Asked(-1), ["dc4S1mi2/f"], Layout(4, MIB)),
        (Asked(4, size_kib=1024, index=2), ["dc4S1mi2/f"], Layout(4, MIB)),
        (Asked(-1, tolerated=2), ["dc2S4M/f"], Layout(2, 4 * MIB)),
        # Nothing was requested: the layout of the directory counts.
        (Asked(), ["pfl/f"], Layout(4, 4 * MIB)),
        (
            Asked(-1, layout="-E 2M -c 1 -E 16M -c 2 -E -1 -c {stripe_count}"),
            ["pfl/f"],
            Layout(4, 4 * MIB),
        ),
    ],
)
def test_layout_as_asked(stage, asked, files, layout):
    assert BACKENDS["lustre"].in_effect(stage(*files), asked) == layout


@pytest.mark.parametrize(
    ("asked", "files", "message"),
    [
        (Asked(-1, pool="p", targets=5), ["dc4S1mi2/f"], "all 5 .*; the pool p has 4$"),
        # `lfs setstripe -c 9` on four OSTs succeeds and gives four stripes.
        (Asked(9), ["dc4S1mi2/f"], "stripe count requested: 9; in effect: 4"),
        # As on a drained target: `lfs osts` calls all of them active.
        (
            Asked(-1, tolerated=1),
            ["dc2S4M/f"],
            "requested: all 4 active OSTs; in effect: 2: OST0002, OST0003 took no files",
        ),
        # A request for as many as there are means all of them.
        (
            Asked(4),
            ["dc2S4M/f"],
            "requested: all 4 active OSTs; in effect: 2: OST0002, OST0003 took",
        ),
        # No layout was applied: that is no fault of an OST.
        (Asked(-1), ["dc1/f"], "requested: all 4 active OSTs; in effect: 1$"),
        (Asked(1), ["dc1/f", "dc2S4M/f"], "stripe count requested: 1; in effect: 2"),
        (Asked(4), ["dc4S1mi2/f", "pfl/f"], "differ in stripe size"),
        (Asked(), ["dc1/f", "dc2S4M/f"], "differ in stripe count"),
        (
            Asked(2, size_kib=1024),
            ["dc2S4M/f"],
            "stripe size requested: 1048576; in effect: 4194304",
        ),
        (Asked(1, index=0), ["dc1/f"], "first target requested: 0; in effect: 3"),
        (Asked(1, pool="flash"), ["dc1/f"], "pool requested: flash; in effect: None"),
        (Asked(-1, targets=3), ["dc4S1mi2/f"], "all 3 active OSTs; in effect: 4"),
        # A library replaced the layout of the directory by a plain one of its own.
        (
            Asked(1, layout="-E 64M -c 1 -E -1 -c {stripe_count}"),
            ["dc1/f"],
            r"components requested: 2 \(-E 64M .*\); in effect: 1",
        ),
    ],
)
def test_layout_other_than_asked_is_refused(stage, asked, files, message):
    with pytest.raises(StripingError, match=message):
        BACKENDS["lustre"].in_effect(stage(*files), asked)


def test_a_file_that_ends_before_the_component_asked_about_says_so(stage):
    asked = Asked(-1, layout="-E 2M -c 1 -E 16M -c 2 -E -1 -c {stripe_count}")
    stage = stage("pfl/f")
    file = stage / LAYOUT_FILE
    text = without_last_component(file.read_text(encoding="utf-8"))
    file.write_text(text, encoding="utf-8")
    message = (
        "f0 ends in component 2 of 3, before byte 16777216: .* requested stripe count 4 has no data"
    )
    with pytest.raises(StripingError, match=message) as raised:
        BACKENDS["lustre"].in_effect(stage, asked)
    assert raised.value.layout == Layout(2, 4 * MIB, index=0)


def pfl(first, *rest):
    """A file of a layout of -E 1M -c 1 -E -1 -c -1, in the form of the captured ones."""
    objects = "".join(
        f"      -   {n}: {{ l_ost_idx:   {target}, l_fid: [0x2c0000400:0x1b:0x0] }}\n"
        for n, target in enumerate(rest)
    )
    text = states("layouts").split("@@@ lfs getstripe pref\n")[1].split("\n[status")[0]
    text = text.replace("pref\n", "/mnt/lustre/run/f\n", 1).replace(
        "l_ost_idx:   2", f"l_ost_idx:   {first}"
    )
    head, last = text.split("    lcme_id:             2\n")
    last = last.replace("lcme_flags:          0", "lcme_flags:          init")
    last = last.replace("lmm_stripe_count:  -1", f"lmm_stripe_count:  {len(rest)}")
    last = last.replace(
        "lmm_stripe_offset: -1", f"lmm_stripe_offset: {rest[0]}\n      lmm_objects:"
    )
    return f"{head}    lcme_id:             2\n{last.rstrip()}\n{objects}\n"


@pytest.mark.parametrize("tolerated", [0, 1])
def test_all_targets_are_those_of_all_components(stage, tolerated):
    asked = Asked(-1, layout="-E 1M -c 1 -E -1 -c -1", tolerated=tolerated)
    here = stage("dc1/f")
    (here / LAYOUT_FILE).write_text(pfl(3, 0, 1, 2))
    assert BACKENDS["lustre"].in_effect(here, asked) == Layout(3, 4 * MIB)
    # The second component avoids the first one's target, which may hide a drained one.
    (here / LAYOUT_FILE).write_text(pfl(3, 1, 2))
    if tolerated:
        assert BACKENDS["lustre"].in_effect(here, asked) == Layout(2, 4 * MIB)
    else:
        with pytest.raises(StripingError, match=r"in effect: 3: OST0000 took no files$"):
            BACKENDS["lustre"].in_effect(here, asked)
    (here / LAYOUT_FILE).write_text(pfl(3, 1))
    with pytest.raises(StripingError, match=r"in effect: 2: OST0000, OST0002 took no files$"):
        BACKENDS["lustre"].in_effect(here, asked)


def test_the_directorys_own_pool_is_named_and_no_target_outside_of_it(stage):
    here = stage("dc2S4M/f")
    text = (here / LAYOUT_FILE).read_text()
    pool = text.replace("\n\tobdidx", "\nlmm_pool:          flash\n\tobdidx")
    (here / LAYOUT_FILE).write_text(pool)
    with pytest.raises(StripingError, match="in effect: 2, in the directory's default pool flash"):
        BACKENDS["lustre"].in_effect(here, Asked(-1))


def test_data_on_the_mdt():
    assert layouts_in(documented("dom-small")) == [Layout(0, MIB, index=0)]
    assert layouts_in(documented("dom-large")) == [Layout(2, 4 * MIB, index=1)]


def test_stripes_that_share_osts_are_asked_for_or_refused(tmp_path):
    (tmp_path / LAYOUT_FILE).write_text(documented("overstriped"), encoding="utf-8")
    lustre = BACKENDS["lustre"]
    overstriped = Asked(8, layout="-C {stripe_count} -S 1M -p original")
    assert lustre.in_effect(tmp_path, overstriped) == Layout(8, MIB, pool="original")
    with pytest.raises(StripingError, match="in effect: 8 on 2 OSTs"):
        lustre.in_effect(tmp_path, Asked(8, pool="original"))


def test_mirrors_that_are_stale_hold_no_data(tmp_path):
    text = documented("mirrored")
    assert layouts_in(text) == [Layout(1, MIB, index=1, pool="flash")]
    assert BACKENDS["lustre"].targets_of_files(text) == {"mirrored": (1,)}
    (tmp_path / LAYOUT_FILE).write_text(text, encoding="utf-8")
    lustre, options = BACKENDS["lustre"], "-N -E 4M -c 1 -p flash -E -1 -c 2 -N -c 2 -N -c 1"
    asked = Asked(1, layout=options)
    assert lustre.in_effect(tmp_path, asked) == Layout(1, MIB, pool="flash")
    with pytest.raises(StripingError, match=r"components requested: 3 .* in effect: 4"):
        lustre.in_effect(tmp_path, Asked(1, layout="-N3 -c 1"))
    with pytest.raises(StripingError, match="ends in component 1 of 2, before byte 4194304"):
        lustre.in_effect(tmp_path, Asked(2, layout=options))


def test_extensions_are_no_components(tmp_path):
    text = documented("self-extending")
    (tmp_path / LAYOUT_FILE).write_text(text, encoding="utf-8")
    asked = Asked(1, layout="-E 1G -z 64M -E -1 -z 256M")
    assert BACKENDS["lustre"].in_effect(tmp_path, asked) == Layout(1, MIB)


def test_options_of_setstripe():
    assert setstripe_options(Asked(4)) == ["-c", "4"]
    asked = Asked(-1, size_kib=1024, index=0, pool="flash")
    assert setstripe_options(asked) == ["-c", "-1", "-S", "1024k", "-i", "0", "-p", "flash"]
    layout = "-E 64K -L mdt -E -1 -c {stripe_count}"
    assert setstripe_options(Asked(8, layout=layout)) == [
        "-E",
        "64K",
        "-L",
        "mdt",
        "-E",
        "-1",
        "-c",
        "8",
    ]


def test_a_type_without_stripes_has_no_layout(tmp_path):
    backend = BACKENDS["posix"]
    assert backend.stripe(Asked()) == []
    assert backend.in_effect(tmp_path, Asked()) == Layout()
    assert backend.count_targets("") is None
