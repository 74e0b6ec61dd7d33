"""Pushing what is new at a site to a store.

`perflogs/pushed.json` says what the store has: the lines of each perflog and the content of each
document. It only saves work. Without it everything is pushed anew, and the store is the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Final

import polars as pl

from iobands.model import parse_time, read_small, replace_file, utc_text
from iobands.source.store import (
    EVER,
    SITE,
    Store,
    StoredDocument,
    StoreError,
    gather,
    site_of_system,
)

_SCHEMA: Final = 1
_NAME: Final = "pushed.json"
#: The engine of a URL's scheme; a directory has none.
_ENGINES: Final = {
    "postgresql": ("iobands.source.postgres", "PostgresStore"),
    "postgres": ("iobands.source.postgres", "PostgresStore"),
}
_OBJECTS: Final = ("iobands.source.objects", "ObjectStore")


@contextmanager
def open_store(url: str) -> Iterator[Store]:
    """Yield the store at a URL, or in a directory.

    Raises:
        StoreError: it cannot be used.
    """
    module, name = _ENGINES.get(url.partition("://")[0], _OBJECTS)
    try:
        engine = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise StoreError(
            f"{error.name} is missing; for stores: pip install 'iobands[store]'"
        ) from None
    store = engine(url)
    try:
        yield store
    finally:
        store.close()


@dataclass(frozen=True)
class Pushed:
    """What the store at a URL has of a site, by the hash of the URL.

    `lines` are by perflog, the hashes in `documents` by system and path. `when` is the last
    push that succeeded, and `failed` why a later one did not.
    """

    store: str
    lines: Mapping[str, int] = field(default_factory=dict)
    documents: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    when: datetime | None = None
    failed: str | None = None


def read_pushed(perflogs: Path, url: str) -> Pushed:
    """Return what was pushed to a URL; nothing if that is not known."""
    nothing = Pushed(hashlib.sha256(url.encode()).hexdigest())
    try:
        said = json.loads(read_small(perflogs / _NAME))
        if said.pop("schema") != _SCHEMA or said["store"] != nothing.store:
            return nothing
        when = parse_time(said["when"]) if said["when"] else None
        found = Pushed(**{**said, "when": when})
        whole = all(type(each) is int for each in found.lines.values()) and all(
            isinstance(each, dict) for each in found.documents.values()
        )
        return found if whole else nothing
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return nothing


def push_new(
    store: Store, perflogs: Path, config: Path, before: Pushed, now: datetime
) -> tuple[Pushed, int, int]:
    """Push what is new since `before`; return what the store has then, new rows and documents.

    Raises:
        StoreError: the store did not take everything; nothing is lost.
        FileNotFoundError: there are no perflogs.
        OSError: a file cannot be read.
    """
    site = gather(perflogs, config, before.lines)
    new, sent, has = site.samples, 0, {}
    for system, documents in site.documents.items():
        known = before.documents.get(system)
        if known is None:
            theirs = site_of_system(store, system)
            if theirs and theirs != next(e.content for e in documents if e.path == SITE):
                raise StoreError(
                    f"the store has a system {system!r} of another site; rename one of the two, or "
                    "push to another store"
                )
            known = {each.path: each.digest for each in store.documents(system, EVER)}
        has[system] = {each.path: each.digest for each in documents}
        changed = [each for each in documents if known.get(each.path) != each.digest]
        changed += [StoredDocument(path, now, b"") for path in known.keys() - has[system].keys()]
        mine = new.filter(pl.col("system") == system)
        if len(mine) or changed:
            store.add(system, mine, changed)
            sent += len(changed)
    return Pushed(before.store, site.lines, has, now), len(new), sent


def copy(source: Store, target: Store, system: str) -> int:
    """Copy everything of a system from one store to another; return the number of its samples.

    Raises:
        StoreError: a store cannot be used, or a row is not what it was.
    """
    rows, rejected = source.samples(system)
    if rejected:
        raise StoreError(f"{rejected[0]}; push it again before it is copied")
    target.add(system, rows, source.documents(system, EVER))
    return len(rows)


def write_pushed(perflogs: Path, pushed: Pushed) -> None:
    """Keep what was pushed.

    Raises:
        OSError: the file cannot be written; the next push sends more than it must.
    """
    said = {**vars(pushed), "when": pushed.when and utc_text(pushed.when), "schema": _SCHEMA}
    replace_file(perflogs / _NAME, f"{json.dumps(said)}\n".encode())
