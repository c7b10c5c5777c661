"""Claims work, has it done, and turns its outcome into exactly one step."""

import logging
import threading
from collections.abc import Callable
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import InterfaceError, OperationalError

from data_plane.executor import (
    Cancelled,
    Context,
    Control,
    Executor,
    Fail,
    HashResult,
    Interrupted,
    LeaseLost,
    Retry,
)
from data_plane.leases import Held, Leases
from data_plane.registry import EXECUTORS
from data_plane.settings import DataSettings
from mediaplane.protocol import gate
from mediaplane.protocol import write_paths as paths
from mediaplane.protocol.clock import NOW_SQL
from mediaplane.protocol.database import Database
from mediaplane.protocol.kinds import KINDS
from mediaplane.protocol.machines import JOB_ITEMS, JOBS
from mediaplane.protocol.values import JobKind

log = logging.getLogger(__name__)

_SHARD_WAIT_SECONDS = 0.05

# Looked at before every claim, because a claim takes SQLite's write lock and a look does not.
_ANYTHING = (
    "SELECT EXISTS (SELECT 1 FROM jobs WHERE status = 'pending')"
    " OR EXISTS (SELECT 1 FROM jobs j JOIN job_items i ON i.job_id = j.id"
    "  WHERE j.status = 'running' AND i.status = 'pending')"
    " OR EXISTS (SELECT 1 FROM jobs WHERE status = 'running'"
    "  AND (lease_expires_at IS NULL OR lease_expires_at <= {now}))"
    " OR EXISTS (SELECT 1 FROM jobs j JOIN job_items i ON i.job_id = j.id"
    "  WHERE j.status = 'running' AND i.status = 'running'"
    "  AND (i.lease_expires_at IS NULL OR i.lease_expires_at <= {now}))"
)
_UNFINISHED = text(
    "SELECT EXISTS (SELECT 1 FROM job_items WHERE job_id = :job"
    " AND status IN ('pending', 'running'))"
)
_DONE = text(
    "SELECT coalesce(sum(processed_items), 0),"
    " coalesce(sum(CASE WHEN status = 'failed' THEN 1 ELSE 0 END), 0)"
    " FROM job_items WHERE job_id = :job"
)


class Runner:
    """The slots of a worker."""

    def __init__(
        self,
        database: Database,
        leases: Leases,
        settings: DataSettings,
        context: Callable[[Control], Context],
    ) -> None:
        self._database = database
        self._leases = leases
        self._settings = settings
        self._context = context
        self._anything = text(_ANYTHING.format(now=NOW_SQL[database.dialect]))
        self._threads = [
            threading.Thread(target=self._slot, name=f"slot-{number}", daemon=True)
            for number in range(settings.slots)
        ]

    def start(self) -> None:
        """Begin to claim."""
        for thread in self._threads:
            thread.start()

    def join(self, seconds: float) -> bool:
        """Wait for the slots to end once `leases.stopping` is set; False if one did not."""
        for thread in self._threads:
            thread.join(seconds)
        return not any(thread.is_alive() for thread in self._threads)

    def _slot(self) -> None:
        stopping = self._leases.stopping
        while not stopping.is_set():
            try:
                if not self.work_once():
                    stopping.wait(self._settings.poll_seconds)
            except Exception:
                # Leases lapse and the work is done again; here nothing can be written anyway.
                # Not only SQLAlchemy's errors: those of a new connection come as the driver's own.
                log.exception("The database could not be used")
                stopping.wait(1.0)

    def work_once(self) -> bool:
        """Claim one job or one shard and do it; False when there was nothing to do."""
        with self._database.read() as conn:
            if not conn.execute(self._anything).scalar():
                return False
        job = self._claim_job()
        if job is not None:
            self._run_job(job)
            return True
        item = self._claim_item("true", {})
        if item is not None:
            self._run_item(item)
        return item is not None

    def _claim_job(self) -> RowMapping | None:
        """Put back what silent workers held, then claim the best job."""
        claim, recover = JOBS.step("claim"), JOBS.step("recover")
        with self._database.write(claim.path, recover.path, paths.APPEND_EVENT) as conn:
            gate.take_all(conn, JOBS, "recover", "true")
            kinds = ", ".join(f"'{kind}'" for kind in EXECUTORS)
            rows = gate.claim(conn, JOBS, "claim", self._leases.worker_id,
                              self._settings.lease_seconds, 1, f"kind IN ({kinds})")  # fmt: skip
        return rows[0] if rows else None

    def _claim_item(self, where: str, parameters: dict[str, Any]) -> RowMapping | None:
        claim, recover = JOB_ITEMS.step("claim"), JOB_ITEMS.step("recover")
        with self._database.write(claim.path, recover.path) as conn:
            gate.take_all(conn, JOB_ITEMS, "recover", where, parameters)
            rows = gate.claim(conn, JOB_ITEMS, "claim", self._leases.worker_id,
                              self._settings.lease_seconds, 1, where, parameters)  # fmt: skip
        return rows[0] if rows else None

    def _run_job(self, job: RowMapping) -> None:
        kind = JobKind(job["kind"])
        with self._leases.hold(JOBS, job) as held:
            if KINDS[kind].item_payload is not None:
                self._conclude(held, lambda: self._run_shards(held), None)
            else:
                executor = EXECUTORS[kind]
                self._conclude(held, lambda: self._execute(executor, held), executor)

    def _run_item(self, item: RowMapping) -> None:
        with self._database.read() as conn:
            query = text("SELECT kind FROM jobs WHERE id = :job")
            kind = JobKind(conn.execute(query, {"job": item["job_id"]}).scalar_one())
        executor = EXECUTORS[kind]
        with self._leases.hold(JOB_ITEMS, item) as held:
            self._conclude(held, lambda: self._execute(executor, held), executor)

    def _execute(self, executor: Executor, held: Held) -> Any:
        task = executor.prepare(self._database, held.row)
        return executor.run(task, self._context(held.control))

    def _run_shards(self, held: Held) -> None:
        """Do the shards of a job, with whoever else does them, until none is left."""
        mine = ("job_id = :job", {"job": held.job_id})
        while True:
            held.control.check()
            item = self._claim_item(*mine)
            if item is not None:
                self._run_item(item)
                continue
            with self._database.read() as conn:
                is_done = not conn.execute(_UNFINISHED, {"job": held.job_id}).scalar()
                items, failed = conn.execute(_DONE, {"job": held.job_id}).one()
            if is_done:
                break
            held.control.wait(_SHARD_WAIT_SECONDS)
        held.control.items = int(items)
        if failed:
            raise Fail(
                "shards_failed",
                f"{failed} shards failed and the rest is done; `mediaplane job show"
                f" {held.job_id} --items` says why. Starting the job again does what is left.",
            )

    def _conclude(self, held: Held, work: Callable[[], Any], executor: Executor | None) -> None:
        """Do the work and take the one step that its outcome calls for."""
        try:
            self._complete(held, work(), executor)
        except LeaseLost:
            log.warning("Lost the lease on %s %d", held.machine.name, held.lessee.row_id)
        except Interrupted:
            self._finish(held, "release")
        except Cancelled:
            self._finish(held, "cancel")
        except Retry as outcome:
            self._put_back(held, outcome.code, str(outcome))
        except Fail as outcome:
            self._finish(held, "fail", **_reason(held, outcome.code, str(outcome)))
        except (OperationalError, InterfaceError):
            raise  # nothing can be written now; the lease lapses and the work is put back
        except Exception:
            log.exception("%s %d failed", held.machine.name, held.lessee.row_id)
            self._put_back(held, "internal", "The worker met an unexpected error; see its log.")

    def _complete(self, held: Held, result: Any, executor: Executor | None) -> None:
        message = _message(result)
        step = held.machine.step("fail" if message else "complete")
        figures: dict[str, Any] = {}
        if held.machine is JOBS:
            figures["progress"] = 1.0
        else:
            figures |= {
                "processed_items": held.control.items,
                "processed_bytes": held.control.bytes,
                "message": message,
            }
        beat = held.machine.step("heartbeat").path
        recorded = executor.paths if executor else ()
        with self._database.write(step.path, beat, paths.APPEND_EVENT, *recorded) as conn:
            if held.machine is JOBS:
                gate.take(conn, JOBS, "heartbeat", held.lessee.row_id, held.lessee,
                          self._settings.lease_seconds,
                          processed_items=held.control.items)  # fmt: skip
            if gate.take(conn, held.machine, step.name, held.lessee.row_id, held.lessee,
                         **figures):  # fmt: skip
                if executor:
                    executor.record(conn, result)
                return
        log.warning("Lost the lease on %s %d", held.machine.name, held.lessee.row_id)

    def _put_back(self, held: Held, code: str, message: str) -> None:
        step = "retry" if held.machine is JOBS else "fail"
        self._finish(held, step, **_reason(held, code, message))

    def _finish(self, held: Held, step_name: str, **values: Any) -> None:
        step = held.machine.step(step_name)
        with self._database.write(step.path, paths.APPEND_EVENT) as conn:
            row_id = held.lessee.row_id
            taken = gate.take(conn, held.machine, step_name, row_id, held.lessee, **values)
        if not taken:
            log.warning("Lost the lease on %s %d", held.machine.name, held.lessee.row_id)


def _reason(held: Held, code: str, message: str) -> dict[str, Any]:
    if held.machine is JOBS:
        return {"error_code": code, "error_message": message}
    return {"message": message}


def _message(result: Any) -> str | None:
    """Return why a shard that did what it could is not complete."""
    if isinstance(result, HashResult) and result.left:
        return f"{result.left} files were left out because their library's folder is not there."
    return None
