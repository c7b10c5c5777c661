"""Queries that go straight to the driver: alike on both databases, and no less careful."""

from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError

from mediaplane.protocol.driver import query_directly, query_values
from tests.support.databases import Databases


def test_a_direct_query_returns_rows_by_the_names_of_their_columns(database: Databases) -> None:
    with database.control.read() as conn:
        sql = "SELECT 1 AS one, CAST(:word AS TEXT) AS word UNION ALL SELECT 2, 'b' ORDER BY one"
        rows = query_directly(conn, sql, {"word": "a", "unused": 1})
    assert rows == [{"one": 1, "word": "a"}, {"one": 2, "word": "b"}]


def test_a_query_of_values_returns_them_in_the_order_of_the_query(database: Databases) -> None:
    with database.control.read() as conn:
        sql = "SELECT 2 AS two, CAST(:word AS TEXT) AS word, 1 AS one"
        assert query_values(conn, sql, {"word": "a"}) == [(2, "a", 1)]


def test_a_direct_query_without_rows_returns_none(database: Databases) -> None:
    with database.control.read() as conn:
        assert query_directly(conn, "SELECT id FROM jobs WHERE id < :id", {"id": 0}) == []


def test_an_error_of_a_direct_query_is_one_of_sqlalchemy(database: Databases) -> None:
    with pytest.raises(DBAPIError) as caught, database.control.read() as conn:
        query_directly(conn, "SELECT id FROM nowhere WHERE id = :id", {"id": 1})
    assert "nowhere" in str(caught.value.orig)
    with database.control.read() as conn:
        assert query_directly(conn, "SELECT 1 AS one", {}) == [{"one": 1}]


def test_the_listeners_of_the_engine_hear_of_a_direct_query(database: Databases) -> None:
    heard: list[str] = []

    def note(_conn: Any, _cursor: Any, sql: str, *_rest: Any) -> None:
        heard.append(sql)

    event.listen(database.control.engine, "before_cursor_execute", note)
    with database.control.read() as conn:
        query_directly(conn, "SELECT 1 AS one", {})
    event.remove(database.control.engine, "before_cursor_execute", note)
    assert "SELECT 1 AS one" in heard
