"""Decides what a verify job reads again: every hashed file of its library, once at a time."""

from sqlalchemy import Connection

from control_plane.policy import hashing, shards
from control_plane.store import verification
from mediaplane.errors import ActiveJobExists
from mediaplane.protocol.database import Database, lock
from mediaplane.protocol.driver import Row


def check_is_only(conn: Connection, job: Row) -> None:
    """Refuse a job whose library is being verified already."""
    lock(conn, "verification")  # two jobs that come in at once would not see each other
    other = verification.other_job(conn, job)
    if other is not None:
        raise ActiveJobExists(
            f"Job {other['id']} verifies library {job['library_id']!r} already and is"
            f" {other['status']}; wait for it (mediaplane job watch {other['id']}) or cancel it"
            f" (mediaplane job cancel {other['id']}).",
            job=f"jobs/{other['id']}",
        )


def plan(database: Database, lists: Connection, job: Row) -> None:
    """Give the job its items, unless it is cancelled meanwhile."""
    files = verification.hashed(lists, job["library_id"])
    hashing.add_shards(database, job, list(shards.by_id(shards.one_by_one(files))))
