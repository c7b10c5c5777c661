"""Brings a database to a revision of the schema, each revision in a transaction of its own."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationStep, RevisionStep
from alembic.script import Script, ScriptDirectory
from alembic.script.revision import RevisionMap
from sqlalchemy import Connection, Engine, NullPool, create_engine, event, inspect, text

from mediaplane.errors import InvalidArgument, UnusableDatabase
from mediaplane.protocol import revision
from mediaplane.protocol.engines import checked_url
from mediaplane.protocol.tables import metadata

# Another upgrade may be copying large tables.
_BUSY_SECONDS = 600.0
# Alembic's own table is too narrow for the names of our revisions.
_VERSION_TABLE = (
    "CREATE TABLE IF NOT EXISTS alembic_version"
    " (version_num VARCHAR(64) NOT NULL CONSTRAINT alembic_version_pkc PRIMARY KEY)"
)
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('mediaplane:migration', 0))"


def upgrade(url: str, revision: str = "head") -> None:
    """Bring a database forward to a revision; one that is there or beyond stays as it is."""
    _travel(url, revision, MigrationStep.upgrade_from_script, 1)


def downgrade(url: str, revision: str) -> None:
    """Take a database back to a revision, or to `base`, which is an empty database."""
    _travel(url, revision, MigrationStep.downgrade_from_script, -1)


def current(url: str) -> str | None:
    """Return the revision of a database, None where no revision is recorded."""
    with _opened(url, "BEGIN") as engine, engine.begin() as conn:
        return revision.recorded(conn)


def head() -> str:
    """Return the newest revision."""
    return revision.head()


def is_current(url: str) -> bool:
    """Tell whether a database has the schema that this version works with."""
    return current(url) == head()


def _travel(
    url: str, target: str, step: Callable[[RevisionMap, Script], RevisionStep], direction: int
) -> None:
    config = Config()
    scripts = _scripts(config)
    history = _history(scripts)
    goal = _place(history, target)
    with _opened(url, "BEGIN IMMEDIATE") as engine:
        is_there = False
        while not is_there:
            with engine.begin() as conn:
                # Where the database stands is read after all others were locked out, so that
                # two upgrades at once share the way instead of taking the same step twice.
                if conn.dialect.name == "postgresql":
                    conn.execute(text(_LOCK))
                here = _position(conn, history)
                is_there = (goal - here) * direction <= 0
                if not is_there:
                    script = scripts.get_revision(history[max(here, here + direction)])
                    _run(conn, config, scripts, step(scripts.revision_map, script))


def _run(conn: Connection, config: Config, scripts: ScriptDirectory, step: RevisionStep) -> None:
    conn.execute(text(_VERSION_TABLE))
    config.attributes["connection"] = conn
    with EnvironmentContext(config, scripts, fn=lambda _from, _context: [step]):
        scripts.run_env()


def _scripts(config: Config) -> ScriptDirectory:
    config.set_main_option("script_location", str(revision.VERSIONS.parent).replace("%", "%%"))
    return ScriptDirectory.from_config(config)


def _history(scripts: ScriptDirectory) -> list[str]:
    return ["base", *reversed([script.revision for script in scripts.walk_revisions()])]


def _place(history: list[str], target: str) -> int:
    if target == "head":
        return len(history) - 1
    if target not in history:
        raise InvalidArgument(f"There is no revision {target!r}; the newest is {history[-1]!r}.")
    return history.index(target)


def _position(conn: Connection, history: list[str]) -> int:
    recorded = revision.recorded(conn)
    if recorded is None:
        unexplained = sorted(set(metadata.tables) & set(inspect(conn).get_table_names()))
        if unexplained:
            raise UnusableDatabase(
                f"The database has the tables {', '.join(unexplained)} but no record of its"
                " revision (alembic_version), so it cannot be upgraded; use an empty database or"
                " restore this one from a backup."
            )
        return 0
    if recorded not in history:
        raise UnusableDatabase(
            f"The database has the revision {recorded!r}, which this version does not know (its"
            f" newest is {history[-1]!r}); run the version of mediaplane that upgraded the"
            " database, or restore the backup made before."
        )
    return history.index(recorded)


@contextmanager
def _opened(url: str, begin: str) -> Iterator[Engine]:
    checked = checked_url(url)
    if checked.get_backend_name() == "postgresql":
        engine = create_engine(checked, poolclass=NullPool)
    else:
        engine = create_engine(checked, poolclass=NullPool, connect_args={"timeout": _BUSY_SECONDS})
        event.listen(engine, "connect", _sqlite_connected)
        event.listen(engine, "begin", lambda conn: conn.exec_driver_sql(begin))
    try:
        yield engine
    finally:
        engine.dispose()


def _sqlite_connected(raw: sqlite3.Connection, _record: object) -> None:
    # The driver begins no transactions: the listener on `begin` does, also for DDL.
    raw.isolation_level = None
    # A table is rebuilt by dropping it, which must not touch the rows that refer to it.
    raw.execute("PRAGMA foreign_keys = OFF")
