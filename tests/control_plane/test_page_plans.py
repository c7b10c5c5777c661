"""Pages stay cheap: among many rows both databases go straight to the next one by index."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from sqlalchemy import event, text

from mediaplane.protocol.database import Database
from mediaplane.v1 import duplicate_service_pb2 as duplicates_pb
from mediaplane.v1 import job_service_pb2 as jobs_pb
from tests.support.control import ControlPlane
from tests.support.files import add_library
from tests.support.rows import Rows

ROWS = 20_000

NUMBERS = {
    "sqlite": "WITH RECURSIVE numbers(n) AS"
    f" (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {ROWS})",
    "postgresql": f"WITH numbers(n) AS (SELECT generate_series(1, {ROWS}))",
}
# A content of 32 bytes from a number: two files have each, and two have 200.
CONTENT = {
    "sqlite": "CAST(printf('%032d', {n}) AS BLOB)",
    "postgresql": "convert_to(lpad(({n})::text, 32, '0'), 'UTF8')",
}


def fill(control: ControlPlane) -> None:
    database = control.database.control
    numbers, hashed = NUMBERS[database.dialect], CONTENT[database.dialect]
    with database.write() as conn:
        add_library(conn, "photos")
        path = hashed.format(n="n")
        shared = hashed.format(n="CASE WHEN n <= 400 THEN n % 2 ELSE n / 2 END")
        conn.execute(
            text(
                "INSERT INTO library_files (library_id, rel_path, size_bytes, mtime_ns,"
                " hash_algorithm, content_hash, created_at, updated_at)"
                f" {numbers} SELECT 'photos', {path}, 7, 1, 'blake3', {shared}, n, n FROM numbers"
            )
        )
        conn.execute(
            text(
                "INSERT INTO duplicate_groups (hash_algorithm, content_hash, file_count,"
                " size_bytes, total_size_bytes, reclaimable_bytes, updated_at)"
                f" {numbers} SELECT 'blake3', {path}, 2 + n % 5, 7, 14, 7, n FROM numbers"
            )
        )
        conn.execute(
            text(
                "INSERT INTO jobs (kind, status, created_at, updated_at)"
                f" {numbers} SELECT 'delete', 'completed', n / 100, n FROM numbers"
            )
        )
    with database.write() as conn:
        conn.execute(text("ANALYZE"))


def plan(database: Database, table: str, call: Callable[[], object]) -> str:
    """How the database carries out the last query of a table that a call makes."""
    sent: list[tuple[str, Any]] = []

    def note(_conn: Any, _cursor: Any, sql: str, parameters: Any, *_rest: Any) -> None:
        if f"FROM {table}" in sql:
            sent.append((sql, parameters))

    event.listen(database.engine, "before_cursor_execute", note)
    call()
    event.remove(database.engine, "before_cursor_execute", note)
    sql, parameters = sent[-1]
    explain = "EXPLAIN QUERY PLAN" if database.dialect == "sqlite" else "EXPLAIN"
    with database.read() as conn:
        lines = conn.exec_driver_sql(f"{explain} {sql}", parameters).all()
    return "\n".join(str(line[-1]) for line in lines)


def assert_sorts_nothing(found: str) -> None:
    assert "Sort" not in found
    assert "TEMP B-TREE" not in found


def assert_begins_in(found: str, index: str) -> None:
    """The index gives the order, and the place to begin."""
    assert index in found
    assert_sorts_nothing(found)
    assert "Index Cond" in found or f"INDEX {index} (" in found


def assert_seeks(found: str, index: str) -> None:
    """As above, and nothing is read in vain."""
    assert_begins_in(found, index)
    # What finds the tenants stands before.
    assert "Filter" not in found[found.rindex(index) :]


@pytest.fixture
def full(control: ControlPlane) -> ControlPlane:
    fill(control)
    return control


ORDERS = {
    duplicates_pb.ListDuplicateGroupsRequest.ORDER_COPIES: "ix_duplicate_groups_page",
    duplicates_pb.ListDuplicateGroupsRequest.ORDER_RECLAIMABLE: "ix_duplicate_groups_reclaimable",
}
FILTERS: list[dict[str, Any]] = [
    {"library": "libraries/photos"},
    {"library": "libraries/photos", "path_prefix": b"0000"},
    {"media_type": "TYPE_VIDEO"},
    {"library": "libraries/photos", "media_type": "TYPE_IMAGE", "min_size_bytes": 7},
]


@pytest.mark.parametrize("order", ORDERS)
def test_a_later_page_of_groups_begins_at_its_place_in_the_index(
    full: ControlPlane, order: Any
) -> None:
    service = full.duplicates
    first = service.ListDuplicateGroups(
        duplicates_pb.ListDuplicateGroupsRequest(page_size=1000, order=order)
    )
    request = duplicates_pb.ListDuplicateGroupsRequest(
        page_token=first.next_page_token, order=order
    )
    found = plan(
        full.database.control, "duplicate_groups", lambda: service.ListDuplicateGroups(request)
    )
    assert_seeks(found, ORDERS[order])


@pytest.mark.parametrize("order", ORDERS)
def test_the_first_page_of_groups_reads_the_index_and_sorts_nothing(
    full: ControlPlane, order: Any
) -> None:
    request = duplicates_pb.ListDuplicateGroupsRequest(order=order)
    call = full.duplicates.ListDuplicateGroups
    found = plan(full.database.control, "duplicate_groups", lambda: call(request))
    assert ORDERS[order] in found
    assert_sorts_nothing(found)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("asked", FILTERS, ids=str)
def test_a_filter_goes_from_group_to_group_and_finds_the_files_of_each_by_index(
    full: ControlPlane, order: Any, asked: dict[str, Any]
) -> None:
    # More than one look is needed each time, and the plan is that of the last.
    request = duplicates_pb.ListDuplicateGroupsRequest(order=order, page_size=1000, **asked)
    call = full.duplicates.ListDuplicateGroups
    found = plan(full.database.control, "duplicate_groups", lambda: call(request))
    assert_sorts_nothing(found)
    for index in (ORDERS[order], "ix_library_files_dedup_group"):
        assert f"using {index} on" in found or f"USING INDEX {index} (" in found
    assert "Seq Scan on library_files" not in found
    assert "Seq Scan on duplicate_groups" not in found
    assert "SCAN library_files" not in found


def test_the_files_of_a_group_are_found_by_the_index_of_hashes(full: ControlPlane) -> None:
    service, group = full.duplicates, "blake3:" + (b"0" * 31 + b"1").hex()
    first = service.ListDuplicateFiles(
        duplicates_pb.ListDuplicateFilesRequest(parent=group, page_size=100)
    )
    assert len(first.files) == 100
    for token in ("", first.next_page_token):
        request = duplicates_pb.ListDuplicateFilesRequest(parent=group, page_token=token)
        call = partial(service.ListDuplicateFiles, request)
        found = plan(full.database.control, "library_files", call)
        # What is filtered is the trash alone.
        assert_begins_in(found, "ix_library_files_dedup_group")


def test_a_comparison_of_the_summary_reads_each_span_of_hashes_by_index(
    full: ControlPlane,
) -> None:
    request = duplicates_pb.VerifyDuplicateGroupsRequest()
    call = partial(full.duplicates.VerifyDuplicateGroups, request)
    found = plan(full.database.control, "library_files", call)
    assert "ix_library_files_dedup_group" in found
    for table in ("library_files", "duplicate_groups"):
        assert f"Seq Scan on {table}" not in found
        assert f"SCAN {table}" not in found


def test_a_later_page_of_jobs_begins_at_its_place_in_the_index(full: ControlPlane) -> None:
    first = full.jobs.ListJobs(jobs_pb.ListJobsRequest(page_size=1000))
    request = jobs_pb.ListJobsRequest(page_token=first.next_page_token)
    found = plan(full.database.control, "jobs", lambda: full.jobs.ListJobs(request))
    assert_seeks(found, "ix_jobs_page")
    # Down to the job: not all of its moment are read.
    assert "created_at=? AND id<?" in found or "ROW(created_at, id) <" in found


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
@pytest.mark.parametrize("tenants", [["default"], ["north"], ["default", "north", "south"]])
def test_a_page_of_all_tenants_is_one_question_to_postgresql(
    control: ControlPlane, tenants: list[str]
) -> None:
    database, asked = control.database.control, []
    with database.write() as conn:
        for tenant in tenants:
            Rows(conn).add("jobs", tenant_id=tenant)

    def note(_conn: Any, _cursor: Any, sql: str, *_rest: Any) -> None:
        if "FROM jobs" in sql:
            asked.append(sql)

    # Only a connection that has met no other tenant than the default one asks once more.
    control.jobs.ListJobs(jobs_pb.ListJobsRequest())
    event.listen(database.engine, "before_cursor_execute", note)
    found = control.jobs.ListJobs(jobs_pb.ListJobsRequest())
    event.remove(database.engine, "before_cursor_execute", note)
    assert {job.tenant for job in found.jobs} == set(tenants)
    assert len(asked) == 1


def test_a_tenant_that_comes_later_is_on_the_next_page_of_all(control: ControlPlane) -> None:
    database = control.database.control
    seen = []
    for tenant in ("default", "a-first-one", "z-last-one"):
        with database.write() as conn:
            Rows(conn).add("jobs", tenant_id=tenant)
        found = control.jobs.ListJobs(jobs_pb.ListJobsRequest()).jobs
        seen.append({job.tenant for job in found})
    assert seen == [{"default"}, {"default", "a-first-one"},
                    {"default", "a-first-one", "z-last-one"}]  # fmt: skip
