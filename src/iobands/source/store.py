"""A store: the samples and documents of systems, in an engine that a site already operates.

A URL names the engine. Samples are the lines of perflogs as typed rows. Documents are the other
files below a site's directory that a digest needs: logs, bands, run reports, left-overs.
A store is read by `read_known`, as the files are, so both give the same digest.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol
from urllib.parse import unquote

import msgspec
import polars as pl

from iobands.model import (
    SPEEDS,
    TIME,
    FileError,
    Rejected,
    Rejections,
    naming,
    parse_yaml,
    path_part,
    printable,
    read_content,
    resolved,
)
from iobands.snapshot import Columns, Source
from iobands.source.known import Known, read_known, recent_of
from iobands.source.lines import FILE, LINE, ROWS, SAID, possible
from iobands.source.perflog import Parsed
from iobands.source.samples import Samples

#: The version of contract 10, which a store names.
STORE_SCHEMA: Final = 1
#: The columns of a store's samples: the columns of rows, and their origin.
SAMPLES: Final[Mapping[str, Any]] = {
    **{name: type_ for name, type_ in {**ROWS, **SAID}.items() if name not in {FILE, LINE}},
    "file": pl.Categorical(),
    "line": pl.Int64(),
}
#: The columns that identify a row: all but its origin.
CONTENT: Final = tuple(name for name in SAMPLES if name not in {"file", "line"})
#: The document with the rejected lines, and its content without any.
REJECTED: Final = "rejected.json"
NO_LINES: Final = (b"", b"[]")
#: The document that names the site.
SITE: Final = "perflogs/site.id"
#: The documents of all systems of a site.
SITE_WIDE: Final = (SITE, "perflogs/last-session.json", "perflogs/plan.json")
#: The module and class of the engine for the scheme of a URL, which is "" for a directory.
_ENGINES: Final = {
    **dict.fromkeys(("", "s3", "gs", "az"), ("iobands.source.objects", "ObjectStore")),
    "postgresql": ("iobands.source.postgres", "PostgresStore"),
    "postgres": ("iobands.source.postgres", "PostgresStore"),
}
#: What follows a colon that is not before a password: a port, and perhaps a path.
_PORT: Final = r"\d*(/[^@?#]*)?([?#]|$)"
#: A password with unescaped characters: a part would count as a host or a port, and be printed.
_BARE: Final = re.compile(rf"://[^:/?#@[]*:(?!{_PORT}).*([@/?#]|%(?![0-9A-Fa-f]{{2}})).*@")
#: An option of a URL that says which store is meant.
_PLACE: Final = re.compile(r"(host|hostaddr|port|dbname|service)=[^@?]*")
#: What libraries add to a message that helps nobody.
_NOISE: Final = re.compile(
    r"Generic \w+ error: |\w+: \[libpq\] (Failed to connect: )?| \(os error \d+\)"
    r"| in [\d.]+\S*s, after \d+ retries, max_retries: \d+, retry_timeout: \d+s"
)
_LONGEST_NAME: Final = 255  # bytes, on every file system
#: Before every document.
EVER: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


class StoreError(Exception):
    """A store cannot be used; the message says which, why, and what to do."""


@dataclass(frozen=True)
class StoredDocument:
    """A file of a system, by its path below the site's directory; empty if it was removed.

    `named` is the hash under which a store has it: if the content differs, somebody edited it.
    """

    path: str
    changed: datetime
    content: bytes
    named: str | None = None

    @property
    def digest(self) -> str:
        """The identity of its content."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def is_edited(self) -> bool:
        """Whether somebody changed it in the store."""
        return self.named not in {None, self.digest}


def nothing_there(name: str) -> StoreError:
    """Return the error for a reader that finds no store; only a writer makes one."""
    return StoreError(f"{name}: no store there; check the URL, or push first")


#: Rows of a system with the columns of `SAMPLES`, and what is rejected.
Stored = tuple[Columns, Sequence[Rejected]]


class Store(Protocol):
    """An engine. Data that is added twice, late or in another order is stored once.

    Each method raises a `StoreError` if the engine fails. Part of the data may then have been added
    or deleted; it is safe to repeat the call.
    """

    def close(self) -> None:
        """End what the store opened."""

    def systems(self) -> Sequence[str]:
        """Return the systems that have samples, run reports or rejected lines, in order."""

    def add(self, system: str, samples: pl.DataFrame, documents: Sequence[StoredDocument]) -> None:
        """Add rows of `SAMPLES` and documents; of two with one path, the last changed counts."""

    def samples(self, system: str) -> Stored:
        """Return the rows of a system, in any order, and the rejected ones, such as edited ones."""

    def forget(self, system: str, before: datetime, *, dry_run: bool) -> int:
        """Delete samples and run reports from before a month begins; return how many samples."""

    def documents(
        self, system: str, reports_since: datetime, path: str | None = None
    ) -> Sequence[StoredDocument]:
        """Return the documents of a system, or the one at `path`; edited ones are included.

        Run reports that changed before `reports_since` are left out.
        """


def without_password(url: str) -> str:
    """Return a URL without its password, for messages; a directory as it is.

    Of its options, those that name the server and the database stay.
    """
    if "://" not in url:
        return url
    # up to the last @, as a password may contain one
    shown = re.sub(rf"://([^:/?#@]*):(?!{_PORT}).*@", r"://\1@", url)
    place, _, options = shown.partition("?")
    return "?".join(filter(None, [place, "&".join(filter(_PLACE.fullmatch, options.split("&")))]))


def unusable(name: str, reason: str) -> StoreError:
    """Return the error for what a library says of a store, in one line and without passwords."""
    text = re.sub(r"\S+://\S+", lambda url: without_password(url[0]), reason)
    text = _NOISE.sub("", text)
    lines = "; ".join(" ".join(each.split()) for each in text.splitlines())
    return StoreError(f"{name}: {lines.replace('?;', '?')}")


def refuse_newer(name: str, schema: str) -> bool:
    """Return whether a store's schema is older than this version's.

    Raises:
        StoreError: it is newer, or no number.
    """
    if not re.fullmatch("[0-9]{1,9}", schema):
        raise StoreError(f"{name}: damaged: its version is {schema[:20]!r}; restore a backup")
    if int(schema) > STORE_SCHEMA:
        raise StoreError(
            f"{name}: a store of schema {schema}; this version knows up to {STORE_SCHEMA}: "
            "install the newer iobands"
        )
    return int(schema) < STORE_SCHEMA


_SETTINGS: Final[dict[str, Any]] = {
    "description": "`url: …`, a directory or a URL",
    "type": "object",
    "additionalProperties": False,
    "required": ["url"],
    "properties": {
        "url": {
            "description": "a directory or a URL",
            "writeOnly": True,  # it may have a password
            "type": "string",
            "minLength": 1,
        }
    },
}


def store_of(settings: Path) -> str | None:
    """Return the URL of a site's store from the file `settings`, None without that file.

    A relative path begins at the site's directory, wherever the command runs.

    Raises:
        FileError: the settings cannot be used.
    """
    if not settings.exists() and not settings.is_symlink():
        return None
    document = parse_yaml(read_content(settings), settings)
    document.check(_SETTINGS)
    return located(str(document.value["url"]), settings.parent.parent)


def located(url: str, below: Path) -> str:
    """Return a URL as it is, a directory (also `file://`) as an absolute path, seen from `below`.

    Raises:
        FileError: a path names the home of an unknown user, is not valid, or does not answer; or a
            URL lacks a slash.
    """
    scheme, colon, rest = url.partition(":")
    if scheme and colon and scheme in _ENGINES and not rest.startswith("//"):
        shown = without_password(url)
        raise FileError(f"{shown}: write {scheme}://, or ./{scheme}: for a directory")
    if "://" in url and not url.startswith("file://"):
        return url
    path = unquote(url.removeprefix("file://")) if "://" in url else url
    try:
        return str(resolved(below / Path(path).expanduser()))
    except TimeoutError as error:
        raise FileError(f"{url}: {error.strerror}") from error
    except (RuntimeError, ValueError) as error:
        raise FileError(f"{url}: {error}") from error


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
    scheme = url.partition("://")[0].lower() if "://" in url else ""
    if scheme not in _ENGINES:
        known = ", ".join(f"{each}://" for each in _ENGINES if each)
        raise StoreError(
            f"{without_password(url)}: unknown kind of store; give a directory, or a URL that "
            f"begins with {known}"
        )
    module, name = _ENGINES[scheme]
    try:
        engine = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise StoreError(
            f"{error.name} is missing; for stores: pip install 'iobands[store]'"
        ) from None
    with closing(engine(url, new=new)) as store:
        yield store


def typed(rows: pl.DataFrame) -> pl.DataFrame:
    """Return `rows` with the columns of `SAMPLES` and their types; a missing column is null."""
    return rows.select(
        (pl.col(name) if name in rows.columns else pl.lit(None)).cast(type_).alias(name)
        for name, type_ in SAMPLES.items()
    )


def stored_rows(
    frames: Iterable[pl.DataFrame], rejected: Iterable[Rejected] = (), kept: Iterable[bytes] = ()
) -> Stored:
    """Return the valid rows of an engine, and `rejected` with the rows that no perflog can have.

    The reader of perflogs refuses such rows, but anybody may write them to a store. The Parquet
    files `kept` have rows that were checked before.
    """
    read, refused_rows = [*map(Source.of, kept), Source(pl.LazyFrame(schema=SAMPLES))], [*rejected]
    for frame in frames:
        good = possible(frame) & frame["file"].is_not_null() & frame["line"].is_not_null()
        refused_rows += refused(frame.filter(~good), "not a sample that a perflog can have")
        rows = frame.filter(good)
        read.append(Source(rows.lazy()))
    return Columns(read, SAMPLES), refused_rows


def stored_samples(store: Store, systems: Sequence[str]) -> Samples:
    """Return the samples of systems; rows that were edited, or are not valid, are rejected.

    Raises:
        StoreError: the store cannot be read.
        FileNotFoundError: it has nothing of these systems, or all their samples are rejected.
    """
    found = [store.samples(name) for name in systems]
    rejected = [each for _, lines in found for each in lines]
    rows = Columns([source for each, _ in found for source in each.sources], SAMPLES)
    if not len(rows):
        there = store.systems()
        if not there:
            raise FileNotFoundError("the store has no samples yet; measure and push")
        # where no run has proved anything yet, run reports say why
        if rejected or not any(document_of(store, name, SITE).content for name in systems):
            why = str(rejected[0]) if rejected else f"systems there: {', '.join(there)}"
            raise FileNotFoundError(f"no samples of {', '.join(systems)}; {why}")
    names = rows["file"].unique().cast(pl.String).to_list()
    names.sort(key=lambda name: PurePosixPath(name).parts)
    number = rows["file"].cast(pl.Enum(names)).to_physical().cast(pl.UInt32)
    rows = rows.with_columns(number.alias(FILE))
    by = (TIME, FILE, "line")
    ordered = rows.at(rows.select(*by).select(pl.arg_sort_by(by)).to_series().to_numpy())
    # renumbered, as a rotated perflog begins with another line under the same name
    ordered = ordered.with_columns(pl.Series(LINE, range(len(rows)), pl.UInt32))
    said = ordered.select(*SAID).filter(pl.any_horizontal(pl.col(SPEEDS).is_not_null()))
    ordered = ordered.drop("file", "line", *SPEEDS)
    # a row that is there twice counts once, and is not rejected
    samples = Parsed(ordered, said, [Path(name) for name in names], Rejections(), []).samples()
    return replace(samples, rejected=tuple(rejected))


def refused(rows: pl.DataFrame, reason: str) -> list[Rejected]:
    """Return the rejections of rows with the columns of `SAMPLES`, all for the same reason."""
    places = rows.select("file", "line").iter_rows()
    return [Rejected(Path(str(file)), line or 0, reason) for file, line in places]


def read_stored(
    store: Store,
    systems: Sequence[str],
    *,
    now: datetime,
    system: str | None = None,
    as_of: bool = False,
) -> Known:
    """Return what a store has of a site's systems, or of `system` alone, as `read_known` does.

    Raises:
        StoreError: the store cannot be read.
        FileNotFoundError: it has nothing of them, or all their samples are rejected.
    """
    systems = [system] if system else systems
    samples = stored_samples(store, systems)
    since = EVER if as_of else now - 2 * recent_of(samples.histories.values())
    while True:
        with TemporaryDirectory(prefix="iobands-") as scratch:
            root = Path(scratch)
            rejected = _write(store, systems, since, root)
            known = read_known(
                root / "perflogs",
                root / "config" / "bands",
                root / "config" / "alerts",
                now=now,
                system=system,
                as_of=as_of,
                samples=samples,
            )
        count = len(samples.rejected)  # those of perflogs come first, as in `read_known`
        lines = (*known.rejected[:count], *rejected, *known.rejected[count:])
        known = replace(known, rejected=lines)
        # recent reports are counted from the newest session, which may be long ago
        newest = known.reports.newest
        if since == EVER or (newest and newest - recent_of(known.histories.values()) >= since):
            return _named_as_the_files(known, f"{root}/")
        since = EVER


def _write(
    store: Store, systems: Sequence[str], reports_since: datetime, root: Path
) -> Sequence[Rejected]:
    """Write the documents of systems below `root`, and return the rejected lines among them."""
    (root / "perflogs").mkdir()
    documents = [
        each
        for name in systems
        for each in store.documents(name, reports_since)
        if _is_of(each, name)
    ]
    rejected = edited(documents)
    # in the order of their files, as rejected lines are listed
    for document in sorted(newest_of(documents), key=lambda each: PurePosixPath(each.path).parts):
        path = root / document.path
        if path.name == REJECTED:
            rejected += _rejected_in(document)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with naming(path):
            path.write_bytes(document.content)
        os.utime(path, (document.changed.timestamp(),) * 2)
    return rejected


def edited(documents: Iterable[StoredDocument]) -> list[Rejected]:
    """Return the rejections of the documents that are not what was pushed."""
    reason = "edited in the store: it does not match its identity"
    return [Rejected(Path(each.path), 0, reason) for each in documents if each.is_edited]


def newest_of(documents: Iterable[StoredDocument]) -> Sequence[StoredDocument]:
    """Return the newest unedited document at each path, unless it was removed."""
    by_path: dict[str, StoredDocument] = {}
    whole = (each for each in documents if not each.is_edited)
    for each in sorted(whole, key=lambda each: (each.changed, each.digest)):
        by_path[each.path] = each
    return [each for each in by_path.values() if each.content]


def _is_of(document: StoredDocument, system: str) -> bool:
    """Return whether a system may have a document: a cluster must not write another's files."""
    parts, name = PurePosixPath(document.path).parts, path_part(system)
    own = document.path.replace(system, "")  # a push makes all but the system printable
    if printable(own) != own or any(len(each.encode()) > _LONGEST_NAME for each in parts):
        return False
    if document.path in {*SITE_WIDE, f"config/bands/{name}.yaml", f"config/alerts/{name}.jsonl"}:
        return True
    is_below = parts[:2] == ("perflogs", system) or parts[:3] == ("config", "bands", name)
    return is_below and ".." not in parts


def _named_as_the_files(known: Known, scratch: str) -> Known:
    """Return `known` with the names of files in a site's directory, without `scratch`."""

    def named(text: object) -> str:
        return str(text).replace(scratch, "")

    return replace(
        known,
        rejected=tuple(
            replace(each, path=Path(named(each.path)), reason=named(each.reason))
            for each in known.rejected
        ),
        bands={
            system: replace(each, warnings=tuple(map(named, each.warnings)))
            for system, each in known.bands.items()
        },
        problems=tuple((named(subject), named(why)) for subject, why in known.problems),
        leftovers=tuple(replace(each, path=Path(named(each.path))) for each in known.leftovers),
    )


def sites_of(store: Store) -> Sequence[Sequence[str]]:
    """Return the systems of each site, which are judged together.

    Raises:
        StoreError: the store cannot be read.
    """
    sites: defaultdict[bytes, list[str]] = defaultdict(list)
    for system in store.systems():
        site = system.encode()
        with suppress(StoreError):  # its reader says why
            site = document_of(store, system, SITE).content or site
        sites[site].append(system)
    return [*sites.values()]


def document_of(store: Store, system: str, path: str) -> StoredDocument:
    """Return a document of a system, an empty one if the store has none.

    Raises:
        StoreError: the store cannot be read.
    """
    found = [*newest_of(store.documents(system, EVER, path))]
    return found[0] if found else StoredDocument(path, EVER, b"")


def _rejected_in(document: StoredDocument) -> list[Rejected]:
    try:
        lines = msgspec.json.decode(document.content, type=list[tuple[str, int, str, int, bool]])
    except (msgspec.MsgspecError, ValueError):
        raise StoreError(f"{document.path}: damaged in the store; push again") from None
    return [Rejected(Path(path), *rest) for path, *rest in lines]  # type: ignore[arg-type]
