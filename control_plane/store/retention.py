"""Takes the history of ended jobs and clean-ups out of the database."""

from collections.abc import Sequence

from sqlalchemy import Connection

from control_plane.store import tenants
from control_plane.store.sql import prepared
from mediaplane.protocol.machines import JOBS
from mediaplane.protocol.statements import among, id_list

_FINAL = ", ".join(f"'{status}'" for status in JOBS.final)


def ended_jobs(conn: Connection, age_ms: int, limit: int) -> list[int]:
    """Return the oldest jobs that ended longer ago than this."""
    # By tenant and creation, for which there is an index: a job that old which has not ended is
    # rare.
    # The latest scan of a library belongs to the library, whatever its age.
    query = prepared(
        conn,
        "SELECT id FROM jobs WHERE tenant_id = :tenant AND created_at < {now} - :age"
        f" AND status IN ({_FINAL})"
        " AND finished_at < {now} - :age"
        " AND NOT EXISTS (SELECT 1 FROM scan_sessions s WHERE s.job_id = jobs.id"
        "  AND NOT EXISTS (SELECT 1 FROM scan_sessions later WHERE later.library_id = s.library_id"
        "   AND later.id > s.id))"
        " ORDER BY created_at, id LIMIT :limit",
    )
    found: list[int] = []
    for tenant_id in tenants.owning(conn, "jobs"):
        bound = {"tenant": tenant_id, "age": age_ms, "limit": limit - len(found)}
        found += conn.scalars(query, bound)
    return found


def delete_jobs(conn: Connection, ids: Sequence[int]) -> None:
    """Delete jobs and all that refers to them."""
    dialect = conn.dialect.name
    bound = {"ids": id_list(ids, dialect)}
    of_jobs = among("job_id", "ids", dialect)
    sessions = f"session_id IN (SELECT id FROM scan_sessions WHERE {of_jobs})"
    for statement in (
        f"DELETE FROM scan_entries WHERE {sessions}",
        f"DELETE FROM scan_batches WHERE {sessions}",
        f"DELETE FROM scan_errors WHERE {sessions}",
        f"DELETE FROM scan_sessions WHERE {of_jobs}",
        f"DELETE FROM events WHERE {of_jobs}",
        f"DELETE FROM job_items WHERE {of_jobs}",
        f"UPDATE jobs SET retry_of = NULL WHERE {among('retry_of', 'ids', dialect)}",
        f"DELETE FROM jobs WHERE {among('id', 'ids', dialect)}",
    ):
        conn.execute(prepared(conn, statement), bound)


def delete_cleanups(conn: Connection, age_ms: int, limit: int) -> int:
    """Delete the first clean-ups that ended longer ago than this; return how many."""
    statement = prepared(
        conn,
        "DELETE FROM thumbnail_cleanup_jobs WHERE id IN (SELECT id FROM thumbnail_cleanup_jobs"
        " WHERE status IN ('completed', 'failed') AND finished_at < {now} - :age"
        " ORDER BY id LIMIT :limit)",
    )
    return conn.execute(statement, {"age": age_ms, "limit": limit}).rowcount
