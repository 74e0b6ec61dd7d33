"""benchio(1): complete, well-formed, and with examples that run."""

import re
import shutil
import subprocess

import pytest

from tests.kernel.conftest import SOURCES
from tests.kernel.test_caches import is_in_memory

PAGE = SOURCES / "benchio.1"
EXAMPLES = [
    line
    for block in re.findall(r"^\.EX\n(.*?)^\.EE", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    for line in block.replace("\\-", "-").replace("\\\\\n", "").splitlines()
]


def formatted():
    if shutil.which("groff") is None:
        pytest.skip("there is no groff")
    return subprocess.run(
        ["groff", "-man", "-ww", "-Tascii", "-P-c", str(PAGE)],
        capture_output=True,
        text=True,
        check=True,
    )


def test_it_has_no_mistakes():
    assert formatted().stderr == ""


def test_it_has_every_option_and_layer(benchio):
    page = re.sub(r".\x08", "", formatted().stdout)
    help_text = benchio.run_alone("--help").out
    options = re.findall(r"^(--[a-z-]+)", help_text, re.MULTILINE)
    assert len(options) > 20
    assert [option for option in options if not re.search(rf"^ +.*{option}\b", page, re.M)] == []
    described = page[page.index("LAYERS") : page.index("OPTIONS")]
    headings = " ".join(re.findall(r"^       \S.*\n", described, re.MULTILINE))
    assert [
        layer for layer in benchio.layers() if not re.search(rf"(^|\s){layer}(,|\s)", headings)
    ] == []


@pytest.mark.parametrize("example", EXAMPLES[:-2], ids=str)
def test_an_example_runs(benchio, example):
    words = example.split()
    assert words[:2] == ["mpirun", "-n"]
    assert words[3] == "benchio"
    if "--direct" in words and is_in_memory(benchio.cwd):
        pytest.skip("the file system is in memory")
    done = benchio.run(*words[4:], ranks=int(words[2]))
    required_but_unknown = "--require-hints" in words and "gives no proof" in done.err
    assert done.status == 0 or required_but_unknown, done.err


def test_the_last_two_examples_run_one_after_the_other(benchio):
    for example in EXAMPLES[-2:]:
        words = example.split()
        done = benchio.run(*words[4:], ranks=int(words[2]))
        assert done.status == 0, done.err
    assert len(list(benchio.cwd.glob("proc*.dat"))) == 4
