"""Has jobs that read many files planned once they are admitted, while others go on writing."""

import threading

from control_plane.policy import hashing, verification
from control_plane.store import jobs
from mediaplane.protocol.database import Database, lock, try_lock
from mediaplane.protocol.driver import Row
from mediaplane.protocol.values import JobKind

_PLANS = {JobKind.HASH: hashing.plan, JobKind.VERIFY: verification.plan}
_PLANNING = "planning"
# Of the calls and loops of this process one plans at a time.
_turn = threading.Lock()


def is_unplanned(job: Row) -> bool:
    """Tell whether a job is one that nobody can claim yet, because it has no items."""
    return job["kind"] in _PLANS and job["total_items"] is None


def plan(database: Database, job: Row) -> Row:
    """Plan a job that has just been admitted, and return it; most have no need to."""
    if not is_unplanned(job):
        return job
    with _turn, database.survey() as lists:
        lock(lists, _PLANNING)
        _PLANS[job["kind"]](database, lists, job)
    with database.read() as conn:
        planned = jobs.get(conn, None, job["id"])
    return planned or job


def resume(database: Database) -> None:
    """Plan the jobs whose plan somebody has left undone."""
    with database.read() as conn:
        left = jobs.unplanned(conn)
    if not left or not _turn.acquire(blocking=False):
        return
    try:
        with database.survey() as lists:
            if try_lock(lists, _PLANNING):
                for job in left:
                    _PLANS[job["kind"]](database, lists, job)
    finally:
        _turn.release()
