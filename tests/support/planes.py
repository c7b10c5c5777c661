"""Both planes in one process: workers with their real threads, and the policies and loops."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest
from sqlalchemy import select, text
from sqlalchemy.engine import RowMapping

from control_plane import loops
from control_plane.policy import admission, libraries, planning
from control_plane.settings import ControlSettings
from control_plane.store import workers
from data_plane.executor import Context, Control
from data_plane.hashers import Hashers
from data_plane.heartbeat import Heartbeat
from data_plane.jail import Jail
from data_plane.leases import Leases
from data_plane.runner import Runner
from data_plane.scratch import Scratch
from data_plane.settings import DataSettings
from mediaplane.protocol.bell import Bell
from mediaplane.protocol.database import Database
from mediaplane.protocol.kinds import ProbePayload
from mediaplane.protocol.tables import events, job_items, jobs, library_files, worker_status
from mediaplane.protocol.values import DEFAULT_TENANT, JobKind, WorkerCommand
from mediaplane.tokens import Tokens
from tests.support.databases import Databases
from tests.support.waiting import PATIENCE_SECONDS, eventually

LIBRARY = "pictures"


class Worker:
    """A worker that looks often, so that tests need not wait."""

    def __init__(
        self,
        database: Database,
        name: str = "worker-1",
        scratch: Scratch | None = None,
        hashers: Hashers | None = None,
        **settings: Any,
    ) -> None:
        usual = {"slots": 1, "priority_slots": 0, "poll_seconds": 0.01, "progress_seconds": 0.05}
        self.settings = DataSettings(**(usual | settings))
        self.leases = Leases(name)
        self.scratch = scratch
        self.bell = Bell(database, None)
        self.commands: list[WorkerCommand] = []
        self.runner = Runner(
            database, self.leases, self.settings, self.context, self.bell, hashers=hashers
        )
        self.heartbeat = Heartbeat(
            database, self.leases, self.settings, self.bell, self.commands.append, dict,
            self.runner.hand_back,
        )  # fmt: skip

    def context(self, control: Control) -> Context:
        if self.scratch is None:
            return Context(control, Jail)
        return Context(control, Jail, scratch_file=self.scratch.file)

    def __enter__(self) -> Self:
        self.bell.start()
        self.heartbeat.start()
        self.runner.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop as a process does that is asked to."""
        if not self.leases.stopping.is_set():
            self.leases.stopping.set()
            self.leases.interrupted.set()
            assert self.runner.join(PATIENCE_SECONDS)
            self.heartbeat.stop()
            self.bell.close()


class Desk:
    """What an operator does and sees, by the policies of the control plane."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def add_library(self, root: Path, **settings: Any) -> None:
        with self.database.write() as conn:
            libraries.create(
                conn,
                DEFAULT_TENANT,
                slug=LIBRARY,
                name="Pictures",
                root=bytes(root),
                **settings,
            )

    def create(self, kind: JobKind, **options: Any) -> int:
        with self.database.write() as conn:
            job = admission.create(conn, admission.Wanted(kind, LIBRARY, **options))
        return int(planning.plan(self.database, job)["id"])

    def probe(self, seconds: float = 0, scratch_bytes: int = 0, **options: Any) -> int:
        """Ask for a probe; `probe_items` cuts it into items."""
        wanted = admission.Wanted(
            JobKind.PROBE, probe=ProbePayload(seconds, scratch_bytes), **options
        )
        with self.database.write() as conn:
            return int(admission.create(conn, wanted)["id"])

    def probes(self, number: int, **options: Any) -> list[int]:
        """Ask for many probes that take no time."""
        wanted = [admission.Wanted(JobKind.PROBE, **options)] * number
        with self.database.write() as conn:
            return [int(row["id"]) for row in admission.create_many(conn, wanted)]

    def cancel(self, job_id: int) -> None:
        with self.database.write() as conn:
            admission.cancel(conn, None, job_id)

    def job(self, job_id: int) -> RowMapping:
        with self.database.read() as conn:
            return conn.execute(select(jobs).where(jobs.c.id == job_id)).mappings().one()

    def wait_for(
        self, job_id: int, *statuses: str, seconds: float = PATIENCE_SECONDS
    ) -> RowMapping:
        eventually(lambda: self.job(job_id)["status"] in statuses, seconds)
        return self.job(job_id)

    def run(self, kind: JobKind) -> RowMapping:
        """Ask for a job and wait until it has ended."""
        return self.wait_for(self.create(kind), "completed", "failed", "cancelled")

    def items(self, job_id: int) -> list[RowMapping]:
        with self.database.read() as conn:
            query = select(job_items).where(job_items.c.job_id == job_id).order_by(job_items.c.id)
            return list(conn.execute(query).mappings())

    def history(self, job_id: int) -> list[str]:
        with self.database.read() as conn:
            query = select(events.c.type).where(events.c.job_id == job_id).order_by(events.c.id)
            return list(conn.scalars(query))

    def files(self) -> dict[bytes, RowMapping]:
        with self.database.read() as conn:
            found = conn.execute(select(library_files)).mappings()
            return {bytes(row["rel_path"]): row for row in found}

    def workers(self) -> dict[str, str]:
        with self.database.read() as conn:
            query = select(worker_status.c.worker_id, worker_status.c.state)
            return {row.worker_id: row.state for row in conn.execute(query)}

    def worker(self, worker_id: str) -> RowMapping:
        with self.database.read() as conn:
            query = select(worker_status).where(worker_status.c.worker_id == worker_id)
            return conn.execute(query).mappings().one()

    def command(self, worker_id: str, command: WorkerCommand) -> None:
        with self.database.write() as conn:
            assert workers.command(conn, worker_id, command)

    def change(self, sql: str, **parameters: Any) -> None:
        """Change rows behind the back of everybody."""
        with self.database.write() as conn:
            assert conn.execute(text(sql), parameters).rowcount > 0


@pytest.fixture
def desk(database: Databases) -> Desk:
    return Desk(database.control)


@contextmanager
def control_loops(database: Databases) -> Iterator[None]:
    """The loops of the control plane, in a hurry."""
    stop = threading.Event()
    settings = ControlSettings(
        recovery_seconds=0.1, absorb_seconds=0.01, retry_base_seconds=0.1, retry_jitter=0
    )
    threads = loops.start(database.control, settings, Tokens(database.control), stop)
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
