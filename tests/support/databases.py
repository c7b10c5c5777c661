"""A fresh database for every test: a copy of one that the migrations made once per run."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from sqlalchemy import Connection, NullPool, create_engine, make_url, text

from mediaplane.protocol import migration
from mediaplane.protocol.database import Database
from mediaplane.protocol.engines import sqlite_url
from mediaplane.protocol.grants import apply_grants
from mediaplane.protocol.values import Plane

# Makes one empty database and yields its URL.
Copies = Callable[[], AbstractContextManager[str]]


@dataclass(frozen=True)
class Databases:
    """The same database as each plane sees it."""

    url: str
    control: Database
    data: Database


def build_schema(url: str) -> None:
    """Turn an empty database into one that a plane can start on."""
    migration.upgrade(url)
    apply_grants(url)


@contextmanager
def opened(url: str) -> Iterator[Databases]:
    both = Databases(url, Database(url, Plane.CONTROL), Database(url, Plane.DATA))
    try:
        yield both
    finally:
        both.control.close()
        both.data.close()


def sqlite_copies(directory: Path) -> Copies:
    template = directory / "template.db"
    build_schema(sqlite_url(template))

    @contextmanager
    def copy() -> Iterator[str]:
        path = directory / f"{uuid4().hex}.db"
        shutil.copyfile(template, path)
        yield sqlite_url(path)
        for file in directory.glob(f"{path.name}*"):
            file.unlink()

    return copy


@contextmanager
def administrator(server_url: str) -> Iterator[Connection]:
    """A connection for what PostgreSQL does outside transactions: databases come and go."""
    engine = create_engine(server_url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as conn:
        yield conn


@contextmanager
def postgres_database(server_url: str, *options: str) -> Iterator[str]:
    """One database on a server, dropped afterwards."""
    name = f"mediaplane_test_{uuid4().hex}"
    with administrator(server_url) as conn:
        conn.execute(text(f"CREATE DATABASE {name} {' '.join(options)}"))
        try:
            yield make_url(server_url).set(database=name).render_as_string(hide_password=False)
        finally:
            conn.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))


@contextmanager
def postgres_copies(server_url: str) -> Iterator[Copies]:
    with postgres_database(server_url) as template_url:
        build_schema(template_url)
        template = make_url(template_url).database

        @contextmanager
        def copy() -> Iterator[str]:
            with postgres_database(server_url, f"TEMPLATE {template}") as url:
                yield url

        yield copy
