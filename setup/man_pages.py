"""Write the man pages to the directory in the first argument, with no package but typer.

Other packages that the commands import are replaced by stand-ins, so that a build installs none.
"""

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from unittest.mock import MagicMock

_ABSENT: Final = {
    *("dateutil", "filelock", "jinja2", "jsonschema", "matplotlib", "msgspec", "numpy", "pandas"),
    *("polars", "requests", "scipy", "uplot", "urllib3", "yaml"),
}


class _Names(type):
    """The type of stand-in classes, which have every attribute and take type arguments."""

    def __getattr__(cls, name: str) -> Any:  # noqa: ANN401
        if name.startswith("__"):
            raise AttributeError(name)
        return _Value()

    def __getitem__(cls, _arguments: object) -> type:
        return cls


class _Anything(Exception):
    """The base of stand-in classes, to raise, call and inherit from with any arguments."""

    def __init__(self, *_: object, **_named: object) -> None:
        super().__init__()

    def __init_subclass__(cls, **_named: object) -> None:
        super().__init_subclass__()


def _named(name: str) -> Any:  # noqa: ANN401
    return _Names(name, (_Anything,), {}) if name[0].isupper() else _Value()


class _Value(MagicMock):
    """The stand-in for a lower-case name: a function, a number or a module."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return _named(name) if name[0].isupper() else super().__getattr__(name)


class _Empty(ModuleType):
    """A module with every attribute: a capitalised name is a class, any other a value."""

    __path__ = ()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name.startswith("__"):
            raise AttributeError(name)
        return _named(name)


class _Absent(MetaPathFinder, Loader):
    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name.partition(".")[0] in _ABSENT else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Empty(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Leave it empty."""


if __name__ == "__main__":
    sys.meta_path.insert(0, _Absent())
    here = Path(__file__).resolve().parent
    sys.path[:0] = [str(here.parent / "src"), str(here)]
    from manual import write_man_pages

    write_man_pages(Path(sys.argv[1]))
