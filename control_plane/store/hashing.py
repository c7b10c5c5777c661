"""Marks the files to hash and lists them."""

from collections.abc import Iterator, Mapping, Sequence
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
    " GROUP BY f.size_bytes HAVING {differ}"
)
_DIFFER = "min(f.inode) < max(f.inode) OR min(f.device) < max(f.device)"
# Where no file has two names; it takes half the time.
_ARE_SEVERAL = "count(f.inode) > 1"
# Of which some files begin in a known way, and others, which count, in none that is known.
_SIZES_IN_DOUBT = (
    _FILES.format(columns="DISTINCT f.size_bytes")
    + f" AND f.prefix_hash IS NULL AND (l.is_active OR {_IS_VALID}) AND NOT {_IS_FURTHER}"
    " AND f.size_bytes IN (SELECT b.size_bytes FROM library_files b"
    " WHERE b.prefix_hash IS NOT NULL AND NOT b.is_missing)"
)
_STALE = _FILES.format(columns="f.id") + (" AND f.content_hash IS NOT NULL AND ")
_STALE_REASONS = (
    "f.id IN (SELECT n.id FROM further_names n)",
    # One algorithm at a time: mostly no library has another one, and no file is looked at.
    *(
        # Not of marked ones, whose hash is made anew: so the index of hashes finds them.
        f"NOT f.needs_hash AND f.hash_algorithm = '{one.value}' AND "
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
# So many small files, one after the other, stay together.
RUN_FILES = 500
# The columns of the lists.
_IDS, _SIZES = "id {number} PRIMARY KEY", "size_bytes {number} PRIMARY KEY"
_FILES_OF_JOB = (
    f"{_IDS}, size_bytes {{number}} NOT NULL, is_marked BOOLEAN NOT NULL,"
    " is_of_job BOOLEAN NOT NULL"
)
_LISTS = (
    "further_names", "stale_files", "trashed_files", "shared_sizes", "sizes_in_doubt",
    "wanted_files",
)  # fmt: skip
_WANTED = _FILES.format(
    columns="f.id, f.size_bytes, f.needs_hash,"
    " CAST(:library AS TEXT) IS NULL OR f.library_id = :library"
) + (
    # One with a hash is marked by whoever wants it made anew.
    " AND (f.content_hash IS NULL OR f.needs_hash) AND l.is_active AND {is_first} AND "
)
# Most files, where many are new, and all that have a size in common with another. In words of which
# SQLite does not see that the index of sizes would do: by that it comes to each file at another
# place, which takes more than twice as long as to look at all of them one after the other.
_WANTED_BY_SIZE = _WANTED.replace("NOT f.is_missing", "f.is_missing = false") + (
    f"+{_IS_SHARED} AND f.prefix_hash IS NULL AND l.hash_policy <> 'all'"
)
_WANTED_BY_BEGINNING = (
    f"{_WANTED}{_IS_SHARED} AND f.prefix_hash IS NOT NULL AND {_IS_IN_DOUBT}",
    f"{_WANTED}{_IS_SHARED} AND f.prefix_hash IS NOT NULL AND {_BEGINS_ALIKE}",
)
_WANTED_BY_POLICY = _WANTED + _OF_LIBRARIES.format(which="hash_policy = 'all'")


def list_stale(conn: Connection, tenant_id: str) -> None:
    """List the hashes of a tenant that no longer count, in tables of this connection.

    Those are hashes of another algorithm than the library's, and of further names of a file.
    """
    bound = {"tenant": tenant_id}
    _list(conn, bound, "further_names", _IDS, _FURTHER_NAMES)
    _list(conn, bound, "stale_files", _IDS, *(_STALE + reason for reason in _STALE_REASONS))


def list_wanted(conn: Connection, tenant_id: str, library_id: str | None) -> None:
    """List the files of a tenant that want a hash, once those that no longer count are dropped.

    With their sizes, with whether they are marked by now, and with whether they are of a library,
    if one is given.
    """
    bound = {"tenant": tenant_id, "library": library_id}
    are_all_first = not _is_any(conn, "further_names")
    is_first = "true" if are_all_first else f"NOT {_IS_FURTHER}"
    reasons = [_WANTED_BY_POLICY]
    if _has_candidates(conn, tenant_id):
        _list_sizes(conn, tenant_id, are_all_first=are_all_first)
        # One reason at a time: for all at once PostgreSQL would search the lists file by file.
        reasons += [_WANTED_BY_SIZE, *_WANTED_BY_BEGINNING]
    wanted = [reason.format(is_first=is_first) for reason in reasons]
    _list(conn, bound, "wanted_files", _FILES_OF_JOB, *wanted)


def _list_sizes(conn: Connection, tenant_id: str, *, are_all_first: bool) -> None:
    bound = {"tenant": tenant_id}
    _list(conn, bound, "trashed_files", _IDS, _TRASHED_FILES)
    if not _is_alone(conn, tenant_id):
        counts = _IS_OF_TENANT
    else:
        counts = _IS_NOT_TRASHED if _is_any(conn, "trashed_files") else "true"
    differ = _ARE_SEVERAL if are_all_first else _DIFFER
    shared_sizes = _SHARED_SIZES.format(counts=counts, differ=differ)
    _list(conn, bound, "shared_sizes", _SIZES, shared_sizes)
    _list(conn, bound, "sizes_in_doubt", _SIZES, _SIZES_IN_DOUBT)


def forget_lists(conn: Connection) -> None:
    """Drop whatever lists this connection has."""
    for name in _LISTS:
        conn.execute(prepared(conn, f"DROP TABLE IF EXISTS {name}"))


def stale(conn: Connection, after: int, limit: int) -> list[int]:
    """Return the next files whose hash is to be dropped."""
    return _ids(conn, "SELECT id FROM stale_files WHERE id > :after", after, limit)


def wanted(conn: Connection, after: int, limit: int) -> list[int]:
    """Return the next files that are to be marked and are not."""
    query = "SELECT id FROM wanted_files WHERE NOT is_marked AND id > :after"
    return _ids(conn, query, after, limit)


def count_marked(conn: Connection) -> int:
    """Count the files that are marked, of whatever tenant."""
    query = prepared(conn, "SELECT count(*) FROM library_files WHERE needs_hash")
    return int(conn.execute(query).scalar_one())


def count_marked_wanted(conn: Connection) -> int:
    """Count the files that are marked and want a hash."""
    query = prepared(conn, "SELECT count(*) FROM wanted_files WHERE is_marked")
    return int(conn.execute(query).scalar_one())


def unwanted(conn: Connection, tenant_id: str, after: int, limit: int) -> list[int]:
    """Return the next files that are marked and are not to be."""
    query = (
        "SELECT id FROM library_files WHERE needs_hash AND id > :after"
        " AND NOT EXISTS (SELECT 1 FROM wanted_files w WHERE w.id = library_files.id)"
        f" AND {_IS_NOT_FOREIGN.format(library='library_id')}"
    )
    return _ids(conn, query, after, limit, tenant=tenant_id)


def mark(conn: Connection, ids: Sequence[int]) -> None:
    """Mark files to be hashed, unless they are, or are gone or hashed by now."""
    where = "NOT needs_hash AND NOT is_missing AND content_hash IS NULL"
    _change(conn, ids, "needs_hash = true", where)


def unmark(conn: Connection, ids: Sequence[int]) -> None:
    """Take files off the list of those to hash; a hash that was to be made anew counts no more."""
    _change(
        conn, ids, "needs_hash = false, hash_algorithm = NULL, content_hash = NULL", "needs_hash"
    )


def drop_hashes(conn: Connection, ids: Sequence[int]) -> None:
    """Drop the hashes of files, and count the duplicate groups that this changes."""
    lock(conn, DUPLICATES)
    dialect = conn.dialect.name
    query = (
        "SELECT hash_algorithm, content_hash FROM library_files"
        f" WHERE {among('id', 'ids', dialect)} AND content_hash IS NOT NULL"
    )
    dropped = conn.execute(prepared(conn, query), {"ids": id_list(ids, dialect)}).all()
    _change(conn, ids, "hash_algorithm = NULL, content_hash = NULL", "content_hash IS NOT NULL")
    summarise(conn, [(algorithm, bytes(found)) for algorithm, found in dropped])


def _is_alone(conn: Connection, tenant_id: str) -> bool:
    query = prepared(conn, "SELECT 1 FROM libraries WHERE tenant_id <> :tenant LIMIT 1")
    return conn.execute(query, {"tenant": tenant_id}).first() is None


def _has_candidates(conn: Connection, tenant_id: str) -> bool:
    query = prepared(
        conn,
        "SELECT 1 FROM libraries WHERE tenant_id = :tenant AND deleted_at IS NULL"
        " AND hash_policy <> 'all' LIMIT 1",
    )
    return conn.execute(query, {"tenant": tenant_id}).first() is not None


def _is_any(conn: Connection, name: str) -> bool:
    return conn.execute(prepared(conn, f"SELECT 1 FROM {name} LIMIT 1")).first() is not None


def _list(
    conn: Connection, bound: Mapping[str, Any], name: str, columns: str, *queries: str
) -> None:
    """Keep what the queries find, each number once, in a table of this connection."""
    number = {"sqlite": "INTEGER", "postgresql": "BIGINT"}[conn.dialect.name]
    create = f"CREATE TEMPORARY TABLE {name} ({columns.format(number=number)})"
    conn.execute(prepared(conn, create))
    for query in queries:
        statement = prepared(conn, f"INSERT INTO {name} {query} ON CONFLICT DO NOTHING")
        conn.execute(statement, bound)


def _ids(conn: Connection, query: str, after: int, limit: int, **bound: Any) -> list[int]:
    statement = prepared(conn, f"{query} ORDER BY id LIMIT :limit")
    # As the driver reads them: there may be millions.
    rows = cast("Any", conn.execute(statement, {"after": after, "limit": limit, **bound}).cursor)
    return [row[0] for row in rows.fetchall()]


def _change(conn: Connection, ids: Sequence[int], columns: str, where: str) -> None:
    dialect = conn.dialect.name
    statement = (
        # Selected, so that SQLite asks its clock once and not for each row.
        f"UPDATE library_files SET {columns}, updated_at = (SELECT {{now}})"
        f" WHERE {among('id', 'ids', dialect)} AND {where}"
    )
    conn.execute(prepared(conn, statement), {"ids": id_list(ids, dialect)})


def wanted_small(conn: Connection) -> Iterator[tuple[int, int, int, int]]:
    """Yield the small files that want a hash and are of the job, by id and in runs.

    Of each run the first id and the last one, how many files they are and how many bytes.
    """
    # Counted here: to read them one by one took as long as to look for them.
    query = prepared(
        conn,
        "SELECT min(id), max(id), count(*), sum(size_bytes) FROM (SELECT id, size_bytes"
        f" FROM wanted_files WHERE is_of_job AND size_bytes <= {kinds.SMALL_BYTES} AND id > :after"
        " ORDER BY id LIMIT :limit) AS run",
    )
    last_id = 0
    while True:
        bound = {"after": last_id, "limit": RUN_FILES}
        first_id, last_id, files, size_bytes = conn.execute(query, bound).one()
        if not files:
            return
        yield first_id, last_id, files, int(size_bytes)


def marked_large(
    conn: Connection, tenant_id: str, library_id: str | None
) -> Iterator[tuple[int, int, bool]]:
    """Yield a tenant's marked large files in the order of their sizes.

    Each with its size, and with whether its beginning is to be read first.
    """
    is_staged = kinds.IS_STAGED.format(file="f", library="l")
    query = prepared(
        conn,
        f"SELECT f.id, f.size_bytes, {is_staged}"
        " FROM library_files f JOIN libraries l ON l.slug = f.library_id"
        f" WHERE f.needs_hash AND {kinds.IS_LARGE.format(file='f')}"
        # Joined to nothing, so that SQLite goes by the index of what is marked, which is in order.
        " AND f.library_id || '' IN (SELECT slug FROM libraries"
        " WHERE is_active AND deleted_at IS NULL AND tenant_id = :tenant"
        + (" AND slug = :library" if library_id else "")
        + ") ORDER BY f.size_bytes, f.id",
    )
    bound = {"tenant": tenant_id, "library": library_id}
    yield from cast("Any", conn.execute(query, bound).cursor)
