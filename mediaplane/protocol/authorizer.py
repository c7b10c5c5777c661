"""The write whitelists inside SQLite itself: what a connection of the data plane may do."""

import sqlite3
from collections.abc import Callable, Iterable

from mediaplane.protocol.lifecycle import WritePath

_HARMLESS = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
        sqlite3.SQLITE_TRANSACTION,
        sqlite3.SQLITE_SAVEPOINT,
    }
)
_SEARCH = ("video_frames_search", *(f"video_frames_search_{part}" for part in ("data", "docsize")))
_SCHEMA = ("type", "name", "tbl_name", "rootpage", "sql")

Authorizer = Callable[[int, str | None, str | None, str | None, str | None], int]


def authorizer(paths: Iterable[WritePath]) -> Authorizer:
    """Return a new authorizer that admits reads and these write paths, and nothing else.

    It must be a new one for every change of paths: SQLite asks when it prepares a statement,
    and only installing an authorizer makes it forget the statements it prepared before.
    """
    admitted = frozenset(paths)
    updates = {(path.table, column) for path in admitted for column in path.updates}
    inserts = {path.table for path in admitted if path.inserts}
    deletes = {path.table for path in admitted if path.deletes}
    if "video_frames" in inserts | deletes:
        # Triggers carry every change over into the index of the search, which has these tables.
        inserts.update(_SEARCH)
        deletes.update(_SEARCH)
        # Asked for when the index is opened. The schema itself SQLite lets nobody write this way.
        updates.update(("sqlite_master", column) for column in _SCHEMA)

    def authorize(
        action: int, first: str | None, second: str | None, _schema: str | None, _by: str | None
    ) -> int:
        legal = (
            action in _HARMLESS
            or (action == sqlite3.SQLITE_UPDATE and (first, second) in updates)
            or (action == sqlite3.SQLITE_INSERT and first in inserts)
            or (action == sqlite3.SQLITE_DELETE and first in deletes)
            or (action == sqlite3.SQLITE_PRAGMA and first == "data_version" and second is None)
        )
        return sqlite3.SQLITE_OK if legal else sqlite3.SQLITE_DENY

    return authorize


def checkpoint_authorizer(mode: str) -> Authorizer:
    """Return an authorizer that admits checkpoints in one mode, and nothing else."""

    def authorize(
        action: int, first: str | None, second: str | None, _schema: str | None, _by: str | None
    ) -> int:
        legal = (action, first, second) == (sqlite3.SQLITE_PRAGMA, "wal_checkpoint", mode)
        return sqlite3.SQLITE_OK if legal else sqlite3.SQLITE_DENY

    return authorize
