"""A store in PostgreSQL: two tables, which psql and Grafana read too.

A row's identity is the hash of its content, which the server computes: a row that is pushed twice
is stored once, and an edited row does not match its identity.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Final

import polars as pl
from adbc_driver_manager.dbapi import Connection, Error
from adbc_driver_postgresql import dbapi

from iobands.model import TIME, Rejected
from iobands.source.store import (
    CONTENT,
    REJECTED,
    SAMPLES,
    STORE_SCHEMA,
    Stored,
    StoredDocument,
    StoreError,
    nothing_there,
    refuse_newer,
    refused,
    stored_rows,
    typed,
    unusable,
    without_password,
)

_TYPES: Final[Mapping[type[pl.DataType], str]] = {
    pl.String: "text",
    pl.Categorical: "text",
    pl.Int64: "bigint",
    pl.Float64: "double precision",
    pl.Datetime: "timestamptz",
}
#: How long a server that does not answer, or a locked table, may delay a session.
_PATIENCE: Final = (
    "connect_timeout=30&tcp_user_timeout=60000"
    "&keepalives_idle=30&keepalives_interval=10&keepalives_count=3"
)
_LOCKED: Final = "60s"
#: The server's message, which the driver puts after the whole query; ERROR may be translated.
_SERVER: Final = re.compile(r"\w:  +(.+)")
_TYPED: Final = {name: f'"{name}" {_TYPES[type(each)]}' for name, each in SAMPLES.items()}
_IS_REPORT: Final = "path LIKE 'perflogs/%/reports/%'"
#: The time of a document, limited to what a push can write, as somebody may have edited it.
_CHANGED: Final = "least(greatest({}changed, '1970-01-01'), '2200-01-01')"
_COLUMNS: Final = ", ".join(f'"{name}"' for name in SAMPLES)
_DOCUMENT: Final = {
    "system": pl.String(),
    "path": pl.String(),
    "changed": pl.Datetime("us", "UTC"),
    "digest": pl.String(),
    "content": pl.Binary(),
}


def _identity(names: Sequence[str]) -> str:
    """Return the SQL for a row's identity: the hash of PostgreSQL's text of its cells."""
    cells = ", ".join(f'"{name}"' for name in names)
    return f"sha256(convert_to(ROW({cells})::text, 'UTF8'))"


_TABLES: Final = (
    # even IF NOT EXISTS fails where two sessions make one schema at once
    "DO 'BEGIN PERFORM pg_advisory_xact_lock(hashtext(''iobands'')); END'",
    "CREATE SCHEMA IF NOT EXISTS iobands",
    "CREATE TABLE IF NOT EXISTS iobands.about (schema integer PRIMARY KEY)",
    f"INSERT INTO iobands.about SELECT {STORE_SCHEMA} WHERE NOT EXISTS (SELECT FROM iobands.about)",
    f"CREATE TABLE IF NOT EXISTS iobands.samples ({', '.join(_TYPED.values())}, id bytea NOT NULL, "
    f"PRIMARY KEY (system, {TIME}, id))",
    "CREATE TABLE IF NOT EXISTS iobands.documents (system text, path text, "
    "changed timestamptz NOT NULL, digest text NOT NULL, content bytea NOT NULL, "
    "PRIMARY KEY (system, path))",
)
_ADD: Final = (
    f"INSERT INTO iobands.samples ({_COLUMNS}, id) SELECT {_COLUMNS}, {_identity(CONTENT)} "
    "FROM pushed_samples ON CONFLICT DO NOTHING",
    "INSERT INTO iobands.documents SELECT DISTINCT ON (system, path) * FROM pushed_documents "
    "ORDER BY system, path, changed DESC, digest DESC "
    "ON CONFLICT (system, path) DO UPDATE SET changed = EXCLUDED.changed, "
    "digest = EXCLUDED.digest, content = EXCLUDED.content "
    f"WHERE ({_CHANGED.format('documents.')}, documents.digest) < "
    "(EXCLUDED.changed, EXCLUDED.digest)",
)


class PostgresStore:
    """The store in the database at a URL of libpq, such as `postgresql://HOST/DATABASE`.

    The password comes from libpq: `~/.pgpass`, PGPASSFILE, or a certificate.
    """

    def __init__(self, url: str, *, new: bool) -> None:
        """Connect; with `new` the tables are made if missing.

        Raises:
            StoreError: the database cannot be used, has no store, or has a newer schema.
        """
        self._name = without_password(url)
        with self._errors():
            place, _, given = url.partition("?")  # of an option that comes twice, the last counts
            self._connection: Connection = dbapi.connect(f"{place}?{_PATIENCE}&{given}".rstrip("&"))
        try:
            # in other schemas, any user may make a function that would run with our rights
            self._do("SET search_path TO pg_catalog")
            # these settings change the text that is hashed; a role or a database may have others
            self._do("SET timezone TO 'UTC'", "SET datestyle TO ISO", "SET extra_float_digits TO 1")
            self._do(f"SET lock_timeout TO '{_LOCKED}'")
            role = self._read("SELECT current_user::text AS role")["role"][0]
            if f"//{role}@" not in self._name:  # but from the environment, or an option
                self._name += f" as role {role}"
            if self._read("SELECT to_regclass('iobands.about') IS NULL AS lacks")["lacks"][0]:
                if not new:
                    raise nothing_there(self._name)
                self._do(*_TABLES)
            schema = self._read("SELECT max(schema) AS schema FROM iobands.about")["schema"][0]
            if refuse_newer(self._name, str(schema)):
                try:
                    self._migrate(schema)
                except StoreError as error:
                    once = "let the owner of its tables read it once"
                    raise StoreError(f"{error}; the store is of an older schema: {once}") from error
        except StoreError:
            self.close()
            raise

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def systems(self) -> Sequence[str]:
        """Return the systems that have samples, run reports or rejected lines."""
        # walks over the indexes, as DISTINCT would read every row
        least = (
            "least((SELECT min(system) FROM iobands.samples {0}), "
            "(SELECT min(system) FROM iobands.documents {0}))"
        )
        return self._read(
            f"WITH RECURSIVE s(system) AS (SELECT {least.format('')} UNION ALL "
            f"SELECT {least.format('WHERE system > s.system')} FROM s WHERE system IS NOT NULL) "
            "SELECT system FROM s WHERE "
            "EXISTS (SELECT FROM iobands.samples AS x WHERE x.system = s.system) OR EXISTS "
            "(SELECT FROM iobands.documents AS x WHERE x.system = s.system AND "
            f"({_IS_REPORT} OR path LIKE '%/{REJECTED}' AND content NOT IN ('', '[]'))) "
            "ORDER BY system"
        )["system"].to_list()

    def add(self, system: str, samples: pl.DataFrame, documents: Sequence[StoredDocument]) -> None:
        """Add everything in one transaction; see `Store`."""
        table = [(system, each.path, each.changed, each.digest, each.content) for each in documents]
        frames = {
            "pushed_samples": samples.with_columns(pl.col(pl.Categorical).cast(pl.String)),
            "pushed_documents": pl.DataFrame(table, _DOCUMENT, orient="row"),
        }
        with self._errors(), self._connection.cursor() as cursor:
            for name, rows in frames.items():
                cursor.execute(f"DROP TABLE IF EXISTS pg_temp.{name}")
                cursor.adbc_ingest(name, rows, mode="create", temporary=True)
        self._do(*_ADD)

    def samples(self, system: str) -> Stored:
        """Return the rows of a system that match their identity; the others are rejected."""
        of_system = "FROM iobands.samples WHERE system = $1"
        year = f"least(greatest(date_part('year', {{}}({TIME})), 1970), 2200)::bigint"
        ends = ", ".join(f"{year.format(end)} AS {end}" for end in ("min", "max"))
        first, last = self._read(f"SELECT {ends} {of_system}", system).row(0)
        why = "edited in the store: it does not match its identity"
        found: list[pl.DataFrame] = []
        rejected: list[Rejected] = []
        # a year at a time, as the texts of all years take much more memory than the result
        edges = ["-infinity", *(f"{each}-01-01" for each in range(first + 1, last + 1))]
        for begin, end in zip(edges, [*edges[1:], "infinity"], strict=True):
            rows = self._read(
                f"SELECT {_COLUMNS}, id <> {_identity(CONTENT)} AS edited {of_system} "
                f"AND {TIME} >= '{begin}' AND {TIME} < '{end}'",
                system,
            )
            rejected += refused(rows.filter("edited"), why)
            found.append(typed(rows.filter(~pl.col("edited"))))
        return stored_rows(found, rejected)

    def forget(self, system: str, before: datetime, *, dry_run: bool) -> int:
        """Delete rows in one transaction; see `Store`."""
        which = f"FROM iobands.samples WHERE system = $1 AND {TIME} < $2"
        count: int = self._read(f"SELECT count(*) AS rows {which}", system, before)["rows"][0]
        if not dry_run:
            reports = f"WHERE system = $1 AND {_IS_REPORT} AND changed < $2"
            commands = (f"DELETE {which}", f"DELETE FROM iobands.documents {reports}")
            self._do(*commands, values=(system, before))
        return count

    def documents(
        self, system: str, reports_since: datetime, path: str | None = None
    ) -> Sequence[StoredDocument]:
        """Return the documents of a system; see `Store`."""
        rows = self._read(
            f"SELECT path, {_CHANGED.format('')}, content, digest FROM iobands.documents "
            "WHERE system = $1 AND ($3 = '' OR path = $3) "
            f"AND (NOT {_IS_REPORT} OR changed >= $2)",
            system,
            reports_since,
            path or "",
        )
        return [StoredDocument(*row) for row in rows.iter_rows()]

    def _migrate(self, schema: int) -> None:
        """Add the columns that an older store lacks, and keep a copy of its table of samples.

        A row that did not match its identity still does not match it.
        """
        there = self._read(
            "SELECT column_name AS name FROM information_schema.columns "
            "WHERE table_schema = 'iobands' AND table_name = 'samples'"
        )["name"].to_list()
        before = _identity([name for name in CONTENT if name in there])
        added = (f"ADD COLUMN {each}" for name, each in _TYPED.items() if name not in there)
        alter = "ALTER TABLE iobands.samples"
        self._do(
            "LOCK TABLE iobands.samples",
            f"CREATE TABLE iobands.samples_of_schema_{schema} AS TABLE iobands.samples",
            f"{alter} ADD COLUMN matches boolean",
            f"UPDATE iobands.samples SET matches = id = {before}",
            *(f"{alter} {each}" for each in added),
            f"UPDATE iobands.samples SET id = {_identity(CONTENT)} WHERE matches",
            f"{alter} DROP COLUMN matches",
            f"UPDATE iobands.about SET schema = {STORE_SCHEMA}",
        )

    def _read(self, command: str, *values: object) -> pl.DataFrame:
        with self._errors():
            with self._connection.cursor() as cursor:
                cursor.execute(command, values or None)
                found = pl.DataFrame(cursor.fetch_arrow())
            self._connection.rollback()
        return found

    def _do(self, *commands: str, values: Sequence[object] | None = None) -> None:
        with self._errors():
            with self._connection.cursor() as cursor:
                for command in commands:
                    cursor.execute(command, values)
            self._connection.commit()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise an error of the server or the driver as a `StoreError`, without a password.

        The transaction is rolled back, so that the next call begins another.
        """
        try:
            yield
        except (Error, pl.exceptions.PolarsError) as error:  # from Arrow data that cannot be read
            with suppress(Error, AttributeError):  # it may not be connected
                self._connection.rollback()
            found, text = _SERVER.search(str(error)), str(error).partition("Query was:")[0]
            raise unusable(self._name, found[1] if found else text) from error
