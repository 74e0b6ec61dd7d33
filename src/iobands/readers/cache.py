"""Keeping what was read of perflogs, so that only what was appended has to be read.

A cache is one Parquet file a directory of perflogs, in the user's cache directory. Nothing depends
on it: one that is missing, damaged, of another version or that cannot be written costs time alone.
May know: how files are read; nothing of perflogs' meaning.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from iobands.readers.files import Place
from iobands.readers.kinds import ROWS, Rows

#: Goes up whenever what is kept, or what a line is read as, changes.
VERSION: Final = 2
_KEY: Final = b"iobands"
_KINDS: Final = b"iobands-kinds"
_DIGEST: Final = b"iobands-digest"
_SAMPLE: Final = 4096  # bytes by which a file is known again, at its start and before the end


@dataclass(frozen=True)
class KnownFile:
    """A perflog as it was when it was read.

    `path` is relative to the perflogs, `mark` is of the bytes before `place`, `others` counts the
    lines that measure nothing, and `reasons` has the number and the reason of rejected lines.
    """

    path: str
    inode: int
    modified: int
    size: int
    mark: str
    place: Place
    others: int
    reasons: tuple[tuple[int, str], ...]

    def is_unchanged(self, path: Path) -> bool:
        """Tell whether nothing happened to the file at `path` since it was read."""
        found = path.stat()
        now = (found.st_ino, found.st_mtime_ns, found.st_size)
        return now == (self.inode, self.modified, self.size)

    def is_continued(self, path: Path) -> bool:
        """Tell whether the file at `path` begins with what was read, and was only appended to."""
        return path.stat().st_size >= self.size and mark(path, self.place.offset) == self.mark


@dataclass(frozen=True)
class Kept:
    """What a cache holds: files, their rows in order, and which rows were left out as repeats.

    A repeat is (file, line, file of the first, its line); files by their place in `files`.
    """

    files: tuple[KnownFile, ...]
    rows: Rows
    repeats: tuple[tuple[int, int, int, int], ...]


def mark(path: Path, offset: int) -> str:
    """Return by what the first `offset` bytes of a file are known again.

    It is of the file's start and of what stands before `offset`: whoever changes bytes in between
    without moving the others is not found out, and has to remove the cache.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as stream:
        start = stream.read(min(_SAMPLE, offset))
        stream.seek(max(0, offset - _SAMPLE))
        end = stream.read(min(_SAMPLE, offset))
    return hashlib.sha256(start + b"\0" + end).hexdigest()


def cache_directory() -> Path:
    """Return where caches lie: `$XDG_CACHE_HOME/iobands`, by default `~/.cache/iobands`."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # as the XDG Base Directory Specification has it, one that is not absolute does not count
    home = Path(base) if base.startswith("/") else Path("~/.cache").expanduser()
    return home / "iobands"


def cache_file(directory: Path, what: str, suffix: str) -> Path:
    """Return the cache of `directory`, for what is read of it and as what."""
    name = hashlib.sha256(f"{directory.resolve()}\0{what}".encode("utf-8", "replace"))
    return cache_directory() / f"{name.hexdigest()[:32]}{suffix}"


def load(path: Path, columns: Sequence[str]) -> Kept | None:
    """Return what the cache at `path` holds, with those columns, or None when it is no use."""
    try:
        table = read_parquet(path, columns)
        metadata = table.schema.metadata
        if metadata[_DIGEST] != _digest(metadata[_KEY], metadata[_KINDS]):
            return None
        said = json.loads(metadata[_KEY])
        table = table.replace_schema_metadata()
        wanted = pa.schema([ROWS.field(name) for name in columns])
        if said["version"] != VERSION or table.schema != wanted or len(table) != said["rows"]:
            return None
        kinds = pa.ipc.open_stream(b64decode(metadata[_KINDS])).read_all()
        files = tuple(
            KnownFile(
                **{
                    **known,
                    "place": Place(
                        known["place"]["offset"],
                        known["place"]["lines"],
                        tuple(known["place"]["columns"]),
                    ),
                    "reasons": tuple((line, reason) for line, reason in known["reasons"]),
                }
            )
            for known in said["files"]
        )
        return Kept(files, Rows(table, kinds), tuple(tuple(repeat) for repeat in said["repeats"]))
    except Exception:  # whatever a damaged file makes a library raise: it is written anew
        return None


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a file with its checksums; what damage makes a library raise may be anything."""
    # not by pq.read_table, whose import of data sets takes longer than many a file
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        return file.read(columns=columns)


def save(path: Path, kept: Kept) -> None:
    """Write a cache, whole or not at all; where that cannot be, do without."""
    said = {
        "version": VERSION,
        "rows": len(kept.rows),
        "files": [asdict(known) for known in kept.files],
        "repeats": kept.repeats,
    }
    kinds = pa.BufferOutputStream()
    with pa.ipc.new_stream(kinds, kept.rows.kinds.schema) as stream:
        stream.write_table(kept.rows.kinds)
    told, text = json.dumps(said).encode(), b64encode(kinds.getvalue())
    table = kept.rows.table.replace_schema_metadata(
        {_KEY: told, _KINDS: text, _DIGEST: _digest(told, text)}
    )

    def write(temporary: Path) -> None:
        pq.write_table(
            table,
            temporary,
            compression="lz4",
            write_statistics=False,
            write_page_checksum=True,
            # numbers hardly repeat, and building a dictionary of them takes longest
            use_dictionary=[f.name for f in ROWS if pa.types.is_dictionary(f.type)],
        )

    replace(path, write)


def _digest(*parts: bytes) -> bytes:
    # of what the library, which checks its own pages, hands on as it finds it
    return hashlib.sha256(b"\0".join(parts)).hexdigest().encode()


def replace(path: Path, write) -> None:  # noqa: ANN001 (a function of the path to write to)
    """Have `write` make a file and put it in the place of `path` in one step, if that can be."""
    with contextlib.suppress(OSError, pa.ArrowException):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        os.close(handle)
        try:
            write(Path(name))
            Path(name).replace(path)
        finally:
            Path(name).unlink(missing_ok=True)


def positions(files: Sequence[KnownFile]) -> dict[str, int]:
    """Return the place of each file by its path."""
    return {known.path: index for index, known in enumerate(files)}
