"""Decides what a verify job reads again: every hashed file of its library, once at a time."""

from sqlalchemy import Connection
from sqlalchemy.engine import RowMapping

from control_plane.policy.hashing import cut
from control_plane.store import jobs, verification
from mediaplane.errors import ActiveJobExists
from mediaplane.protocol import kinds
from mediaplane.protocol.database import lock


def plan(conn: Connection, job: RowMapping) -> RowMapping:
    """Give the job its items, unless the library is being verified already."""
    lock(conn, "verification")  # two jobs that come in at once would not see each other
    _check_is_only(conn, job)
    shards = list(cut(verification.hashed(conn, job["library_id"])))
    items = [
        {
            "job_id": job["id"],
            "item_key": f"files-{first}-{last}",
            "payload": kinds.encode(kinds.HashItemPayload(first, last)),
            "total_items": files,
            "total_bytes": size,
        }
        for first, last, files, size in shards
    ]
    jobs.add_items(conn, items)
    return jobs.set_totals(
        conn,
        job["id"],
        total_items=sum(files for _, _, files, _ in shards),
        total_bytes=sum(size for _, _, _, size in shards),
    )


def _check_is_only(conn: Connection, job: RowMapping) -> None:
    other = verification.other_job(conn, job)
    if other is not None:
        raise ActiveJobExists(
            f"Job {other['id']} verifies library {job['library_id']!r} already and is"
            f" {other['status']}; wait for it (mediaplane job watch {other['id']}) or cancel it"
            f" (mediaplane job cancel {other['id']}).",
            job=f"jobs/{other['id']}",
        )
