"""Tells which revision of the schema a database has, without the weight of Alembic."""

from pathlib import Path

from sqlalchemy import Connection, inspect, text

import migrations

VERSIONS = Path(migrations.__file__).parent / "versions"


def head() -> str:
    """Return the newest revision: they are numbered, and named as their files."""
    return max(path.stem for path in VERSIONS.glob("[0-9]*.py"))


def recorded(conn: Connection) -> str | None:
    """Return the revision of a database, None where no revision is recorded."""
    if not inspect(conn).has_table("alembic_version"):
        return None
    found: str | None = conn.scalar(text("SELECT version_num FROM alembic_version"))
    return found
