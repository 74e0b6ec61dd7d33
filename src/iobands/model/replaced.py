"""Files that a reader sees whole at any time, and errors that name their file."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from errno import EEXIST, EFBIG, EINVAL
from pathlib import Path
from typing import Final

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def mask_others() -> None:
    """Let all users write nothing that this process makes, whatever umask it was started with."""
    os.umask(os.umask(0o077) | stat.S_IWOTH)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name `path` in an error of the system that names no file, as that of a descriptor."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def opened_below(directory: Path, names: Iterable[str], mode: int) -> Iterator[int]:
    """Open the directory `names` below `directory`, and make what is missing with `mode`.

    No link below `directory` is followed.

    Raises:
        FileExistsError: a link is in place of a directory; the message says what to do.
        OSError: a directory cannot be opened or made.
    """
    with ExitStack() as stack:
        descriptor = os.open(directory, _DIRECTORY)
        stack.callback(os.close, descriptor)
        path = directory
        for name in names:
            path /= name
            refuse_link(path, descriptor)
            with naming(path), suppress(FileExistsError):
                os.mkdir(name, mode, dir_fd=descriptor)
                os.chmod(name, mode, dir_fd=descriptor)
            with naming(path):
                descriptor = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            stack.callback(os.close, descriptor)
        with naming(path):
            yield descriptor


def refuse_link(path: Path, directory: int) -> None:
    """Refuse a link in the place of `path`, whose parent is open as `directory`.

    Raises:
        FileExistsError: there is one.
    """
    with suppress(FileNotFoundError):
        if stat.S_ISLNK(os.stat(path.name, dir_fd=directory, follow_symlinks=False).st_mode):
            raise FileExistsError(EEXIST, "is a symbolic link; remove it", str(path))


def read_small(path: Path, largest: int = 64 << 20) -> bytes:
    """Return the content of a regular file; a pipe in its place is not waited for.

    Raises:
        OSError: there is none, it cannot be read, or has more than `largest` bytes.
    """
    with naming(path), open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:  # noqa: PTH123
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(EINVAL, "is no regular file", str(path))
        content = stream.read(largest + 1)
    if len(content) > largest:
        raise OSError(EFBIG, os.strerror(EFBIG), str(path))
    return content


def replace_file(
    path: Path,
    content: bytes,
    *,
    durable: bool = False,
    mode: int | None = None,
    directory: int | None = None,
) -> bool:
    """Write `content` so that a reader sees the old file or the new one; False if it is there.

    With `durable` so does a reader after a power failure. The file keeps its mode; a new one has
    `mode`, or what the umask leaves. With the descriptor `directory` the name of `path` is there.
    """
    name, temporary = path, path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}")
    if directory is not None:
        name, temporary = Path(name.name), Path(temporary.name)
    with suppress(FileNotFoundError):
        about = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISREG(about.st_mode):
            mode = stat.S_IMODE(about.st_mode)
            same_size = about.st_size == len(content)
            if same_size and read_regular(name, directory, len(content) + 1) == content:
                return False
    handle = os.open(temporary, _NEW, 0o666 if mode is None else 0o600, dir_fd=directory)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            if mode is not None:
                os.fchmod(handle, mode)
            if durable:
                os.fsync(handle)
        os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        raise
    if durable:
        with opened_below(path.parent, (), 0) as descriptor:
            os.fsync(descriptor)
    return True


def read_regular(name: str | Path, directory: int | None, most: int) -> bytes | None:
    """Return at most so many bytes of a file in `directory`; None of a link, a pipe and so on.

    Raises:
        OSError: it cannot be read.
    """
    if not stat.S_ISREG(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
        return None
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, dir_fd=directory), "rb") as stream:
        return stream.read(most)
