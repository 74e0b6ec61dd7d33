"""Each command in the documents exists with its options, and works on the made-up site."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from datetime import datetime, timezone
from pathlib import Path

import pytest
import typer

from iobands.commands.main import app
from tests.conftest import Command
from tests.site_copy import ROOT
from tests.sites import whole_demo

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "decisions" not in page.parts]
#: Commands with their own tests: they measure, send, read other files or need a terminal.
ELSEWHERE = {"run", "notify", "init", "import", "clean", "cost", "schedule", "reframe", "demo"}
ELSEWHERE |= {"accept", "canary", "doctor", "push", "pull"}
#: A word that stands for another one.
PLACEHOLDER = re.compile(r"[<…]|\.\.\.$|\b[A-Z]{4,}\b|^[+-]")


def commands(page: Path) -> list[list[str]]:
    """Return the words of each `iobands` command on a page, in blocks and in the text."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    lines, in_block = [], False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            in_block = not in_block
        elif in_block:
            lines.append(line.strip())
        else:
            lines += re.findall(r"`(iobands [a-z][^`]*)`", line)
    found = []
    for line in lines:
        if line.startswith("iobands ") and "|" not in line.partition("#")[0]:
            words = shlex.split(line, comments=True)[1:]
            found.append(words[: [*words, ">"].index(">")])
    return found


ALL = {
    shlex.join(words): (words, page.relative_to(ROOT)) for page in PAGES for words in commands(page)
}


@pytest.mark.parametrize(("words", "page"), ALL.values(), ids=ALL)
def test_the_command_and_its_options_exist(words: list[str], page: Path) -> None:
    root = typer.main.get_command(app)
    context = typer.Context(root, info_name="iobands")
    if words[0].startswith("-"):
        assert words[0] in {"--version", "--help", "--install-completion"}
        return
    command = root.get_command(context, words[0])
    assert command is not None, f"{page}: iobands {words[0]}"
    command = getattr(command, "commands", {}).get(words[1], command) if words[1:] else command
    options = {name for each in command.get_params(context) for name in (*each.opts, "-h")}
    given = [word.partition("=")[0] for word in words[1:] if word.startswith("-")]
    own = given[: given.index("--")] if "--" in given else given
    assert set(own) - options == set(), f"{page}: {shlex.join(words)}"


def works_on_the_demo(words: list[str]) -> bool:
    """Whether a command is complete, and needs nothing but the site."""
    elsewhere = words[0] in ELSEWHERE or not {"--measure", "--store"}.isdisjoint(words)
    return not elsewhere and not any(map(PLACEHOLDER.search, words))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("docs") / "demo"
    whole_demo(root, datetime.now(timezone.utc))
    return root


def environment(home: Path) -> dict[str, str]:
    """The environment of a user whose PATH begins with this iobands."""
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": programs, "HOME": str(home), "TERM": "dumb"}


#: Commands that need more than the site, with their messages without it.
LACKS = {
    "table --check docs/user-guide/io.md": "no such file",
    "calibrate": "there is no terminal",
    "status --as-of": "no samples",
    "discard": "no sample",
    "compare": "no two series",
    "maintenance end": "is open",
    "maintenance begin": "missing option",
}
ALONE = {"status", "targets", "alerts", "table", "advise", "calibrate"}


def is_whole(words: list[str]) -> bool:
    """Whether a command is more than a mention."""
    return len(words) > 1 or words[0] in ALONE


#: Commands with subcommands.
VERBS = {"maintenance"}
#: One command of each set of options.
RUN = {
    (*words[: 1 + (words[0] in VERBS)], *(word for word in words if word.startswith("-"))): words
    for words, _ in ALL.values()
    if works_on_the_demo(words) and is_whole(words)
}


@pytest.mark.parametrize("words", RUN.values(), ids=map(shlex.join, RUN))
def test_it_works_on_the_made_up_site(
    words: list[str], demo: Path, tmp_path: Path, iobands: Command
) -> None:
    place = tmp_path / "site"
    shutil.copytree(demo, place)
    done = iobands(*words, cwd=place, HOME=str(tmp_path), TERM="dumb")
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    if done.returncode == 3:
        wanted = next(text for name, text in LACKS.items() if shlex.join(words).startswith(name))
        assert wanted in said.lower()


def test_each_target_of_make_exists() -> None:
    phony = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        named = re.findall(r"(?:^\s*|`)make ([a-z][\w-]*)", page.read_text("utf-8"), re.MULTILINE)
        assert set(named) <= set(phony[0].split()), page
