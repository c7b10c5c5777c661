"""Runs every test of migrations that asks for `databases` on SQLite and on PostgreSQL."""

from collections.abc import Iterator

import pytest

from tests.migrations.databases import NewDatabases, NewOnPostgres, NewOnSqlite
from tests.migrations.upgrades import Upgrades


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def databases(
    database: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NewDatabases]:
    if database == "sqlite":
        yield NewOnSqlite(tmp_path_factory.mktemp("migrations"))
        return
    made = NewOnPostgres(request.getfixturevalue("postgres_server"))
    yield made
    made.drop()


@pytest.fixture(scope="session")
def upgrades() -> Iterator[Upgrades]:
    with Upgrades() as running:
        yield running
