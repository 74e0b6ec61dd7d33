"""Changing a YAML file as people keep it: comments and order stay, and it is replaced whole.

What the writers of bands and of alarms have in common. May know: ruamel.yaml, and how such
files are read, which PyYAML does; nothing of what they say.
"""

from __future__ import annotations

import difflib
import fcntl
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedSeq
from ruamel.yaml.error import YAMLError
from yaml import ScalarNode
from yaml.resolver import Resolver

from iobands.model.schema import FileError

#: Says what is wrong with the content of the file at a path, if anything is.
Check = Callable[[bytes, Path], object]

_MARK = b"\xef\xbb\xbf"
_READABLE = 0o666
_TEXT = "tag:yaml.org,2002:str"
_READER = Resolver()


class Overtaken(FileError):
    """The file was changed by somebody else meanwhile."""


@dataclass(frozen=True)
class Change:
    """What shall become of the file at `path`; `before` is None where there is no file."""

    path: Path
    before: bytes | None
    after: bytes

    def diff(self) -> str:
        """Return the change as a unified diff."""
        old = (self.before or b"").decode("utf-8-sig").splitlines(keepends=True)
        new = self.after.decode("utf-8-sig").splitlines(keepends=True)
        name = str(self.path)
        lines = difflib.unified_diff(old, new, name if self.before else "/dev/null", name)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def write(self) -> None:
        """Put the new file in the place of the old one, whole or not at all.

        Raises:
            Overtaken: the file was changed by somebody else meanwhile.
            FileError: it cannot be written.
        """
        path = self.path.resolve()  # of a link the file is written, and the link stays
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with _alone_in(path.parent):
                if _content(path) != self.before:
                    raise Overtaken(f"{self.path}: was changed meanwhile; try again")
                self._replace(path)
        except OSError as error:
            raise FileError(f"{self.path}: cannot be written: {error.strerror}") from error

    def _replace(self, path: Path) -> None:
        mode = path.stat().st_mode & 0o7777 if self.before is not None else _READABLE & ~_umask()
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as new:
            try:
                new.write(self.after)
                new.flush()
                os.fsync(new.fileno())
                Path(new.name).chmod(mode)
                Path(new.name).replace(path)
            except BaseException:
                Path(new.name).unlink(missing_ok=True)
                raise


class Document:
    """A file that is being changed: `content` is what it says, as ruamel.yaml holds it."""

    def __init__(self, path: Path, new: str, check: Check) -> None:
        """Open the file at `path`, or take it for the text `new` where there is none.

        `check` looks at what is there and at what it becomes.

        Raises:
            FileError: the file cannot be read or kept as it is written, or `check` says so.
        """
        self._path, self._check = path, check
        try:
            self._before = _content(path)
        except OSError as error:
            raise FileError(f"{path}: cannot be read: {error.strerror}") from error
        if self._before is not None:
            check(self._before, path)  # says what is wrong far better than ruamel.yaml would
            new = self._before.decode("utf-8-sig")
        self._yaml = _least_changing(new, path)
        self.content: Any = self._yaml.load(new)

    def items(self, name: str) -> Any:  # noqa: ANN401 (ruamel.yaml has no types)
        """Return the list `name`, to be appended to."""
        if not self.content[name]:  # `[]` is in the flow style, and so would be all that is added
            self.content[name] = CommentedSeq()
        return self.content[name]

    def change(self) -> Change:
        """Return the change from what is there to what `content` now is.

        Raises:
            FileError: `check` says so.
        """
        after = _dumped(self._yaml, self.content).encode()
        if self._before is not None and self._before.startswith(_MARK):
            after = _MARK + after
        self._check(after, self._path)
        return Change(self._path, self._before, after)


def plain(value: object) -> object:
    """Return whole numbers without a fraction, as people write them."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Keep others of our kind from writing in `directory`, where the file system can do that."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)  # ends the lock too


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _least_changing(text: str, path: Path) -> YAML:
    """Return the round trip, out of the usual ways to indent, that changes `text` least."""
    lines = text.splitlines()

    def changed(yaml: YAML) -> int:
        try:
            again = _dumped(yaml, yaml.load(text)).splitlines()
        except YAMLError as error:
            raise FileError(f"{path}: cannot be kept as it is written: {error}") from error
        return sum(line[0] in "+-" for line in difflib.unified_diff(lines, again, n=0))

    return min((_round_trip(4, 2), _round_trip(2, 0), _round_trip(6, 4)), key=changed)


def _round_trip(sequence: int, offset: int) -> YAML:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 2**20  # no line is wrapped that was not
    yaml.indent(mapping=2, sequence=sequence, offset=offset)
    # the contracts' own spelling; ruamel.yaml writes nothing at all
    yaml.representer.add_representer(
        type(None), lambda out, _: out.represent_scalar("tag:yaml.org,2002:null", "null")
    )
    yaml.representer.add_representer(str, _text)
    return yaml


def _text(out: Any, text: str) -> object:  # noqa: ANN401 (ruamel.yaml has no types)
    """Put quotes around `no`, `12:30` and what else is a text in YAML 1.2 alone.

    Our reader is PyYAML, and so YAML 1.1, where they are a truth and a number.
    """
    read_as = _READER.resolve(ScalarNode, text, (True, False))
    return out.represent_scalar(_TEXT, text, style=None if read_as == _TEXT else "'")


def _dumped(yaml: YAML, document: object) -> str:
    out = io.StringIO()
    yaml.dump(document, out)
    return out.getvalue()
