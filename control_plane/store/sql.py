"""Prepares statements that both databases understand."""

from functools import lru_cache

from sqlalchemy import Connection, bindparam, text
from sqlalchemy.sql.elements import TextClause

from mediaplane.protocol.clock import NOW_SQL


def prepared(conn: Connection, sql: str, *lists: str) -> TextClause:
    """Return SQL with `{now}` as the database's clock and `lists` as parameters of `IN`."""
    return _prepared(conn.dialect.name, sql, lists)


@lru_cache(maxsize=512)
def _prepared(dialect: str, sql: str, lists: tuple[str, ...]) -> TextClause:
    statement = text(sql.replace("{now}", NOW_SQL[dialect]))
    return statement.bindparams(*(bindparam(name, expanding=True) for name in lists))
