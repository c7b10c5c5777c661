"""Lays out the files of batches that a scan staged, so that SQL can read them like entries."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from sqlalchemy import Connection

from control_plane.store.sql import prepared
from mediaplane.protocol import packs
from mediaplane.protocol.bulk import insert_many
from mediaplane.protocol.packs import Packed

# A table of the connection: it takes no room in the log, and half the time of one that does.
TABLE = "unpacked_files"
# Together they are about as many files as a chunk of entries.
_AT_ONCE = 2
_NUMBERS = "size_bytes BIGINT, mtime_ns BIGINT, device BIGINT, inode BIGINT"
_CREATE = {
    "sqlite": f"(rel_path BLOB, media_type VARCHAR(32), {_NUMBERS})",
    # One that stayed would keep PostgreSQL from ever forgetting old transactions: nobody but its
    # own connection could vacuum it.
    "postgresql": f"(rel_path BYTEA, media_type VARCHAR(32), {_NUMBERS}) ON COMMIT DROP",
}


class Chunk(NamedTuple):
    """New files of a scan, of the batches of a session up to one."""

    session_id: int
    upto: int
    files: Sequence[Packed]


def next_chunk(conn: Connection, session_id: int) -> Chunk | None:
    """Return the files of the oldest batches; one that cannot be read is a ValueError."""
    query = prepared(
        conn,
        "SELECT id, files FROM scan_batches WHERE session_id = :session ORDER BY id LIMIT :limit",
    )
    rows = conn.execute(query, {"session": session_id, "limit": _AT_ONCE}).all()
    if not rows:
        return None
    files = chain.from_iterable(packs.unpack(bytes(packed)) for _id, packed in rows)
    # By path: a folder that changes while it is listed may name a file twice.
    return Chunk(session_id, rows[-1][0], list({file[0]: file for file in files}.values()))


def lay_out(conn: Connection, chunk: Chunk) -> None:
    """Put the files of a chunk where SQL can read them, until they are forgotten."""
    create = f"CREATE TEMPORARY TABLE IF NOT EXISTS {TABLE} {_CREATE[conn.dialect.name]}"
    conn.execute(prepared(conn, create))
    insert_many(conn, TABLE, packs.FIELDS, chunk.files)


def is_known(conn: Connection, library_id: str, chunk: Chunk, table: str) -> bool:
    """Tell whether a table may have rows for files of a chunk: one of a path between theirs."""
    paths = [file[0] for file in chunk.files]
    query = prepared(
        conn,
        f"SELECT 1 FROM {table} WHERE library_id = :library"
        " AND rel_path BETWEEN :first AND :last LIMIT 1",
    )
    bound = {"library": library_id, "first": min(paths), "last": max(paths)}
    return conn.execute(query, bound).first() is not None


def forget(conn: Connection, chunk: Chunk) -> None:
    """Delete the batches that were taken over, and what was laid out of them."""
    if conn.dialect.name == "sqlite":
        conn.execute(prepared(conn, f"DELETE FROM {TABLE}"))
    conn.execute(
        prepared(conn, "DELETE FROM scan_batches WHERE session_id = :session AND id <= :upto"),
        {"session": chunk.session_id, "upto": chunk.upto},
    )
