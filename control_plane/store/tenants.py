"""Tells which tenants there are, for pages of what all of them have."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import Connection

from mediaplane.protocol.driver import Listed, Values, query_rows, query_values
from mediaplane.protocol.values import DEFAULT_TENANT

# From one to the next by an index that begins with them: DISTINCT would read the whole table.
_OWNERS = (
    "WITH RECURSIVE owner(tenant_id) AS (SELECT min(tenant_id) FROM {table} UNION ALL"
    " SELECT (SELECT min(tenant_id) FROM {table} WHERE tenant_id > owner.tenant_id)"
    " FROM owner WHERE tenant_id IS NOT NULL)"
)
_Row = TypeVar("_Row")
# Where a connection keeps the tables of which it knows that not all is the default tenant's.
_SHARED = "mediaplane_shared"


def owning(conn: Connection, table: str) -> list[str]:
    """Return, in order, the tenants that own rows of a table which has an index by tenant."""
    query = f"{_OWNERS} SELECT tenant_id FROM owner WHERE tenant_id IS NOT NULL"
    return [tenant_id for (tenant_id,) in query_values(conn, query.format(table=table), {})]


def query_each(
    conn: Connection, tenant_id: str | None, table: str, query: str, bound: Mapping[str, Any]
) -> list[Values]:
    """Return what a query, which has the tenant as `:tenant`, finds for a tenant or for each.

    What it finds for one stands together, and one stands behind another as in `owning`.
    """
    if conn.dialect.name == "postgresql" and tenant_id is None:
        return _query_all(conn, query_values, "page.*", table, query, bound)
    owners = owning(conn, table) if tenant_id is None else [tenant_id]
    return [row for one in owners for row in query_values(conn, query, {**bound, "tenant": one})]


def query_each_whole(
    conn: Connection, tenant_id: str | None, table: str, query: str, bound: Mapping[str, Any]
) -> list[Listed]:
    """Return the same as rows that PostgreSQL has written as one text each."""
    if conn.dialect.name != "postgresql":
        return [*query_each(conn, tenant_id, table, query, bound)]
    if tenant_id is None:
        return _query_all(conn, query_rows, "page", table, query, bound)
    return query_rows(conn, _only("page", query), {**bound, "tenant": tenant_id})


def _query_all(
    conn: Connection,
    ask: Callable[[Connection, str, Mapping[str, Any]], list[_Row]],
    shown: str,
    table: str,
    query: str,
    bound: Mapping[str, Any],
) -> list[_Row]:
    """Return what a query finds for each tenant in one round trip.

    SQLite has none, and cannot be asked like this.
    """
    # Most installations have one tenant. To walk over all took a fifth of the time of a page, so it
    # is asked for alone, and whether there are others. If so, this is not tried again.
    shared: set[str] = conn.info.setdefault(_SHARED, set())
    if table not in shared:
        found = ask(conn, _of_only(shown, table, query), bound)
        if found:
            return found
    found = ask(conn, _of_each(shown, table, query), bound)
    if found:
        shared.add(table)
    return found


@lru_cache(maxsize=64)
def _only(shown: str, query: str) -> str:
    return f"SELECT {shown} FROM ({query}) AS page"


@lru_cache(maxsize=64)
def _of_only(shown: str, table: str, query: str) -> str:
    """Return the query for the default tenant, which finds nothing when another has rows too."""
    only = f"'{DEFAULT_TENANT}'"
    # By an index whatever PostgreSQL thinks of a table; where one that is rare is looked for, it
    # would read one that it knows nothing of from end to end.
    is_alone = " AND ".join(
        f"(SELECT {end}(tenant_id) FROM {table}) = {only}" for end in ("min", "max")
    )
    return f"{_only(shown, query.replace(':tenant', only))} WHERE {is_alone}"


@lru_cache(maxsize=64)
def _of_each(shown: str, table: str, query: str) -> str:
    of_each = query.replace(":tenant", "owner.tenant_id")
    # What is compared PostgreSQL takes for rare. Of the hundred tenants that it expects it would
    # rather plan every later page anew, which takes longer than to read it.
    return (
        f"{_OWNERS.format(table=table)} SELECT {shown} FROM owner, LATERAL ({of_each}) AS page"
        " WHERE owner.tenant_id || '' = owner.tenant_id"
    )
