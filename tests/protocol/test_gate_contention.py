"""Workers, the end of a job and the reaper at the same rows at once: nobody waits in a circle."""

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from sqlalchemy import Connection, select, text

from mediaplane.protocol import gate
from mediaplane.protocol.gate import Lessee
from mediaplane.protocol.machines import JOB_ITEMS, JOBS, MAX_ITEM_CLAIMS
from mediaplane.protocol.tables import job_items, jobs
from mediaplane.protocol.values import Plane
from tests.support.databases import Databases
from tests.support.rows import LONG_AGO, Rows
from tests.support.steps import EPOCH, HELD, LEASE_SECONDS, OTHER_WORKER, WORKER, history_of, write
from tests.support.waiting import PATIENCE_SECONDS

ROUNDS = 200
WEIGHT = 2
ITEMS_EACH = 6


class Field:
    """Two running jobs, each with items of two workers and some that nobody keeps alive."""

    def __init__(self, conn: Connection) -> None:
        rows = Rows(conn)
        total = 3 * ITEMS_EACH * WEIGHT
        self.jobs: list[int] = [
            rows.add("jobs", **HELD, status="running", total_items=total) for _ in range(2)
        ]
        self.of: dict[str, list[int]] = {WORKER: [], OTHER_WORKER: []}
        doomed = {"lease_epoch": MAX_ITEM_CLAIMS, "lease_expires_at": LONG_AGO}
        for job in self.jobs:
            for _ in range(ITEMS_EACH):
                common = {"job_id": job, "status": "running", "total_items": WEIGHT}
                for worker, items in self.of.items():
                    held = HELD | {"worker_id": worker} | common
                    items.append(rows.add("job_items", **held))
                rows.add("job_items", **HELD | doomed | common)

    def finish(self, conn: Connection, worker: str) -> None:
        ended: list[tuple[Lessee, dict[str, Any]]] = [
            (Lessee(item, worker, EPOCH), {}) for item in self.of[worker][::2]
        ]
        random.shuffle(ended)
        gate.finish(conn, JOB_ITEMS, "complete", ended)

    def beat(self, conn: Connection, worker: str) -> None:
        shuffled = random.sample(self.of[worker], len(self.of[worker]))
        figures = {item: {"processed_bytes": 1} for item in shuffled}
        leases = dict.fromkeys(shuffled, EPOCH)
        gate.heartbeat(conn, JOB_ITEMS, worker, leases, LEASE_SECONDS, figures)

    def beat_jobs(self, conn: Connection) -> None:
        shuffled = random.sample(self.jobs, len(self.jobs))
        gate.heartbeat(conn, JOBS, WORKER, dict.fromkeys(shuffled, EPOCH), LEASE_SECONDS,
                       {job: {"progress": 0.5} for job in shuffled})  # fmt: skip

    def end_jobs(self, conn: Connection) -> None:
        ended: list[tuple[Lessee, dict[str, Any]]] = [
            (Lessee(job, WORKER, EPOCH), {}) for job in self.jobs
        ]
        gate.finish(conn, JOBS, "fail", ended[::-1])

    def reap(self, conn: Connection) -> None:
        for step in ("poison", "reap"):
            gate.take_all(conn, JOB_ITEMS, step, "true")


def at_once(database: Databases, field: Field, pool: ThreadPoolExecutor) -> None:
    """Take everybody's steps at the same moment."""
    actions: list[tuple[Plane, Callable[[Connection], None]]] = [
        (Plane.DATA, partial(field.finish, worker=WORKER)),
        (Plane.DATA, partial(field.finish, worker=OTHER_WORKER)),
        (Plane.DATA, partial(field.beat, worker=WORKER)),
        (Plane.DATA, partial(field.beat, worker=OTHER_WORKER)),
        (Plane.DATA, field.beat_jobs),
        (Plane.DATA, field.end_jobs),
        (Plane.CONTROL, field.reap),
    ]
    together = threading.Barrier(len(actions))

    def act(plane: Plane, action: Callable[[Connection], None]) -> None:
        with write(database, plane) as conn:
            conn.execute(text("SELECT 1"))  # the connection is there, the transaction has begun
            together.wait(timeout=PATIENCE_SECONDS)
            action(conn)

    for done in [pool.submit(act, *action) for action in actions]:
        done.result()


def test_nobody_deadlocks_and_the_counters_stay_exact(database: Databases) -> None:
    if database.data.dialect == "sqlite":
        return  # one writer at a time: there is no order to get wrong
    with ThreadPoolExecutor(7) as pool:
        for _ in range(ROUNDS):
            with database.control.write() as conn:
                field = Field(conn)
            at_once(database, field, pool)
    with database.control.read() as conn:
        assert set(conn.scalars(select(jobs.c.status))) == {"failed"}
        assert "running" not in set(conn.scalars(select(job_items.c.status)))
        for row in conn.execute(select(jobs)).mappings():
            ended = row["completed_items"] + row["failed_items"] + row["cancelled_items"]
            assert ended == row["total_items"]
            assert history_of(conn, row["id"])[-1][0] == "job_done"
