"""The write whitelists inside PostgreSQL itself: the rights of the data plane's role."""

from collections.abc import Iterator

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from mediaplane.errors import UnusableDatabase
from mediaplane.protocol import tables
from mediaplane.protocol.database import Database
from mediaplane.protocol.engines import DATA_PLANE_ROLE
from mediaplane.protocol.values import Plane
from mediaplane.protocol.write_paths import WRITE_PATHS

_INSUFFICIENT_PRIVILEGE = "42501"


def apply_grants(url: str) -> None:
    """Give the data plane's role its rights in this database, and no other; repeatable.

    SQLite has no roles: there every connection of the data plane is guarded by authorizer.py.
    """
    database = Database(url, Plane.CONTROL)
    if database.dialect == "sqlite":
        return
    try:
        with database.write() as conn:
            _ensure_role(conn)
        with database.write() as conn:
            _grant(conn)
    finally:
        database.close()


def _ensure_role(conn: Connection) -> None:
    login = conn.scalar(text("SELECT quote_ident(current_user)"))
    advice = f"CREATE ROLE {DATA_PLANE_ROLE} NOLOGIN; GRANT {DATA_PLANE_ROLE} TO {login};"
    try:
        # Roles belong to the whole cluster, so another database's upgrade may be creating it now.
        conn.execute(
            text(
                f"DO $$ BEGIN IF to_regrole('{DATA_PLANE_ROLE}') IS NULL THEN"
                f" CREATE ROLE {DATA_PLANE_ROLE} NOLOGIN; END IF;"
                " EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
            )
        )
        # Who creates a role may grant it, but may not yet take it on (PostgreSQL 16).
        may_take_it = text(f"SELECT pg_has_role(current_user, '{DATA_PLANE_ROLE}', 'SET')")
        if not conn.scalar(may_take_it):
            conn.execute(
                text(f"GRANT {DATA_PLANE_ROLE} TO CURRENT_USER WITH INHERIT FALSE, SET TRUE")
            )
    except DBAPIError as error:
        if not _is_refusal(error):
            raise
        raise UnusableDatabase(
            f"The login {login} may not set up the data plane's role {DATA_PLANE_ROLE}. Have an"
            f" administrator of PostgreSQL run this once, then upgrade again: {advice}"
        ) from error


def _grant(conn: Connection) -> None:
    # Two upgrades of one database would otherwise change the same catalogue rows.
    conn.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('mediaplane:grants', 0))"))
    schema = str(conn.scalar(text("SELECT quote_ident(current_schema())")))
    try:
        for statement in _statements(schema, _sequences(conn, schema)):
            conn.execute(text(statement))
    except DBAPIError as error:
        if not _is_refusal(error):
            raise
        raise UnusableDatabase(
            f"The rights of {DATA_PLANE_ROLE} can only be set by the owner of the tables; run the"
            " upgrade as the login that made them."
        ) from error


def _statements(schema: str, sequences: list[str]) -> Iterator[str]:
    everything = f"ALL TABLES IN SCHEMA {schema}"
    # A right that a former version gave must not outlive it.
    yield f"REVOKE ALL ON {everything} FROM {DATA_PLANE_ROLE}"
    yield f"REVOKE ALL ON ALL SEQUENCES IN SCHEMA {schema} FROM {DATA_PLANE_ROLE}"
    yield f"REVOKE ALL ON SCHEMA {schema} FROM {DATA_PLANE_ROLE}"
    yield f"GRANT USAGE ON SCHEMA {schema} TO {DATA_PLANE_ROLE}"
    yield f"GRANT SELECT ON {everything} TO {DATA_PLANE_ROLE}"
    for path in WRITE_PATHS:
        rights = []
        if path.updates:
            rights.append(f"UPDATE ({', '.join(sorted(path.updates))})")
        if path.inserts:
            rights.append(f"INSERT ({', '.join(sorted(path.inserts))})")
        if path.deletes:
            rights.append("DELETE")
        yield f"GRANT {', '.join(rights)} ON {schema}.{path.table} TO {DATA_PLANE_ROLE}"
    for sequence in sequences:
        yield f"GRANT USAGE ON SEQUENCE {sequence} TO {DATA_PLANE_ROLE}"


def _sequences(conn: Connection, schema: str) -> list[str]:
    """Return the sequences that number the rows which the data plane inserts."""
    numbered = {
        path.table
        for path in WRITE_PATHS
        if path.inserts and "id" in tables.metadata.tables[path.table].columns
    }
    query = text("SELECT pg_get_serial_sequence(:name, 'id')")
    found = (conn.scalar(query, {"name": f"{schema}.{table}"}) for table in sorted(numbered))
    return [str(sequence) for sequence in found]


def _is_refusal(error: DBAPIError) -> bool:
    return getattr(error.orig, "sqlstate", None) == _INSUFFICIENT_PRIVILEGE
