"""Tells which tenants there are, for pages of what all of them have."""

from sqlalchemy import Connection

from mediaplane.protocol.driver import query_values


def owning(conn: Connection, table: str) -> list[str]:
    """Return, sorted, the tenants that own rows of a table which has an index by tenant."""
    # From one to the next by that index: DISTINCT would read the whole table.
    query = (
        f"WITH RECURSIVE owner(tenant_id) AS (SELECT min(tenant_id) FROM {table} UNION ALL"
        f" SELECT (SELECT min(tenant_id) FROM {table} WHERE tenant_id > owner.tenant_id)"
        " FROM owner WHERE tenant_id IS NOT NULL)"
        " SELECT tenant_id FROM owner WHERE tenant_id IS NOT NULL"
    )
    return sorted(tenant_id for (tenant_id,) in query_values(conn, query, {}))
