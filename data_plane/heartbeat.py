"""Keeps the leases of this worker alive, reports progress and hears of cancellation."""

import logging
import threading
import time
from typing import Any

from sqlalchemy import bindparam, text

from data_plane.leases import Held, Leases
from data_plane.settings import DataSettings
from mediaplane.protocol import gate
from mediaplane.protocol import write_paths as paths
from mediaplane.protocol.database import Database
from mediaplane.protocol.machines import JOB_ITEMS, JOBS
from mediaplane.protocol.values import JobStatus, WorkerState

log = logging.getLogger(__name__)

_PRESENCE_SECONDS = 15.0
_JOBS_OF = text("SELECT id, status, cancel_requested_at FROM jobs WHERE id IN :ids").bindparams(
    bindparam("ids", expanding=True)
)
_SHARDS_DONE = text(
    "SELECT coalesce(sum(processed_items), 0), coalesce(sum(processed_bytes), 0)"
    " FROM job_items WHERE job_id = :job"
)


class Heartbeat:
    """One thread per worker; whatever happens to it, leases expire by the database's clock."""

    def __init__(self, database: Database, leases: Leases, settings: DataSettings) -> None:
        self._database = database
        self._leases = leases
        self._settings = settings
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._renewed_at = time.monotonic()
        self._present_at = float("-inf")

    def start(self) -> None:
        """Make this worker known and begin to beat."""
        self._announce(WorkerState.IDLE)
        self._thread.start()

    def stop(self) -> None:
        """Beat no more, and say so."""
        self._stop.set()
        self._thread.join()
        self._announce(WorkerState.OFFLINE)

    def _run(self) -> None:
        # However rarely progress is wanted, a lease must not lapse in between.
        seconds = min(self._settings.progress_seconds, self._settings.lease_seconds / 3)
        while not self._stop.wait(seconds):
            try:
                self._beat()
            except Exception:
                # Whatever it was: a worker whose heart stops for good would lose all its work.
                log.exception("A heartbeat could not be written")

    def _beat(self) -> None:
        held = self._leases.all()
        if held:
            self._hear(held)
            self._report(held)
        if time.monotonic() - self._renewed_at >= self._settings.lease_seconds / 3:
            self._renew(held)
        if time.monotonic() - self._present_at >= _PRESENCE_SECONDS:
            self._announce(WorkerState.PROCESSING if held else WorkerState.IDLE)

    def _hear(self, held: list[Held]) -> None:
        """Pass on what was decided about the jobs behind the held rows."""
        with self._database.read() as conn:
            rows = conn.execute(_JOBS_OF, {"ids": sorted({one.job_id for one in held})}).all()
        jobs = {row.id: row for row in rows}
        for one in held:
            job = jobs.get(one.job_id)
            if job is None:
                one.control.lost.set()
            elif job.cancel_requested_at is not None or job.status == JobStatus.CANCELLED:
                one.control.cancelled.set()

    def _report(self, held: list[Held]) -> None:
        """Write the progress that was made since the last time."""
        for one in held:
            figures = self._figures(one)
            if figures is None or figures == one.told:
                continue
            with self._database.write(one.machine.step("heartbeat").path) as conn:
                is_owner = self._write(conn, one, *figures)
            one.told = figures
            if not is_owner:
                one.control.lost.set()

    def _figures(self, one: Held) -> tuple[int, int] | None:
        if one.machine is JOBS and one.row["total_items"] is not None:
            with self._database.read() as conn:
                items, size = conn.execute(_SHARDS_DONE, {"job": one.job_id}).one()
            return int(items), int(size)
        return one.control.items, one.control.bytes

    def _write(self, conn: Any, one: Held, items: int, size: int) -> bool:
        columns: dict[str, Any] = {"processed_items": items}
        if one.machine is JOB_ITEMS:
            columns["processed_bytes"] = size
        elif one.row["total_bytes"]:
            columns["progress"] = min(1.0, size / one.row["total_bytes"])
        return gate.take(conn, one.machine, "heartbeat", one.lessee.row_id, one.lessee,
                         self._settings.lease_seconds, **columns)  # fmt: skip

    def _renew(self, held: list[Held]) -> None:
        """Extend all leases, one statement for each table."""
        for machine in (JOBS, JOB_ITEMS):
            mine = [one for one in held if one.machine is machine]
            if not mine:
                continue
            leases = {one.lessee.row_id: one.lessee.epoch for one in mine}
            with self._database.write(machine.step("heartbeat").path) as conn:
                kept = gate.heartbeat(
                    conn, machine, self._leases.worker_id, leases, self._settings.lease_seconds
                )
            for one in mine:
                if one.lessee.row_id not in kept:
                    one.control.lost.set()
        self._renewed_at = time.monotonic()

    def _announce(self, state: WorkerState) -> None:
        held = self._leases.all()
        stats = {"running": len(held), "slots": self._settings.slots}
        with self._database.write(paths.REGISTER_WORKER) as conn:
            gate.announce_worker(conn, self._leases.worker_id, state, stats)
        self._present_at = time.monotonic()
