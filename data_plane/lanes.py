"""How the slots of a worker share its work: lanes of slots, and batches of rows."""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from data_plane.leases import Held
from data_plane.queue import Outcome
from mediaplane.protocol.bell import Ear


@dataclass(eq=False)
class Batch:
    """Claimed rows of which one is worked on; the others wait, or are done and not yet written."""

    waiting: deque[Held]
    done: deque[Outcome] = field(default_factory=deque)
    began_at: float = field(default_factory=time.monotonic)

    def next(self) -> Held | None:
        """Begin with the next row, unless the rest has been taken away."""
        self.began_at = time.monotonic()
        try:
            return self.waiting.popleft()
        except IndexError:
            return None


@dataclass(eq=False)
class Lane:
    """Slots that take the same work; only one of the idle ones looks for it."""

    least_priority: int
    ear: Ear
    # Takes over what is urgent when all slots of this lane are busy.
    reserve: "Lane | None" = None
    # While slots of that lane are idle, they take the work of this one.
    covered_by: "Lane | None" = None
    turn: threading.Lock = field(default_factory=threading.Lock)
    idle: set[threading.Thread] = field(default_factory=set)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Be one of the idle slots, and the one that looks for work when it is its turn."""
        self.idle.add(threading.current_thread())
        try:
            with self.turn:
                yield
        finally:
            self.idle.discard(threading.current_thread())
            if self.reserve and not self.idle:
                self.reserve.ear.ring()  # what comes now finds no slot here

    @property
    def is_covered(self) -> bool:
        """Whether an idle slot of another lane takes the same work."""
        return self.covered_by is not None and bool(self.covered_by.idle)
