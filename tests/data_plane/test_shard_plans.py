"""The files of a shard are found by an index, however many others a library has."""

import re
from typing import Any

import pytest
from sqlalchemy import event, text

from data_plane.executor import PrefixTask
from data_plane.hashing import hash_task
from mediaplane.protocol.kinds import SMALL_BYTES, HashItemPayload, encode
from tests.support.databases import Databases
from tests.support.files import add_library
from tests.support.rows import Rows

MANY = 20_000
SMALL = HashItemPayload(10, 20, 0, SMALL_BYTES)
LARGE = HashItemPayload(1, MANY, 300_010, 300_020)
BEGINNINGS = HashItemPayload(1, MANY, 300_011, 300_011, is_prefix=True)
# As an older version has cut them.
BEGINNINGS_OF_ANY_SIZE = HashItemPayload(10, 20, is_prefix=True)


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


def plan_of(database: Databases, sql: str, bound: Any) -> str:
    """How a worker has a query carried out: on PostgreSQL, alike whatever its parameters."""
    explain = f"EXPLAIN QUERY PLAN {sql}"
    if database.data.dialect == "postgresql":
        places = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", sql)))
        numbered = re.sub(r"%\((\w+)\)s", lambda one: f"${places.index(one[1]) + 1}", sql)
        explain, bound = f"EXPLAIN (GENERIC_PLAN) {numbered}", None
    with database.data.read() as conn:
        lines = conn.exec_driver_sql(explain, bound).all()
    return "\n".join(str(line[-1]) for line in lines)


@pytest.mark.parametrize(
    ("shard", "indexes", "sizes"),
    [
        (SMALL, r"ix_library_files_needs_hash|library_files_pkey|INTEGER PRIMARY KEY", [5] * 6),
        (LARGE, "ix_library_files_large_needs_hash", list(range(300_011, 300_020, 2))),
        (BEGINNINGS, "ix_library_files_large_needs_hash", [300_011]),
        (BEGINNINGS_OF_ANY_SIZE,
         "ix_library_files_needs_hash|library_files_pkey|INTEGER PRIMARY KEY",
         list(range(300_011, 300_020, 2))),
    ],
)  # fmt: skip
def test_the_files_of_a_shard_are_found_by_an_index(
    database: Databases, shard: HashItemPayload, indexes: str, sizes: list[int]
) -> None:
    sent: list[tuple[str, Any]] = []

    def note(_conn: Any, _cursor: Any, sql: str, bound: Any, *_rest: Any) -> None:
        sent.append((sql, bound))

    job_id = add_marked(database)
    event.listen(database.data.engine, "before_cursor_execute", note)
    task = hash_task(database.data, {"job_id": job_id, "payload": encode(shard)})
    if isinstance(task, PrefixTask):
        files = task.files
    else:
        files = [*(marked := task.read()).whole, *marked.undecided]
    event.remove(database.data.engine, "before_cursor_execute", note)
    assert [file.size_bytes for file in files] == sizes
    plans = {sql: plan_of(database, sql, bound) for sql, bound in sent if "library_files" in sql}
    (plan,) = [plan for sql, plan in plans.items() if "rel_path" in sql]
    assert re.search(rf"SEARCH f USING ({indexes}|.*INDEX ({indexes}))|using ({indexes}) on "
                     r"library_files f", plan), plan  # fmt: skip
    # Whatever else is looked for among the files is found by a value of them too.
    unconditional = r"SCAN (?!json_each)\w+ |on library_files \w+ .*\n(?!\s*Index Cond:)"
    for plan in plans.values():
        assert not re.search(unconditional, plan), plan
