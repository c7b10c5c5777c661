"""Keeps the leases of this worker alive, reports progress, and hears what is wanted of it."""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import text

from data_plane.leases import Claimed, Held, HeldMedia, Leases
from data_plane.media import paused_libraries
from data_plane.settings import DataSettings
from mediaplane import __version__
from mediaplane.protocol import gate
from mediaplane.protocol import write_paths as paths
from mediaplane.protocol.bell import Bell
from mediaplane.protocol.database import Database, Topic
from mediaplane.protocol.driver import Row
from mediaplane.protocol.lifecycle import Machine
from mediaplane.protocol.machines import JOB_ITEMS
from mediaplane.protocol.statements import among, id_list
from mediaplane.protocol.tally import TALLIES
from mediaplane.protocol.values import JobStatus, Plane, WorkerCommand, WorkerState

log = logging.getLogger(__name__)

_PRESENCE_SECONDS = 15.0
# However often somebody rings: the database is not asked more often.
_REST_SECONDS = 0.05
_COMMAND = text("SELECT command, commanded_at FROM worker_status WHERE worker_id = :worker")
_ITEMS_DONE = text(
    "SELECT coalesce(sum(processed_items), 0), coalesce(sum(processed_bytes), 0)"
    " FROM job_items WHERE job_id = :job"
)


class Heartbeat:
    """One thread per worker; whatever happens to it, leases expire by the database's clock."""

    def __init__(
        self,
        database: Database,
        leases: Leases,
        settings: DataSettings,
        bell: Bell,
        obey: Callable[[WorkerCommand], None],
        stats: Callable[[], dict[str, Any]],
        upkeep: Callable[[], None] = lambda: None,
    ) -> None:
        self._database = database
        self._leases = leases
        self._settings = settings
        self._obey = obey
        self._stats = stats
        self._upkeep = upkeep
        self._ear = bell.listen(Topic.ORDERS)
        self._jobs_of = text(
            "SELECT id, status, cancel_requested_at FROM jobs WHERE "
            + among("id", "ids", database.dialect)
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._renewed_at = time.monotonic()
        self._present_at = float("-inf")
        self._obeyed_at: int | None = None

    def start(self) -> None:
        """Make this worker known and begin to beat."""
        self.announce()
        self._thread.start()

    def stop(self) -> None:
        """Beat no more, and say so."""
        self._stop.set()
        self._ear.ring()
        self._thread.join()
        self.announce(WorkerState.OFFLINE)

    def announce(self, state: WorkerState | None = None) -> None:
        """Say that this worker is there and what it does."""
        held = self._leases.all()
        if state is None:
            state = WorkerState.PROCESSING if held else WorkerState.IDLE
            if self._leases.paused.is_set():
                state = WorkerState.PAUSED
        stats = {
            "running": len(held),
            "slots": self._settings.slots,
            "priority_slots": self._settings.priority_slots,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "version": __version__,
            **self._stats(),
        }
        with self._database.write(paths.REGISTER_WORKER) as conn:
            gate.announce_worker(conn, self._leases.worker_id, state, stats)
        self._present_at = time.monotonic()

    def _run(self) -> None:
        # However rarely progress is wanted, a lease must not lapse in between.
        seconds = min(self._settings.progress_seconds, self._settings.lease_seconds / 3)
        while not self._stop.is_set():
            try:
                self._beat()
            except Exception:
                # Whatever it was: a worker whose heart stops for good would lose all its work.
                log.exception("A heartbeat could not be written")
            self._stop.wait(_REST_SECONDS)
            self._ear.wait(seconds)

    def _beat(self) -> None:
        self._upkeep()
        held = [one for one in self._leases.all() if not one.is_ended]
        self._hear(held)
        self._report(held)
        if time.monotonic() - self._present_at >= _PRESENCE_SECONDS:
            self.announce()

    def _hear(self, held: Sequence[Claimed]) -> None:
        """Pass on what was decided about the jobs behind the held rows, and about this worker."""
        media = [one for one in held if isinstance(one, HeldMedia)]
        work = [one for one in held if isinstance(one, Held)]
        ids = id_list({one.job_id for one in work}, self._database.dialect)
        with self._database.read() as conn:
            jobs = (
                {row.id: row for row in conn.execute(self._jobs_of, {"ids": ids})} if work else {}
            )
            paused = paused_libraries(conn) if media else set()
            told = conn.execute(_COMMAND, {"worker": self._leases.worker_id}).first()
        for picture in media:
            if picture.library in paused:
                picture.control.cancelled.set()
        for one in work:
            job = jobs.get(one.job_id)
            if job is None:
                one.control.lost.set()
            elif job.cancel_requested_at is not None or job.status == JobStatus.CANCELLED:
                one.control.cancelled.set()
        if told and told.commanded_at != self._obeyed_at:
            self._obeyed_at = told.commanded_at
            self._obey(WorkerCommand(told.command))

    def _report(self, held: Sequence[Claimed]) -> None:
        """Extend the leases when it is time, and write the progress made since the last time."""
        is_due = time.monotonic() - self._renewed_at >= self._settings.lease_seconds / 3
        for machine in {one.machine.name: one.machine for one in held}.values():
            mine = {one.lessee.row_id: one for one in held if one.machine is machine}
            news = {}
            for row_id, one in mine.items():
                done = self._done(one)
                if done != one.told:
                    news[row_id] = done
            beating = mine if is_due else {row_id: mine[row_id] for row_id in news}
            if beating:
                self._beat_all(machine, beating, news)
        if is_due:
            self._renewed_at = time.monotonic()

    def _beat_all(
        self, machine: Machine, held: dict[int, Claimed], news: dict[int, tuple[int, int]]
    ) -> None:
        leases = {row_id: one.lessee.epoch for row_id, one in held.items()}
        figures = {row_id: _figures(held[row_id], *done) for row_id, done in news.items()}
        with self._database.write(*paths.paths_of(machine, "heartbeat")) as conn:
            kept: dict[int, Row] = gate.heartbeat(
                conn, machine, self._leases.worker_id, leases, self._settings.lease_seconds, figures
            )
        for row_id, one in held.items():
            if row_id in kept:
                # Only now: who ends the row meanwhile has to tell what was not told yet.
                one.told = news.get(row_id, one.told)
            elif not one.is_ended:
                log.warning("Lost the lease on %s", one)
                TALLIES[Plane.DATA].stale_writes.add(machine.name)
                one.control.lost.set()

    def _done(self, one: Claimed) -> tuple[int, int]:
        if not isinstance(one, Held):
            return one.told  # of a picture there is nothing to tell before it is made
        if not one.is_cut:
            return one.control.items, one.control.bytes
        with self._database.read() as conn:
            items, size = conn.execute(_ITEMS_DONE, {"job": one.job_id}).one()
        return int(items), int(size)


def _figures(one: Claimed, items: int, size: int) -> dict[str, Any]:
    if one.machine is JOB_ITEMS:
        return {"processed_items": items, "processed_bytes": size}
    done, total = (size, "total_bytes") if one.row["total_bytes"] else (items, "total_items")
    if not one.row[total]:
        return {"processed_items": items}
    return {"processed_items": items, "progress": min(1.0, done / one.row[total])}
