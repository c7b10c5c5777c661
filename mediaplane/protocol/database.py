"""Opens the database, SQLite or PostgreSQL, for one plane: the only place that knows which."""

import sqlite3
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, text
from sqlalchemy.exc import DBAPIError

from mediaplane.protocol import audit
from mediaplane.protocol.authorizer import authorizer
from mediaplane.protocol.engines import BEGIN, checked_url, is_usable, open_engine
from mediaplane.protocol.lifecycle import WritePath
from mediaplane.protocol.values import Plane

if TYPE_CHECKING:
    from mediaplane.counters import Counter
    from mediaplane.protocol.bell import Bell

_TOPICS = "mediaplane_topics"
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended({name}, 0))"
_COUNTS = "mediaplane_counts"
_WORDS = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "BEGIN"}
WAL_LIMIT_BYTES = 64 << 20
# Pages in SQLite's log from which on who writes carries them over: SQLite's own default.
_LOG_PAGES = 1000
# Connections kept open while nobody uses them.
_KEPT = 8


class Topic(StrEnum):
    """What changed in the database, for whoever waits for it."""

    # A row may have become claimable.
    WORK = "work"
    # A worker has been asked for something, or to stop with something.
    ORDERS = "orders"
    # Events were appended.
    NEWS = "news"
    # A scan has reported something, or its report was judged.
    SCANS = "scans"


class Database:
    """One plane's access to the database."""

    # Rung for what a write transaction changed; without one, waiters find out by looking.
    bell: "Bell | None" = None

    def __init__(
        self, url: str | URL, plane: Plane, wal_limit_bytes: int = WAL_LIMIT_BYTES
    ) -> None:
        self.url = checked_url(url)
        self.plane = plane
        # What SQLite's log is kept below (see wal.py).
        self.wal_limit_bytes = wal_limit_bytes
        self.dialect = self.url.get_backend_name()
        # Threads of one process queue here instead of racing for SQLite's one write lock.
        self._turn: AbstractContextManager[Any] = (
            threading.Lock() if self.dialect == "sqlite" else nullcontext()
        )
        self.engine = open_engine(self.url, plane)
        # Ready for use: to get one from the engine's pool and to give it back takes about as long
        # as a statement, and is part of the way from a new job to its start.
        self._idle: deque[Connection] = deque()
        # Who writes to SQLite finds what the last one has left in memory.
        self._writer: deque[Connection] = deque() if self.dialect == "sqlite" else self._idle
        # In use, with the driver's own connection.
        self._lent: dict[Connection, Any] = {}
        self._is_closed = False

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction that only reads."""
        with self._connection() as conn:
            # On PostgreSQL each statement sees what is committed before it, in a transaction or
            # out of one: without it there are two round trips less.
            conn.info[BEGIN] = ""
            if self.dialect == "postgresql":
                yield conn
                return
            # Not through SQLAlchemy, which would take a tenth of the time of a page for it.
            raw = _raw(conn)
            raw.execute("BEGIN")
            yield conn
            raw.commit()

    @contextmanager
    def survey(self) -> Iterator[Connection]:
        """Open a connection for long reads and temporary tables, which keep no writer waiting.

        On SQLite each statement is a transaction of its own, so that the log can begin anew between
        two; on PostgreSQL they are one, which may hold locks.
        """
        with self._connection() as conn:
            conn.info[BEGIN] = "" if self.dialect == "sqlite" else "BEGIN"
            with conn.begin():
                yield conn

    @contextmanager
    def write(
        self,
        *paths: WritePath,
        is_one_statement: bool = False,
        is_one_change: bool = False,
        held: str | None = None,
        is_bulk: bool = False,
    ) -> Iterator[Connection]:
        """Open a write transaction; the data plane names the paths it is about to take.

        One that is a single statement needs not be begun and ended on PostgreSQL. A lock that is
        held from the beginning takes no round trip of its own there. With a lock and by
        `audit.change`, a single statement takes along both the lock and the audit entry. What the
        control plane writes in bulk goes from SQLite's log to the database when others may write
        again: SQLite by itself would do it before that, which takes as long as the rest.
        """
        with (
            self._turn,
            self._connection(self._writer) as conn,
            self._prepared(conn, paths, is_bulk),
        ):
            # Kept, because to ask a lost connection for it would open another one.
            info = conn.info
            topics = info[_TOPICS] = set()
            counts = info[_COUNTS] = []
            entry = audit.pending() if self.plane is Plane.CONTROL else None
            row_id = None
            # A write that begins as a read fails on SQLite when another writer got in between.
            is_bare = self.dialect == "postgresql" and (
                is_one_change or (is_one_statement and entry is None)
            )
            info[BEGIN] = "" if is_bare else _WORDS[self.dialect]
            if held and self.dialect == "postgresql":
                if is_one_change:
                    info[audit.LOCK] = f"mediaplane:{held}"
                else:
                    info[BEGIN] += "; " + _LOCK.format(name=f"'mediaplane:{held}'")
            try:
                with nullcontext() if is_bare else conn.begin():
                    yield conn
                    if entry is not None and not is_bare:
                        row_id = audit.append(conn, entry)
                if entry is not None and not is_bare:
                    entry.row_id = row_id
            finally:
                info.pop(audit.LOCK, None)
                info.pop(_TOPICS, None)
                info.pop(_COUNTS, None)
        for counter, labels, amount in counts:
            counter.add(*labels, amount=amount)
        if self.bell is not None:
            for topic in topics:
                self.bell.ring(topic)
        if is_bulk:
            self._carry_over()

    @contextmanager
    def _prepared(
        self, conn: Connection, paths: Sequence[WritePath], is_bulk: bool
    ) -> Iterator[None]:
        """Have SQLite allow what this transaction may write, and leave its log if it is large."""
        if self.dialect == "postgresql":
            yield
            return
        raw, is_guarded = _raw(conn), self.plane is Plane.DATA
        if is_guarded:
            raw.set_authorizer(authorizer(paths))
        if is_bulk:
            raw.execute("PRAGMA wal_autocheckpoint = 0")
        try:
            yield
        finally:
            if is_guarded:
                raw.set_authorizer(authorizer(()))
            if is_bulk:
                raw.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")

    def _carry_over(self) -> None:
        """Bring what is in SQLite's log to the database, as far as nobody reads what was before."""
        if self.dialect == "sqlite":
            # SQLite passes over failures of this too: what is not carried over now is so later.
            with self._connection() as conn, suppress(sqlite3.Error):
                _raw(conn).execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    @contextmanager
    def _connection(self, idle: deque[Connection] | None = None) -> Iterator[Connection]:
        """Lend a connection, and keep it for the next use unless something went wrong."""
        idle = self._idle if idle is None else idle
        conn = self._take(idle) or self.engine.connect()
        self._lent[conn] = conn.connection.driver_connection
        try:
            yield conn
        except BaseException:
            conn.close()
            raise
        finally:
            del self._lent[conn]
        if conn.in_transaction():
            conn.commit()  # of a bare statement: the server has ended it already
        if len(idle) < _KEPT and not self._is_closed:
            idle.append(conn)
        else:
            conn.close()

    def _take(self, idle: deque[Connection]) -> Connection | None:
        while idle:
            try:
                conn = idle.pop()
            except IndexError:
                break  # another thread was faster
            if self.dialect == "sqlite" or is_usable(conn.connection.driver_connection):
                return conn
            conn.invalidate()
            conn.close()
        return None

    @property
    def is_in_use(self) -> bool:
        """Whether anybody reads or writes."""
        return bool(self._lent)

    def interrupt(self) -> None:
        """Have every statement under way fail; whoever waits for a lock of SQLite waits on."""
        for raw in list(self._lent.values()):
            # It may be closed, or its server gone, in this moment.
            with suppress(Exception):
                if self.dialect == "sqlite":
                    raw.interrupt()
                else:
                    raw.cancel_safe(timeout=1.0)

    def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        for idle in (self._idle, self._writer):
            while idle:
                idle.pop().close()
        self.engine.dispose()


def plane_of(conn: Connection) -> Plane:
    """Return the plane that opened this connection."""
    plane: Plane = conn.get_execution_options()["mediaplane_plane"]
    return plane


def changed(conn: Connection, topic: Topic) -> None:
    """Have those who wait for this topic woken when the write transaction has committed."""
    conn.info[_TOPICS].add(topic)


def count(conn: Connection, counter: "Counter", *labels: str, amount: float = 1) -> None:
    """Have something counted when the write transaction has committed."""
    conn.info[_COUNTS].append((counter, labels, amount))


def channel(topic: Topic) -> str:
    """Return the channel of PostgreSQL's LISTEN and NOTIFY for a topic."""
    return f"mediaplane_{topic}"


def try_lock(conn: Connection, name: str) -> bool:
    """Keep other processes from the same work until this transaction ends; False when taken."""
    if conn.dialect.name == "sqlite":
        return True  # a write transaction is alone already
    query = text("SELECT pg_try_advisory_xact_lock(hashtextextended(:name, 0))")
    return bool(conn.execute(query, {"name": f"mediaplane:{name}"}).scalar())


def lock(conn: Connection, name: str) -> None:
    """Wait until no other transaction holds this lock, and hold it until this one ends."""
    if conn.dialect.name == "postgresql":
        conn.execute(text(_LOCK.format(name=":name")), {"name": f"mediaplane:{name}"})


def _raw(conn: Connection) -> sqlite3.Connection:
    raw = conn.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    return raw


def explain(error: DBAPIError) -> str:
    """Return the first line of a database error, without the SQL and without parameters."""
    return str(error.orig).splitlines()[0] if error.orig else type(error).__name__
