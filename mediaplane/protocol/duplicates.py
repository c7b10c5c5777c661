"""Keeps the summary of duplicate groups true, inside the transaction that changes a hash."""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice

from sqlalchemy import Connection, bindparam, text
from sqlalchemy.sql.elements import TextClause

from mediaplane.protocol.clock import NOW_SQL
from mediaplane.protocol.database import lock
from mediaplane.protocol.statements import among, id_list

_CHUNK = 500

# The lock to hold before reading which hashes a change of files will touch.
DUPLICATES = "duplicate_groups"

_HASHED = "NOT is_missing AND NOT needs_hash AND content_hash IS NOT NULL"
_NOT_IN_TRASH = (
    "library_id NOT IN (SELECT slug FROM libraries WHERE deleted_at IS NOT NULL{or_else})"
)

# The rows that may form groups: present, with a hash that is neither absent nor outdated, and not
# of a library in the trash.
GROUPABLE = f"{_HASHED} AND {_NOT_IN_TRASH.format(or_else='')}"
# Those of one tenant, by what they are not: so that the index of hashes finds them all the same.
GROUPABLE_OF_TENANT = f"{_HASHED} AND {_NOT_IN_TRASH.format(or_else=' OR tenant_id <> :tenant')}"

# Whether groups of a library that was hidden or shown are still to be counted anew.
IS_BEHIND = "EXISTS (SELECT 1 FROM libraries WHERE regroup_from IS NOT NULL)"

_GIVEN = "hash_algorithm = :algorithm AND content_hash IN :hashes"
_OF_FILES = (
    "SELECT DISTINCT hash_algorithm, content_hash FROM library_files"
    " WHERE {ids} AND content_hash IS NOT NULL"
)
# For SQLite, which counts in twice the time what it does not know to be shared; most is not.
_OF_SHARED_FILES = (
    f"{_OF_FILES} AND EXISTS (SELECT 1 FROM library_files o WHERE o.id <> library_files.id"
    " AND o.hash_algorithm = library_files.hash_algorithm"
    " AND o.content_hash = library_files.content_hash"
    " AND NOT o.is_missing AND NOT o.needs_hash AND o.content_hash IS NOT NULL)"
)

_FORGET = "DELETE FROM duplicate_groups WHERE {these}"
_FIGURES = (
    "count(*) AS file_count, min(size_bytes) AS size_bytes, sum(size_bytes) AS total_size_bytes,"
    " sum(size_bytes) - min(size_bytes) AS reclaimable_bytes"
)
# Every groupable file with its tenant. Files first: SQLite keeps to the order of a CROSS JOIN.
_OWNED = (
    "library_files CROSS JOIN"
    " (SELECT slug, tenant_id FROM libraries WHERE deleted_at IS NULL) AS owner"
    f" WHERE slug = library_id AND {_HASHED}"
)
# The groups by the files themselves, with the figures of the summary.
COUNTED = (
    f"SELECT hash_algorithm, content_hash, tenant_id, {_FIGURES} FROM {_OWNED} AND {{these}}"
    " GROUP BY hash_algorithm, content_hash, tenant_id HAVING count(*) > 1"
)
_INSERT = (
    "INSERT INTO duplicate_groups (hash_algorithm, content_hash, tenant_id, file_count, size_bytes,"
    " total_size_bytes, reclaimable_bytes, updated_at)"
)
_COUNT = f"{_INSERT} SELECT counted.*, {{now}} FROM ({COUNTED}) AS counted"

# The groups of hashes one after the other: whatever PostgreSQL thinks of the number of files, it
# looks at those of each hash alone. SQLite does so anyway, and knows no LATERAL.
_COUNT_EACH = (
    f"{_INSERT} SELECT touched.*, counted.*, {{now}}"
    " FROM ({hashes}) AS touched (hash_algorithm, content_hash) CROSS JOIN LATERAL"
    f" (SELECT tenant_id, {_FIGURES} FROM {_OWNED}"
    " AND hash_algorithm = touched.hash_algorithm AND content_hash = touched.content_hash"
    " GROUP BY tenant_id HAVING count(*) > 1) AS counted"
)
_EACH_GIVEN = "SELECT :algorithm, unnest(CAST(:hashes AS BYTEA[]))"
_RISE = "ON CONFLICT (hash_algorithm, content_hash, tenant_id) DO UPDATE SET " + ", ".join(
    f"{figure} = excluded.{figure}"
    for figure in (
        "file_count", "size_bytes", "total_size_bytes", "reclaimable_bytes", "updated_at",
    )
)  # fmt: skip


def summarise(conn: Connection, hashes: Iterable[tuple[str, bytes]]) -> None:
    """Count the groups of these (algorithm, hash) pairs anew; right however often it is done."""
    touched: dict[str, set[bytes]] = {}
    for algorithm, content_hash in hashes:
        touched.setdefault(algorithm, set()).add(content_hash)
    if not touched:
        return
    # Two transactions that each add one copy would otherwise not see each other's.
    lock(conn, DUPLICATES)
    forget, count = _statements(conn.dialect.name)
    for algorithm, found in touched.items():
        remaining = iter(sorted(found))
        while chunk := list(islice(remaining, _CHUNK)):
            bound = {"algorithm": algorithm, "hashes": chunk}
            conn.execute(forget, bound)
            conn.execute(count, bound)


def summarise_files(conn: Connection, file_ids: Sequence[int]) -> None:
    """Count the groups of files that have a hash since now: groups that grow, or come to be."""
    if not file_ids:
        return
    lock(conn, DUPLICATES)
    conn.execute(_count_files(conn.dialect.name), {"ids": id_list(file_ids, conn.dialect.name)})


@cache
def _count_files(dialect: str) -> TextClause:
    ids, now = among("id", "ids", dialect), NOW_SQL[dialect]
    if dialect == "postgresql":
        return text(f"{_COUNT_EACH.format(hashes=_OF_FILES.format(ids=ids), now=now)} {_RISE}")
    these = f"(hash_algorithm, content_hash) IN ({_OF_SHARED_FILES.format(ids=ids)})"
    # Without the WHERE, SQLite takes the ON for that of a join.
    return text(f"{_COUNT.format(these=these, now=now)} WHERE true {_RISE}")


@cache
def _statements(dialect: str) -> tuple[TextClause, TextClause]:
    """Return what forgets the groups of given hashes, and what counts them."""
    now = NOW_SQL[dialect]
    if dialect == "postgresql":
        these = "hash_algorithm = :algorithm AND content_hash = ANY(CAST(:hashes AS BYTEA[]))"
        count = text(_COUNT_EACH.format(hashes=_EACH_GIVEN, now=now))
        return text(_FORGET.format(these=these)), count
    forget, count = (
        text(statement.format(these=_GIVEN, now=now)).bindparams(
            bindparam("hashes", expanding=True)
        )
        for statement in (_FORGET, _COUNT)
    )
    return forget, count
