"""Makes the engine of a plane, for SQLite or PostgreSQL: the settings of each connection."""

import json
import select
import sqlite3
import time
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DisconnectionError
from sqlalchemy.pool import QueuePool

from mediaplane.errors import UnusableDatabase
from mediaplane.filesystems import network_filesystem
from mediaplane.protocol.authorizer import authorizer
from mediaplane.protocol.values import Plane

DATA_PLANE_ROLE = "mediaplane_data_plane"
MINIMUM_POSTGRESQL = 16
# Where a connection keeps the words with which it is to begin transactions, and its `Line`.
BEGIN = "mediaplane_begin"
LINE = "mediaplane_line"
_BUSY_SECONDS = 30.0
_RETRY_SECONDS = 0.01
_JSON = json.JSONDecoder()
# A connection of PostgreSQL that is open and in no transaction.
_IDLE = 0
# Of a page of all tenants PostgreSQL expects a hundred times what it is, and would compile it.
_INTERPRETED = "jit = off"
# How rows are read that the server writes as texts.
_ENCODED = "client_encoding = 'UTF8'"
# All that the data plane asks for is few rows, in the order of an index. On tables whose
# statistics are young PostgreSQL would rather read them whole; and that is the best plan whatever
# the parameters, so it need not be sought again for each of the first executions.
_BY_INDEX = (
    "enable_seqscan = off",
    "enable_bitmapscan = off",
    "enable_mergejoin = off",
    "plan_cache_mode = force_generic_plan",
)


def sqlite_url(path: Path) -> str:
    """Return the URL of an SQLite file."""
    return URL.create("sqlite", database=str(path)).render_as_string()


def checked_url(given: str | URL) -> URL:
    """Return the URL of a database that can be used, with its driver."""
    try:
        url = make_url(given)
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


def open_engine(url: URL, plane: Plane) -> Engine:
    """Return the engine through which a plane uses the database."""
    # What a statement is executed with may be a file's name or the hash of a token: no error is to
    # quote it.
    options: dict[str, Any] = {
        "execution_options": {"mediaplane_plane": plane},
        "hide_parameters": True,
    }
    if url.get_backend_name() == "postgresql":
        engine = create_engine(
            url,
            pool_size=8,
            max_overflow=24,
            pool_use_lifo=True,  # the connection used last has its statements prepared
            pool_reset_on_return=None,  # what is begun is ended; if not, _refuse_unusable sees it
            connect_args={"prepare_threshold": 1, "autocommit": True},
            **options,
        )
        event.listen(engine, "connect", _postgresql_connected(plane))
        event.listen(engine, "checkout", _refuse_unusable)
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
        _keep_log(raw)
        # FULL: what was acknowledged survives a power cut. NORMAL lost it when tried.
        raw.execute("PRAGMA synchronous = FULL")
        raw.execute("PRAGMA foreign_keys = ON")
        raw.execute("PRAGMA temp_store = MEMORY")
        # In KiB, for each connection: more made scans faster still, but a plane may have many.
        raw.execute("PRAGMA cache_size = -32768")
        # A log that has grown is cut back to this when it begins anew; it is never larger unless
        # something keeps it from that (see wal.py).
        raw.execute(f"PRAGMA journal_size_limit = {8 << 20}")
        if plane is Plane.DATA:
            # Its first use declares a table, which the authorizer would refuse.
            raw.execute("SELECT 1 FROM json_each('[]')").fetchall()
            raw.set_authorizer(authorizer(()))

    return prepare


def _keep_log(raw: sqlite3.Connection) -> None:
    """Have the database keep a write-ahead log, if need be when others have let go of it.

    A new one keeps none yet. Of two that want to change that at once, SQLite refuses one without
    any patience, because each would wait for the other.
    """
    ends_at = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            raw.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= ends_at:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return


def _begin(conn: Connection) -> None:
    words = conn.info.get(BEGIN, "BEGIN")
    if words:
        conn.exec_driver_sql(words)


def _postgresql_connected(plane: Plane) -> Any:
    # Its driver takes long to import, and SQLite does without.
    from psycopg.types.json import set_json_loads  # noqa: PLC0415

    from mediaplane.protocol.lines import Line  # noqa: PLC0415

    def prepare(raw: Any, record: Any) -> None:
        version = raw.info.server_version
        if version < MINIMUM_POSTGRESQL * 10000:
            raise UnusableDatabase(
                f"PostgreSQL {version // 10000} is too old; mediaplane needs"
                f" {MINIMUM_POSTGRESQL} or later."
            )
        set_json_loads(_read_json, raw)
        choices = [_INTERPRETED, _ENCODED]
        if plane is Plane.DATA:
            if raw.info.user != DATA_PLANE_ROLE:
                raw.execute(f"SET ROLE {DATA_PLANE_ROLE}")
            choices += _BY_INDEX
        raw.execute("; ".join(f"SET {choice}" for choice in choices))
        record.info[LINE] = Line(raw)

    return prepare


def _read_json(stored: str | bytes) -> Any:
    # json.loads() takes as long again to find out that bytes are UTF-8.
    return _JSON.decode(stored if isinstance(stored, str) else stored.decode())


def _refuse_unusable(raw: Any, _record: object, _proxy: object) -> None:
    # Who is refused gets a new connection.
    if not is_usable(raw):
        raise DisconnectionError


def is_usable(raw: Any) -> bool:
    """Tell whether a connection of PostgreSQL is open and idle, as far as can be seen from here.

    A server that goes away says so on every connection: unlike a ping, looking costs no round trip.
    """
    line = raw.pgconn
    return line.transaction_status == _IDLE and not select.select([line.socket], [], [], 0)[0]
