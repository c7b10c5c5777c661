"""Queries that go past the driver of PostgreSQL: what is prepared there, and what becomes of it."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from mediaplane.protocol.driver import query_values
from mediaplane.protocol.lines import KEPT
from tests.support.databases import Databases

pytestmark = pytest.mark.parametrize("database", ["postgres"], indirect=True)
PREPARED = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'mediaplane%'"


@pytest.fixture
def used(database: Databases) -> Databases:
    """A database with one connection, on which a query has been prepared."""
    with database.control.read() as conn:
        assert query_values(conn, "SELECT :one + 1", {"one": 1}) == [(2,)]
    return database


def test_a_query_is_prepared_once_for_all_values_of_one_type(used: Databases) -> None:
    with used.control.read() as conn:
        for one in range(5):
            assert query_values(conn, "SELECT :one + 1", {"one": one}) == [(one + 1,)]
        assert conn.execute(text(PREPARED)).scalar() == 1


def test_a_parameter_may_stand_in_several_places_and_in_any_order(used: Databases) -> None:
    with used.control.read() as conn:
        sql = "SELECT :b || :a || :b, CAST(:n AS BIGINT)"
        assert query_values(conn, sql, {"a": "a", "b": "b", "n": None}) == [("bab", None)]
        assert query_values(conn, sql, {"a": "x", "b": "y", "n": 2**40}) == [("yxy", 2**40)]


def test_a_connection_keeps_a_limited_number_of_queries_prepared(used: Databases) -> None:
    with used.control.read() as conn:
        for number in [*range(2 * KEPT), *range(2 * KEPT)]:
            assert query_values(conn, f"SELECT {number}", {}) == [(number,)]
        assert conn.execute(text(PREPARED)).scalar() == KEPT


def test_a_query_that_was_deallocated_is_prepared_again(used: Databases) -> None:
    with used.control.read() as conn:
        conn.connection.driver_connection.execute("DEALLOCATE ALL")  # type: ignore[union-attr]
        assert query_values(conn, "SELECT :one + 1", {"one": 1}) == [(2,)]
        assert conn.execute(text(PREPARED)).scalar() == 1


def test_a_query_in_a_transaction_sees_what_was_written_in_it(used: Databases) -> None:
    with used.control.write() as conn:
        conn.connection.driver_connection.execute("DEALLOCATE ALL")  # type: ignore[union-attr]
        conn.execute(text("CREATE TEMPORARY TABLE numbers AS SELECT 7 AS one"))
        assert query_values(conn, "SELECT one + :one FROM numbers", {"one": 1}) == [(8,)]
        assert query_values(conn, "SELECT :one + 1", {"one": 1}) == [(2,)]


def test_a_query_that_fails_in_a_transaction_is_not_tried_again(used: Databases) -> None:
    with pytest.raises(DBAPIError) as caught, used.control.write() as conn:
        query_values(conn, "SELECT 1 / :none", {"none": 0})
    assert "division by zero" in str(caught.value.orig)
    with used.control.read() as conn:
        assert query_values(conn, "SELECT :one + 1", {"one": 1}) == [(2,)]


def test_a_connection_that_is_lost_meanwhile_is_replaced(used: Databases) -> None:
    end = "SELECT pg_terminate_backend(pg_backend_pid())"
    with pytest.raises(DBAPIError) as caught, used.control.read() as conn:
        query_values(conn, end, {})
    assert caught.value.connection_invalidated
    with used.control.read() as conn:
        assert query_values(conn, "SELECT :one + 1", {"one": 1}) == [(2,)]
