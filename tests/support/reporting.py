"""What a test run says about itself: the databases it ran on, and the skips it may not have."""

import os
import sqlite3
from collections import Counter

import pytest

from tests.support.postgres import PostgresServer

STRICT_VARIABLE = "MEDIAPLANE_TEST_STRICT"
POSTGRES = pytest.StashKey[PostgresServer]()
# The name under which a report carries its database from a worker process to the summary.
PROPERTY = "database"


def is_strict() -> bool:
    return os.environ.get(STRICT_VARIABLE, "") not in {"", "0"}


def skips(reporter: pytest.TerminalReporter) -> list[str]:
    """One line per skipped test or module, with its reason."""
    lines = []
    for report in reporter.getreports("skipped"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        lines.append(f"{report.nodeid}: {reason.removeprefix('Skipped: ')}")
    return lines


def note_database(item: pytest.Item, report: pytest.TestReport) -> None:
    """Writes on the report which database the test ran on, by the id of its fixture."""
    callspec = getattr(item, "callspec", None)
    parameters = callspec.params if callspec else {}
    database = parameters.get("database") or parameters.get("commands")
    server = item.config.stash.get(POSTGRES, None)
    if database == "sqlite":
        report.user_properties.append((PROPERTY, f"sqlite {sqlite3.sqlite_version}"))
    elif server and (database == "postgres" or "postgres_server" in fixtures_of(item)):
        report.user_properties.append((PROPERTY, f"postgresql {server.version}"))


def fixtures_of(item: pytest.Item) -> list[str]:
    return item.fixturenames if isinstance(item, pytest.Function) else []


def databases(reporter: pytest.TerminalReporter) -> str:
    """For instance: databases: sqlite 3.40.1 (12 tests), postgresql 16.14 (12 tests)."""
    tests: Counter[str] = Counter()
    for outcome in ("passed", "failed"):
        for report in reporter.getreports(outcome):
            for name, value in getattr(report, "user_properties", ()):
                if name == PROPERTY and report.when == "call":
                    tests[str(value)] += 1
    # SQLite first: it is the default.
    counts = [f"{database} ({tests[database]} tests)" for database in sorted(tests, reverse=True)]
    return f"databases: {', '.join(counts) or 'none used'}"
