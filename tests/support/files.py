"""Files in bulk, and the duplicate groups that the protocol says they form."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy import Connection, insert, select, text

from mediaplane.protocol.duplicates import summarise
from mediaplane.protocol.tables import duplicate_groups, libraries, library_files

# The protocol's words for the rows that may form groups, and for what a group is.
SOURCE_SET = (
    "is_missing = false AND needs_hash = false"
    " AND hash_algorithm IS NOT NULL AND content_hash IS NOT NULL"
)
GROUPS = (
    "SELECT hash_algorithm, content_hash, count(*) AS file_count,"
    " sum(size_bytes) AS total_size_bytes, min(size_bytes) AS size_bytes"
    f" FROM library_files WHERE {SOURCE_SET}"
    " GROUP BY hash_algorithm, content_hash HAVING count(*) > 1"
)


class Group(NamedTuple):
    """A duplicate group, in the order of its listing's key."""

    file_count: int
    total_size_bytes: int
    hash_algorithm: str
    content_hash_hex: str

    @property
    def key(self) -> str:
        return f"{self.hash_algorithm}:{self.content_hash_hex}"


def digest(number: int) -> bytes:
    """A content hash like any other, the same for the same number."""
    return sha256(b"%d" % number).digest()


def content(number: int, algorithm: str = "blake3") -> dict[str, Any]:
    return {"hash_algorithm": algorithm, "content_hash": digest(number)}


def add_library(conn: Connection, slug: str, **columns: Any) -> str:
    row = {"slug": slug, "name": slug, "absolute_path": b"/media/" + slug.encode()}
    conn.execute(insert(libraries), row | columns)
    return slug


def add_files(conn: Connection, library: str, rows: Iterable[dict[str, Any]]) -> list[int]:
    """Insert files by their differences from an ordinary one, and return their ids."""
    usual: dict[str, Any] = {
        "library_id": library,
        "size_bytes": 10,
        "mtime_ns": 1,
        "device": 1,
        "inode": None,
        "is_missing": False,
        "needs_hash": False,
        "hash_algorithm": None,
        "content_hash": None,
        "error_code": None,
    }
    start = conn.execute(text("SELECT coalesce(max(id), 0) FROM library_files")).scalar_one()
    files = [
        usual | {"rel_path": b"file %d" % (start + number), "inode": start + number} | row
        for number, row in enumerate(rows, 1)
    ]
    if files:
        conn.execute(insert(library_files), files)
    query = select(library_files.c.id).where(library_files.c.id > start)
    return list(conn.scalars(query.order_by(library_files.c.id)))


def summarise_all(conn: Connection) -> None:
    """Count all groups, as the transactions that wrote the hashes would have done."""
    hashes = text("SELECT DISTINCT hash_algorithm, content_hash FROM library_files")
    found = [(row[0], bytes(row[1])) for row in conn.execute(hashes) if row[1] is not None]
    summarise(conn, found)


def expected_groups(conn: Connection) -> list[Group]:
    """The groups that the protocol's own query finds, in the order it gives them."""
    found = [
        Group(row.file_count, int(row.total_size_bytes), row.hash_algorithm,
              bytes(row.content_hash).hex())
        for row in conn.execute(text(GROUPS))
    ]  # fmt: skip
    return _in_order(found)


def summarised_groups(conn: Connection) -> list[Group]:
    """The groups that the summary holds, in the order of its listing."""
    rows = conn.execute(select(duplicate_groups)).mappings()
    found = [
        Group(row["file_count"], row["total_size_bytes"], row["hash_algorithm"],
              bytes(row["content_hash"]).hex())
        for row in rows
    ]  # fmt: skip
    return _in_order(found)


def _in_order(groups: list[Group]) -> list[Group]:
    return sorted(
        groups,
        key=lambda group: (
            -group.file_count,
            -group.total_size_bytes,
            group.hash_algorithm,
            group.content_hash_hex,
        ),
    )
