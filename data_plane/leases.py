"""The leases this worker holds at the moment, shared by its slots and its heartbeat."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import time

from data_plane.executor import Control
from mediaplane.protocol.driver import Row
from mediaplane.protocol.gate import Lessee
from mediaplane.protocol.lifecycle import Machine
from mediaplane.protocol.machines import JOBS
from mediaplane.protocol.values import JobKind


@dataclass(eq=False, slots=True)
class Held:
    """A row this worker owns while it works on it."""

    machine: Machine
    kind: JobKind
    row: Row
    lessee: Lessee
    control: Control
    # What the database was told last, so that nothing is written twice.
    told: tuple[int, int] = (0, 0)
    # Its outcome is being written, so that no heartbeat is missed.
    is_ended: bool = False
    started_at: float = field(default_factory=time)

    @property
    def job_id(self) -> int:
        """The job that the row is or belongs to."""
        job_id: int = self.row["id" if self.machine is JOBS else "job_id"]
        return job_id

    @property
    def is_cut(self) -> bool:
        """Whether the row is a job that is cut into items."""
        return self.machine is JOBS and self.row["total_items"] is not None

    def __str__(self) -> str:
        return f"{self.machine.name} {self.lessee.row_id} (claim {self.lessee.epoch})"


class Leases:
    """All rows that this worker owns, and whether it wants more."""

    def __init__(self, worker_id: str) -> None:
        self.worker_id = worker_id
        self.paused = threading.Event()
        self.stopping = threading.Event()  # no more work is taken
        self.interrupted = threading.Event()  # what is not done by now is put back
        self._lock = threading.Lock()
        self._held: set[Held] = set()

    @contextmanager
    def hold(
        self, machine: Machine, kind: JobKind | None, rows: Sequence[Row]
    ) -> Iterator[list[Held]]:
        """Keep claimed rows alive for as long as they are worked on; items need their kind said."""
        held = [
            Held(
                machine,
                kind or JobKind(row["kind"]),
                row,
                Lessee(row["id"], self.worker_id, row["lease_epoch"]),
                Control(interrupted=self.interrupted),
            )
            for row in rows
        ]
        with self._lock:
            self._held.update(held)
        try:
            yield held
        finally:
            self.forget(held)

    def forget(self, held: Iterable[Held]) -> None:
        """Keep these rows alive no longer."""
        with self._lock:
            self._held.difference_update(held)

    def all(self) -> list[Held]:
        """Return every held row."""
        with self._lock:
            return list(self._held)
