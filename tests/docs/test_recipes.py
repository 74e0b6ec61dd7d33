"""The recipes of docs/howto, followed step by step in a copy of the tree, with real ReFrame."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from iobands.model.fields import FIELDS
from tests.site_copy import ROOT, copy_suite

CHECK = "checks/tools/benchio/pencil.py"


def blocks(page, language):
    """The code blocks of a page in `language`, each with the file that the text before it names."""
    text = (ROOT / "docs" / "howto" / page).read_text(encoding="utf-8")
    block = rf"^([^`\n]*(?:`[^`\n]*`[^`\n]*)+)\n\n```{language}\n(.*?)```"
    found = re.findall(block, text, re.MULTILINE | re.DOTALL)
    return [(re.findall(r"`([^`]+/[^`]+)`", before)[-1], code) for before, code in found]


def apply(root, page):
    """Do what a page says: new files as they are, and lines added where it shows."""
    for path, code in blocks(page, "python"):
        (root / path).write_text(code, encoding="utf-8")
    for path, code in blocks(page, "diff"):
        lines = code.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] == " ")
        text = (root / path).read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{path} has {text.count(before)} times {before!r}"
        after = "".join(line[1:] for line in lines)
        (root / path).write_text(text.replace(before, after), encoding="utf-8")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the tree with both recipes, and a small system."""
    root = tmp_path_factory.mktemp("tree")
    site = copy_suite(root, CHECK)
    (root / "src").unlink()
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "iobands", root / "src" / "iobands", ignore=ignored)
    (root / "src" / "benchio").symlink_to(ROOT / "src" / "benchio")
    disk = {"path": str(tmp_path_factory.mktemp("disk")), "type": "posix", "medium": "disk"}
    scale = {"nodes": 1, "tasks_per_node": 2, "mib_per_task": 1}
    site.add_local_system("recipes", {"disk": disk}, scale)
    apply(root, "add-a-check.md")
    apply(root, "add-a-covariate.md")
    return site


def test_without_its_case_the_check_is_refused(tree):
    path = tree.root / CHECK
    complete = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r"    case = .*\n", "", complete), encoding="utf-8")
    try:
        done = tree.reframe("--system=recipes", "--dry-run", "-n", "BenchioSSFPencil")
    finally:
        path.write_text(complete, encoding="utf-8")
    assert done.returncode == 1, done.stdout + done.stderr
    (case,) = [each for each in tree.test_cases("recipes") if "Pencil" in each["name"]]
    assert (case["result"], case["fail_phase"]) == ("fail", "setup")
    for word in ("BenchioSSFPencil %", "BenchioSSF %", "'case'"):
        assert word in case["fail_reason"]


def test_check_and_covariate_are_recorded_and_shown(tree):
    done = tree.reframe("--system=recipes", "-r", "--exec-policy=serial", "-n", "BenchioSSFPencil")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [row for row in tree.rows("recipes") if row["tool"] == "benchio"]
    assert [row["perf_var"] for row in rows] == ["write_bw", "read_bw"]
    assert {row["case"] for row in rows} == {"pencil"}
    names = [field.name for field in FIELDS]
    names.insert(names.index("spread"), "memory_available_gib")
    assert list(rows[0]) == names
    assert 0 < float(rows[0]["memory_available_gib"]) < 2**20

    def iobands(*arguments):
        command = [sys.executable, "-m", "iobands", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(tree.root / "src")}
        return subprocess.run(
            command, cwd=tree.root, env=environment, capture_output=True, text=True, check=False
        ).stdout

    assert "memory_available_gib: " in iobands("explain", "disk", "write_bw")
    series = json.loads(iobands("status", "--format", "json"))["series"]
    assert [each["case"] for each in series] == ["pencil"] * 2
    assert {each["newest"]["memory_available_gib"] for each in series} == {
        float(rows[0]["memory_available_gib"])
    }
