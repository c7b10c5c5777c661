"""The files of a shard are found by an index, however many others a library has."""

import re
from typing import Any

import pytest
from sqlalchemy import event, text

from data_plane.executor import HashTask
from data_plane.hashing import hash_task
from mediaplane.protocol.kinds import SMALL_BYTES, HashItemPayload, encode
from tests.support.databases import Databases
from tests.support.files import add_library
from tests.support.rows import Rows

MANY = 20_000
SMALL = HashItemPayload(10, 20, 0, SMALL_BYTES)
LARGE = HashItemPayload(1, MANY, 300_010, 300_020)


def add_marked(database: Databases) -> int:
    numbers = {
        "sqlite": "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers"
        f" WHERE n < {MANY})",
        "postgresql": f"WITH numbers(n) AS (SELECT generate_series(1, {MANY}))",
    }[database.control.dialect]
    with database.control.write() as conn:
        add_library(conn, "photos")
        conn.execute(
            text(
                "INSERT INTO library_files (library_id, rel_path, size_bytes, mtime_ns, device,"
                f" inode, needs_hash, created_at, updated_at) {numbers}"
                " SELECT 'photos', CAST(CAST(n AS TEXT) AS {bytes}),"
                " CASE n % 2 WHEN 0 THEN 5 ELSE 300000 + n END, 1, 1, n, true, 1, 1"
                " FROM numbers".format(
                    bytes={"sqlite": "BLOB", "postgresql": "BYTEA"}[database.control.dialect]
                )
            )
        )
        job_id: int = Rows(conn).add("jobs", kind="hash", status="running")
    return job_id


@pytest.mark.parametrize(
    ("shard", "indexes", "sizes"),
    [
        (SMALL, r"ix_library_files_needs_hash|library_files_pkey|INTEGER PRIMARY KEY", [5] * 6),
        (LARGE, "ix_library_files_large_needs_hash", list(range(300_011, 300_020, 2))),
    ],
)
def test_the_files_of_a_shard_are_found_by_an_index(
    database: Databases, shard: HashItemPayload, indexes: str, sizes: list[int]
) -> None:
    task = hash_task(database.data, {"job_id": add_marked(database), "payload": encode(shard)})
    assert isinstance(task, HashTask)
    sent: list[tuple[str, Any]] = []

    def note(_conn: Any, _cursor: Any, sql: str, bound: Any, *_rest: Any) -> None:
        sent.append((sql, bound))

    event.listen(database.data.engine, "before_cursor_execute", note)
    _distinct, files = task.read()
    event.remove(database.data.engine, "before_cursor_execute", note)
    assert [file.size_bytes for file in files] == sizes
    (query,) = [one for one in sent if "rel_path" in one[0]]
    explain = "EXPLAIN QUERY PLAN" if database.data.dialect == "sqlite" else "EXPLAIN"
    with database.data.read() as conn:
        lines = conn.exec_driver_sql(f"{explain} {query[0]}", query[1]).all()
    plan = "\n".join(str(line[-1]) for line in lines)
    assert re.search(rf"SEARCH f USING ({indexes}|.*INDEX ({indexes}))|using ({indexes})", plan), (
        plan
    )
