"""Sealed caches beside the perflogs, so that each session parses only the lines since the last.

Nothing depends on them. Each may be deleted at any time, and counts as missing if it is damaged or
of another version. The cache of perflogs has their typed lines, which are used as long as a perflog
still begins with the bytes that they were read from. A list beside it has the perflogs that a
session has compared so, and a reader trusts it until a perflog changes: years of perflogs on a
shared file system take seconds to read.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Final, TypeVar

import msgspec
import numpy as np
import polars as pl

from iobands.model import __version__, open_regular, read_regular, replace_file
from iobands.snapshot import Columns, Source
from iobands.source.lines import FILE, ROWS, SAID

_NAME: Final = "read.memory"
_SEEN: Final = "seen.memory"
# Of two changes less than this apart (ns), the file system may date both alike.
_TICK: Final = 2 * 10**9
_LARGEST: Final = 2**31
_SEAL: Final = 32  # bytes
_BLOCK: Final = 2**18
#: The cache is rewritten once new rows exceed this share of the cached ones: to parse fewer again
#: costs less than to write all.
KEPT_FROM: Final = 0.05

_T = TypeVar("_T")


@dataclass(frozen=True)
class Reach:
    """How far a perflog was read: `lines` lines in `end` bytes; `columns` is the last header.

    `changed` is the file's time of change, in ns. A packed file is cached `whole` or not at all.
    """

    end: int
    lines: int
    columns: tuple[str, ...]
    changed: int
    whole: bool


#: A perflog as it was compared: inode, bytes, time of change (ns), and the checksum found.
_Seen = tuple[int, int, int, int]


@dataclass(frozen=True)
class Kept:
    """Parsed lines of perflogs, as in `Parsed`, with the numbers of their files.

    `seen` has the perflogs of each directory of a system that were compared.
    """

    rows: Columns = field(default_factory=lambda: Columns.of(pl.DataFrame(schema=ROWS)))
    said: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SAID))
    rejected: Sequence[tuple[int, int, str]] = ()
    reached: Mapping[int, Reach] = field(default_factory=dict)
    seen: Mapping[Path, Mapping[str, _Seen]] = field(default_factory=dict)


@dataclass(frozen=True)
class _File:
    """A perflog: its path below the directory, its number, and the checksum of what was read."""

    path: str
    number: int
    reached: Reach
    checksum: int


@dataclass(frozen=True)
class _Stored:
    """The content of a cache of perflogs; `rows` and `said` are Parquet files."""

    files: list[_File]
    rejected: list[tuple[int, int, str]]
    rows: bytes
    said: bytes


def _decoded(body: bytes) -> _Stored:
    found = msgspec.msgpack.decode(body, type=_Stored)
    numbers = [each.number for each in found.files]
    for each, schema in ((found.rows, ROWS), (found.said, SAID)):
        rows = Columns([Source.of(each)], schema)
        if pl.read_parquet_schema(each) != schema or not rows[FILE].is_in(numbers).all():
            raise ValueError("other columns or files")
    return found


def read_kept(directory: Path, paths: Sequence[Path]) -> Kept:
    """Return the cached lines of the perflogs that still begin with the bytes that were parsed."""
    numbers = {path.relative_to(directory).as_posix(): n for n, path in enumerate(paths)}
    found, sources = Kept(), [Source(pl.LazyFrame(schema=ROWS))]
    for place in sorted({directory / Path(name).parts[0] for name in numbers}):
        if (stored := read_sealed(place / _NAME, _decoded)) is None:
            continue
        there = [each for each in stored.files if each.path in numbers]
        before, now = _seen(place), _as_seen(directory, there)
        same = [
            each
            for each in there
            if before.get(each.path, ()) == now.get(each.path)
            or checksum(directory / each.path, each.reached) == each.checksum
        ]
        if not same:
            continue
        new = {each.number: numbers[each.path] for each in same}
        is_whole = len(same) == len(stored.files)
        parts = (stored.rows, stored.said)
        rows, said = (_numbered(each, new, is_whole=is_whole) for each in parts)
        sources.append(Source(rows))
        found = Kept(
            Columns([*sources], ROWS),
            pl.concat([found.said, said.collect()]),
            (
                *found.rejected,
                *((new[file], line, why) for file, line, why in stored.rejected if file in new),
            ),
            {**found.reached, **{new[each.number]: each.reached for each in same}},
            {**found.seen, place: {each.path: now[each.path] for each in same if each.path in now}},
        )
    return found


def _as_seen(directory: Path, files: Sequence[_File]) -> dict[str, _Seen]:
    """Return the perflogs as they are, with the checksums that were found in them."""
    found = {}
    for each in files:
        # opened, as NFS may have old facts about a file until then; its reader reports errors
        with suppress(OSError), open_regular(directory / each.path) as stream:
            about = os.fstat(stream.fileno())
            found[each.path] = (about.st_ino, about.st_size, about.st_ctime_ns, each.checksum)
    return found


def _seen(place: Path) -> dict[str, _Seen]:
    """Return the perflogs that a session has compared, unless they had changed just before."""
    path, decode = place / _SEEN, partial(msgspec.msgpack.decode, type=dict[str, _Seen])
    try:
        written = path.stat().st_ctime_ns
    except OSError:
        return {}
    found = read_sealed(path, decode) or {}
    return {name: each for name, each in found.items() if each[2] < written - _TICK}


def _numbered(parquet: bytes, new: Mapping[int, int], *, is_whole: bool) -> pl.LazyFrame:
    """Return the rows of the files in `new`, with their new numbers; `is_whole` if it has all."""
    rows = Source.of(parquet).frame
    rows = rows if is_whole else rows.filter(pl.col(FILE).is_in([*new]))
    return rows.with_columns(pl.col(FILE).replace_strict(new, return_dtype=pl.UInt32()))


def keep(directory: Path, paths: Sequence[Path], before: Kept, now: Kept) -> None:
    """Write the cache of each system if enough of what was read of perflogs is new.

    Else write which of them were compared.

    Raises:
        OSError: a cache cannot be written.
    """
    if len(now.rows) - len(before.rows) <= KEPT_FROM * len(before.rows):
        for place, seen in before.seen.items():
            write_sealed(place / _SEEN, msgspec.msgpack.encode(seen))
        return
    files: defaultdict[Path, list[_File]] = defaultdict(list)
    for number, reached in now.reached.items():
        path = paths[number]
        name = path.relative_to(directory)
        found = checksum(path, reached)
        # a lone header is rejected until a line follows; not every name can be written as text
        if found is None or reached.lines <= 1 or not str(name).isprintable():
            continue
        if path.stat().st_mtime_ns == reached.changed:
            file = _File(name.as_posix(), number, reached, found)
            files[directory / name.parts[0]].append(file)
    for place, mine in files.items():
        # a cut-off line may still be completed, unless the file is packed
        ends = {each.number: each.reached.lines + each.reached.whole for each in mine}
        rejected = [each for each in now.rejected if each[1] <= ends.get(each[0], -1)]
        both = (now.rows, Columns.of(now.said))
        rows, said = (each.filter(each[FILE].is_in([*ends])).parquet for each in both)
        stored = _Stored(mine, rejected, rows, said)
        write_sealed(place / _NAME, msgspec.msgpack.encode(stored))


def checksum(path: Path, reached: Reach) -> int | None:
    """Return the checksum of what was read of a perflog, None if not all of it is there.

    It shows an edit. It does not stop an attacker, who could write the perflog itself.
    """
    found, size = 0, reached.end
    try:
        if not path.is_file() or (reached.whole and path.stat().st_size != size):
            return None
        with open_regular(path) as stream:
            while size and (block := stream.read(min(size, _BLOCK))):
                found = zlib.crc32(block, found)
                size -= len(block)
    except OSError:
        return None  # its reader says why
    return None if size else found


def read_sealed(path: Path, decode: Callable[[bytes], _T]) -> _T | None:
    """Return the decoded body of the file at `path`, None unless this version of the code wrote it.

    The seal is not a secret: `decode` must refuse whatever somebody else may have sealed.
    """
    try:
        content = read_regular(path, None, _LARGEST) or b""
        seal, body = content[:_SEAL], content[_SEAL:]
        return decode(body) if seal == _seal(body) else None
    except (OSError, ValueError, TypeError, msgspec.MsgspecError, pl.exceptions.PolarsError):
        return None


def write_sealed(path: Path, body: bytes) -> None:
    """Write `body` with the seal of this version of the code.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(path, _seal(body) + body)


def _seal(body: bytes) -> bytes:
    return hashlib.blake2b(body, key=_version(), digest_size=_SEAL).digest()


def user_cache(*names: object) -> Path:
    """Return the path in the user's cache for these names.

    Without a home directory, it cannot be written, so nothing is cached.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    cache = cache if cache.is_absolute() else Path("~/.cache")  # as its specification says
    try:
        cache = cache.expanduser()
    except RuntimeError:
        cache = Path(os.devnull)
    return cache / "iobands" / hashlib.sha256(repr(names).encode()).hexdigest()[:16]


@cache
def _version() -> bytes:
    """Return a digest of iobands' code, as a clone may change without a new version number."""
    versions = f"{__version__} {np.__version__} {pl.__version__}"
    found = hashlib.blake2b(versions.encode(), digest_size=_SEAL)
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        found.update(path.read_bytes())
    return found.digest()
