"""Decides what a scan means: which files are new, and when a file may be called missing."""

from sqlalchemy import Connection

from control_plane.store import batches, discovery, libraries, moves
from mediaplane.protocol.database import Database, Topic, changed, try_lock
from mediaplane.protocol.driver import Row
from mediaplane.protocol.values import JobStatus, ScanChange, ScanSessionStatus

# Large enough for speed, small enough that other writers wait a fraction of a second.
CHUNK = 20_000
# On another file system one of so many files must be as it was.
_RECOGNISED_PART = 10


def absorb(database: Database) -> bool:
    """Take over one chunk of what the running scan reported; False when there was nothing."""
    with database.read() as conn:  # a look costs no write lock
        if discovery.oldest_running(conn) is None:
            return False
    with database.write() as conn:
        if not try_lock(conn, "absorb"):
            return False
        session = discovery.oldest_running(conn)
        return session is not None and _advance(conn, session)


def _advance(conn: Connection, session: Row) -> bool:
    refusal = _refusal(conn, session)
    if refusal is not None:
        _fail(conn, session, *refusal)
        return True
    # While groups are counted anew, path by path, a file that took another name could be missed.
    if session["regroup_from"] is not None or not _is_recognised(session):
        return False
    _remember_root(conn, session)
    if _take_new(conn, session) or _take_seen(conn, session):
        return True
    if session["walked_at"] is None:
        return False
    upto = discovery.next_chunk(conn, session["id"], ScanChange.MISSING, CHUNK)
    if upto is not None:
        discovery.absorb_missing(conn, session, upto)
        return True
    _succeed(conn, session)
    return True


def _take_new(conn: Connection, session: Row) -> bool:
    try:
        chunk = batches.next_chunk(conn, session["id"])
    except ValueError:
        message = "A part of the scan's report cannot be read; scan the library again."
        _fail(conn, session, "report_unreadable", message)
        return True
    if chunk is not None:
        discovery.absorb_batches(conn, session, chunk)
    return chunk is not None


def _take_seen(conn: Connection, session: Row) -> bool:
    """Take over changed files; after the new ones, which may be what others were renamed to."""
    upto = discovery.next_chunk(conn, session["id"], ScanChange.SEEN, CHUNK)
    if upto is not None and session["walked_at"] is None:
        upto = moves.before_replaced(conn, session, upto)
    if upto is not None:
        discovery.absorb_seen(conn, session, upto)
    return upto is not None


def _is_recognised(session: Row) -> bool:
    """Tell whether the root is known to be the library's; if not, the end of the walk will show."""
    if session["root_inode"] is None:
        return False  # the walk has not begun
    is_first = session["known_inode"] is None or session["job_payload"].get("accept_new_root")
    return is_first or not _is_on_another_disk(session) or session["walked_at"] is not None


def _is_on_another_disk(session: Row) -> bool:
    """Tell whether the root's file system has another id: a remount, or a disk in its place."""
    known, seen = session["known_device"], session["root_device"]
    return known is not None and seen is not None and known != seen


def _is_foreign(conn: Connection, session: Row) -> bool:
    """Tell whether the files of another file system are not those of the library.

    Roots of file systems often have the same inode, so the files decide: of most disks a few have
    the same names, and of some even the same size and time.
    """
    if not _is_on_another_disk(session):
        return False
    known = discovery.count_present(conn, session["library_id"])
    as_known = discovery.count_as_known(conn, session)
    return bool(as_known * _RECOGNISED_PART < min(known, session["seen_files"]))


def _remember_root(conn: Connection, session: Row) -> None:
    identity = {"root_device": session["root_device"], "root_inode": session["root_inode"]}
    if identity != {"root_device": session["known_device"], "root_inode": session["known_inode"]}:
        libraries.change(conn, session["library_id"], identity)


def _refusal(conn: Connection, session: Row) -> tuple[str, str] | None:
    """Return why the report is not to be believed: a lost mount is no mass deletion."""
    if session["job_status"] != JobStatus.RUNNING or session["job_epoch"] != session["lease_epoch"]:
        return "scan_ended", "The scan ended before its report was complete."
    if session["job_payload"].get("accept_new_root"):
        return None
    known, seen = session["known_inode"], session["root_inode"]
    is_walked = session["walked_at"] is not None
    had_files = is_walked and discovery.has_present_files(conn, session["library_id"])
    if (None not in (known, seen) and known != seen) or (
        had_files and session["seen_files"] and _is_foreign(conn, session)
    ):
        return "root_changed", (
            "Another folder lies where the library was; nothing was changed. If that is right,"
            f" scan it with: mediaplane scan {session['library_id']} --accept-new-root"
        )
    if had_files and session["seen_files"] == 0:
        return "root_empty", (
            "Not one file of the library was found, as if its disk were not mounted or its"
            " settings passed over every file; nothing was changed. If that is right, scan it with:"
            f" mediaplane scan {session['library_id']} --accept-new-root"
        )
    return None


def _fail(conn: Connection, session: Row, code: str, message: str) -> None:
    discovery.close(conn, session, ScanSessionStatus.FAILED, (code, message))
    changed(conn, Topic.SCANS)
    libraries.settle_scan_status(conn)


def _succeed(conn: Connection, session: Row) -> None:
    discovery.close(conn, session, ScanSessionStatus.SUCCEEDED, None)
    changed(conn, Topic.SCANS)
