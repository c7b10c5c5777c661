"""Decides what a verify job reads again: every hashed file of its library, once at a time."""

from sqlalchemy import Connection

from control_plane.policy.hashing import add_shards
from control_plane.store import verification
from mediaplane.errors import ActiveJobExists
from mediaplane.protocol.database import lock
from mediaplane.protocol.driver import Row


def plan(conn: Connection, job: Row) -> Row:
    """Give the job its items, unless the library is being verified already."""
    lock(conn, "verification")  # two jobs that come in at once would not see each other
    _check_is_only(conn, job)
    return add_shards(conn, job, verification.hashed(conn, job["library_id"]))


def _check_is_only(conn: Connection, job: Row) -> None:
    other = verification.other_job(conn, job)
    if other is not None:
        raise ActiveJobExists(
            f"Job {other['id']} verifies library {job['library_id']!r} already and is"
            f" {other['status']}; wait for it (mediaplane job watch {other['id']}) or cancel it"
            f" (mediaplane job cancel {other['id']}).",
            job=f"jobs/{other['id']}",
        )
