"""Decides when SQLite's write-ahead log is carried over, and in which mode."""

import logging
from dataclasses import dataclass

from sqlalchemy import Connection

from control_plane.store import checkpoints
from mediaplane.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
)
from mediaplane.protocol import audit, wal
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.values import CheckpointMode

log = logging.getLogger(__name__)

MAX_REQUEST_ID = 128


@dataclass(frozen=True)
class Wanted:
    """A checkpoint that somebody asks for."""

    mode: CheckpointMode
    request_id: str = ""
    is_forced: bool = False  # now, and whatever is running


def request(database: Database, wanted: Wanted, interval_seconds: float) -> Row:
    """Add a checkpoint; the same request id again returns the first."""
    require_sqlite(database.dialect)
    if len(wanted.request_id) > MAX_REQUEST_ID or not wanted.request_id.isprintable():
        raise InvalidArgument(f"A request id has up to {MAX_REQUEST_ID} printable characters.")
    size_bytes = wal.size_bytes(database)
    with database.write() as conn:
        if wanted.request_id:
            first = checkpoints.by_request(conn, wanted.request_id)
            if first is not None:
                audit.concerns(f"checkpoints/{first['id']}")
                return _same_request(first, wanted)
        _check_none_open(conn)
        if wanted.mode is CheckpointMode.TRUNCATE and not wanted.is_forced:
            _check_truncate(conn, size_bytes, large_bytes(database))
        row = _add(conn, wanted, interval_seconds)
        audit.concerns(f"checkpoints/{row['id']}")
        return row


def keep_small(database: Database, interval_seconds: float) -> None:
    """Ask for a checkpoint when the log is larger than SQLite by itself would let it become.

    Not a passive one: each commit tries that already, and readers that overlap all the time keep
    it from ever beginning the log anew.
    """
    size_bytes = wal.size_bytes(database)
    if size_bytes <= large_bytes(database):
        return
    with database.read() as conn:  # a look costs no write lock
        if checkpoints.unfinished(conn) is not None:
            return
    is_congested = wal.is_congested(database)
    if is_congested:
        log.warning(
            "The write-ahead log of the database has %d MiB; scans, hashes and other jobs wait"
            " until a checkpoint gets through. Does a process hold a read open?",
            size_bytes >> 20,
        )
    mode = CheckpointMode.TRUNCATE if is_congested else CheckpointMode.RESTART
    with database.write() as conn:
        if checkpoints.unfinished(conn) is None:
            _add(conn, Wanted(mode), interval_seconds)


def schedule(conn: Connection) -> None:
    """Add a checkpoint that has the log begin anew, unless one is under way."""
    require_sqlite(conn.dialect.name)
    if checkpoints.unfinished(conn) is None:
        _add(conn, Wanted(CheckpointMode.RESTART, is_forced=True), 0)


def large_bytes(database: Database) -> int:
    """Return the size from which a log needs more than SQLite does by itself."""
    return database.wal_limit_bytes // 4


def get(conn: Connection, checkpoint_id: int) -> Row:
    """Return a checkpoint."""
    found = checkpoints.get(conn, checkpoint_id)
    if found is None:
        raise NotFound(
            f"There is no checkpoint {checkpoint_id}; `mediaplane db checkpoints` lists them."
        )
    return found


def require_sqlite(dialect: str) -> None:
    """Refuse where there is no log that anybody could ask to be carried over."""
    if dialect != "sqlite":
        raise FailedPrecondition(
            "The database is PostgreSQL, which makes its checkpoints by itself (see its settings"
            " checkpoint_timeout and max_wal_size); only SQLite's log is looked after here."
        )


def _add(conn: Connection, wanted: Wanted, interval_seconds: float) -> Row:
    due_at = now = database_time(conn)
    if not wanted.is_forced:
        due_at = max(now, checkpoints.last_ended_at(conn) + int(interval_seconds * 1000))
    return checkpoints.add(
        conn,
        requested_mode=wanted.mode,
        execute_after=due_at,
        request_id=wanted.request_id or None,
    )


def _same_request(first: Row, wanted: Wanted) -> Row:
    if first["requested_mode"] != wanted.mode:
        raise InvalidArgument(
            f"This request id was used for a checkpoint in mode {first['requested_mode']}; choose"
            " a new one."
        )
    return first


def _check_none_open(conn: Connection) -> None:
    unfinished = checkpoints.unfinished(conn)
    if unfinished is not None:
        raise AlreadyExists(
            f"Checkpoint {unfinished['id']} ({unfinished['requested_mode']}) is"
            f" {unfinished['status']}, and there is only one at a time; wait for it.",
            checkpoint=f"checkpoints/{unfinished['id']}",
        )


def _check_truncate(conn: Connection, size_bytes: int, large: int) -> None:
    """Refuse what would keep writers out for little."""
    if size_bytes <= large:
        raise FailedPrecondition(
            f"The log has {size_bytes} bytes, and up to {large} there is nothing to"
            " gain from cutting it; ask for passive or restart, or force it."
        )
    if checkpoints.is_work_running(conn):
        raise FailedPrecondition(
            "Jobs are running, and a truncate keeps them from writing while it waits for readers;"
            " ask for passive, wait for the jobs, or force it."
        )
