"""What the rows of jobs and their items must be after each step: the gate, told in plain Python."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from mediaplane.protocol.lifecycle import Lease, Machine, Step
from mediaplane.protocol.machines import JOB_ITEMS, JOBS, MAX_ITEM_CLAIMS
from mediaplane.protocol.values import EventType, Plane

MAX_ATTEMPTS = 3
OPEN = ("pending", "running")


@dataclass
class Row:
    """A job or an item, as far as the protocol is concerned with it."""

    id: int
    job: "Row | None" = None  # None: it is a job itself
    status: str = "pending"
    epoch: int = 0
    worker: str | None = None
    lease: str | None = None  # or valid, or expired
    weight: int = 0
    items: list["Row"] = field(default_factory=list)
    attempts: int = 0
    is_delayed: bool = False
    is_cancel_requested: bool = False
    counters: dict[str, int] = field(default_factory=dict)
    history: list[tuple[str, int | None]] = field(default_factory=list)  # event, item

    @property
    def has_tries_left(self) -> bool:
        return self.attempts + 1 < MAX_ATTEMPTS


CONDITIONS: dict[str, Callable[[Row], bool]] = {
    "jobs.claim": lambda row: not row.is_cancel_requested,
    "jobs.complete": lambda row: not any(item.status in OPEN for item in row.items),
    "jobs.delay": lambda row: not row.is_delayed and row.has_tries_left,
    "jobs.requeue": lambda row: (
        row.is_delayed and row.has_tries_left and not row.is_cancel_requested
    ),
    "jobs.exhaust": lambda row: not row.has_tries_left,
    "jobs.drop_cancelled": lambda row: row.is_cancel_requested,
    "job_items.claim": lambda row: (
        row.job is not None and row.job.status == "running" and not row.job.is_cancel_requested
    ),
    "job_items.recover": lambda row: row.epoch < MAX_ITEM_CLAIMS,
    "job_items.reap": lambda row: row.epoch < MAX_ITEM_CLAIMS,
    "job_items.poison": lambda row: row.epoch >= MAX_ITEM_CLAIMS,
}


def is_legal(machine: Machine, step: Step, row: Row) -> bool:
    """Whether the row may take the step now, from somebody who may ask for it."""
    condition = CONDITIONS.get(f"{machine.name}.{step.name}")
    return (
        row.status in step.sources
        and (condition is None or condition(row))
        and (step.lease is not Lease.REAP or row.lease != "valid")
    )


def take(machine: Machine, step: Step, rows: Iterable[Row], worker: str | None = None) -> None:
    """Move rows, with all that follows."""
    for row in sorted(rows, key=lambda row: row.id):
        _move_lease(step, row, worker)
        row.status = step.target or row.status
        _move_job(step, row)
        if machine is JOBS and step.target in machine.final:
            closing = JOB_ITEMS.step("revoke" if step.plane is Plane.DATA else "withdraw")
            take(JOB_ITEMS, closing, [item for item in row.items if item.status in OPEN])
        _remember(step, row)


def _move_lease(step: Step, row: Row, worker: str | None) -> None:
    match step.lease:
        case Lease.TAKE:
            row.epoch, row.worker, row.lease = row.epoch + 1, worker, "valid"
        case Lease.KEEP:
            row.lease = "valid"
        case Lease.DROP:
            row.lease = None
            row.worker = None if step.name == "release" else row.worker
        case Lease.REAP | Lease.REVOKE:
            row.lease = row.worker = None
        case Lease.ABSENT:
            pass


def _move_job(step: Step, row: Row) -> None:
    match step.name:
        case "request_cancel":
            row.is_cancel_requested = True
        case "delay":
            row.is_delayed = True
        case "requeue" | "requeue_now":
            row.attempts, row.is_delayed = row.attempts + 1, False
            row.is_cancel_requested = False


def _remember(step: Step, row: Row) -> None:
    job = row.job or row
    for event in step.events:
        job.history.append((event, row.id if event is EventType.ITEM_DONE else None))
    for counter in step.counts:
        job.counters[counter] = job.counters.get(counter, 0) + row.weight


COUNTERS = ("completed_items", "failed_items", "skipped_items", "cancelled_items")


def seen(row: Row) -> dict[str, Any]:
    """The columns that a row must have."""
    columns: dict[str, Any] = {
        "status": row.status,
        "lease_epoch": row.epoch,
        "worker_id": row.worker,
        "lease": row.lease,
    }
    if row.job is None:
        columns |= {counter: row.counters.get(counter, 0) for counter in COUNTERS}
        columns["attempts"] = row.attempts
    return columns
