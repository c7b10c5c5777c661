"""The leases this worker holds at the moment, shared by its slots and its heartbeat."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import time

from sqlalchemy.engine import RowMapping

from data_plane.executor import Control
from mediaplane.protocol.gate import Lessee
from mediaplane.protocol.lifecycle import Machine


@dataclass(eq=False)
class Held:
    """A row this worker owns while it works on it."""

    machine: Machine
    row: RowMapping
    lessee: Lessee
    control: Control
    # What the database was told last, so that nothing is written twice.
    told: tuple[int, int] = (0, 0)
    started_at: float = field(default_factory=time)

    @property
    def job_id(self) -> int:
        """The job that the row is or belongs to."""
        job_id: int = self.row["job_id"] if "job_id" in self.row else self.row["id"]
        return job_id


class Leases:
    """All rows that this worker owns."""

    def __init__(self, worker_id: str, stopping: threading.Event) -> None:
        self.worker_id = worker_id
        self.stopping = stopping
        self._lock = threading.Lock()
        self._held: set[Held] = set()

    @contextmanager
    def hold(self, machine: Machine, row: RowMapping) -> Iterator[Held]:
        """Keep a claimed row alive for as long as it is worked on."""
        lessee = Lessee(row["id"], self.worker_id, row["lease_epoch"])
        held = Held(machine, row, lessee, Control(stopping=self.stopping))
        with self._lock:
            self._held.add(held)
        try:
            yield held
        finally:
            with self._lock:
                self._held.discard(held)

    def all(self) -> list[Held]:
        """Return every held row."""
        with self._lock:
            return list(self._held)
