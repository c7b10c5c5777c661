"""Claims work, has it done, and turns its outcome into exactly one step."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from sqlalchemy import text
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
    Skip,
)
from data_plane.file_states import explain as explain_os
from data_plane.flight_log import FlightLog, dump_unhandled
from data_plane.hashers import HasherLost, Hashers, NotDone, is_worth_it
from data_plane.lanes import Batch, Lane
from data_plane.leases import Held, Leases
from data_plane.output import RUNS
from data_plane.queue import Choice, Outcome, Queue
from data_plane.registry import EXECUTORS
from data_plane.settings import DataSettings
from mediaplane.protocol.bell import Bell
from mediaplane.protocol.database import Database, Topic, explain
from mediaplane.protocol.driver import Row
from mediaplane.protocol.machines import JOB_ITEMS, JOBS

log = logging.getLogger(__name__)

Waiting = TypeVar("Waiting")

# Tiny jobs that are held back this long by one that is not tiny go back to the queue.
_HELD_BACK_SECONDS = 0.5
_ITEM_WAIT_SECONDS = 0.05
_HANDOVER_SECONDS = 0.002
_WRITE_ATTEMPTS = 4
_ANY_PRIORITY = -(2**31)

_OPEN_ITEMS = text(
    "SELECT DISTINCT status FROM job_items WHERE job_id = :job AND status IN ('pending', 'running')"
)
_DONE_ITEMS = text(
    "SELECT coalesce(sum(processed_items), 0) AS items,"
    " coalesce(sum(CASE WHEN status = 'failed' THEN 1 ELSE 0 END), 0) AS failed,"
    " coalesce(sum(CASE WHEN status = 'cancelled' THEN 1 ELSE 0 END), 0) AS cancelled"
    " FROM job_items WHERE job_id = :job"
)


class Runner:
    """The slots of a worker, in two lanes: one takes any work, one only what is urgent."""

    def __init__(
        self,
        database: Database,
        leases: Leases,
        settings: DataSettings,
        context: Callable[[Control], Context],
        bell: Bell,
        flight_log: FlightLog | None = None,
        hashers: Hashers | None = None,
    ) -> None:
        self._database = database
        self._leases = leases
        self._settings = settings
        self._context = context
        self._flight_log = flight_log
        self._hashers = hashers
        self._queue = Queue(database, leases, settings)
        self._batches: set[Batch] = set()
        # Set by whoever has ended items: those may have been the last of a job.
        self._items_ended = threading.Event()
        self.ended: dict[str, int] = {}  # step → how many pieces of work it has ended
        urgent = Lane(settings.priority_threshold, bell.listen(Topic.WORK))
        usual = Lane(_ANY_PRIORITY, bell.listen(Topic.WORK), reserve=urgent)
        urgent.covered_by = usual
        self._threads = [
            *self._lane("slot", settings.slots, usual),
            *self._lane("urgent", settings.priority_slots, urgent),
        ]

    def start(self) -> None:
        """Begin to claim."""
        for thread in self._threads:
            thread.start()

    def join(self, seconds: float) -> bool:
        """Wait for the slots to end once `leases.stopping` is set; False if one did not."""
        ends_at = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, ends_at - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def hand_back(self) -> None:
        """Write what a job that turns out to be long holds up, and give up what waits behind it."""
        now = time.monotonic()
        for batch in list(self._batches):
            if now - batch.began_at < _HELD_BACK_SECONDS:
                continue
            outcomes = _drain(batch.done)
            outcomes += [Outcome(held, "release") for held in _drain(batch.waiting)]
            if outcomes:
                self._finish(outcomes, None)
                self._leases.forget(one.held for one in outcomes)

    def work_once(self, least_priority: int = _ANY_PRIORITY) -> bool:
        """Claim the best work and do it, with what follows it; False when there was nothing."""
        self._queue.recover()
        choice = self._queue.look(least_priority)
        rows = self._queue.claim(choice) if choice else []
        self._work_off(choice, rows, lambda: self._queue.look(least_priority))
        return bool(rows)

    def _lane(self, name: str, slots: int, lane: Lane) -> list[threading.Thread]:
        return [
            threading.Thread(target=self._slot, args=(lane,), name=f"{name}-{number}", daemon=True)
            for number in range(slots)
        ]

    def _slot(self, lane: Lane) -> None:
        """Of the idle slots of a lane one looks for work, and the next takes its place."""
        stopping = self._leases.stopping
        while not stopping.is_set():
            try:
                with lane.place():
                    choice, rows = self._await_work(lane)
                self._work_off(choice, rows, lambda: self._queue.look(lane.least_priority))
            except Exception:
                # Leases lapse and the work is done again; here nothing can be written anyway.
                # Not only SQLAlchemy's errors: those of a new connection come as the driver's own.
                log.exception("The database could not be used")
                stopping.wait(1.0)

    def _await_work(self, lane: Lane) -> tuple[Choice | None, list[Row]]:
        # Whoever had this place before begins its work now: that goes first.
        is_rung = lane.ear.wait(_HANDOVER_SECONDS)
        while not self._leases.stopping.is_set():
            if not (self._leases.paused.is_set() or lane.is_covered):
                choice: Choice | None
                if is_rung:
                    # Who is woken for a new job takes it at once, without a look at the queue.
                    choice = Choice.best_job(lane.least_priority)
                else:
                    self._queue.recover()
                    choice = self._queue.look(lane.least_priority)
                rows = self._queue.claim(choice) if choice else []
                if rows:
                    return choice, rows
                if choice:
                    is_rung = False
                    continue  # others were faster; there may be more
            is_rung = lane.ear.wait(self._settings.poll_seconds)
        return None, []

    def _work_off(
        self,
        choice: Choice | None,
        rows: list[Row],
        look: Callable[[], Choice | None],
    ) -> None:
        """Do what was claimed; claim what comes next together with each finish."""
        while choice and rows:
            with self._leases.hold(choice.machine, choice.kind, rows) as held:
                outcomes = self._perform(held)
                is_put_back = any(one.step == "release" for one in outcomes)
                choice = look() if self._wants_more() and not is_put_back else None
                rows = self._finish(outcomes, choice)

    def _wants_more(self) -> bool:
        return not (self._leases.stopping.is_set() or self._leases.paused.is_set())

    def _check(self, held: Held) -> None:
        """Raise what keeps work from beginning."""
        held.control.check()
        if not self._wants_more():
            raise Interrupted

    def _perform(self, rows: Sequence[Held]) -> list[Outcome]:
        batch = Batch(deque(rows))
        ran_seconds: list[float] = []
        self._batches.add(batch)
        try:
            while held := batch.next():
                outcome = self._outcome(held)
                seconds = time.monotonic() - batch.began_at
                self._queue.note_pace(held.kind, seconds)
                ran_seconds.append(seconds)
                if outcome is not None:
                    batch.done.append(outcome)
        finally:
            self._batches.discard(batch)
            RUNS.observe_all(rows[0].machine.name, rows[0].kind, seconds=ran_seconds)
        return _drain(batch.done)

    def _outcome(self, held: Held) -> Outcome | None:
        """Do the work; return the one step that it calls for, or None when the lease is lost."""
        try:
            self._check(held)
            with held.traced():
                return self._worked(held)
        except (OperationalError, InterfaceError):
            raise  # nothing can be written now; the lease lapses and the work is put back
        except Exception as error:  # noqa: BLE001 - each kind has its own step, the unknown too
            return self._early_end(held, error)

    def _worked(self, held: Held) -> Outcome:
        if held.is_cut:
            self._run_items(held)
            return self._completed(held, None, None)
        executor = EXECUTORS[held.kind]
        return self._completed(held, self._result(held, executor), executor)

    def _result(self, held: Held, executor: Executor) -> Any:
        if self._hashers and is_worth_it(held):
            try:
                return self._hashers.run(held)
            except NotDone as error:
                if isinstance(error, HasherLost):
                    log.warning("A process that hashes was lost with %s; done without it", held)
                held.control.items = held.control.bytes = 0
        task = executor.prepare(self._database, held.row)
        return executor.run(task, self._context(held.control))

    def _early_end(self, held: Held, error: Exception) -> Outcome | None:
        outcome: Outcome | None = None
        match error:
            case LeaseLost():
                log.warning("Lost the lease on %s", held)
            case Interrupted():
                outcome = Outcome(held, "release")
            case Cancelled():
                outcome = Outcome(held, "cancel")
            case Skip():
                outcome = Outcome(held, "skip", {"message": str(error)})
            case Retry():
                outcome = _put_back(held, error.code, str(error))
            case Fail():
                outcome = Outcome(held, "fail", _reason(held, error.code, str(error)))
            case OSError():  # a full disk, for one
                log.warning("%s met an error of the file system", held, exc_info=error)
                outcome = _put_back(held, *explain_os(error))
            case _:
                log.error("%s failed", held, exc_info=error)
                if self._flight_log:
                    dump_unhandled(self._flight_log, error)
                outcome = _put_back(
                    held, "internal", "The worker met an unexpected error; see its log."
                )
        return outcome

    def _completed(self, held: Held, result: Any, executor: Executor | None) -> Outcome:
        if held.machine is JOBS:
            return Outcome(held, "complete", {}, executor, result)
        message = _message(result)
        figures = {
            "processed_items": held.control.items,
            "processed_bytes": held.control.bytes,
            "message": message,
        }
        return Outcome(held, "fail" if message else "complete", figures, executor, result)

    def _run_items(self, held: Held) -> None:
        """Do the items of a job, with whoever else does them, until none is left."""
        mine = Choice.items_of(held.job_id, held.kind)
        bound = {"job": held.job_id}
        left = {"pending"}
        while True:
            self._check(held)
            if "pending" in left:
                self._work_off(mine, self._queue.claim(mine), lambda: mine)
            self._items_ended.clear()  # before the look: what ends after it is to be heard of
            with self._database.read() as conn:
                left = set(conn.execute(_OPEN_ITEMS, bound).scalars())
                done = conn.execute(_DONE_ITEMS, bound).one()
            if not left:
                break
            self._items_ended.wait(_ITEM_WAIT_SECONDS)
            self._queue.recover()
        held.control.items = int(done.items)
        if done.cancelled:  # the last one, perhaps: nothing else would tell that the job is
            raise Cancelled
        if done.failed:
            raise Fail(
                "items_failed",
                f"{done.failed} items failed and the rest is done; `mediaplane job show"
                f" {held.job_id} --items` says why. Starting the job again does what is left.",
            )

    def _finish(self, outcomes: Sequence[Outcome], choice: Choice | None) -> list[Row]:
        """Write outcomes, and return what was claimed in the same transaction."""
        for one in outcomes:
            one.held.is_ended = True
        try:
            rows = self._write(outcomes, choice)
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:  # noqa: BLE001 - one result that cannot be recorded
            return self._finish_apart(outcomes, error)
        for one in outcomes:
            self.ended[one.step] = self.ended.get(one.step, 0) + 1
        if any(one.held.machine is JOB_ITEMS for one in outcomes):
            self._items_ended.set()
        return rows

    def _finish_apart(self, outcomes: Sequence[Outcome], error: Exception) -> list[Row]:
        """Find the outcome that cannot be written, and put back its work alone."""
        if len(outcomes) == 1:
            instead = self._early_end(outcomes[0].held, error)
            return self._finish([instead] if instead else [], None)
        for one in outcomes:
            self._finish([one], None)
        return []

    def _write(self, outcomes: Sequence[Outcome], choice: Choice | None) -> list[Row]:
        """A database that is away for a moment must not undo what was done."""
        for attempt in range(_WRITE_ATTEMPTS - 1):
            try:
                return self._queue.finish(outcomes, choice if attempt == 0 else None)
            except (OperationalError, InterfaceError) as error:
                # Whether it was written or not: a second time it is refused by the lease.
                log.warning("%d outcomes were not written: %s", len(outcomes), explain(error))
                time.sleep(0.1 * 4**attempt)
        return self._queue.finish(outcomes, None)


def _drain(waiting: deque[Waiting]) -> list[Waiting]:
    """Take all that waits; another thread may take some of it at the same time."""
    taken = []
    with suppress(IndexError):
        while True:
            taken.append(waiting.popleft())
    return taken


def _put_back(held: Held, code: str, message: str) -> Outcome:
    step = "retry" if held.machine is JOBS else "fail"
    return Outcome(held, step, _reason(held, code, message))


def _reason(held: Held, code: str, message: str) -> dict[str, Any]:
    if held.machine is JOB_ITEMS:
        return {"message": message}
    return {"error_code": code, "error_message": message}


def _message(result: Any) -> str | None:
    """Return why a shard that did what it could is not complete."""
    if isinstance(result, HashResult) and result.left:
        return (
            f"{result.left} files were left out because their library's folder is not there, or is"
            " another one than at its last scan."
        )
    return None
