"""Counts the duplicate groups of a library anew, bite by bite, after it was hidden or shown.

Its row says from which path on that is still to be done, so whoever comes next goes on there.
"""

import time
from collections.abc import Callable

from sqlalchemy import Connection

from control_plane.policy.bites import Pace
from control_plane.store import hashing, libraries, trash
from mediaplane.protocol.database import Database, lock
from mediaplane.protocol.duplicates import DUPLICATES, summarise, summarise_files

# As long as a caller waits for it; what is left then, the loop counts.
CALL_SECONDS = 5.0


def settle_all(database: Database, may_go_on: Callable[[], bool] = lambda: True) -> None:
    """Count what is left to count of every library."""
    with database.read() as conn:
        slugs = libraries.unsettled(conn)
    for slug in slugs:
        _settle(database, slug, may_go_on)


def settle(database: Database, slug: str) -> None:
    """Count the groups of a library's files anew: of a small one all, of a large one the first."""
    ends_at = time.monotonic() + CALL_SECONDS
    _settle(database, slug, lambda: time.monotonic() < ends_at)


def _settle(database: Database, slug: str, may_go_on: Callable[[], bool]) -> None:
    pace = Pace(database)
    while may_go_on() and pace.rest():
        with pace.bite() as conn:
            if not regroup(conn, slug, pace.rows):
                return


def regroup(conn: Connection, slug: str, limit: int) -> bool:
    """Count the groups of the next files; tell whether more are left."""
    lock(conn, DUPLICATES)
    library = libraries.get(conn, None, slug)
    if library is None or library["regroup_from"] is None:
        return False
    files = trash.files_from(conn, slug, library["regroup_from"], limit + 1)
    beyond = files.pop() if len(files) > limit else None
    hashed = [file.id for file in files if file.is_hashed]
    if library["deleted_at"] is None:
        summarise_files(conn, hashed)
    else:
        # Nobody hashes them there; the next hash job after its return marks anew.
        hashing.unmark(conn, [file.id for file in files if file.needs_hash])
        summarise(conn, trash.grouped(conn, hashed))
    libraries.regroup_from(conn, slug, None if beyond is None else bytes(beyond.rel_path))
    return beyond is not None
