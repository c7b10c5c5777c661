"""Workers: who is there, and who has gone."""

from sqlalchemy import Connection, select
from sqlalchemy.engine import RowMapping

from control_plane.store.sql import prepared
from mediaplane.protocol.tables import worker_status


def page(conn: Connection, *, limit: int, after_id: str) -> list[RowMapping]:
    """Return the workers by id."""
    query = (
        select(worker_status)
        .where(worker_status.c.worker_id > after_id)
        .order_by(worker_status.c.worker_id)
        .limit(limit)
    )
    return list(conn.execute(query).mappings())


def declare_offline(conn: Connection, silent_ms: int) -> None:
    """Say `offline` of the workers that have not been heard of for a while."""
    conn.execute(
        prepared(
            conn,
            "UPDATE worker_status SET state = 'offline'"
            " WHERE state <> 'offline' AND last_seen_at < {now} - :silent",
        ),
        {"silent": silent_ms},
    )


def forget_offline(conn: Connection, silent_ms: int) -> None:
    """Forget the workers that have been away for long; every start makes a new one."""
    conn.execute(
        prepared(
            conn,
            "DELETE FROM worker_status WHERE state = 'offline' AND last_seen_at < {now} - :silent",
        ),
        {"silent": silent_ms},
    )
