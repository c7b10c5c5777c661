"""The audit log: pages of it, and its end."""

from sqlalchemy import Connection, select

from control_plane.store.sql import prepared
from mediaplane.protocol.driver import Row
from mediaplane.protocol.tables import audit_log


def page(conn: Connection, *, limit: int, before_id: int, tenant_id: str | None) -> list[Row]:
    """Return entries, newest first; 0 begins with the newest."""
    query = select(audit_log).order_by(audit_log.c.id.desc()).limit(limit)
    if before_id:
        query = query.where(audit_log.c.id < before_id)
    if tenant_id is not None:
        query = query.where(audit_log.c.tenant_id == tenant_id)
    return list(conn.execute(query).mappings())


def delete_old(conn: Connection, age_ms: int, limit: int) -> int:
    """Delete the oldest entries when they are older than this; return how many."""
    # They were written in the order of their numbers, so the oldest come first.
    statement = prepared(
        conn,
        "DELETE FROM audit_log WHERE called_at < {now} - :age AND id IN"
        " (SELECT id FROM audit_log ORDER BY id LIMIT :limit)",
    )
    return conn.execute(statement, {"age": age_ms, "limit": limit}).rowcount
