"""A change that is one statement takes its lock and its audit entry along, all or nothing."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import Connection, event, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from mediaplane.protocol import audit
from mediaplane.protocol.audit import IS_HELD, Entry
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Values
from mediaplane.protocol.tables import audit_log, io_rate_limits
from mediaplane.protocol.values import Peer, Plane, Role
from tests.support.databases import Databases
from tests.support.waiting import PATIENCE_SECONDS

LOCK = "a test"
ADD = (
    "INSERT INTO io_rate_limits (bucket_key, next_available_at_ms, updated_at)"
    " SELECT CAST(:key AS VARCHAR), CAST(:at AS BIGINT), 0{condition}"
    " RETURNING bucket_key, next_available_at_ms"
)
on_postgresql = pytest.mark.parametrize("database", ["postgres"], indirect=True)


@pytest.fixture(autouse=True)
def entry(database: Databases) -> Iterator[Entry]:
    """The call that the changes of a test belong to; the database was made before it."""
    entry = Entry("local", Role.ADMIN, None, Peer.LOCAL, "TestService/Change")
    audit.begin(entry)
    yield entry
    entry.row_id = 0  # written, as far as the next test is concerned


def add(database: Database, key: str, at: int = 1, condition: str = "", unless: str = "") -> Any:
    with database.write(held=LOCK, is_one_change=True) as conn:
        sql = ADD.format(condition=condition)
        return audit.change(conn, sql, {"key": key, "at": at}, unless=unless)


def keys(database: Databases) -> list[str]:
    with database.control.read() as conn:
        return sorted(conn.scalars(select(io_rate_limits.c.bucket_key)))


def entries(database: Databases) -> list[int]:
    with database.control.read() as conn:
        return list(conn.scalars(select(audit_log.c.id)))


def test_a_change_returns_values_and_writes_its_entry_once(
    database: Databases, entry: Entry
) -> None:
    # Texts in which a parameter, a quote or another encoding might get lost.
    for key in (":at", "it's {1,2}", "größer 𝄞"):
        assert list(add(database.control, key, at=7)) == [(key, 7)]
    assert len(keys(database)) == 3
    assert entries(database) == [entry.row_id]


def test_a_change_of_nothing_has_no_rows(database: Databases) -> None:
    assert not add(database.control, "a", condition=" WHERE 1 = 0")
    assert not keys(database)


@on_postgresql
def test_a_change_of_nothing_writes_no_entry(database: Databases, entry: Entry) -> None:
    add(database.control, "a", condition=" WHERE 1 = 0")
    assert entry.row_id is None
    assert not entries(database)


def test_a_change_that_fails_leaves_neither_rows_nor_entry(
    database: Databases, entry: Entry
) -> None:
    add(database.control, "a")
    again = Entry("local", Role.ADMIN, None, Peer.LOCAL, "TestService/Change")
    audit.begin(again)
    with pytest.raises(IntegrityError):
        add(database.control, "a")
    assert again.row_id is None
    assert entries(database) == [entry.row_id]
    add(database.control, "b")
    assert keys(database) == ["a", "b"]


def test_more_than_fits_into_a_socket_goes_there_and_back(database: Databases) -> None:
    sql = "SELECT CAST(:long AS TEXT) AS long UNION ALL SELECT 'short'"
    long = "x" * (8 << 20)
    with database.control.write(held=LOCK, is_one_change=True) as conn:
        rows: list[Values] = list(audit.change(conn, sql, {"long": long}))
    assert rows == [(long,), ("short",)]


def test_a_change_can_be_made_after_another_was_rolled_back(database: Databases) -> None:
    add(database.control, "a")
    with suppress(RuntimeError), database.control.write() as conn:
        conn.execute(text("DELETE FROM io_rate_limits"))
        raise RuntimeError
    # What the driver does by itself after that, on whatever connection.
    if database.control.dialect == "postgresql":
        with database.control.read() as conn:
            conn.exec_driver_sql("DEALLOCATE ALL")
    add(database.control, "b")
    assert keys(database) == ["a", "b"]


@on_postgresql
def test_a_connection_that_is_lost_under_a_change_is_replaced(database: Databases) -> None:
    add(database.control, "a")
    killer = Database(database.url, Plane.CONTROL)
    killed: list[int] = []

    def kill(conn: Connection, _cursor: Any, sql: str, *_rest: Any) -> None:
        if "INSERT INTO io_rate_limits" in sql and not killed:
            line: Any = conn.connection.driver_connection
            killed.append(line.info.backend_pid)
            with killer.write() as other:
                ended = "SELECT pg_terminate_backend(:pid, :wait_ms)"
                other.execute(text(ended), {"pid": killed[0], "wait_ms": 10_000})

    event.listen(database.control.engine, "before_cursor_execute", kill)
    with pytest.raises(DBAPIError) as caught:
        add(database.control, "b")
    event.remove(database.control.engine, "before_cursor_execute", kill)
    killer.close()
    assert killed
    assert caught.value.connection_invalidated
    add(database.control, "c")
    assert keys(database) == ["a", "c"]


@on_postgresql
def test_a_change_waits_for_its_lock_unless_it_is_told_not_to(database: Databases) -> None:
    other = Database(database.url, Plane.CONTROL)
    done = threading.Event()

    def wait_and_add() -> None:
        add(other, "waits", condition=f" WHERE {IS_HELD}", unless="(:at = 2)")
        done.set()

    with database.control.write(held=LOCK):
        thread = threading.Thread(target=wait_and_add)
        thread.start()
        # Would wait for ever, if it waited.
        assert not add(other, "no", at=2, condition=f" WHERE {IS_HELD}", unless="(:at = 2)")
        assert not done.is_set()
    assert done.wait(PATIENCE_SECONDS)
    thread.join()
    other.close()
    assert keys(database) == ["waits"]


@on_postgresql
def test_a_lock_is_not_taken_for_held_by_the_next_change(database: Databases) -> None:
    condition = f" WHERE {IS_HELD}"
    assert add(database.control, "a", condition=condition, unless="(:at = 2)")
    assert not add(database.control, "b", at=2, condition=condition, unless="(:at = 2)")
