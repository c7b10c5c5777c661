"""Setting up PostgreSQL's rights: repeatable, safe beside others, and clear when it fails."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from uuid import uuid4

import pytest
from sqlalchemy import make_url, text

from mediaplane.errors import UnusableDatabase
from mediaplane.protocol import grants, migration
from mediaplane.protocol.database import Database
from mediaplane.protocol.engines import DATA_PLANE_ROLE
from mediaplane.protocol.grants import apply_grants
from mediaplane.protocol.values import Plane
from tests.support.databases import Databases, administrator, postgres_database
from tests.support.postgres import PostgresServer

on_postgres = pytest.mark.parametrize("database", ["postgres"], indirect=True)

RIGHTS = text(
    "SELECT table_name, column_name, privilege_type FROM information_schema.column_privileges"
    " WHERE grantee = :role ORDER BY 1, 2, 3"
)


def rights(database: Database) -> list[tuple[str, ...]]:
    with database.read() as conn:
        return [tuple(row) for row in conn.execute(RIGHTS, {"role": DATA_PLANE_ROLE})]


@contextmanager
def login(server: PostgresServer, options: str = "") -> Iterator[str]:
    """A role that may log in and is no superuser."""
    name = f"somebody_{uuid4().hex}"
    with administrator(server.url) as conn:
        conn.execute(text(f"CREATE ROLE {name} LOGIN PASSWORD 'secret' {options}"))
        yield name
        conn.execute(text(f"DROP ROLE {name}"))


def as_login(url: str, name: str) -> str:
    asked = make_url(url).set(username=name, password="secret")
    return asked.render_as_string(hide_password=False)


@pytest.fixture
def unknown_role(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A role of the data plane that the server has not seen yet."""
    name = f"{DATA_PLANE_ROLE}_{uuid4().hex}"
    monkeypatch.setattr(grants, "DATA_PLANE_ROLE", name)
    yield name
    with administrator(postgres_server.url) as conn:
        conn.execute(text(f"DROP ROLE IF EXISTS {name}"))


@on_postgres
def test_rights_are_the_same_after_any_number_of_upgrades(database: Databases) -> None:
    before = rights(database.control)
    assert ("jobs", "status", "UPDATE") in before
    apply_grants(database.url)
    apply_grants(database.url)
    assert rights(database.control) == before


@on_postgres
def test_a_right_that_no_path_needs_any_more_is_taken_back(database: Databases) -> None:
    before = rights(database.control)
    with database.control.write() as conn:
        conn.execute(text(f"GRANT ALL ON jobs, libraries TO {DATA_PLANE_ROLE}"))
        conn.execute(text(f"GRANT UPDATE (command) ON worker_status TO {DATA_PLANE_ROLE}"))
        conn.execute(text(f"GRANT ALL ON SCHEMA public TO {DATA_PLANE_ROLE}"))
    assert rights(database.control) != before
    apply_grants(database.url)
    assert rights(database.control) == before
    with database.control.read() as conn:
        may_create = text(f"SELECT has_schema_privilege('{DATA_PLANE_ROLE}', 'public', 'CREATE')")
        assert conn.execute(may_create).scalar() is False


@on_postgres
def test_upgrades_of_one_database_at_once_do_not_disturb_each_other(database: Databases) -> None:
    before = rights(database.control)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(apply_grants, [database.url] * 8))
    assert rights(database.control) == before


def test_the_role_is_created_once_by_upgrades_of_many_databases_at_once(
    postgres_server: PostgresServer, unknown_role: str
) -> None:
    with ExitStack() as stack:
        urls = [stack.enter_context(postgres_database(postgres_server.url)) for _ in range(4)]
        for url in urls:
            migration.upgrade(url)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(apply_grants, urls))
        with administrator(postgres_server.url) as conn:
            roles = text("SELECT rolcanlogin FROM pg_roles WHERE rolname = :name")
            assert conn.execute(roles, {"name": unknown_role}).all() == [(False,)]


def test_a_login_that_may_create_roles_sets_everything_up_by_itself(
    postgres_server: PostgresServer, unknown_role: str
) -> None:
    with (
        login(postgres_server, "CREATEROLE") as owner,
        postgres_database(postgres_server.url, f"OWNER {owner}") as url,
    ):
        own_url = as_login(url, owner)
        migration.upgrade(own_url)
        apply_grants(own_url)
        apply_grants(own_url)
        database = Database(own_url, Plane.CONTROL)
        with database.write() as conn:
            conn.execute(text(f"SET LOCAL ROLE {unknown_role}"))
            conn.execute(text("UPDATE jobs SET progress = 1"))
        database.close()
        with administrator(url) as conn:
            conn.execute(text(f"DROP OWNED BY {unknown_role}"))
            conn.execute(text(f"DROP ROLE {unknown_role}"))
            conn.execute(text(f"DROP OWNED BY {owner} CASCADE"))
            conn.execute(text(f"ALTER DATABASE {make_url(url).database} OWNER TO CURRENT_USER"))


def test_a_login_that_may_not_create_roles_is_told_what_an_administrator_must_run(
    postgres_server: PostgresServer, unknown_role: str
) -> None:
    with (
        login(postgres_server) as owner,
        postgres_database(postgres_server.url, f"OWNER {owner}") as url,
    ):
        own_url = as_login(url, owner)
        migration.upgrade(own_url)
        with pytest.raises(UnusableDatabase) as failure:
            apply_grants(own_url)
        advice = f"CREATE ROLE {unknown_role} NOLOGIN; GRANT {unknown_role} TO {owner};"
        assert advice in str(failure.value)
        # And that is all it takes.
        with administrator(url) as conn:
            for statement in advice.removesuffix(";").split(";"):
                conn.execute(text(statement))
        apply_grants(own_url)
        with administrator(url) as conn:
            conn.execute(text(f"DROP OWNED BY {unknown_role}"))
            conn.execute(text(f"DROP ROLE {unknown_role}"))
            conn.execute(text(f"DROP OWNED BY {owner} CASCADE"))
            conn.execute(text(f"ALTER DATABASE {make_url(url).database} OWNER TO CURRENT_USER"))


def test_a_login_that_does_not_own_the_tables_is_told_so(
    postgres_server: PostgresServer,
) -> None:
    with (
        login(postgres_server) as stranger,
        postgres_database(postgres_server.url) as url,
    ):
        migration.upgrade(url)
        apply_grants(url)
        with administrator(url) as conn:
            conn.execute(text(f"GRANT {DATA_PLANE_ROLE} TO {stranger}"))
        with pytest.raises(UnusableDatabase, match="owner of the tables"):
            apply_grants(as_login(url, stranger))


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_there_is_nothing_to_grant_on_sqlite(database: Databases) -> None:
    apply_grants(database.url)
