"""A store: what is known of systems, in an engine that a site already operates.

It travels in two forms. Samples are the rows of perflogs, typed, as every line of a perflog that
can be read is one. Documents are all other files below a site's directory that are read, as they
are: logs, bands, run reports, left-overs. So a store gives the digest that the files give, and
`read_known` is the one reader of both.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final, Protocol
from uuid import uuid4

import polars as pl

from iobands.measure.run_reports import reduced_report, report_files
from iobands.model import TIME, VALUE, Rejected, Rejections, Unusable, path_part
from iobands.source.known import Known, read_known, recent_of
from iobands.source.lines import FILE, LINE, ROWS, SAID
from iobands.source.perflog import Parsed, parse_perflogs
from iobands.source.samples import Samples

#: The version of contract 10, which a store names.
STORE_SCHEMA: Final = 1
#: The columns of a store's samples: those of rows, and their origin.
SAMPLES: Final[Mapping[str, Any]] = {
    **{name: type_ for name, type_ in {**ROWS, **SAID}.items() if name not in {FILE, LINE}},
    "file": pl.Categorical(),
    "line": pl.Int64(),
}
#: What makes a row what it is.
CONTENT: Final = tuple(name for name in SAMPLES if name not in {"file", "line"})
_REJECTED: Final = "rejected.json"
#: The document that names the site.
SITE: Final = "perflogs/site.id"
_SITE_WIDE: Final = (SITE, "perflogs/last-session.json", "perflogs/plan.json")
#: Before every document.
EVER: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NONE: Final[Mapping[str, int]] = MappingProxyType({})
_MOST_DAMAGED: Final = 2**16  # bytes of a run report that no reader can use


class StoreError(Exception):
    """A store cannot be used; the message says which, why, and what to do."""


@dataclass(frozen=True)
class StoredDocument:
    """A file of a system, by its path below the site's directory; empty if it was removed."""

    path: str
    changed: datetime
    content: bytes

    @property
    def digest(self) -> str:
        """The identity of its content."""
        return hashlib.sha256(self.content).hexdigest()


class Store(Protocol):
    """An engine. Whatever it is given twice, late or in another order, it has once."""

    def close(self) -> None:
        """End what the store opened."""

    def systems(self) -> Sequence[str]:
        """Return the systems that it knows, in order."""

    def add(self, system: str, samples: pl.DataFrame, documents: Sequence[StoredDocument]) -> None:
        """Add rows of `SAMPLES` and documents; of two with one path, the last changed counts.

        Raises:
            StoreError: nothing or a part was added; adding it all again is right.
        """

    def samples(self, system: str) -> tuple[pl.DataFrame, Sequence[Rejected]]:
        """Return the rows of a system, in any order, and what is not what it was.

        Raises:
            StoreError: the store cannot be read.
        """

    def documents(
        self, system: str, reports_since: datetime, path: str | None = None
    ) -> Sequence[StoredDocument]:
        """Return the documents of a system, or the one at `path`; run reports since then only.

        Raises:
            StoreError: the store cannot be read.
        """


def table_of(parsed: Parsed, root: Path, known: Mapping[str, int]) -> pl.DataFrame:
    """Return rows of perflogs below `root` as a store has them, behind the lines `known` of each.

    Of a perflog that became shorter, all rows.
    """
    names = [path.relative_to(root).as_posix() for path in parsed.paths]
    files = pl.DataFrame(
        {
            FILE: range(len(names)),
            "file": names,
            "known": [known.get(name, 0) for name in names],
        },
        {FILE: pl.UInt32(), "file": pl.Categorical(), "known": pl.Int64()},
    )
    last = parsed.rows.group_by(FILE).agg(last=pl.col(LINE).max())
    shorter = pl.col("known") > pl.col("last")
    files = files.join(last, on=FILE).with_columns(
        pl.when(shorter).then(0).otherwise("known").alias("known")
    )
    rows = parsed.rows.join(files, on=FILE).filter(pl.col(LINE) > pl.col("known"))
    rows = rows.join(parsed.said, on=[FILE, LINE], how="left").rename({LINE: "line"})
    return typed(rows)


def typed(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of `SAMPLES` with their types; one that is missing is null."""
    return rows.select(
        (pl.col(name) if name in rows.columns else pl.lit(None)).cast(type_).alias(name)
        for name, type_ in SAMPLES.items()
    )


def samples_of(table: pl.DataFrame, rejected: Iterable[Rejected]) -> Samples:
    """Return the samples that the rows of a store make, whatever their order."""
    places = table["file"].unique().cast(pl.String)
    names = sorted(places, key=lambda name: PurePosixPath(name).parts)
    numbers = pl.DataFrame(
        {"file": names, FILE: range(len(names))}, {"file": pl.Categorical(), FILE: pl.UInt32()}
    )
    rows = table.join(numbers, on="file").drop("file").rename({"line": LINE})
    rows = rows.cast({LINE: pl.UInt32()}).sort(FILE, LINE)
    # what is equal has one time and one value, which is quick to see
    alike = rows.select(TIME, VALUE).is_duplicated()
    again = rows.with_row_index("row").filter(alike)
    again = again.filter(~pl.struct(CONTENT).is_first_distinct())
    rows = rows.filter(~pl.arange(0, pl.len()).is_in(again["row"].implode()))
    said = rows.select(*SAID).filter(
        pl.any_horizontal(pl.col(name).is_not_null() for name in SAID if name not in {FILE, LINE})
    )
    parsed = Parsed(rows.select(*ROWS), said, [Path(name) for name in names], Rejections(), [])
    return replace(parsed.samples(), rejected=tuple(rejected))


def read_stored(
    store: Store,
    systems: Sequence[str],
    *,
    now: datetime,
    system: str | None = None,
    as_of: bool = False,
) -> Known:
    """Return what a store knows of the systems of a site, or of one of them, as `read_known` does.

    Raises:
        StoreError: the store cannot be read.
        FileNotFoundError: it has no samples.
    """
    systems = [system] if system else systems
    found = [store.samples(name) for name in systems]
    table = pl.concat([pl.DataFrame(schema=SAMPLES), *(each for each, _ in found)])
    if table.is_empty():
        there = ", ".join(store.systems()) or "none"
        raise FileNotFoundError(
            f"the store has no samples of {', '.join(systems) or 'any system'}; systems there: "
            f"{there}"
        )
    samples = samples_of(table, ())
    recent = recent_of(samples.histories().values())
    since = EVER if as_of else now - recent - timedelta(days=1)
    with TemporaryDirectory(prefix="iobands-") as scratch:
        root, rejected = Path(scratch), [each for _, lines in found for each in lines]
        (root / "perflogs").mkdir()
        documents = [
            each
            for name in systems
            for each in store.documents(name, since)
            if _is_of(each.path, name)
        ]
        for document in _newest(documents):
            if PurePosixPath(document.path).name == _REJECTED:
                rejected += _rejected_in(document)
            else:
                path = root / document.path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(document.content)
                os.utime(path, (document.changed.timestamp(),) * 2)
        known = read_known(
            root / "perflogs",
            root / "config" / "bands",
            root / "config" / "alerts",
            now=now,
            system=system,
            as_of=as_of,
            samples=replace(samples, rejected=tuple(rejected)),
        )
    return _named_as_the_files(known, f"{root}/")


def _newest(documents: Iterable[StoredDocument]) -> Iterable[StoredDocument]:
    by_path: dict[str, StoredDocument] = {}
    for each in sorted(documents, key=lambda each: (each.changed, each.digest)):
        by_path[each.path] = each
    return [each for each in by_path.values() if each.content]


def _is_of(path: str, system: str) -> bool:
    """Whether a document is one that a system may have: no cluster writes another's."""
    parts, name = PurePosixPath(path).parts, path_part(system)
    return path in {
        *_SITE_WIDE,
        f"config/bands/{name}.yaml",
        f"config/alerts/{name}.jsonl",
    } or (parts[:2] == ("perflogs", system) and ".." not in parts)


def _named_as_the_files(known: Known, scratch: str) -> Known:
    """Return what is known with the names that the files have in a site's directory."""

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
        problems=tuple((named(subject), named(reason)) for subject, reason in known.problems),
    )


def sites_of(store: Store) -> Sequence[Sequence[str]]:
    """Return the systems of each site: what one site pushed is judged together.

    Raises:
        StoreError: the store cannot be read.
    """
    sites: defaultdict[bytes, list[str]] = defaultdict(list)
    for system in store.systems():
        sites[site_of_system(store, system) or system.encode()].append(system)
    return [*sites.values()]


def site_of_system(store: Store, system: str) -> bytes:
    """Return the identity of the site that pushed a system, empty if there is none.

    Raises:
        StoreError: the store cannot be read.
    """
    found = _newest(store.documents(system, EVER, SITE))
    return next((each.content for each in found), b"")


@dataclass(frozen=True)
class Gathered:
    """What the files of a site hold: new rows, the last line of each perflog, and documents."""

    samples: pl.DataFrame
    lines: Mapping[str, int]
    documents: Mapping[str, Sequence[StoredDocument]]


def gather(perflogs: Path, config: Path, known: Mapping[str, int] = _NONE) -> Gathered:
    """Return what is known of a site's systems, for a store, without the lines `known` of each.

    The first time, the site gets its identity, by which a store tells two of one name apart.

    Raises:
        FileNotFoundError: there are no perflogs.
        OSError: a file cannot be read.
    """
    parsed, root = parse_perflogs(perflogs), perflogs.parent
    with (
        suppress(FileExistsError),
        (perflogs / Path(SITE).name).open("x", encoding="ascii") as identity,
    ):
        identity.write(f"{uuid4().hex}\n")
    new = table_of(parsed, root, known)
    last = parsed.rows.group_by(FILE).agg(pl.col(LINE).max()).iter_rows()
    ends = {parsed.paths[file].relative_to(root).as_posix(): line for file, line in last}
    names = sorted({each.name for each in perflogs.iterdir() if each.is_dir()})
    lines = parsed.samples().rejected
    documents: dict[str, Sequence[StoredDocument]] = {}
    for name in names:
        mine = [each for each in lines if each.path.is_relative_to(perflogs / name)]
        changed = max(
            (_changed(p) for p in parsed.paths if p.is_relative_to(perflogs / name)), default=EVER
        )
        documents[name] = [
            *_files_of(perflogs, config, name),
            _rejected_document(name, mine, root, changed),
        ]
    return Gathered(new, ends, documents)


def _files_of(perflogs: Path, config: Path, system: str) -> Iterator[StoredDocument]:
    logs, part = perflogs / path_part(system), path_part(system)
    files = {
        **{name: perflogs / Path(name).name for name in _SITE_WIDE},
        f"perflogs/{system}/alerts.jsonl": logs / "alerts.jsonl",
        f"config/bands/{part}.yaml": config / "bands" / f"{part}.yaml",
        f"config/alerts/{part}.jsonl": config / "alerts" / f"{part}.jsonl",
    }
    for note in sorted((logs / "leftovers").glob("*")):
        files[f"perflogs/{system}/leftovers/{note.name}"] = note
    for name, path in files.items():
        if path.is_file():
            yield StoredDocument(name, _changed(path), path.read_bytes())
    for path in report_files(perflogs, system):
        try:
            content = reduced_report(path)
        except Unusable:
            content = path.read_bytes()[:_MOST_DAMAGED]  # its reader says what is wrong
        yield StoredDocument(f"perflogs/{system}/reports/{path.name}", _changed(path), content)


def _rejected_document(
    system: str, lines: Sequence[Rejected], root: Path, changed: datetime
) -> StoredDocument:
    said = [
        [
            each.path.relative_to(root).as_posix(),
            each.line,
            each.reason.replace(f"{root}/", ""),
            each.lines,
            each.is_unread,
        ]
        for each in lines
    ]
    return StoredDocument(f"perflogs/{system}/{_REJECTED}", changed, json.dumps(said).encode())


def _rejected_in(document: StoredDocument) -> list[Rejected]:
    try:
        return [
            Rejected(Path(str(path)), int(line), str(reason), int(lines), bool(unread))
            for path, line, reason, lines, unread in json.loads(document.content)
        ]
    except (ValueError, TypeError):
        raise StoreError(f"{document.path}: damaged in the store; push again") from None


def _changed(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
