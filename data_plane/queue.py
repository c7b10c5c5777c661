"""Where work comes from and where its outcome goes: the claims and finishes of one worker."""

import logging
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import text

from data_plane.executor import Executor
from data_plane.leases import Held, Leases
from data_plane.registry import EXECUTORS
from data_plane.settings import DataSettings
from mediaplane.protocol import gate, wal
from mediaplane.protocol.clock import NOW_SQL
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.kinds import IS_PLANNED, KINDS
from mediaplane.protocol.lifecycle import Machine
from mediaplane.protocol.machines import JOB_ITEMS, JOBS
from mediaplane.protocol.values import JobKind
from mediaplane.protocol.write_paths import paths_of

log = logging.getLogger(__name__)

# Tiny jobs are taken in batches that last about this long.
_BATCH_SECONDS = 0.05
_RECOVERY_SECONDS = 1.0

# A look takes no lock, a claim takes SQLite's only write lock: so every claim begins with one.
_KNOWN = f"kind IN ({', '.join(repr(str(kind)) for kind in EXECUTORS)})"
# Of the best job that waits and the best whose items wait, the better.
_LOOK = text(
    "SELECT * FROM (SELECT 0 AS job_id, kind, priority, created_at FROM jobs"
    "  WHERE status = 'pending' AND cancel_requested_at IS NULL AND priority >= :least"
    f"  AND {_KNOWN} AND {IS_PLANNED}"
    "  ORDER BY priority DESC, created_at, id LIMIT 1) AS waiting"
    " UNION ALL"
    " SELECT * FROM (SELECT id, kind, priority, created_at FROM jobs"
    "  WHERE status = 'running' AND cancel_requested_at IS NULL AND priority >= :least"
    "  AND total_items IS NOT NULL"
    # With a limit, so that PostgreSQL asks for each job and does not read all items that wait.
    "  AND (SELECT 1 FROM job_items i"
    "   WHERE i.job_id = jobs.id AND i.status = 'pending' LIMIT 1) = 1"
    "  ORDER BY priority DESC, created_at, id LIMIT 1) AS cut"
)
_EXPIRED = (
    "SELECT EXISTS (SELECT 1 FROM jobs WHERE status = 'running'"
    "  AND (lease_expires_at IS NULL OR lease_expires_at <= {now}))"
    " OR EXISTS (SELECT 1 FROM job_items WHERE status = 'running'"
    "  AND (lease_expires_at IS NULL OR lease_expires_at <= {now}))"
)


@dataclass(frozen=True)
class Choice:
    """What to claim: the best rows of one kind of work."""

    machine: Machine
    kind: JobKind | None  # None: the rows say it
    where: str
    parameters: dict[str, Any]
    limit: int = 1

    @classmethod
    def best_job(cls, least_priority: int) -> "Choice":
        """Return the choice of the best job, whichever it is."""
        return cls(JOBS, None, f"{_KNOWN} AND priority >= :least", {"least": least_priority})

    @classmethod
    def items_of(cls, job_id: int, kind: JobKind) -> "Choice":
        """Return the choice of the next item of a job."""
        return cls(JOB_ITEMS, kind, "job_id = :job", {"job": job_id})


@dataclass(slots=True)
class Outcome:
    """The one step that ends a piece of work, and what there is to record with it."""

    held: Held
    step: str
    values: dict[str, Any] = field(default_factory=dict)
    executor: Executor | None = None
    result: Any = None


class Queue:
    """The claims and finishes of one worker."""

    def __init__(self, database: Database, leases: Leases, settings: DataSettings) -> None:
        self._database = database
        self._leases = leases
        self._lease_seconds = settings.lease_seconds
        self._expired = text(_EXPIRED.format(now=NOW_SQL[database.dialect]))
        self._recovered_at = float("-inf")
        self._batch_turn = threading.Lock()
        # Seconds that a job of each kind takes, lately.
        self._pace: dict[JobKind, float] = {}

    def look(self, least_priority: int) -> Choice | None:
        """Return what is best to claim now, if anything is."""
        if self._is_held_back():
            return None
        bound = {"least": least_priority}
        with self._database.read() as conn:
            found = conn.execute(_LOOK, bound).all()
        if not found:
            return None
        best = min(found, key=lambda row: (-row.priority, row.created_at, -row.job_id))
        kind = JobKind(best.kind)
        if best.job_id:
            return Choice.items_of(best.job_id, kind)
        where = "kind = :kind AND priority >= :least"
        return Choice(JOBS, kind, where, bound | {"kind": kind}, self._batch(kind))

    def claim(self, choice: Choice) -> list[Row]:
        """Become the owner of what was chosen; nothing when others were faster."""
        if self._is_held_back():
            return []
        paths = paths_of(choice.machine, "claim")
        with self._database.write(*paths, is_one_statement=True) as conn:
            return self._claim(conn, choice)

    def finish(self, outcomes: Sequence[Outcome], choice: Choice | None) -> list[Row]:
        """Write outcomes and claim what comes next, in one transaction: one wait for the disk."""
        if self._is_held_back():
            choice = None
        steps = {(one.held.machine, one.step) for one in outcomes}
        paths = [path for machine, step in steps for path in paths_of(machine, step)]
        paths += {path for one in outcomes if one.executor for path in one.executor.paths}
        counted = [one for one in outcomes if one.held.machine is JOBS and _untold(one.held)]
        if counted:
            paths += paths_of(JOBS, "heartbeat")
        if choice is not None:
            paths += paths_of(choice.machine, "claim")
        groups = _by_step(outcomes)
        with ExitStack() as turn, self._database.write(*paths) as conn:
            if len(groups) + bool(counted) > 1:
                for machine in (JOBS, JOB_ITEMS):
                    mine = [one.held for one in outcomes if one.held.machine is machine]
                    gate.lock_rows(conn, machine, [held.lessee.row_id for held in mine])
            if counted:
                leases = {one.held.lessee.row_id: one.held.lessee.epoch for one in counted}
                figures = {
                    one.held.lessee.row_id: {"processed_items": one.held.control.items}
                    for one in counted
                }
                gate.heartbeat(conn, JOBS, self._leases.worker_id, leases, self._lease_seconds,
                               figures)  # fmt: skip
            for group in groups:
                self._end(conn, group)
            if choice is None:
                return []
            if choice.limit > 1:
                # Whoever claims steps over the rows that others claim. So the slots of a worker
                # claim one after the other, each until its commit.
                turn.enter_context(self._batch_turn)
            return self._claim(conn, choice)

    def recover(self) -> None:
        """Put back what silent workers held, if it is time to look for that again."""
        if time.monotonic() - self._recovered_at < _RECOVERY_SECONDS:
            return
        self._recovered_at = time.monotonic()
        with self._database.read() as conn:
            if not conn.execute(self._expired).scalar():
                return
        for machine in (JOBS, JOB_ITEMS):
            with self._database.write(*paths_of(machine, "recover")) as conn:
                rows = gate.take_all(conn, machine, "recover", "true")
            for row in rows:
                log.warning("Put back %s %d, whose lease has expired", machine.name, row["id"])

    def note_pace(self, kind: JobKind, seconds: float) -> None:
        """Remember how long a job took."""
        self._pace[kind] = 0.8 * self._pace.get(kind, seconds) + 0.2 * seconds

    def _is_held_back(self) -> bool:
        # What is done is written all the same: it is no more than the slots have in hand.
        return wal.is_congested(self._database)

    def _batch(self, kind: JobKind) -> int:
        # Of a kind not seen yet one job is taken, to find out how long it takes.
        pace = max(self._pace.get(kind, _BATCH_SECONDS), 1e-6)
        return max(1, min(KINDS[kind].batch, int(_BATCH_SECONDS / pace)))

    def _claim(self, conn: Any, choice: Choice) -> list[Row]:
        rows = gate.claim(conn, choice.machine, "claim", self._leases.worker_id,
                          self._lease_seconds, choice.limit, choice.where,
                          choice.parameters)  # fmt: skip
        log.debug("Claimed %d of %s (%s)", len(rows), choice.machine.name, choice.kind)
        return rows

    def _end(self, conn: Any, group: Sequence[Outcome]) -> None:
        machine, step = group[0].held.machine, group[0].step
        taken = gate.finish(conn, machine, step, [(one.held.lessee, one.values) for one in group])
        for one in group:
            if one.held.lessee.row_id not in taken:
                log.warning("Lost the lease on %s before its %s", one.held, step)
            elif one.executor is not None:
                one.executor.record(conn, one.result)
        log.debug("Took %s of %d %s", step, len(taken), machine.name)


def _untold(held: Held) -> bool:
    return held.control.items != held.told[0]


def _by_step(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    groups: dict[tuple[str, str, tuple[str, ...]], list[Outcome]] = {}
    for one in outcomes:
        key = (one.held.machine.name, one.step, tuple(one.values))
        groups.setdefault(key, []).append(one)
    return list(groups.values())
