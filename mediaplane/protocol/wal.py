"""SQLite's write-ahead log: how large it is, and how it is carried over into the database."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from mediaplane.protocol.authorizer import checkpoint_authorizer
from mediaplane.protocol.database import Database
from mediaplane.protocol.values import CheckpointMode

# All but the passive mode keep writers out while they wait for readers: so not for long.
_BUSY_SECONDS = 0.25
_UNKNOWN = -1


class Checkpointed(NamedTuple):
    """What `PRAGMA wal_checkpoint` says; frames are unknown while another checkpoint runs."""

    busy: int
    log_frames: int | None
    frames: int | None

    @property
    def is_complete(self) -> bool:
        """Whether all of the log is in the database: a passive one that is held up says so last."""
        return not self.busy and self.frames == self.log_frames


def size_bytes(database: Database) -> int:
    """Return the size of the log's file; 0 where there is none."""
    if database.dialect == "sqlite":
        with suppress(FileNotFoundError):
            return Path(f"{database.url.database}-wal").stat().st_size
    return 0


def is_congested(database: Database) -> bool:
    """Tell whether the log has grown so far that work which writes much has to wait.

    At half of the limit: what is under way is still written, and so is all that is small.
    """
    return size_bytes(database) > database.wal_limit_bytes // 2


def checkpoint(database: Database, mode: CheckpointMode) -> Checkpointed:
    """Carry the log over, by a connection that can do nothing else and is in no transaction."""
    # By a mode that creates no file where there is none.
    uri = f"file:{quote(str(database.url.database))}?mode=rw"
    connection = sqlite3.connect(uri, _BUSY_SECONDS, isolation_level=None, uri=True)
    with closing(connection) as raw:
        raw.set_authorizer(checkpoint_authorizer(mode))
        busy, log_frames, frames = raw.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
    if not busy and log_frames == _UNKNOWN:
        raise sqlite3.OperationalError("the database keeps no write-ahead log")
    known = [None if count == _UNKNOWN else count for count in (log_frames, frames)]
    return Checkpointed(busy, *known)
