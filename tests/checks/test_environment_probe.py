"""The probe looks at real file systems that are broken, and at stand-ins for Lustre and quotas."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from checks.base.stage import copy_scripts
from checks.preflight import probe
from checks.preflight.clocks import DEFAULT_SKEW_SECONDS
from checks.preflight.findings import Wanted, judge, silent
from tests.checks.captures import each_captured, lustre_said

pytestmark = pytest.mark.machine


@pytest.fixture
def disk(tmp_path_factory):
    return tmp_path_factory.mktemp("disk")


needs_mounts = pytest.mark.needs("mounts")
NODE = os.uname().nodename


class Probed:
    """A directory in which the script runs, with stand-ins for commands of this machine."""

    name = "iobands-EnvProbe-0123456789"

    def __init__(self, root: Path, disk: Path) -> None:
        self.root, self.programs, self.disk = root, root / "bin", disk
        self.seconds = probe.PATIENCE_SECONDS
        self.programs.mkdir()

    def stand_in(self, name: str, script: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def mounted(self, kind: str) -> None:
        """Make df report the type `kind` for every file system."""
        df = shutil.which("df")
        self.stand_in(
            "df", f'case "$*" in *fstype*) echo "{kind} /mnt/x" ;; *) exec {df} "$@" ;; esac'
        )

    def removed(self) -> list[Path]:
        """Return the directories that the session need not look for."""
        said = self.root / "removed_directories.txt"
        return [Path(line) for line in said.read_text().splitlines()] if said.exists() else []

    def look(self, settings: dict, gib: float = 0.0, files: int = 0):
        """Return the findings about a file system with these settings."""
        settings = {"type": "posix", **settings}
        directory = Path(settings["path"], self.name)
        copy_scripts(probe.SCRIPTS, self.root)
        done = subprocess.run(
            ["bash", "probe.sh", *probe.arguments([settings], [directory], self.seconds)],
            cwd=self.root,
            env={**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        ((answer, in_time),) = probe.read_answers(self.root, 1)
        wanted = Wanted.of(settings, gib, files, DEFAULT_SKEW_SECONDS)
        return judge(answer, wanted) if in_time else silent(answer, wanted)


@pytest.fixture
def probed(tmp_path, disk):
    return Probed(tmp_path, disk)


@pytest.fixture
def mount(tmp_path_factory):
    """Mount a tmpfs with these options, and return where."""
    made = []

    def make(options: str) -> Path:
        directory = tmp_path_factory.mktemp("mounted")
        # A share of a NAS or over SSH may have blanks in its name.
        words = ["-t", "tmpfs", "-o", options, "my 2 3 share"]
        subprocess.run(["mount", *words, directory], check=True)
        made.append(directory)
        return directory

    yield make
    for directory in made:
        subprocess.run(["umount", directory], check=True)


def test_a_healthy_one(probed, tmp_path_factory):
    directory = tmp_path_factory.mktemp("healthy")
    found = probed.look({"path": str(directory)}, gib=0.001, files=1)
    assert found.wrong is None
    assert list(directory.iterdir()) == []


@needs_mounts
def test_one_that_is_full(probed, mount):
    directory = mount("size=1m")
    with (directory / "fill").open("wb") as file:
        file.write(bytes(2**20))
    found = probed.look({"path": str(directory), "mounted_as": "tmpfs"}, gib=0.5)
    assert found.problems == (
        "full: 0 GiB are free, 0.5 are needed",
        f"not writable on {NODE}: No space left on device",
    )
    assert [path.name for path in directory.iterdir()] == ["fill"]


@needs_mounts
def test_one_with_less_free_than_its_floor(probed, mount):
    directory = mount("size=512m")
    found = probed.look({"path": str(directory), "min_free_gib": 2}, gib=0.5)
    assert found.problems == ("full: 0.5 GiB are free, 2.5 are needed",)


@needs_mounts
def test_one_without_inodes(probed, mount):
    directory = mount("size=4m,nr_inodes=2")  # its root and one more
    (directory / "file").touch()
    found = probed.look({"path": str(directory), "min_free_inodes": 10}, files=4)
    assert found.problems == (
        "out of inodes: 0 are free, 14 are needed",
        f"not writable on {NODE}: No space left on device",
    )


@needs_mounts
def test_one_that_is_read_only(probed, mount):
    found = probed.look({"path": str(mount("size=4m,ro"))})
    assert found.problems == (f"not writable on {NODE}: Read-only file system",)


def test_one_that_is_not_there(probed, tmp_path):
    found = probed.look({"path": str(tmp_path / "absent")})
    assert found.problems == (f"not there on {NODE}: No such file or directory",)
    assert probed.removed() == [tmp_path / "absent" / probed.name]  # so no session looks for it


def test_a_directory_that_could_not_be_made_is_looked_for(probed, disk):
    """A hung call may still make it."""
    disk.chmod(0o777)
    probed.look({"path": str(disk)})
    assert probed.removed() == []


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ({"type": "lustre"}, "lustre"),
        ({"type": "cephfs"}, "ceph or fuse.ceph-fuse or fuse.ceph"),
        ({"type": "posix", "mounted_as": "nfs4"}, "nfs4"),
    ],
)
def test_one_that_is_not_mounted_is_not_written_to(probed, tmp_path_factory, settings, asked):
    directory = tmp_path_factory.mktemp("disk")
    directory.chmod(0o500)
    before = directory.stat().st_mtime_ns
    found = probed.look({"path": str(directory), **settings})
    (problem,) = found.problems
    assert problem.startswith(f"not mounted on {NODE} as {asked}: there is ")
    assert directory.stat().st_mtime_ns == before
    assert probed.removed() == [directory / probed.name]


def test_one_that_hangs_stops_no_other(probed, tmp_path):
    probed.seconds = 2
    hung, over = tmp_path / "hung", tmp_path / "over"
    # Opened for reading once nobody waits for it any more; a further df finds that it is over.
    os.mkfifo(hung)
    probed.stand_in("df", f"[ -e {over} ] || exec > {hung}")
    found = probed.look({"path": "/hung"})
    over.touch()
    with hung.open() as pipe:
        assert pipe.read() == ""
    assert "does not answer within" in found.blocking()
    assert "(asked for: mounted)" in found.blocking()


@needs_mounts
def test_a_stage_directory_that_is_full_is_blamed_and_no_file_system(mount, disk):
    stage = mount("size=256k")
    (stage / "bin").mkdir()
    copy_scripts(probe.SCRIPTS, stage)
    (stage / "fill").write_bytes(bytes(os.statvfs(stage).f_bavail * os.statvfs(stage).f_frsize))
    words = probe.arguments([{"type": "posix", "path": str(disk)}], [disk / "iobands-EnvProbe-0"])
    subprocess.run(["bash", "probe.sh", *words], cwd=stage, stderr=subprocess.PIPE, check=True)
    with pytest.raises(probe.StageError, match=f"{stage} .* No space left on device"):
        probe.read_answers(stage, 1)
    (stage / "fill").unlink()
    with pytest.raises(probe.StageError, match="could not write"):
        probe.read_answers(stage, 1)
    assert list(disk.iterdir()) == []


def test_a_reason_is_said_once(tmp_path):
    """ReFrame appends the cause of an error to its text."""
    sanity = pytest.importorskip("reframe.core.exceptions").SanityError
    from checks.preflight.jobs import require_begun  # noqa: PLC0415 (needs ReFrame)

    gone = SimpleNamespace(stagedir=str(tmp_path / "gone"), stdout="rfm_job.out")
    with pytest.raises(sanity) as caught:
        require_begun(gone)
    assert str(caught.value) == (
        f"the stage directory {tmp_path}/gone cannot be written to: No such file or directory"
    )


def test_one_that_others_may_write_and_that_is_not_sticky_is_not_written_to(probed, disk):
    disk.chmod(0o777)
    (problem,) = probed.look({"path": str(disk)}).problems
    assert problem.endswith("or name a directory of your own below it")
    disk.chmod(0o1777)
    assert probed.look({"path": str(disk)}).blocking() is None
    (disk / "iobands-EnvProbe-0123456789").symlink_to("precious")
    assert probed.look({"path": str(disk)}).blocking() is None  # by another name
    assert [path.name for path in disk.iterdir()] == ["iobands-EnvProbe-0123456789"]


def test_orphans_that_the_session_cannot_reach_are_removed_by_the_node(probed, tmp_path, disk):
    orphan = disk / "iobands-BenchioFPP-0123456789"
    orphan.mkdir()
    words = (str(disk), "", orphan.name, "", "remove")
    orphans = tmp_path / probe.orphans_file(0)
    orphans.write_bytes("".join(f"{word}\0" for word in words).encode())
    assert probed.look({"path": str(disk)}).blocking() is None
    assert list(disk.iterdir()) == []
    said = (tmp_path / probe.removed_file(0)).read_text(encoding="utf-8")
    assert said == f"{orphan.name}\tgone\t\t\n"


def test_a_clock_that_is_off_is_reported_and_stops_nothing(probed, tmp_path_factory):
    directory = tmp_path_factory.mktemp("disk")
    stat = shutil.which("stat")
    # As a server whose clock is ahead would have it.
    probed.stand_in("stat", f'touch -d "now + 950 seconds" "$3"; exec {stat} "$@"')
    found = probed.look({"path": str(directory)})
    assert found.blocking() is None
    (said,) = found.others
    assert said.startswith("clock off: new files are 9")  # of 950, on a busy machine
    assert said.endswith(f" s ahead of the clock of {NODE}; 1 s are allowed")


FOUR = lustre_said("lfs getstripe /mnt/lustre/dc4S1mi2/f")
THREE = re.sub(r"\n\t +3\t.*", "", FOUR.replace("count:  4", "count:  3"))


def lustre(probed, quota: str = "exit 1", layout: str = FOUR) -> dict:
    """Stand in for Lustre with the captured four OSTs; return the settings of a file system."""
    answers = {
        "osts": lustre_said("lfs osts /mnt/lustre"),
        "df": lustre_said("lfs df /mnt/lustre"),
        "check": lustre_said("lfs check osts"),
        "getstripe": layout,
    }
    for name, text in answers.items():
        (probed.programs / f"{name}.txt").write_text(text, encoding="utf-8")
    probed.mounted("lustre")
    probed.stand_in(
        "lfs",
        f"""case "$1 $2" in
        "getstripe -c") echo {len(re.findall("0x.* ", layout))} ;;
        "getstripe -p" | setstripe*) ;;
        quota*) {quota} ;;
        "df -l") cat {probed.programs}/df.txt ;;
        df*) exec sleep 600 ;; # waits for a target that is gone
        *) exec cat {probed.programs}/$1.txt ;;
        esac""",
    )
    return {"type": "lustre", "path": str(probed.disk)}


def test_lustre_with_all_its_osts(probed):
    found = probed.look(lustre(probed))
    assert found.wrong is None
    assert found.unknown == ("quota",)


def test_lustre_with_an_ost_that_takes_no_new_files(probed):
    """It stops only checks at −1, and those only where the site file does not allow for it."""
    settings = lustre(probed, layout=THREE)
    found = probed.look(settings)
    assert found.over_all.startswith("4 targets, OST0003 takes no new files")
    assert (found.blocking(1), found.blocking(3)) == (None, None)
    assert found.blocking(-1) == found.blocking(4) == found.wrong == found.over_all
    assert probed.look({**settings, "max_inactive_targets": 1}).wrong is None


def test_the_small_file_of_the_probe_may_lie_anywhere_on_lustre(probed):
    """`lfs setstripe` prints its help if no index is known, as lfs getstripe was too slow."""
    settings = lustre(probed)
    (probed.programs / "lfs").rename(probed.programs / "answers")
    probed.stand_in(
        "lfs",
        f"""case "$*" in "setstripe -c 1 -i "*)
            echo "lfs setstripe setstripe: invalid stripe offset ''" >&2
            echo "Create a file with specified striping/composite layout, or" ;;
        esac
        exec {probed.programs}/answers "$@\"""",
    )
    found = probed.look(settings)
    assert (found.wrong, found.unknown, found.taking) == (None, ("quota",), 4)


def test_lustre_with_an_ost_on_which_writes_hang(probed):
    probed.seconds = 6
    settings = lustre(probed)
    dd = shutil.which("dd")
    # Stripe 1 is on OST 3, and so is the mark, whose times the OST keeps; only the MDS makes files.
    probed.stand_in("touch", "exec sleep 600")
    probed.stand_in("dd", f'case "$*" in *seek=1*) exec sleep 600 ;; esac; exec {dd} "$@"')
    (problem,) = probed.look(settings).problems
    assert problem == "OST0003 does not answer: a write to it did not end"
    assert list(probed.disk.iterdir()) == []


def test_a_hung_ost_stops_no_entry_whose_files_do_not_lie_there(probed):
    """One of two entries of a Lustre is a pool without OST 3, on which stripe 1 of the other is."""
    probed.seconds = 6
    placed, lfs, dd = probed.programs / "placed", probed.programs / "lfs", shutil.which("dd")
    # The small file hangs, too, unless it was placed on another one.
    small = f"*conv=fsync*) rm {placed} || exec sleep 600 ;;"

    def look(layout, hangs, **settings):
        settings |= lustre(probed, layout=layout)
        lfs.rename(probed.programs / "answers")
        probed.stand_in(
            "lfs",
            f'case "$*" in "setstripe -c 1 -i "[012]" "*) touch {placed} ;; esac\n'
            f'exec {probed.programs}/answers "$@"',
        )
        probed.stand_in("dd", f'case "$*" in {small} {hangs}) exec sleep 600 ;; esac; {dd} "$@"')
        return probed.look(settings)

    assert look(FOUR, "*seek=1*").problems == (
        "OST0003 does not answer: a write to it did not end",
    )
    found = look(THREE, "nothing", striping={"pool": "flash"})
    assert found.problems == ()


def test_lustre_that_hangs_for_good_still_names_the_ost(probed):
    probed.seconds = 3
    settings = lustre(probed)
    dd = shutil.which("dd")
    probed.stand_in(
        "dd", f'case "$*" in *seek=1* | *conv=fsync*) exec sleep 5 ;; esac; exec {dd} "$@"'
    )
    silence, target = probed.look(settings).problems
    assert silence.endswith("(asked for: write)")
    assert target == "OST0003 does not answer: a write to it did not end"


def test_a_command_that_is_missing(probed, tmp_path_factory):
    probed.mounted("lustre")
    found = probed.look({"type": "lustre", "path": str(tmp_path_factory.mktemp("lustre"))})
    assert found.problems == (f"command missing on {NODE}: lfs",)
    assert found.unknown == ("quota", "storage targets")


def test_the_quota_of_lustre(probed):
    # In the form of the Lustre Operations Manual, with a limit that is nearly reached.
    settings = lustre(probed, 'echo "      $5 30720 0 31457 - 10 10000 11000 -"')
    found = probed.look(settings)
    # 30720 of 31457 KiB; 10 of 10000 files. The user's and the group's are alike here.
    assert found.problems[0] == "quota nearly used: 98 % of 0.03 GiB"
    assert probed.look({**settings, "max_quota_percent": 99}).wrong is None


# quota pads a name to 15 letters; a longer name starts at the beginning of the line.
@pytest.mark.parametrize("source", ["/dev/ubdb", "server:/export/home", "server:/our  home"])
def test_the_quota_of_posix_is_that_of_the_device(probed, tmp_path_factory, source):
    path, df = str(tmp_path_factory.mktemp("disk")), shutil.which("df")
    probed.stand_in("df", f'case "$*" in *source*) echo "{source}" ;; *) exec {df} "$@" ;; esac')
    # On XFS the group has nearly used its quota, but not on ext4.
    text = each_captured("quota -v -w -p -u -g", "quota-4.06.txt")[-1]
    text = text.replace("      /dev/ubdb", f"{source:>15}")
    probed.stand_in("quota", f"[ \"$*\" = '-v -w -p -u -g' ] && cat <<'END'\n{text}END\nexit 1")
    found = probed.look({"path": path})
    # 11800 of 12000 KiB
    assert found.problems == ("quota nearly used: 98 % of 0.0114 GiB",)
    assert found.unknown == ()
