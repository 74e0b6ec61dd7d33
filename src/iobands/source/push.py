"""Pushing what is new at a site to a store.

`perflogs/pushed.json` says what the store has: how far each perflog was read, and the content of
each document. It only saves work. Without it everything is pushed anew, and the store is the same.

Perflogs grow at their ends. While they do nothing else, and no new line is rejected or as old as
one that was pushed, only the new lines are read: nothing older could change what they mean.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from importlib import import_module
from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple
from uuid import uuid4

import polars as pl

from iobands.measure import reduced_report, report_files
from iobands.model import (
    TIME,
    FileError,
    Rejected,
    Unusable,
    parse_time,
    parse_yaml,
    path_part,
    read_content,
    read_small,
    replace_file,
    utc_text,
)
from iobands.source.lines import FILE, LINE
from iobands.source.perflog import PACKED, Parsed, columns_of, parse_perflogs, perflog_files
from iobands.source.store import (
    EVER,
    REJECTED,
    SITE,
    SITE_WIDE,
    Store,
    StoredDocument,
    StoreError,
    document_of,
    edited,
    typed,
    without_password,
)

_SCHEMA: Final = 2
_NAME: Final = "pushed.json"
#: The engine of a URL's scheme; a directory has none.
_ENGINES: Final = {
    "postgresql": ("iobands.source.postgres", "PostgresStore"),
    "postgres": ("iobands.source.postgres", "PostgresStore"),
}
_OBJECTS: Final = ("iobands.source.objects", "ObjectStore")
#: A password that a URL cannot have: its parts would count as a host or a port, and be printed.
_BARE: Final = re.compile(r"://[^:/?#@[]*:(?!\d*[/?#]).*([@/?#]|%(?![0-9A-Fa-f]{2})).*@")
_TAIL: Final = 2**16  # bytes whose hash tells whether a perflog still begins as it did
_BLOCK: Final = 2**23
_ALL: Final = 2**53  # lines of a packed perflog
_MOST_DAMAGED: Final = 2**16  # bytes of a run report that no reader can use


_SETTINGS: Final[dict[str, Any]] = {
    "description": "the store of the site",
    "type": "object",
    "additionalProperties": False,
    "required": ["url"],
    "properties": {"url": {"description": "a directory or a URL", "type": "string"}},
}


def store_of(settings: Path) -> str | None:
    """Return the URL that the settings of a site's store name, None without a file.

    A directory is below the site's, wherever the command runs.

    Raises:
        FileError: they cannot be used.
    """
    if not settings.exists():
        return None
    document = parse_yaml(read_content(settings), settings)
    document.check(_SETTINGS)
    return located(str(document.value["url"]), settings.parent.parent)


def located(url: str, below: Path) -> str:
    """Return a URL; a directory by the one name that does not depend on where one is."""
    return url if "://" in url else str((below / url).resolve())


@contextmanager
def open_store(url: str, *, new: bool = False) -> Iterator[Store]:
    """Yield the store at a URL, or in a directory; with `new` it is made if missing.

    Raises:
        StoreError: it cannot be used.
    """
    if _BARE.search(url):
        raise StoreError(
            f"{without_password(url)}: in a password in a URL, @ / ? # and % are written as %40, "
            "%2F, %3F, %23 and %25; better keep it out of the URL"
        )
    module, name = _ENGINES.get(url.partition("://")[0], _OBJECTS)
    try:
        engine = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise StoreError(
            f"{error.name} is missing; for stores: pip install 'iobands[store]'"
        ) from None
    store = engine(url, new=new)
    try:
        yield store
    finally:
        store.close()


class Cursor(NamedTuple):
    """How far a perflog was read: its first `end` bytes have `lines`.

    `tail` is the hash of the last of them. What follows is below the header at `header`; -1 if it
    cannot be read without the rest.
    """

    end: int
    lines: int
    header: int
    tail: str


class Seen(NamedTuple):
    """A document that was pushed: its hash, and the time and size by which a change shows.

    `at` is the time that the store has, in microseconds. It never goes back, as the last counts.
    """

    digest: str
    changed: int = 0
    size: int = -1
    at: int = 0


@dataclass(frozen=True)
class Pushed:
    """What the store at a URL has of a site, by the hash of the URL.

    `perflogs` are by path, `documents` by system and path, and `newest` is the time of the newest
    sample. `when` is the last push that succeeded, and `failed` why a later one did not.
    """

    store: str
    perflogs: Mapping[str, Cursor] = field(default_factory=dict)
    newest: datetime | None = None
    documents: Mapping[str, Mapping[str, Seen]] = field(default_factory=dict)
    when: datetime | None = None
    failed: str | None = None


def read_pushed(perflogs: Path, url: str) -> Pushed:
    """Return what was pushed to a URL; nothing if that is not known."""
    nothing = Pushed(hashlib.sha256(url.encode()).hexdigest())
    try:
        said = json.loads(read_small(perflogs / _NAME))
        if said.pop("schema") != _SCHEMA or said["store"] != nothing.store:
            return nothing
        for name in ("newest", "when"):
            said[name] = parse_time(said[name]) if said[name] else None
        said["perflogs"] = {
            path: Cursor(int(end), int(lines), int(header), str(tail))
            for path, (end, lines, header, tail) in said["perflogs"].items()
        }
        said["documents"] = {
            system: {
                path: Seen(str(digest), int(changed), int(size), int(at))
                for path, (digest, changed, size, at) in seen.items()
            }
            for system, seen in said["documents"].items()
        }
        return Pushed(**said)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return nothing


def late(perflogs: Path, settings: Path, now: datetime) -> str | None:
    """Return for how long and why a site's store lacks what is new, None for less than a day."""
    try:
        if (url := store_of(settings)) is None:
            return None
        pushed = read_pushed(perflogs, url)
        if pushed.when is None:
            return pushed.failed and f"yet: {pushed.failed}"
        changes = (path.stat().st_mtime for path in perflog_files(perflogs))
        waits = pushed.failed or max(changes, default=0) > pushed.when.timestamp()
    except (FileError, OSError) as error:
        return f"yet: {error}"
    days = (now - pushed.when) // timedelta(days=1)
    if not waits or not days:
        return None
    return f"for {days} day{'s' * (days > 1)}: {pushed.failed or 'no push ended'}"


def write_pushed(perflogs: Path, pushed: Pushed) -> None:
    """Keep what was pushed.

    Raises:
        OSError: the file cannot be written; the next push sends more than it must.
    """
    said = json.dumps({**vars(pushed), "schema": _SCHEMA}, default=utc_text)
    replace_file(perflogs / _NAME, f"{said}\n".encode())


def push_new(
    store: Store, perflogs: Path, config: Path, before: Pushed, now: datetime
) -> tuple[Pushed, int, int]:
    """Push what is new since `before`; return what the store has then, new rows and documents.

    Raises:
        StoreError: the store did not take everything; nothing is lost.
        FileNotFoundError: there are no perflogs.
        OSError: a file cannot be read.
    """
    if any(_is_behind(store, system, seen) for system, seen in before.documents.items()):
        before = Pushed(before.store)
    site = gather(perflogs, config, before)
    sent, seen = 0, {}
    for system, has in site.seen.items():
        known = before.documents.get(system)
        if known is None:
            theirs = document_of(store, system, SITE).content
            if theirs and theirs != (perflogs / Path(SITE).name).read_bytes():
                raise StoreError(
                    f"the store has a system {system!r} of another site; rename one of the two, or "
                    "push to another store"
                )
            known = {
                each.path: Seen("" if each.is_edited else each.digest, at=_micro(each.changed))
                for each in store.documents(system, EVER)
            }
        changed = [
            each
            for each in site.documents[system]
            if each.path not in known or known[each.path].digest != each.digest
        ]
        changed += [StoredDocument(path, now, b"") for path in known.keys() - has.keys()]
        # later than what the store has, also where that was dated by a clock that was ahead
        late = {each.path: known.get(each.path, Seen("")).at + 1 for each in changed}
        changed = [
            replace(each, changed=max(each.changed, EVER + timedelta(microseconds=late[each.path])))
            for each in changed
        ]
        at = {each.path: _micro(each.changed) for each in changed}
        seen[system] = {
            path: each._replace(at=at.get(path, known.get(path, each).at))
            for path, each in has.items()
        }
        mine = site.samples.filter(pl.col("system") == system)
        if len(mine) or changed:
            store.add(system, mine, changed)
            sent += len(changed)
    after = Pushed(before.store, site.perflogs, site.newest, seen, now)
    return after, len(site.samples), sent


def _is_behind(store: Store, system: str, seen: Mapping[str, Seen]) -> bool:
    """Whether a store lost what was pushed: it was emptied, or restored from a backup."""
    return any(
        name in seen and document_of(store, system, name).digest != seen[name].digest
        for name in SITE_WIDE
    )


def _micro(when: datetime) -> int:
    return (when - EVER) // timedelta(microseconds=1)


def copy(source: Store, target: Store, system: str) -> int:
    """Copy everything of a system from one store to another; return the number of its samples.

    Raises:
        StoreError: a store cannot be used; or a row or a document is not what it was, and the rest
            was copied.
    """
    rows, rejected = source.samples(system)
    documents = source.documents(system, EVER)
    target.add(system, rows, [each for each in documents if not each.is_edited])
    if lost := [*rejected, *edited(documents)]:
        raise StoreError(f"{len(rows)} samples; not copied, {len(lost)}: {lost[0]}")
    return len(rows)


@dataclass(frozen=True)
class Gathered:
    """What the files of a site hold: the new rows, and by system the documents that were read.

    `seen` has all documents by system and path; `perflogs` and `newest` are those of `Pushed`.
    """

    samples: pl.DataFrame
    perflogs: Mapping[str, Cursor]
    newest: datetime | None
    documents: Mapping[str, Sequence[StoredDocument]]
    seen: Mapping[str, Mapping[str, Seen]]


def gather(perflogs: Path, config: Path, before: Pushed) -> Gathered:
    """Return what is known of a site's systems, for a store that has `before`.

    The first time, the site gets its identity, by which a store tells two of one name apart.

    Raises:
        FileNotFoundError: there are no perflogs.
        OSError: a file cannot be read.
    """
    root = perflogs.parent
    paths = {path.relative_to(root).as_posix(): path for path in perflog_files(perflogs)}
    held = {name: each for name, path in paths.items() if (each := _held(path, name, before))}
    rejected: Sequence[Rejected] | None = None
    if added := _added(paths, held, before):
        new, cursors = added
    else:
        # before they are read, as a session may add lines meanwhile
        cursors = {name: each for name, path in paths.items() if (each := _cursor(path))}
        parsed = parse_perflogs(perflogs)
        lines = {name: each.lines for name, each in held.items()}
        new, rejected = _table(parsed, root, lines), parsed.samples().rejected
    identity = perflogs / Path(SITE).name
    if not identity.exists() or not identity.stat().st_size:
        replace_file(identity, f"{uuid4().hex}\n".encode())
    documents, seen = {}, {}
    # a directory may have another name than the system of its lines
    systems = {each.name for each in perflogs.iterdir() if each.is_dir()} | {*new["system"]}
    for system in sorted(systems):
        known = before.documents.get(system, {})
        read, mine = [], {}
        for name, path in _files_of(perflogs, config, system):
            about = path.stat()
            mine[name] = known.get(name, Seen(""))
            if mine[name][1:3] != (about.st_mtime_ns, about.st_size):
                changed = datetime.fromtimestamp(about.st_mtime, timezone.utc)
                read.append(StoredDocument(name, changed, _content(path)))
                mine[name] = Seen(read[-1].digest, about.st_mtime_ns, about.st_size)
        name = f"perflogs/{system}/{REJECTED}"
        if rejected is None and name in known:
            mine[name] = known[name]
        else:
            read.append(_rejected_document(perflogs, system, rejected or ()))
            mine[name] = Seen(read[-1].digest)
        documents[system], seen[system] = read, mine
    times = [*filter(None, [before.newest]), *new.select(pl.max(TIME)).drop_nulls()[TIME]]
    return Gathered(new, cursors, max(times, default=None), documents, seen)


def _held(path: Path, name: str, before: Pushed) -> Cursor | None:
    """Return how far a perflog was read, also under another name; None if it was not."""
    own = before.perflogs.get(name)
    renamed = (each for each in before.perflogs.values() if each.end and each != own)
    try:
        size = path.stat().st_size
        for each in (*filter(None, [own]), *renamed):
            if each.end <= size and _tail(path, each.end) == each.tail:
                return each
    except OSError:
        pass  # its reader says why
    return None


def _tail(path: Path, end: int) -> str:
    with path.open("rb") as stream:
        stream.seek(max(end - _TAIL, 0))
        return hashlib.sha256(stream.read(min(end, _TAIL))).hexdigest()


def _cursor(path: Path) -> Cursor | None:
    """Return where the lines of a perflog end now; None if it cannot be read."""
    try:
        size = path.stat().st_size if path.is_file() else 0
        if not size or path.suffix in PACKED:
            return Cursor(size, size and _ALL, -1, _tail(path, size)) if path.is_file() else None
        with path.open("rb") as stream, mmap(stream.fileno(), size, access=ACCESS_READ) as text:
            end = text.rfind(b"\n") + 1
            lines = sum(
                text[at : min(at + _BLOCK, end)].count(b"\n") for at in range(0, end, _BLOCK)
            )
            # a cut-off line is rejected until its rest comes, and a header until a sample does
            header = _last_header(text, end) if end == size and lines > 1 else -1
        return Cursor(end, lines, header, _tail(path, end))
    except OSError:
        return None


def _last_header(text: mmap, end: int) -> int:
    """Return where the last header line begins, -1 if there is no such line."""
    while (found := text.rfind(TIME.encode(), 0, end)) >= 0:
        end = text.rfind(b"\n", 0, found) + 1
        if columns_of(text[end : text.find(b"\n", found) + 1]):
            return end
    return -1


def _added(
    paths: Mapping[str, Path], held: Mapping[str, Cursor], before: Pushed
) -> tuple[pl.DataFrame, Mapping[str, Cursor]] | None:
    """Return the new rows and cursors from the new lines, None if they do not suffice."""
    if before.newest is None or any(held.get(n) != each for n, each in before.perflogs.items()):
        return None
    cursors, shifts = dict(before.perflogs), {}
    with TemporaryDirectory(prefix="iobands-") as scratch:
        root = Path(scratch)
        (root / "perflogs").mkdir()
        for name, path in paths.items():
            known = before.perflogs.get(name, Cursor(0, 0, 0, ""))
            try:
                with path.open("rb") as stream:
                    stream.seek(known.end)
                    if not (text := stream.read()) and name in cursors:
                        continue
                    stream.seek(known.header)  # which fails if there is none
                    header = stream.readline() if known.lines else b""
            except (OSError, ValueError):
                return None
            part = root / name
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(header + text)
            if not (whole := _cursor(part)):
                return None
            cursors[name] = whole
            if known.lines:
                shifts[name] = known.lines - 1
                end = known.end + len(text)
                lines = known.lines + text.count(b"\n")
                cursors[name] = Cursor(end, lines, known.header, _tail(path, end))
        parsed = parse_perflogs(root / "perflogs")
        rows = _table(parsed, root, {})
        if parsed.samples().rejected or (rows[TIME] <= before.newest).any():
            return None
    shift = pl.col("file").cast(pl.String).replace_strict(shifts, default=0, return_dtype=pl.Int64)
    return rows.with_columns(line=pl.col("line") + shift), cursors


def _table(parsed: Parsed, root: Path, known: Mapping[str, int]) -> pl.DataFrame:
    """Return rows of perflogs as a store has them, behind the lines `known` of each."""
    names = [path.relative_to(root).as_posix() for path in parsed.paths]
    files = pl.DataFrame(
        {
            FILE: range(len(names)),
            "file": names,
            "known": [known.get(name, 0) for name in names],
        },
        {FILE: pl.UInt32(), "file": pl.Categorical(), "known": pl.Int64()},
    )
    rows = parsed.rows.join(files, on=FILE).filter(pl.col(LINE) > pl.col("known"))
    rows = rows.join(parsed.said, on=[FILE, LINE], how="left").rename({LINE: "line"})
    return typed(rows)


def _files_of(perflogs: Path, config: Path, system: str) -> Iterator[tuple[str, Path]]:
    """Yield the documents of a system: the name that a store has for each, and its file."""
    logs, part = perflogs / path_part(system), path_part(system)
    files = {
        **{name: perflogs / Path(name).name for name in SITE_WIDE},
        f"perflogs/{system}/alerts.jsonl": logs / "alerts.jsonl",
        f"config/bands/{part}.yaml": config / "bands" / f"{part}.yaml",
        f"config/alerts/{part}.jsonl": config / "alerts" / f"{part}.jsonl",
    }
    for note in sorted((logs / "leftovers").glob("*")):
        files[f"perflogs/{system}/leftovers/{note.name}"] = note
    yield from ((name, path) for name, path in files.items() if path.is_file())
    for path in report_files(perflogs, system):
        yield f"perflogs/{system}/reports/{path.name}", path


def _content(path: Path) -> bytes:
    if path.parent.name != "reports":
        return path.read_bytes()
    try:
        return reduced_report(path)
    except Unusable:
        return path.read_bytes()[:_MOST_DAMAGED]  # its reader says what is wrong


def _rejected_document(perflogs: Path, name: str, rejected: Sequence[Rejected]) -> StoredDocument:
    root = perflogs.parent
    said = [
        [
            each.path.relative_to(root).as_posix(),
            each.line,
            each.reason.replace(f"{root}/", ""),
            each.lines,
            each.is_unread,
        ]
        for each in rejected
        if each.path.is_relative_to(perflogs / name)
    ]
    logs = perflog_files(perflogs, name)
    changed = max((path.stat().st_mtime for path in logs), default=0)
    return StoredDocument(
        f"perflogs/{name}/{REJECTED}",
        datetime.fromtimestamp(changed, timezone.utc),
        json.dumps(said).encode(),
    )
