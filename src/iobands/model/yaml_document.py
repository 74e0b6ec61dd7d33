"""Reading YAML that people write: a document with line numbers, or an error that has one."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import yaml

from iobands.model.replaced import read_small
from iobands.model.schema import Document, FileError, Steps

_MOST_VALUES: Final = 1_000_000
# libyaml where PyYAML was built with it: ten times as fast
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):  # type: ignore[misc]
    """A safe loader that refuses a key given twice, where YAML quietly takes the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable):
                if key in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key!r} is given twice", key_node.start_mark
                    )
                seen.add(key)
        return cast(dict[Hashable, Any], super().construct_mapping(node, deep))


def read_content(path: Path) -> bytes:
    """Return what is in the file at `path`.

    Raises:
        FileError: it cannot be read.
    """
    try:
        return read_small(path)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from error


def parse_yaml(content: bytes, path: Path) -> Document:
    """Return what `content` says, which stands in the file at `path`.

    Raises:
        FileError: it is not UTF-8, not YAML, gives a key twice, or repeats itself without end.
    """
    try:
        loader = _Loader(content.decode("utf-8-sig"))
        root = loader.get_single_node()
        value = loader.construct_document(root) if root else None
        if _count(value, {}) > _MOST_VALUES:
            raise yaml.YAMLError(f"its aliases stand for more than {_MOST_VALUES} values")
    except UnicodeDecodeError as error:
        raise FileError(
            f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8"
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        problem = error.problem or error.context or "not YAML"
        raise FileError(f"{path}{line}: {problem}; correct the YAML there") from error
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        problem = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FileError(f"{path}: not readable as YAML: {problem}") from error
    return Document(str(path), value, lambda steps: _line(root, steps))


@cache
def load_schema(path: Path) -> dict[str, Any]:
    """Return the JSON Schema in a YAML file of ours."""
    return cast(dict[str, Any], yaml.load(path.read_bytes(), Loader=_SafeLoader))  # noqa: S506


def _count(value: object, counts: dict[int, float]) -> float:
    """Return how many values there are in `value`, each as often as an alias repeats it."""
    if not isinstance(value, list | dict):
        return 1
    if id(value) not in counts:
        counts[id(value)] = float("inf")  # while it is counted: it is a part of itself
        inside = value.values() if isinstance(value, dict) else value
        counts[id(value)] = 1 + sum(_count(each, counts) for each in inside)
    return counts[id(value)]


def _line(node: yaml.Node | None, steps: Steps) -> int | None:
    """Return the line of what `steps` lead to, as far as they lead."""
    key = node
    for step in steps:
        if isinstance(node, yaml.SequenceNode):
            key = node = node.value[step]
        elif isinstance(node, yaml.MappingNode):
            pairs = (pair for pair in node.value if pair[0].value == step)
            key, node = next(pairs, (key, None))
    return None if key is None else key.start_mark.line + 1
