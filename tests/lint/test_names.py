"""One name, one meaning: no two classes of the package are called the same."""

import ast
from collections import defaultdict
from pathlib import Path

import iobands

PACKAGE = Path(iobands.__file__).parent


def test_no_two_classes_have_one_name():
    places = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    assert len(places) > 100
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
