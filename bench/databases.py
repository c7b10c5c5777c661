"""Fresh databases to measure on: all on one PostgreSQL server or one disk, all durable."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from uuid import uuid4

from sqlalchemy import URL, Engine, NullPool, create_engine, make_url, text

from mediaplane.protocol.engines import sqlite_url
from tests.support.postgres import running_postgres

# Makes an empty database, yields its URL and removes it afterwards.
Fresh = Callable[[], AbstractContextManager[str]]

SETTINGS = ("server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers")
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


@contextmanager
def postgresql() -> Iterator[tuple[Fresh, dict[str, str]]]:
    """Yield a maker of databases on one durable server, and the server's settings."""
    with running_postgres(durable=True) as server:
        engine = create_engine(server.url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        settings = _settings(engine)
        weaker = {name: settings[name] for name in DURABLE if settings[name] != DURABLE[name]}
        if weaker:
            raise RuntimeError(f"The server is not durable: {weaker}; let the benchmark start one.")

        @contextmanager
        def fresh() -> Iterator[str]:
            name = f"bench_{uuid4().hex}"
            _run(engine, f"CREATE DATABASE {name}")
            # What one contender left to be written must not be written on the time of the next.
            _run(engine, "CHECKPOINT")
            url = make_url(server.url).set(database=name)
            try:
                yield url.set(drivername="postgresql").render_as_string(hide_password=False)
                _check_is_logged(url)
            finally:
                _run(engine, f"DROP DATABASE {name} WITH (FORCE)")

        yield fresh, settings


@contextmanager
def sqlite() -> Iterator[Fresh]:
    """Yield a maker of SQLite files in one temporary directory."""
    with tempfile.TemporaryDirectory(prefix="mediaplane-bench-") as directory:

        @contextmanager
        def fresh() -> Iterator[str]:
            path = Path(directory, f"{uuid4().hex}.db")
            yield sqlite_url(path)
            for file in Path(directory).glob(f"{path.name}*"):
                file.unlink()

        yield fresh


def _check_is_logged(url: URL) -> None:
    """Refuse figures of a contender that kept a table which a power cut empties."""
    query = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relpersistence <> 'p'"
    with create_engine(url, poolclass=NullPool).connect() as conn:
        unlogged = list(conn.scalars(text(query)))
    if unlogged:
        raise RuntimeError(f"These tables do not survive a power cut: {unlogged}")


def _settings(engine: Engine) -> dict[str, str]:
    with engine.connect() as conn:
        return {name: str(conn.execute(text(f"SHOW {name}")).scalar_one()) for name in SETTINGS}


def _run(engine: Engine, sql: str) -> None:
    with engine.connect() as conn:
        conn.execute(text(sql))
