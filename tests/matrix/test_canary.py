"""A canary on a real site: it names the faults that make a node unfit, within its time limit."""

from __future__ import annotations

import hashlib
import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.matrix.conftest import Minisite, Suite
from tests.site_copy import BENCHIO, ROOT, SiteCopy, copy_suite

pytestmark = pytest.mark.xdist_group("minisite")

UCX = ("--environment", "openmpi-ucx")
PAGE = (ROOT / "docs" / "howto" / "check-a-node.md").read_text("utf-8")


@pytest.fixture(scope="module")
def measured(minisite: Minisite, tmp_path_factory: pytest.TempPathFactory) -> SiteCopy:
    """A site in which a session has built benchio."""
    copy = copy_suite(tmp_path_factory.mktemp("site"), *BENCHIO)
    suite = Suite(copy, minisite)
    chosen = ["-n", "BenchioFPP.*%scale=small", "-E", 'file_system == "fast"', "-p", "openmpi-ucx"]
    run = suite.reframe("-r", *chosen)
    assert run.returncode == 0, run.stdout + run.stderr
    return copy


def canary(site: SiteCopy, minisite: Minisite, *words: str) -> tuple[int, str]:
    """Return the exit status and the line of a canary, which must be on time and leave nothing."""
    began = time.monotonic()
    done = site.iobands("canary", "--node", "n1", "--mib", "4", *UCX, *words, env=minisite.env)
    assert time.monotonic() - began < 75
    assert "Traceback" not in done.stderr
    (line,) = done.stdout.splitlines()
    assert minisite.left_behind() == []
    assert not list((site.root / "stage").glob("canary*"))
    return done.returncode, line


def peers_of(site: SiteCopy, node: str) -> None:
    """Give three made-up peers the samples of a node, 140 times each."""
    path = site.root / "perflogs" / "minisite" / "canaries" / f"{node}.log"
    header, *rows = path.read_text("utf-8").splitlines()
    for peer in ("p1", "p2", "p3"):
        path.with_name(f"{peer}.log").write_text("\n".join([header, *rows * 140, ""]), "utf-8")


def test_a_fit_node_says_its_rates(measured: SiteCopy, minisite: Minisite) -> None:
    status, line = canary(measured, minisite)
    assert status == 0, line
    found = r"IOBANDS FIT: n1: ceph: writes [\d.]+, reads [\d.]+ GiB/s, no band yet \(0 of 400 runs"
    assert re.match(found, line), line
    status = measured.iobands("status", env=minisite.env).stdout
    assert "canary" not in status


def test_what_is_not_mounted_or_read_only_is_unfit(measured: SiteCopy, minisite: Minisite) -> None:
    disk = minisite.file_system("fast")
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    try:
        status, line = canary(measured, minisite, "--file-system", "fast")
    finally:
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    assert (status, "UNFIT: n1: fast: read-only: " in line) == (2, True), line
    site_file = measured.root / "config" / "systems" / "minisite.py"
    before = site_file.read_text("utf-8")
    site_file.write_text(before.replace("/ceph", "/not-mounted"), "utf-8")
    try:
        for exists in (False, True):
            if exists:
                minisite.file_system("not-mounted").mkdir()
            status, line = canary(measured, minisite, "--file-system", "ceph")
            assert (status, "UNFIT: n1: ceph: unmounted: " in line) == (2, True), line
    finally:
        site_file.write_text(before, "utf-8")
        minisite.file_system("not-mounted").rmdir()


def test_half_the_rate_is_unfit_on_the_first_node(measured: SiteCopy, minisite: Minisite) -> None:
    slow = ("--file-system", "slow", "--mib", "16")  # more than the disk lets pass at once
    for path in (measured.root / "perflogs" / "minisite" / "canaries").glob("*.log"):
        path.unlink()
    for _ in range(3):
        assert canary(measured, minisite, *slow)[0] == 0
    peers_of(measured, "n1")
    status, line = canary(measured, minisite, *slow)
    assert (status, "(peers " in line) == (0, True), line
    minisite.throttle("9M")
    try:
        status, line = canary(measured, minisite, *slow)
        assert (status, "UNFIT: n1: slow: slow: writes " in line) == (2, True), line
        status, line = canary(measured, minisite, *slow, "--node", "n2")
        assert (status, "slow, as on n1" in line) == (3, True), line
    finally:
        minisite.throttle("20M")


def test_the_wrong_transport_is_unfit(measured: SiteCopy, minisite: Minisite) -> None:
    builds = measured.root / "builds"
    kept = builds / (builds / "minisite.compute.openmpi-ucx").read_text("utf-8").strip()
    before = {path: path.read_bytes() for path in (kept / "environment", kept / "SHA256SUMS")}
    other = before[kept / "environment"].replace(b"OMPI_MCA_pml=ucx", b"OMPI_MCA_pml=ob1")
    (kept / "environment").write_bytes(other)
    old, new = (hashlib.sha256(text).hexdigest() for text in (before[kept / "environment"], other))
    try:
        status, line = canary(measured, minisite, "--file-system", "fast")
        assert (status, "damaged or replaced" in line) == (3, True), line
        sums = (kept / "SHA256SUMS").read_text("utf-8")
        (kept / "SHA256SUMS").write_text(sums.replace(old, new), "utf-8")
        status, line = canary(measured, minisite, "--file-system", "fast")
    finally:
        for path, content in before.items():
            path.write_bytes(content)
    assert status == 2
    assert "UNFIT: n1: fast: wrong transport: ucx requested, in effect: ob1" in line


def test_the_script_for_a_prolog_drains_for_what_is_unfit_alone(
    measured: SiteCopy, minisite: Minisite, tmp_path: Path
) -> None:
    """Run the script on the page with a fake canary that gives each possible answer."""
    script, *_ = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    program = tmp_path / "iobands"
    assert script.count("/opt/iobands/bin/iobands ") == 1
    script = script.replace("/opt/iobands/bin/iobands", str(program))
    (tmp_path / "node").write_text(script, "utf-8")
    for status, wanted in {0: 0, 2: 1, 3: 0, 127: 0}.items():
        program.write_text(f'#!/bin/sh\necho "said $*"\nexit {status}\n', "utf-8")
        program.chmod(0o755)
        done = subprocess.run(
            ["sh", tmp_path / "node"],
            env={"IOBANDS_SITE": "/srv/it"},  # a prolog has no PATH
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == wanted
        assert done.stdout == ("said canary --site /srv/it --limit 40 --wait 5\n" * wanted)
    program.unlink()
    program.symlink_to(ROOT / ".venv" / "bin" / "iobands")
    env = {**minisite.env, "IOBANDS_SITE": str(measured.root)}
    done = subprocess.run(["sh", tmp_path / "node"], env=env, capture_output=True, check=False)
    assert done.returncode == 0, done
