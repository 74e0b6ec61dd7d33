"""One name, one meaning: no two public names of the package's modules are the same."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import iobands
from iobands.commands.main import COMMANDS
from tests.site_copy import ROOT

PACKAGE = Path(iobands.__file__).parent

#: A function of `iobands.commands` is called as its command, as is one of the package itself.
OF_COMMANDS = {function for rows in COMMANDS.values() for _, function, _ in rows.values()}


def defined(path: Path) -> Iterator[str]:
    """Yield the public names that a module defines."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                found = [name]
            case ast.AnnAssign(target=ast.Name(id=name)):
                found = [name]
            case ast.Assign(targets=targets):
                found = [target.id for target in targets if isinstance(target, ast.Name)]
            case _:
                continue
        yield from (name for name in found if not name.startswith("_"))


def test_no_two_modules_define_one_name():
    places = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        named_after = OF_COMMANDS if path.parent in {PACKAGE, PACKAGE / "commands"} else set()
        for name in {*defined(path)} - named_after:
            places[name].append(str(path.relative_to(PACKAGE)))
    assert len(places) > 700
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_term_of_the_glossary_is_explained_twice():
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| \*\*(.+?)\*\* \|", glossary, re.MULTILINE)
    terms = [term for cell in cells for term in cell.split(", ")]
    assert len(terms) > 60
    assert sorted(terms) == sorted(set(terms))
