"""Marks the files to hash and lists them."""

from collections.abc import Iterator
from typing import Any, cast

from sqlalchemy import Connection

from control_plane.store.sql import prepared
from mediaplane.protocol import kinds
from mediaplane.protocol.database import lock
from mediaplane.protocol.duplicates import DUPLICATES, summarise
from mediaplane.protocol.statements import among, id_list
from mediaplane.protocol.values import HashAlgorithm

_IS_VALID = "(f.content_hash IS NOT NULL AND f.hash_algorithm = l.hash_algorithm)"
# The plus keeps SQLite from reading all files by the index of their sizes.
_IS_PRESENT = "NOT f.is_missing AND +f.size_bytes > 0 AND f.inode IS NOT NULL"
_OF_LIBRARIES = "f.library_id IN (SELECT slug FROM libraries WHERE {which})"
_IS_NOT_FOREIGN = "{library} NOT IN (SELECT slug FROM libraries WHERE tenant_id <> :tenant)"
_FILES = (
    "SELECT {columns} FROM library_files f JOIN libraries l ON l.slug = f.library_id"
    f" WHERE {_IS_PRESENT} AND l.deleted_at IS NULL AND l.tenant_id = :tenant"
)
_IS_FURTHER = "EXISTS (SELECT 1 FROM further_names n WHERE n.id = f.id)"

# Of the names of one file on a disk, the first by rank carries its hash, or will; these are the
# others. Only names that share their inode are ranked, and an index tells which those are.
_FURTHER_NAMES = (
    "SELECT id FROM (SELECT f.id, row_number() OVER (PARTITION BY f.size_bytes, f.device, f.inode"
    f" ORDER BY NOT {_IS_VALID}, NOT l.is_active, f.id) AS rank FROM"
    " (SELECT size_bytes, device, inode FROM library_files WHERE NOT is_missing"
    "  GROUP BY size_bytes, device, inode HAVING count(*) > 1) AS linked"
    " JOIN library_files f ON f.size_bytes = linked.size_bytes AND f.device = linked.device"
    " AND f.inode = linked.inode JOIN libraries l ON l.slug = f.library_id"
    f" WHERE {_IS_PRESENT} AND l.deleted_at IS NULL AND l.tenant_id = :tenant) AS names"
    " WHERE rank > 1"
)
# Of which there is more than one file, in whatever libraries of the tenant. What is in the trash is
# left out by its id, which the index of sizes has: to read the libraries of all files took twice as
# long. Beside other tenants there is no way around that.
_TRASHED_FILES = "SELECT f.id FROM library_files f WHERE " + _OF_LIBRARIES.format(
    which="deleted_at IS NOT NULL"
)
_IS_NOT_TRASHED = "NOT EXISTS (SELECT 1 FROM trashed_files t WHERE t.id = f.id)"
_IS_OF_TENANT = _OF_LIBRARIES.format(which="tenant_id = :tenant AND deleted_at IS NULL")
_SHARED_SIZES = (
    "SELECT f.size_bytes FROM library_files f WHERE NOT f.is_missing AND {counts}"
    " GROUP BY f.size_bytes HAVING min(f.inode) < max(f.inode) OR min(f.device) < max(f.device)"
)
# Of which some files begin in a known way, and others, which count, in none that is known.
_SIZES_IN_DOUBT = (
    _FILES.format(columns="DISTINCT f.size_bytes")
    + f" AND f.prefix_hash IS NULL AND (l.is_active OR {_IS_VALID}) AND NOT {_IS_FURTHER}"
    " AND f.size_bytes IN (SELECT b.size_bytes FROM library_files b"
    " WHERE b.prefix_hash IS NOT NULL AND NOT b.is_missing)"
)
_STALE = _FILES.format(columns="f.id, f.hash_algorithm, f.content_hash") + (
    " AND f.content_hash IS NOT NULL AND "
)
_STALE_REASONS = (
    "f.needs_hash",
    "f.id IN (SELECT n.id FROM further_names n)",
    # One algorithm at a time: mostly no library has another one, and no file is looked at.
    *(
        f"f.hash_algorithm = '{one.value}' AND "
        + _OF_LIBRARIES.format(which=f"hash_algorithm <> '{one.value}'")
        for one in HashAlgorithm
    ),
)

# A file may have a duplicate when another file, in whatever library of its tenant, has its size,
# and does not begin otherwise as far as that is known.
_IS_SHARED = "f.size_bytes IN (SELECT s.size_bytes FROM shared_sizes s)"
_IS_IN_DOUBT = "f.size_bytes IN (SELECT d.size_bytes FROM sizes_in_doubt d)"
_BEGINS_ALIKE = (
    "EXISTS (SELECT 1 FROM library_files o WHERE NOT o.is_missing AND o.id <> f.id"
    " AND o.size_bytes = f.size_bytes AND o.prefix_hash = f.prefix_hash"
    f" AND {_IS_NOT_FOREIGN.format(library='o.library_id')})"
)
_REASONS = (
    _OF_LIBRARIES.format(which="hash_policy = 'all'"),
    f"{_IS_SHARED} AND f.prefix_hash IS NULL",
    f"{_IS_SHARED} AND f.prefix_hash IS NOT NULL AND {_IS_IN_DOUBT}",
    f"{_IS_SHARED} AND f.prefix_hash IS NOT NULL AND {_BEGINS_ALIKE}",
)
_WANTED = _FILES.format(columns="f.id") + (
    f" AND f.content_hash IS NULL AND l.is_active AND NOT {_IS_FURTHER} AND "
)


def mark(conn: Connection, tenant_id: str) -> None:
    """Mark exactly the files of a tenant that want a hash; drop the hashes that no longer count.

    Those are hashes of another algorithm than the library's, and of further names of a file.
    """
    lock(conn, DUPLICATES)
    _list(conn, tenant_id, "further_names", "id", _FURTHER_NAMES)
    _list(conn, tenant_id, "trashed_files", "id", _TRASHED_FILES)
    counts = _IS_NOT_TRASHED if _is_alone(conn, tenant_id) else _IS_OF_TENANT
    _list(conn, tenant_id, "shared_sizes", "size_bytes", _SHARED_SIZES.format(counts=counts))
    _list(conn, tenant_id, "sizes_in_doubt", "size_bytes", _SIZES_IN_DOUBT)
    _drop_stale(conn, tenant_id)
    # One reason at a time: for all at once PostgreSQL would search the lists file by file.
    _list(conn, tenant_id, "wanted_files", "id", *(_WANTED + reason for reason in _REASONS))
    is_wanted = "EXISTS (SELECT 1 FROM wanted_files w WHERE w.id = library_files.id)"
    _change(conn, tenant_id, "true", "NOT needs_hash AND id IN (SELECT w.id FROM wanted_files w)")
    is_not_foreign = _IS_NOT_FOREIGN.format(library="library_id")
    _change(conn, tenant_id, "false", f"needs_hash AND NOT {is_wanted} AND {is_not_foreign}")
    for name in ("further_names", "trashed_files", "shared_sizes", "sizes_in_doubt",
                 "wanted_files"):  # fmt: skip
        conn.execute(prepared(conn, f"DROP TABLE {name}"))


def _is_alone(conn: Connection, tenant_id: str) -> bool:
    query = prepared(conn, "SELECT 1 FROM libraries WHERE tenant_id <> :tenant LIMIT 1")
    return conn.execute(query, {"tenant": tenant_id}).first() is None


def _list(conn: Connection, tenant_id: str, name: str, column: str, *queries: str) -> None:
    """Keep what the queries find, each number once, in a table of this connection."""
    kind = {"sqlite": "INTEGER", "postgresql": "BIGINT"}[conn.dialect.name]
    conn.execute(prepared(conn, f"CREATE TEMPORARY TABLE {name} ({column} {kind} PRIMARY KEY)"))
    for query in queries:
        statement = prepared(conn, f"INSERT INTO {name} {query} ON CONFLICT DO NOTHING")
        conn.execute(statement, {"tenant": tenant_id})


def _change(conn: Connection, tenant_id: str, needs_hash: str, where: str) -> None:
    conn.execute(
        prepared(
            conn,
            f"UPDATE library_files SET needs_hash = {needs_hash}, updated_at = {{now}}"
            f" WHERE {where}",
        ),
        {"tenant": tenant_id},
    )


def _drop_stale(conn: Connection, tenant_id: str) -> None:
    dialect = conn.dialect.name
    for reason in _STALE_REASONS:
        dropped = conn.execute(prepared(conn, _STALE + reason), {"tenant": tenant_id}).all()
        if dropped:
            conn.execute(
                prepared(
                    conn,
                    "UPDATE library_files SET hash_algorithm = NULL, content_hash = NULL,"
                    f" updated_at = {{now}} WHERE {among('id', 'ids', dialect)}",
                ),
                {"ids": id_list([row.id for row in dropped], dialect)},
            )
            summarise(conn, [(row.hash_algorithm, bytes(row.content_hash)) for row in dropped])


def marked(
    conn: Connection, tenant_id: str, library_id: str | None, *, is_prefix: bool = False
) -> Iterator[tuple[int, int]]:
    """Yield id and size of a tenant's marked files, in the order of their ids.

    With `is_prefix`, of those whose beginning is to be read first.
    """
    query = prepared(
        conn,
        "SELECT f.id, f.size_bytes FROM library_files f JOIN libraries l ON l.slug = f.library_id"
        " WHERE f.needs_hash AND l.is_active AND l.deleted_at IS NULL AND l.tenant_id = :tenant"
        + (" AND f.library_id = :library" if library_id else "")
        + (f" AND {kinds.IS_STAGED.format(file='f', library='l')}" if is_prefix else "")
        + " ORDER BY f.id",
    )
    bound = {"tenant": tenant_id, "library": library_id}
    # As the driver reads them: there may be millions.
    yield from cast("Any", conn.execute(query, bound).cursor)
