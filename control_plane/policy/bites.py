"""Cuts long writes into transactions that others hardly have to wait for."""

import time
from collections.abc import Callable, Sequence

from sqlalchemy import Connection

from mediaplane.protocol import wal
from mediaplane.protocol.database import Database

# What a transaction may take; how many rows that are, the last ones tell.
BITE_SECONDS = 0.08
_FIRST_ROWS = 2000
_FEWEST_ROWS = 100
_MOST_ROWS = 20_000
# After so much writing on SQLite. Who waits for its write lock looks for it every 0.025 seconds at
# first, so whoever asks again at once would always be first.
PAUSE_SECONDS = 0.026
# A log that does not begin anew in this time is held by a reader who may take hours.
_PATIENCE_SECONDS = 2.0


def write(
    database: Database,
    read: Callable[[int, int], Sequence[int]],
    change: Callable[[Connection, Sequence[int]], bool],
) -> bool:
    """Change rows, in the order of their ids, until none is left; tell whether that came to be.

    `read` returns the next ids behind one, up to so many; `change` tells whether to go on.
    """
    last, limit = 0, _FIRST_ROWS
    rested_at = ended_at = time.monotonic()
    while ids := read(last, limit):
        if ended_at - rested_at > BITE_SECONDS / 2:
            if not _rest(database, ended_at):
                return False
            rested_at = time.monotonic()
        with database.write() as conn:
            began_at = time.monotonic()
            if not change(conn, ids):
                return False
        ended_at = time.monotonic()
        fitting = int(len(ids) * BITE_SECONDS / max(ended_at - began_at, 1e-6))
        last, limit = ids[-1], max(_FEWEST_ROWS, min(fitting, 2 * limit, _MOST_ROWS))
    return True


def _rest(database: Database, ended_at: float) -> bool:
    """Let others write, and SQLite's log begin anew; False when that takes too long."""
    if database.dialect == "sqlite":
        # What was read since is part of the pause.
        time.sleep(max(0.0, ended_at + PAUSE_SECONDS - time.monotonic()))
    gives_up_at = time.monotonic() + _PATIENCE_SECONDS
    while wal.is_congested(database):
        if time.monotonic() > gives_up_at:
            return False
        time.sleep(PAUSE_SECONDS)
    return True
