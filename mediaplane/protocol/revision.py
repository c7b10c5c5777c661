"""Tells which revision of the schema a database has, without the weight of Alembic."""

from pathlib import Path

from sqlalchemy import Connection, text

import migrations
from mediaplane.errors import UnusableDatabase
from mediaplane.protocol.database import Database

VERSIONS = Path(migrations.__file__).parent / "versions"

_HAS_TABLE = {
    "sqlite": "SELECT name FROM sqlite_master WHERE name = 'alembic_version'",
    "postgresql": "SELECT to_regclass('alembic_version')",
}


def head() -> str:
    """Return the newest revision: they are numbered, and named as their files."""
    return max(path.stem for path in VERSIONS.glob("[0-9]*.py"))


def check(database: Database) -> None:
    """Refuse a database with another schema than this version works with."""
    with database.read() as conn:
        found = recorded(conn)
    if found != head():
        raise UnusableDatabase(
            f"The database has the schema {found or 'of nothing yet'}, and this version needs"
            f" {head()}; run `mediaplane db upgrade`."
        )


def recorded(conn: Connection) -> str | None:
    """Return the revision of a database, None where no revision is recorded."""
    # By plain queries: the data plane's connections may not ask with PRAGMA.
    if conn.scalar(text(_HAS_TABLE[conn.dialect.name])) is None:
        return None
    found: str | None = conn.scalar(text("SELECT version_num FROM alembic_version"))
    return found
