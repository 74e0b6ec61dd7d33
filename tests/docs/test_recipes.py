"""The recipes of docs/howto, followed step by step in a copy of the tree, with a real ReFrame."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from iobands.model import FIELDS
from tests.site_copy import ROOT, copy_suite

CHECK = "checks/tools/benchio/pencil.py"
SCALE = {"nodes": 1, "tasks_per_node": 2, "mib_per_task": 1}


def blocks(page, language):
    """Return a page's code blocks in `language`, each with the file named in the text before it."""
    text = (ROOT / "docs" / "howto" / page).read_text(encoding="utf-8")
    block = rf"^([^`\n]*(?:`[^`\n]*`[^`\n]*)+)\n\n```{language}\n(.*?)```"
    found = re.findall(block, text, re.MULTILINE | re.DOTALL)
    return [(re.findall(r"`([^`]+/[^`]+)`", before)[-1], code) for before, code in found]


def apply(root, page):
    """Apply a page's recipe: write its new files, and add the lines of its diffs."""
    for path, code in [*blocks(page, "python"), *blocks(page, "bash")]:
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
    """A copy of the tree with both recipes applied, and a small system."""
    root = tmp_path_factory.mktemp("tree")
    site = copy_suite(root, CHECK)
    (root / "src").unlink()
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "iobands", root / "src" / "iobands", ignore=ignored)
    (root / "src" / "benchio").symlink_to(ROOT / "src" / "benchio")
    disk = {"path": str(tmp_path_factory.mktemp("disk")), "type": "posix", "medium": "disk"}
    site.add_local_system("recipes", {"disk": disk}, SCALE)
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

    assert "memory_available_gib: " in " ".join(iobands("explain", "disk", "write_bw").split())
    series = json.loads(iobands("status", "--format", "json"))["series"]
    assert [each["key"]["case"] for each in series] == ["pencil"] * 2
    assert {each["history"]["newest"]["memory_available_gib"] for each in series} == {
        float(rows[0]["memory_available_gib"])
    }


#: A made-up command of a made-up file system; one of its targets is down.
EXFS = """\
#!/bin/sh
kept=$(dirname "$0")/layout
case $1 in
targets) printf '%s\\n' '0 up' '1 up' '2 up' '3 down' ;;
stripe) [ "$#" -eq 6 ] && [ -d "$6" ] && echo "$3 targets, $5 bytes" >"$kept" ;;
show) shift; for file; do echo "$file: $(cat "$kept")"; done ;;
esac
"""


def test_a_type_of_file_system_is_one_file_plus_a_script_plus_a_row(tmp_path):
    site = copy_suite(tmp_path / "tree", CHECK.replace("pencil", "check"))
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("docs", "tests"):
        shutil.copytree(ROOT / name, site.root / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", site.root)
    apply(site.root, "add-a-file-system.md")

    # check it with the tests in the copy, as the page says
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    words = [*command, "tests/config/test_contract.py", "-k", "types or words or striping"]
    done = subprocess.run(words, cwd=site.root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

    exfs = tmp_path / "bin" / "exfs"
    exfs.parent.mkdir()
    exfs.write_text(EXFS)
    exfs.chmod(0o755)
    disk = tmp_path / "disk"
    disk.mkdir()
    df = ["df", "--output=fstype", disk]
    mounted = subprocess.run(df, capture_output=True, text=True, check=True).stdout.split()[-1]
    place = {
        "path": str(disk),
        "type": "examplefs",
        "medium": "disk",
        "stripe_counts": [2, -1],
        "striping": {"size_kib": 1024},
        "max_inactive_targets": 1,
        "mounted_as": mounted,
    }
    site.add_local_system("example", {"disk": place}, SCALE)
    path = f"{exfs.parent}:{os.environ['PATH']}"
    arguments = ("--system=example", "-r", "--exec-policy=serial", "-n", "BenchioFPP")
    done = site.reframe(*arguments, env={**os.environ, "PATH": path})
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [row for row in site.rows("example") if row["perf_var"] == "write_bw"]
    names = ("stripe_count_asked", "stripe_count", "stripe_size", "targets_active")
    assert [[row[name] for name in names] for row in rows] == [
        ["2", "2", "1048576", "3"],
        ["-1", "3", "1048576", "3"],
    ]
    assert {row["targets_inactive"] for row in rows} == {"1"}
    assert rows[0]["striping_command"] == "exfs stripe --count 2 --size 1048576"

    # a layout other than the requested one
    exfs.write_text(EXFS.replace('echo "$3', 'echo "1'))
    done = site.reframe(*arguments, env={**os.environ, "PATH": path})
    assert done.returncode == 1
    said = [case["fail_reason"] for case in site.test_cases("example") if case["fail_reason"]]
    assert any("stripe count requested: 2; in effect: 1" in each for each in said)


def test_the_code_of_the_recipes_passes_make_lint(tmp_path):
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("checks", "docs", "src/iobands", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for page in ("check", "covariate", "file-system"):
        apply(tmp_path, f"add-a-{page}.md")
    apply(tmp_path, "add-an-engine.md")
    changed = "checks src tests/source/engines.py"
    for linter in (f"ruff check {changed}", f"ruff format --check {changed}", "mypy src/iobands"):
        command = [sys.executable, "-m", *linter.split()]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
