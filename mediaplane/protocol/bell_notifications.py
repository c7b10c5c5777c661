"""Carries rings between processes through PostgreSQL: LISTEN and NOTIFY."""

import secrets
import time
from collections.abc import Iterable
from typing import Any

import psycopg
from sqlalchemy.engine import URL

from mediaplane.protocol.database import Topic, channel

_TOPICS = {channel(topic).encode(): topic for topic in Topic}
# So that a connection whose other end is gone without a word is noticed within a minute.
_PATIENCE: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
# Who rings has mostly somebody to answer. Sent in the same moment, the notification took the
# processor from the answer, which then came a tenth later.
_ANSWER_SECONDS = 0.002


class BellNotifications:
    """Two connections of this process: one listens, the other notifies."""

    errors: type[Exception] = psycopg.Error

    def __init__(self, url: URL) -> None:
        self._conninfo = url.set(drivername="postgresql").render_as_string(hide_password=False)
        # Tells our own notifications, which this process needs not hear, from those of others.
        self._sender_id = secrets.token_hex(8).encode()
        self._listening: psycopg.Connection | None = None
        self._notifying: psycopg.Connection | None = None

    def open(self) -> None:
        """Connect and listen."""
        if self._listening is not None:
            self._listening.close()
        self._listening = self._connect()
        for topic in Topic:
            self._listening.execute(f"LISTEN {channel(topic)}")

    def fileno(self) -> int:
        """Return the descriptor that can be read when somebody has rung."""
        return self._listening.fileno() if self._listening else -1

    def receive(self) -> set[Topic]:
        """Return what others have rung."""
        if self._listening is None:
            return set()
        # Not by Connection.notifies(), which takes several times as long to find what is there.
        line, topics = self._listening.pgconn, set()
        line.consume_input()
        while note := line.notifies():
            if note.extra != self._sender_id:
                topics.add(_TOPICS[note.relname])
        return topics

    def send(self, topics: Iterable[Topic]) -> None:
        """Notify, by a connection of its own.

        Not in the transactions that changed something: a NOTIFY makes commits wait in one line.
        """
        time.sleep(_ANSWER_SECONDS)
        if self._notifying is None or self._notifying.closed:
            self._notifying = self._connect()
            # Nothing is lost with it, and nobody is woken before the commit is done.
            self._notifying.execute("SET synchronous_commit = off")
        channels = [channel(topic) for topic in topics]
        self._notifying.execute(
            "SELECT pg_notify(channel, %s) FROM unnest(%s::text[]) AS channel",
            (self._sender_id.decode(), channels),
        )

    def close(self) -> None:
        """Close both connections."""
        for connection in (self._listening, self._notifying):
            if connection is not None:
                connection.close()

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self._conninfo, autocommit=True, **_PATIENCE)
