"""What forked processes do; each function runs in a process of its own until it is told to stop."""

import logging
import signal
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

from control_plane import loops
from control_plane.settings import ControlSettings
from data_plane.registry import EXECUTORS
from data_plane.settings import DataSettings
from data_plane.worker import Worker
from mediaplane.locations import Locations
from mediaplane.process import stop_requested
from mediaplane.protocol.bell import Bell
from mediaplane.protocol.database import Database
from mediaplane.protocol.values import JobKind, Plane
from mediaplane.tokens import Tokens
from tests.faults.witness import witnessed

# Looks often, so that what is tested is how work goes on and not how long it waits.
WORKER: dict[str, Any] = {
    "slots": 2,
    "priority_slots": 0,
    "lease_seconds": 1.0,
    "poll_seconds": 0.05,
    "progress_seconds": 0.1,
    "stop_grace_seconds": 4.0,
    "worker_name": "same",
}
CONTROL = {"recovery_seconds": 0.05, "retry_base_seconds": 0.02, "retry_max_seconds": 0.1}


def work(url: str, state: str, log: str, account: str, **settings: Any) -> None:
    """Be a worker, with everything but the calls it answers."""
    stop = _until_told(log)
    EXECUTORS[JobKind.PROBE] = witnessed(Path(account))
    chosen = DataSettings(**(WORKER | settings))
    database = Database(url, Plane.DATA, chosen.wal_limit_bytes)
    worker = Worker(database, chosen, places(state, url), stop)
    worker.start()
    stop.wait()
    worker.stop()
    database.close()


def recover(url: str, state: str, log: str, **settings: Any) -> None:
    """Be a control plane, with everything but the calls it answers."""
    stop = _until_told(log)
    chosen = ControlSettings(**(CONTROL | settings))
    database = Database(url, Plane.CONTROL, chosen.wal_limit_bytes)
    bell = database.bell = Bell(database, places(state, url).runtime)
    bell.start()
    threads = loops.start(database, chosen, Tokens(database), stop)
    stop.wait()
    for thread in threads:
        thread.join()
    bell.close()
    database.close()


def lock_out(url: str, seconds: float, times: int) -> None:
    """Hold SQLite's write lock for a while, again and again."""
    path = make_url(url).database
    assert path
    with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as conn:
        for _ in range(times):
            conn.execute("BEGIN IMMEDIATE")
            time.sleep(seconds)
            conn.execute("ROLLBACK")
            time.sleep(0.2)  # the others' turn


def read_on(url: str, seconds: float, times: int) -> None:
    """Hold a snapshot of SQLite open for a while, again and again."""
    path = make_url(url).database
    assert path
    with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as conn:
        for _ in range(times):
            conn.execute("BEGIN")
            conn.execute("SELECT count(*) FROM jobs").fetchone()
            time.sleep(seconds)
            conn.execute("COMMIT")


def places(state: str, url: str) -> Locations:
    """Return the locations of a process that serves nothing."""
    locations = Locations(Path(state), url, "unix:unused", "unix:unused")
    locations.prepare()
    return locations


def _until_told(log: str) -> threading.Event:
    """Log to a file that tests can read, and return what SIGTERM sets."""
    stop = stop_requested(on_stdin_eof=False)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    logging.basicConfig(
        filename=log,
        level=logging.WARNING,
        format="%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s",
    )
    return stop
