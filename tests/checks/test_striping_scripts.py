"""The shell commands of the striping backends, run by bash.

Lustre and BeeGFS are not available here: their commands are stand-ins that answer with captured or
documented output. The tests that parse the output are next to this file.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from checks.filesystems import BACKENDS, Asked, Layout, Targets, mount_names
from checks.filesystems.layout import LAYOUT_FILE, Space, StripingError
from checks.preflight.quota import quotas
from tests.checks.captures import beegfs_said, ceph_said, gpfs_said, lustre_said
from tests.site_copy import ROOT

MIB = 2**20

# The commands of an ordinary system that the scripts use.
TOOLS = ("bash", "sh", "tail", "head", "timeout", "sed", "grep", "find", "uname", "cat", "cut")


@dataclass(frozen=True)
class Node:
    """A compute node whose only commands are TOOLS and the stand-ins, and a stage directory."""

    root: Path

    @property
    def stage(self):
        return self.root / "stage"

    def stand_in(self, name, script):
        """Make the command `name`, which logs its arguments and then runs `script`."""
        path = self.root / "bin" / name
        path.unlink(missing_ok=True)
        log = self.root / "calls.txt"
        path.write_text(f'#!/bin/bash\necho "{name} $*" >> {log}\n{script}\n', encoding="utf-8")
        path.chmod(0o755)

    def mount(self, file_system_type):
        self.stand_in("df", f"echo Type; echo {file_system_type}")

    def calls(self, name):
        text = (self.root / "calls.txt").read_text(encoding="utf-8")
        return [line for line in text.splitlines() if line.startswith(f"{name} ")]

    def bash(self, *lines, path=()):
        """Run lines in the stage directory; more commands are in the directories of `path`."""
        return subprocess.run(
            [shutil.which("bash"), "-c", "\n".join(lines)],
            cwd=self.stage,
            env={"PATH": os.pathsep.join([str(self.root / "bin"), *path])},
            capture_output=True,
            text=True,
            check=False,
        )

    def run(self, name, asked, **settings):
        """Run the commands before and after a program, with two files written in between."""
        backend = BACKENDS[name]
        named = settings.get("mounted_as")
        kind = f"{name}, mounted as {named}" if named else name
        directory = self.root / "run"
        directory.mkdir(exist_ok=True)
        names = mount_names(settings, backend)
        sources = [ROOT / "checks" / "base" / "job.sh", *filter(None, [backend.script])]
        script = [
            *(f"source {path}" for path in sources),
            f'file_system="{self.root}"',
            *([f"require_mounted '{kind}' {' '.join(names)}"] if names else []),
            f"require_commands {name}",
            f'run_directory="{directory}"',
            *backend.stripe(asked),
            'echo one > "$run_directory/f1"; echo two > "$run_directory/f2"',
            *(["read_layout"] if backend.script else []),
        ]
        done = self.bash(*script)
        assert (done.returncode == 0) == bool(list(directory.iterdir())), done.stderr
        return done


@pytest.fixture
def node(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "stage").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    return Node(tmp_path)


def answer(text):
    """The script of a stand-in that prints `text`."""
    return f"cat <<'END'\n{text.rstrip()}\nEND"


def lustre_on(node, set_stripe="exit 0"):
    node.mount("lustre")
    layout = lustre_said("lfs getstripe /mnt/lustre/dc4S1mi2/f").partition("\n")[2]
    osts = lustre_said("lfs osts /mnt/lustre")
    node.stand_in(
        "lfs",
        f'case "$1" in\nsetstripe) {set_stripe} ;;\n'
        f'getstripe) for file in "${{@:2}}"; do echo "$file"; {answer(layout)}\ndone ;;\n'
        f"osts) {answer(osts)}\n;;\nesac",
    )


def test_lustre(node):
    lustre_on(node)
    asked = Asked(-1, size_kib=1024, index=2)
    done = node.run("lustre", asked)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"lfs setstripe -c -1 -S 1024k -i 2 {node.root}/run" in node.calls("lfs")
    assert BACKENDS["lustre"].in_effect(node.stage, asked) == Layout(4, MIB)
    text = (node.stage / LAYOUT_FILE).read_text(encoding="utf-8")
    targets = {"f1": (2, 3, 0, 1), "f2": (2, 3, 0, 1)}
    assert BACKENDS["lustre"].targets_of_files(text) == targets
    assert len([call for call in node.calls("lfs") if "getstripe" in call]) == 1


def test_nothing_is_set_where_nothing_is_asked(node):
    lustre_on(node)
    assert node.run("lustre", Asked()).returncode == 0
    assert not [call for call in node.calls("lfs") if "setstripe" in call]


def test_the_words_of_a_command_that_refuses_are_the_reason(node):
    said = lustre_said("lfs setstripe -S 3 /mnt/lustre/news3")  # and goes on with its help
    lustre_on(node, f"{answer(said)}\nexit 4")
    done = node.run("lustre", Asked(4))
    assert done.returncode == 1
    assert done.stderr == (
        f"iobands: {node.root}: Lustre refused the requested layout: "
        "lfs setstripe setstripe: invalid stripe size '3'\n"
    )


@pytest.mark.parametrize(
    ("name", "mounted", "tools"),
    [
        ("lustre", "lustre", "lfs"),
        ("cephfs", "ceph", "setfattr"),
        ("cephfs", "fuse.ceph-fuse", "setfattr"),
        ("beegfs", "beegfs", "beegfs-ctl or beegfs"),
    ],
)
def test_a_missing_command_is_named_in_one_line(node, name, mounted, tools):
    node.mount(mounted)
    done = node.run(name, Asked(4))
    assert done.returncode == 1
    assert done.stderr == (
        f"iobands: {node.root}: type {name} needs the command {tools}: not found here\n"
    )


@pytest.mark.parametrize("name", [name for name, each in BACKENDS.items() if each.mounted_as])
@pytest.mark.parametrize("mounted", ["ext4", "nfs4", "fuse.sshfs"])
def test_a_file_system_that_is_not_mounted_is_told_from_the_disk_below(node, name, mounted):
    node.mount(mounted)
    done = node.run(name, Asked(4))
    assert done.returncode == 1
    assert done.stderr == (
        f"iobands: {node.root}: type requested: {name}; mounted there: {mounted}: "
        f"is it mounted on {os.uname().nodename}?\n"
    )


def test_what_a_site_says_of_the_mount_holds_for_any_type(node):
    node.mount("ext4")
    done = node.run("posix", Asked(), mounted_as="nfs4")
    assert done.returncode == 1
    assert "type requested: posix, mounted as nfs4; mounted there: ext4" in done.stderr
    node.mount("fuse.wekafs")
    assert node.run("gpfs", Asked(), mounted_as="fuse.wekafs").returncode == 0


def test_a_path_that_df_cannot_find_is_not_taken_for_anything(node):
    node.stand_in("df", "echo 'df: no such file' >&2; exit 1")
    done = node.run("gpfs", Asked())
    assert (done.returncode, "mounted there: nothing" in done.stderr) == (1, True)
    assert len(done.stderr.splitlines()) == 1


def test_anything_goes_for_posix_and_gpfs_where_it_is_gpfs(node):
    assert node.run("posix", Asked()).returncode == 0
    shutil.rmtree(node.root / "run")
    node.mount("gpfs")
    assert node.run("gpfs", Asked()).returncode == 0


def ceph_on(node, count=None):
    node.mount("fuse.ceph-fuse")
    node.stand_in("setfattr", "exit 0")
    node.stand_in("getfattr", "exit 0")
    if count is not None:
        text = ceph_said("ceph osd stat --format json")
        node.stand_in("ceph", answer(text.replace('num_up_osds":4', f'num_up_osds":{count}')))


@pytest.mark.parametrize(
    ("asked", "up", "attributes"),
    [
        (Asked(-1), 3, "stripe_count=3"),
        (Asked(-1, targets=5), None, "stripe_count=5"),
        # The number in the site file counts, as a pool may have fewer OSDs than all.
        (Asked(-1, targets=2), 3, "stripe_count=2"),
        (Asked(3), 3, "stripe_count=3"),
        (Asked(1), None, "stripe_count=1"),
        (
            Asked(2, 1024, 8192, pool="data"),
            3,
            "stripe_unit=1048576 stripe_count=2 object_size=8388608 pool=data",
        ),
    ],
)
def test_ceph_is_asked_for_all_at_once(node, asked, up, attributes):
    ceph_on(node, up)
    assert node.run("cephfs", asked).returncode == 0
    expected = f"setfattr -n ceph.dir.layout -v {attributes} {node.root}/run"
    assert node.calls("setfattr") == [expected]


@pytest.mark.parametrize(
    ("asked", "up", "message"),
    [
        (Asked(4), 3, "stripe count requested: 4; there are 3 OSDs up"),
        (Asked(8, targets=6), None, "stripe count requested: 8; there are 6 OSDs up"),
        (Asked(8), None, "requested: 8; how many are up cannot be seen here"),
        (Asked(-1), None, "how many are up cannot be seen here"),
    ],
)
def test_ceph_is_not_asked_for_more_than_there_is(node, asked, up, message):
    ceph_on(node, up)
    done = node.run("cephfs", asked)
    assert (done.returncode, message in done.stderr) == (1, True)
    assert len(done.stderr.splitlines()) == 1
    assert not node.calls("setfattr")


SEVEN = (
    "beegfs-ctl",
    'case "$*" in *--spaceinfo*) ;; --list*) {targets}\n;; --getentryinfo*) {entry}\n;; esac',
    (
        "beegfs-ctl --listtargets --nodetype=storage --state --storagepools --pools",
        "beegfs-ctl --getentryinfo four",
    ),
    "beegfs-ctl --setpattern --numtargets=4 --chunksize=524288 "
    "--cfgFile=/etc/beegfs/scratch.d/beegfs-client.conf {run}",
)
EIGHT = (
    "beegfs",
    'case "$1 $2" in "target list") {targets}\n;; "entry info") {entry}\n;; esac',
    (
        "beegfs target list --node-type storage --state --capacity --raw",
        "beegfs-ctl --getentryinfo four",
    ),
    "beegfs entry set --num-targets=4 --chunk-size=524288 {run}",
)


def beegfs_on(node, version):
    name, script, outputs, _ = version
    node.mount("beegfs")
    node.stand_in("findmnt", "echo rw,relatime,cfgFile=/etc/beegfs/scratch.d/beegfs-client.conf")
    targets, entry = (beegfs_said(out) for out in outputs)
    node.stand_in(name, script.format(targets=answer(targets), entry=answer(entry)))


@pytest.mark.parametrize("version", [SEVEN, EIGHT])
def test_both_commands_of_beegfs(node, version):
    beegfs_on(node, version)
    name, _, _, call = version
    asked = Asked(4, size_kib=512)
    assert node.run("beegfs", asked).returncode == 0
    assert call.format(run=f"{node.root}/run") in node.calls(name)
    pool = "1" if name == "beegfs-ctl" else None  # the list of 8 has other targets
    layout = BACKENDS["beegfs"].in_effect(node.stage, asked)
    assert layout == Layout(4, 512 * 2**10, pool=pool)
    # the command that is published is of this version, too
    published = BACKENDS["beegfs"].command(asked, layout)
    assert published == re.sub(r" --cfg\S+| \{run\}", "", call)
    text = (node.stage / LAYOUT_FILE).read_text(encoding="utf-8")
    targets = (1203, 2101, 2102, 2103)
    assert BACKENDS["beegfs"].targets_of_files(text) == {"f1": targets, "f2": targets}


@pytest.mark.parametrize(
    ("version", "asked", "option"),
    [
        (SEVEN, Asked(-1), "--numtargets=4 "),
        (SEVEN, Asked(-1, pool="1"), "--numtargets=4 "),
        (SEVEN, Asked(-1, targets=3), "--numtargets=3 "),
        (EIGHT, Asked(-1), "--num-targets=2 "),
        (EIGHT, Asked(-1, pool="1"), "--num-targets=2 "),
    ],
)
def test_all_targets_of_beegfs_are_those_in_service(node, version, asked, option):
    beegfs_on(node, version)
    assert node.run("beegfs", asked).returncode == 0
    assert any(option in call for call in node.calls(version[0]))
    # the covariates are those of the pool's targets
    listed = (node.stage / "targets.txt").read_text(encoding="utf-8")
    assert listed.startswith("pool 1\n") == (asked.pool == "1")


# As BeeGFS 8.3.1 says it on a system without its library for licenses, after it did all.
UNLICENSED = (
    "Error: unable to verify licensed status: rpc error: code = Unknown "
    "desc = Get license: License verification library not loaded."
)


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        (f"Summary: processed 1 entries\n{UNLICENSED}", ""),
        ("Error: caller does not have permission", "refused the requested layout"),
    ],
)
def test_the_missing_license_of_beegfs_is_no_refusal(node, said, refused):
    beegfs_on(node, EIGHT)
    name, script, outputs, _ = EIGHT
    targets, entry = (answer(f"{beegfs_said(out)}{UNLICENSED}") + "\nexit 1" for out in outputs)
    script = script.replace("esac", '"entry set") {set}\n;; esac')
    set_ = answer(said) + "\nexit 1"
    node.stand_in(name, script.format(targets=targets, entry=entry, set=set_))
    asked = Asked(4, size_kib=512)
    done = node.run("beegfs", asked)
    assert (done.returncode, refused in done.stderr) == (bool(refused), True)
    if not refused:
        assert BACKENDS["beegfs"].in_effect(node.stage, asked) == Layout(4, 512 * 2**10)


@pytest.mark.parametrize(
    ("others", "said", "address"),
    [
        ((), "", "auto"),
        (("home",), "", "10.7.0.1:8010"),
        (("home",), "mgmtd:8110", "mgmtd:8110"),  # what the site says counts
    ],
)
def test_the_management_of_one_of_several_beegfs(node, others, said, address):
    for number, name in enumerate(("scratch", *others), 1):
        place = node.root / "clients" / f"c{number}-6B0D93ED-vm"
        place.mkdir(parents=True)
        lines = {
            "cfgFile": f"/etc/beegfs/{name}.d/beegfs-client.conf",
            "connMgmtdPort": 8008,
            "connMgmtdGrpcPort": 8010,
            "sysMgmtdHost": f"10.7.0.{number}",
        }
        text = "".join(f"{key} = {value}\n" for key, value in lines.items())
        (place / "config").write_text(text, encoding="utf-8")
    beegfs_on(node, EIGHT)
    (node.root / "bin" / "awk").symlink_to(shutil.which("awk"))
    done = node.bash(
        f"source {BACKENDS['beegfs'].script}",
        f"file_system={node.root} client_settings={node.root / 'clients'}",
        f"export BEEGFS_MGMTD_ADDR={said}",
        "with_management bash -c 'echo $BEEGFS_MGMTD_ADDR'",
    )
    assert (done.stdout, done.stderr) == (f"{address}\n", "")


def test_a_mount_of_beegfs_without_a_configuration_has_the_usual_one(node):
    beegfs_on(node, SEVEN)
    node.stand_in("findmnt", "echo rw,relatime")
    assert node.run("beegfs", Asked(4)).returncode == 0
    usual = "--cfgFile=/etc/beegfs/beegfs-client.conf"
    assert all(usual in call for call in node.calls("beegfs-ctl"))


def test_no_target_of_a_pool_of_beegfs_is_in_service(node):
    beegfs_on(node, SEVEN)
    done = node.run("beegfs", Asked(-1, pool="2"))
    assert (done.returncode, "how many are online cannot be seen here" in done.stderr) == (1, True)


def gpfs_on(node):
    node.stand_in(
        "df", "case $1 in --output=source) echo Device; echo work ;; *) echo T; echo gpfs ;; esac"
    )
    commands = (
        "mmlsattr -L replicated",
        "mmlsdisk work -Y",
        "mmdf work -d -P data -Y",
        "mmlsquota -Y work",
    )
    for command in commands:
        said = answer(gpfs_said(command))
        name = command.split()[0]
        of_files = f'for file in "${{@:2}}"; do {said}\ndone'
        node.stand_in(name, of_files if name == "mmlsattr" else said)


def test_spectrum_scale(node):
    gpfs_on(node)
    asked = Asked(pool="data", fileset="scratch", replicas=2)
    done = node.run("gpfs", asked)
    assert (done.returncode, done.stderr) == (0, "")
    assert BACKENDS["gpfs"].in_effect(node.stage, asked).placement == (
        "pool=data,fileset=scratch,replicas=2"
    )
    assert node.calls("mmlsdisk") == ["mmlsdisk work -Y"]
    assert len(node.calls("mmlsattr")) == 1  # of both files
    targets = (node.stage / "targets.txt").read_text(encoding="utf-8")
    assert BACKENDS["gpfs"].count_targets(targets) == Targets(4, 0)
    # only of the requested pool
    assert node.calls("mmdf") == ["mmdf work -d -P data -Y"]
    assert BACKENDS["gpfs"].targets_in_reach(targets) == {
        "data1": Space(31210004736, 6242000947),
        "data2": Space(31210004736, 4194304),
    }
    node.run("gpfs", Asked())
    assert node.calls("mmdf")[1:] == ["mmdf work -d -Y"]
    node.stand_in("mmlsattr", answer(gpfs_said("mmlsattr -L replicated")))
    node.run("gpfs", asked)
    with pytest.raises(StripingError, match="mmlsattr gave the placement of 1 of 2 files"):
        BACKENDS["gpfs"].in_effect(node.stage, asked)


def test_spectrum_scale_without_its_commands(node):
    node.mount("gpfs")
    assert node.run("gpfs", Asked()).returncode == 0
    assert BACKENDS["gpfs"].in_effect(node.stage, Asked()) == Layout()
    assert BACKENDS["gpfs"].count_targets("") is None


@pytest.mark.parametrize(
    ("rest", "status", "listed"), [("sleep 60", 124, ""), ("exit 3", 3, "a\n")]
)
def test_a_list_that_was_cut_off_is_none(node, rest, status, listed):
    (node.root / "bin" / "sleep").symlink_to(shutil.which("sleep"))
    source = f"source {ROOT / 'checks' / 'base' / 'job.sh'}"
    done = node.bash(source, f"within 0.5 bash -c 'echo a; {rest}'")
    assert (done.returncode, done.stdout) == (status, listed)


def test_the_quota_of_spectrum_scale(node):
    gpfs_on(node)
    (node.root / "bin" / "awk").symlink_to(shutil.which("awk"))
    done = node.bash(f"source {BACKENDS['gpfs'].script}; file_system={node.root}; show_quota")
    # 2 of 12 GiB and 4000 of 500000 files; the group has no limit.
    found = [(each.used, each.limit, each.unit) for each in quotas(done.stdout)]
    assert found == [(2 * 2**30, 12 * 2**30, "bytes"), (4000, 500000, "files")]


def test_the_stripes_of_a_case_are_read_from_the_layout(node):
    listing = lustre_said("lfs getstripe /mnt/lustre/dc4S1mi2/f")
    node.stand_in("lfs", answer(listing))
    done = node.bash(
        f"source {BACKENDS['lustre'].script}",
        f"source {ROOT / 'checks' / 'cases' / 'bulk_lustre.sh'}",
        f"run_directory={node.root}/run number_of_files=2; mkdir $run_directory",
        "before_run; ls $run_directory; place_option; cat $run_directory.table; cut -c-2 scans.txt",
        "echo some > $run_directory/000001; before_run; wc -c < $run_directory/000001",
        path=[os.environ["PATH"]],
    )
    # For the same file `lfs getstripe -S` printed 1 MiB, `-i` 2 and `-c` 4.
    assert done.stdout.splitlines() == [
        *("000001", "000002", f"--layout={node.root}/run.table"),
        # and in scans.txt that two files were looked at
        *("/mnt/lustre/dc4S1mi2/f 1048576 2 3 0 1", "2 ", "0"),
    ]
    _, start, end = map(int, (node.stage / "scans.txt").read_text(encoding="utf-8").split())
    assert start < end


@pytest.mark.parametrize(
    ("command", "entry", "stripes"),
    [
        ("beegfs-ctl", "beegfs-ctl --getentryinfo three", "524288 1201 1001 1101"),
        ("beegfs", "beegfs entry info --retro --raw two", "524288 101 201"),
    ],
)
def test_the_stripes_of_a_case_are_read_from_the_entries_of_beegfs(node, command, entry, stripes):
    node.stand_in(command, answer(beegfs_said(entry)))
    for tool in ("awk", "sort", "mkdir", "seq", "xargs", "touch", "date"):
        (node.root / "bin" / tool).symlink_to(shutil.which(tool))
    node.mount("beegfs")
    done = node.bash(
        f"source {BACKENDS['beegfs'].script}; file_system={node.root}",
        f"source {ROOT / 'checks' / 'cases' / 'bulk_lustre.sh'}",
        f"run_directory={node.root}/run number_of_files=2; mkdir $run_directory",
        "before_run; cat $run_directory.table",
    )
    files = [f"{node.root}/run/{number}" for number in ("000001", "000002")]
    assert done.stdout.splitlines() == [f"{file} {stripes}" for file in files]


def stripes_on_ceph(node, layout, ceph, size=MIB):
    """Return the output of before_run for one file of this many bytes, and the table it makes.

    `ceph` is the script of a stand-in.
    """
    node.stand_in("getfattr", f"""echo "# file: ${{@: -1}}"; echo 'ceph.file.layout="{layout}"'""")
    node.stand_in("ceph", ceph)
    return node.bash(
        f"source {ROOT / 'checks' / 'base' / 'job.sh'}; file_system=/ceph",
        f"source {BACKENDS['cephfs'].script}",
        f"source {ROOT / 'checks' / 'cases' / 'bulk_lustre.sh'}",
        f"run_directory={node.root}/run number_of_files=1 bytes_per_file={size}",
        "mkdir $run_directory; before_run || exit; cat $run_directory.table",
        path=[os.environ["PATH"]],
    )


def numbered_osds(where):
    """Return a fake `ceph` with output of the captured form; an object's OSD is its number."""
    form = ceph_said(where).rstrip()
    form = re.sub(r"object '.*?'", "object '%s'", form)
    form = re.sub(r"acting .*", "acting ([%d,7], p%d)", form)
    return f"""
        while read -r _ _ pool object namespace; do
            number=$((16#${{object##*.}}))
            printf "{form}\\n" "${{namespace:+$namespace/}}$object" $number $number
        done"""


@pytest.mark.parametrize(
    ("layout", "where", "size", "osds"),
    [
        # Two objects at a time, of four stripes each: the ninth stripe begins the third object.
        (
            f"stripe_unit={MIB} stripe_count=2 object_size={4 * MIB} pool=data",
            "ceph osd map data 100000001fe.00000005",
            11 * MIB + 1,
            "0 1 0 1 0 1 0 1 2 3 2 3",
        ),
        (
            f"stripe_unit={MIB} stripe_count=1 object_size={2 * MIB} pool=data pool_namespace=ns1",
            "ceph osd map data 100000001fe.00000005 ns1",
            5 * MIB,
            "0 0 1 1 2",
        ),
    ],
)
def test_the_stripes_of_a_case_are_on_the_primary_osds_of_ceph(node, layout, where, size, osds):
    done = stripes_on_ceph(node, layout, numbered_osds(where), size)
    assert done.stdout == f"{node.root}/run/000001 {MIB} {osds}\n", done.stderr
    # A name begins with the number of the file, in hexadecimal digits.
    inode = (node.root / "run" / "000001").stat().st_ino
    objects = (node.stage / "objects.txt").read_text(encoding="utf-8")
    assert {line.split()[-1].split(".")[0] for line in objects.splitlines()} == {f"{inode:x}"}


@pytest.mark.parametrize(
    ("layout", "ceph"),
    [
        (f"stripe_unit={MIB} stripe_count=1 object_size={MIB} pool=data", "exit 1"),
        ("no layout", numbered_osds("ceph osd map data 100000001fe.00000005")),
    ],
    ids=["no answer", "no layout"],
)
def test_a_ceph_that_does_not_say_where_objects_are_ends_the_job(node, layout, ceph):
    done = stripes_on_ceph(node, layout, ceph)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "iobands: /ceph: getfattr and ceph osd map do not show here on which OSDs stripes lie\n"
    )


@pytest.mark.parametrize("good", [(), (2,), (3, 0)])
def test_the_small_file_of_a_lustre_lies_on_a_target_that_took_a_write(node, good):
    """The stripes of the captured file lie on the targets 2, 3, 0 and 1."""
    layout = lustre_said("lfs getstripe /mnt/lustre/dc4S1mi2/f")
    node.stand_in(
        "lfs",
        f'case "$*" in "getstripe -c "*) echo 4 ;; "getstripe -p "*) ;;\n'
        f"getstripe*) cat <<'END'\n{layout}\nEND\n;; esac",
    )
    for tool in ("seq", "xargs", "awk", "sleep"):
        (node.root / "bin" / tool).symlink_to(shutil.which(tool))
    script = f"""
        section() {{ echo "@@@ $1"; }}
        seconds=3 directory={node.root}/probe file_system=/mnt/lustre
        source {BACKENDS["lustre"].script}
        write_stripe() {{
            case " {" ".join(map(str, good))} " in *" $2 "*) echo "wrote $2" ;; *) sleep 9 ;; esac
        }}
        look_at_targets flash"""
    assert node.bash(script).returncode == 0
    small = [call for call in node.calls("lfs") if call.endswith("/file")]
    target = [2, 3, 0, 1][good[0]] if len(good) == 1 else "[12]"
    assert len(small) == bool(good)
    for call in small:
        assert re.fullmatch(rf"lfs setstripe -c 1 -i {target} -p flash \S+/probe/file", call)
