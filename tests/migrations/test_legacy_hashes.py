"""0011_duplicate_group_query_indexes: whichever of its four columns a database had before."""

from itertools import combinations

import pytest
from sqlalchemy import Connection, text

from mediaplane.protocol import migration
from tests.migrations.databases import NewDatabases, Row, add, connected, rows_of
from tests.migrations.schema import schema_of

BEFORE = "0010_protocol_values"
COLUMNS = ("is_missing", "needs_hash", "hash_algorithm", "content_hash")
SUBSETS = [subset for size in range(5) for subset in combinations(COLUMNS, size)]
TYPES = {"is_missing": "BOOLEAN", "needs_hash": "BOOLEAN", "hash_algorithm": "VARCHAR(16)"}
BINARY = {"sqlite": "BLOB", "postgresql": "BYTEA"}

RED, BLUE = b"r" * 32, b"b" * 32
# is_missing, needs_hash, hash_algorithm, content_hash, size_bytes
LEGACY = [
    (False, False, "BLAKE3", RED, 10),
    (False, False, "blake3", RED, 10),
    (None, None, "Blake3", RED, 12),
    (True, False, "blake3", RED, 10),
    (False, True, "blake3", RED, 10),
    (False, False, "SHA256", RED, 20),
    (False, False, "sha256", BLUE, 30),
    (False, False, "sha256", BLUE, 30),
    (False, False, "blake3", b"short", 40),
    (False, False, "sha256", b"long" * 16, 40),
    (False, False, None, BLUE, 30),
    (False, False, "sha256", None, 30),
    (False, False, "MD5", BLUE, 30),
    (False, False, None, None, 50),
]


def add_legacy(conn: Connection, present: tuple[str, ...]) -> list[Row]:
    """Add the columns that were there, without defaults, and the files; return what is to be."""
    library = {"slug": "l", "name": "l", "absolute_path": b"/l", "created_at": 1, "updated_at": 1}
    add(conn, "libraries", library)
    for column in present:
        form = TYPES.get(column, BINARY[conn.dialect.name])
        conn.execute(text(f"ALTER TABLE library_files ADD COLUMN {column} {form}"))
    expected = []
    for number, (*values, size) in enumerate(LEGACY, start=1):
        given = {k: v for k, v in zip(COLUMNS, values, strict=True) if k in present}
        row: Row = {"library_id": "l", "rel_path": b"%d" % number, "size_bytes": size}
        row |= {"mtime_ns": 1, "created_at": 1, "updated_at": 1}
        add(conn, "library_files", row | given)
        expected.append({"id": number, "size_bytes": size} | in_form(given))
    return expected


def in_form(given: Row) -> Row:
    algorithm, digest = given.get("hash_algorithm"), given.get("content_hash")
    is_whole = algorithm and digest and algorithm != "MD5" and len(digest) == 32
    return {
        "is_missing": bool(given.get("is_missing")),
        "needs_hash": bool(given.get("needs_hash")),
        "hash_algorithm": algorithm.lower() if algorithm and is_whole else None,
        "content_hash": digest if is_whole else None,
    }


def groups_of(files: list[Row]) -> list[tuple[str, bytes, int, int, int, int]]:
    sizes: dict[tuple[str, bytes], list[int]] = {}
    for file in files:
        if file["content_hash"] and not file["is_missing"] and not file["needs_hash"]:
            key = file["hash_algorithm"], file["content_hash"]
            sizes.setdefault(key, []).append(file["size_bytes"])
    return sorted(
        (*key, len(found), min(found), sum(found), sum(found) - min(found))
        for key, found in sizes.items()
        if len(found) > 1
    )


@pytest.mark.parametrize("present", SUBSETS, ids=lambda subset: "+".join(subset) or "none")
def test_any_of_the_columns_may_be_there_already(
    databases: NewDatabases, present: tuple[str, ...]
) -> None:
    url = databases.at(BEFORE)
    with connected(url) as conn:
        expected = add_legacy(conn, present)
    migration.upgrade(url)
    with connected(url) as conn:
        files = sorted(rows_of(conn, "library_files"), key=lambda row: int(row["id"]))
        groups = rows_of(conn, "duplicate_groups")
        upgraded = schema_of(conn)
    assert [{name: file[name] for name in expected[0]} for file in files] == expected
    columns = ("hash_algorithm", "content_hash", "file_count", "size_bytes", "total_size_bytes")
    found = [tuple(group[c] for c in (*columns, "reclaimable_bytes")) for group in groups]
    assert sorted(found) == groups_of(expected)
    with connected(databases.at("head")) as conn:
        assert upgraded == schema_of(conn)


def test_equal_files_are_grouped_as_the_contract_counts_them() -> None:
    """Keeps the reference above honest: three red ones are neither missing nor to be hashed."""
    files = [in_form(dict(zip(COLUMNS, v, strict=True))) | {"size_bytes": s} for *v, s in LEGACY]
    assert groups_of(files) == [
        ("blake3", RED, 3, 10, 32, 22),
        ("sha256", BLUE, 2, 30, 60, 30),
    ]


def test_an_index_of_the_same_name_is_built_anew(databases: NewDatabases) -> None:
    url = databases.at(BEFORE)
    with connected(url) as conn:
        conn.execute(text("CREATE INDEX ix_library_files_dedup_group ON library_files (inode)"))
    migration.upgrade(url)
    with connected(url) as conn, connected(databases.at("head")) as other:
        assert schema_of(conn) == schema_of(other)
