"""Lays out the files of a batch that a scan staged, so that SQL can read them like entries."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from control_plane.store.sql import prepared
from mediaplane.protocol import packs
from mediaplane.protocol.bulk import insert_many
from mediaplane.protocol.packs import Packed

# A table of the connection: it takes no room in the log, and half the time of one that does.
TABLE = "unpacked_files"
_BYTES = {"sqlite": "BLOB", "postgresql": "BYTEA"}


class Batch(NamedTuple):
    """New files of a scan, in the order of their paths."""

    id: int
    files: Sequence[Packed]


def first(conn: Connection, session_id: int) -> Batch | None:
    """Return the oldest batch of a session; one that cannot be read is a ValueError."""
    query = prepared(
        conn,
        "SELECT id, files FROM scan_batches WHERE session_id = :session ORDER BY id LIMIT 1",
    )
    row = conn.execute(query, {"session": session_id}).first()
    return None if row is None else Batch(row[0], packs.unpack(bytes(row[1])))


def lay_out(conn: Connection, batch: Batch) -> None:
    """Put the files of a batch where SQL can read them, in the place of those before."""
    conn.execute(
        prepared(
            conn,
            f"CREATE TEMPORARY TABLE IF NOT EXISTS {TABLE} (rel_path {_BYTES[conn.dialect.name]},"
            " media_type VARCHAR(32), size_bytes BIGINT, mtime_ns BIGINT, device BIGINT,"
            " inode BIGINT)",
        )
    )
    clear(conn)
    insert_many(conn, TABLE, packs.FIELDS, batch.files)


def clear(conn: Connection) -> None:
    """Let the files go."""
    conn.execute(prepared(conn, f"DELETE FROM {TABLE}"))


def is_known(conn: Connection, library_id: str, batch: Batch, table: str) -> bool:
    """Tell whether a table may have rows for files of a batch: one of a path between theirs."""
    query = prepared(
        conn,
        f"SELECT 1 FROM {table} WHERE library_id = :library"
        " AND rel_path BETWEEN :first AND :last LIMIT 1",
    )
    bound = {"library": library_id, "first": batch.files[0][0], "last": batch.files[-1][0]}
    return conn.execute(query, bound).first() is not None


def forget(conn: Connection, batch: Batch) -> None:
    """Delete a batch that was taken over."""
    conn.execute(prepared(conn, "DELETE FROM scan_batches WHERE id = :id"), {"id": batch.id})
