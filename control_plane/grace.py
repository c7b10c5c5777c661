"""What becomes of statements that outlast the grace of a control plane that stops."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mediaplane.protocol.database import Database

log = logging.getLogger(__name__)

_INTERRUPT_SECONDS = 0.05


@contextmanager
def ending(database: Database, grace_seconds: float) -> Iterator[None]:
    """Interrupt what the database is still asked after a grace, and wait until all have heard."""
    has_ended = threading.Event()

    def interrupt() -> None:
        if not has_ended.wait(grace_seconds) and database.is_in_use:
            log.warning("The grace is over; what the database is still asked is called off")
        # Again and again: who was between two statements begins another one.
        while not has_ended.wait(_INTERRUPT_SECONDS):
            database.interrupt()

    interrupter = threading.Thread(target=interrupt, name="interrupter", daemon=True)
    interrupter.start()
    yield
    while database.is_in_use:  # by a call whose client is gone: nobody else waits for its thread
        time.sleep(_INTERRUPT_SECONDS)
    has_ended.set()
    interrupter.join()
