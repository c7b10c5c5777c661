"""0015_prefix_and_end: hashes of beginnings are never compared with those of another version."""

from sqlalchemy import text

from mediaplane.protocol import migration
from tests.migrations.databases import NewDatabases, Row, add, connected

BEFORE, AFTER = "0014_verify_and_sweep", "0015_prefix_and_end"


def add_files(url: str) -> None:
    times = {"created_at": 1, "updated_at": 1}
    library: Row = {"slug": "l", "name": "l", "absolute_path": b"/l"}
    file: Row = {"library_id": "l", "size_bytes": 300_000, "mtime_ns": 1}
    whole = {"hash_algorithm": "blake3", "content_hash": b"c" * 32}
    with connected(url) as conn:
        add(conn, "libraries", library | times)
        add(conn, "library_files", file | times | {"rel_path": b"a", "prefix_hash": b"p" * 32})
        add(conn, "library_files", file | times | whole | {"rel_path": b"b"})


def hashes(url: str) -> list[Row]:
    query = text("SELECT prefix_hash, content_hash FROM library_files ORDER BY rel_path")
    with connected(url) as conn:
        return [dict(row) for row in conn.execute(query).mappings()]


FORGOTTEN = [
    {"prefix_hash": None, "content_hash": None},
    {"prefix_hash": None, "content_hash": b"c" * 32},
]


def test_an_upgrade_forgets_beginnings_and_keeps_hashes_of_whole_files(
    databases: NewDatabases,
) -> None:
    url = databases.at(BEFORE)
    add_files(url)
    migration.upgrade(url)
    assert hashes(url) == FORGOTTEN


def test_a_downgrade_forgets_them_too(databases: NewDatabases) -> None:
    url = databases.at(AFTER)
    add_files(url)
    migration.downgrade(url, BEFORE)
    assert hashes(url) == FORGOTTEN
