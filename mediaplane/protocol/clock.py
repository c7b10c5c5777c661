"""The database's clock: UTC milliseconds since 1970, the one form in which times are stored."""

from typing import Any

from sqlalchemy import BigInteger, Connection, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

NOW_SQL = {
    # unixepoch('now', 'subsec') silently gives NULL before SQLite 3.42.
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    # now() is stable, so it can stand in an index condition; clock_timestamp() cannot.
    # date_part() is a float, exact to the microsecond here; extract() is a numeric, and slower.
    "postgresql": "CAST(date_part('epoch', now()) * 1000 AS BIGINT)",
}


class now_ms(FunctionElement[int]):  # noqa: N801 - reads as the SQL function it is
    """The time at the database, so that no worker's clock decides a lease."""

    type = BigInteger()
    inherit_cache = True
    name = "now_ms"


@compiles(now_ms)
def _compile(_element: now_ms, compiler: Any, **_options: Any) -> str:
    return NOW_SQL[compiler.dialect.name]


def database_time(conn: Connection) -> int:
    """Return the time at the database, in milliseconds."""
    return int(conn.execute(select(now_ms())).scalar_one())
