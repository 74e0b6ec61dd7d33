"""The man pages have each command and option, as the commands describe themselves."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from iobands.commands.main import COMMANDS
from setup.manual import Page, markdown, pages, roff
from tests.site_copy import ROOT

PAGES = {page.name: page for page in pages()}


def test_each_command_has_a_page() -> None:
    names = [f"iobands {name}" for rows in COMMANDS.values() for name in rows]
    verbs = [f"iobands maintenance {verb}" for verb in ("begin", "end", "report")]
    assert [name for name in PAGES if name not in verbs] == ["iobands", *names]
    assert set(verbs) <= set(PAGES)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_every_public_option_is_documented(page: Page) -> None:
    assert len(page.summary) > 10
    rows = dict([*page.arguments, *page.options])
    # a default value alone is no description
    assert {
        name for name, said in rows.items() if not re.sub(r"\[[^]]*\]", "", said).strip()
    } == set()
    assert page.options[-1][0] in {"-h, --help", "--help"}
    section = markdown(page).replace("\\|", "|").replace("&lt;", "<")
    assert [name for name, said in rows.items() if f"| `{name}` | {said} |" not in section] == []


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_groff_has_no_complaint_about_a_page(page: Page) -> None:
    command = ["groff", "-man", "-Tascii", "-P-c", "-ww"]
    done = subprocess.run(command, input=roff(page), capture_output=True, text=True, check=True)
    assert done.stderr == ""
    printed = " ".join(re.sub(".\b", "", done.stdout).split()).replace("- ", "-")
    for name, _ in page.options:
        assert name in printed


def test_code_is_bold_and_no_line_is_taken_as_a_request() -> None:
    page = Page("iobands x", "do", "iobands x", [".hidden `a-b` \\ c"], [("X", "'t is")], [])
    text = roff(page)
    assert "\n\\&.hidden \\fBa\\-b\\fR \\e c\n" in text
    assert "\n\\&'t is\n" in text


def test_a_build_writes_the_same_pages_without_the_packages(tmp_path: Path) -> None:
    script = ROOT / "setup" / "man_pages.py"
    subprocess.run([sys.executable, script, tmp_path], check=True)
    written = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    assert written == {f"{page.file}.1": roff(page) for page in PAGES.values()}
