"""Carries out the checkpoints of SQLite's log that the control plane asks for, one at a time."""

import logging
import sqlite3
import threading
import time
from typing import Any

from sqlalchemy import text

from data_plane.leases import Claimed, Leases
from data_plane.settings import DataSettings
from mediaplane.protocol import gate, wal
from mediaplane.protocol.clock import NOW_SQL, database_time
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.machines import WAL_MAINTENANCE_JOBS
from mediaplane.protocol.values import CheckpointMode
from mediaplane.protocol.write_paths import paths_of

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.5
# Between two tries, twice as long each time. Not longer: until one gets through, work may wait.
_RETRY_SECONDS = 1.0
_MAX_RETRY_SECONDS = 5.0

_NOW = NOW_SQL["sqlite"]
_DUE = text(
    "SELECT 1 FROM wal_maintenance_jobs WHERE status IN ('pending', 'retryable')"
    f" AND execute_after <= {_NOW} AND (retry_after IS NULL OR retry_after <= {_NOW}) LIMIT 1"
)
_EXPIRED = text(
    "SELECT 1 FROM wal_maintenance_jobs WHERE status = 'running'"
    f" AND (lease_expires_at IS NULL OR lease_expires_at <= {_NOW}) LIMIT 1"
)


class Checkpoints:
    """A thread of its own, so that no checkpoint waits for work to end; idle on PostgreSQL."""

    def __init__(self, database: Database, leases: Leases, settings: DataSettings) -> None:
        self._database = database
        self._leases = leases
        self._lease_seconds = settings.lease_seconds
        self._thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)

    def start(self) -> None:
        """Begin to look for checkpoints."""
        if self._database.dialect == "sqlite":
            self._thread.start()

    def join(self, seconds: float) -> bool:
        """Wait for the end once `leases.stopping` is set; False if it did not come."""
        if self._thread.is_alive():
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def work_once(self) -> bool:
        """Claim the checkpoint that is due and carry it out; False when there was none."""
        self._recover()
        row = self._claim()
        if row is None:
            return False
        with self._leases.hold_one(WAL_MAINTENANCE_JOBS, row) as held:
            step, values = self._carry_out(row)
            held.is_ended = True
            self._finish(held, step, values)
        return True

    def _run(self) -> None:
        stopping = self._leases.stopping
        while not stopping.wait(_LOOK_SECONDS):
            try:
                # Also while the worker is paused: its calls and beats go on writing to the log.
                self.work_once()
            except Exception:
                # The lease lapses and the checkpoint is tried again.
                log.exception("A checkpoint met an error")

    def _is_any(self, query: Any) -> bool:
        with self._database.read() as conn:
            return conn.execute(query).first() is not None

    def _claim(self) -> Row | None:
        if not self._is_any(_DUE):
            return None
        with self._database.write(*paths_of(WAL_MAINTENANCE_JOBS, "claim")) as conn:
            rows = gate.claim(
                conn,
                WAL_MAINTENANCE_JOBS,
                "claim",
                self._leases.worker_id,
                self._lease_seconds,
                1,
            )
        return rows[0] if rows else None

    def _carry_out(self, row: Row) -> tuple[str, dict[str, Any]]:
        """Return the step that the checkpoint ends with, and what there is to write."""
        began_at = time.monotonic()
        try:
            done = wal.checkpoint(self._database, CheckpointMode(row["requested_mode"]))
        except sqlite3.Error as error:
            log.warning("Checkpoint %d failed: %s", row["id"], error)
            return "fail", _reason(
                "checkpoint_failed",
                f"SQLite reports: {error}. Look after the disk of the database and ask again.",
            )
        log.info("Checkpoint %d: %s in %.3f s", row["id"], done, time.monotonic() - began_at)
        figures = {
            "checkpoint_busy": done.busy,
            "checkpoint_log_frames": done.log_frames,
            "checkpointed_frames": done.frames,
        }
        if done.is_complete:
            return "complete", figures
        reason = _held_up(done)
        if not row["retry_count"]:
            log.warning("Checkpoint %d is tried again: %s", row["id"], reason["error_message"])
        return "retry", figures | reason

    def _finish(self, held: Claimed, step: str, values: dict[str, Any]) -> None:
        with self._database.write(*paths_of(WAL_MAINTENANCE_JOBS, step)) as conn:
            if step == "retry":
                values = values | {"retry_after": _retry_after(conn, held.row)}
            if not gate.finish(conn, WAL_MAINTENANCE_JOBS, step, [(held.lessee, values)]):
                log.warning("Lost the lease on %s before its %s", held, step)

    def _recover(self) -> None:
        """Have a checkpoint tried again whose worker has gone silent."""
        if not self._is_any(_EXPIRED):
            return
        with self._database.write(*paths_of(WAL_MAINTENANCE_JOBS, "recover")) as conn:
            due = database_time(conn) + int(_RETRY_SECONDS * 1000)
            rows = gate.take_all(conn, WAL_MAINTENANCE_JOBS, "recover", "true", retry_after=due)
        for row in rows:
            log.warning("Put back checkpoint %d, whose lease has expired", row["id"])


def _held_up(done: wal.Checkpointed) -> dict[str, Any]:
    """Return why a checkpoint is not complete."""
    if done.log_frames is None:
        return _reason("checkpoint_busy", "Another checkpoint is under way.")
    share = f"{done.frames} of {done.log_frames} frames are in the database"
    if done.busy:
        return _reason("checkpoint_busy", f"A reader or a writer was in the way; {share}.")
    return _reason("checkpoint_incomplete", f"A reader still needs the log; {share}.")


def _retry_after(conn: Any, row: Row) -> int:
    seconds = min(_RETRY_SECONDS * 2.0 ** min(row["retry_count"], 10), _MAX_RETRY_SECONDS)
    return database_time(conn) + int(seconds * 1000)


def _reason(code: str, message: str) -> dict[str, Any]:
    return {"error_code": code, "error_message": message}
