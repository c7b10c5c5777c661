"""Tells which tenants there are, for pages of what all of them have."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection

from mediaplane.protocol.driver import Listed, query_rows, query_values

# From one to the next by an index that begins with them: DISTINCT would read the whole table.
_OWNERS = (
    "WITH RECURSIVE owner(tenant_id) AS (SELECT min(tenant_id) FROM {table} UNION ALL"
    " SELECT (SELECT min(tenant_id) FROM {table} WHERE tenant_id > owner.tenant_id)"
    " FROM owner WHERE tenant_id IS NOT NULL)"
)


def owning(conn: Connection, table: str) -> list[str]:
    """Return, in order, the tenants that own rows of a table which has an index by tenant."""
    query = f"{_OWNERS} SELECT tenant_id FROM owner WHERE tenant_id IS NOT NULL"
    return [tenant_id for (tenant_id,) in query_values(conn, query.format(table=table), {})]


def query_each(
    conn: Connection, tenant_id: str | None, table: str, query: str, bound: Mapping[str, Any]
) -> list[Listed]:
    """Return what a query, which has the tenant as `:tenant`, finds for a tenant or for each.

    What it finds for one stands together, and one stands behind another as in `owning`.
    """
    if conn.dialect.name == "postgresql":
        if tenant_id is not None:
            return query_rows(conn, _whole(query), {**bound, "tenant": tenant_id})
        # In one round trip, which costs more than the question who they are. SQLite has none, and
        # cannot be asked like this.
        return query_rows(conn, _of_each(table, query), bound)
    owners = owning(conn, table) if tenant_id is None else [tenant_id]
    return [row for one in owners for row in query_rows(conn, query, {**bound, "tenant": one})]


@lru_cache(maxsize=64)
def _whole(query: str) -> str:
    return f"SELECT page FROM ({query}) AS page"


@lru_cache(maxsize=64)
def _of_each(table: str, query: str) -> str:
    of_each = query.replace(":tenant", "owner.tenant_id")
    # What is compared PostgreSQL takes for rare. Of the hundred tenants that it expects it would
    # rather plan every later page anew, which takes longer than to read it.
    return (
        f"{_OWNERS.format(table=table)} SELECT page FROM owner, LATERAL ({of_each}) AS page"
        " WHERE owner.tenant_id || '' = owner.tenant_id"
    )
