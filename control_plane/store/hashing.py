"""Marks the files to hash and lists them."""

from collections.abc import Iterator

from sqlalchemy import Connection

from control_plane.store.sql import prepared
from mediaplane.protocol import kinds
from mediaplane.protocol.database import lock
from mediaplane.protocol.duplicates import DUPLICATES, summarise

# Of the names of one file on a disk, the first by rank carries its hash, or will.
_IS_VALID = "(f.content_hash IS NOT NULL AND f.hash_algorithm = l.hash_algorithm)"
_NAMES = (
    "SELECT f.id, f.size_bytes, f.hash_algorithm, f.content_hash, f.prefix_hash, f.needs_hash,"
    " l.hash_policy,"
    f" l.is_active, {_IS_VALID} AS is_valid,"
    " row_number() OVER (PARTITION BY f.size_bytes, f.device, f.inode"
    f" ORDER BY NOT {_IS_VALID}, NOT l.is_active, f.id) AS rank"
    " FROM library_files f JOIN libraries l ON l.slug = f.library_id"
    " WHERE NOT f.is_missing AND f.size_bytes > 0 AND f.inode IS NOT NULL"
    " AND l.deleted_at IS NULL"
)
# A file may have a duplicate when another file, in whatever library, has its size, and does not
# begin otherwise as far as that is known.
_PEERS = (
    "SELECT *, sum(CASE WHEN rank = 1 THEN 1 ELSE 0 END) OVER sizes AS peers,"
    " sum(CASE WHEN rank = 1 AND prefix_hash IS NULL AND (is_active OR is_valid) THEN 1 ELSE 0 END)"
    f" OVER sizes AS unknown FROM ({_NAMES}) AS names WINDOW sizes AS (PARTITION BY size_bytes)"
)
_MAY_HAVE_DUPLICATE = (
    "peers > 1 AND (prefix_hash IS NULL OR unknown > 0 OR EXISTS (SELECT 1 FROM library_files o"
    " WHERE NOT o.is_missing AND o.id <> peers.id AND o.size_bytes = peers.size_bytes"
    " AND o.prefix_hash = peers.prefix_hash))"
)
_WANTED = (
    "SELECT id, hash_algorithm, content_hash, needs_hash, is_valid, rank,"
    " rank = 1 AND NOT is_valid AND is_active AND (hash_policy = 'all'"
    f" OR ({_MAY_HAVE_DUPLICATE})) AS is_wanted FROM ({_PEERS}) AS peers"
)
_DIFFERENT = (
    f"SELECT id, hash_algorithm, content_hash, is_wanted FROM ({_WANTED}) AS wanted"
    " WHERE is_wanted <> needs_hash"
    " OR (content_hash IS NOT NULL AND (rank > 1 OR NOT is_valid))"
)


def mark(conn: Connection) -> None:
    """Mark exactly the files that want a hash, and drop the hashes that no longer count.

    Those are hashes of another algorithm than the library's, and of further names of a file.
    """
    lock(conn, DUPLICATES)
    # Once for two uses: it looks at every file.
    conn.execute(prepared(conn, f"CREATE TEMPORARY TABLE marks AS {_DIFFERENT}"))
    dropped = conn.execute(
        prepared(
            conn,
            "SELECT hash_algorithm, content_hash FROM marks WHERE content_hash IS NOT NULL",
        )
    ).all()
    conn.execute(
        prepared(
            conn,
            "UPDATE library_files SET needs_hash = marks.is_wanted, hash_algorithm = NULL,"
            " content_hash = NULL, updated_at = {now} FROM marks WHERE library_files.id = marks.id",
        )
    )
    conn.execute(prepared(conn, "DROP TABLE marks"))
    summarise(conn, [(row.hash_algorithm, bytes(row.content_hash)) for row in dropped])


def marked(
    conn: Connection, library_id: str | None, *, is_prefix: bool = False
) -> Iterator[tuple[int, int]]:
    """Yield id and size of the marked files, in the order in which they lie in the libraries.

    With `is_prefix`, of those whose beginning is to be read first.
    """
    query = prepared(
        conn,
        "SELECT f.id, f.size_bytes FROM library_files f JOIN libraries l ON l.slug = f.library_id"
        " WHERE f.needs_hash AND l.is_active AND l.deleted_at IS NULL"
        + (" AND f.library_id = :library" if library_id else "")
        + (f" AND {kinds.IS_STAGED.format(file='f', library='l')}" if is_prefix else "")
        + " ORDER BY f.id",
    )
    bound = {"library": library_id} if library_id else {}
    for row in conn.execute(query, bound):
        yield row.id, row.size_bytes
