"""The sources never use data as the name of a file, a command or an option.

Only `path_part` makes a part of a path from data, and few modules start programs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from iobands.model import FileError, path_part

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    path for room in ("src/iobands", "checks", "config") for path in (ROOT / room).rglob("*.py")
]

#: Modules that start programs, or run Python code other than by import statements.
STARTS = {
    "src/iobands/measure/reframe.py": {"subprocess"},
    "src/iobands/measure/run_directories.py": {"subprocess", "import_module"},
    "src/iobands/notify/channels.py": {"subprocess"},
    # also for `iobands doctor` and for a new site file: the programs of this machine
    "src/iobands/measure/processes.py": {"subprocess"},
    # ReFrame, by hand
    "src/iobands/commands/doctor.py": {"execv"},
    # site files, by their names in config/systems
    "config/site.py": {"exec_module"},
    "src/iobands/source/site_file.py": {"run_path"},
    # the common part of site files, in a file next to them
    **{
        f"config/systems/{name}.py": {"run_path"}
        for name in ("archer2", "frontera", "lonestar6", "lumi", "mahti", "puhti")
    },
    # modules whose names are in the source
    "config/validation.py": {"import_module"},
    "src/iobands/commands/main.py": {"import_module"},
    "src/iobands/measure/inside.py": {"import_module"},
    # benchio in a process that may hang, and how the checks read its results
    "src/iobands/measure/canary.py": {"subprocess", "fork"},
    "src/iobands/source/store.py": {"import_module"},
    # our own SQL, with data only in its parameters
    "src/iobands/source/postgres.py": {"execute"},
}
CODE = {"exec", "eval", "compile", "__import__", "import_module", "run_path", "run_module"}
CODE |= {"exec_module", "system", "popen", "fork", "forkpty", "_fork", "posix_spawn"}
#: Fields with values from perflogs, run reports and site files.
NAMES = {"system", "partition", "environ", "file_system", "check", "case", "job", "jobid", "label"}


def name_of(node: ast.AST) -> str | None:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
    return None


def starts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in CODE:
                yield name
            case ast.Call(func=ast.Attribute(value=value, attr=name)):
                if name_of(value) == "subprocess":
                    yield "subprocess"
                elif (name in CODE and name_of(value) != "re") or name.startswith(
                    ("exec", "spawn")
                ):
                    yield name
            case ast.ImportFrom(module="subprocess" | "pty" | "multiprocessing"):
                yield node.module or ""


def parts_by_data(tree: ast.AST) -> Iterator[str]:
    """Yield the parts of paths that are unchecked fields of data."""
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(op=ast.Div(), right=ast.JoinedStr(values=values)):
                parts = [part.value for part in values if isinstance(part, ast.FormattedValue)]
            case ast.BinOp(op=ast.Div(), right=right):
                parts = [right]
            case ast.Call(func=ast.Name(id="Path") | ast.Attribute(attr="joinpath"), args=args):
                parts = list(args)
            case _:
                continue
        for part in parts:
            is_text = isinstance(part, ast.Call) and name_of(part.func) == "str"
            name = name_of(part.args[0] if is_text else part)
            if name in NAMES:
                yield f"line {part.lineno}: {name}"


def found(path: Path, search) -> list[str]:
    return list(search(ast.parse(path.read_text(encoding="utf-8"))))


def test_few_modules_start_programs():
    who = {str(path.relative_to(ROOT)): {*found(path, starts)} for path in SOURCES}
    assert {path: what for path, what in who.items() if what} == STARTS


def test_no_shell_is_given_a_line():
    for path in SOURCES:
        assert "shell=True" not in path.read_text(encoding="utf-8"), path


def test_names_of_data_go_through_one_function_into_paths():
    wrong = {str(path): parts for path in SOURCES if (parts := found(path, parts_by_data))}
    assert wrong == {}


def test_the_searches_find_what_they_are_for():
    text = "os.system(x); import_module(y); p / key.system; q / f'{system}.py'; Path(row['job'])"
    tree = ast.parse(text)
    assert [*starts(tree)] == ["system", "import_module"]
    assert len([*parts_by_data(tree)]) == 3


@pytest.mark.parametrize("name", ["here", "archer2-tds", "a b", "π", "x" * 200])
def test_a_name_is_a_part_of_a_path(name):
    assert path_part(name) == name


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../evil", "/etc", "a/b", ".hidden", "-rf", "a\n", "a\0", "\x7f", "x" * 201],
)
def test_what_leads_elsewhere_is_none(name):
    with pytest.raises(FileError, match="part of a path"):
        path_part(name)
