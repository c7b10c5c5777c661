"""A look for work stays cheap: among many jobs both databases go straight to the best one."""

import re
from typing import Any

import pytest
from sqlalchemy import event, text

from data_plane.leases import Leases
from data_plane.queue import Queue
from data_plane.settings import DataSettings
from tests.support.databases import Databases
from tests.support.rows import FAR_AHEAD

MANY = 100_000
NUMBERS = {
    "sqlite": "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers"
    " WHERE n < {last})",
    "postgresql": "WITH numbers(n) AS (SELECT generate_series(1, {last}))",
}
BEST_FIRST = (
    r"SEARCH jobs USING INDEX ix_jobs_claim|Limit .*\n\s+->  Index Scan using ix_jobs_claim"
)


@pytest.fixture
def full(database: Databases) -> Databases:
    """A long history, many jobs that wait for a worker or for another try, and a few at work."""
    numbers = NUMBERS[database.control.dialect]
    with database.control.write() as conn:
        for status, last in (
            ("completed", MANY), ("retryable", MANY), ("pending", 10_000), ("running", 10),
        ):  # fmt: skip
            conn.execute(
                text(
                    "INSERT INTO jobs (kind, status, priority, retry_after, lease_expires_at,"
                    f" created_at, updated_at) {numbers.format(last=last)}"
                    f" SELECT 'probe', '{status}', n % 7, {FAR_AHEAD}, {FAR_AHEAD}, n, n"
                    " FROM numbers"
                )
            )
    with database.control.write() as conn:
        if database.control.dialect == "postgresql":
            # All rows, not a sample of them: ten at work would be in it by chance.
            conn.execute(text("SET LOCAL default_statistics_target = 1000"))
        conn.execute(text("ANALYZE"))
    return database


def looks(database: Databases) -> list[str]:
    """How the database carries out the queries of a look for work."""
    sent: list[tuple[str, Any]] = []

    def note(_conn: Any, _cursor: Any, sql: str, parameters: Any, *_rest: Any) -> None:
        if sql.startswith("SELECT"):
            sent.append((sql, parameters))

    queue = Queue(database.data, Leases("worker"), DataSettings())
    event.listen(database.data.engine, "before_cursor_execute", note)
    queue.recover()
    queue.look(-1000)
    event.remove(database.data.engine, "before_cursor_execute", note)
    explain = "EXPLAIN QUERY PLAN" if database.data.dialect == "sqlite" else "EXPLAIN"
    with database.data.read() as conn:
        plans = [conn.exec_driver_sql(f"{explain} {sql}", bound).all() for sql, bound in sent]
    return ["\n".join(str(line[-1]) for line in lines) for lines in plans]


def test_a_look_for_work_reads_neither_history_nor_what_waits(full: Databases) -> None:
    plans = looks(full)
    assert len(plans) >= 2
    found = "\n".join(plans)
    assert "Seq Scan" not in found
    assert not re.search(r"SCAN jobs(?! USING)", found)
    # The best job that waits is the first in the index: none is sorted.
    assert re.search(BEST_FIRST, found)
    assert "B-TREE" not in found
    assert "->  Sort" not in found
    assert found.count("ix_jobs_running") == 1  # leases that have expired
    assert found.count("ix_jobs_cut") == 1  # the best of the jobs with items
