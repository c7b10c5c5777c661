"""Wakes whoever waits for the database to change, in this process and in others."""

import logging
import os
import select
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from mediaplane.protocol.bell_sockets import BellSockets
from mediaplane.protocol.database import Database, Topic

log = logging.getLogger(__name__)

# Rings of one topic that follow each other faster than this go out as one.
MERGE_SECONDS = 0.003
_RECONNECT_SECONDS = 1.0


class Line(Protocol):
    """A way to the bells of other processes."""

    # What its methods raise when it is down.
    errors: type[Exception]

    def open(self) -> None:
        """Listen, anew when it was open before."""

    def fileno(self) -> int:
        """Return the descriptor that can be read when somebody has rung."""

    def receive(self) -> set[Topic]:
        """Return what was rung, without waiting."""

    def send(self, topics: Iterable[Topic]) -> None:
        """Ring the bells of the other processes."""

    def close(self) -> None:
        """Stop listening and ringing."""


class Ear:
    """One waiting thread's share of a bell; a ring stays until the thread has noticed it."""

    def __init__(self, forget: Callable[["Ear"], None]) -> None:
        self._forget = forget
        self._rung = threading.Event()

    def ring(self) -> None:
        """Wake who waits here."""
        self._rung.set()

    def wait(self, seconds: float) -> bool:
        """Wait for a ring; True when there was one since the last wait."""
        is_rung = self._rung.wait(seconds)
        if is_rung:
            self._rung.clear()
        return is_rung

    def close(self) -> None:
        """Be rung no more."""
        self._forget(self)


class Bell:
    """Rings the ears of this process at once, and those of others through a line.

    Nobody may rely on it alone: when the line is down, waiters find out by looking.
    """

    def __init__(self, database: Database, directory: Path | None) -> None:
        self._line = _line(database, directory)
        # Replaced, never changed, so that ringing needs no lock.
        self._ears: dict[Topic, frozenset[Ear]] = dict.fromkeys(Topic, frozenset())
        self._ears_turn = threading.Lock()
        self._unsent: set[Topic] = set()
        self._sending = threading.Condition()
        self._closed = threading.Event()
        self._threads: list[threading.Thread] = []
        self._hung_up, self._hang_up = os.pipe()

    def start(self) -> None:
        """Begin to hear other processes and to be heard; every ear is rung once it does."""
        if self._line is None:
            return
        for work in (self._hear, self._speak):
            thread = threading.Thread(target=work, args=(self._line,), name="bell", daemon=True)
            thread.start()
            self._threads.append(thread)

    def close(self) -> None:
        """Send what is still to be sent, wake all ears and hear no more."""
        with self._sending:
            self._closed.set()
            self._sending.notify()
        os.close(self._hang_up)
        for thread in self._threads:
            thread.join()
        os.close(self._hung_up)
        if self._line is not None:
            self._line.close()
        self._wake(Topic)

    def ring(self, topic: Topic) -> None:
        """Wake everybody who listens to this topic; returns at once."""
        self._wake([topic])
        if self._line is not None:
            with self._sending:
                self._unsent.add(topic)
                self._sending.notify()

    def listen(self, topic: Topic) -> Ear:
        """Return an ear for one thread that waits."""
        ear = Ear(self._forget)
        with self._ears_turn:
            self._ears[topic] |= {ear}
        return ear

    def _forget(self, ear: Ear) -> None:
        with self._ears_turn:
            for topic in Topic:
                self._ears[topic] -= {ear}

    def _wake(self, topics: Iterable[Topic]) -> None:
        for topic in topics:
            for ear in self._ears[topic]:
                ear.ring()

    def _hear(self, line: Line) -> None:
        is_down = False
        while not self._closed.is_set():
            try:
                line.open()
                is_down = False
                self._wake(Topic)  # for what was rung while nobody heard it
                self._hear_until_hung_up(line)
            except line.errors as error:
                if not is_down:
                    reason = str(error).partition("\n")[0]
                    log.warning("Changes of other processes are noticed late: %s", reason)
                is_down = True
                self._closed.wait(_RECONNECT_SECONDS)

    def _hear_until_hung_up(self, line: Line) -> None:
        poll = select.poll()
        poll.register(line, select.POLLIN)
        poll.register(self._hung_up, select.POLLIN)
        while not self._closed.is_set():
            poll.poll()
            self._wake(line.receive())

    def _speak(self, line: Line) -> None:
        free_at = dict.fromkeys(Topic, 0.0)
        while topics := self._due(free_at):
            pause_seconds = MERGE_SECONDS
            try:
                line.send(topics)
            except line.errors:
                # Who hears is told by its own end of the line; this ring goes out when it is up.
                pause_seconds = _RECONNECT_SECONDS
                with self._sending:
                    self._unsent |= set() if self._closed.is_set() else topics
            free_at |= dict.fromkeys(topics, time.monotonic() + pause_seconds)

    def _due(self, free_at: dict[Topic, float]) -> set[Topic]:
        """Wait for topics that may be sent now and return them; none when the bell is closed."""
        with self._sending:
            while True:
                now = time.monotonic()
                is_last = self._closed.is_set()
                due = {topic for topic in self._unsent if is_last or free_at[topic] <= now}
                if due or is_last:
                    self._unsent -= due
                    return due
                next_at = min((free_at[topic] for topic in self._unsent), default=None)
                self._sending.wait(None if next_at is None else next_at - now)


def _line(database: Database, directory: Path | None) -> Line | None:
    if database.dialect == "postgresql":
        # Its driver takes long to import, and SQLite does without.
        from mediaplane.protocol.bell_notifications import BellNotifications  # noqa: PLC0415

        return BellNotifications(database.url)
    return None if directory is None else BellSockets(directory / "bells")
