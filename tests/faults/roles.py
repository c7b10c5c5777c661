"""What forked processes do; each function runs in a process of its own until it is told to stop."""

import logging
import signal
import threading
from pathlib import Path
from typing import Any

from control_plane import loops
from control_plane.settings import ControlSettings
from data_plane.registry import EXECUTORS
from data_plane.settings import DataSettings
from data_plane.worker import Worker
from mediaplane.locations import Locations
from mediaplane.protocol.bell import Bell
from mediaplane.protocol.database import Database
from mediaplane.protocol.values import JobKind, Plane
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


def work(url: str, state: str, account: str, **settings: Any) -> None:
    """Be a worker, with everything but the calls it answers."""
    stop = _until_told(state)
    EXECUTORS[JobKind.PROBE] = witnessed(Path(account))
    database = Database(url, Plane.DATA)
    worker = Worker(database, DataSettings(**(WORKER | settings)), places(state, url), stop)
    worker.start()
    stop.wait()
    worker.stop()
    database.close()


def recover(url: str, state: str, **settings: Any) -> None:
    """Be a control plane, with everything but the calls it answers."""
    stop = _until_told(state)
    database = Database(url, Plane.CONTROL)
    bell = database.bell = Bell(database, places(state, url).runtime)
    bell.start()
    threads = loops.start(database, ControlSettings(**(CONTROL | settings)), stop)
    stop.wait()
    for thread in threads:
        thread.join()
    bell.close()
    database.close()


def places(state: str, url: str) -> Locations:
    """Return the locations of a process that serves nothing."""
    locations = Locations(Path(state), url, "unix:unused", "unix:unused")
    locations.prepare()
    return locations


def _until_told(state: str) -> threading.Event:
    """Log to a file that tests can read, and return what SIGTERM sets."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    logging.basicConfig(
        filename=f"{state}.log",
        level=logging.WARNING,
        format="%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s",
    )
    return stop
