"""Decides when a library may go to the trash, come back, and be forgotten for good."""

import time
from typing import NamedTuple

from sqlalchemy import Connection

from control_plane.policy import admission, planning, regrouping
from control_plane.policy.libraries import check_root_is_free, unknown
from control_plane.store import jobs, libraries, sweeps, trash
from control_plane.store.hashing import drop_hashes
from mediaplane.errors import FailedPrecondition
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.database import Database, lock
from mediaplane.protocol.driver import Row
from mediaplane.protocol.duplicates import DUPLICATES
from mediaplane.protocol.values import JobKind

# Most rows per transaction: others get their turn in between.
PURGED_ROWS = 5000
# A bite ends early when this is used up: in a large library rows lie far apart, and SQLite then
# takes several times as long again to write their pages, while every other writer waits.
BITE_SECONDS = 0.015
_STEP_ROWS = 250
_LOOK_FILES = 2000
# The least pause after a bite, which is at least as long as the bite: who waits for SQLite's write
# lock looks for it every 0.025 seconds at first and every 0.1 later, so whoever asks again at once
# is always first.
PAUSE_SECONDS = 0.03


class Purged(NamedTuple):
    """What one bite of a purge has done."""

    removed_rows: int
    is_gone: bool


def delete(conn: Connection, tenant_id: str | None, slug: str) -> Row:
    """Move a library to the trash, where nothing counts it or works on it.

    Its groups are counted anew afterwards; until then they are whenever they are shown.
    """
    library = _locked(conn, tenant_id, slug)
    if library["deleted_at"] is not None:
        return library
    lock(conn, DUPLICATES)  # before the look at jobs: a hash is planned under it
    _check_no_job(conn, library)
    return libraries.change(conn, slug, {"deleted_at": database_time(conn), "regroup_from": b""})


def restore(database: Database, tenant_id: str | None, slug: str) -> Row:
    """Take a library out of the trash, once none of its files has a hash by another name too."""
    while True:
        with database.read() as conn:
            library = _known(conn, tenant_id, slug)
            last_job = _last_planned(conn)
        if library["deleted_at"] is not None:
            _drop_second_hashes(database, slug)
        with database.write() as conn:
            library = _locked(conn, tenant_id, slug)
            if library["deleted_at"] is None:
                return library
            check_root_is_free(conn, library["tenant_id"], library["absolute_path"])
            lock(conn, DUPLICATES)  # a hash is admitted under it
            if not jobs.has_hash_behind(conn, last_job):
                return libraries.change(conn, slug, {"deleted_at": None, "regroup_from": b""})


def _last_planned(conn: Connection) -> int:
    """Return a job up to which every hash has its plan."""
    active = jobs.active_campaign(conn)
    if active is not None and planning.is_unplanned(active):
        return int(active["id"]) - 1
    return jobs.last_id(conn)


def _drop_second_hashes(database: Database, slug: str) -> None:
    path: bytes | None = b""
    while path is not None:
        with database.read() as conn:
            ids, path = trash.second_hashes(conn, slug, path, _LOOK_FILES)
        if ids:
            with database.write() as conn:
                lock(conn, "trash")
                library = libraries.get(conn, None, slug)
                if library is None or library["deleted_at"] is None:
                    return
                drop_hashes(conn, ids)


def purge(conn: Connection, tenant_id: str | None, slug: str) -> Purged:
    """Remove the next rows of a library in the trash, at last itself, and ask for a sweep."""
    library = _locked(conn, tenant_id, slug)
    if library["deleted_at"] is None:
        raise FailedPrecondition(
            f"Library {slug!r} is not in the trash; move it there first with"
            f" `mediaplane library remove {slug}`."
        )
    # First, because hashes that are gone tell no groups.
    if library["regroup_from"] is not None and regrouping.regroup(conn, slug, _STEP_ROWS):
        return Purged(0, is_gone=False)
    removed = _bite(conn, slug)
    if removed or trash.release_jobs(conn, slug, PURGED_ROWS):
        return Purged(removed, is_gone=False)
    trash.remove_library(conn, slug)
    # What was made of its files belongs to nothing now.
    if sweeps.active(conn) is None:
        admission.create(conn, admission.Wanted(JobKind.SWEEP))
    return Purged(1, is_gone=True)


def _bite(conn: Connection, slug: str) -> int:
    """Remove rows for as long as a bite may take, and return how many."""
    ends_at = time.monotonic() + BITE_SECONDS
    removed = 0
    while removed < PURGED_ROWS:
        step = trash.remove_rows(conn, slug, min(_STEP_ROWS, PURGED_ROWS - removed))
        removed += step
        if not step or time.monotonic() >= ends_at:
            break
    return removed


def _locked(conn: Connection, tenant_id: str | None, slug: str) -> Row:
    """Return a library, in the trash or not, that nobody else moves there, back or away."""
    lock(conn, "trash")
    return _known(conn, tenant_id, slug)


def _known(conn: Connection, tenant_id: str | None, slug: str) -> Row:
    library = libraries.get(conn, tenant_id, slug)
    if library is None:
        raise unknown(slug)
    return library


def _check_no_job(conn: Connection, library: Row) -> None:
    slug, active = library["slug"], jobs.active_campaign(conn)
    if active is None or not _works_on(active, library):
        active = trash.waiting_job(conn, library)
    if active is not None:
        raise FailedPrecondition(
            f"Job {active['id']} ({active['kind']}) works on library {slug!r} and is"
            f" {active['status']}; wait for it (mediaplane job watch {active['id']}) or cancel it"
            f" (mediaplane job cancel {active['id']}).",
            job=f"jobs/{active['id']}",
        )


def _works_on(job: Row, library: Row) -> bool:
    """Tell whether a scan or hash is of a library, or of all of its tenant."""
    return job["tenant_id"] == library["tenant_id"] and job["library_id"] in (library["slug"], None)
