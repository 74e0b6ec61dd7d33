"""Files that a reader sees whole at any time, and errors that name their file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_READABLE: Final = 0o644  # by a web server, which mkstemp's own mode is not


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name `path` in an error of the system that names no file, as that of a descriptor."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def replace_file(path: Path, content: bytes, *, durable: bool = False) -> bool:
    """Write `content` so that a reader sees the old file or the new one; False if it is there.

    With `durable` so does a reader after a power failure.
    """
    if path.is_file() and path.read_bytes() == content:
        return False
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            if durable:
                stream.flush()
                os.fsync(handle)
        temporary.chmod(_READABLE)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    return True
