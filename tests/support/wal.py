"""A write-ahead log of SQLite that somebody keeps from beginning anew."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from mediaplane.protocol import wal
from tests.support.databases import Databases
from tests.support.rows import Rows


@contextmanager
def reader(database: Databases) -> Iterator[None]:
    """Needs the log as it is now, for the duration."""
    with closing(sqlite3.connect(str(database.control.url.database))) as raw:
        raw.isolation_level = None
        raw.execute("BEGIN")
        raw.execute("SELECT count(*) FROM libraries").fetchone()
        yield


@contextmanager
def grown_log(database: Databases, size_bytes: int) -> Iterator[None]:
    """A log of more than so many bytes, which a reader keeps from beginning anew."""
    with reader(database):
        while wal.size_bytes(database.control) <= size_bytes:
            write_much(database)
        yield


def write_much(database: Databases) -> None:
    """Write about a megabyte."""
    with database.control.write() as conn:
        Rows(conn).add("libraries", is_active=False, name="x" * 1_000_000)
