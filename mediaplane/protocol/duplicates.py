"""Keeps the summary of duplicate groups true, inside the transaction that changes a hash."""

from collections.abc import Iterable
from itertools import islice

from sqlalchemy import Connection, bindparam, text

from mediaplane.protocol.clock import NOW_SQL
from mediaplane.protocol.database import lock

_CHUNK = 500

# The lock to hold before reading which hashes a change of files will touch.
DUPLICATES = "duplicate_groups"

# The rows that may form groups: present, and with a hash that is neither absent nor outdated.
GROUPABLE = "NOT is_missing AND NOT needs_hash AND content_hash IS NOT NULL"

_FORGET = text(
    "DELETE FROM duplicate_groups WHERE hash_algorithm = :algorithm AND content_hash IN :hashes"
).bindparams(bindparam("hashes", expanding=True))

_COUNT = (
    "INSERT INTO duplicate_groups (hash_algorithm, content_hash, file_count, size_bytes,"
    " total_size_bytes, reclaimable_bytes, updated_at) "
    "SELECT hash_algorithm, content_hash, count(*), min(size_bytes), sum(size_bytes),"
    " sum(size_bytes) - min(size_bytes), {now} "
    f"FROM library_files WHERE {GROUPABLE} "
    "AND hash_algorithm = :algorithm AND content_hash IN :hashes "
    "GROUP BY hash_algorithm, content_hash HAVING count(*) > 1"
)


def summarise(conn: Connection, hashes: Iterable[tuple[str, bytes]]) -> None:
    """Count the groups of these (algorithm, hash) pairs anew; right however often it is done."""
    touched: dict[str, set[bytes]] = {}
    for algorithm, content_hash in hashes:
        touched.setdefault(algorithm, set()).add(content_hash)
    if not touched:
        return
    # Two transactions that each add one copy would otherwise not see each other's.
    lock(conn, DUPLICATES)
    count = text(_COUNT.format(now=NOW_SQL[conn.dialect.name])).bindparams(
        bindparam("hashes", expanding=True)
    )
    for algorithm, found in touched.items():
        remaining = iter(sorted(found))
        while chunk := list(islice(remaining, _CHUNK)):
            bound = {"algorithm": algorithm, "hashes": chunk}
            conn.execute(_FORGET, bound)
            conn.execute(count, bound)
