"""Tells which tenants there are, for pages of what all of them have."""

from sqlalchemy import Connection

from control_plane.store.sql import prepared


def owning(conn: Connection, table: str) -> list[str]:
    """Return, sorted, the tenants that own rows of a table which has an index by tenant."""
    # From one to the next by that index: DISTINCT would read the whole table.
    query = prepared(
        conn,
        f"WITH RECURSIVE owner(tenant_id) AS (SELECT min(tenant_id) FROM {table} UNION ALL"
        f" SELECT (SELECT min(tenant_id) FROM {table} WHERE tenant_id > owner.tenant_id)"
        " FROM owner WHERE tenant_id IS NOT NULL)"
        " SELECT tenant_id FROM owner WHERE tenant_id IS NOT NULL",
    )
    return sorted(conn.scalars(query))
