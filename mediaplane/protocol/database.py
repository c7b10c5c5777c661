"""Opens the database, SQLite or PostgreSQL, for one plane: the only place that knows which."""

import json
import select
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError
from sqlalchemy.pool import QueuePool

from mediaplane.errors import UnusableDatabase
from mediaplane.filesystems import network_filesystem
from mediaplane.protocol.authorizer import authorizer
from mediaplane.protocol.lifecycle import WritePath
from mediaplane.protocol.values import Plane

if TYPE_CHECKING:
    from mediaplane.protocol.bell import Bell

DATA_PLANE_ROLE = "mediaplane_data_plane"
MINIMUM_POSTGRESQL = 16
_BUSY_SECONDS = 30.0
_JSON = json.JSONDecoder()
_BEGIN = "mediaplane_begin"
_TOPICS = "mediaplane_topics"
# All that the data plane asks for is few rows, in the order of an index. On tables whose
# statistics are young PostgreSQL would rather read them whole; and that is the best plan whatever
# the parameters, so it need not be sought again for each of the first executions.
_BY_INDEX = (
    "enable_seqscan = off",
    "enable_bitmapscan = off",
    "enable_mergejoin = off",
    "jit = off",
    "plan_cache_mode = force_generic_plan",
)


class Topic(StrEnum):
    """What changed in the database, for whoever waits for it."""

    # A row may have become claimable.
    WORK = "work"
    # A worker has been asked for something, or to stop with something.
    ORDERS = "orders"
    # Events were appended.
    NEWS = "news"


class Database:
    """One plane's access to the database."""

    # Rung for what a write transaction changed; without one, waiters find out by looking.
    bell: "Bell | None" = None

    def __init__(self, url: str, plane: Plane) -> None:
        self.url = checked_url(url)
        self.plane = plane
        self.dialect = self.url.get_backend_name()
        # Threads of one process queue here instead of racing for SQLite's one write lock.
        self._turn: AbstractContextManager[Any] = (
            threading.Lock() if self.dialect == "sqlite" else nullcontext()
        )
        self.engine = _engine(self.url, plane)
        # On PostgreSQL each statement sees what is committed before it, in a transaction or out
        # of one: without it there are two round trips less.
        self._reading = self._beginning("BEGIN", "")
        # A write that begins as a read fails on SQLite when another writer got in between.
        self._writing = self._beginning("BEGIN IMMEDIATE", "BEGIN")
        self._writing_once = self._beginning("BEGIN IMMEDIATE", "")

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction that only reads."""
        with self._reading.connect() as conn, conn.begin():
            yield conn

    @contextmanager
    def write(self, *paths: WritePath, is_one_statement: bool = False) -> Iterator[Connection]:
        """Open a write transaction; the data plane names the paths it is about to take.

        One that is a single statement needs not be begun and ended on PostgreSQL.
        """
        engine = self._writing_once if is_one_statement else self._writing
        with self._turn, engine.connect() as conn:
            topics = conn.info[_TOPICS] = set()
            guarded = self.plane is Plane.DATA and self.dialect == "sqlite"
            if guarded:
                _raw(conn).set_authorizer(authorizer(paths))
            try:
                with conn.begin():
                    yield conn
            finally:
                conn.info.pop(_TOPICS, None)
                if guarded:
                    _raw(conn).set_authorizer(authorizer(()))
        if self.bell is not None:
            for topic in topics:
                self.bell.ring(topic)

    def _beginning(self, sqlite: str, postgresql: str) -> Engine:
        """Return the engine as it begins transactions with these words."""
        words = sqlite if self.dialect == "sqlite" else postgresql
        return self.engine.execution_options(**{_BEGIN: words})

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def plane_of(conn: Connection) -> Plane:
    """Return the plane that opened this connection."""
    plane: Plane = conn.get_execution_options()["mediaplane_plane"]
    return plane


def changed(conn: Connection, topic: Topic) -> None:
    """Have those who wait for this topic woken when the write transaction has committed."""
    conn.info[_TOPICS].add(topic)


def channel(topic: Topic) -> str:
    """Return the channel of PostgreSQL's LISTEN and NOTIFY for a topic."""
    return f"mediaplane_{topic}"


def update_many(
    conn: Connection, sql: str, types: Mapping[str, str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Run an update for many rows: `{name}` in it stands for a value of each row.

    `types` are the values' names, in the order of a row, with their types on PostgreSQL.
    """
    if not rows:
        return
    if conn.dialect.name == "sqlite":
        marks = {name: f"?{place}" for place, name in enumerate(types, start=1)}
        conn.exec_driver_sql(sql.format(**marks, source=""), list(rows))
        return
    # One statement for all: row by row it took PostgreSQL three times as long.
    columns = ", ".join(f"%s::{kind}[]" for kind in types.values())
    source = f" FROM unnest({columns}) AS new ({', '.join(types)})"
    marked = sql.format(**{name: f"new.{name}" for name in types}, source=source)
    conn.exec_driver_sql(marked, tuple(list(column) for column in zip(*rows, strict=True)))


def try_lock(conn: Connection, name: str) -> bool:
    """Keep other processes from the same work until this transaction ends; False when taken."""
    if conn.dialect.name == "sqlite":
        return True  # a write transaction is alone already
    query = text("SELECT pg_try_advisory_xact_lock(hashtextextended(:name, 0))")
    return bool(conn.execute(query, {"name": f"mediaplane:{name}"}).scalar())


def lock(conn: Connection, name: str) -> None:
    """Wait until no other transaction holds this lock, and hold it until this one ends."""
    if conn.dialect.name == "postgresql":
        query = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
        conn.execute(query, {"name": f"mediaplane:{name}"})


def sqlite_url(path: Path) -> str:
    """Return the URL of an SQLite file."""
    return URL.create("sqlite", database=str(path)).render_as_string()


def checked_url(text_url: str) -> URL:
    """Return the URL of a database that can be used, with its driver."""
    try:
        url = make_url(text_url)
    except ArgumentError:
        raise UnusableDatabase(
            "The database URL cannot be read; write sqlite:////path/to/file or"
            " postgresql://user:password@host/name."
        ) from None
    backend = "postgresql" if url.drivername == "postgres" else url.get_backend_name()
    if backend == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite" or not url.database or url.database == ":memory:":
        raise UnusableDatabase(
            f"The database {url.drivername!r} is not supported; use an SQLite file or"
            f" PostgreSQL {MINIMUM_POSTGRESQL} or later."
        )
    filesystem = network_filesystem(Path(url.database).parent)
    if filesystem:
        raise UnusableDatabase(
            f"The SQLite file {url.database} lies on a network file system ({filesystem}), where"
            " it can be corrupted; keep the state on a local disk or use PostgreSQL."
        )
    return url


def _engine(url: URL, plane: Plane) -> Engine:
    options: dict[str, Any] = {"execution_options": {"mediaplane_plane": plane}}
    if url.get_backend_name() == "postgresql":
        engine = create_engine(
            url,
            pool_size=8,
            max_overflow=24,
            pool_use_lifo=True,  # the connection used last has its statements prepared
            connect_args={"prepare_threshold": 1, "autocommit": True},
            **options,
        )
        event.listen(engine, "connect", _postgresql_connected(plane))
        event.listen(engine, "checkout", _refuse_closed)
        event.listen(engine, "begin", _begin)
        return engine
    engine = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=8,
        max_overflow=24,
        connect_args={"timeout": _BUSY_SECONDS, "check_same_thread": False,
                      "cached_statements": 512},
        **options,
    )  # fmt: skip
    event.listen(engine, "connect", _sqlite_connected(plane))
    event.listen(engine, "begin", _begin)
    return engine


def _sqlite_connected(plane: Plane) -> Any:
    def prepare(raw: sqlite3.Connection, _record: object) -> None:
        raw.isolation_level = None  # transactions are begun by _begin alone
        raw.execute("PRAGMA journal_mode = WAL")
        # FULL: what was acknowledged survives a power cut. NORMAL lost it when tried.
        raw.execute("PRAGMA synchronous = FULL")
        raw.execute("PRAGMA foreign_keys = ON")
        raw.execute("PRAGMA temp_store = MEMORY")
        raw.execute("PRAGMA cache_size = -16384")
        if plane is Plane.DATA:
            # Its first use declares a table, which the authorizer would refuse.
            raw.execute("SELECT 1 FROM json_each('[]')").fetchall()
            raw.set_authorizer(authorizer(()))

    return prepare


def _begin(conn: Connection) -> None:
    words = conn.get_execution_options().get(_BEGIN, "BEGIN")
    if words:
        conn.exec_driver_sql(words)


def _postgresql_connected(plane: Plane) -> Any:
    # Its driver takes long to import, and SQLite does without.
    from psycopg.types.json import set_json_loads  # noqa: PLC0415

    def prepare(raw: Any, _record: object) -> None:
        version = raw.info.server_version
        if version < MINIMUM_POSTGRESQL * 10000:
            raise UnusableDatabase(
                f"PostgreSQL {version // 10000} is too old; mediaplane needs"
                f" {MINIMUM_POSTGRESQL} or later."
            )
        set_json_loads(_read_json, raw)
        if plane is Plane.DATA:
            if raw.info.user != DATA_PLANE_ROLE:
                raw.execute(f"SET ROLE {DATA_PLANE_ROLE}")
            raw.execute("; ".join(f"SET {choice}" for choice in _BY_INDEX))

    return prepare


def _read_json(stored: str | bytes) -> Any:
    # json.loads() takes as long again to find out that bytes are UTF-8.
    return _JSON.decode(stored if isinstance(stored, str) else stored.decode())


def _refuse_closed(raw: Any, _record: object, _proxy: object) -> None:
    # A server that goes away says so on every connection: unlike a ping, looking costs no round
    # trip. Who is refused gets a new connection.
    if raw.closed or select.select([raw.fileno()], [], [], 0)[0]:
        raise DisconnectionError


def _raw(conn: Connection) -> sqlite3.Connection:
    raw = conn.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    return raw


def explain(error: DBAPIError) -> str:
    """Return the first line of a database error, without the SQL and without parameters."""
    return str(error.orig).splitlines()[0] if error.orig else type(error).__name__
