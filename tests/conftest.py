"""Fixtures of every test, and the rules of a run: see tests/support/reporting.py."""

from collections.abc import Generator, Iterator

import pytest

from tests.support import reporting
from tests.support.databases import Copies, Databases, opened, postgres_copies, sqlite_copies
from tests.support.postgres import PostgresServer, running_postgres


@pytest.fixture(scope="session")
def postgres_server(pytestconfig: pytest.Config) -> Iterator[PostgresServer]:
    """A real PostgreSQL, started by the first test that asks; one per worker under xdist."""
    with running_postgres() as server:
        pytestconfig.stash[reporting.POSTGRES] = server
        yield server


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    return sqlite_copies(tmp_path_factory.mktemp("sqlite"))


@pytest.fixture(scope="session")
def postgres_template(postgres_server: PostgresServer) -> Iterator[Copies]:
    with postgres_copies(postgres_server.url) as copies:
        yield copies


# The ids are what the summary counts. The server is asked for in the postgres case only, so that
# a run on SQLite alone starts none.
@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Iterator[Databases]:
    """A fresh database with the whole schema, once on SQLite and once on PostgreSQL."""
    copies: Copies = request.getfixturevalue(f"{request.param}_template")
    with copies() as url, opened(url) as databases:
        yield databases


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        reporting.note_database(item, report)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    # A worker process has no reporter: the run that started it decides.
    if reporter and reporting.is_strict() and reporting.skips(reporter) and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(reporting.databases(terminalreporter))
    skips = reporting.skips(terminalreporter)
    if skips and reporting.is_strict():
        terminalreporter.section("skipped, which a strict run does not allow", red=True)
        for line in skips:
            terminalreporter.write_line(line)
