"""What a transaction that only reads sees, and what it leaves behind."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import query_values
from tests.support.databases import Databases
from tests.support.rows import Rows

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
COUNT = "SELECT count(*) FROM jobs"


def add_job(database: Database) -> None:
    with database.write() as conn:
        Rows(conn).add("jobs")


@on_sqlite
def test_all_that_a_read_of_sqlite_sees_is_of_one_moment(database: Databases) -> None:
    with database.control.read() as conn:
        before = query_values(conn, COUNT, {})
        add_job(database.control)
        assert query_values(conn, COUNT, {}) == before == [(0,)]
        assert conn.execute(text(COUNT)).scalar() == 0
    with database.control.read() as conn:
        assert query_values(conn, COUNT, {}) == [(1,)]


def test_a_read_that_fails_leaves_no_transaction_open(database: Databases) -> None:
    with pytest.raises(DBAPIError), database.control.read() as conn:
        query_values(conn, "SELECT nothing FROM jobs", {})
    add_job(database.control)
    with database.control.read() as conn:
        assert query_values(conn, COUNT, {}) == [(1,)]
