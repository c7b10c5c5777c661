"""The first to open a database: how it comes to its write-ahead log while others are there."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from mediaplane.protocol import engines
from mediaplane.protocol.database import Database
from mediaplane.protocol.engines import sqlite_url
from mediaplane.protocol.values import Plane

HELD_SECONDS = 0.3


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database as a migration or a backup leaves it: without a write-ahead log."""
    path = tmp_path / "new.db"
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("CREATE TABLE rows (id INTEGER)")
    return path


def writer(path: Path) -> sqlite3.Connection:
    """Open a transaction that may write: SQLite lets nobody wait for it who would begin a log."""
    raw = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    raw.execute("BEGIN IMMEDIATE")
    return raw


@pytest.mark.parametrize("plane", Plane)
def test_a_log_is_begun_when_others_have_let_go(path: Path, plane: Plane) -> None:
    held = writer(path)
    letting_go = threading.Timer(HELD_SECONDS, held.close)
    letting_go.start()
    database = Database(sqlite_url(path), plane)
    with database.read():
        pass
    database.close()
    letting_go.join()
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_log_is_not_waited_for_for_ever(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_BUSY_SECONDS", 0.05)
    with closing(writer(path)):
        database = Database(sqlite_url(path), Plane.CONTROL)
        with pytest.raises(OperationalError, match="locked"), database.read():
            pass
        database.close()
