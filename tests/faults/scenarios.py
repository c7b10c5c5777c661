"""Short lives of processes that kill themselves at a chosen step on their way to the database."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import RowMapping

from control_plane.policy import admission, bites, planning, recovery, regrouping, trash
from control_plane.policy.admission import Wanted
from control_plane.policy.backoff import Backoff
from control_plane.store import jobs
from data_plane.executor import Context, Retry
from data_plane.registry import EXECUTORS
from mediaplane.errors import FailedPrecondition
from mediaplane.protocol.database import Database
from mediaplane.protocol.kinds import ProbePayload
from mediaplane.protocol.values import JobKind, Plane, WorkerState
from tests.faults.witness import Deed, witnessed
from tests.support.planes import Worker

AT_ONCE = Backoff(0, 0, 0)
PAYLOAD = ProbePayload(scratch_bytes=1000)
# By their request ids: what a worker meets, best first.
DEEDS = ("plain", "beat", "retry", "cancel", "release")
ITEMS = 3
# The one that goes to the trash and comes back.
LIBRARY = "photos"


def work_mortally(url: str, account: str, die_at: int) -> None:
    """Do one job of each sort, up to the point of death."""
    database, control = Database(url, Plane.DATA), Database(url, Plane.CONTROL)
    worker = Worker(database, f"mortal-{die_at}", lease_seconds=60)
    EXECUTORS[JobKind.PROBE] = witnessed(Path(account), _deeds(worker, control))
    _die(database.engine, die_at)
    worker.heartbeat.announce()
    while not worker.leases.stopping.is_set():
        worker.runner.work_once()
    worker.heartbeat.announce(WorkerState.OFFLINE)


def govern_mortally(url: str, die_at: int, cancelled: int, hurried: int) -> None:
    """Do everything a control plane decides about jobs, up to the point of death."""
    database = Database(url, Plane.CONTROL)
    _die(database.engine, die_at)
    govern(database, cancelled, hurried)


def plan_mortally(url: str, die_at: int) -> None:
    """Plan the hash that was admitted, bite by bite, up to the point of death."""
    database = Database(url, Plane.CONTROL)
    take_small_bites()
    _die(database.engine, die_at)
    planning.resume(database)


def remove_mortally(url: str, die_at: int) -> None:
    """Move a library to the trash and count its groups anew, up to the point of death."""
    database = Database(url, Plane.CONTROL)
    take_small_bites()
    _die(database.engine, die_at)
    with database.write() as conn:
        trash.delete(conn, None, LIBRARY)
    regrouping.settle(database, LIBRARY)


def restore_mortally(url: str, die_at: int) -> None:
    """Take a library out of the trash and count its groups anew, up to the point of death."""
    database = Database(url, Plane.CONTROL)
    take_small_bites()
    _die(database.engine, die_at)
    trash.restore(database, None, LIBRARY)
    regrouping.settle(database, LIBRARY)


def take_small_bites() -> None:
    """Have one row changed with each bite, and no pause made: it is all the same to the rows."""
    bites._FIRST_ROWS = bites._FEWEST_ROWS = bites._MOST_ROWS = 1
    bites.PAUSE_SECONDS = 0


def govern(database: Database, cancelled: int, hurried: int) -> None:
    """Admit, cancel, put back and recover; who repeats it changes nothing."""
    with database.write() as conn:
        admission.create(conn, wanted("one"))
    with database.write() as conn:
        admission.create(conn, wanted("cut", ITEMS))
    with database.write() as conn:
        admission.create_many(conn, [wanted("first"), wanted("second")])
    with database.write() as conn:
        admission.cancel(conn, None, cancelled)
    with database.write() as conn, suppress(FailedPrecondition):  # it waits already
        admission.retry(conn, None, hurried)
    recovery.recover(database, AT_ONCE)


def wanted(request_id: str, items: int = 0, priority: int = 0) -> Wanted:
    return Wanted(JobKind.PROBE, request_id=request_id, priority=priority, max_attempts=100,
                  probe=PAYLOAD, probe_items=items)  # fmt: skip


def _die(engine: Engine, die_at: int) -> None:
    """Before each statement and before the commit of every write the process may end.

    Whoever dies after a commit or in a read dies before the next write: nothing lies between.
    """
    points = count(1)

    def step(conn: Connection, *_: object) -> None:
        if "mediaplane_topics" in conn.info and next(points) == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(engine, "before_cursor_execute", step)
    event.listen(engine, "commit", step)


def _deeds(worker: Worker, control: Database) -> Deed:
    def beat() -> None:
        worker.heartbeat._renewed_at = float("-inf")
        worker.heartbeat._beat()

    def request_of(job_id: int) -> str:
        with control.read() as conn:
            (job,) = jobs.get_many(conn, None, [job_id])
            return str(job["request_id"])

    def act(row: RowMapping, ctx: Context, probe: Callable[[], None]) -> None:
        probe()
        match None if "job_id" in row else request_of(row["id"]):
            case None | "beat":  # None: an item
                ctx.control.items = 1
                beat()
            case "retry":
                raise Retry("not_now", "Not this time.")
            case "cancel":
                with control.write() as conn:
                    admission.cancel(conn, None, row["id"])
                beat()
            case "release":
                worker.leases.stopping.set()
                worker.leases.interrupted.set()
        ctx.control.check()

    return act
