"""A store of Parquet files, in a directory or an object store.

    samples/system=NAME/month=2026-11/SHA256.parquet
    documents/system=NAME/PATH/TIME-SHA256

A file never changes, as its name is the hash of its content: rows that are put twice make one file,
and an edit shows. Rows that are in two files count once.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cache, partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import Any, Final, TypeVar
from urllib.parse import quote, unquote

import msgspec
import obstore
import polars as pl
from obstore.exceptions import BaseError
from obstore.store import LocalStore, from_url

from iobands.model import PATH_PART, TIME, Rejected, in_time, read_regular
from iobands.source.kept import KEPT_FROM, read_sealed, user_cache, write_sealed
from iobands.source.store import (
    CONTENT,
    NO_LINES,
    REJECTED,
    SAMPLES,
    STORE_SCHEMA,
    Stored,
    StoredDocument,
    StoreError,
    document_of,
    nothing_there,
    refuse_newer,
    stored_rows,
    typed,
    unusable,
    without_password,
)

_VERSION: Final = "iobands-store"
_TOGETHER: Final = 16  # files of a month from which they are joined
_ATTEMPTS: Final = 20
#: How long a bucket that does not answer may delay a session: 60 s, two answers of the library's
#: limit of 30 s, as it asks again only before this time.
_PATIENCE: Final[Any] = {"retry_timeout": timedelta(seconds=45)}
_LONGEST: Final = 255 - len("system=")  # bytes of the name of a system, quoted as in a URL
_SILENCE: Final = 60  # seconds for an answer of a directory's file system
_AT_ONCE: Final = 8  # files that are read in parallel, as a bucket takes a while to answer
#: The most that is read of a system, whatever a cluster puts there: a file with holes may be of any
#: size, and a packed one of a few megabytes may have more rows than fit into memory.
_MOST_BYTES: Final = 2**31
_MOST_ROWS: Final = 2**24
#: The parts of a document's file: its path, the beginning of a run report's, its time and hash.
_DOCUMENT: Final = re.compile(
    r"documents/system=[^/]*/((perflogs/[^/]+/reports/)?.+)/(\d{10}\.\d{6})-([0-9a-f]{64})",
    re.ASCII,
)
_MONTH: Final = re.compile(
    r"samples/system=[^/]*/(month=\d{4}-\d{2})/[0-9a-f]{64}\.parquet", re.ASCII
)
#: The variable to set if a message says one of these. The paths are of a cloud's own server, where
#: a library looks for credentials last.
_LACKS: Final = {
    "/latest/api/token": "credentials, such as AWS_ACCESS_KEY_ID",
    "/computeMetadata/": "credentials, such as GOOGLE_SERVICE_ACCOUNT",
    "/metadata/identity/": "credentials, such as AZURE_STORAGE_ACCOUNT_KEY",
    "Account must be specified": "AZURE_STORAGE_ACCOUNT_NAME",
    "BadScheme": "AWS_ALLOW_HTTP=true, which an endpoint without TLS needs",
}
#: Why a server refused, or was not reached, among what a message says for debugging.
_REASON: Final = re.compile(
    r'<Code>(\w+)|(?:message|error): "([^"]+)"|InvalidCertificate\(\s*(\w+)|kind: (Timeout)'
)
_T = TypeVar("_T")


class _Damaged(ValueError):
    """A file is not what was put there; the message says why."""


@dataclass(frozen=True)
class _Kept:
    """Files that were read: by path the mark of each (see `_list`), and all rows as Parquet."""

    files: dict[str, str]
    rows: bytes


def _decoded(body: bytes) -> _Kept:
    kept = msgspec.msgpack.decode(body, type=_Kept)
    if pl.read_parquet_schema(kept.rows) != SAMPLES:
        raise ValueError("other columns")
    return kept


class ObjectStore:
    """The store at a URL such as `s3://BUCKET/PATH`, or in a directory."""

    def __init__(self, url: str, *, new: bool) -> None:
        """Open the store; with `new` it is made if missing.

        Raises:
            StoreError: it is missing, cannot be opened, or has a newer schema.
        """
        self._url = without_password(url)
        is_local = "://" not in url
        self._name = str(Path(url).resolve()) if is_local else self._url
        self._directory = self._name if is_local else None
        with self._errors():
            if is_local and not new and not Path(url).is_dir():
                raise nothing_there(self._url)
            if is_local and Path(url).is_file():
                raise StoreError(f"{self._url}: a file; the store must be a directory")
            self._files: Any = (
                LocalStore(url, mkdir=True, automatic_cleanup=True)
                if is_local
                else from_url(url, retry_config=_PATIENCE)
            )
            if is_local and new:
                # obstore retries for ever where no file can be made, as in /proc
                try:
                    TemporaryFile(dir=url).close()
                except FileNotFoundError:
                    raise StoreError(f"{self._url}: no file can be made there") from None
            try:
                # empty if a full disk or a power failure cut the first push off
                schema = self._get(_VERSION).decode(errors="replace").strip() or "0"
            except FileNotFoundError:
                if not new:
                    raise nothing_there(self._url) from None
                schema = "0"
            # older files are read as they are: columns that they lack are null
            if refuse_newer(self._url, schema) and new:
                self._put(_VERSION, f"{STORE_SCHEMA}\n".encode())

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def systems(self) -> Sequence[str]:
        """Return the systems that have samples, run reports or rejected lines."""
        with self._errors():
            known = self._named("samples")
            others = self._named("documents") - known
        # other names may lead elsewhere
        names = {name for name in others if re.fullmatch(PATH_PART, name)}
        return sorted(known | {name for name in names if self._has_news(name)})

    def _has_news(self, name: str) -> bool:
        """Return whether its documents say that a system ran, or cannot be read."""
        try:
            with self._errors():
                place = f"{self._of('documents', name)}/perflogs/{quote(name)}/reports/"
                rejected = f"perflogs/{name}/{REJECTED}"
                return bool(self._list(place)) or (
                    document_of(self, name, rejected).content not in NO_LINES
                )
        except StoreError:  # its reader says why
            return True

    def _of(self, top: str, system: str) -> str:
        """Return the directory of a system below `top`."""
        if self._directory and (size := len(quote(system))) > _LONGEST:
            takes = f"takes {size} characters there, of at most {_LONGEST}; choose a shorter one"
            raise StoreError(f"{self._url}: the name {system!r} {takes}")
        return f"{top}/system={quote(system)}"

    def _named(self, top: str) -> set[str]:
        """Return the systems that have a directory below `top`."""
        if self._directory is None:
            found = obstore.list_with_delimiter(self._files, top)["common_prefixes"]
        else:
            there = _entries(f"{self._directory}/{top}")
            found = [f"{top}/{e.name}" for e in there if not e.is_file(follow_symlinks=False)]
        names = (path.partition(f"{top}/system=")[2].rstrip("/") for path in found)
        # no push wrote a name that is not UTF-8
        return {unquote(name.encode(errors="replace").decode()) for name in names if name}

    def add(self, system: str, samples: pl.DataFrame, documents: Sequence[StoredDocument]) -> None:
        """Put a file for each month, and one for each document; see `Store`."""
        month = pl.col(TIME).dt.strftime("%Y-%m").alias("_month")
        with self._errors():
            for (name,), rows in samples.group_by(month, maintain_order=True):
                self._put_rows(f"{self._of('samples', system)}/month={name}", rows)
            for each in documents:
                place = f"{self._of('documents', system)}/{quote(each.path)}"
                path = f"{place}/{each.changed.timestamp():017.6f}-{each.digest}"
                self._put(path, each.content)
                self._remove([older for older in self._list(f"{place}/") if older < path])

    def samples(self, system: str) -> Stored:
        """Return the rows of a system; a file that does not match its name is rejected.

        Files that this user read before are read from the user's cache.
        """
        counts: list[int] = []

        def read(path: str) -> pl.DataFrame | Rejected:
            try:
                return self._rows(path, counts)
            except _Damaged as error:
                return Rejected(Path(path), 0, str(error))

        top, memory = f"{self._of('samples', system)}/", user_cache(self._name, system)
        with self._errors():
            there = self._list(top)
        kept = read_sealed(memory, _decoded)
        if kept and not kept.files.items() <= there.items():
            kept = None  # files were joined, deleted or edited
        files, before = (kept.files, [kept.rows]) if kept else ({}, [])
        found = self._each(top, read, files)
        frames = {path: each for path, each in found.items() if isinstance(each, pl.DataFrame)}
        new = pl.concat([pl.DataFrame(schema=SAMPLES), *frames.values()])
        damaged = [each for each in found.values() if isinstance(each, Rejected)]
        rows, rejected = stored_rows([new], damaged, before)
        # with rejected rows, nothing is cached, so that each reader reports them
        is_whole = len(rejected) == len(damaged) and frames.keys() <= there.keys()
        if len(new) > KEPT_FROM * len(rows) and is_whole:
            stored = _Kept({path: there[path] for path in (*files, *frames)}, rows.parquet)
            with suppress(OSError):
                write_sealed(memory, msgspec.msgpack.encode(stored))
        return rows, rejected

    def forget(self, system: str, before: datetime, *, dry_run: bool) -> int:
        """Delete whole months, and the run reports that last changed before then; see `Store`."""
        top, first = f"{self._of('samples', system)}/", f"month={before:%Y-%m}"
        rows, _ = self.samples(system)
        count = rows.filter(rows[TIME] < before).frame.n_unique(CONTENT)
        with self._errors():
            months = {path: _MONTH.fullmatch(path) for path in self._list(top)}
            gone = [path for path, month in months.items() if month and month[1] < first]
            for path in self._list(f"{self._of('documents', system)}/"):
                named = _DOCUMENT.fullmatch(path)
                if named and named[2] and float(named[3]) < before.timestamp():
                    gone.append(path)
            self._remove([] if dry_run else gone)
        return count

    def documents(
        self, system: str, reports_since: datetime, path: str | None = None
    ) -> Sequence[StoredDocument]:
        """Return the documents of a system; see `Store`."""

        def read(stored: str) -> StoredDocument | None:
            if not (named := _DOCUMENT.fullmatch(stored)):
                return None  # not from a push
            place, is_report, seconds, digest = named.groups()
            changed = datetime.fromtimestamp(float(seconds), timezone.utc)
            if is_report and changed < reports_since:
                return None
            try:
                content = self._get(stored)
            except _Damaged:
                content = b""  # which does not match its name
            return StoredDocument(unquote(place), changed, content, digest)

        prefix = f"{self._of('documents', system)}/{f'{quote(path)}/' if path else ''}"
        return [each for each in self._each(prefix, read).values() if each]

    def _each(
        self, prefix: str, read: Callable[[str], _T], but: Collection[str] = ()
    ) -> dict[str, _T]:
        """Return by path what `read` returns for each file; retry if files vanish meanwhile."""
        once = cache(read)
        for _ in range(_ATTEMPTS):
            with self._errors(), suppress(FileNotFoundError), ThreadPoolExecutor(_AT_ONCE) as pool:
                there = {path: e for path, e in self._list(prefix).items() if path not in but}
                if sum(int(mark.split()[0]) for mark in there.values()) > _MOST_BYTES:
                    raise StoreError(f"{self._url}: {prefix} has more than {_MOST_BYTES >> 30} GiB")
                paths = [*there]
                return dict(zip(paths, pool.map(once, paths), strict=True))
        raise StoreError(f"{self._url}: files vanish while they are read; try again")

    def _put_rows(self, place: str, rows: pl.DataFrame) -> None:
        """Put rows of a month into a file; join the month's files if there are many."""
        path = self._put_file(place, rows)
        paths = [*self._list(f"{place}/")]
        if len(paths) >= _TOGETHER:
            # a reader reports a damaged file; a missing one was joined by another host
            with suppress(_Damaged, FileNotFoundError):
                every = pl.concat([self._rows(each) for each in paths])
                every = every.sort(TIME, "file", "line").unique(CONTENT, keep="first")
                path = self._put_file(place, every)
                self._remove([each for each in paths if each != path])

    def _put_file(self, place: str, rows: pl.DataFrame) -> str:
        stream = io.BytesIO()
        texts = rows.with_columns(pl.col(pl.Categorical).cast(pl.String))
        texts.sort(TIME, "file", "line").write_parquet(stream, compression="zstd")
        path = f"{place}/{hashlib.sha256(stream.getvalue()).hexdigest()}.parquet"
        self._put(path, stream.getvalue())
        return path

    def _rows(self, path: str, counts: list[int] | None = None) -> pl.DataFrame:
        """Return the rows of a file; `counts` gets their number, and refuses too many in all."""
        content = self._get(path)
        if not path.isprintable():
            raise _Damaged("does not have the name of a push")
        if hashlib.sha256(content).hexdigest() != PurePosixPath(path).stem:
            raise _Damaged("does not match its name: it was edited or cut off")
        try:
            if counts is not None:
                counts.append(pl.scan_parquet(content).select(pl.len()).collect().item())
                if sum(counts) > _MOST_ROWS:
                    raise StoreError(f"{path}: more rows than {_MOST_ROWS:,} of one system")
            rows = typed(pl.read_parquet(content))
        # a panic is not an `Exception`, and would end a page of sites
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            raise _Damaged(f"not a file of samples: {error}".splitlines()[0]) from None
        system = unquote(PurePosixPath(path).parts[1].removeprefix("system="))
        if not (rows["system"] == system).all():
            raise _Damaged("has rows of another system")
        return rows

    def _list(self, prefix: str) -> dict[str, str]:
        """Return the files below a prefix, in order, each with a mark that an edit changes.

        The mark begins with the size. In a directory, links are not followed.
        """
        return self._in_time(partial(self._marks, prefix))

    def _marks(self, prefix: str) -> dict[str, str]:
        if self._directory is None:
            every = obstore.list(self._files, prefix).collect()
            marks = {e["path"]: f"{e['size']} {e['last_modified']} {e['e_tag']}" for e in every}
            return dict(sorted(marks.items()))
        marks, waiting = {}, [f"{self._directory}/{prefix}".rstrip("/")]
        if Path(waiting[0]).is_symlink():
            raise StoreError(f"{waiting[0]}: is a symbolic link; put the directory in its place")
        while waiting:
            for each in _entries(waiting.pop()):
                if each.is_dir(follow_symlinks=False):
                    waiting.append(each.path)
                elif "#" not in each.name:  # which is being written
                    with suppress(FileNotFoundError):
                        about = each.stat(follow_symlinks=False)
                        mark = f"{about.st_size} {about.st_mtime_ns} {about.st_ino}"
                        marks[each.path[len(self._directory) + 1 :]] = mark
        return dict(sorted(marks.items()))

    def _get(self, path: str) -> bytes:
        if self._directory is None:
            return bytes(obstore.get(self._files, path).bytes())
        content = read_regular(f"{self._directory}/{path}", None, _MOST_BYTES)
        if content is None:
            raise _Damaged("is not a regular file")
        return content

    def _put(self, path: str, content: bytes) -> None:
        try:
            self._in_time(partial(obstore.put, self._files, path, content))
        except FileNotFoundError:
            raise StoreError(f"{self._url}: no such bucket") from None

    def _remove(self, paths: Sequence[str]) -> None:
        for path in paths:
            with suppress(FileNotFoundError):  # by another host
                self._in_time(partial(obstore.delete, self._files, path))

    def _in_time(self, work: Callable[[], _T]) -> _T:
        """Return what `work` does; a directory that hangs must not hold up a session for an hour.

        Reading a file takes less time than a thread, and its directory is listed before.
        """
        late = StoreError(f"{self._url}: no answer within {_SILENCE} s; check its file system")
        return in_time(_SILENCE, work, late) if self._directory else work()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise an error of the store's library as a `StoreError`."""
        try:
            yield
        except FileNotFoundError:
            raise
        except (BaseError, OSError, ValueError, pl.exceptions.PolarsError) as error:
            said = [getattr(error, name, None) for name in ("filename", "strerror")]
            message = ": ".join(filter(None, said)) or str(error)
            for words, name in _LACKS.items():
                if words in message:
                    message = f"the environment lacks {name}"
            text, answered, _ = message.partition("\n")[0].partition(": <?xml")
            if (answered or "HTTP error" in text) and (found := _REASON.search(message)):
                text += f": {found[found.lastindex or 0]}"
            raise unusable(self._url, text) from error


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as found:
            return [*found]
    except FileNotFoundError:  # or removed meanwhile
        return []
