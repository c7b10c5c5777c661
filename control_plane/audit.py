"""Writes down calls that were refused, which no transaction of theirs has done."""

import logging
import queue
import threading
from contextlib import suppress

from sqlalchemy.exc import SQLAlchemyError

from mediaplane.protocol import audit
from mediaplane.protocol.audit import Entry
from mediaplane.protocol.database import Database

log = logging.getLogger(__name__)

# Refused calls that may wait to be written: a flood of them must neither fill the memory nor have
# every call wait for the disk.
_MAX_WAITING = 1000
_BATCH = 100
_STOP_SECONDS = 2.0


class Auditor:
    """Writes down soon after that a call was refused.

    Of a flood of refusals, those that do not fit are counted and left out.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: queue.Queue[Entry | None] = queue.Queue(_MAX_WAITING)
        self._left_out = 0
        self._thread = threading.Thread(target=self._write_down, name="audit", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, and end; a database that does not answer is not waited for."""
        with suppress(queue.Full):
            self._waiting.put(None, timeout=_STOP_SECONDS)
        self._thread.join(_STOP_SECONDS)

    def note_refusal(self, entry: Entry, code: str) -> None:
        """Take note of a call that was refused, or that failed after its change."""
        entry.code = code
        try:
            self._waiting.put_nowait(entry)
        except queue.Full:
            self._left_out += 1

    def _write_down(self) -> None:
        is_ending = False
        while not is_ending:
            batch = [self._waiting.get()]
            while len(batch) < _BATCH and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            is_ending = None in batch
            try:
                self._write([entry for entry in batch if entry is not None])
            except SQLAlchemyError:
                log.warning("%d refused calls could not be written to the audit log", len(batch))

    def _write(self, entries: list[Entry]) -> None:
        left_out, self._left_out = self._left_out, 0
        if left_out:
            log.warning("%d refused calls did not fit into the audit log", left_out)
        if not entries:
            return
        with self._database.write() as conn:
            for entry in entries:
                write = audit.append if entry.row_id is None else audit.correct
                write(conn, entry)
