"""Which OSTs take no files: the output of a real Lustre 2.17 with one drained, full or gone.

The layouts of the probe's file over all targets are those of captured files with as many stripes.
"""

import re

import pytest

from checks.filesystems import TargetFaults
from checks.filesystems.osts import judge
from checks.preflight.findings import sections
from tests.checks.captures import captured, lustre_said, states

UNFIT = "lfs-2.17-unfit-targets.txt"
FOUR = lustre_said("lfs getstripe /mnt/lustre/dc4S1mi2/f")  # on 2, 3, 0 and 1
# The layout for which `lfs getstripe -c` said 3, in the same form.
THREE = re.sub(r"\n\t +3\t.*", "", FOUR.replace("count:  4", "count:  3"))
ACTIVE = captured("lfs osts /mnt/lustre # drained, full or gone", UNFIT)
DRAINED = "lfs df /mnt/lustre # drained: lctl set_param osp.*.max_create_count=0 on the MDS"
GONE = "lfs check osts # gone: its server does not answer; standard output and standard error"
KIB_NEEDED = 1024


def said(**changes):
    """Return the sections of a healthy probe of the captured Lustre, with changes."""
    sections = {
        "targets": lustre_said("lfs osts /mnt/lustre"),
        "target_space": lustre_said("lfs df /mnt/lustre"),
        "target_check": lustre_said("lfs check osts"),
        "target_files": FOUR + wrote(4),
        **changes,
    }
    return {name.replace("_", " "): text for name, text in sections.items()}


def wrote(number):
    return "".join(f"wrote {stripe}\n" for stripe in range(number))


def faults(tolerated=0, declared=None, **changes):
    return judge(said(**changes), tolerated, KIB_NEEDED, declared)


def test_four_that_take_files():
    assert faults() == TargetFaults(taking=4)
    assert faults(targets="") is None


def test_one_that_is_drained_is_named_by_the_layout_alone():
    drained = {
        "targets": ACTIVE,
        "target_space": captured(DRAINED, UNFIT),
        "target_files": THREE + wrote(3),
    }
    found = faults(**drained)
    assert found.over_all == (
        "4 targets, OST0003 takes no new files (no state is shown: drained on the MDS?)"
    )
    assert (found.stopping, found.others) == ((), ())
    assert faults(tolerated=1, **drained) == TargetFaults(taking=3)
    # If the file could not be made, nothing shows the fault, and the message says so.
    failed = "lfs setstripe: unable to open '/mnt/lustre/d/f': No such file or directory (2)\n"
    blind = faults(**{**drained, "target_files": failed})
    assert (blind.over_all, len(blind.unknown)) == (None, 1)


@pytest.mark.parametrize(
    ("letters", "why"),
    [("R", "read-only"), ("Nf", "no new objects"), ("SI", "out of space, out of inodes")],
)
def test_the_letters_of_a_state_are_its_reason(letters, why):
    # In the form of lfs-df(1), behind the mount point.
    space = captured("lfs df /mnt/lustre # full: 8 KiB are left", UNFIT)
    space = space.replace("[OST:3] ", f"[OST:3] {letters}")
    found = faults(target_space=space, target_files=THREE + wrote(3))
    assert found.over_all == f"4 targets, OST0003 takes no new files ({why}; 8 KiB are free)"
    degraded = faults(
        target_space=space.replace(f"[OST:3] {letters}", "[OST:3] D").replace(
            "           8 ", "     4064876 "
        )
    )
    assert degraded == TargetFaults(others=("OST0003 is degraded",), taking=4)


def test_one_that_is_degraded_and_avoided_shows_why():
    space = lustre_said("lfs df /mnt/lustre").replace("[OST:3] ", "[OST:3] D")
    found = faults(target_space=space, target_files=THREE + wrote(3))
    assert found.over_all == "4 targets, OST0003 takes no new files (degraded)"


def test_one_that_is_full_is_named_with_what_is_free():
    full = captured("lfs df /mnt/lustre # full: 8 KiB are left", UNFIT)
    # Stripe 1 of the file is on OST 3.
    ends = wrote(1) + "failed 1 No space left on device\nwrote 2\nwrote 3\n"
    for files in (FOUR + ends, FOUR + wrote(4)):
        found = faults(targets=ACTIVE, target_space=full, target_files=files)
        assert found.stopping == ("OST0003 is full: 8 KiB are free, 1024 are needed",)
    (other,) = faults(target_files=FOUR + ends).stopping
    assert other.startswith("OST0003 cannot be written to: No space left on device; 3032684 KiB")


def test_one_whose_server_is_gone_is_named_by_the_write_that_did_not_end():
    gone = {"targets": ACTIVE, "target_check": captured(GONE, UNFIT)}
    ends = "wrote 2\nwrote 0\nwrote 3\n"
    assert faults(**gone, target_files=FOUR + ends).stopping == (
        "OST0003 does not answer: a write to it did not end (Input/output error)",
    )
    # Once the MDS avoids it.
    assert faults(**gone, target_files=THREE + wrote(3)).over_all == (
        "4 targets, OST0003 takes no new files (Input/output error)"
    )
    # In the form that the source of `lfs df` has for a target without an answer.
    space = re.sub(
        r"(?m)^(lustre-OST0003_UUID ).*",
        r"\1: Cannot send after transport endpoint shutdown",
        lustre_said("lfs df /mnt/lustre"),
    )
    assert (
        "(Cannot send after transport endpoint shutdown)"
        in faults(
            targets=ACTIVE, target_space=space, target_check="", target_files=THREE + wrote(3)
        ).over_all
    )
    # An ordinary user may not run this check.
    refused = captured(GONE, UNFIT).replace("Input/output error (5)", "Permission denied (13)")
    (said,) = faults(targets=ACTIVE, target_check=refused, target_files=FOUR + ends).stopping
    assert said == "OST0003 does not answer: a write to it did not end"


def test_one_that_is_not_active_on_the_client_alone_still_gets_files():
    """The MDS does not know of it, so max_inactive_targets is of no help."""
    osts = captured(
        "lfs osts /mnt/lustre # not active on this client: lctl set_param osc.*.active=0", UNFIT
    )
    ends = wrote(1) + "failed 1 Input/output error\nwrote 2\nwrote 3\n"
    (said,) = faults(tolerated=1, targets=osts, target_files=FOUR + ends).stopping
    assert said.startswith("OST0003 cannot be written to: Input/output error")
    avoided = faults(targets=osts, target_files=THREE + wrote(3))
    assert avoided.over_all == "4 targets, OST0003 takes no new files (inactive)"


def test_what_no_write_can_do_is_no_matter_of_a_target():
    ends = "".join(f"failed {stripe} Disk quota exceeded\n" for stripe in range(4))
    assert faults(target_files=FOUR + ends) == TargetFaults(taking=4)


def test_a_pool_has_the_targets_of_its_members():
    members = "".join(f"lustre-OST000{index}_UUID\n" for index in range(3))  # as of lfs pool_list
    pool = {
        "target_pool": f"Pool: lustre.flash\n{members}",
        "target_files": THREE.replace("\n\tobdidx", "\nlmm_pool:          flash\n\tobdidx")
        + wrote(3),
    }
    assert faults(declared=3, **pool) == TargetFaults(taking=3)
    shrunk = faults(declared=4, **pool)
    own = "3 targets of the directory's default pool flash, 4 in the site file: has a pool changed?"
    assert shrunk.over_all == own
    asked = {**pool, "targets": ACTIVE + pool["target_pool"]}
    found = faults(declared=4, **asked).over_all
    assert found == "3 targets, 4 in the site file: has a pool changed?"
    assert faults(**{**pool, "target_pool": ""}) == TargetFaults(taking=3)


def test_a_target_that_is_not_listed():
    renumbered = faults(targets=ACTIVE.replace("3: lustre-OST0003", "4: lustre-OST0004"))
    assert "a new file lies on OST 3, which lfs osts does not list" in renumbered.stopping


@pytest.mark.parametrize(
    ("answer", "over_all", "stopping"),
    [
        # One thousandth of the OST is 3033 KiB, in which the MDS places nothing.
        (
            "probe answer by hand: full",
            ["OST0002 takes no new files (full; 1024 KiB are free)"],
            [],
        ),
        ("probe answer by hand: degro", ["OST0000 takes no new files (read-only; 3032684 "], []),
        ("probe answers: OST0001 hung", [], ["OST0001 does not answer: a write to it did not end"]),
        ("probe answer by hand: back", [], []),
    ],
)
def test_real_answers_of_a_lustre_with_a_deactivated_ost(answer, over_all, stopping):
    found = judge(sections(states(answer)), 0, 64, None)
    inactive = "OST0003 takes no new files (inactive)"
    assert all(words in found.over_all for words in [inactive, *over_all])
    assert found.over_all.count("OST000") == 1 + len(over_all)
    assert list(found.stopping) == stopping


def test_real_letters_of_states():
    found = judge(sections(states("probe answer of a second Lustre")), 4, 64, None)
    assert found == TargetFaults(others=("OST0002 is degraded",), taking=2)
    all_six = judge(sections(states("probe answer of a second Lustre")), 0, 64, None).over_all
    assert all_six == (
        "6 targets, OST0000 takes no new files (no state is shown: drained on the MDS?); "
        "OST0001 takes no new files (read-only; 4071824 KiB are free); "
        "OST0003 takes no new files (inactive); "
        "OST0004 takes no new files (no new objects; 4071824 KiB are free)"
    )


def test_a_full_ost_is_no_drained_one_whatever_a_check_needs():
    # 3000 of 3032684 KiB: too little for new files, and enough for a small check
    files = sections(states("probe answer by hand: full"))["target files"]
    for free, why in (
        ("3000", "full; 3000 KiB are free"),
        ("30000", "no state is shown: drained on the MDS?"),
    ):
        text = states("probe answer by hand: full").replace("3031660        1024 ", f"0 {free} ")
        found = judge({**sections(text), "target files": files}, 1, 64, None)
        assert f"OST0002 takes no new files ({why})" in found.over_all
