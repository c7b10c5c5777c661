"""Recovery stays cheap: among many jobs that wait it reads only those that it moves."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, text

from control_plane.policy import recovery
from control_plane.policy.backoff import Backoff
from mediaplane.protocol.database import Database
from tests.support.databases import Databases
from tests.support.rows import FAR_AHEAD

WAITING = 100_000
NUMBERS = {
    "sqlite": "WITH RECURSIVE numbers(n) AS"
    f" (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {WAITING})",
    "postgresql": f"WITH numbers(n) AS (SELECT generate_series(1, {WAITING}))",
}
RETRYABLE = "ix_jobs_retryable"


@pytest.fixture
def waiting(database: Databases) -> Databases:
    """Very many jobs that wait for another try which is not due."""
    numbers = NUMBERS[database.control.dialect]
    with database.control.write() as conn:
        conn.execute(
            text(
                "INSERT INTO jobs (kind, status, retry_after, created_at, updated_at)"
                f" {numbers} SELECT 'probe', 'retryable', {FAR_AHEAD} + n, n, n FROM numbers"
            )
        )
    with database.control.write() as conn:
        conn.execute(text("ANALYZE"))
    return database


@contextmanager
def noted(database: Database) -> Iterator[list[tuple[str, Any]]]:
    """The statements about jobs that are sent meanwhile."""
    sent: list[tuple[str, Any]] = []

    def note(_conn: Any, _cursor: Any, sql: str, parameters: Any, *_rest: Any) -> None:
        if re.match(r"(UPDATE|SELECT .* FROM) jobs\b", sql):
            sent.append((sql, parameters))

    event.listen(database.engine, "before_cursor_execute", note)
    yield sent
    event.remove(database.engine, "before_cursor_execute", note)


def plan(database: Database, sql: str, parameters: Any) -> str:
    explain = "EXPLAIN QUERY PLAN" if database.dialect == "sqlite" else "EXPLAIN"
    with database.write() as conn:
        lines = conn.exec_driver_sql(f"{explain} {sql}", parameters).all()
    return "\n".join(str(line[-1]) for line in lines)


def assert_seeks(found: str) -> None:
    """The index gives the place to begin: what is not due is not read."""
    assert RETRYABLE in found
    assert "Seq Scan" not in found
    assert not re.search(r"SCAN jobs(?! USING)", found)
    assert re.search(rf"Index Cond: .*retry_after|{RETRYABLE} \(retry_after", found)


@pytest.mark.parametrize(
    "words",
    [
        # Each names one look of recovery by words that no other has.
        "retry_after IS NULL ORDER BY",
        "AND kind IN ('scan', 'hash') ORDER BY retry_after",
        "kind NOT IN ('scan', 'hash')",
        "(retry_after IS NULL) AND status = 'retryable'",
        "(retry_after <= ",
    ],
    ids=["without_retry_time", "due_campaign", "requeue_due", "exhaust_new", "exhaust_due"],
)
def test_what_is_not_due_is_not_read(waiting: Databases, words: str) -> None:
    database = waiting.control
    with noted(database) as sent:
        recovery.recover(database, Backoff())
    found = [plan(database, sql, parameters) for sql, parameters in sent if words in sql]
    assert found, [sql for sql, _ in sent]
    for one in found:
        assert_seeks(one)


def test_a_look_for_cancelled_jobs_reads_no_history(waiting: Databases) -> None:
    database = waiting.control
    with database.write() as conn:
        conn.execute(text("UPDATE jobs SET status = 'completed', retry_after = NULL"))
    with database.write() as conn:
        conn.execute(text("ANALYZE"))
    with noted(database) as sent:
        recovery.recover(database, Backoff())
    drops = [pair for pair in sent if "cancel_requested_at IS NOT NULL" in pair[0]]
    assert len(drops) == 2
    for sql, parameters in drops:
        found = plan(database, sql, parameters)
        assert "Seq Scan" not in found
        assert re.search(r"ix_jobs_(claim|retryable)", found)
