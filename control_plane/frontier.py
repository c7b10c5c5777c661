"""The event up to which the history is complete: no event with a lower id can appear any more."""

import sys
from collections.abc import Sequence

from control_plane.store import events
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row

# How far back a new frontier looks for ids whose transactions may still be under way.
_START_WINDOW = 10_000


class Frontier:
    """Moves over the events of one database in the order of their ids.

    On PostgreSQL a lower id may be committed after a higher one. A missing id is dead once every
    transaction has ended that had begun to write when a higher id was seen: each writes a row
    before it draws the id of an event. Ids without a gap wait for nobody.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.event_id = 0
        # Whether events are held back by a lower id that is missing.
        self.is_waiting = False
        # Ids up to this one that are missing are dead.
        self._settled_id = sys.maxsize if database.dialect == "sqlite" else 0
        # The highest id seen behind a gap, and the writer whose end settles it.
        self._doubt: tuple[int, int] | None = None

    def start(self) -> None:
        """Begin at the newest event, or before the first gap near it."""
        with self._database.read() as conn:
            self.event_id = events.last_id_before_gap(conn, _START_WINDOW)

    def look(self, limit: int) -> Sequence[Row]:
        """Return the next events that nothing can precede any more, without moving."""
        had_doubt = self._doubt is not None
        rows = self._read(limit)
        if self.is_waiting and not had_doubt:
            rows = self._read(limit)  # mostly whoever left the gap has ended already
        return rows

    def _read(self, limit: int) -> Sequence[Row]:
        with self._database.read() as conn:
            # Before the events are read: what had ended by then is seen by the reading.
            if self._doubt and events.oldest_writer(conn) >= self._doubt[1]:
                self._settled_id = self._doubt[0]
                self._doubt = None
            rows = events.page(conn, limit=limit, after_id=self.event_id)
            complete = self._complete(rows)
            self.is_waiting = complete < len(rows)
            if self.is_waiting and self._doubt is None:
                self._doubt = rows[-1]["id"], events.newest_writer(conn)
        return rows[:complete]

    def _complete(self, rows: Sequence[Row]) -> int:
        """Return how many rows come before the first gap that may still be filled."""
        previous = self.event_id
        for number, row in enumerate(rows):
            if row["id"] > previous + 1 and row["id"] > self._settled_id + 1:
                return number
            previous = row["id"]
        return len(rows)
