"""The database: whether it answers, is whole, is of this version, and what its clock shows."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, NullPool, create_engine
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from mediaplane.doctor.clock import compare
from mediaplane.doctor.finding import Finding, Level, ok, problem, warning
from mediaplane.errors import UnusableDatabase
from mediaplane.protocol import revision
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.database import explain
from mediaplane.protocol.engines import MINIMUM_POSTGRESQL, checked_url

_ANSWER_SECONDS = 5
_MINIMUM_SQLITE = (3, 37, 0)


@contextmanager
def opened(url: URL) -> Iterator[Connection]:
    """Connect in a way that changes nothing, not even a file beside the database."""
    if url.get_backend_name() == "sqlite":
        path = Path(str(url.database))
        # Without its log nobody has the file open. To read it as others may use it would leave
        # files behind that only a writer can remove.
        is_in_use = path.with_name(path.name + "-wal").exists()
        mode = "mode=ro" if is_in_use else "mode=ro&immutable=1"
        source = f"file:{quote(str(path.absolute()))}?{mode}"
        engine = create_engine(
            "sqlite://",
            poolclass=NullPool,
            creator=lambda: sqlite3.connect(source, uri=True, timeout=_ANSWER_SECONDS),
        )
    else:
        options = "-c default_transaction_read_only=on"
        arguments = {"connect_timeout": _ANSWER_SECONDS, "options": options}
        engine = create_engine(url, poolclass=NullPool, connect_args=arguments)
    try:
        with engine.connect() as conn:
            yield conn
    finally:
        engine.dispose()


def usable_url(database_url: str) -> tuple[URL | None, list[Finding]]:
    """Return where the database is, if it can be asked at all, and what there is to say of that."""
    check = "database"
    try:
        url = checked_url(database_url)
    except UnusableDatabase as error:
        return None, [problem(check, str(error), "Set MEDIAPLANE_DATABASE_URL or --state anew.")]
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).exists():
        return None, [ok(check, f"{url.database} does not exist yet; the first command makes it.")]
    shown = url.render_as_string(hide_password=True)
    try:
        with opened(url) as conn:
            conn.exec_driver_sql("SELECT 1")
            if url.get_backend_name() == "sqlite":
                conn.exec_driver_sql("SELECT count(*) FROM sqlite_master")
    except DBAPIError as error:
        advice = "Check that it runs, that the URL is right and that you may use it."
        return None, [problem(check, f"{shown} does not answer: {explain(error)}.", advice)]
    return url, [ok(check, f"{shown} answers.")]


def look(conn: Connection) -> Iterator[Finding]:
    """Look at a database that answers."""
    if conn.dialect.name == "sqlite":
        yield _look_for_damage(conn)
    else:
        yield look_at_server(int(conn.exec_driver_sql("SHOW server_version_num").scalar_one()))
        asked_at = time.time()
        shown_at = database_time(conn) / 1000
        yield compare("database", shown_at, asked_at, time.time())
    yield _look_at_schema(conn)


def look_at_library(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> Finding:
    """Look at the version of the SQLite library."""
    shown, needed = (".".join(map(str, one)) for one in (version, _MINIMUM_SQLITE))
    if version < _MINIMUM_SQLITE:
        advice = "Run mediaplane by a Python that comes with a newer one."
        return problem("sqlite", f"SQLite {shown} is too old; {needed} is needed.", advice)
    return ok("sqlite", f"The SQLite library is {shown}.")


def look_at_server(version: int) -> Finding:
    """Look at the version of a PostgreSQL server, such as 160004."""
    shown = f"{version // 10000}.{version % 10000}"
    if version < MINIMUM_POSTGRESQL * 10000:
        advice = f"Use a server of PostgreSQL {MINIMUM_POSTGRESQL} or later."
        return problem("postgresql", f"PostgreSQL {shown} is too old.", advice)
    return ok("postgresql", f"The server is PostgreSQL {shown}.")


def is_current(findings: list[Finding]) -> bool:
    """Tell whether the schema was found to be the one that can be read here."""
    return any(one.check == "schema" and one.level is Level.OK for one in findings)


def _look_for_damage(conn: Connection) -> Finding:
    check = "integrity"
    try:
        said = str(conn.exec_driver_sql("PRAGMA quick_check(1)").scalar())
    except DBAPIError as error:
        said = explain(error)
    if said == "ok":
        return ok(check, "SQLite finds its file whole.")
    return problem(
        check,
        f"The SQLite file is damaged: {said.splitlines()[0]}",
        "Stop both planes, keep a copy of the file, check the disk, and put a backup back with:"
        " mediaplane db restore",
    )


def _look_at_schema(conn: Connection) -> Finding:
    check, newest = "schema", revision.head()
    try:
        found = revision.recorded(conn)
    except DBAPIError as error:
        advice = "Restore a backup, or use another database."
        return problem(check, f"The schema cannot be read: {explain(error)}.", advice)
    if found == newest:
        return ok(check, f"The schema is that of this version, {newest}.")
    if found is None:
        return warning(
            check, "The database has no schema yet.", "Make it with: mediaplane db upgrade"
        )
    if (revision.VERSIONS / f"{found}.py").exists():
        return problem(
            check,
            f"The schema is {found}, older than the {newest} of this version.",
            "Stop the planes, make a backup, and run: mediaplane db upgrade",
        )
    return problem(
        check,
        f"The schema is {found}, which this version does not know; its newest is {newest}.",
        "Run the version of mediaplane that upgraded the database, or restore the backup"
        " made before.",
    )
