"""Cuts long writes into transactions that others hardly have to wait for."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection

from mediaplane.protocol import wal
from mediaplane.protocol.database import Database

# What a transaction may take; how many rows that are, the last ones tell.
BITE_SECONDS = 0.06
_FIRST_ROWS = 2000
_FEWEST_ROWS = 100
_MOST_ROWS = 50_000
# After so much writing on SQLite. Who waits for its write lock looks for it every 0.025 seconds at
# first, so whoever asks again at once would always be first; and every 0.1 seconds later.
PAUSE_SECONDS = 0.026
_LONG_BITE_SECONDS = 0.1
_LONG_PAUSE_SECONDS = 0.105
# A log that does not begin anew in this time is held by a reader who may take hours.
_PATIENCE_SECONDS = 2.0


class Pace:
    """How many rows the next bite may have, and when it is the turn of others."""

    def __init__(self, database: Database) -> None:
        self.rows = _FIRST_ROWS
        self._database = database
        self._rested_at = self._ended_at = time.monotonic()

    @contextmanager
    def bite(self) -> Iterator[Connection]:
        """Open a write transaction for `rows` rows."""
        with self._database.write() as conn:
            began_at = time.monotonic()
            yield conn
        self._ended_at = time.monotonic()
        fitting = int(self.rows * BITE_SECONDS / max(self._ended_at - began_at, 1e-6))
        self.rows = max(_FEWEST_ROWS, min(fitting, 2 * self.rows, _MOST_ROWS))

    def rest(self) -> bool:
        """Let others write, and SQLite's log begin anew; False when that takes too long."""
        written_seconds = self._ended_at - self._rested_at
        if written_seconds <= BITE_SECONDS / 2:
            return True
        if self._database.dialect == "sqlite":
            is_long = written_seconds > _LONG_BITE_SECONDS
            pause_seconds = _LONG_PAUSE_SECONDS if is_long else PAUSE_SECONDS
            # What was read since the last bite is part of the pause.
            time.sleep(max(0.0, self._ended_at + pause_seconds - time.monotonic()))
        gives_up_at = time.monotonic() + _PATIENCE_SECONDS
        while wal.is_congested(self._database):
            if time.monotonic() > gives_up_at:
                return False
            time.sleep(PAUSE_SECONDS)
        self._rested_at = time.monotonic()
        return True


def write(
    database: Database,
    read: Callable[[int, int], Sequence[int]],
    change: Callable[[Connection, Sequence[int]], bool],
) -> bool:
    """Change rows, in the order of their ids, until none is left; tell whether that came to be.

    `read` returns the next ids behind one, up to so many; `change` tells whether to go on.
    """
    pace, last = Pace(database), 0
    while ids := read(last, pace.rows):
        if not pace.rest():
            return False
        with pace.bite() as conn:
            if not change(conn, ids):
                return False
        last = ids[-1]
    return True
