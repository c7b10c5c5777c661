"""Marks the files to hash and lists them."""

from collections.abc import Iterator

from sqlalchemy import Connection

from control_plane.store.sql import prepared
from mediaplane.protocol.database import lock
from mediaplane.protocol.duplicates import DUPLICATES, summarise

# One row per file that lies on a disk, however many names it has: the name that carries its
# hash, or will. `same_size` counts the files of that size in all libraries.
_COPIES = (
    "SELECT id, hash_policy, is_active, is_hashed, needs_hash,"
    " count(*) OVER (PARTITION BY size_bytes) AS same_size FROM ({names}) AS names WHERE rank = 1"
)
_NAMES = (
    "SELECT f.id, f.size_bytes, f.hash_algorithm, f.content_hash, f.needs_hash, l.hash_policy,"
    " l.is_active, l.hash_algorithm AS wanted_algorithm, f.content_hash IS NOT NULL AS is_hashed,"
    " row_number() OVER (PARTITION BY f.size_bytes, f.device, f.inode"
    " ORDER BY f.content_hash IS NULL, NOT l.is_active, f.id) AS rank"
    " FROM library_files f JOIN libraries l ON l.slug = f.library_id"
    " WHERE NOT f.is_missing AND f.size_bytes > 0 AND f.inode IS NOT NULL"
    " AND l.deleted_at IS NULL"
)


def drop_stale_hashes(conn: Connection) -> None:
    """Take hash and mark from every name of a file but one, and hashes of another algorithm."""
    lock(conn, DUPLICATES)
    stale = (
        f"SELECT * FROM ({_NAMES}) AS names WHERE (rank > 1 AND (is_hashed OR needs_hash))"
        " OR hash_algorithm <> wanted_algorithm"
    )
    rows = conn.execute(prepared(conn, stale)).all()
    if not rows:
        return
    conn.execute(
        prepared(
            conn,
            "UPDATE library_files SET needs_hash = false, hash_algorithm = NULL,"
            " content_hash = NULL, updated_at = {now}"
            f" WHERE id IN (SELECT id FROM ({stale}) AS stale)",
        )
    )
    touched = [(row.hash_algorithm, bytes(row.content_hash)) for row in rows if row.content_hash]
    summarise(conn, touched)


def mark(conn: Connection) -> None:
    """Mark every file without a hash that may have a duplicate, or whose library hashes all."""
    copies = _COPIES.format(names=_NAMES)
    conn.execute(
        prepared(
            conn,
            "UPDATE library_files SET needs_hash = true, updated_at = {now} WHERE id IN"
            f" (SELECT id FROM ({copies}) AS copies WHERE NOT is_hashed AND NOT needs_hash"
            " AND is_active AND (same_size > 1 OR hash_policy = 'all'))",
        )
    )


def marked(conn: Connection, library_id: str | None) -> Iterator[tuple[int, int]]:
    """Yield id and size of the marked files, in the order in which they lie in the libraries."""
    query = prepared(
        conn,
        "SELECT f.id, f.size_bytes FROM library_files f JOIN libraries l ON l.slug = f.library_id"
        " WHERE f.needs_hash AND l.is_active AND l.deleted_at IS NULL"
        + (" AND f.library_id = :library" if library_id else "")
        + " ORDER BY f.id",
    )
    bound = {"library": library_id} if library_id else {}
    for row in conn.execute(query, bound):
        yield row.id, row.size_bytes
