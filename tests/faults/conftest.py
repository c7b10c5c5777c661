"""Fixtures of tests that break things, and how much they break."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.faults.site import Site
from tests.faults.zygote import Zygote, running_zygote
from tests.support.databases import Copies, Databases, opened

KILLS = 50
SEED = 20240229


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=KILLS, help="worker processes to kill")
    parser.addoption("--seed", type=int, default=SEED, help="what chance begins with")


@pytest.fixture
def kills(pytestconfig: pytest.Config) -> int:
    """How many worker processes to kill."""
    return int(pytestconfig.getoption("--kills", KILLS))


@pytest.fixture
def chance(pytestconfig: pytest.Config) -> Random:
    """Whatever is left to chance; a failed test shows how to have the same again."""
    seed = int(pytestconfig.getoption("--seed", SEED))
    print(f"chance: --seed={seed}")  # noqa: T201 - shown by pytest when the test fails
    return Random(seed)


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    with running_zygote() as zygote:
        yield zygote


@pytest.fixture
def site(database: Databases, zygote: Zygote, tmp_path: Path) -> Iterator[Site]:
    with Site(database, zygote, tmp_path) as site:
        yield site


@pytest.fixture
def sqlite_site(sqlite_template: Copies, zygote: Zygote, tmp_path: Path) -> Iterator[Site]:
    with (
        sqlite_template() as url,
        opened(url) as database,
        Site(database, zygote, tmp_path) as site,
    ):
        yield site


@pytest.fixture
def postgres_site(postgres_template: Copies, zygote: Zygote, tmp_path: Path) -> Iterator[Site]:
    with (
        postgres_template() as url,
        opened(url) as database,
        Site(database, zygote, tmp_path) as site,
    ):
        yield site
