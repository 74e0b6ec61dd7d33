"""The parts of a canary: the build it uses, what it waits for, and who runs it."""

import hashlib
import json
import os
import threading
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from iobands.measure import SessionError
from iobands.measure.canary import (
    Nest,
    await_session,
    become_owner,
    build_pointer,
    look,
    take_build,
    within,
)
from iobands.measure.lock import lock_path, new_holder

PLACE = ("site", "part", "env")
KEY = "0123456789abcdef" * 2
NAMES = ("benchio", "build.out", "environment", "identity", "libraries")


@pytest.fixture
def built(tmp_path):
    """A site with a kept build, as kept.sh writes it."""
    kept = tmp_path / "builds" / KEY
    kept.mkdir(parents=True)
    kept.parent.chmod(0o700)
    (kept.parent / "site.part.env").write_text(f"{KEY}\n")
    sums = ""
    contents = ("program", "said", "MPI=a b\0PATH=/bin:/x=y\0", "identity", "libraries")
    for name, content in zip(NAMES, contents, strict=True):
        (kept / name).write_text(content)
        sums += f"{hashlib.sha256(content.encode()).hexdigest()}  {name}\n"
    (kept / "SHA256SUMS").write_text(sums)
    return tmp_path


def test_a_proven_build_is_copied_with_its_environment(built):
    program = built / "program"
    assert build_pointer(built, *PLACE).is_file()
    assert take_build(built, PLACE, program) == {"MPI": "a b", "PATH": "/bin:/x=y"}
    assert program.read_text() == "program"
    assert program.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["benchio", "environment", "SHA256SUMS"])
def test_a_damaged_build_is_not_used(built, name):
    with (built / "builds" / KEY / name).open("a") as stream:
        stream.write("x")
    with pytest.raises(SessionError, match="damaged or replaced; `iobands run`"):
        take_build(built, PLACE, built / "program")
    assert not (built / "program").exists()


@pytest.mark.parametrize("key", ["../../etc", "", f"{KEY}/..\n", f"{KEY}\n\n"])
def test_a_pointer_names_nothing_but_a_build(built, key):
    (built / "builds" / "site.part.env").write_text(key)
    with pytest.raises(SessionError, match="is damaged"):
        take_build(built, PLACE, built / "program")


def test_a_build_that_others_could_have_changed_is_not_used(built):
    (built / "builds").chmod(0o770)
    with pytest.raises(SessionError, match="of mode 0700"):
        take_build(built, PLACE, built / "program")
    (built / "builds").chmod(0o700)
    (built / "builds").rename(built / "elsewhere")
    (built / "builds").symlink_to(built / "elsewhere")
    with pytest.raises(SessionError, match="of mode 0700"):
        take_build(built, PLACE, built / "program")


# Waiting


def test_a_missing_mount_is_named_as_the_site_file_has_it(built):
    fs = {"path": str(built), "type": "posix", "medium": "nfs", "mounted_as": "nfs4"}
    found = look(Nest(built, *PLACE, "n1", {"home": fs}, {}), "home", 4, 10)
    assert found.why.startswith("unmounted: type requested: posix, mounted as nfs4; mounted there:")


@pytest.mark.parametrize(
    ("does", "status", "why"),
    [
        # timeout(1) makes a process group, as around benchio
        ("exec timeout 6 sh -c 'while :; do :; done'", 3, "busy: no answer"),
        ("exec sleep 60", 2, "hung: no answer"),
    ],
)
def test_a_program_that_waits_for_a_processor_is_not_hung(does, status, why, built):
    """Stand-in for `stat`, the first program that looks at the file system."""
    (built / "stat").write_text(f"#!/bin/sh\n{does}\n")
    (built / "stat").chmod(0o755)
    kept = built / "builds" / KEY
    (kept / "environment").write_text(f"PATH={built}:/usr/bin:/bin")
    sums = [f"{hashlib.sha256((kept / e).read_bytes()).hexdigest()}  {e}\n" for e in NAMES]
    (kept / "SHA256SUMS").write_text("".join(sums))
    fs = {"path": str(built), "type": "posix", "medium": "disk"}
    found = look(Nest(built, *PLACE, "n1", {"disk": fs}, {}), "disk", 4, 1)
    assert (found.status, found.why.startswith(why)) == (status, True), found.why


def test_it_waits_for_a_session_and_says_so_once(tmp_path):
    holder = new_holder("iobands run --tag daily")
    lock_path(tmp_path).write_text(json.dumps(asdict(holder)))
    said: list[str] = []
    with pytest.raises(SessionError, match="a session is measuring: `iobands run --tag daily`"):
        await_session(tmp_path, time.monotonic() + 0.3, said.append)
    assert len(said) == 1
    timer = threading.Timer(0.3, lock_path(tmp_path).unlink)
    timer.start()
    await_session(tmp_path, time.monotonic() + 30, said.append)
    timer.join()


def test_it_does_not_wait_for_one_that_was_killed(tmp_path):
    said = json.loads(json.dumps(asdict(new_holder("iobands run"))))
    said["processes"][0]["started"] -= 1
    lock_path(tmp_path).write_text(json.dumps(said))
    await_session(tmp_path, 0, print)


def test_a_child_that_hangs_is_given_up():
    status, line = within(0.3, lambda: time.sleep(600) or (0, ""))
    assert (status, "no answer within 0.3 s" in line) == (3, True)
    assert within(60, lambda: (2, "IOBANDS UNFIT: ü")) == (2, "IOBANDS UNFIT: ü")
    assert within(60, lambda: os._exit(9))[0] == 3


# Who runs it


def test_a_link_and_the_directory_of_another_user_are_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(SessionError, match="is a link"):
        become_owner(tmp_path / "link")
    if os.geteuid():
        with pytest.raises(SessionError, match="belongs to user 0"):
            become_owner(Path("/"))
    become_owner(tmp_path)


@pytest.mark.needs("other users")
def test_root_becomes_the_owner_for_good(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    os.chown(site, 1, 1)
    tmp_path.chmod(0o711)

    def work():
        try:
            become_owner(site)
        except SessionError as error:  # of the Python that runs the tests
            assert "cannot read" in str(error)
        except OSError as error:  # pytest's own directories are closed to others
            assert error.filename == str(site) or error.strerror == "Permission denied"
        try:
            os.setresuid(0, 0, 0)
        except PermissionError:
            return 0, f"{os.getresuid()} {os.getresgid()} {sorted(os.getgroups())}"
        return 2, "root again"

    status, said = within(60, work)
    assert status == 0
    assert said.startswith("(1, 1, 1) (1, 1, 1) ")
    assert "0" not in said.rpartition(")")[2]


@pytest.mark.needs("other users")
def test_an_installation_that_the_owner_cannot_read_is_named(tmp_path, monkeypatch):
    site, closed = tmp_path / "site", tmp_path / "closed"
    site.mkdir()
    os.chown(site, 1, 1)
    closed.mkdir(mode=0o700)
    monkeypatch.setattr(os, "__file__", str(closed / "os.py"))
    (closed / "os.py").touch()

    def work():
        try:
            become_owner(site)
        except SessionError as error:
            return 3, str(error)
        return 0, ""

    status, said = within(60, work)
    assert (status, f"cannot read {closed}/os.py; install" in said) == (3, True)


@pytest.mark.needs("other users")
def test_root_runs_nothing_that_others_may_write(tmp_path):
    tmp_path.chmod(0o775)
    with pytest.raises(SessionError, match="others may write there"):
        become_owner(tmp_path)
