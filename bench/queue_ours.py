"""The job engine of mediaplane: the real worker of the data plane, without its gRPC server."""

import os
import threading
from dataclasses import replace
from typing import Any

from sqlalchemy import text

from bench.queue_roles import Report, play
from control_plane.policy import admission
from control_plane.store import jobs
from data_plane.executor import Context
from data_plane.registry import EXECUTORS
from data_plane.settings import DataSettings
from data_plane.worker import Worker
from mediaplane.locations import Locations
from mediaplane.protocol import kinds, migration
from mediaplane.protocol.bell import Bell
from mediaplane.protocol.database import Database
from mediaplane.protocol.grants import apply_grants
from mediaplane.protocol.values import JobKind, Plane

DURABILITY = {
    "postgresql": ("synchronous_commit", "SHOW synchronous_commit"),
    "sqlite": ("synchronous", "PRAGMA synchronous"),
}


def locations_of(url: str) -> Locations:
    """Return where this run keeps its sockets and scratch files, with a database of its own."""
    locations = replace(Locations.from_environment(os.environ), database_url=url)
    locations.prepare()
    return locations


class MediaplaneClient:
    """The control plane's side: admission, and the bell that wakes the workers."""

    def __init__(self, url: str) -> None:
        self._database = Database(url, Plane.CONTROL)
        self._bell = Bell(self._database, locations_of(url).runtime)
        self._bell.start()
        self._database.bell = self._bell

    def install(self) -> str:
        url = self._database.url.render_as_string(hide_password=False)
        migration.upgrade(url)
        apply_grants(url)
        name, query = DURABILITY[self._database.dialect]
        with self._database.write() as conn:
            level = conn.execute(text(query)).scalar_one()
            if self._database.dialect == "postgresql":
                return f"{name}={level}"
            journal = conn.execute(text("PRAGMA journal_mode")).scalar_one()
        return f"{name}={level} journal_mode={journal}"

    def enqueue(self, count: int, batch: int) -> None:
        row = {"kind": JobKind.PROBE, "payload": kinds.encode(kinds.ProbePayload())}
        for _ in range(0, count, batch):
            # In a transaction, so that the commit is the last thing before the return: the workers
            # hear of it before, and the clock of a drain must not start late.
            with self._database.write() as conn:
                jobs.add_many(conn, [row] * batch)

    def enqueue_one(self) -> None:
        wanted = admission.Wanted(JobKind.PROBE)
        with self._database.write(is_one_statement=wanted.is_plain) as conn:
            admission.create(conn, wanted)

    def is_finished(self) -> bool:
        query = (
            "SELECT NOT EXISTS (SELECT 1 FROM jobs WHERE status = 'pending')"
            " AND NOT EXISTS (SELECT 1 FROM jobs WHERE status = 'running')"
        )
        with self._database.read() as conn:
            return bool(conn.execute(text(query)).scalar_one())

    def close(self) -> None:
        self._bell.close()
        self._database.close()


def work(url: str, timed: bool) -> None:
    """Run one worker until the benchmark ends it."""
    ended = threading.Event()
    report = Report(timed=timed, stop=ended.set)
    executor = EXECUTORS[JobKind.PROBE]

    def noop(task: Any, ctx: Context) -> Any:
        report.started()
        return executor.run(task, ctx)

    EXECUTORS[JobKind.PROBE] = replace(executor, run=noop)
    database = Database(url, Plane.DATA)
    worker = Worker(database, DataSettings(), locations_of(url), threading.Event())
    worker.start()
    report.ready()
    ended.wait()
    worker.stop()
    database.close()


if __name__ == "__main__":
    play(MediaplaneClient, work)
