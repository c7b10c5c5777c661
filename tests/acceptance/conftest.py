"""Fixtures of tests that run the product as people do."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

from tests.support.commands import Commands
from tests.support.databases import Copies


@pytest.fixture(params=["sqlite", "postgres"])
def commands(request: pytest.FixtureRequest) -> Commands:
    """The command line on the embedded SQLite, and on PostgreSQL by MEDIAPLANE_DATABASE_URL."""
    chosen: Commands = request.getfixturevalue(f"{request.param}_commands")
    return chosen


@pytest.fixture
def postgres_commands(tmp_path: Path, postgres_template: Copies) -> Iterator[Commands]:
    """The command line on PostgreSQL."""
    state = tmp_path / "pg"
    state.mkdir(mode=0o700)
    with postgres_template() as url:
        yield Commands(state, url)


@pytest.fixture
def sqlite_commands(tmp_path: Path, sqlite_template: Copies) -> Commands:
    """The command line on the embedded SQLite, which the first command need not make."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    with sqlite_template() as url:
        shutil.copyfile(str(make_url(url).database), state / "mediaplane.db")
    return Commands(state)


@pytest.fixture
def first_commands(tmp_path: Path) -> Commands:
    """The command line before its first use, on the embedded SQLite."""
    return Commands(tmp_path / "state")
