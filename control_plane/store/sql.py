"""Prepares statements that both databases understand."""

from functools import lru_cache

from sqlalchemy import ColumnElement, Connection, FromClause, bindparam, text
from sqlalchemy.sql.elements import TextClause

from mediaplane.protocol.clock import NOW_SQL


def prepared(conn: Connection, sql: str, *lists: str) -> TextClause:
    """Return SQL with `{now}` as the database's clock and `lists` as parameters of `IN`."""
    return _prepared(conn.dialect.name, sql, lists)


def of_tenant(table: FromClause, tenant_id: str | None) -> list[ColumnElement[bool]]:
    """Return the condition that rows belong to a tenant; none for who sees those of all."""
    return [] if tenant_id is None else [table.c.tenant_id == tenant_id]


def owned(table: str, tenant_id: str | None) -> str:
    """Return the same for a statement in words, which has the tenant as `:tenant`."""
    return "" if tenant_id is None else f" AND {table}.tenant_id = :tenant"


@lru_cache(maxsize=512)
def _prepared(dialect: str, sql: str, lists: tuple[str, ...]) -> TextClause:
    statement = text(sql.replace("{now}", NOW_SQL[dialect]))
    return statement.bindparams(*(bindparam(name, expanding=True) for name in lists))
