"""The summary of duplicate groups is what the protocol's own query would find, always."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, event, select, text, update

from mediaplane.protocol.database import Database
from mediaplane.protocol.duplicates import _statements, summarise, summarise_files
from mediaplane.protocol.tables import duplicate_groups, library_files
from mediaplane.protocol.values import Plane
from mediaplane.protocol.write_paths import SUMMARISE
from tests.support.databases import Databases
from tests.support.files import GROUPS, add_files, add_library, content, digest
from tests.support.waiting import PATIENCE_SECONDS

FILES = 8

# What can happen to a file, as the columns that change with it.
happenings = st.one_of(
    st.builds(content, st.integers(1, 3), st.sampled_from(["blake3", "sha256"])).map(
        lambda hashed: hashed | {"needs_hash": False}
    ),
    st.just({"hash_algorithm": None, "content_hash": None}),
    st.booleans().map(lambda value: {"is_missing": value}),
    st.booleans().map(lambda value: {"needs_hash": value}),
    st.sampled_from([0, 1, 2**50]).map(lambda value: {"size_bytes": value}),
)
transactions = st.lists(
    st.lists(st.tuples(st.integers(0, FILES - 1), happenings), min_size=1, max_size=5), max_size=8
)


def counted(conn: Connection) -> list[tuple[Any, ...]]:
    found = conn.execute(text(GROUPS)).all()
    return sorted((row[0], bytes(row[1]), row[2], int(row[3]), row[4]) for row in found)


def summary(conn: Connection) -> list[tuple[Any, ...]]:
    group = duplicate_groups.c
    query = select(
        group.hash_algorithm, group.content_hash, group.file_count, group.total_size_bytes,
        group.size_bytes, group.reclaimable_bytes,
    )  # fmt: skip
    rows = conn.execute(query).all()
    assert all(row.reclaimable_bytes == row.total_size_bytes - row.size_bytes for row in rows)
    return sorted(tuple(row)[:5] for row in rows)


def hashes_of(conn: Connection, ids: list[int]) -> list[tuple[str, bytes]]:
    file = library_files.c
    query = select(file.hash_algorithm, file.content_hash).where(
        file.id.in_(ids), file.content_hash.is_not(None)
    )
    return [(row.hash_algorithm, bytes(row.content_hash)) for row in conn.execute(query)]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(history=transactions)
def test_after_any_history_the_summary_is_what_counting_would_find(
    database: Databases, history: list[list[tuple[int, dict[str, Any]]]]
) -> None:
    with database.control.write() as conn:
        for table in ("duplicate_groups", "library_files", "libraries"):
            conn.execute(text(f"DELETE FROM {table}"))
        ids = add_files(conn, add_library(conn, "photos"), [{}] * FILES)
    for changes in history:
        with database.control.write() as conn:
            touched = [ids[number] for number, _ in changes]
            before = hashes_of(conn, touched)
            for number, columns in changes:
                where = library_files.c.id == ids[number]
                conn.execute(update(library_files).where(where).values(**columns))
            summarise(conn, [*before, *hashes_of(conn, touched)])
            assert summary(conn) == counted(conn)


def test_a_summary_that_was_wrong_is_right_after_it_was_counted(database: Databases) -> None:
    with database.control.write() as conn:
        add_files(conn, add_library(conn, "photos"), [content(1)] * 3)
        summarise(conn, [("blake3", digest(1))])
        conn.execute(update(duplicate_groups).values(file_count=99))
    with database.control.write() as conn:
        for _ in range(2):
            summarise(conn, [("blake3", digest(1)), ("blake3", digest(1)), ("sha256", digest(1))])
            assert summary(conn) == counted(conn)
        conn.execute(delete(library_files))
        summarise(conn, [("blake3", digest(1))])
        assert summary(conn) == []


def test_more_hashes_than_fit_into_one_statement_are_all_counted(database: Databases) -> None:
    numbers = range(1203)
    with database.control.write() as conn:
        rows = [content(number) for number in numbers for _ in range(2)]
        add_files(conn, add_library(conn, "photos"), rows)
        summarise(conn, [("blake3", digest(number)) for number in numbers])
        assert len(summary(conn)) == 1203
        assert summary(conn) == counted(conn)


def test_nothing_to_count_waits_for_nobody(database: Databases) -> None:
    other = Database(database.url, Plane.CONTROL)
    with database.control.write() as conn:
        summarise(conn, [("blake3", digest(1))])
        with other.read() as reader:
            summarise(reader, [])
    other.close()


def test_two_transactions_that_each_add_one_copy_make_the_group(database: Databases) -> None:
    with database.control.write() as conn:
        ids = add_files(conn, add_library(conn, "photos"), [{"needs_hash": True}] * 2)
    both = [Database(database.url, Plane.CONTROL) for _ in ids]
    written = threading.Barrier(2)

    def hash_one(number: int) -> None:
        with both[number].write() as conn:
            where = library_files.c.id == ids[number]
            values = content(1) | {"needs_hash": False}
            conn.execute(update(library_files).where(where).values(**values))
            if both[number].dialect == "postgresql":
                # Now both have written and neither has committed: each is blind to the other.
                written.wait(timeout=PATIENCE_SECONDS)
            summarise(conn, [("blake3", digest(1))])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(hash_one, range(2)))
    for one in both:
        one.close()
    with database.control.read() as conn:
        assert [row[2] for row in summary(conn)] == [2]
        assert summary(conn) == counted(conn)


def test_the_groups_of_new_hashes_are_counted_hash_by_hash(database: Databases) -> None:
    sent: list[tuple[str, Any]] = []

    def note(_conn: Any, _cursor: Any, sql: str, parameters: Any, *_rest: Any) -> None:
        if sql.startswith("INSERT INTO duplicate_groups"):
            sent.append((sql, parameters))

    engine = database.data.engine
    explain = "EXPLAIN QUERY PLAN" if database.data.dialect == "sqlite" else "EXPLAIN"
    with database.data.write(SUMMARISE) as conn:
        event.listen(engine, "before_cursor_execute", note)
        summarise_files(conn, [1, 2, 3])
        event.remove(engine, "before_cursor_execute", note)
        ((sql, parameters),) = sent
        lines = conn.exec_driver_sql(f"{explain} {sql}", parameters).all()
    found = "\n".join(str(line[-1]) for line in lines)
    by_hash = r"Index Cond: \(\(.*hash_algorithm.*=.* AND .*content_hash.* = |hash_algorithm=\? AND"
    assert re.search(by_hash, found), found


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_postgresql_looks_at_given_hashes_alone_before_it_knows_how_many_files_there_are(
    database: Databases,
) -> None:
    with database.control.write() as conn:
        add_library(conn, "photos")
        add_files(conn, "photos", [content(number // 2) for number in range(5000)])
        query = text(f"EXPLAIN {_statements(conn.dialect.name)[1].text}")
        bound = {"algorithm": "blake3", "hashes": [digest(number) for number in range(500)]}
        plan = "\n".join(conn.scalars(query, bound))
    assert re.search(r"Index Cond: .*hash_algorithm.* AND \(content_hash = ", plan), plan
