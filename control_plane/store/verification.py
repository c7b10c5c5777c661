"""Lists the files whose hashes can be verified, and finds the job that does so."""

from collections.abc import Iterator
from typing import Any, cast

from sqlalchemy import Connection

from control_plane.store.sql import prepared
from mediaplane.protocol.driver import Row
from mediaplane.protocol.tables import IS_ACTIVE_VERIFY


def hashed(conn: Connection, library_id: str) -> Iterator[tuple[int, int]]:
    """Yield id and size of the present files of a library that have a hash, by id."""
    query = prepared(
        conn,
        "SELECT id, size_bytes FROM library_files WHERE library_id = :library AND NOT is_missing"
        " AND NOT needs_hash AND content_hash IS NOT NULL ORDER BY id",
    )
    yield from cast("Any", conn.execute(query, {"library": library_id}).cursor)


def other_job(conn: Connection, job: Row) -> Row | None:
    """Return another job that verifies the same library and has not ended."""
    query = prepared(
        conn,
        "SELECT id, status FROM jobs WHERE library_id = :library AND id <> :job"
        f" AND {IS_ACTIVE_VERIFY} ORDER BY id LIMIT 1",
    )
    bound = {"library": job["library_id"], "job": job["id"]}
    return conn.execute(query, bound).mappings().first()
