"""Fixtures of tests that run the product as people do."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands import Commands
from tests.support.databases import Copies


@pytest.fixture(params=["sqlite", "postgres"])
def commands(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Commands]:
    """The command line on the embedded SQLite, and on PostgreSQL by MEDIAPLANE_DATABASE_URL."""
    state = tmp_path / "state"
    if request.param == "sqlite":
        yield Commands(state)
        return
    copies: Copies = request.getfixturevalue("postgres_template")
    with copies() as url:
        yield Commands(state, url)


@pytest.fixture
def sqlite_commands(tmp_path: Path) -> Commands:
    """The command line on the embedded SQLite."""
    return Commands(tmp_path / "state")
