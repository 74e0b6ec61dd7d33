"""Reads and writes files: a reader never sees half a file, and errors name the file."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from errno import EAGAIN, EEXIST, EFBIG, EINVAL, EISDIR, ENOENT, ETIMEDOUT
from pathlib import Path
from threading import Thread
from typing import BinaryIO, Final, TypeVar

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LOCK: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_PAUSE: Final = 0.1  # seconds between two tries
_ANSWER: Final = 20  # seconds in which a path is looked up, or a site file ends
_T = TypeVar("_T")


def mask_others() -> None:
    """Make new files of this process unwritable for other users, whatever umask it inherited."""
    os.umask(os.umask(0o077) | stat.S_IWOTH)


@contextmanager
def naming(path: str | Path, temporary: str | Path = "") -> Iterator[None]:
    """Put `path` into a system error that lacks a useful file name.

    The error may name no file, a descriptor's number, the last part of `path`, or `temporary`.
    """
    try:
        yield
    except OSError as error:
        name = error.filename
        if not isinstance(name, str) or name in {Path(path).name, str(temporary)}:
            error.filename = str(path)
        raise


@contextmanager
def held(path: Path, seconds: float) -> Iterator[None]:
    """Hold a lock on the file `path`, which is made if missing, in the `with` block.

    Where the file system has no locks, such as Lustre mounted without flock or NFS without its lock
    daemon, a second file beside it serves as the lock.

    Raises:
        TimeoutError: another process still holds it after `seconds`.
        OSError: the file cannot be made.
    """
    until = time.monotonic() + seconds
    with ExitStack() as stack:
        descriptor = os.open(path, _LOCK, 0o666)  # the umask decides who may lock it
        stack.callback(os.close, descriptor)
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    problem = "another process holds it; try again later"
                    raise TimeoutError(EAGAIN, problem, str(path)) from None
                time.sleep(_PAUSE)
            except OSError:
                from filelock import SoftFileLock  # noqa: PLC0415 (slow to load, rarely needed)

                stack.enter_context(SoftFileLock(f"{path}.held", timeout=seconds))
                break
        yield


def in_time(seconds: float, work: Callable[[], _T], late: Exception) -> _T:
    """Return or raise what `work` does, in a thread, as a server or a directory may hang.

    After `seconds`, raise `late`; the thread is left behind, and ends with this process.
    """
    from concurrent.futures import Future, wait  # noqa: PLC0415 (slow to load, rarely needed)

    answer: Future[_T] = Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except (Exception, SystemExit) as error:
            answer.set_exception(error)
        except BaseException as error:  # a panic of polars
            answer.set_exception(RuntimeError(str(error)))

    Thread(target=run, daemon=True).start()
    if not wait([answer], seconds).done:
        raise late
    return answer.result()


def resolved(path: Path) -> Path:
    """Return an absolute path without links.

    Raises:
        TimeoutError: its file system does not answer: no call about the path would ever return.
    """
    why = f"no answer within {_ANSWER} s; check its file system"
    return in_time(_ANSWER, path.resolve, TimeoutError(ETIMEDOUT, why, str(path)))


@contextmanager
def opened_below(directory: Path, names: Iterable[str], mode: int) -> Iterator[int]:
    """Yield a descriptor of the directory at the path `names` below `directory`.

    Missing directories are made with `mode`. No link below `directory` is followed.

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
    """Refuse a symbolic link at `path`; `directory` is a descriptor of its parent.

    Raises:
        FileExistsError: `path` is a link.
    """
    with suppress(FileNotFoundError):
        if stat.S_ISLNK(os.stat(path.name, dir_fd=directory, follow_symlinks=False).st_mode):
            raise FileExistsError(EEXIST, "is a symbolic link; remove it", str(path))


def read_small(path: Path, largest: int = 64 << 20) -> bytes:
    """Return the content of a regular file, without waiting for a pipe in its place.

    Raises:
        OSError: it is missing, cannot be read, or has more than `largest` bytes.
    """
    with naming(path), open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:  # noqa: PTH123
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(EINVAL, "is not a regular file", str(path))
        content = stream.read(largest + 1)
    if len(content) > largest:
        raise OSError(EFBIG, os.strerror(EFBIG), str(path))
    return content


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading, without waiting for a pipe in its place.

    Raises:
        OSError: it cannot be opened, or is something else.
    """
    stream = open(path, "rb", opener=lambda name, how: os.open(name, how | os.O_NONBLOCK))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(None, "not a regular file", str(path))
    return stream


def replace_file(
    path: Path,
    content: bytes,
    *,
    durable: bool = False,
    mode: int | None = None,
    directory: int | None = None,
) -> bool:
    """Write `content` so that a reader sees the old or the new file; False if they are equal.

    With `durable`, this holds after a power failure, too. The file keeps its mode; a new one gets
    `mode`, or what the umask allows. If `directory` is a descriptor, the file is written there.
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
    with naming(path, temporary):
        handle = os.open(temporary, _NEW, 0o666 if mode is None else 0o600, dir_fd=directory)
    try:
        with naming(path), os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            if mode is not None:
                os.fchmod(handle, mode)
            if durable:
                os.fsync(handle)
        with naming(path, temporary):  # which may be a directory
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
    """Return at most `most` bytes of a file in `directory`; None for a link, a pipe and so on.

    Raises:
        OSError: it cannot be read.
    """
    about = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not stat.S_ISREG(about.st_mode):
        return None
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, dir_fd=directory), "rb") as stream:
        return stream.read(min(most, about.st_size + 1))  # it takes this much memory at once


#: The number of rejected lines that are listed with a reason; further ones are counted by file.
MOST_KEPT: Final = 1000

# Errors for a file that is gone again, or is a directory: no sample is missed.
_NO_FILE: Final = (ENOENT, EISDIR)


@dataclass(frozen=True)
class Rejected:
    """A line that cannot be used; `line` counts from 1 and is 0 for a whole file.

    It stands for `lines` lines. `is_unread` means that the file or directory could not be read, so
    its content is not known.
    """

    path: Path
    line: int
    reason: str
    lines: int = 1
    is_unread: bool = False

    def __str__(self) -> str:
        """Return `file:line: reason`."""
        return f"{self.path}{f':{self.line}' if self.line else ''}: {self.reason}"


@dataclass
class Rejections:
    """Rejected lines; `listed` has the number of the file, line and reason of the first `most`."""

    most: int = MOST_KEPT
    listed: list[tuple[int, int, str]] = field(default_factory=list)
    _more: Counter[int] = field(default_factory=Counter)

    @property
    def is_full(self) -> bool:
        """Whether further lines are only counted, without a reason."""
        return len(self.listed) >= self.most

    def add(self, file: int, line: int, reason: str) -> None:
        """Reject a line."""
        if self.is_full:
            self._more[file] += 1
        else:
            self.listed.append((file, line, reason))

    def of(self, paths: list[Path]) -> Iterator[Rejected]:
        """Yield the listed lines in order, then the number of further ones in each file."""
        for file, line, reason in sorted(self.listed):
            yield Rejected(paths[file], line, reason)
        for file, lines in sorted(self._more.items()):
            noun = "line" if lines == 1 else "lines"
            yield Rejected(paths[file], 0, f"{lines} more {noun} cannot be used", lines)


def not_read(path: Path, error: OSError) -> Rejected:
    """Return the rejection of a file or directory that could not be read because of `error`."""
    is_there = error.errno is not None and error.errno not in _NO_FILE
    reason = f"cannot be read: {error.strerror or error}"
    return Rejected(path, 0, reason, is_unread=is_there)


def entries(directory: Path, rejected: list[Rejected]) -> list[Path]:
    """Return the entries of `directory`, [] without one; a failed listing goes to `rejected`."""
    try:
        # only root can read lost+found, which is there if perflogs are a file system of their own
        return sorted(each for each in directory.iterdir() if each.name != "lost+found")
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        rejected.append(not_read(directory, error))
        return []


class Unusable(ValueError):
    """A line or a file cannot be used; the message says why."""


class FileError(ValueError):
    """A file that cannot be used; the message says where, what is wrong and what to write."""


def run_in_time(path: Path, run: Callable[[], _T]) -> _T:
    """Return what `run` does with a site file, which is Python and may look at its file systems.

    Raises:
        FileError: it does not end.
    """
    what = "it may wait for a file system that does not answer"
    return in_time(_ANSWER, run, FileError(f"{path}: did not end within {_ANSWER} s; {what}"))


def mistake_in(path: Path, error: BaseException) -> str:
    """Return why a file of Python could not be read or run: the file, the line and the error."""
    if isinstance(error, FileError):
        return str(error)
    here = path.absolute()
    if isinstance(error, OSError) and error.filename and Path(error.filename).absolute() == here:
        return str(not_read(path, error))
    frames = traceback.extract_tb(error.__traceback__)
    lines = [each.lineno for each in frames if Path(each.filename).absolute() == here]
    where = f"{path}, line {lines[-1]}" if lines else path
    return f"{where}: {type(error).__name__}: {error}"


def mounts() -> list[tuple[str, str]]:
    """Return the mount points of all file systems, including bind mounts, with their types.

    Only /proc is read, as a file system may hang. Without /proc, the list is empty.
    """
    try:
        table = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return mounts_in(table)


def mounts_in(table: str) -> list[tuple[str, str]]:
    """Return the mount points and types in the text of /proc/self/mountinfo; see proc(5).

    A target on a server of Lustre has `lustre_tgt`, as mount.lustre_tgt(8) calls it.
    """
    found = []
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        point, (kind, *source) = before.split()[4:5], after.split()[:2] or [""]
        if point and kind:
            plain = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), point[0])
            is_target = kind == "lustre" and ":/" not in "".join(source)  # a client names the MGS
            found.append((plain, "lustre_tgt" if is_target else kind))
    return found
