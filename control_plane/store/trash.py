"""Hides libraries, brings them back, and takes those in the trash out of the database."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from control_plane.store import jobs
from control_plane.store.sql import prepared
from mediaplane.protocol import gate
from mediaplane.protocol.driver import Row
from mediaplane.protocol.machines import ASSETS
from mediaplane.protocol.statements import among, id_list


class _Family(NamedTuple):
    """Rows of a library, and the rows that refer to them and must go first."""

    table: str
    order: str  # that of its index by library
    children: tuple[tuple[str, str], ...]  # each with the column that refers to the table


# Files before assets: a scan brings back the assets of files that are new to it, and of no others.
_FAMILIES = (
    _Family("library_files", "rel_path", (("thumbnails", "file_id"),)),
    _Family("assets", "rel_path", (("video_frames", "asset_id"),)),
    _Family(
        "scan_sessions",
        "id DESC",
        (
            ("scan_entries", "session_id"),
            ("scan_batches", "session_id"),
            ("scan_errors", "session_id"),
        ),
    ),
)


def waiting_job(conn: Connection, library: Row) -> Row | None:
    """Return a scan or hash of a library, or of all of its tenant, that waits for another try."""
    query = prepared(
        conn,
        "SELECT * FROM jobs WHERE status = 'retryable' AND kind IN ('scan', 'hash')"
        " AND (library_id = :library OR library_id IS NULL) AND tenant_id = :tenant"
        " ORDER BY retry_after, id LIMIT 1",
    )
    bound = {"library": library["slug"], "tenant": library["tenant_id"]}
    return conn.execute(query, bound).mappings().first()


def files_from(conn: Connection, slug: str, path: bytes, limit: int) -> list[Any]:
    """Return the next files of a library from a path on, by path."""
    query = prepared(
        conn,
        "SELECT id, rel_path, needs_hash, content_hash IS NOT NULL AS is_hashed FROM library_files"
        " WHERE library_id = :library AND rel_path >= :path ORDER BY rel_path LIMIT :limit",
    )
    bound = {"library": slug, "path": path, "limit": limit}
    return list(conn.execute(query, bound).all())


def grouped(conn: Connection, ids: Sequence[int]) -> list[tuple[str, bytes]]:
    """Return the hashes of these files that the summary has as groups."""
    dialect = conn.dialect.name
    query = prepared(
        conn,
        "SELECT DISTINCT f.hash_algorithm, f.content_hash FROM library_files f"
        " CROSS JOIN duplicate_groups g WHERE g.hash_algorithm = f.hash_algorithm"
        f" AND g.content_hash = f.content_hash AND {among('f.id', 'ids', dialect)}",
    )
    rows = conn.execute(query, {"ids": id_list(ids, dialect)})
    return [(algorithm, bytes(content_hash)) for algorithm, content_hash in rows]


def second_hashes(
    conn: Connection, slug: str, after: bytes, limit: int
) -> tuple[list[int], bytes | None]:
    """Return which of a library's next files have a hash that another of the tenant has by now.

    Or will have, by a job that is planned; and the path of the last that was looked at. While a
    library lies in the trash, other names of its files are hashed in its place, and two names of
    one file with a hash each would look like duplicates.
    """
    query = prepared(
        conn,
        # By what they are not, and not by EXISTS: so that both databases look each name up.
        "SELECT f.id, f.rel_path, f.content_hash IS NOT NULL AND (SELECT 1 FROM library_files name"
        "  WHERE NOT name.is_missing AND name.size_bytes = f.size_bytes"
        "  AND name.device = f.device AND name.inode = f.inode"
        "  AND (name.content_hash IS NOT NULL OR (name.needs_hash AND :is_planned))"
        "  AND name.library_id <> :library"
        "  AND name.library_id NOT IN (SELECT slug FROM libraries WHERE deleted_at IS NOT NULL"
        "   OR tenant_id <> (SELECT tenant_id FROM libraries WHERE slug = :library))"
        "  LIMIT 1) IS NOT NULL AS is_second FROM library_files f"
        " WHERE f.library_id = :library AND f.rel_path > :after ORDER BY f.rel_path LIMIT :limit",
    )
    is_planned = jobs.is_hash_planned(conn)
    bound = {"library": slug, "after": after, "limit": limit, "is_planned": is_planned}
    rows = conn.execute(query, bound).all()
    return [row.id for row in rows if row.is_second], bytes(rows[-1].rel_path) if rows else None


def remove_rows(conn: Connection, slug: str, limit: int) -> int:
    """Delete up to so many rows of a library, and return how many; 0 when none is left."""
    if conn.dialect.name == "postgresql":
        # It would rather read a whole table than look up some thousand of its rows.
        conn.execute(text("SET LOCAL enable_seqscan = off"))
    removed = 0
    for family in _FAMILIES:
        if removed < limit:
            removed += _remove(conn, family, slug, limit - removed)
    return removed


def release_jobs(conn: Connection, slug: str, limit: int) -> int:
    """Let up to so many jobs of a library belong to none, and return how many.

    Their events go on telling which library it was.
    """
    statement = prepared(
        conn,
        "UPDATE jobs SET library_id = NULL"
        " WHERE id IN (SELECT id FROM jobs WHERE library_id = :library LIMIT :limit)",
    )
    return conn.execute(statement, {"library": slug, "limit": limit}).rowcount


def remove_library(conn: Connection, slug: str) -> None:
    """Delete a library to which nothing refers any more but its schedules, and those."""
    for statement in (
        "DELETE FROM schedules WHERE library_id = :library",
        "DELETE FROM libraries WHERE slug = :library",
    ):
        conn.execute(prepared(conn, statement), {"library": slug})


def _remove(conn: Connection, family: _Family, slug: str, limit: int) -> int:
    # By the ids of a few parents: a search for the children of all of them would take longer
    # with every call, and find fewer.
    parents = _ids(
        conn,
        f"SELECT id FROM {family.table} WHERE library_id = :library"
        f" ORDER BY {family.order} LIMIT :limit",
        library=slug,
        limit=limit,
    )
    removed = 0
    bereft: set[int] = set()
    for child, column in family.children:
        children = _children(conn, child, column, parents, limit - removed)
        removed += _delete(conn, child, list(children))
        bereft.update(children.values())
    # Short of the limit, the children of all these are gone.
    gone = parents[: limit - removed]
    if family.table == "assets":
        _remake(conn, bereft.difference(gone))
    return removed + _delete(conn, family.table, gone)


def _children(
    conn: Connection, table: str, column: str, parents: list[int], limit: int
) -> dict[int, int]:
    """Return up to so many rows that refer to these, each with the one that it refers to."""
    dialect = conn.dialect.name
    query = prepared(
        conn,
        f"SELECT id, {column} FROM {table} WHERE {among(column, 'parents', dialect)} LIMIT :limit",
    )
    rows = conn.execute(query, {"parents": id_list(parents, dialect), "limit": limit})
    return {row[0]: row[1] for row in rows}


def _remake(conn: Connection, ids: Collection[int]) -> None:
    """Have videos that lost some of their frames processed again, should the library come back."""
    if ids:
        dialect = conn.dialect.name
        bound = {"ids": id_list(ids, dialect)}
        gate.take_all(conn, ASSETS, "rediscover", among("id", "ids", dialect), bound)


def _ids(conn: Connection, query: str, **bound: Any) -> list[int]:
    return list(conn.scalars(prepared(conn, query), bound))


def _delete(conn: Connection, table: str, ids: list[int]) -> int:
    dialect = conn.dialect.name
    statement = f"DELETE FROM {table} WHERE {among('id', 'ids', dialect)}"
    return conn.execute(prepared(conn, statement), {"ids": id_list(ids, dialect)}).rowcount
