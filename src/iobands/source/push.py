"""Pushes what is new at a site to a store.

`perflogs/pushed.json` records what each store has: how far each perflog was read, and the hash of
each document. It only saves work: without it, everything is pushed again, with the same result.

As long as perflogs only grow at their ends, and no new line is rejected or as old as a pushed one,
only the new lines are read: older lines cannot change what they mean.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple
from uuid import uuid4

import msgspec
import polars as pl

from iobands.measure import reduced_report, report_files
from iobands.model import (
    PATH_PART,
    TIME,
    FileError,
    Rejected,
    Unusable,
    entries,
    open_regular,
    path_part,
    printable,
    read_small,
    replace_file,
)
from iobands.source.kept import Reach, checksum
from iobands.source.lines import FILE, LINE
from iobands.source.perflog import Parsed, inodes, parse_perflogs, perflog_files
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
    newest_of,
    store_of,
    typed,
)

_NAME: Final = "pushed.json"
_STORES: Final = 8  # that are recorded; a URL with a new token counts as another store
_TAIL: Final = 2**16  # bytes, the last that were read, whose hash shows most edits
_LATEST: Final = datetime(2200, 1, 1, tzinfo=timezone.utc).timestamp()
_MOST: Final = 2**26 + 1  # bytes of a document, more than any reader accepts


@dataclass(frozen=True)
class Cursor:
    """How far a perflog was read; `tail` is the hash of the last bytes, `checksum` of all.

    `is_open` means that a line was rejected that may count once the perflog has grown.
    """

    reached: Reach
    tail: str
    checksum: int | None
    is_open: bool


#: For a perflog that could not be read: until it can be, or is gone, all perflogs are read.
_UNREAD: Final = Cursor(Reach(0, 0, (), 0, whole=False), "", None, is_open=True)


class Seen(NamedTuple):
    """A document that was pushed: its hash, and its time (ns) and size, which show a change.

    `at` is its time in the store, in microseconds. It never goes back, as the latest one counts.
    """

    digest: str = ""
    changed: int = 0
    size: int = -1
    at: int = 0


_Moment = Annotated[datetime, msgspec.Meta(tz=True)]


@dataclass(frozen=True)
class Pushed:
    """The record of what a store has of a site.

    `perflogs` are by path, `documents` by system and path, and `newest` is the time of the newest
    sample. `when` is the time of the last successful push; `failed` says why a later one failed.
    """

    perflogs: Mapping[str, Cursor] = field(default_factory=dict)
    newest: _Moment | None = None
    documents: Mapping[str, Mapping[str, Seen]] = field(default_factory=dict)
    when: _Moment | None = None
    failed: str | None = None
    schema: Literal[5] = 5


def _stores(perflogs: Path) -> dict[str, Pushed]:
    """Return the record of each store by the hash of its URL, as a URL may have a password."""
    try:
        return msgspec.json.decode(read_small(perflogs / _NAME), type=dict[str, Pushed])
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return {}


def _hash(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()


def read_pushed(perflogs: Path, url: str) -> Pushed:
    """Return the record of the store at a URL, empty if it is not known."""
    return _stores(perflogs).get(_hash(url), Pushed())


def write_pushed(perflogs: Path, url: str, pushed: Pushed) -> None:
    """Write the record of the store at a URL, and keep those of the other stores.

    Raises:
        OSError: the file cannot be written; the next push sends more than it must.
    """
    others = {name: each for name, each in _stores(perflogs).items() if name != _hash(url)}
    newest = dict([*others.items(), (_hash(url), pushed)][-_STORES:])
    replace_file(perflogs / _NAME, msgspec.json.encode(newest) + b"\n")


def late(perflogs: Path, settings: Path, now: datetime) -> str | None:
    """Return for how long, and why, a site's store lacks new data; None for less than a day."""
    try:
        if (url := store_of(settings)) is None:
            return None
        pushed = read_pushed(perflogs, url)
        if pushed.when is None:
            return pushed.failed and f"yet: {pushed.failed}"
        known = {name: each.reached.changed for name, each in pushed.perflogs.items()}
        seen = {_name(path, perflogs.parent): path.stat().st_mtime_ns for path in inodes(perflogs)}
        # 0 marks a perflog that could not be read then
        waits = pushed.failed or any(known.get(name) not in {0, at} for name, at in seen.items())
    except (FileError, OSError) as error:
        return f"yet: {error}"
    days = (now - pushed.when) // timedelta(days=1)
    if not waits or -1 <= days < 1:
        return None
    # a push dated by a clock that was ahead would otherwise count as recent until then
    since = f"for {days} day{'s' * (days > 1)}" if days > 0 else "since a push dated in the future"
    return f"{since}: {pushed.failed or 'no push has finished'}"


def push_new(
    store: Store, perflogs: Path, config: Path, before: Pushed, now: datetime
) -> tuple[Pushed, int, int]:
    """Push what is new since `before`; return the new record, and how many rows and documents.

    If the store did not take all systems, the record has no time, and says what `failed`.

    Raises:
        StoreError: the store took nothing; nothing is lost.
        FileNotFoundError: there are no perflogs.
        OSError: a file cannot be read.
    """
    noted = before.documents
    if any(_is_behind(store, system, seen) for system, seen in noted.items()):
        before = Pushed()
    site = gather(perflogs, config, before)
    seen: dict[str, Mapping[str, Seen]] = {}

    def push_one(system: str, has: Mapping[str, Seen]) -> int:
        if (known := before.documents.get(system)) is None:
            _refuse_other(store, system, (perflogs / Path(SITE).name).read_bytes())
            there = store.documents(system, EVER)
            _refuse_shorter(site.documents[system], newest_of(there), noted.get(system, {}))
            known = {
                each.path: Seen("" if each.is_edited else each.digest, at=_micro(each))
                for each in sorted(there, key=_micro)
            }
        removed = [StoredDocument(path, now, b"") for path in known.keys() - has.keys()]
        changed = {}
        for each in (*site.documents[system], *removed):
            former = known.get(each.path, Seen())
            if former.digest != each.digest:
                # later than what the store has, also where that was dated by a clock that was ahead
                least = EVER + timedelta(microseconds=former.at + 1)
                changed[each.path] = replace(each, changed=max(each.changed, least))
        gone = changed.keys() - has.keys()
        lost = sorted(path for path in gone if not path.startswith("perflogs/"))
        if lost and not config.is_dir():
            raise StoreError(
                f"{config}: no such directory, but the store has {lost[0]} of this site; push from "
                "the site's directory, or give --config"
            )
        # also removed ones, as they may come back with their old times; run reports never do
        away = {e.path: Seen(e.digest) for e in removed if not _is_report(e.path, system)}
        seen[system] = {
            path: each._replace(
                at=_micro(changed[path]) if path in changed else known.get(path, each).at
            )
            for path, each in {**has, **away}.items()
        }
        rows = site.samples.filter(pl.col("system") == system)
        if len(rows) or changed:
            store.add(system, rows, [*changed.values()])
        return len(changed)

    sent, refused = 0, {}
    for system, has in site.pushed.documents.items():
        try:
            sent += push_one(system, has)
        except StoreError as error:  # push the other systems nevertheless
            refused[system] = str(error)
            seen.pop(system, None)
    hidden = len(refused) - 5
    names = ", ".join([*refused][:5]) + (f" and {hidden} more" if hidden > 0 else "")
    failed = "; ".join([*dict.fromkeys(refused.values()), f"not pushed: {names}"])
    if refused and not seen:
        raise StoreError(failed)
    if refused:  # the perflogs with their rows are read again, and the others are not sent again
        mine = {*site.samples.filter(pl.col("system").is_in([*refused]))["file"]}
        cursors = {name: each for name, each in site.pushed.perflogs.items() if name not in mine}
        cursors |= {name: each for name, each in before.perflogs.items() if name in mine}
        seen |= {name: each for name, each in before.documents.items() if name in refused}
        pushed = replace(site.pushed, perflogs=cursors, documents=seen, failed=failed)
        return pushed, len(site.samples), sent
    return replace(site.pushed, documents=seen, when=now), len(site.samples), sent


def _is_behind(store: Store, system: str, seen: Mapping[str, Seen]) -> bool:
    """Return whether a store lost documents: it was emptied, or restored from a backup.

    Of the run reports, only the newest is checked. If all are gone, `iobands forget` deleted them,
    which is not a loss.
    """
    reports = {name for name in seen if _is_report(name, system)}
    last = max((seen[name].at for name in reports), default=0)
    since = EVER + timedelta(microseconds=last)
    there = {each.path: each.digest for each in newest_of(store.documents(system, since))}
    empty = StoredDocument("", EVER, b"").digest  # as if it were removed
    looked_at = seen.keys() - {name for name in reports if seen[name].at < last}
    if reports and reports.isdisjoint(there):
        left = store.documents(system, EVER)
        if not any(_is_report(each.path, system) for each in left):
            looked_at -= reports
    return any(there.get(name, empty) != seen[name].digest for name in looked_at)


def _is_report(path: str, system: str) -> bool:
    return path.startswith(f"perflogs/{system}/reports/")


def _refuse_shorter(
    mine: Sequence[StoredDocument], there: Sequence[StoredDocument], noted: Mapping[str, Seen]
) -> None:
    """Refuse to replace a log by one that lacks some of its lines: another copy of the site pushed.

    Raises:
        StoreError: the store has such a log; logs only grow.
    """
    own = {each.path: each.content.split(b"\n") for each in mine}
    for each in there:
        if each.path.endswith(".jsonl") and _micro(each) > noted.get(each.path, Seen()).at:
            *lines, _ = each.content.split(b"\n")
            if {*lines} - {*own.get(each.path, ())}:
                raise StoreError(
                    f"{each.path}: lacks lines that the store has from another copy of this site; "
                    "add them, or delete that document in the store"
                )


def _refuse_other(store: Store, system: str, site: bytes) -> None:
    """Refuse to add to a system of the same name that belongs to another site.

    Raises:
        StoreError: the store has such a system.
    """
    if site and document_of(store, system, SITE).content not in {b"", site}:
        raise StoreError(
            f"the store has a system {system!r} of another site; rename one of the two or use "
            "another store, or restore perflogs/site.id if it is the same site"
        )


def _micro(document: StoredDocument) -> int:
    return (document.changed - EVER) // timedelta(microseconds=1)


def copy(source: Store, target: Store, system: str) -> int:
    """Copy everything of a system from one store to another; return the number of its samples.

    Raises:
        StoreError: a store cannot be used, or the target has the system of another site; or a row
            or a document was edited in the source, and the rest was copied.
    """
    _refuse_other(target, system, document_of(source, system, SITE).content)
    rows, rejected = source.samples(system)
    documents = source.documents(system, EVER)
    target.add(system, rows.frame, [each for each in documents if not each.is_edited])
    if lost := [*rejected, *edited(documents)]:
        others = f", and {len(lost) - 1} more" if lost[1:] else ""
        raise StoreError(f"{len(rows)} samples were copied, but not {lost[0]}{others}")
    return len(rows)


@dataclass(frozen=True)
class Gathered:
    """The new data of a site: rows of samples, and by system the documents that changed.

    `pushed` is the record of a store that has them.
    """

    samples: pl.DataFrame
    documents: Mapping[str, Sequence[StoredDocument]]
    pushed: Pushed


def gather(perflogs: Path, config: Path, before: Pushed) -> Gathered:
    """Return the data of a site that a store lacks according to its record, `before`.

    The first call writes `site.id`, which distinguishes systems of one name in a store.

    Raises:
        FileNotFoundError: there are no perflogs.
        OSError: a file cannot be read.
    """
    root, there = perflogs.parent, inodes(perflogs)
    names = {path: _name(path, root) for path in perflog_files(perflogs)}
    former = {path: c for path, name in names.items() if (c := _former(path, name, before))}
    rejected: Sequence[Rejected] | None = None
    parsed = _added(perflogs, names, former, before)
    if parsed is None or inodes(perflogs) != there:
        parsed = parse_perflogs(perflogs)
        rejected = parsed.samples().rejected
        if inodes(perflogs) != there:
            former = {}  # one was rotated meanwhile, so it has other lines now
    new = _table(parsed, root, {path: each.reached.lines for path, each in former.items()})
    cursors = {_name(each.path, root): _UNREAD for each in parsed.unread}
    cursors |= {_name(parsed.paths[n], root): _cursor(parsed, n) for n in parsed.reached}
    identity = perflogs / Path(SITE).name
    if not identity.exists() or not identity.stat().st_size:
        replace_file(identity, f"{uuid4().hex}\n".encode())
    newest = max((each.changed for each in parsed.reached.values()), default=0)
    documents, seen = {}, {}
    # a directory may have another name than the system of its lines
    systems = {each.name for each in entries(perflogs, []) if each.is_dir()} | {*new["system"]}
    # without names such as `.snapshot`, of a file server
    systems = {name for name in systems if re.fullmatch(PATH_PART, name)}
    for system in sorted(systems):
        known = before.documents.get(system, {})
        read, mine = [], {}
        for name, path, about in _files_of(perflogs, config, system):
            mine[name] = known.get(name, Seen())
            if mine[name][1:3] != (about.st_mtime_ns, about.st_size):
                read.append(StoredDocument(name, _moment(about.st_mtime), _content(path)))
                mine[name] = Seen(read[-1].digest, about.st_mtime_ns, about.st_size)
        name = f"perflogs/{system}/{REJECTED}"
        if rejected is None and name in known:
            mine[name] = known[name]
        else:
            said = _rejected_document(perflogs, system, rejected or ())
            read.append(StoredDocument(name, _moment(newest / 1e9), said))
            mine[name] = Seen(read[-1].digest)
        documents[system], seen[system] = read, mine
    times = [*filter(None, [before.newest]), *new.select(pl.max(TIME)).drop_nulls()[TIME]]
    return Gathered(new, documents, Pushed(cursors, max(times, default=None), seen))


def _name(path: Path, root: Path) -> str:
    """Return a file's name in a store: its path below `root`, without unprintable characters."""
    return printable(path.relative_to(root).as_posix())


def _moment(seconds: float) -> datetime:
    """Return the time of a change, or the nearest one that every engine accepts."""
    return datetime.fromtimestamp(min(max(seconds, 0.0), _LATEST), timezone.utc)


def _former(path: Path, name: str, before: Pushed) -> Cursor | None:
    """Return how far a perflog was read, also under another name; None if it has changed."""
    own = before.perflogs.get(name)
    with suppress(OSError):  # its reader says why
        size = path.stat().st_size
        for each in filter(None, (own, *before.perflogs.values())):
            end = each.reached.end
            fits = end == size if each.reached.whole else 0 < end <= size
            # the tail is compared first, as it is faster than the checksum
            if (
                fits
                and _tail(path, end) == each.tail
                and checksum(path, each.reached) == each.checksum
            ):
                return each
    return None


def _tail(path: Path, end: int) -> str:
    with open_regular(path) as stream:
        stream.seek(max(end - _TAIL, 0))
        return hashlib.sha256(stream.read(min(end, _TAIL))).hexdigest()


def _cursor(parsed: Parsed, file: int) -> Cursor:
    """Return how far a file was read.

    A cut-off line is rejected until its rest is written, and a header until a sample follows.
    """
    reached, rejected = parsed.reached[file], parsed.rejected
    is_open = reached.lines <= 1 or rejected.is_full
    is_open |= any(n == file and line > reached.lines for n, line, _ in rejected.listed)
    path = parsed.paths[file]
    return Cursor(reached, _tail(path, reached.end), checksum(path, reached), is_open)


def _added(
    perflogs: Path, names: Mapping[Path, str], former: Mapping[Path, Cursor], before: Pushed
) -> Parsed | None:
    """Parse only the new lines; return None if all lines must be read."""
    known = {names[path]: each for path, each in former.items()}
    same = all(known.get(name) == each for name, each in before.perflogs.items())
    is_copied = len({*known.values()}) < len(known)  # so its lines repeat others
    is_open = any(each.is_open for each in known.values())
    if before.newest is None or not same or is_copied or is_open:
        return None
    parsed = parse_perflogs(perflogs, after={path: each.reached for path, each in former.items()})
    if parsed.samples().rejected or (parsed.rows[TIME] <= before.newest).any():
        return None
    return parsed


def _table(parsed: Parsed, root: Path, known: Mapping[Path, int]) -> pl.DataFrame:
    """Return rows in the form of a store, from the lines after the first `known` of each file."""
    names = [_name(path, root) for path in parsed.paths]
    lines = [known.get(path, 0) for path in parsed.paths]
    file, numbers = pl.col(FILE), range(len(names))
    rows = parsed.rows.frame.filter(pl.col(LINE) > file.replace_strict(numbers, lines))
    rows = rows.join(parsed.said, on=[FILE, LINE], how="left")
    return typed(rows.with_columns(file.replace_strict(numbers, names).alias("file"), line=LINE))


def _files_of(
    perflogs: Path, config: Path, system: str
) -> Iterator[tuple[str, Path, os.stat_result]]:
    """Yield the documents of a system: the name that a store has for each, its file and its stat.

    Raises:
        StoreError: a directory cannot be listed, so it is not known what was removed.
        OSError: it is not known whether a file is there.
    """
    unread: list[Rejected] = []
    part = path_part(system)
    logs, bands = perflogs / part, config / "bands"
    files = {
        **{name: perflogs / Path(name).name for name in SITE_WIDE},
        f"perflogs/{system}/alerts.jsonl": logs / "alerts.jsonl",
        f"config/bands/{part}.yaml": bands / f"{part}.yaml",
        f"config/alerts/{part}.jsonl": config / "alerts" / f"{part}.jsonl",
    }
    for name, paths in {
        f"perflogs/{system}/leftovers": entries(logs / "leftovers", unread),
        f"perflogs/{system}/reports": report_files(perflogs, system, unread),
        f"config/bands/{part}": entries(bands / part, unread),
    }.items():
        files |= {f"{name}/{printable(path.name)}": path for path in paths}
    for each in unread:
        raise StoreError(str(each))
    for name, path in files.items():
        with suppress(FileNotFoundError, NotADirectoryError):
            if stat.S_ISREG((about := path.stat()).st_mode):
                yield name, path, about


def _content(path: Path) -> bytes:
    """Return the content of a file for a store, never empty, which would mean removed."""
    with suppress(Unusable):  # its reader says what is wrong
        if path.parent.name == "reports":
            return reduced_report(path)
    with open_regular(path) as stream:
        return stream.read(_MOST) or b"\n"


def _rejected_document(perflogs: Path, system: str, rejected: Sequence[Rejected]) -> bytes:
    root = perflogs.parent
    said = [
        (
            _name(each.path, root),
            each.line,
            each.reason.replace(f"repeats {root}/", "repeats ").encode(errors="replace").decode(),
            each.lines,
            each.is_unread,
        )
        for each in rejected
        if each.path.is_relative_to(perflogs / path_part(system))
    ]
    return json.dumps(said).encode()
