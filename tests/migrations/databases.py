"""New databases for tests of migrations, empty or at a revision, on SQLite and PostgreSQL."""

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, NullPool, create_engine, inspect, text
from sqlalchemy.engine import make_url

from mediaplane.protocol import migration
from mediaplane.protocol.engines import sqlite_url
from tests.support.databases import administrator
from tests.support.postgres import PostgresServer

Row = dict[str, Any]


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """Yield a connection in a transaction that is committed at the end."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as conn:
        yield conn
    engine.dispose()


def add(conn: Connection, table: str, *rows: Row) -> None:
    """Insert rows with exactly these columns, whatever the table has besides."""
    for row in rows:
        names, values = ", ".join(row), ", ".join(f":{name}" for name in row)
        conn.execute(text(f"INSERT INTO {table} ({names}) VALUES ({values})"), row)


def rows_of(conn: Connection, table: str) -> list[Row]:
    """Return all rows of a table, ordered by all that is unique about them."""
    found = [dict(row) for row in conn.execute(text(f"SELECT * FROM {table}")).mappings()]
    return sorted(found, key=lambda row: [str(row[name]) for name in sorted(row)])


def contents(conn: Connection, ignored: Sequence[str] = ()) -> dict[str, list[Row]]:
    """Return the rows of every table of ours, without the ignored columns."""
    names = [n for n in inspect(conn).get_table_names() if not n.startswith("video_frames_search")]
    return {
        name: sorted(
            ({k: v for k, v in row.items() if k not in ignored} for row in rows_of(conn, name)),
            key=lambda row: str(sorted(row.items())),
        )
        for name in names
    }


class NewDatabases(ABC):
    """Makes databases; one at a revision is migrated once and then copied."""

    def __init__(self) -> None:
        self._templates: dict[str, str] = {}

    @abstractmethod
    def copy(self, url: str | None) -> str:
        """Return the URL of a new database, a copy of another or empty."""

    def empty(self) -> str:
        return self.copy(None)

    def at(self, revision: str) -> str:
        if revision not in self._templates:
            self._templates[revision] = self.empty()
            migration.upgrade(self._templates[revision], revision)
        return self.copy(self._templates[revision])


class NewOnSqlite(NewDatabases):
    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory

    def copy(self, url: str | None) -> str:
        path = self._directory / f"{uuid4().hex}.db"
        if url is not None:
            shutil.copyfile(str(make_url(url).database), path)
        return sqlite_url(path)


class NewOnPostgres(NewDatabases):
    def __init__(self, server: PostgresServer) -> None:
        super().__init__()
        self._server = server
        self._names: list[str] = []

    def copy(self, url: str | None) -> str:
        name = f"mediaplane_test_{uuid4().hex}"
        template = "template0" if url is None else make_url(url).database
        with administrator(self._server.url) as conn:
            conn.execute(text(f"CREATE DATABASE {name} TEMPLATE {template}"))
        self._names.append(name)
        return make_url(self._server.url).set(database=name).render_as_string(hide_password=False)

    def drop(self) -> None:
        """Leave nothing on a server that outlives the tests."""
        if self._server.data_directory is None:
            with administrator(self._server.url) as conn:
                for name in self._names:
                    conn.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
