"""The scripts of a dry run, without what differs between machines and users."""

import os
import re
from pathlib import Path

import pytest

from tests.site_copy import SiteCopy

GOLDEN = Path(__file__).parent / "golden"

# Variables that a user may have set, and that must not affect a test.
_OURS = ("IOBANDS_", "SBATCH_")


def dry_run(site: SiteCopy, *arguments: str, **environment: str) -> str:
    """Return ReFrame's output; it gets accounts and directories only from `environment`."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(_OURS)]:
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        run = site.reframe("--dry-run", *arguments)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def fill_in(site: SiteCopy) -> None:
    """Fill in the values marked EDIT in the template, as a person does."""
    path = site.root / "config" / "systems" / "example.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("/EDIT", "/z01").replace('"EDIT"', '"z01"'), encoding="utf-8")


def scripts(site: SiteCopy, kind: str) -> dict[str, str]:
    """Return the scripts rfm_<kind>.sh of all but preflight checks, by their path below stage/."""
    found = {}
    for path in sorted((site.root / "stage").rglob(f"[!E]*/rfm_{kind}.sh")):
        text = path.read_text(encoding="utf-8").replace(str(site.root), "ROOT")
        text = re.sub(r"(Benchio\w*?)_[0-9a-f]{8}", r"\1_HASH", text)
        found[str(path.parent.relative_to(site.root / "stage"))] = text
    assert found
    return found


def directives(script: str, mark: str) -> list[str]:
    """The lines that begin with `mark`, without it."""
    return [
        line.removeprefix(mark).strip() for line in script.splitlines() if line.startswith(mark)
    ]


def hold_against_golden(text: str, name: str, store: bool) -> None:
    """Fail unless `text` equals golden/<name>; with `store`, write it there first."""
    stored = GOLDEN / name
    if store:
        stored.write_text(text, encoding="utf-8")
    assert text == stored.read_text(encoding="utf-8")
